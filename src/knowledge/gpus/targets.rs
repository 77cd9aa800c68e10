//! What toolkits compile for, and the PTX they write.
//!
//! Read from each release's ptxas for 11.8, 12.0, 12.6, 12.8, 12.9 and 13.0 to 13.5 (2026-11); before, NVIDIA's
//! release notes, with `CMake`'s and LLVM's tables. PTX: "Release History" of the PTX ISA; seen in the code that
//! 12.8, 12.9 and 13.5 made; 13.2 to 13.4 by the pattern of their neighbours. A driver compiles PTX of the CUDA that
//! it offers, or older.

use std::borrow::Cow;

use super::cc;
use crate::knowledge::cuda::Answer;
use crate::model::knowledge::{Ptx, Targets};
use crate::model::{ComputeCapability, CudaVersion, Knowledge, Release};

const fn targets(cuda: (u32, u32), capabilities: &'static [ComputeCapability]) -> Targets {
    Targets { cuda, capabilities: Cow::Borrowed(capabilities) }
}

/// 5.0 to 7.5: what all of CUDA 10 to 12 compile for.
const MAXWELL_TO_TURING: [ComputeCapability; 9] =
    [cc(5, 0), cc(5, 2), cc(5, 3), cc(6, 0), cc(6, 1), cc(6, 2), cc(7, 0), cc(7, 2), cc(7, 5)];
const AMPERE_TO_HOPPER: [ComputeCapability; 5] = [cc(8, 0), cc(8, 6), cc(8, 7), cc(8, 9), cc(9, 0)];

/// One list behind the other.
const fn join<const A: usize, const B: usize, const N: usize>(
    a: [ComputeCapability; A],
    b: [ComputeCapability; B],
) -> [ComputeCapability; N] {
    assert!(A + B == N, "the lengths do not add up");
    let mut all = [cc(0, 0); N];
    let mut i = 0;
    while i < N {
        all[i] = if i < A { a[i] } else { b[i - A] };
        i += 1;
    }
    all
}

const CUDA_8: [ComputeCapability; 12] = join(
    [cc(2, 0), cc(2, 1), cc(3, 0), cc(3, 2), cc(3, 5), cc(3, 7)],
    [cc(5, 0), cc(5, 2), cc(5, 3), cc(6, 0), cc(6, 1), cc(6, 2)],
);
const CUDA_10: [ComputeCapability; 13] = join([cc(3, 0), cc(3, 2), cc(3, 5), cc(3, 7)], MAXWELL_TO_TURING);
const CUDA_11: [ComputeCapability; 11] = join([cc(3, 5), cc(3, 7)], MAXWELL_TO_TURING);
const CUDA_11_0: [ComputeCapability; 12] = join(CUDA_11, [cc(8, 0)]);
const CUDA_11_1: [ComputeCapability; 13] = join(CUDA_11, [cc(8, 0), cc(8, 6)]);
const CUDA_11_4: [ComputeCapability; 14] = join(CUDA_11, [cc(8, 0), cc(8, 6), cc(8, 7)]);
const CUDA_11_8: [ComputeCapability; 16] = join(CUDA_11, AMPERE_TO_HOPPER);
const CUDA_12: [ComputeCapability; 14] = join(MAXWELL_TO_TURING, AMPERE_TO_HOPPER);
const CUDA_12_8: [ComputeCapability; 17] = join(CUDA_12, [cc(10, 0), cc(10, 1), cc(12, 0)]);
const CUDA_12_9: [ComputeCapability; 19] = join(CUDA_12, [cc(10, 0), cc(10, 1), cc(10, 3), cc(12, 0), cc(12, 1)]);
const CUDA_13: [ComputeCapability; 7] = [cc(7, 5), cc(8, 0), cc(8, 6), cc(8, 7), cc(8, 8), cc(8, 9), cc(9, 0)];
const CUDA_13_0: [ComputeCapability; 12] = join(CUDA_13, [cc(10, 0), cc(10, 3), cc(11, 0), cc(12, 0), cc(12, 1)]);
const CUDA_13_4: [ComputeCapability; 13] =
    join(CUDA_13, [cc(10, 0), cc(10, 3), cc(10, 7), cc(11, 0), cc(12, 0), cc(12, 1)]);

