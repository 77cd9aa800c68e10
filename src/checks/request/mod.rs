//! The family `request`: was a GPU asked for, and given?

use crate::model::Check;

mod architecture;
pub(in crate::checks) mod asked;
mod capabilities;
mod excess;
mod not_requested;
mod passthrough;
mod policy;
mod require;
mod visible_devices;
pub(in crate::checks) mod way;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[
    not_requested::CHECKS,
    passthrough::CHECKS,
    visible_devices::CHECKS,
    policy::CHECKS,
    capabilities::CHECKS,
    excess::CHECKS,
    architecture::CHECKS,
    require::CHECKS,
];
