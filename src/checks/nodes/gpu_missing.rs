//! Nodes of GPUs that are not there.

use crate::checks::not_applicable;
use crate::model::container::Given;
use crate::model::{Action, Check, Facts, Failure, Judgement, Outcome, Place, Severity};

use super::expect::Subject;
use super::given::{count_asked_of_legacy, given_count, node_of, nodes_asked_of_legacy};
use super::missing::{ANEW, MAKE, PASS, REGENERATE, expecting, lacking};
use super::role::{Role, has_node, list, role};
use super::ways::missing;

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "gpu-node-missing",
    title: "the device node of a GPU is missing",
    why: "A GPU whose /dev/nvidiaN is not in the container cannot be used there, although driver and libraries are.",
    messages: &[
        "the container was given GPUs but has no {node}; {where}",
        "the container was given the driver by CDI but the node of no GPU: there is no /dev/nvidiaN in it",
        "this machine has no {node}, though the driver runs the GPU",
    ],
    remedy: &[MAKE, PASS, REGENERATE, ANEW],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Host, Place::Healthcheck],
    judge: gpu_missing,
}];

fn gpu_missing(facts: &Facts<'_>) -> Judgement {
    match expecting(facts)? {
        None => not_applicable(),
        Some(Subject::Machine) => gpu_missing_on_machine(facts),
        Some(Subject::Container) => gpu_missing_in_container(facts),
    }
}

fn gpu_missing_on_machine(facts: &Facts<'_>) -> Judgement {
    let nodes = facts.host.device_nodes.known()?;
    let expected: Vec<String> =
        facts.host.gpus.known()?.iter().filter(|gpu| !gpu.excluded).filter_map(node_of).collect();
    let absent: Vec<&str> = expected.iter().map(String::as_str).filter(|path| !nodes.contains_key(*path)).collect();
    if absent.is_empty() {
        return Ok(Outcome::Pass);
    }
    let severity = if absent.len() == expected.len() { missing(facts, "nvidia")? } else { Severity::Warning };
    Failure::new(severity, CHECKS[0].messages[2])
        .arg("node", list(absent.iter().copied()))
        .only(&[Action::LoadModule])
        .saw("host.device_nodes", format!("no {}", absent.join(", ")), "/dev")
        .saw("host.gpus", expected.len(), "/proc/driver/nvidia/gpus")
        .found()
}

fn gpu_missing_in_container(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let had: Vec<String> = container.inside.iter().flat_map(|inside| &inside.had).cloned().collect();
    let expected: Vec<String> = if had.iter().any(|path| role(path) == Role::Gpu) {
        had.into_iter().filter(|path| role(path) == Role::Gpu).collect()
    } else if *container.gpu_given.known()? == Given::LegacyHook {
        // Which GPU is which takes a look that may wake them; it is not needed where enough are there.
        match count_asked_of_legacy(facts)? {
            None => return not_applicable(),
            Some(count) if count <= given_count(facts)? => return Ok(Outcome::Pass),
            Some(_) => match nodes_asked_of_legacy(facts)? {
                None => return not_applicable(),
                Some(nodes) => nodes,
            },
        }
    } else {
        let named = &container.spec_devices.known()?.items;
        named.iter().map(|d| d.path.clone()).filter(|path| role(path) == Role::Gpu).collect()
    };
    if expected.is_empty() {
        return gpu_missing_altogether(facts);
    }
    let mut absent = Vec::new();
    for path in &expected {
        if !has_node(facts, path)? {
            absent.push(path.as_str());
        }
    }
    if absent.is_empty() {
        return Ok(Outcome::Pass);
    }
    let severity = if absent.len() == expected.len() { missing(facts, "nvidia")? } else { Severity::Warning };
    lacking(facts, &CHECKS[0], severity, &list(absent.iter().copied()))
}

