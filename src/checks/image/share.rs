//! What share of a framework's own device code these GPUs run, as its libraries were read.

use super::builds::environment_of;
use super::needs::Need;
use crate::knowledge::frameworks::device_code::coverage;
use crate::model::image::DeviceCode;
use crate::model::{ComputeCapability, Facts, Unknown};

/// Less than one in twenty: what was made for this generation alone is a part of any library, and the rest is not
/// there.
const FEW: u32 = 20;

/// What of the code a GPU can do with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// None of it.
    Nothing,
    /// Nearly none.
    Few,
    /// Enough of it: how much is usual differs by library.
    Enough,
}

/// Libraries of frameworks that bring their kernels compiled: directories below that of packages, or a name's
/// beginning. Those that compile while they run (`JAX`, `CuPy`, Triton) have little and need none.
const OWN: [(&str, &[&str]); 6] = [
    ("torch", &["torch/lib/"]),
    ("paddlepaddle-gpu", &["paddle/"]),
    ("onnxruntime-gpu", &["onnxruntime/"]),
    ("ctranslate2", &["ctranslate2/", "ctranslate2.libs/"]),
    ("flash-attn", &["flash_attn_2_cuda"]),
    ("xgboost", &["xgboost/"]),
];

/// The code of a framework's own libraries, and whether all of it was read; `None`: none was seen.
pub(super) fn own<'a>(facts: &Facts<'a>, need: &Need<'_>) -> Option<(Vec<&'a DeviceCode>, bool)> {
    let framework = need.framework?;
    let (_, starts) = OWN.iter().find(|(name, _)| *name == framework.name)?;
    let environment = environment_of(need.source);
    let code = facts.image.device_code.seen()?;
    let is_own = |code: &&DeviceCode| {
        let inside = code.source.strip_prefix(environment);
        inside.is_some_and(|inside| starts.iter().any(|start| inside.starts_with(start)))
    };
    let found: Vec<&DeviceCode> = code.items.iter().filter(is_own).filter(|code| !code.groups.is_empty()).collect();
    // another's library that cannot be read says nothing of these; what is no library is a layer, or all of it
    let concerns = |unread: &Unknown| {
        let inside = unread.source.strip_prefix(environment);
        !unread.source.contains(".so")
            || inside.is_some_and(|inside| starts.iter().any(|start| inside.starts_with(start)))
    };
    (!found.is_empty()).then_some((found, !code.unread.iter().any(concerns)))
}

/// Directories of packages that are frameworks, or libraries of CUDA's: what else has device code works inside one.
const NO_EXTENSIONS: [&str; 14] = [
    "torch/",
    "nvidia/",
    "tensorflow/",
    "paddle/",
    "onnxruntime/",
    "ctranslate2",
    "cupy",
    "jax",
    "triton/",
    "tensorrt",
    "xgboost/",
    "flash_attn_2_cuda",
    "bitsandbytes/",
    "cuda/",
];

/// A library of an extension of Python with code for GPUs, and for none of these.
pub(super) fn extension<'a>(facts: &Facts<'a>, gpus: &[ComputeCapability]) -> Option<&'a DeviceCode> {
    facts.image.device_code.seen()?.items.iter().find(|code| {
        let environment = environment_of(&code.source);
        let inside = code.source.strip_prefix(environment).filter(|inside| !inside.is_empty());
        let is_one = inside.is_some_and(|inside| NO_EXTENSIONS.iter().all(|start| !inside.starts_with(start)));
        is_one && !gpus.is_empty() && gpus.iter().all(|gpu| share(&[code], *gpu) == Share::Nothing)
    })
}

/// How much of it a GPU runs, machine code or PTX.
pub(super) fn share(code: &[&DeviceCode], gpu: ComputeCapability) -> Share {
    let (mut runs, mut all) = (0_u32, 0_u32);
    for counted in code.iter().map(|code| coverage(code, gpu)) {
        runs = runs.saturating_add(counted.machine).saturating_add(counted.ptx_only);
        all = all.saturating_add(counted.all());
    }
    match runs {
        0 if all > 0 => Share::Nothing,
        runs if runs.saturating_mul(FEW) < all => Share::Few,
        _ => Share::Enough,
    }
}
