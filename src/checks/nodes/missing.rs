//! The nodes that all work or all CUDA work needs, where they are not there.

use crate::checks::driver::nvidia_loaded;
use crate::checks::not_applicable;
use crate::model::container::Given;
use crate::model::{Action, Check, Facts, Failure, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::expect::{Compute, Subject, compute, subject};
use super::role::{CONTROL, UVM, UVM_TOOLS, has_node, machine_has_no_nodes};
use super::ways::{missing, of_a_gpu};

pub(super) const MAKE: Step = Step {
    action: Action::LoadModule,
    text: "Make the node on the machine, then start the container anew.",
    command: Some("nvidia-smi && nvidia-modprobe -u -c 0"),
};
pub(super) const PASS: Step = Step {
    action: Action::PassGpu,
    text: "The machine has it: give the GPU by --gpus all or CDI, which bring every node, or add --device {node}.",
    command: None,
};
pub(super) const REGENERATE: Step = Step {
    action: Action::RegenerateCdi,
    text: "The machine has it: make the CDI specification anew.",
    command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
};

pub(super) const ANEW: Step = Step {
    action: Action::ConfigureEngine,
    text: "Start the container anew; something took the node away while it ran.",
    command: None,
};

/// The control node's check.
pub(super) const CONTROL_CHECKS: &[Check] = &[Check {
    id: "control-node-missing",
    title: "/dev/nvidiactl is missing",
    why: "Every program that uses the GPU opens it first; without it NVML and CUDA find no driver.",
    messages: &[
        "the container has no {node}, without which neither nvidia-smi nor CUDA works; {where}",
        "this machine has no {node}, without which neither nvidia-smi nor CUDA works in any container",
    ],
    remedy: &[MAKE, PASS, REGENERATE, ANEW],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Host, Place::Healthcheck],
    judge: control_missing,
}];

/// The checks of unified memory's nodes.
pub(super) const UVM_CHECKS: &[Check] = &[
    Check {
        id: "uvm-node-missing",
        title: "/dev/nvidia-uvm is missing",
        why: "CUDA does not start without it (error 999, \"unknown error\"), although nvidia-smi works.",
        messages: &[
            "the container has no {node}, without which CUDA does not start (nvidia-smi works); {where}",
            "this machine has no {node}, without which CUDA does not start in any container (nvidia-smi works)",
        ],
        remedy: &[MAKE, PASS, REGENERATE, ANEW],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host, Place::Healthcheck],
        judge: uvm_missing,
    },
    Check {
        id: "uvm-tools-node-missing",
        title: "/dev/nvidia-uvm-tools is missing",
        why: "Only profilers and debuggers of unified memory need it.",
        messages: &["{node} is missing beside /dev/nvidia-uvm: profiling unified memory will not work, all else does"],
        remedy: &[],
        severities: &[Severity::Note],
        places: &[Place::Hook, Place::Host, Place::Healthcheck],
        judge: uvm_tools_missing,
    },
];

/// Whom the question is about, where nodes can be expected at all: the driver runs, and something has
/// made nodes since boot. Else that is what is wrong, and the family `driver` says so.
pub(super) fn expecting(facts: &Facts<'_>) -> Result<Option<Subject>, Unknown> {
    let Some(subject) = subject(facts)? else { return Ok(None) };
    // Inside a container the machine's nodes are its own, and that it has none may be what is wrong.
    if !nvidia_loaded(facts.host)? || (facts.place != Place::Healthcheck && machine_has_no_nodes(facts)?) {
        return Ok(None);
    }
    Ok(Some(subject))
}

fn control_missing(facts: &Facts<'_>) -> Judgement {
    match expecting(facts)? {
        None => not_applicable(),
        Some(Subject::Machine) if facts.host.device_nodes.known()?.contains_key(CONTROL) => Ok(Outcome::Pass),
        Some(Subject::Machine) => lacking_on_machine(facts, &CONTROL_CHECKS[0], 1, CONTROL, "nvidia"),
        Some(Subject::Container) if has_node(facts, CONTROL)? => Ok(Outcome::Pass),
        Some(Subject::Container) => lacking(facts, &CONTROL_CHECKS[0], of_a_gpu(facts, "nvidia")?, CONTROL),
    }
}

