//! For which GPUs a build carries machine code.

use std::borrow::Cow;

use super::normalised;
use super::version::major_minor;
use crate::model::{ComputeCapability, CudaVersion};

/// What a build carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archs {
    /// Machine code.
    pub machine_code: Cow<'static, [Code]>,
    /// PTX, which a driver compiles when the program starts.
    pub ptx: Cow<'static, [Code]>,
    /// Read in a published build; else in the scripts that build it.
    pub confirmed: bool,
}

/// Code for a kind of GPU: `sm_90a` is 9.0, for that one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The GPU it was compiled for.
    pub capability: ComputeCapability,
    /// Which others run it.
    pub runs: Runs,
}

/// Which GPUs run a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Those its capability has no greater variant than; of PTX any not older.
    Compatible,
    /// The letter `f`: its family.
    Family,
    /// The letter `a`: the one it was compiled for.
    Exact,
}

/// How a build suits a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// It has nothing the GPU could run: error 209.
    No,
    /// The driver has to compile its PTX.
    Ptx,
    /// It has machine code.
    Native,
}

/// Whether a GPU runs what a build carries (NVIDIA, "CUDA C++ Programming Guide", binary and PTX
/// compatibility, read 2026-11). Code for the GPUs of Jetson boards and that for cards do not replace each
/// other.
pub fn covers(archs: &Archs, gpu: ComputeCapability) -> Coverage {
    let same_family = |code: &Code| code.capability.major == gpu.major && code.capability.minor <= gpu.minor;
    let native = |code: &Code| {
        code.capability == gpu
            || (code.runs != Runs::Exact && same_family(code) && !is_of_a_board(gpu) && !is_of_a_board(code.capability))
    };
    let compiles = |code: &Code| match code.runs {
        Runs::Compatible => code.capability <= gpu,
        Runs::Family => same_family(code),
        Runs::Exact => code.capability == gpu,
    };
    if archs.machine_code.iter().any(native) {
        Coverage::Native
    } else if archs.ptx.iter().any(compiles) {
        Coverage::Ptx
    } else {
        Coverage::No
    }
}

/// GPUs of Jetson boards: TK1, Nano, TX2, Xavier, Orin, Thor.
fn is_of_a_board(gpu: ComputeCapability) -> bool {
    matches!((gpu.major, gpu.minor), (3 | 6 | 7, 2) | (5, 3) | (8, 7) | (10, 1) | (11, 0))
}

const fn sm(major: u8, minor: u8) -> Code {
    Code { capability: ComputeCapability::new(major, minor), runs: Runs::Compatible }
}

const fn only(major: u8, minor: u8) -> Code {
    Code { capability: ComputeCapability::new(major, minor), runs: Runs::Exact }
}

/// Releases of a framework for one CUDA, with what their builds for `x86_64` carry.
struct Entry {
    name: &'static str,
    /// First and last release.
    releases: ((u32, u32), (u32, u32)),
    /// The CUDAs, as `major * 10 + minor`; empty: any.
    cudas: &'static [u32],
    machine_code: &'static [Code],
    ptx: &'static [Code],
    confirmed: bool,
}

const KEPLER_TO_VOLTA: &[Code] = &[sm(3, 7), sm(5, 0), sm(6, 0), sm(7, 0)];
const KEPLER_TO_AMPERE: &[Code] = &[sm(3, 7), sm(5, 0), sm(6, 0), sm(7, 0), sm(7, 5), sm(8, 0), sm(8, 6)];
const KEPLER_TO_HOPPER: &[Code] = &[sm(3, 7), sm(5, 0), sm(6, 0), sm(7, 0), sm(7, 5), sm(8, 0), sm(8, 6), sm(9, 0)];
const MAXWELL_TO_HOPPER: &[Code] = &[sm(5, 0), sm(6, 0), sm(7, 0), sm(7, 5), sm(8, 0), sm(8, 6), sm(9, 0)];
const VOLTA_TO_BLACKWELL: &[Code] = &[sm(7, 0), sm(7, 5), sm(8, 0), sm(8, 6), sm(9, 0), sm(10, 0), sm(12, 0)];
const TURING_TO_BLACKWELL: &[Code] = &[sm(7, 5), sm(8, 0), sm(8, 6), sm(9, 0), sm(10, 0), sm(12, 0)];
const PTX_120: &[Code] = &[sm(12, 0)];
const LATER: (u32, u32) = (2, 15);

