//! The family `stack`: is the container stack set up?

use crate::model::host::Platform;
use crate::model::{Check, Host, Unknown};

mod cdi;
mod engines;
mod installed;
mod jetson;
mod legacy;
mod registered;
mod user;
pub(in crate::checks) mod ways;
mod wsl;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[
    installed::CHECKS,
    registered::CHECKS,
    legacy::CHECKS,
    user::CHECKS,
    cdi::missing::CHECKS,
    cdi::stale::CHECKS,
    cdi::lacks_uvm::CHECKS,
    cdi::conflict::CHECKS,
    engines::CHECKS,
    wsl::CHECKS,
    jetson::CHECKS,
];

/// An ordinary machine with a GPU for containers: WSL and Jetson have stacks of their own.
fn is_native_with_gpu(host: &Host) -> Result<bool, Unknown> {
    Ok(host.platform == Platform::Native && host.has_gpu()?)
}
