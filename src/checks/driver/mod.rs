//! The family `driver`: does it run?
//!
//! What files of the machine show: modules, libraries, the bus, the driver's own lists, the kernel's log.

use crate::model::{Check, Host, Unknown};

mod cuda;
mod dkms;
mod installed;
mod kernel_log;
mod libraries;
mod loaded;
mod nvml;
mod order;
mod present;
mod signature;
mod stuck;
mod unloadable;
mod uvm;

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
    uvm::CHECKS,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Action;

    /// The order of the founding reports: what is quick and harmless, a reset of the GPU, a reboot, and another driver
    /// last. Packages and boards have no place in it: which are to be changed, and when, is each defect's own.
    fn rank(action: Action) -> Option<u8> {
        match action {
            Action::ChangePackages | Action::ReplaceHardware => None,
            Action::ResetGpu => Some(1),
            Action::Reboot => Some(2),
            Action::UpdateDriver => Some(3),
            _ => Some(0),
        }
    }

    /// Those whose steps have another order, and why.
    const DEVIATING: [(&str, &str); 1] =
        [("gpu-exclusive-busy", "nvidia-smi -c sets a mode, which is as harmless as what follows it")];

    #[test]
    fn remedies_begin_with_what_is_quick_and_end_with_another_driver() {
        let mut seen = 0;
        for check in CHECKS.iter().flat_map(|file| file.iter()) {
            let ranks: Vec<u8> = check.remedy.iter().filter_map(|step| rank(step.action)).collect();
            let deviates = DEVIATING.iter().any(|(id, _)| *id == check.id);
            assert_eq!(ranks.is_sorted(), !deviates, "{}: {:?}", check.id, check.remedy);
            seen += usize::from(ranks.len() > 1);
        }
        assert!(seen > 5, "only {seen} checks have steps to be put in order");
    }
}
