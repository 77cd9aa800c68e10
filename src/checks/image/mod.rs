//! The family `image`: does it suit driver and GPU?

use crate::model::Check;

mod builds;
mod code;
mod compat;
mod declared;
mod driver_files;
mod dropped;
mod gpus;
mod libc;
mod libcuda;
mod meant;
mod missing;
mod needs;
mod python;
mod require;
mod share;
mod start;
mod target;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[
    require::CHECKS,
    start::CHECKS,
    compat::CHECKS,
    code::CHECKS,
    builds::CHECKS,
    missing::CHECKS,
    driver_files::CHECKS,
    libc::CHECKS,
    declared::CHECKS,
    target::CHECKS,
];