const fn torch(first: (u32, u32), last: (u32, u32), cudas: &'static [u32], code: &'static [Code]) -> Entry {
    Entry { name: "torch", releases: (first, last), cudas, machine_code: code, ptx: &[], confirmed: false }
}

/// torch: its build scripts (`pytorch/builder`, later `.ci/manywheel/build_cuda.sh`); the wheels of 1.12.1 and
/// 2.15.0. Others: their wheels (all read 2026-11).
const ENTRIES: &[Entry] = &[
    Entry { confirmed: true, ..torch((1, 12), (1, 12), &[102], KEPLER_TO_VOLTA) },
    torch((1, 8), (1, 13), &[102], KEPLER_TO_VOLTA),
    torch((1, 8), (2, 0), &[111, 113, 115, 116, 117], KEPLER_TO_AMPERE),
    torch((2, 0), (2, 5), &[118], KEPLER_TO_HOPPER),
    torch((2, 1), (2, 5), &[121, 124], MAXWELL_TO_HOPPER),
    torch((2, 6), (2, 7), &[118, 124, 126], MAXWELL_TO_HOPPER),
    // Without Volta, which 2.8 took back: pytorch_compute_capabilities#2 (2025-05), bitsandbytes#1715 (2025-07), V100s
    // that fail in open-webui's image.
    Entry { ptx: PTX_120, confirmed: true, ..torch((2, 7), (2, 7), &[128], TURING_TO_BLACKWELL) },
    torch((2, 8), LATER, &[126], MAXWELL_TO_HOPPER),
    torch((2, 8), (2, 10), &[128], VOLTA_TO_BLACKWELL),
    Entry { ptx: PTX_120, ..torch((2, 8), (2, 8), &[129], VOLTA_TO_BLACKWELL) },
    torch((2, 11), (2, 11), &[128], TURING_TO_BLACKWELL),
    Entry { ptx: PTX_120, ..torch((2, 9), LATER, &[130], TURING_TO_BLACKWELL) },
    Entry { confirmed: true, ..torch((2, 15), (2, 15), &[132], TURING_TO_BLACKWELL) },
    // 8 of 673 fatbin containers have 9.0 as well: too few to count.
    Entry {
        name: "paddlepaddle_gpu",
        releases: ((2, 6), (2, 6)),
        cudas: &[118],
        machine_code: &[sm(6, 1), sm(7, 0), sm(7, 5), sm(8, 0), sm(8, 6)],
        ptx: &[],
        confirmed: true,
    },
    // All that any build of it has (Paddle, `cmake/cuda.cmake` of 3.0, which adds no PTX by itself).
    Entry {
        name: "paddlepaddle_gpu",
        releases: ((3, 0), (3, 0)),
        cudas: &[],
        machine_code: &[
            sm(5, 0),
            sm(5, 2),
            sm(6, 0),
            sm(6, 1),
            sm(6, 2),
            sm(7, 0),
            sm(7, 5),
            sm(8, 0),
            sm(8, 6),
            sm(8, 9),
            sm(9, 0),
        ],
        ptx: &[],
        confirmed: false,
    },
    Entry {
        name: "onnxruntime_gpu",
        releases: ((1, 31), (1, 31)),
        cudas: &[130],
        machine_code: &[sm(7, 5), sm(8, 0), sm(8, 6), sm(8, 9), only(9, 0), only(12, 0)],
        ptx: &[],
        confirmed: true,
    },
    Entry {
        name: "jax_cuda12_plugin",
        releases: ((0, 10), (0, 10)),
        cudas: &[],
        machine_code: &[sm(5, 0), sm(6, 0), sm(7, 0), sm(8, 0), sm(9, 0), sm(10, 0), sm(10, 1), sm(12, 0)],
        ptx: PTX_120,
        confirmed: true,
    },
    Entry {
        name: "ctranslate2",
        releases: ((4, 8), (4, 8)),
        cudas: &[],
        machine_code: &[sm(5, 3), sm(6, 0), sm(6, 1), sm(7, 0), sm(7, 5), sm(8, 0), sm(8, 6)],
        ptx: &[sm(8, 6)],
        confirmed: true,
    },
];

