//! What the vendor publishes, as tables with source and date, and pure functions over them.

use std::borrow::Cow;

use crate::model::Knowledge;

pub mod additions;
#[cfg(feature = "cli")]
pub mod answer;
pub mod architecture;
#[cfg(feature = "cli")]
pub mod catalogue;
pub mod compat;
pub mod cuda;
pub mod cuda_visible_devices;
pub mod driver_capabilities;
pub mod driver_files;
#[cfg(feature = "cli")]
pub mod driver_functions;
#[cfg(feature = "cli")]
pub mod driver_packages;
#[cfg(feature = "cli")]
pub mod errors;
pub mod frameworks;
pub mod gpus;
pub mod little_endian;
pub mod monitors;
pub mod needs;
pub mod nvml;
#[cfg(feature = "cli")]
pub mod pages;
pub mod programs;
pub mod require;
pub mod toolkit;
pub mod variables;
pub mod visible_devices;
pub mod ways;

/// What was known when this program was built.
pub const BUILT_IN: Knowledge = Knowledge {
    toolkits: Cow::Borrowed(cuda::TOOLKITS),
    branches: Cow::Borrowed(cuda::BRANCHES),
    majors: Cow::Borrowed(cuda::MAJORS),
    compat_packages: Cow::Borrowed(compat::PACKAGES),
    compat_branches: Cow::Borrowed(compat::BRANCHES),
    generations: Cow::Borrowed(gpus::GENERATIONS),
    chips: Cow::Borrowed(gpus::CHIPS),
    products: Cow::Borrowed(gpus::PRODUCTS),
    targets: Cow::Borrowed(gpus::TARGETS),
    ptx: Cow::Borrowed(gpus::PTX),
};
