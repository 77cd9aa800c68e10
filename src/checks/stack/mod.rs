//! The family `stack`: is the container stack set up?

use crate::model::host::Platform;
use crate::model::{Check, Host, Unknown};

mod cdi;
mod engines;
mod installed;
mod invalid;
mod jetson;
mod legacy;
mod own;
mod registered;
mod user;
pub mod ways;
mod wsl;

/// Its checks, in the catalogue's order.
pub const CHECKS: &[&[Check]] = &[
    installed::CHECKS,
    registered::CHECKS,
    legacy::CHECKS,
    user::CHECKS,
    cdi::missing::CHECKS,
    cdi::at_boot::CHECKS,
    cdi::stale::CHECKS,
    cdi::lacks_uvm::CHECKS,
    cdi::conflict::CHECKS,
    engines::CHECKS,
    invalid::CHECKS,
    wsl::CHECKS,
    jetson::CHECKS,
    own::CHECKS,
];

/// An ordinary machine with a GPU for containers: WSL and Jetson have stacks of their own.
fn is_native_with_gpu(host: &Host) -> Result<bool, Unknown> {
    Ok(host.platform == Platform::Native && host.has_gpu()?)
}

#[cfg(test)]
mod testing {
    use crate::checks::testing::{World, cdi_spec};
    use crate::model::Observed;
    use crate::model::container::LegacyState;

    /// The machine, and a container of it that the legacy hook is to give a GPU.
    pub(super) fn both() -> [World; 2] {
        [World::machine(1), World::legacy(1, LegacyState::StillToRun)]
    }

    pub(super) fn without_runtime(world: &mut World) {
        world.host.engines[0].runtimes.clear();
    }

    pub(super) fn with_spec(world: &mut World) {
        world.host.cdi = Observed::Known(vec![cdi_spec()]);
    }
}
