//! The family `driver`: does it run?
//!
//! What files of the machine show: modules, libraries, the bus, the driver's own lists, the kernel's log.

use crate::model::{Check, Host, Unknown};

mod cuda;
mod kernel_log;
mod libraries;
mod loaded;
mod nvml;
mod present;
mod signature;
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
    nvml::fabric::CHECKS,
    nvml::ghost::CHECKS,
    nvml::licence::CHECKS,
    cuda::CHECKS,
];

/// The kernel has the `nvidia` module.
pub(crate) fn nvidia_loaded(host: &Host) -> Result<bool, Unknown> {
    if host.driver.version.seen().is_some_and(Option::is_some) {
        return Ok(true);
    }
    host.driver.has_module("nvidia")
}
