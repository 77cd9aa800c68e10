//! Are the driver's modules loaded, and has anything made its nodes?

use crate::checks::nodes::expect::{Compute, Subject, compute, subject};
use crate::checks::nodes::role::{Role, list, machine_has_no_nodes, role, weight};
use crate::checks::nodes::ways::{missing, of_a_gpu, on_disk};
use crate::checks::not_applicable;
use crate::model::container::{Access, ContainerNode, Given, Refusal, Strength};
use crate::model::host::PciFunction;
use crate::model::{Action, Check, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::{nvidia_loaded, unloadable};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "driver-not-loaded",
        title: "the NVIDIA driver is not loaded",
        why: "Without the kernel module there is no GPU: CUDA finds no device, and nvidia-smi says that it cannot communicate with the driver.",
        messages: &[
            "the NVIDIA driver is not loaded: {gpus} on the bus, no nvidia module in the kernel",
            "no NVIDIA driver is installed: {gpus} on the bus, no nvidia module in the kernel or on disk, no libcuda",
            "no driver serves {node} ({number}): it is not loaded, or was unloaded or loaded anew since the container's start",
        ],
        remedy: &[
            Step {
                action: Action::LoadModule,
                text: "Load the driver; if that fails, the kernel's log says why.",
                command: Some("modprobe nvidia && nvidia-modprobe -u -c 0"),
            },
            Step { action: Action::UpdateDriver, text: "Install the NVIDIA driver on this machine.", command: None },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook, Place::Healthcheck],
        judge: driver_not_loaded,
    },
    Check {
        id: "uvm-module-not-loaded",
        title: "the kernel module nvidia_uvm is not loaded",
        why: "CUDA does not start without it (error 999, \"unknown error\"), although nvidia-smi works.",
        messages: &["the driver is loaded, but its module nvidia_uvm is not: nvidia-smi works, CUDA does not start"],
        remedy: &[Step {
            action: Action::LoadModule,
            text: "Load nvidia-uvm, make its nodes, and have it loaded at boot.",
            command: Some("modprobe nvidia-uvm && nvidia-modprobe -u -c 0"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook],
        judge: uvm_module_not_loaded,
    },
    Check {
        id: "device-nodes-not-created-yet",
        title: "nothing has made the NVIDIA device nodes since boot",
        why: "Only root's first use of the GPU makes the nodes below /dev; until then containers get none and find no GPU.",
        messages: &[
            "there is no /dev/nvidiactl and no /dev/nvidiaN on this machine: the driver is {state}, but nothing has made its nodes since boot",
        ],
        remedy: &[
            Step {
                action: Action::LoadModule,
                text: "Make the nodes: run nvidia-smi once as root, and nvidia-modprobe for nvidia-uvm.",
                command: Some("nvidia-smi && nvidia-modprobe -u -c 0"),
            },
            Step {
                action: Action::StartService,
                text: "Let the persistence daemon make them at every boot.",
                command: Some("systemctl enable --now nvidia-persistenced"),
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook],
        judge: nodes_not_created_yet,
    },
];

fn driver_not_loaded(facts: &Facts<'_>) -> Judgement {
    if subject(facts)?.is_none() && !demanded_in_vain(facts)? {
        return not_applicable();
    }
    if facts.place == Place::Healthcheck
        && let Some(failure) = unserved(facts)?
    {
        return failure.found();
    }
    if nvidia_loaded(facts.host)? {
        return Ok(Outcome::Pass);
    }
    if !facts.host.has_gpu()? || unloadable::explained(facts.host) {
        return not_applicable();
    }
    let installed = on_disk(facts.host, "nvidia")? != Some(false)
        || facts.host.driver.libraries.looked_at()?.is_none_or(|libraries| !libraries.is_empty());
    let (message, action): (_, &'static [Action]) =
        if installed { (0, &[Action::LoadModule]) } else { (1, &[Action::UpdateDriver]) };
    Failure::new(missing(facts, "nvidia")?, CHECKS[0].messages[message])
        .arg("gpus", gpus_on_the_bus(facts.host))
        .only(action)
        .saw("host.modules", "no nvidia", "/sys/module")
        .saw("host.pci", gpus_on_the_bus(facts.host), "/sys/bus/pci/devices")
        .found()
}

/// Nodes that nobody serves, as whoever opens them is told, though they have the driver's number.
fn unserved(facts: &Facts<'_>) -> Result<Option<Failure>, Unknown> {
    let devices = facts.container.devices.known()?;
    let majors = facts.host.majors.known()?;
    let is_right = |node: &ContainerNode| majors.of(&node.path).is_none_or(|major| major == node.major);
    let unserved = |node: &&ContainerNode| node.access == Access::Refused(Refusal::NoDriver) && is_right(node);
    let broken: Vec<&ContainerNode> = devices.iter().filter(unserved).collect();
    if broken.is_empty() {
        return Ok(None);
    }
    let numbers: Vec<String> = broken.iter().map(|node| format!("c {}:{}", node.major, node.minor)).collect();
    let names = list(broken.iter().map(|node| node.path.as_str()));
    let failure = Failure::new(weight(facts, &broken, devices)?, CHECKS[0].messages[2])
        .arg("node", &names)
        .arg("number", list(numbers.iter().map(String::as_str)))
        .only(&[Action::LoadModule])
        .saw("container.devices", format!("{names}: no such device"), "the kernel's answer");
    Ok(Some(failure))
}

/// A GPU is demanded and none was given: that the machine could give none is part of the answer.
fn demanded_in_vain(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let container = facts.container;
    Ok(facts.place == Place::Hook
        && container.wants_gpu.strength == Strength::Demand
        && *container.gpu_given.known()? == Given::None
        && container.builder.is_none())
}

fn gpus_on_the_bus(host: &Host) -> String {
    let functions = host.pci.seen().map(Vec::as_slice).unwrap_or_default();
    let addresses: Vec<&str> =
        functions.iter().filter(|f| f.is_for_the_host()).map(|PciFunction { address, .. }| address.as_str()).collect();
    format!("{} NVIDIA GPU{} ({})", addresses.len(), if addresses.len() == 1 { "" } else { "s" }, list(addresses))
}

fn uvm_module_not_loaded(facts: &Facts<'_>) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    if !nvidia_loaded(facts.host)? {
        return not_applicable();
    }
    let registered = facts.host.majors.seen().is_some_and(|majors| majors.uvm().is_some());
    if registered || facts.host.driver.has_module("nvidia_uvm")? {
        return Ok(Outcome::Pass);
    }
    let severity = match subject {
        Subject::Machine => missing(facts, "nvidia_uvm")?,
        Subject::Container => match compute(facts)? {
            Compute::Unwanted => return not_applicable(),
            Compute::Likely => Severity::Warning,
            Compute::Wanted => of_a_gpu(facts, "nvidia_uvm")?,
        },
    };
    Failure::new(severity, CHECKS[1].messages[0]).saw("host.modules", "nvidia, no nvidia_uvm", "/sys/module").found()
}

fn nodes_not_created_yet(facts: &Facts<'_>) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    if !machine_has_no_nodes(facts)? {
        return Ok(Outcome::Pass);
    }
    let has_them = |needed| {
        let devices = facts.container.devices.seen().map(Vec::as_slice).unwrap_or_default();
        devices.iter().any(|node| role(&node.path) == needed)
    };
    if subject == Subject::Container && has_them(Role::Control) && has_them(Role::Gpu) {
        return Ok(Outcome::Pass);
    }
    let loaded = nvidia_loaded(facts.host)?;
    if !loaded && (on_disk(facts.host, "nvidia")? != Some(true) || unloadable::explained(facts.host)) {
        return not_applicable();
    }
    let severity = match subject {
        Subject::Machine => missing(facts, "nvidia")?,
        Subject::Container => of_a_gpu(facts, "nvidia")?,
    };
    Failure::new(severity, CHECKS[2].messages[0])
        .arg("state", if loaded { "loaded" } else { "on disk, but not loaded" })
        .saw("host.device_nodes", "none of NVIDIA's", "/dev")
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;
    use crate::model::host::ModuleFiles;

    fn unloaded(mut world: World) -> World {
        world.host.driver.version = Observed::Known(None);
        world.host.driver.modules = Observed::Known([].into());
        world.host.majors = Observed::default();
        world.host.gpus = Observed::default();
        for function in match &mut world.host.pci {
            Observed::Known(all) => all.iter_mut(),
            Observed::Unknown(_) => panic!(),
        } {
            function.driver = None;
        }
        world
    }

    fn on_the_disk(mut world: World, files: &[&str]) -> World {
        let running = files.iter().map(|f| (*f).to_owned()).collect();
        let kernels = [("6.1.0-30-amd64".to_owned(), !files.is_empty())].into();
        world.host.driver.module_files = Observed::Known(ModuleFiles { running, kernels, ..ModuleFiles::default() });
        world
    }

    fn without_uvm(mut world: World) -> World {
        let Observed::Known(modules) = &mut world.host.driver.modules else { panic!() };
        modules.remove("nvidia_uvm");
        let Observed::Known(majors) = &mut world.host.majors else { panic!() };
        majors.0.remove("nvidia-uvm");
        world.without_node("/dev/nvidia-uvm", true);
        world.without_node("/dev/nvidia-uvm-tools", true);
        world
    }

    fn without_nodes(mut world: World) -> World {
        world.host.device_nodes = Observed::default();
        world
    }

    #[test]
    fn a_driver_that_is_not_loaded_stops_what_cannot_load_it() {
        for world in [unloaded(World::cdi(1)), unloaded(World::machine(2))] {
            let mut world = on_the_disk(world, &["nvidia"]);
            world.host.engines.clear();
            assert_eq!(world.short("driver-not-loaded").severity, Severity::Error);
        }
        World::cdi(1).silent("driver-not-loaded");
        World::machine(1).silent("driver-not-loaded");
    }

    #[test]
    fn the_legacy_hook_will_load_it() {
        let world = on_the_disk(unloaded(World::legacy(1, LegacyState::StillToRun)), &["nvidia"]);
        assert_eq!(world.short("driver-not-loaded").severity, Severity::Warning);
        let world = on_the_disk(unloaded(World::machine(1)), &["nvidia"]);
        assert_eq!(world.short("driver-not-loaded").severity, Severity::Warning);
    }

    #[test]
    fn where_no_driver_was_installed_it_says_so() {
        let mut world = on_the_disk(unloaded(World::machine(1)), &[]);
        world.host.driver.libraries = Observed::default();
        let failure = world.short("driver-not-loaded");
        assert!(failure.message.starts_with("no NVIDIA driver is installed"));
        assert_eq!(failure.only, [Action::UpdateDriver]);
    }

    #[test]
    fn nobody_is_stopped_for_a_driver_that_does_not_concern_it() {
        unloaded(World::plain()).silent("driver-not-loaded");
        let mut vm = unloaded(World::machine(1));
        let Observed::Known(pci) = &mut vm.host.pci else { panic!() };
        pci[0].driver = Some("vfio-pci".into());
        vm.silent("driver-not-loaded");
        let mut demanded = unloaded(World::plain());
        demanded.container.wants_gpu.strength = Strength::Demand;
        demanded.host.pci = crate::model::testing::host(1).pci;
        assert_eq!(demanded.short("driver-not-loaded").severity, Severity::Error);
    }

    #[test]
    fn modules_that_nobody_saw_are_unknown() {
        let mut world = World::cdi(1);
        world.host.driver.version = unseen();
        world.host.driver.modules = unseen();
        world.unknown("driver-not-loaded");
        let mut world = World::cdi(1);
        world.host.driver.modules = unseen();
        world.host.majors = unseen();
        world.unknown("uvm-module-not-loaded");
        world.silent("driver-not-loaded");
    }

    #[test]
    fn uvm_is_missed_where_compute_is_wanted() {
        assert_eq!(without_uvm(World::cdi(1)).short("uvm-module-not-loaded").severity, Severity::Error);
        let hook_loads = on_the_disk(without_uvm(World::legacy(1, LegacyState::StillToRun)), &["nvidia", "nvidia_uvm"]);
        assert_eq!(hook_loads.short("uvm-module-not-loaded").severity, Severity::Warning);
        let hook_cannot = on_the_disk(without_uvm(World::legacy(1, LegacyState::StillToRun)), &["nvidia"]);
        assert_eq!(hook_cannot.short("uvm-module-not-loaded").severity, Severity::Error);
        let mut machine = without_uvm(World::machine(1));
        machine.host.engines.clear();
        assert_eq!(machine.short("uvm-module-not-loaded").severity, Severity::Error);

        let mut graphics = without_uvm(World::cdi(1));
        graphics.set("NVIDIA_DRIVER_CAPABILITIES", "graphics,utility");
        graphics.silent("uvm-module-not-loaded");
        let mut raw = without_uvm(World::cdi(1));
        raw.container.gpu_given = Observed::Known(Given::RawDevices);
        assert_eq!(raw.short("uvm-module-not-loaded").severity, Severity::Warning);
        without_uvm(World::plain()).silent("uvm-module-not-loaded");
        World::cdi(1).silent("uvm-module-not-loaded");
        unloaded(World::cdi(1)).silent("uvm-module-not-loaded");
    }

    #[test]
    fn what_is_given_without_a_gpu_is_not_let_down() {
        for (given, severity) in [(Given::RawDevices, None), (Given::Cdi, Some(Severity::Warning))] {
            for id in ["device-nodes-not-created-yet", "uvm-module-not-loaded"] {
                let mut world = without_uvm(World::cdi(1));
                world.set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility");
                world.container.gpu_given = Observed::Known(given);
                let path = "/dev/nvidia-caps-imex-channels/channel0".to_owned();
                let channel = crate::model::container::ContainerNode { path, ..Default::default() };
                world.container.devices = Observed::Known(vec![channel]);
                if id == "device-nodes-not-created-yet" {
                    world = without_nodes(world);
                }
                match severity {
                    None => world.silent(id),
                    Some(severity) => assert_eq!(world.failure(id).severity, severity, "{id}"),
                }
            }
        }
    }

    #[test]
    fn nodes_that_nothing_made_since_boot() {
        let mut machine = without_nodes(World::machine(1));
        assert_eq!(machine.short("device-nodes-not-created-yet").severity, Severity::Warning);
        machine.host.engines.clear();
        assert_eq!(machine.short("device-nodes-not-created-yet").severity, Severity::Error);

        let mut waiting = on_the_disk(unloaded(without_nodes(World::legacy(1, LegacyState::StillToRun))), &["nvidia"]);
        assert_eq!(waiting.short("device-nodes-not-created-yet").severity, Severity::Warning);
        waiting.host.driver.module_files = Observed::default();
        waiting.silent("device-nodes-not-created-yet");

        without_nodes(World::cdi(1)).silent("device-nodes-not-created-yet");
        World::machine(1).silent("device-nodes-not-created-yet");
        let mut unlooked = World::machine(1);
        unlooked.host.device_nodes = unseen();
        unlooked.unknown("device-nodes-not-created-yet");
    }
}
