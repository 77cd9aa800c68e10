//! A vGPU works as it should with a licence alone.

use super::{about, plain};
use crate::model::Facts;
use crate::model::check::{Action, Check, Judgement, Place, Severity, Step};
use crate::model::host::Virtualization;

const UNLICENSED: &str = "{gpus}: a vGPU without a licence";

pub(in crate::checks::driver) const CHECKS: &[Check] = &[Check {
    id: "vgpu-unlicensed",
    title: "the vGPU has no licence",
    why: "Without a licence a vGPU is slowed down after a while and refuses CUDA contexts.",
    messages: &[UNLICENSED],
    remedy: &[
        Step {
            action: Action::StartService,
            text: "Set the licence server up and restart the client.",
            command: Some("systemctl restart nvidia-gridd"),
        },
        Step {
            action: Action::ChangeEnvironment,
            text: "Check that the client's token lies in /etc/nvidia/ClientConfigToken and that the server can be reached.",
            command: None,
        },
    ],
    severities: &[Severity::Warning],
    places: &[Place::Host],
    judge: unlicensed,
}];

fn unlicensed(facts: &Facts<'_>) -> Judgement {
    about(
        facts,
        UNLICENSED,
        Severity::Warning,
        |gpu| gpu.virtualization == Some(Virtualization::Vgpu) && gpu.licensed == Some(false),
        plain,
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn only_a_virtual_machines_part_of_a_gpu_needs_one() {
        let with = |virtualization, licensed| {
            machine(|nvml| (nvml.gpus[1].virtualization, nvml.gpus[1].licensed) = (virtualization, licensed))
        };
        let vgpu = Some(Virtualization::Vgpu);
        assert_eq!(with(vgpu, Some(false)).failure("vgpu-unlicensed").severity, Severity::Warning);
        for (virtualization, licensed) in
            [(vgpu, Some(true)), (vgpu, None), (Some(Virtualization::None), Some(false)), (None, Some(false))]
        {
            with(virtualization, licensed).silent("vgpu-unlicensed");
        }
    }
}
