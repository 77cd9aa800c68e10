//! A call into the driver that does not come back.

use crate::checks::not_applicable;
use crate::model::Facts;
use crate::model::check::{Failure, Judgement, Outcome, Place, Severity};
use crate::model::container::{Access, Refusal};
use crate::model::host::NvmlTrouble;

pub(super) const HUNG: &str = "{call} of NVML did not come back in time";
pub(super) const OPENING: &str = "whoever opens {call} does not come back";
pub(super) const DIED: &str = "the process that called {call} of NVML was ended by it";

pub(super) fn hung(facts: &Facts<'_>) -> Judgement {
    let devices = facts.container.devices.seen().map(Vec::as_slice).unwrap_or_default();
    if let Some(node) = devices.iter().find(|node| node.access == Access::Refused(Refusal::Hangs)) {
        return Failure::new(Severity::Error, OPENING)
            .arg("call", &node.path)
            .saw("container.devices", format!("{}: no answer", node.path), "the kernel")
            .found();
    }
    let Some(nvml) = &facts.host.nvml else { return not_applicable() };
    let (message, call) = match &nvml.trouble {
        Some(NvmlTrouble::Late(call)) => (HUNG, call),
        Some(NvmlTrouble::Died(call)) => (DIED, call),
        Some(NvmlTrouble::NotLoaded(_) | NvmlTrouble::Failed(..)) => return not_applicable(),
        None => return Ok(Outcome::Pass),
    };
    let is_late = matches!(nvml.trouble, Some(NvmlTrouble::Late(_)));
    let severity = if is_late && may_sleep(facts) { Severity::Warning } else { Severity::Error };
    Failure::new(severity, message).arg("call", call).saw("host.nvml.trouble", call, "NVML").found()
}

/// Without the persistence daemon the driver starts every GPU anew for the first who asks, a second or more for each, and
/// nobody can tell a machine that is slow from one that is stuck. A container has its GPUs awake.
fn may_sleep(facts: &Facts<'_>) -> bool {
    const DAEMON: &str = "/run/nvidia-persistenced/socket";
    let runs = facts.host.sockets.seen().is_some_and(|all| all.iter().any(|socket| socket == DAEMON));
    facts.place == Place::Host && !runs
}