/// What the published builds of a release for a CUDA carry, for `x86_64`; those for arm64 carry less. `None`:
/// not known. `cuda` is needed down to its minor.
pub fn architectures(name: &str, version: &str, cuda: &CudaVersion) -> Option<Archs> {
    let name = normalised(name);
    let version = major_minor(version)?;
    let cuda = cuda.number(0).checked_mul(10)?.checked_add(cuda.number(1))?;
    let has = |entry: &&Entry| entry.cudas.is_empty() || entry.cudas.contains(&cuda);
    ENTRIES.iter().filter(|entry| entry.is_of(&name, version)).find(has).map(Entry::archs)
}

/// What all published builds of a release carry together, whatever CUDA they are for; `None`: not known.
pub fn architectures_of_any(name: &str, version: &str) -> Option<Archs> {
    let (name, version) = (normalised(name), major_minor(version)?);
    ENTRIES.iter().filter(|entry| entry.is_of(&name, version)).find(|entry| entry.cudas.is_empty()).map(Entry::archs)
}

impl Entry {
    fn is_of(&self, name: &str, version: (u32, u32)) -> bool {
        let (first, last) = self.releases;
        self.name == name && (first..=last).contains(&version)
    }

    fn archs(&self) -> Archs {
        Archs {
            machine_code: Cow::Borrowed(self.machine_code),
            ptx: Cow::Borrowed(self.ptx),
            confirmed: self.confirmed,
        }
    }
}

