//! Is the `NVSwitch` fabric ready, in which CUDA starts?

use super::{asked, named};
use crate::checks::not_applicable;
use crate::knowledge::nvml;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{CudaStart, FabricState, Nvml, NvmlGpu, Virtualization};

const WAITING: &str =
    "{gpus}: registration with the NVSwitch fabric {state}, and until it is done CUDA does not start (802)";
const MAY_WAIT: &str =
    "{gpus}: registration with the NVSwitch fabric {state}, and until it is done CUDA may not start (802)";
const FAILED: &str = "{gpus}: registration with the NVSwitch fabric ended with {code}";

pub(in crate::checks::driver) const CHECKS: &[Check] = &[Check {
    id: "fabric-not-ready",
    title: "the NVSwitch fabric is not ready",
    why: "On machines whose GPUs are linked by NVSwitches CUDA does not start until the Fabric Manager has set the links up: error 802. nvidia-smi works meanwhile.",
    messages: &[WAITING, MAY_WAIT, FAILED],
    remedy: &[
        Step {
            action: Action::StartService,
            text: "Start the Fabric Manager.",
            command: Some("systemctl enable --now nvidia-fabricmanager"),
        },
        Step {
            action: Action::ChangePackages,
            text: "Install the Fabric Manager of the driver's exact version; from Blackwell (NVLink 5) on also NVLSM and the InfiniBand modules.",
            command: Some("cat /proc/driver/nvidia/version; dpkg -l | grep fabricmanager"),
        },
        Step {
            action: Action::Reboot,
            text: "If it reports a fault of a link, reset all GPUs and switches by a reboot.",
            command: None,
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Host, Place::Healthcheck],
    judge: not_ready,
}];

/// `CUDA_ERROR_SYSTEM_NOT_READY` (cuda.h).
const SYSTEM_NOT_READY: u32 = 802;

fn not_ready(facts: &Facts<'_>) -> Judgement {
    let Some(said) = asked(facts)? else { return not_applicable() };
    let state = |gpu: &NvmlGpu| Some((gpu.fabric.as_ref()?.state, gpu.fabric.as_ref()?.status.unwrap_or(0)));
    let waits = |gpu: &&NvmlGpu| matches!(state(gpu), Some((FabricState::NotStarted | FabricState::InProgress, _)));
    let waiting: Vec<&NvmlGpu> = said.answering().filter(waits).collect();
    if let Some(first) = waiting.first() {
        let is_certain = is_certain(facts, said, waiting.len());
        let begun = state(first).is_some_and(|(state, _)| state == FabricState::InProgress);
        let severity = if is_certain { Severity::Error } else { Severity::Warning };
        return Failure::new(severity, if is_certain { WAITING } else { MAY_WAIT })
            .arg("gpus", named(&waiting))
            .arg("state", if begun { "is under way" } else { "has not begun" })
            .saw("host.nvml.gpus", if begun { "state in-progress" } else { "state not-started" }, "NVML")
            .found();
    }
    let failed: Vec<&NvmlGpu> = said
        .answering()
        .filter(|gpu| matches!(state(gpu), Some((FabricState::Completed, status)) if status != 0))
        .collect();
    match failed.first().and_then(|gpu| state(gpu)) {
        None => Ok(Outcome::Pass),
        Some((_, status)) => Failure::new(Severity::Warning, FAILED)
            .arg("gpus", named(&failed))
            .arg("code", nvml::said(status))
            .saw("host.nvml.gpus", format!("status {status}"), "NVML")
            .found(),
    }
}

/// "The CUDA initialization process can only begin after the GPUs complete their registration process with the `NVLink`
/// fabric" (NVIDIA, Fabric Manager User Guide, 2025-05), which is said of the boards with eight GPUs. Elsewhere it is not
/// certain: a GPU that is alone in a virtual machine, parts of a GPU (MIG), which use no link, and Grace machines, whose
/// fabric spans several of them.
fn is_certain(facts: &Facts<'_>, said: &Nvml, waiting: usize) -> bool {
    let alone = |gpu: &NvmlGpu| gpu.mig == Some(true) || gpu.virtualization != Some(Virtualization::None);
    let of_a_board = facts.host.architecture.seen().is_some_and(|name| name == "x86_64");
    match facts.host.cuda_start {
        Some(CudaStart::Answered(SYSTEM_NOT_READY)) => true,
        Some(CudaStart::Answered(0)) => false,
        _ => {
            said.trouble.is_none()
                && waiting > 1
                && waiting == said.gpus.len()
                && of_a_board
                && !said.gpus.iter().any(alone)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;
    use crate::checks::testing::World;
    use crate::model::Observed;
    use crate::model::host::Fabric;

    const ID: &str = "fabric-not-ready";

    fn with(fabrics: [Option<(FabricState, u32)>; 2]) -> World {
        machine(|nvml| {
            for (gpu, fabric) in nvml.gpus.iter_mut().zip(fabrics) {
                gpu.fabric = fabric.map(|(state, status)| Fabric { state, status: Some(status) });
                gpu.virtualization = Some(Virtualization::None);
            }
        })
    }

    fn all(state: FabricState, status: u32) -> World {
        with([Some((state, status)); 2])
    }

    #[test]
    fn a_board_whose_gpus_are_all_waiting_starts_no_cuda() {
        for state in [FabricState::NotStarted, FabricState::InProgress] {
            assert_eq!(all(state, 0).failure(ID).severity, Severity::Error, "{state:?}");
        }
    }

    #[test]
    fn a_machine_without_a_fabric_or_with_one_that_is_ready_is_well() {
        with([None, None]).silent(ID);
        all(FabricState::NotSupported, 999).silent(ID);
        all(FabricState::Completed, 0).silent(ID);
    }

    #[test]
    fn where_it_is_not_certain_it_is_a_warning() {
        let waiting = || all(FabricState::InProgress, 0);
        let warned = |spoil: &dyn Fn(&mut World)| {
            let mut world = waiting();
            spoil(&mut world);
            let failure = world.failure(ID);
            assert_eq!((failure.severity, failure.message), (Severity::Warning, MAY_WAIT));
        };
        let each = |world: &mut World, spoil: &dyn Fn(&mut NvmlGpu)| {
            world.host.nvml.as_mut().unwrap().gpus.iter_mut().for_each(spoil);
        };
        warned(&|world| world.host.architecture = Observed::Known("aarch64".into()));
        warned(&|world| world.host.nvml.as_mut().unwrap().gpus.truncate(1));
        warned(&|world| world.host.cuda_start = Some(CudaStart::Answered(0)));
        warned(&|world| each(world, &|gpu| gpu.mig = Some(true)));
        warned(&|world| each(world, &|gpu| gpu.virtualization = Some(Virtualization::Passthrough)));
        warned(&|world| each(world, &|gpu| gpu.virtualization = None));
        let some = with([Some((FabricState::InProgress, 0)), Some((FabricState::Completed, 0))]);
        assert_eq!(some.failure(ID).severity, Severity::Warning);
        let mut started = some;
        started.host.cuda_start = Some(CudaStart::Answered(SYSTEM_NOT_READY));
        assert_eq!(started.failure(ID).severity, Severity::Error);
    }

    #[test]
    fn a_registration_that_failed_may_still_let_cuda_start() {
        let failure = all(FabricState::Completed, 23).failure(ID);
        assert_eq!((failure.severity, failure.message), (Severity::Warning, FAILED));
    }
}
