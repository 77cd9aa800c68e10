//! Forward compatibility: a newer libcuda of an image on an older driver of the host.
//!
//! It works on some brands of GPU and some branches of the driver. Where it does not, CUDA does not start at all,
//! though it might have without: error 804 for the GPU, 803 for the driver.

use crate::model::ComputeCapability;

mod elf;
mod note;
mod outcome;
mod tables;
mod toolkit;

pub use elf::note_of_elf;
pub use note::parse_note;
pub use outcome::{Because, Decided, Gpu, Lacking, Outcome, Question, outcome};
pub(crate) use tables::{BRANCHES, PACKAGES};
pub use toolkit::{Activation, Way, toolkit_activates};

/// Brands on which it works, by their number in NVML (`nvmlBrandType_t`): Quadro, Tesla, vApps, vPC, vCS, vWS,
/// `CloudGaming`, `QuadroRTX`, `NvidiaRTX`, Nvidia. All but `GeForce`, Titan, NVS and GRID.
///
/// From the notes of libcuda 575.57.08 and 590.44.01, which agree (fixtures of NVIDIA's container toolkit, read
/// 2026-11); that the note's numbers are NVML's is inferred from the exact match. NVIDIA's documentation says data
/// centre GPUs and some RTX boards. `GeForce` getting 804: candle#3358, nvidia-docker#1515 and many more.
pub const BRANDS: [u32; 10] = [1, 2, 7, 8, 9, 10, 11, 12, 13, 14];

/// The least GPU that a libcuda of a branch has code for: without it there is no device at all (error 100).
/// NVIDIA, "Unix driver: legacy GPUs": Kepler ended with 470, Maxwell, Pascal and Volta with 580; conda-forge's
/// recipe of cuda-compat 13.2 asks for 7.5 (read 2026-11).
pub fn least_capability(branch: u32) -> Option<ComputeCapability> {
    let (major, minor) = match branch {
        590.. => (7, 5),
        495.. => (5, 0),
        396.. => (3, 0),
        _ => return None,
    };
    Some(ComputeCapability::new(major, minor))
}
