//! What an image's files show against driver and GPU. NVIDIA, CUDA Compatibility and the release notes of CUDA 13.x
//! (2026-11); reports, among others nvidia-docker#1515 and vllm#6551.

use super::step;
use crate::model::{Action, Page, Severity};

/// In the catalogue's order.
pub(super) const PAGES: &[Page] = &[Page {
    id: "extension-lacks-gpu-arch",
    title: "an extension has no code for this GPU",
    why: "An extension was compiled for other GPUs than the framework, mostly in a build without a GPU.",
    severities: &[Severity::Note],
    tells_apart: "The framework itself works on the GPU; only calls into the extension fail.",
    verify: &["gpu-preflight image REF", "cuobjdump --list-elf EXTENSION.so"],
    remedy: &[step(
        Action::ChangeImage,
        "Compile it for this GPU.",
        Some("TORCH_CUDA_ARCH_LIST=\"8.6;9.0;12.0\" pip install --no-build-isolation ..."),
    )],
}];
