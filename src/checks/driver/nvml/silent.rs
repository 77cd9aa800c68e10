//! GPUs that do not answer, and how bad that is.

use crate::checks::nodes::given::given_count;
use crate::knowledge::nvml::NO_PERMISSION;
use crate::model::check::{Place, Severity};
use crate::model::host::{Majors, Nvml, NvmlGpu, NvmlTrouble};
use crate::model::{Facts, Unknown};

/// The GPUs that do not answer. NVML counts all GPUs of the machine, and refuses to speak of those that a container or a
/// user was not given.
pub(in crate::checks::driver) fn gpus<'f>(facts: &Facts<'_>, nvml: &'f Nvml) -> Result<Vec<&'f NvmlGpu>, Unknown> {
    let is_refused = |gpu: &NvmlGpu| gpu.trouble.as_ref().and_then(NvmlTrouble::code) == Some(NO_PERMISSION);
    let mut silent: Vec<&NvmlGpu> = nvml.gpus.iter().filter(|gpu| gpu.trouble.is_some() && !is_refused(gpu)).collect();
    if facts.place == Place::Healthcheck {
        let nodes = facts.container.devices.known()?;
        let is_given = |minor: u32| nodes.iter().any(|node| Majors::gpu_minor(&node.path) == Some(minor));
        let answering = nvml.answering().filter(|gpu| gpu.minor.is_none_or(is_given)).count();
        if answering >= given_count(facts)? {
            silent.clear();
        }
    }
    Ok(silent)
}

/// A container that has GPUs left which answer is not killed for the others.
pub(in crate::checks::driver) fn severity(facts: &Facts<'_>, nvml: &Nvml) -> Severity {
    let some_left = facts.place == Place::Healthcheck && nvml.answering().next().is_some();
    if some_left { Severity::Warning } else { Severity::Error }
}
