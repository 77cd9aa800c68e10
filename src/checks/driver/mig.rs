//! GPUs in MIG mode.

use crate::checks::nodes::expect::{CAP_SYS_ADMIN, Compute, Subject, compute, has_bounding, subject};
use crate::checks::nodes::given::given_gpus;
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::model::host::Gpu;
use crate::model::{Action, Check, Facts, Failure, Judgement, Outcome, Place, Severity, Step, Unknown};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "mig-enabled-without-instances",
    title: "MIG mode is on, and there are no MIG instances",
    why: "A GPU in MIG mode computes only through its instances; without one CUDA finds no device, although nvidia-smi lists the GPU.",
    messages: &["MIG mode is on and no compute instance exists on {gpus}: CUDA finds no device there"],
    remedy: &[
        Step {
            action: Action::ResetGpu,
            text: "Create a GPU instance with its compute instance.",
            command: Some("nvidia-smi mig -i {index} -cgi 0 -C"),
        },
        Step {
            action: Action::ResetGpu,
            text: "Switch MIG off; nothing may use the GPU meanwhile.",
            command: Some("nvidia-smi -i {index} -mig 0"),
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Host, Place::Hook],
    judge: without_instances,
}];

fn without_instances(facts: &Facts<'_>) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    let all = facts.host.gpus.known()?;
    // Without NVML files show the mode of some drivers only; what does not say that it is on is left alone.
    if !all.iter().any(|gpu| gpu.mig == Some(true)) {
        return Ok(Outcome::Pass);
    }
    let gpus: Vec<&Gpu> = match subject {
        Subject::Machine => all.iter().filter(|gpu| !gpu.excluded).collect(),
        Subject::Container => given_gpus(facts)?,
    };
    let capabilities = facts.host.mig_capabilities.known()?;
    let has_instance = |gpu: &Gpu| {
        let below = gpu.minor.map(|minor| format!("gpu{minor}/mig/gi"));
        below.is_none_or(|below| capabilities.keys().any(|path| path.starts_with(&below) && path.contains("/ci")))
    };
    let empty: Vec<&Gpu> = gpus.iter().copied().filter(|gpu| gpu.mig == Some(true) && !has_instance(gpu)).collect();
    let Some(first) = empty.first() else { return Ok(Outcome::Pass) };
    let all = empty.len() == gpus.len();
    let severity = if all && !may_do_without(facts, subject)? { Severity::Error } else { Severity::Warning };
    Failure::new(severity, CHECKS[0].messages[0])
        .arg("gpus", format!("GPU {}", list(empty.iter().map(|gpu| gpu.pci.as_str()))))
        .arg("index", first.index)
        .saw("host.mig_capabilities", "no instance", "/proc/driver/nvidia/capabilities")
        .found()
}

/// Who makes the instances, or watches the GPU, works without one: who asks for MIG's configuration or
/// monitoring, who may administer, who does no CUDA work, and a scheduler's own daemons.
fn may_do_without(facts: &Facts<'_>, subject: Subject) -> Result<bool, Unknown> {
    let container = facts.container;
    Ok(subject == Subject::Container
        && (container.scheduler.is_some()
            || compute(facts)? != Compute::Wanted
            || has_bounding(container, CAP_SYS_ADMIN)
            || container.variable("NVIDIA_MIG_CONFIG_DEVICES")?.is_some()
            || container.variable("NVIDIA_MIG_MONITOR_DEVICES")?.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;

    fn in_mig_mode(mut world: World, which: &[usize]) -> World {
        let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
        for at in which {
            gpus[*at].mig = Some(true);
        }
        world
    }

    #[test]
    fn a_gpu_without_instances_computes_nothing() {
        for world in [World::machine(1), World::cdi(1), World::legacy(1, LegacyState::HasRun)] {
            let failure = in_mig_mode(world, &[0]).short("mig-enabled-without-instances");
            assert_eq!(failure.severity, Severity::Error);
        }
        for world in [World::machine(2), World::cdi(2)] {
            let failure = in_mig_mode(world, &[1]).short("mig-enabled-without-instances");
            assert_eq!(failure.severity, Severity::Warning);
        }
    }

    #[test]
    fn who_makes_instances_or_watches_needs_none() {
        let severity = |world: &World| world.short("mig-enabled-without-instances").severity;
        let empty = in_mig_mode(World::legacy(1, LegacyState::HasRun), &[0]);
        let mut maker = empty.clone();
        maker.set("NVIDIA_MIG_CONFIG_DEVICES", "all");
        let mut daemon = empty.clone();
        daemon.container.scheduler = Some(crate::model::container::Scheduler::Kubernetes);
        let mut monitor = empty.clone();
        monitor.container.args = Observed::Known(vec!["dcgm-exporter".into()]);
        let mut watcher = empty.clone();
        watcher.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
        let mut privileged = empty.clone();
        let Observed::Known(user) = &mut privileged.container.user else { panic!() };
        user.capabilities.as_mut().unwrap().bounding = u64::MAX;
        for world in [&maker, &daemon, &monitor, &watcher, &privileged] {
            assert_eq!(severity(world), Severity::Warning);
        }
        assert_eq!(severity(&empty), Severity::Error);
    }

    #[test]
    fn instances_and_other_gpus_are_left_alone() {
        World::machine(1).silent("mig-enabled-without-instances");
        let mut world = in_mig_mode(World::machine(1), &[0]);
        world.host.mig_capabilities =
            Observed::Known([("gpu0/mig/gi1".to_owned(), 21), ("gpu0/mig/gi1/ci0".to_owned(), 22)].into());
        world.silent("mig-enabled-without-instances");
        let mut other = in_mig_mode(World::cdi(2), &[1]);
        other.without_node("/dev/nvidia1", false);
        other.silent("mig-enabled-without-instances");
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = in_mig_mode(World::machine(1), &[0]);
        world.host.mig_capabilities = unseen();
        world.unknown("mig-enabled-without-instances");
        world.host.gpus = unseen();
        world.unknown("mig-enabled-without-instances");
    }
}