/// CDI brought the driver's files and no GPU: a specification made where the GPUs could not be seen.
/// Its device `none` does so on purpose, and says so by a variable of its own.
fn gpu_missing_altogether(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let on_purpose = container.variable("NVCT_EMPTY_DEVICE")?.is_some()
        || container.visible_devices.known()?.as_deref().is_some_and(|v| matches!(v.trim(), "none" | "void"));
    let meant = *container.gpu_given.known()? == Given::Cdi && container.wants_gpu.is_asked();
    if on_purpose || !meant {
        return not_applicable();
    }
    if container.devices.known()?.iter().any(|node| role(&node.path) == Role::Gpu) {
        return Ok(Outcome::Pass);
    }
    // Somebody wrote that a GPU is wanted; else CDI may have brought what else there is of its kind: an IMEX
    // channel, the driver alone for a daemon.
    let asked = container.visible_devices.known()?.is_some() && container.scheduler.is_none();
    let severity = if asked { missing(facts, "nvidia")? } else { Severity::Warning };
    Failure::new(severity, CHECKS[0].messages[1])
        .arg("node", "/dev/nvidia0")
        .only(&[Action::RegenerateCdi])
        .saw("container.devices", "no GPU's node", "the container's /dev")
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;

    const ID: &str = "gpu-node-missing";

    /// The container's `/dev` lacks it; the spec still names it.
    fn lost(mut world: World, minors: &[u32]) -> World {
        let Observed::Known(devices) = &mut world.container.devices else { panic!() };
        devices.retain(|node| !minors.iter().any(|minor| node.path == format!("/dev/nvidia{minor}")));
        world
    }

    #[test]
    fn all_of_the_given_gpus_are_an_error_and_some_a_warning() {
        for world in [World::cdi(2), World::legacy(2, LegacyState::HasRun)] {
            world.silent(ID);
            assert_eq!(lost(world.clone(), &[0, 1]).short(ID).severity, Severity::Error);
            let failure = lost(world, &[1]).short(ID);
            assert_eq!(failure.severity, Severity::Warning);
        }
    }

    #[test]
    fn gpus_that_were_not_given_are_not_missed() {
        let mut world = World::cdi(4);
        world.without_node("/dev/nvidia1", false);
        world.silent(ID);
        let mut one = World::legacy(4, LegacyState::HasRun);
        one.container.visible_devices = Observed::Known(Some("2".into()));
        lost(one.clone(), &[0, 1, 3]).silent(ID);
        assert_eq!(lost(one.clone(), &[0, 1, 2, 3]).short(ID).severity, Severity::Error);
        one.container.visible_devices = Observed::Known(Some("MIG-0000000b-0000-4000-8000-000000000001".into()));
        lost(one, &[0, 1, 2, 3]).silent(ID);
    }

    #[test]
    fn the_legacy_hook_makes_them() {
        let mut world = World::legacy(2, LegacyState::StillToRun);
        world.silent(ID);
        world.without_node("/dev/nvidia0", true);
        world.without_node("/dev/nvidia1", true);
        assert_eq!(world.short(ID).severity, Severity::Warning);
    }

    #[test]
    fn cdi_that_brought_no_gpu_at_all() {
        let mut world = World::cdi(1);
        world.without_node("/dev/nvidia0", false);
        assert_eq!(world.short(ID).severity, Severity::Error);
        let mut daemon = world.clone();
        daemon.container.visible_devices = Observed::Known(None);
        assert_eq!(daemon.short(ID).severity, Severity::Warning, "nobody wrote that it wants one");
        daemon = world.clone();
        daemon.container.scheduler = Some(crate::model::container::Scheduler::Kubernetes);
        assert_eq!(daemon.short(ID).severity, Severity::Warning, "the image wrote it");
        world.set("NVCT_EMPTY_DEVICE", "");
        world.silent(ID);
        let mut none = World::cdi(1);
        none.without_node("/dev/nvidia0", false);
        none.container.visible_devices = Observed::Known(Some("none".into()));
        none.silent(ID);
    }

    #[test]
    fn on_the_machine_every_gpu_counts_that_the_driver_runs() {
        let mut world = World::machine(2);
        world.host.engines.clear();
        world.silent(ID);
        world.without_node("/dev/nvidia1", true);
        assert_eq!(world.short(ID).severity, Severity::Warning);
        let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
        gpus[1].excluded = true;
        world.silent(ID);
        let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
        gpus.remove(0);
        gpus[0].excluded = false;
        assert_eq!(world.short(ID).severity, Severity::Error);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = World::cdi(1);
        world.container.devices = unseen();
        world.unknown(ID);
        let mut world = World::legacy(1, LegacyState::HasRun);
        world.host.gpus = unseen();
        world.unknown(ID);
        let mut world = World::machine(1);
        world.host.device_nodes = unseen();
        world.unknown(ID);
    }
}