fn uvm_missing(facts: &Facts<'_>) -> Judgement {
    match expecting(facts)? {
        None => not_applicable(),
        Some(Subject::Machine) if facts.host.device_nodes.known()?.contains_key(UVM) => Ok(Outcome::Pass),
        Some(Subject::Machine) => lacking_on_machine(facts, &UVM_CHECKS[0], 1, UVM, "nvidia_uvm"),
        Some(Subject::Container) if has_node(facts, UVM)? => Ok(Outcome::Pass),
        Some(Subject::Container) => match compute(facts)? {
            Compute::Unwanted => not_applicable(),
            Compute::Likely if !facts.container.had(|path| path == UVM) => {
                lacking(facts, &UVM_CHECKS[0], Severity::Warning, UVM)
            }
            Compute::Likely | Compute::Wanted => lacking(facts, &UVM_CHECKS[0], of_a_gpu(facts, "nvidia_uvm")?, UVM),
        },
    }
}

fn uvm_tools_missing(facts: &Facts<'_>) -> Judgement {
    let (uvm, tools) = match expecting(facts)? {
        None => return not_applicable(),
        Some(Subject::Machine) => {
            let nodes = facts.host.device_nodes.known()?;
            (nodes.contains_key(UVM), nodes.contains_key(UVM_TOOLS))
        }
        Some(Subject::Container) => (has_node(facts, UVM)?, has_node(facts, UVM_TOOLS)?),
    };
    if !uvm {
        return not_applicable();
    }
    if tools {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Note, UVM_CHECKS[1].messages[0])
        .arg("node", UVM_TOOLS)
        .saw("host.device_nodes", format!("no {UVM_TOOLS}"), "/dev")
        .found()
}

/// A node that the container lacks, with the way out that fits how its GPU was given.
pub(super) fn lacking(facts: &Facts<'_>, check: &'static Check, severity: Severity, node: &str) -> Judgement {
    let from_inside = facts.place == Place::Healthcheck;
    let machine = facts.host.device_nodes.seen().filter(|_| !from_inside).map(|nodes| nodes.contains_key(node));
    let had = facts.container.had(|path| node.split(", ").any(|missing| missing == path));
    let (place, only): (_, &'static [Action]) = match (machine, facts.container.gpu_given.known()?) {
        _ if had => ("it had one since its start", &[Action::ConfigureEngine]),
        (Some(false), _) => ("this machine has none either", &[Action::LoadModule]),
        (_, Given::Cdi) => ("it was not among what CDI gave", &[Action::RegenerateCdi]),
        _ => ("it was not passed in", &[Action::PassGpu]),
    };
    let failure = Failure::new(severity, check.messages[0]).arg("node", node).arg("where", place).only(only).saw(
        "container.devices",
        format!("no {node}"),
        "the container's /dev",
    );
    match machine {
        Some(is_there) => {
            failure.saw("host.device_nodes", if is_there { "there" } else { "none either" }, "/dev").found()
        }
        None => failure.found(),
    }
}

