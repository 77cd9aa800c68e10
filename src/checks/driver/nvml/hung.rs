//! A call into the driver that does not come back.

use crate::checks::nodes::expect::subject;
use crate::checks::not_applicable;
use crate::model::check::{Failure, Judgement, Outcome, Place, Severity};
use crate::model::container::{Access, FromInside, Refusal};
use crate::model::host::{Majors, NvmlTrouble};
use crate::model::{Facts, Unknown};

pub(super) const HUNG: &str = "{call} of NVML did not come back in time";
pub(super) const OPENING: &str = "whoever opens {call} does not come back";
pub(super) const DIED: &str = "the process that called {call} of NVML was ended by it";

pub(super) fn hung(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Healthcheck && subject(facts)?.is_none() {
        return not_applicable();
    }
    let devices = facts.container.devices.seen().map(Vec::as_slice).unwrap_or_default();
    if let Some(node) = devices.iter().find(|node| node.access == Access::Refused(Refusal::Hangs)) {
        // To open a GPU's node starts the GPU, and to close it waits for that; the others start nothing.
        let may_be_well = Majors::gpu_minor(&node.path).is_some() && may_sleep(facts);
        return Failure::new(if may_be_well { Severity::Warning } else { Severity::Error }, OPENING)
            .arg("call", &node.path)
            .saw("container.devices", format!("{}: no answer", node.path), "the kernel")
            .found();
    }
    let Some(nvml) = &facts.host.nvml else { return not_applicable() };
    let inside = facts.place == Place::Healthcheck;
    let (message, call, may_be_well) = match &nvml.trouble {
        Some(NvmlTrouble::Late(call)) => (HUNG, call, may_sleep(facts)),
        // What a crash of one library says of another is little, and from inside it may be that of a third which
        // the container's environment has loaded first.
        Some(NvmlTrouble::Died(call)) => (DIED, call, inside),
        Some(NvmlTrouble::NotAsked(reason)) if inside => return Err(Unknown::new("host.nvml", "NVML", reason)),
        Some(NvmlTrouble::NotLoaded(_) | NvmlTrouble::Failed(..) | NvmlTrouble::NotAsked(_)) => {
            return not_applicable();
        }
        None => return Ok(Outcome::Pass),
    };
    let severity = if may_be_well { Severity::Warning } else { Severity::Error };
    Failure::new(severity, message).arg("call", call).saw("host.nvml.trouble", call, "NVML").found()
}

/// Without persistence mode the driver starts every GPU anew for the first who asks, a second or more for each, every
/// time, and nobody can tell a machine that is slow from one that is stuck. NVML's first calls start none, and that it
/// answered once tells nothing of the next time. The persistence daemon's socket tells nothing either: Debian's and
/// Ubuntu's packages start it with `--no-persistence-mode` (their nvidia-persistenced.service, 2026-11).
pub(in crate::checks::driver) fn may_sleep(facts: &Facts<'_>) -> bool {
    let told = || facts.host.nvml.iter().flat_map(|nvml| &nvml.gpus).filter_map(|gpu| gpu.persistent);
    let all_stay_awake = told().next().is_some() && told().all(|persistent| persistent);
    let is_stuck = |inside: &FromInside| inside.in_use || inside.still_stuck;
    !all_stay_awake && !facts.container.inside.as_ref().is_some_and(is_stuck)
}
