//! What NVML says of the GPUs themselves.

use crate::checks::nodes::expect::{Compute, compute, subject};
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::knowledge::nvml::{RESET_REQUIRED, said};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{ComputeMode, Nvml, NvmlGpu, NvmlProcess, NvmlTrouble};
use crate::model::{Facts, Unknown};

pub(super) mod fabric;
pub(super) mod ghost;
mod holders;
pub(super) mod hung;
pub(super) mod licence;
mod memory;
pub(super) mod silent;

const UNHEALTHY: &str = "{bad} does not answer ({why}), and the other {good} do";
const NONE_ANSWERS: &str = "no GPU answers: {bad} ({why})";
const RESET: &str = "{gpus}: the driver asks for a reset";
const MIG: &str = "{gpus}: MIG is on, and no instance is made";
const EXCLUSIVE: &str = "{gpu}: exclusive mode, and {process} has it{others}";
const PROHIBITED: &str = "{gpus}: compute mode Prohibited, in which nobody may use it";
const PERSISTENCE: &str = "{gpus}: persistence mode is off";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "driver-call-hung",
        title: "a call into the driver does not come back",
        why: "NVML or cuInit does not answer: nvidia-smi hangs, container starts time out.",
        messages: &[hung::HUNG, hung::DIED, hung::OPENING],
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
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: hung::hung,
    },
    Check {
        id: "one-gpu-unhealthy",
        title: "one GPU among good ones does not answer",
        why: "nvidia-smi and the container toolkit ask every GPU, stop at the one that does not answer, and print \"Unable to determine the device handle for GPU ...\", so that no container starts although other GPUs work.",
        messages: &[UNHEALTHY, NONE_ANSWERS],
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
        severities: &[Severity::Error, Severity::Warning],
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
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: reset_required,
    },
    Check {
        id: "ecc-uncorrectable",
        title: "the GPU's memory had errors that could not be corrected",
        why: "A program met a memory error that ECC could not correct: it was ended, and others may be until the GPU is reset.",
        messages: &[memory::ECC],
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
        severities: &[Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: memory::ecc_uncorrectable,
    },
    Check {
        id: "row-remap-failed",
        title: "a faulty row of GPU memory could not be replaced",
        why: "No spare row is left: the GPU will meet the fault again.",
        messages: &[memory::REMAP_FAILED],
        remedy: &[Step { action: Action::ReplaceHardware, text: "Have the GPU replaced.", command: None }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: memory::remap_failed,
    },
    Check {
        id: "row-remap-pending",
        title: "a faulty row of GPU memory waits for a reset",
        why: "The driver will replace the row when the GPU is next reset; until then a program may meet it.",
        messages: &[memory::REMAP_PENDING],
        remedy: &[Step {
            action: Action::ResetGpu,
            text: "Reset the GPU when nothing uses it.",
            command: Some("nvidia-smi --gpu-reset -i {index}"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: memory::remap_pending,
    },
    Check {
        id: "page-retirement-pending",
        title: "a faulty page of GPU memory waits for a reset",
        why: "GPUs before Ampere retire pages; that takes effect when the driver is next loaded.",
        messages: &[memory::RETIREMENT],
        remedy: &[Step {
            action: Action::ResetGpu,
            text: "Reset the GPU, or reboot, when nothing uses it.",
            command: Some("nvidia-smi --gpu-reset -i {index}"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: memory::retirement_pending,
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
        messages: &[memory::OCCUPIED, memory::TOO_FULL, memory::FULL],
        remedy: &[
            Step {
                action: Action::FreeGpu,
                text: "End what uses it, or choose a GPU with free memory.",
                command: Some("{end}"),
            },
            Step {
                action: Action::ChangeEnvironment,
                text: "Let the program take less: vLLM --gpu-memory-utilization, TensorFlow memory growth, a smaller batch.",
                command: None,
            },
        ],
        severities: &[Severity::Warning, Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: memory::memory_occupied,
    },
    Check {
        id: "gpu-exclusive-busy",
        title: "the GPU is in exclusive mode and in use",
        why: "In mode Exclusive Process the GPU serves one process; a second one is told that all devices are busy.",
        messages: &[EXCLUSIVE, PROHIBITED],
        remedy: &[
            Step { action: Action::FreeGpu, text: "End the process that has it.", command: Some("{end}") },
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
        places: &[Place::Host],
        judge: persistence_off,
    },
];

/// What NVML said, where it said something of GPUs. `None`: nobody asked it, or there is nothing to say. Where it did not
/// start, or broke off before the first GPU, nothing is known of them.
fn asked<'f>(facts: &'f Facts<'_>) -> Result<Option<&'f Nvml>, Unknown> {
    let Some(nvml) = &facts.host.nvml else { return Ok(None) };
    if facts.place == Place::Healthcheck && subject(facts)?.is_none() {
        return Ok(None);
    }
    match &nvml.trouble {
        Some(trouble) if nvml.gpus.is_empty() => Err(Unknown::new("host.nvml", "NVML", words(trouble))),
        _ => Ok(Some(nvml).filter(|nvml| !nvml.gpus.is_empty())),
    }
}

fn words(trouble: &NvmlTrouble) -> String {
    match trouble {
        NvmlTrouble::NotLoaded(reason) => format!("it cannot be loaded: {reason}"),
        NvmlTrouble::NotAsked(reason) => format!("it could not be asked: {reason}"),
        NvmlTrouble::Failed(call, code) => format!("{call} answers with {}", said(*code)),
        NvmlTrouble::Late(call) => format!("{call} did not come back"),
        NvmlTrouble::Died(call) => format!("{call} ended the process"),
    }
}

/// `GPU 3 (0000:65:00.0)`, the first few.
pub(super) fn named(gpus: &[&NvmlGpu]) -> String {
    list(gpus.iter().map(|gpu| name(gpu)).collect::<Vec<_>>().iter().map(String::as_str))
}

fn name(gpu: &NvmlGpu) -> String {
    match &gpu.pci {
        Some(pci) => format!("GPU {} ({pci})", gpu.index),
        None => format!("GPU {}", gpu.index),
    }
}

/// A finding about the GPUs that answered and of which something is so. What the message says of a number is said of the
/// first.
fn about(
    facts: &Facts<'_>,
    message: &'static str,
    severity: Severity,
    is_so: impl Fn(&NvmlGpu) -> bool,
    more: impl FnOnce(Failure, &NvmlGpu) -> Failure,
) -> Judgement {
    let Some(nvml) = asked(facts)? else { return not_applicable() };
    let gpus: Vec<&NvmlGpu> = nvml.answering().filter(|gpu| is_so(gpu)).collect();
    let Some(first) = gpus.first() else { return Ok(Outcome::Pass) };
    let others = match gpus.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    let failure = Failure::new(severity, message)
        .arg("gpus", named(&gpus))
        .arg("gpu", name(first))
        .arg("others", others)
        .arg("index", first.index)
        .saw("host.nvml.gpus", named(&gpus), "NVML");
    more(failure, first).found()
}

fn plain(failure: Failure, _: &NvmlGpu) -> Failure {
    failure
}

fn one_unhealthy(facts: &Facts<'_>) -> Judgement {
    let Some(nvml) = asked(facts)? else { return not_applicable() };
    let bad = silent::gpus(facts, nvml)?;
    let good: Vec<&NvmlGpu> = nvml.answering().collect();
    let Some((first, trouble)) = bad.first().and_then(|gpu| Some((gpu, gpu.trouble.as_ref()?))) else {
        let refused = nvml.gpus.iter().find_map(|gpu| gpu.trouble.as_ref());
        return match refused {
            Some(trouble) if good.is_empty() => Err(Unknown::new("host.nvml.gpus", "NVML", words(trouble))),
            _ => Ok(Outcome::Pass),
        };
    };
    let uuids: Vec<&str> = good.iter().filter_map(|gpu| gpu.uuid.as_deref()).collect();
    let indices: Vec<String> = good.iter().map(|gpu| gpu.index.to_string()).collect();
    let severity = silent::severity(facts, nvml);
    let failure = Failure::new(severity, if good.is_empty() { NONE_ANSWERS } else { UNHEALTHY })
        .arg("bad", named(&bad))
        .arg("why", words(trouble))
        .arg("good", good.len())
        .arg("healthy", uuids.join(","))
        .arg("indices", indices.join(","))
        .arg("index", first.index)
        .saw("host.nvml.gpus", words(trouble), "NVML");
    // where none answers there is none to work with
    let only: &[Action] = &[Action::ResetGpu, Action::Reboot, Action::ReplaceHardware, Action::UpdateDriver];
    if good.is_empty() { failure.only(only).found() } else { failure.found() }
}

fn reset_required(facts: &Facts<'_>) -> Judgement {
    let Some(nvml) = asked(facts)? else { return not_applicable() };
    let asks = |gpu: &&NvmlGpu| gpu.trouble.as_ref().and_then(NvmlTrouble::code) == Some(RESET_REQUIRED);
    let gpus: Vec<&NvmlGpu> = silent::gpus(facts, nvml)?.into_iter().filter(asks).collect();
    let Some(first) = gpus.first() else { return Ok(Outcome::Pass) };
    Failure::new(silent::severity(facts, nvml), RESET).arg("gpus", named(&gpus)).arg("index", first.index).found()
}

fn without_instances(gpu: &NvmlGpu) -> bool {
    gpu.mig == Some(true) && gpu.mig_devices.as_ref().is_some_and(Vec::is_empty)
}

/// An error only where no GPU is left, and a container does not only watch GPUs.
fn mig_without_instances(facts: &Facts<'_>) -> Judgement {
    let all =
        facts.host.nvml.as_ref().is_some_and(|nvml| nvml.trouble.is_none() && nvml.gpus.iter().all(without_instances))
            && (facts.place != Place::Healthcheck || compute(facts)? == Compute::Wanted);
    about(facts, MIG, if all { Severity::Error } else { Severity::Warning }, without_instances, plain)
}

/// MPS shares a GPU in exclusive mode; nobody may use one in mode Prohibited.
fn exclusive_busy(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Healthcheck {
        // the process may well be the container's own
        return not_applicable();
    }
    let Some(nvml) = asked(facts)? else { return not_applicable() };
    if nvml.answering().any(|gpu| gpu.compute_mode == Some(ComputeMode::Prohibited)) {
        let is_so = |gpu: &NvmlGpu| gpu.compute_mode == Some(ComputeMode::Prohibited);
        return about(facts, PROHIBITED, Severity::Warning, is_so, |failure, _| failure.only(&[Action::ResetGpu]));
    }
    let is_busy = |gpu: &NvmlGpu| {
        let has_process = gpu.processes.as_ref().is_some_and(|all| !all.is_empty());
        gpu.compute_mode == Some(ComputeMode::Exclusive) && has_process && gpu.mps != Some(true)
    };
    about(facts, EXCLUSIVE, Severity::Warning, is_busy, |failure, gpu| {
        // who has it matters, not with how much
        let first =
            gpu.processes.iter().flatten().next().map(|process| NvmlProcess { memory: None, ..process.clone() });
        let first: Vec<&NvmlProcess> = first.iter().collect();
        failure.arg("process", holders::words(facts.host, &first)).arg("end", holders::end(facts.host, &first))
    })
}

fn persistence_off(facts: &Facts<'_>) -> Judgement {
    about(facts, PERSISTENCE, Severity::Note, |gpu| gpu.persistent == Some(false), plain)
}

#[cfg(test)]
mod tests;
