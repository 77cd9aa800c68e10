//! The family `nodes`: are they there, right and usable?

use crate::model::Check;

mod access;
mod cgroups;
pub(crate) mod expect;
pub(crate) mod given;
mod gpu_missing;
mod groups;
mod here;
mod missing;
mod modes;
mod mounts;
mod numbers;
pub(crate) mod role;
mod rootless;
mod selinux;
mod special;
pub(crate) mod ways;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[
    missing::CONTROL_CHECKS,
    gpu_missing::CHECKS,
    missing::UVM_CHECKS,
    special::CHECKS,
    numbers::CHECKS,
    // The cause of a refusal before the refusal: its way out is another one.
    rootless::CHECKS,
    access::CHECKS,
    modes::CHECKS,
    groups::CHECKS,
    selinux::CHECKS,
    cgroups::CHECKS,
    mounts::CHECKS,
];
