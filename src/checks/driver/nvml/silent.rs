//! GPUs that do not answer, and how bad that is.

use crate::checks::nodes::given::given_count;
use crate::model::check::{Place, Severity};
use crate::model::host::{Majors, Nvml, NvmlGpu, NvmlTrouble};
use crate::model::{Facts, Unknown};

/// `nvmlReturn_t` (`nvml.h`).
const NO_PERMISSION: u32 = 4;

/// The GPUs that do not answer. NVML counts GPUs that a container was not given, and refuses to speak of them.
pub(super) fn gpus<'f>(facts: &Facts<'_>, nvml: &'f Nvml) -> Result<Vec<&'f NvmlGpu>, Unknown> {
    let mut silent: Vec<&NvmlGpu> = nvml.gpus.iter().filter(|gpu| gpu.trouble.is_some()).collect();
    if facts.place == Place::Healthcheck {
        silent.retain(|gpu| gpu.trouble.as_ref().and_then(NvmlTrouble::code) != Some(NO_PERMISSION));
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
pub(super) fn severity(facts: &Facts<'_>, nvml: &Nvml) -> Severity {
    let some_left = facts.place == Place::Healthcheck && nvml.answering().next().is_some();
    if some_left { Severity::Warning } else { Severity::Error }
}
