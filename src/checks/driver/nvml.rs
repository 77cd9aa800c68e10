//! What NVML says of the GPUs themselves.

use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{ComputeMode, Nvml, NvmlGpu, NvmlTrouble};

const HUNG: &str = "{call} of NVML did not come back in time";
const DIED: &str = "the process that called {call} of NVML was ended by it";
const UNHEALTHY: &str = "{bad} does not answer ({why}), and the other {good} do";
const RESET: &str = "{gpus}: the driver asks for a reset";
const ECC: &str = "{gpus}: {count} memory errors that ECC could not correct since the driver was loaded";
const REMAP_FAILED: &str = "{gpus}: a faulty row of memory could not be replaced";
const REMAP_PENDING: &str = "{gpus}: a faulty row of memory waits for a reset to be replaced";
const RETIREMENT: &str = "{gpus}: a faulty page of memory waits for a reset to be retired";
const MIG: &str = "{gpus}: MIG is on, and no instance is made";
const OCCUPIED: &str = "{gpus}: {used} of {total} MiB of memory are in use";
const EXCLUSIVE: &str = "{gpus}: exclusive mode, and process {process} has it";
const PERSISTENCE: &str = "{gpus}: persistence mode is off";

/// `nvmlReturn_t` (`nvml.h`).
const RESET_REQUIRED: u32 = 16;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "driver-call-hung",
        title: "a call into the driver does not come back",
        why: "NVML or cuInit does not answer: nvidia-smi hangs, container starts time out.",
        messages: &[HUNG, DIED],
        remedy: &[
            Step {
                action: Action::StartService,
                text: "If the first call after a pause takes long: switch persistence mode on.",
                command: Some("systemctl enable --now nvidia-persistenced"),
            },
            Step {
                action: Action::ResetGpu,
                text: "If the log shows Xid 119 or 79: reset the GPU.",
                command: Some("nvidia-smi --gpu-reset -i INDEX"),
            },
            Step {
                action: Action::Reboot,
                text: "If processes are in state D, only a reboot ends them.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: hung,
    },
    Check {
        id: "one-gpu-unhealthy",
        title: "one GPU among good ones does not answer",
        why: "nvidia-smi and the container toolkit ask every GPU, stop at the one that does not answer, and print \"Unable to determine the device handle for GPU ...\", so that no container starts although other GPUs work.",
        messages: &[UNHEALTHY],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Work with the healthy GPUs for now: name them by UUID.",
                command: Some("CUDA_VISIBLE_DEVICES={healthy}"),
            },
            Step {
                action: Action::PassGpu,
                text: "Give containers the healthy GPUs only.",
                command: Some("docker run --gpus '\"device={indices}\"' IMAGE"),
            },
            Step {
                action: Action::ResetGpu,
                text: "End what uses the GPU and reset it; not possible while a display or a link to others uses it.",
                command: Some("nvidia-smi --gpu-reset -i {index}"),
            },
            Step {
                action: Action::Reboot,
                text: "Power the machine off and on: a warm reboot may leave the board as it is.",
                command: None,
            },
            Step {
                action: Action::ReplaceHardware,
                text: "Look at power cables, seating, riser and temperature; swap slots to see whether the fault follows the board.",
                command: None,
            },
            Step {
                action: Action::UpdateDriver,
                text: "Only if the kernel's log shows faults of the driver's firmware (Xid 119, 120) again and again: install another driver release.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: one_unhealthy,
    },
    Check {
        id: "gpu-reset-required",
        title: "a GPU asks for a reset",
        why: "After a fault the driver keeps a GPU out of use until it is reset; work on it fails with unknown error, or nvidia-smi says that the GPU requires reset.",
        messages: &[RESET],
        remedy: &[
            Step {
                action: Action::FreeGpu,
                text: "End all programs on the GPU, with the containers that have it.",
                command: Some("nvidia-smi; fuser -v /dev/nvidia0"),
            },
            Step {
                action: Action::ResetGpu,
                text: "Reset the GPU; those that are linked by NVLink together.",
                command: Some("nvidia-smi --gpu-reset -i {index}"),
            },
            Step { action: Action::Reboot, text: "If the reset is refused, reboot the machine.", command: None },
            Step {
                action: Action::ReplaceHardware,
                text: "If it comes again on the same GPU, have it looked at.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: reset_required,
    },
    Check {
        id: "ecc-uncorrectable",
        title: "the GPU's memory had errors that could not be corrected",
        why: "A program met a memory error that ECC could not correct: it was ended, and others may be until the GPU is reset.",
        messages: &[ECC],
        remedy: &[
            Step {
                action: Action::ResetGpu,
                text: "End what uses the GPU and reset it.",
                command: Some("nvidia-smi --gpu-reset -i {index}"),
            },
            Step {
                action: Action::ReplaceHardware,
                text: "Have the GPU replaced if errors come again, or rows can no longer be remapped.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: ecc_uncorrectable,
    },
    Check {
        id: "row-remap-failed",
        title: "a faulty row of GPU memory could not be replaced",
        why: "No spare row is left: the GPU will meet the fault again.",
        messages: &[REMAP_FAILED],
        remedy: &[Step { action: Action::ReplaceHardware, text: "Have the GPU replaced.", command: None }],
        severities: &[Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: remap_failed,
    },
    Check {
        id: "row-remap-pending",
        title: "a faulty row of GPU memory waits for a reset",
        why: "The driver will replace the row when the GPU is next reset; until then a program may meet it.",
        messages: &[REMAP_PENDING],
        remedy: &[Step {
            action: Action::ResetGpu,
            text: "Reset the GPU when nothing uses it.",
            command: Some("nvidia-smi --gpu-reset -i {index}"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: remap_pending,
    },
    Check {
        id: "page-retirement-pending",
        title: "a faulty page of GPU memory waits for a reset",
        why: "GPUs before Ampere retire pages; that takes effect when the driver is next loaded.",
        messages: &[RETIREMENT],
        remedy: &[Step {
            action: Action::ResetGpu,
            text: "Reset the GPU, or reboot, when nothing uses it.",
            command: Some("nvidia-smi --gpu-reset -i {index}"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: retirement_pending,
    },
    Check {
        id: "mig-enabled-without-instances",
        title: "MIG is on and no instance is made",
        why: "A GPU with MIG on offers CUDA nothing until instances are made: no device, or busy.",
        messages: &[MIG],
        remedy: &[Step {
            action: Action::ResetGpu,
            text: "Make instances, or switch MIG off.",
            command: Some("nvidia-smi mig -cgi 19,19 -C   # or: nvidia-smi -i {index} -mig 0"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: mig_without_instances,
    },
    Check {
        id: "gpu-memory-occupied",
        title: "others use the GPU's memory",
        why: "A program finds too little free memory on the GPU.",
        messages: &[OCCUPIED],
        remedy: &[
            Step {
                action: Action::FreeGpu,
                text: "End what uses it, or choose a GPU with free memory.",
                command: Some("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"),
            },
            Step {
                action: Action::ChangeEnvironment,
                text: "Let the program take less: vLLM --gpu-memory-utilization, TensorFlow memory growth, a smaller batch.",
                command: None,
            },
        ],
        severities: &[Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: memory_occupied,
    },
    Check {
        id: "gpu-exclusive-busy",
        title: "the GPU is in exclusive mode and in use",
        why: "In mode Exclusive Process the GPU serves one process; a second one is told that all devices are busy.",
        messages: &[EXCLUSIVE],
        remedy: &[
            Step { action: Action::FreeGpu, text: "End the process that has it.", command: Some("nvidia-smi") },
            Step {
                action: Action::ResetGpu,
                text: "Set the mode to Default, if several may share it.",
                command: Some("nvidia-smi -i {index} -c DEFAULT"),
            },
            Step {
                action: Action::StartService,
                text: "Run MPS, which lets several share it in this mode.",
                command: None,
            },
        ],
        severities: &[Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: exclusive_busy,
    },
    Check {
        id: "persistence-off",
        title: "persistence mode is off",
        why: "Without it the driver shuts a GPU down when nobody uses it and starts it at the next use, which takes seconds. It works.",
        messages: &[PERSISTENCE],
        remedy: &[Step {
            action: Action::StartService,
            text: "Run the persistence daemon.",
            command: Some("systemctl enable --now nvidia-persistenced"),
        }],
        severities: &[Severity::Note],
        places: &[Place::Host, Place::Healthcheck],
        judge: persistence_off,
    },
];

/// GPUs that answered and of which something is so: all of them, as words for a message.
fn of(nvml: &Nvml, is_so: impl Fn(&NvmlGpu) -> bool) -> Vec<&NvmlGpu> {
    nvml.answering().filter(|gpu| is_so(gpu)).collect()
}

/// `GPU 3 (0000:65:00.0)`, the first few.
fn named(gpus: &[&NvmlGpu]) -> String {
    list(gpus.iter().map(|gpu| name(gpu)).collect::<Vec<_>>().iter().map(String::as_str))
}

fn name(gpu: &NvmlGpu) -> String {
    match &gpu.pci {
        Some(pci) => format!("GPU {} ({pci})", gpu.index),
        None => format!("GPU {}", gpu.index),
    }
}

/// A finding about these GPUs, if there are any.
fn about(
    facts: &Facts<'_>,
    message: &'static str,
    severity: Severity,
    is_so: impl Fn(&NvmlGpu) -> bool,
    more: impl FnOnce(Failure, &NvmlGpu) -> Failure,
) -> Judgement {
    let Some(nvml) = &facts.host.nvml else { return not_applicable() };
    let gpus = of(nvml, is_so);
    let Some(first) = gpus.first() else {
        return if nvml.gpus.is_empty() { not_applicable() } else { Ok(Outcome::Pass) };
    };
    let failure = Failure::new(severity, message).arg("gpus", named(&gpus)).arg("index", first.index).saw(
        "host.nvml.gpus",
        named(&gpus),
        "NVML",
    );
    more(failure, first).found()
}

fn plain(failure: Failure, _: &NvmlGpu) -> Failure {
    failure
}

fn hung(facts: &Facts<'_>) -> Judgement {
    let Some(nvml) = &facts.host.nvml else { return not_applicable() };
    let (message, call) = match &nvml.trouble {
        Some(NvmlTrouble::Late(call)) => (HUNG, call),
        Some(NvmlTrouble::Died(call)) => (DIED, call),
        Some(NvmlTrouble::NotLoaded(_) | NvmlTrouble::Failed(..)) => return not_applicable(),
        None => return Ok(Outcome::Pass),
    };
    Failure::new(Severity::Error, message).arg("call", call).saw("host.nvml.trouble", call, "NVML").found()
}

fn why(gpu: &NvmlGpu) -> String {
    match &gpu.trouble {
        Some(NvmlTrouble::Failed(call, code)) => format!("{call}: NVML code {code}"),
        _ => "no answer".to_owned(),
    }
}

fn one_unhealthy(facts: &Facts<'_>) -> Judgement {
    let Some(nvml) = &facts.host.nvml else { return not_applicable() };
    let bad: Vec<&NvmlGpu> = nvml.gpus.iter().filter(|gpu| gpu.trouble.is_some()).collect();
    let good: Vec<&NvmlGpu> = nvml.answering().collect();
    let Some(first) = bad.first() else {
        return if nvml.gpus.is_empty() { not_applicable() } else { Ok(Outcome::Pass) };
    };
    let uuids: Vec<&str> = good.iter().filter_map(|gpu| gpu.uuid.as_deref()).collect();
    let indices: Vec<String> = good.iter().map(|gpu| gpu.index.to_string()).collect();
    Failure::new(Severity::Error, UNHEALTHY)
        .arg("bad", named(&bad))
        .arg("why", why(first))
        .arg("good", good.len())
        .arg("healthy", uuids.join(","))
        .arg("indices", indices.join(","))
        .arg("index", first.index)
        .saw("host.nvml.gpus", why(first), "NVML")
        .found()
}

fn reset_required(facts: &Facts<'_>) -> Judgement {
    let Some(nvml) = &facts.host.nvml else { return not_applicable() };
    let asks = |gpu: &&NvmlGpu| gpu.trouble.as_ref().and_then(NvmlTrouble::code) == Some(RESET_REQUIRED);
    let gpus: Vec<&NvmlGpu> = nvml.gpus.iter().filter(asks).collect();
    let Some(first) = gpus.first() else {
        return if nvml.gpus.is_empty() { not_applicable() } else { Ok(Outcome::Pass) };
    };
    Failure::new(Severity::Error, RESET).arg("gpus", named(&gpus)).arg("index", first.index).found()
}

fn ecc_uncorrectable(facts: &Facts<'_>) -> Judgement {
    about(
        facts,
        ECC,
        Severity::Error,
        |gpu| gpu.uncorrectable.is_some_and(|count| count > 0),
        |failure, gpu| failure.arg("count", gpu.uncorrectable.unwrap_or_default()),
    )
}

fn remap_failed(facts: &Facts<'_>) -> Judgement {
    about(facts, REMAP_FAILED, Severity::Error, |gpu| gpu.remap_failed == Some(true), plain)
}

fn remap_pending(facts: &Facts<'_>) -> Judgement {
    about(facts, REMAP_PENDING, Severity::Warning, |gpu| gpu.remap_pending == Some(true), plain)
}

fn retirement_pending(facts: &Facts<'_>) -> Judgement {
    about(facts, RETIREMENT, Severity::Warning, |gpu| gpu.retirement_pending == Some(true), plain)
}

fn without_instances(gpu: &NvmlGpu) -> bool {
    gpu.mig == Some(true) && gpu.mig_devices.is_empty()
}

/// An error only where no GPU is left.
fn mig_without_instances(facts: &Facts<'_>) -> Judgement {
    let all = facts.host.nvml.as_ref().is_some_and(|nvml| nvml.answering().all(without_instances));
    about(facts, MIG, if all { Severity::Error } else { Severity::Warning }, without_instances, plain)
}

/// Nine parts in ten of the memory are in use.
fn is_occupied(gpu: &NvmlGpu) -> bool {
    matches!((gpu.memory, gpu.memory_free), (Some(total), Some(free)) if total > 0 && free < total / 10)
}

fn memory_occupied(facts: &Facts<'_>) -> Judgement {
    const MIB: u64 = 1 << 20;
    about(facts, OCCUPIED, Severity::Warning, is_occupied, |failure, gpu| {
        let (total, free) = (gpu.memory.unwrap_or_default(), gpu.memory_free.unwrap_or_default());
        failure.arg("used", total.saturating_sub(free) / MIB).arg("total", total / MIB)
    })
}

/// MPS shares a GPU in this mode: its server is then the one process.
fn exclusive_busy(facts: &Facts<'_>) -> Judgement {
    let is_busy = |gpu: &NvmlGpu| {
        gpu.compute_mode == Some(ComputeMode::Exclusive) && gpu.processes.as_ref().is_some_and(|all| !all.is_empty())
    };
    about(facts, EXCLUSIVE, Severity::Warning, is_busy, |failure, gpu| {
        let process = gpu.processes.as_ref().and_then(|all| all.first()).map_or(0, |process| process.pid);
        failure.arg("process", process)
    })
}

fn persistence_off(facts: &Facts<'_>) -> Judgement {
    about(facts, PERSISTENCE, Severity::Note, |gpu| gpu.persistent == Some(false), plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::World;

    fn gpu(index: u32) -> NvmlGpu {
        NvmlGpu {
            index,
            uuid: Some(format!("GPU-{index}")),
            pci: Some(format!("0000:0{index}:00.0")),
            memory: Some(80 << 30),
            memory_free: Some(79 << 30),
            persistent: Some(true),
            compute_mode: Some(ComputeMode::Default),
            processes: Some(Vec::new()),
            ..NvmlGpu::default()
        }
    }

    fn machine(spoil: impl FnOnce(&mut Nvml)) -> World {
        let mut world = World::machine(2);
        let mut nvml = Nvml { gpus: vec![gpu(0), gpu(1)], ..Nvml::default() };
        spoil(&mut nvml);
        world.host.nvml = Some(nvml);
        world
    }

    #[test]
    fn nobody_asked_and_all_is_well() {
        for world in [World::machine(2), machine(|_| ())] {
            for check in CHECKS {
                world.silent(check.id);
            }
        }
    }

    #[test]
    fn each_defect_has_its_own_name() {
        type Spoil = fn(&mut NvmlGpu);
        let spoil: [(&str, Spoil, Severity); 9] = [
            ("ecc-uncorrectable", |gpu| gpu.uncorrectable = Some(2), Severity::Error),
            ("row-remap-failed", |gpu| gpu.remap_failed = Some(true), Severity::Error),
            ("row-remap-pending", |gpu| gpu.remap_pending = Some(true), Severity::Warning),
            ("page-retirement-pending", |gpu| gpu.retirement_pending = Some(true), Severity::Warning),
            ("mig-enabled-without-instances", |gpu| gpu.mig = Some(true), Severity::Warning),
            ("gpu-memory-occupied", |gpu| gpu.memory_free = Some(1 << 30), Severity::Warning),
            ("persistence-off", |gpu| gpu.persistent = Some(false), Severity::Note),
            (
                "gpu-exclusive-busy",
                |gpu| {
                    gpu.compute_mode = Some(ComputeMode::Exclusive);
                    gpu.processes = Some(vec![crate::model::host::NvmlProcess { pid: 7, memory: None }]);
                },
                Severity::Warning,
            ),
            (
                "one-gpu-unhealthy",
                |gpu| gpu.trouble = Some(NvmlTrouble::Failed("nvmlDeviceGetHandleByIndex_v2(1)".into(), 999)),
                Severity::Error,
            ),
        ];
        for (id, spoil, severity) in spoil {
            let world = machine(|nvml| spoil(&mut nvml.gpus[1]));
            let failure = world.failure(id);
            assert_eq!(failure.severity, severity, "{id}");
            for other in CHECKS.iter().filter(|check| check.id != id) {
                world.silent(other.id);
            }
        }
    }

    #[test]
    fn a_reset_is_asked_for_and_a_call_that_hangs_is_named() {
        let reset = NvmlTrouble::Failed("nvmlDeviceGetUUID".into(), 16);
        let world = machine(|nvml| nvml.gpus[0].trouble = Some(reset));
        world.failure("gpu-reset-required");
        for trouble in [NvmlTrouble::Late("nvmlInit_v2".into()), NvmlTrouble::Died("nvmlInit_v2".into())] {
            let world = machine(|nvml| {
                nvml.gpus.clear();
                nvml.trouble = Some(trouble);
            });
            world.failure("driver-call-hung");
        }
        machine(|nvml| nvml.trouble = Some(NvmlTrouble::Failed("nvmlInit_v2".into(), 9))).silent("driver-call-hung");
    }

    #[test]
    fn mig_on_all_is_an_error_and_an_instance_is_enough() {
        let all = machine(|nvml| nvml.gpus.iter_mut().for_each(|gpu| gpu.mig = Some(true)));
        assert_eq!(all.failure("mig-enabled-without-instances").severity, Severity::Error);
        let made = machine(|nvml| {
            nvml.gpus[0].mig = Some(true);
            nvml.gpus[0].mig_devices = vec!["MIG-1".into()];
        });
        made.silent("mig-enabled-without-instances");
    }
}
