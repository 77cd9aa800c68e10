//! Memory that no process holds.

use super::{about, asked};
use crate::checks::not_applicable;
use crate::model::check::{Action, Check, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{NvmlGpu, NvmlProcess, Platform, Virtualization};
use crate::model::{Facts, Unknown};

const HELD: &str = "{gpu}: {used} MiB of memory are in use, and no process is on it{others}";

pub(in crate::checks::driver) const CHECKS: &[Check] = &[Check {
    id: "gpu-memory-without-process",
    title: "GPU memory is held by a process that cannot be seen",
    why: "nvidia-smi shows memory in use and no process: one that is gone and left it, or one that hangs in its end. Programs find less memory than the GPU has.",
    messages: &[HELD],
    remedy: &[
        Step {
            action: Action::FreeGpu,
            text: "Find who has the nodes open, in all containers, and end it.",
            command: Some("fuser -v /dev/nvidia*"),
        },
        Step {
            action: Action::ResetGpu,
            text: "If nobody has, reset the GPU.",
            command: Some("nvidia-smi --gpu-reset -i {index}"),
        },
    ],
    severities: &[Severity::Warning],
    places: &[Place::Host],
    judge: without_process,
}];

const MIB: u64 = 1 << 20;
/// The console, and what the driver prepares for the next program, are far below it.
const LEAST: u64 = 1 << 30;

fn without_process(facts: &Facts<'_>) -> Judgement {
    let Some(nvml) = asked(facts)? else { return not_applicable() };
    if facts.host.platform != Platform::Native {
        return not_applicable();
    }
    if !nvml.answering().any(is_held) {
        return Ok(Outcome::Pass);
    }
    // Where processor and GPU share an address space the kernel uses its memory like any other, for files too.
    if facts.host.architecture.known()? != "x86_64" {
        return not_applicable();
    }
    if !nvml.sees_all_processes {
        return Err(Unknown::new("host.nvml.gpus", "NVML", "in a container it does not name the machine's processes"));
    }
    about(facts, HELD, Severity::Warning, is_held, |failure, gpu| {
        failure.arg("used", in_use(gpu).unwrap_or_default() / MIB)
    })
}

/// What is neither free nor the driver's own; `None`: an older driver does not tell its own.
fn in_use(gpu: &NvmlGpu) -> Option<u64> {
    gpu.memory?.checked_sub(gpu.memory_free?)?.checked_sub(gpu.memory_reserved?)
}

/// Much is in use, and NVML names nobody. It says nothing of those in virtual machines, nor always of those on parts of a
/// GPU or behind MPS.
fn is_held(gpu: &NvmlGpu) -> bool {
    let holds_nothing = |all: &Option<Vec<NvmlProcess>>| {
        all.as_ref().is_some_and(|all| all.iter().all(|process| process.memory == Some(0)))
    };
    let is_whole = gpu.mig != Some(true)
        && gpu.mps != Some(true)
        && matches!(gpu.virtualization, Some(Virtualization::None | Virtualization::Passthrough));
    let least = LEAST.max(gpu.memory.unwrap_or_default() / 20);
    is_whole
        && holds_nothing(&gpu.processes)
        && holds_nothing(&gpu.graphics)
        && in_use(gpu).is_some_and(|used| used > least)
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;
    use crate::checks::testing::World;
    use crate::model::Observed;

    const ID: &str = "gpu-memory-without-process";

    /// 80 GiB, of which 40 are held by nobody.
    fn held(spoil: impl Fn(&mut NvmlGpu)) -> World {
        machine(|nvml| {
            nvml.sees_all_processes = true;
            let gpu = &mut nvml.gpus[0];
            (gpu.memory_free, gpu.memory_reserved) = (Some(39 << 30), Some(1 << 30));
            gpu.graphics = Some(Vec::new());
            gpu.virtualization = Some(Virtualization::None);
            spoil(gpu);
        })
    }

    #[test]
    fn memory_that_nobody_holds_is_found() {
        let failure = held(|_| ()).failure(ID);
        assert_eq!(failure.severity, Severity::Warning);
        assert!(failure.args.iter().any(|(name, arg)| *name == "used" && format!("{arg:?}").contains("40960")));
        held(|gpu| gpu.processes = Some(vec![NvmlProcess { pid: Some(7), memory: Some(0) }])).failure(ID);
    }

    #[test]
    fn what_the_driver_keeps_or_a_process_may_hold_is_no_ghost() {
        type Spoil = fn(&mut NvmlGpu);
        let innocent: [Spoil; 11] = [
            |gpu| gpu.memory_reserved = None,
            |gpu| gpu.memory_reserved = Some(41 << 30),
            |gpu| gpu.memory_free = Some(76 << 30),
            |gpu| gpu.processes = None,
            |gpu| gpu.graphics = None,
            |gpu| gpu.processes = Some(vec![NvmlProcess { pid: Some(7), memory: None }]),
            |gpu| gpu.graphics = Some(vec![NvmlProcess { pid: Some(7), memory: Some(4 << 20) }]),
            |gpu| gpu.mig = Some(true),
            |gpu| gpu.mps = Some(true),
            |gpu| gpu.virtualization = Some(Virtualization::HostVgpu),
            |gpu| gpu.virtualization = None,
        ];
        for (number, spoil) in innocent.into_iter().enumerate() {
            let world = held(spoil);
            assert_eq!(world.judge(ID), Ok(Outcome::Pass), "{number}");
        }
    }

    #[test]
    fn in_a_container_nobody_knows_and_a_grace_machine_uses_it_as_its_own() {
        let mut inside = held(|_| ());
        inside.host.nvml.as_mut().unwrap().sees_all_processes = false;
        inside.unknown(ID);
        let mut grace = held(|_| ());
        grace.host.architecture = Observed::Known("aarch64".into());
        grace.silent(ID);
    }
}