/// Oldest first; each stands for the releases up to the next, the newest for itself.
pub(crate) const TARGETS: &[Targets] = &[
    targets((8, 0), &CUDA_8),
    targets(
        (9, 0),
        &[
            cc(3, 0),
            cc(3, 2),
            cc(3, 5),
            cc(3, 7),
            cc(5, 0),
            cc(5, 2),
            cc(5, 3),
            cc(6, 0),
            cc(6, 1),
            cc(6, 2),
            cc(7, 0),
            cc(7, 2),
        ],
    ),
    targets((10, 0), &CUDA_10),
    targets((11, 0), &CUDA_11_0),
    targets((11, 1), &CUDA_11_1),
    targets((11, 4), &CUDA_11_4),
    targets((11, 8), &CUDA_11_8),
    targets((12, 0), &CUDA_12),
    targets((12, 8), &CUDA_12_8),
    targets((12, 9), &CUDA_12_9),
    targets((13, 0), &CUDA_13_0),
    targets((13, 4), &CUDA_13_4),
    targets((13, 5), &CUDA_13_4),
];

const fn ptx(cuda: (u32, u32), isa: (u32, u32)) -> Ptx {
    Ptx { cuda, isa }
}

/// Oldest first. 12.7 is a driver's alone.
pub(crate) const PTX: &[Ptx] = &[
    ptx((8, 0), (5, 0)),
    ptx((9, 0), (6, 0)),
    ptx((9, 1), (6, 1)),
    ptx((9, 2), (6, 1)),
    ptx((10, 0), (6, 3)),
    ptx((10, 1), (6, 4)),
    ptx((10, 2), (6, 5)),
    ptx((11, 0), (7, 0)),
    ptx((11, 1), (7, 1)),
    ptx((11, 2), (7, 2)),
    ptx((11, 3), (7, 3)),
    ptx((11, 4), (7, 4)),
    ptx((11, 5), (7, 5)),
    ptx((11, 6), (7, 6)),
    ptx((11, 7), (7, 7)),
    ptx((11, 8), (7, 8)),
    ptx((12, 0), (8, 0)),
    ptx((12, 1), (8, 1)),
    ptx((12, 2), (8, 2)),
    ptx((12, 3), (8, 3)),
    ptx((12, 4), (8, 4)),
    ptx((12, 5), (8, 5)),
    ptx((12, 6), (8, 5)),
    ptx((12, 7), (8, 6)),
    ptx((12, 8), (8, 7)),
    ptx((12, 9), (8, 8)),
    ptx((13, 0), (9, 0)),
    ptx((13, 1), (9, 1)),
    ptx((13, 2), (9, 2)),
    ptx((13, 3), (9, 3)),
    ptx((13, 4), (9, 4)),
    ptx((13, 5), (9, 5)),
];

impl Targets {
    /// The least capability.
    pub fn min(&self) -> Option<ComputeCapability> {
        self.capabilities.iter().min().copied()
    }

    /// The greatest.
    pub fn max(&self) -> Option<ComputeCapability> {
        self.capabilities.iter().max().copied()
    }
}

impl Knowledge {
    /// What a toolkit compiles for. Of one newer than the tables: what the newest of them does; it may know more GPUs
    /// and may have dropped old ones. `None`: older than the tables.
    pub fn targets_of(&self, cuda: &CudaVersion) -> Option<Answer<&Targets>> {
        let asked = (cuda.number(0), cuda.number(1));
        let found = self.targets.iter().filter(|t| t.cuda <= asked).max_by_key(|t| t.cuda)?;
        let newest = self.targets.iter().map(|t| t.cuda).max();
        Some(if Some(asked) > newest { Answer::by_rule(found) } else { Answer::known(found) })
    }

    /// The version of PTX that a toolkit writes, major and minor. Of one newer than the tables at least the newest.
    pub fn ptx_of(&self, cuda: &CudaVersion) -> Option<Answer<(u32, u32)>> {
        let asked = (cuda.number(0), cuda.number(1));
        let found = self.ptx.iter().filter(|p| p.cuda <= asked).max_by_key(|p| p.cuda)?;
        let newest = self.ptx.iter().map(|p| p.cuda).max();
        Some(if Some(asked) > newest { Answer::by_rule(found.isa) } else { Answer::known(found.isa) })
    }

    /// The CUDA that a driver must offer to compile PTX of this version. Of one newer than the tables at least the
    /// newest they know.
    pub fn cuda_of_ptx(&self, isa: (u32, u32)) -> Option<Answer<CudaVersion>> {
        let version = |(major, minor): (u32, u32)| Release::of(&[major, minor]);
        if let Some(entry) = self.ptx.iter().filter(|p| p.isa >= isa).min_by_key(|p| p.cuda) {
            return Some(Answer::known(version(entry.cuda)));
        }
        self.ptx.iter().map(|p| p.cuda).max().map(|newest| Answer::by_rule(version(newest)))
    }
}