fn lacking_on_machine(facts: &Facts<'_>, check: &'static Check, message: usize, node: &str, module: &str) -> Judgement {
    Failure::new(missing(facts, module)?, check.messages[message])
        .arg("node", node)
        .only(&[Action::LoadModule])
        .saw("host.device_nodes", format!("no {node}"), "/dev")
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::Parts;
    use crate::model::container::{LegacyState, Mount};
    use crate::model::host::{KernelModule, ModuleFiles};

    fn lacking_node(mut world: World, path: &str, of_host: bool) -> World {
        world.without_node(path, of_host);
        world
    }

    fn action(failure: &Failure) -> Action {
        failure.only[0]
    }

    #[test]
    fn a_container_without_its_control_node_or_unified_memory() {
        for (id, node) in [("control-node-missing", CONTROL), ("uvm-node-missing", UVM)] {
            let failure = lacking_node(World::cdi(1), node, false).short(id);
            assert_eq!((failure.severity, action(&failure)), (Severity::Error, Action::RegenerateCdi));
            let failure = lacking_node(World::cdi(1), node, true).short(id);
            assert_eq!((failure.severity, action(&failure)), (Severity::Error, Action::LoadModule));
            let failure = lacking_node(World::legacy(1, LegacyState::HasRun), node, false).short(id);
            assert_eq!((failure.severity, action(&failure)), (Severity::Error, Action::PassGpu));
            let worlds: [fn() -> World; 4] =
                [|| World::cdi(1), || World::legacy(1, LegacyState::HasRun), || World::machine(1), World::plain];
            for make in worlds {
                make().silent(id);
            }
        }
    }

    #[test]
    fn what_the_legacy_hook_has_still_to_make_counts_as_made() {
        let waiting = World::legacy(1, LegacyState::StillToRun);
        waiting.silent("control-node-missing");
        waiting.silent("uvm-node-missing");
        // It makes the node itself where the module is loaded.
        let made = lacking_node(waiting, UVM, true);
        assert_eq!(made.short("uvm-node-missing").severity, Severity::Warning);
        let mut cannot = made;
        cannot.host.driver.modules = Observed::Known([("nvidia".to_owned(), KernelModule::default())].into());
        cannot.host.driver.module_files = Observed::Known(ModuleFiles::default());
        assert_eq!(cannot.short("uvm-node-missing").severity, Severity::Error);
    }

    #[test]
    fn who_may_set_up_the_machine_is_only_warned() {
        let mut world = lacking_node(World::cdi(1), CONTROL, true);
        let mount = Mount { source: "/lib/modules".into(), destination: "/lib/modules".into(), ..Mount::default() };
        world.container.mounts = Observed::Known(Parts::whole(vec![mount]));
        assert_eq!(world.short("control-node-missing").severity, Severity::Warning);
    }

    #[test]
    fn graphics_alone_needs_no_unified_memory() {
        let mut world = lacking_node(World::cdi(1), UVM, false);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "graphics,display,utility");
        world.silent("uvm-node-missing");
        world.set("NVIDIA_DRIVER_CAPABILITIES", "");
        world.container.gpu_given = Observed::Known(Given::RawDevices);
        assert_eq!(world.short("uvm-node-missing").severity, Severity::Warning);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility");
        assert_eq!(world.short("uvm-node-missing").severity, Severity::Error);
    }

    #[test]
    fn what_is_given_without_a_gpu_needs_no_gpus_nodes() {
        for given in [Given::Cdi, Given::RawDevices] {
            let mut world = World::cdi(1);
            world.container.gpu_given = Observed::Known(given);
            let node = |path: &str| crate::model::container::ContainerNode { path: path.into(), ..Default::default() };
            let paths = ["/dev/nvidia-caps-imex-channels/channel0", "/dev/nvidia-nvswitchctl"];
            world.container.devices = Observed::Known(paths.map(node).into());
            world.container.spec_devices = Observed::Known(Parts::default());
            for id in ["control-node-missing", "uvm-node-missing"] {
                match given {
                    Given::Cdi => assert_eq!(world.failure(id).severity, Severity::Warning, "{id}"),
                    _ => world.silent(id),
                }
            }
        }
    }

    #[test]
    fn the_machine_lacks_a_node_for_every_container() {
        for (id, node) in [("control-node-missing", CONTROL), ("uvm-node-missing", UVM)] {
            let mut world = lacking_node(World::machine(1), node, true);
            assert_eq!(world.short(id).severity, Severity::Warning, "docker's legacy hook makes it");
            world.host.engines.clear();
            assert_eq!(world.short(id).severity, Severity::Error);
        }
    }

    #[test]
    fn a_dead_driver_and_a_machine_without_any_node_are_others_findings() {
        let mut world = World::cdi(1);
        world.container.devices = Observed::default();
        world.host.device_nodes = Observed::default();
        world.silent("control-node-missing");
        world.silent("uvm-node-missing");
        let mut world = lacking_node(World::cdi(1), UVM, true);
        world.host.driver.version = Observed::Known(None);
        world.host.driver.modules = Observed::default();
        world.silent("uvm-node-missing");
    }

    #[test]
    fn nodes_that_nobody_saw_are_unknown() {
        let mut world = World::cdi(1);
        world.container.devices = unseen();
        for id in ["control-node-missing", "uvm-node-missing", "uvm-tools-node-missing"] {
            world.unknown(id);
            let mut machine = World::machine(1);
            machine.host.device_nodes = unseen();
            machine.unknown(id);
        }
    }

    #[test]
    fn the_node_for_tools_is_a_note() {
        let world = lacking_node(World::cdi(1), UVM_TOOLS, false);
        assert_eq!(world.short("uvm-tools-node-missing").severity, Severity::Note);
        lacking_node(world, UVM, false).silent("uvm-tools-node-missing");
        World::cdi(1).silent("uvm-tools-node-missing");
    }
}
