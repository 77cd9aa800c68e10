//! The family `driver`: does it run?
//!
//! What files of the machine show: modules, libraries, the bus, the driver's own lists, the kernel's log.

use crate::model::{Check, Host, Unknown};

mod cuda;
mod kernel_log;
mod libraries;
mod loaded;
mod nvml;
mod order;
mod present;
mod signature;
mod stuck;
mod unloadable;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[
    loaded::CHECKS,
    libraries::CHECKS,
    unloadable::CHECKS,
    signature::CHECKS,
    present::CHECKS,
    kernel_log::CHECKS,
    nvml::CHECKS,
    cuda::CHECKS,
    stuck::CHECKS,
    order::CHECKS,
];

/// The kernel has the `nvidia` module.
pub(crate) fn nvidia_loaded(host: &Host) -> Result<bool, Unknown> {
    if host.driver.version.seen().is_some_and(Option::is_some) {
        return Ok(true);
    }
    host.driver.has_module("nvidia")
}
