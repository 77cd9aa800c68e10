//! How frameworks are recognised, and what each of them needs. Text in, facts out: nothing here reads a file.
//!
//! A framework's version file is believed before its version, and its version before the tables of defaults:
//! METADATA is not (the aarch64 wheel of torch 2.10.0 on `PyPI` lists CUDA's packages and is a CPU build,
//! seen 2026-11).

mod architectures;
mod default_cuda;
pub mod device_code;
#[cfg(feature = "cli")]
mod interest;
mod libraries;
mod packages;
mod ptx;
mod version;
mod version_file;

pub use architectures::{Archs, Code, Coverage, Runs, architectures, architectures_of_any, covers, minimum_capability};
#[cfg(feature = "cli")]
pub use interest::is_of_interest;
pub use libraries::{brings_library, needs_libraries, needs_libraries_of, package_with};
pub use packages::{Recognised, of_library, of_package};
pub use ptx::{Jit, jit, needs_driver_for_device_code};
pub use version_file::{of_version_file, older_place};

/// A distribution's name as the directories of its metadata write it: `onnxruntime-gpu` is `onnxruntime_gpu`.
fn normalised(name: &str) -> String {
    name.chars().take(100).map(|c| if matches!(c, '-' | '.') { '_' } else { c.to_ascii_lowercase() }).collect()
}