/// The least GPU that a framework says it works on; `None`: not known.
///
/// JAX: its installation page (cuda12 5.2, cuda13 7.5). `FlashAttention` 2: its README (Ampere; version 1 Turing
/// too). bitsandbytes: its installation guide (6.0 since 0.48, 5.0 before; `LLM.int8()` alone needs 7.5).
/// Ollama: `docs/gpu.mdx` (5.0). All read 2026-11.
pub fn minimum_capability(name: &str, version: &str) -> Option<ComputeCapability> {
    let least = match (normalised(name).as_str(), major_minor(version)) {
        ("jax_cuda12_plugin", _) => (5, 2),
        ("jax_cuda13_plugin", _) | ("flash_attn", Some((1, _))) => (7, 5),
        ("flash_attn", Some((2.., _))) => (8, 0),
        ("bitsandbytes", Some(version)) if version >= (0, 48) => (6, 0),
        ("bitsandbytes", Some((0, 40..))) | ("ollama", _) => (5, 0),
        _ => return None,
    };
    Some(ComputeCapability::new(least.0, least.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cc(text: &str) -> ComputeCapability {
        text.parse().unwrap()
    }

    fn of(name: &str, version: &str, cuda: &str) -> Option<Archs> {
        architectures(name, version, &cuda.parse().unwrap())
    }

    fn carrying(machine_code: &[Code], ptx: &[Code]) -> Archs {
        Archs { machine_code: machine_code.to_vec().into(), ptx: ptx.to_vec().into(), confirmed: true }
    }

    #[test]
    fn machine_code_runs_on_its_generations_later_variants() {
        let archs = carrying(&[sm(8, 0), only(9, 0)], &[]);
        for (gpu, expected) in [
            ("8.0", Coverage::Native),
            ("8.6", Coverage::Native),
            ("8.9", Coverage::Native),
            ("8.7", Coverage::No),
            ("7.5", Coverage::No),
            ("9.0", Coverage::Native),
            ("10.0", Coverage::No),
        ] {
            assert_eq!(covers(&archs, cc(gpu)), expected, "{gpu}");
        }
        let family = Code { capability: cc("10.0"), runs: Runs::Family };
        let archs = Archs { machine_code: vec![family].into(), ptx: vec![family].into(), confirmed: true };
        assert_eq!(covers(&archs, cc("10.3")), Coverage::Native);
        assert_eq!(covers(&archs, cc("12.0")), Coverage::No);
    }

    #[test]
    fn ptx_runs_on_what_is_newer() {
        let archs = carrying(&[sm(8, 6)], &[sm(8, 6)]);
        assert_eq!(covers(&archs, cc("8.0")), Coverage::No);
        assert_eq!(covers(&archs, cc("8.7")), Coverage::Ptx);
        assert_eq!(covers(&archs, cc("12.0")), Coverage::Ptx);
        assert_eq!(covers(&carrying(&[], &[only(9, 0)]), cc("10.0")), Coverage::No);
    }

    #[test]
    fn known_releases_on_known_gpus() {
        let on = |name, version, cuda, gpu| of(name, version, cuda).map(|archs| covers(&archs, cc(gpu)));
        assert_eq!(on("torch", "1.12.1+cu102", "10.2", "8.6"), Some(Coverage::No));
        assert_eq!(on("torch", "2.5.1+cu124", "12.4", "12.0"), Some(Coverage::No), "an RTX 5090");
        assert_eq!(on("torch", "2.5.1+cu124", "12.4", "8.9"), Some(Coverage::Native));
        assert_eq!(on("torch", "2.9.0+cu130", "13.0", "7.0"), Some(Coverage::No));
        assert_eq!(on("torch", "2.9.0+cu130", "13.0", "12.1"), Some(Coverage::Native));
        assert_eq!(on("torch", "2.15.0", "13.2", "10.3"), Some(Coverage::Native));
        assert_eq!(on("paddlepaddle-gpu", "2.6.2", "11.8", "9.0"), Some(Coverage::No));
        assert_eq!(on("onnxruntime-gpu", "1.31.1", "13.0", "10.0"), Some(Coverage::No));
        assert_eq!(on("torch", "2.7.0+cu128", "12.8", "7.0"), Some(Coverage::No), "a V100");
        assert_eq!(on("torch", "2.8.0+cu128", "12.8", "7.0"), Some(Coverage::Native));
        let any = |version, gpu| architectures_of_any("paddlepaddle-gpu", version).map(|archs| covers(&archs, cc(gpu)));
        assert_eq!(any("3.0.0rc0", "12.0"), Some(Coverage::No), "an RTX 5090 D");
        assert_eq!((any("3.0.0", "8.9"), any("3.2.2", "12.0")), (Some(Coverage::Native), None));
        assert_eq!(on("torch", "2.9.0", "9.2", "7.0"), None);
        assert!(of("torch", "1.12.1", "10.2").is_some_and(|archs| archs.confirmed));
        assert!(of("torch", "1.11.0", "10.2").is_some_and(|archs| !archs.confirmed));
        assert_eq!(minimum_capability("flash-attn", "2.7.4.post1"), Some(cc("8.0")));
        assert_eq!(minimum_capability("jax-cuda13-plugin", "0.10.2"), Some(cc("7.5")));
    }

    #[test]
    fn more_code_never_covers_less() {
        let gpus: Vec<_> = [(5, 0), (7, 0), (7, 5), (8, 0), (8, 7), (8, 9), (9, 0), (10, 3), (12, 1)]
            .map(|(major, minor)| ComputeCapability::new(major, minor))
            .into();
        for entry in ENTRIES {
            assert!(entry.releases.0 <= entry.releases.1);
            assert!(entry.machine_code.windows(2).all(|pair| pair[0].capability < pair[1].capability));
            for gpu in &gpus {
                let some = carrying(&entry.machine_code[1..], entry.ptx);
                assert!(covers(&some, *gpu) <= covers(&carrying(entry.machine_code, entry.ptx), *gpu));
            }
        }
    }
}
