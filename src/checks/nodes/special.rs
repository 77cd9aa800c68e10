//! Nodes that only displays, MIG and fabrics need, where they are not there.

use std::collections::BTreeMap;

use crate::checks::not_applicable;
use crate::knowledge::toolkit::CLI;
use crate::model::container::Given;
use crate::model::{Action, Check, Facts, Failure, Judgement, Outcome, Place, Severity, Step};

use super::expect::{Subject, display_by_legacy, graphics};
use super::given::asks_for_mig;
use super::missing::expecting;
use super::role::{MODESET, Role, has_node, list, role};
use super::ways::missing;

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "modeset-node-missing",
        title: "/dev/nvidia-modeset is missing",
        why: "The display capability needs it; the legacy hook refuses a container that asks for display (or all) where the machine lacks it.",
        messages: &[
            "NVIDIA_DRIVER_CAPABILITIES asks for display (or all), which needs {node}, and this machine has none",
            "the container asks for graphics or a display, and has no {node}",
            "this machine has no {node}: containers that ask for display, or for all driver capabilities, will fail",
        ],
        remedy: &[
            Step {
                action: Action::LoadModule,
                text: "Load nvidia-modeset and make its node.",
                command: Some("nvidia-modprobe -m"),
            },
            Step {
                action: Action::ChangeEnvironment,
                text: "Ask for what the work needs: NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: modeset_missing,
    },
    Check {
        id: "mig-caps-nodes-missing",
        title: "the capability nodes of a MIG device are missing",
        why: "A MIG device is opened through two nodes below /dev/nvidia-caps; without them CUDA finds no device.",
        messages: &[
            "the container was given a MIG device, but nothing below /dev/nvidia-caps: CUDA cannot open it",
            "this machine has MIG instances, but not their nodes: {node}",
        ],
        remedy: &[
            Step {
                action: Action::LoadModule,
                text: "Make the nodes of the MIG instances on the machine.",
                command: Some("nvidia-modprobe -f /proc/driver/nvidia/capabilities/{instance}/access"),
            },
            Step {
                action: Action::PassGpu,
                text: "Give the MIG device by CDI or --gpus, which bring its nodes; binding the machine's /dev may hide them.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host, Place::Healthcheck],
        judge: mig_caps_missing,
    },
    Check {
        id: "imex-channel-missing",
        title: "an IMEX channel that was asked for is missing",
        why: "Programs that share memory between nodes of an NVLink domain open their channel's node; others do not need it.",
        messages: &["IMEX channels were asked for, and {node} is missing"],
        remedy: &[Step {
            action: Action::LoadModule,
            text: "Make the channel's node on the machine.",
            command: Some(
                "mkdir -p /dev/nvidia-caps-imex-channels && mknod {node} c $(grep imex-channels /proc/devices | cut -d' ' -f1) {channel}",
            ),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: imex_missing,
    },
];

fn modeset_missing(facts: &Facts<'_>) -> Judgement {
    let (severity, message) = match expecting(facts)? {
        None => return not_applicable(),
        Some(Subject::Machine) => {
            // A machine without a display lacks it by right; only the legacy hook asks for more.
            if !facts.host.toolkit.programs.known()?.contains_key(CLI) {
                return not_applicable();
            }
            if facts.host.device_nodes.known()?.contains_key(MODESET) {
                return Ok(Outcome::Pass);
            }
            (Severity::Warning, 2)
        }
        Some(Subject::Container) => {
            let display = display_by_legacy(facts)?;
            let legacy = *facts.container.gpu_given.known()? == Given::LegacyHook;
            if !display && (legacy || !graphics(facts)?) {
                return not_applicable();
            }
            if has_node(facts, MODESET)? {
                return Ok(Outcome::Pass);
            }
            // What the hook left out though it ran to its end was not refused by it.
            if display && facts.container.legacy_still_to_run() {
                (missing(facts, "nvidia_modeset")?, 0)
            } else {
                (Severity::Warning, 1)
            }
        }
    };
    Failure::new(severity, CHECKS[0].messages[message])
        .arg("node", MODESET)
        .saw("host.device_nodes", format!("no {MODESET}"), "/dev")
        .found()
}

fn mig_caps_missing(facts: &Facts<'_>) -> Judgement {
    match expecting(facts)? {
        None => not_applicable(),
        Some(Subject::Machine) => mig_caps_missing_on_machine(facts, &instances(facts.host.mig_capabilities.known()?)),
        Some(Subject::Container) if !asks_for_mig(facts)? => not_applicable(),
        Some(Subject::Container) => {
            // Two more nodes, of configuration and monitoring, open no instance. Where the driver's list was
            // not read any node below the directory counts.
            let instances = facts.host.mig_capabilities.looked_at()?.map(instances).unwrap_or_default();
            let opens = |minor| instances.is_empty() || instances.iter().any(|(_, m)| **m == minor);
            let devices = facts.container.devices.known()?;
            let mut has = devices.iter().any(|node| role(&node.path) == Role::Cap && opens(node.minor));
            if facts.container.legacy_still_to_run() {
                if instances.is_empty() {
                    // Nothing says which nodes the hook would look for.
                    return not_applicable();
                }
                let nodes = facts.host.device_nodes.known()?;
                has |= nodes.iter().any(|(path, node)| role(path) == Role::Cap && opens(node.minor));
            }
            if has {
                return Ok(Outcome::Pass);
            }
            Failure::new(missing(facts, "nvidia")?, CHECKS[1].messages[0])
                .arg("instance", instances.first().map_or("gpu0/mig/gi0", |(path, _)| path.as_str()))
                .only(&[Action::PassGpu])
                .saw("container.devices", "nothing below /dev/nvidia-caps", "the container's /dev")
                .found()
        }
    }
}

/// The capabilities that belong to an instance.
fn instances(capabilities: &BTreeMap<String, u32>) -> Vec<(&String, &u32)> {
    capabilities.iter().filter(|(path, _)| path.contains("/mig/gi")).collect()
}

fn mig_caps_missing_on_machine(facts: &Facts<'_>, instances: &[(&String, &u32)]) -> Judgement {
    if instances.is_empty() {
        return not_applicable();
    }
    let nodes = facts.host.device_nodes.known()?;
    let expected: Vec<_> =
        instances.iter().map(|(path, m)| (*path, format!("/dev/nvidia-caps/nvidia-cap{m}"))).collect();
    let absent: Vec<_> = expected.iter().filter(|(_, node)| !nodes.contains_key(node)).collect();
    let Some((instance, _)) = absent.first() else { return Ok(Outcome::Pass) };
    let severity = if absent.len() == expected.len() { missing(facts, "nvidia")? } else { Severity::Warning };
    Failure::new(severity, CHECKS[1].messages[1])
        .arg("node", list(absent.iter().map(|(_, node)| node.as_str())))
        .arg("instance", instance)
        .only(&[Action::LoadModule])
        .saw("host.mig_capabilities", format!("{} instances", instances.len()), "/proc/driver/nvidia/capabilities")
        .found()
}

const CHANNELS: &str = "/dev/nvidia-caps-imex-channels/";

fn imex_missing(facts: &Facts<'_>) -> Judgement {
    let nodes = facts.host.device_nodes.known();
    let absent: Vec<String> = match expecting(facts)? {
        None => return not_applicable(),
        Some(Subject::Machine) => {
            // On the machine only its CDI specifications ask for channels.
            let named = facts
                .host
                .cdi
                .known()?
                .iter()
                .flat_map(|spec| spec.nodes.iter().chain(spec.devices.iter().flat_map(|device| &device.nodes)));
            let paths: Vec<&String> =
                named.map(|n| n.host_path.as_ref().unwrap_or(&n.path)).filter(|p| p.starts_with(CHANNELS)).collect();
            if paths.is_empty() {
                return not_applicable();
            }
            let nodes = nodes?;
            paths.into_iter().filter(|path| !nodes.contains_key(*path)).cloned().collect()
        }
        Some(Subject::Container) => {
            let asked = facts.container.variable("NVIDIA_IMEX_CHANNELS")?.unwrap_or_default();
            // The toolkit takes numbers only, and passes over `all`.
            let numbers: Vec<u32> = asked.split(',').filter_map(|word| word.trim().parse().ok()).collect();
            if numbers.is_empty() {
                return not_applicable();
            }
            let mut absent = Vec::new();
            for path in numbers.iter().map(|number| format!("{CHANNELS}channel{number}")) {
                if !has_node(facts, &path)? {
                    absent.push(path);
                }
            }
            absent
        }
    };
    let Some(first) = absent.first() else { return Ok(Outcome::Pass) };
    let channel: String = first.chars().skip_while(|c| !c.is_ascii_digit()).collect();
    Failure::new(Severity::Warning, CHECKS[2].messages[0])
        .arg("node", first)
        .arg("channel", channel)
        .saw("host.device_nodes", format!("no {}", list(absent.iter().map(String::as_str))), "/dev")
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::{ContainerNode, LegacyState};
    use crate::model::host::{CdiNode, CdiSpec, ModuleFiles, Node};

    const MIG: &str = "MIG-0000000b-0000-4000-8000-000000000001";

    fn with_instances(mut world: World) -> World {
        world.host.mig_capabilities =
            Observed::Known([("gpu0/mig/gi1".to_owned(), 21), ("gpu0/mig/gi1/ci0".to_owned(), 22)].into());
        world
    }

    fn add_caps(world: &mut World, minors: &[u32]) {
        for minor in minors {
            let path = format!("/dev/nvidia-caps/nvidia-cap{minor}");
            let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
            nodes.insert(path.clone(), Node { major: 510, minor: *minor, mode: 0o444, ..Node::default() });
            let Observed::Known(devices) = &mut world.container.devices else { panic!() };
            devices.push(ContainerNode { path, major: 510, minor: *minor, mode: 0o444, ..ContainerNode::default() });
        }
    }

    fn without_modeset(mut world: World) -> World {
        world.without_node(MODESET, true);
        let Observed::Known(modules) = &mut world.host.driver.modules else { panic!() };
        modules.remove("nvidia_modeset");
        world.host.driver.module_files = Observed::Known(ModuleFiles::default());
        world
    }

    #[test]
    fn a_display_by_the_legacy_hook_needs_modeset() {
        let mut world = without_modeset(World::legacy(1, LegacyState::StillToRun));
        world.silent("modeset-node-missing");
        for words in ["all", "display,utility"] {
            world.set("NVIDIA_DRIVER_CAPABILITIES", words);
            assert_eq!(world.short("modeset-node-missing").severity, Severity::Error, "{words}");
        }
        let mut ran = without_modeset(World::legacy(1, LegacyState::HasRun));
        ran.set("NVIDIA_DRIVER_CAPABILITIES", "all");
        assert_eq!(ran.short("modeset-node-missing").severity, Severity::Warning);
        ran.set("NVIDIA_DRIVER_CAPABILITIES", "graphics,utility");
        ran.silent("modeset-node-missing");
        let mut whole = World::legacy(1, LegacyState::StillToRun);
        whole.set("NVIDIA_DRIVER_CAPABILITIES", "all");
        whole.silent("modeset-node-missing");
    }

    #[test]
    fn elsewhere_modeset_is_a_warning_at_most() {
        let mut cdi = without_modeset(World::cdi(1));
        cdi.silent("modeset-node-missing");
        cdi.set("NVIDIA_DRIVER_CAPABILITIES", "graphics,utility");
        assert_eq!(cdi.short("modeset-node-missing").severity, Severity::Warning);
        let mut machine = without_modeset(World::machine(1));
        assert_eq!(machine.short("modeset-node-missing").severity, Severity::Warning);
        machine.host.toolkit.programs = Observed::default();
        machine.silent("modeset-node-missing");
        machine.host.toolkit.programs = unseen();
        machine.unknown("modeset-node-missing");
    }

    #[test]
    fn a_mig_device_needs_its_nodes() {
        let mut world = with_instances(World::cdi(1));
        world.silent("mig-caps-nodes-missing");
        world.container.visible_devices = Observed::Known(Some(MIG.into()));
        assert_eq!(world.short("mig-caps-nodes-missing").severity, Severity::Error);
        add_caps(&mut world, &[1, 2]);
        assert_eq!(world.short("mig-caps-nodes-missing").severity, Severity::Error);
        add_caps(&mut world, &[21, 22]);
        world.silent("mig-caps-nodes-missing");

        world.container.devices = unseen();
        world.unknown("mig-caps-nodes-missing");
    }

    #[test]
    fn before_the_hook_the_machines_nodes_count() {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.container.visible_devices = Observed::Known(Some(MIG.into()));
        world.silent("mig-caps-nodes-missing");
        let mut world = with_instances(world);
        assert_eq!(world.short("mig-caps-nodes-missing").severity, Severity::Warning, "the hook makes them");
        add_caps(&mut world, &[21, 22]);
        world.container.devices = Observed::default();
        world.silent("mig-caps-nodes-missing");
    }

    #[test]
    fn where_the_drivers_list_was_not_read_any_capability_node_counts() {
        let mut world = World::legacy(1, LegacyState::HasRun);
        world.container.visible_devices = Observed::Known(Some(MIG.into()));
        world.host.mig_capabilities = unseen();
        assert_eq!(world.short("mig-caps-nodes-missing").severity, Severity::Error);
        add_caps(&mut world, &[30, 31]);
        world.silent("mig-caps-nodes-missing");
    }

    #[test]
    fn instances_of_the_machine_need_nodes_there() {
        let mut world = with_instances(World::machine(1));
        world.host.engines.clear();
        assert_eq!(world.short("mig-caps-nodes-missing").severity, Severity::Error);
        add_caps(&mut world, &[21]);
        assert_eq!(world.short("mig-caps-nodes-missing").severity, Severity::Warning);
        add_caps(&mut world, &[22]);
        world.silent("mig-caps-nodes-missing");
        World::machine(1).silent("mig-caps-nodes-missing");
        world.host.mig_capabilities = unseen();
        world.unknown("mig-caps-nodes-missing");
    }

    #[test]
    fn channels_that_were_asked_for() {
        let mut world = World::cdi(1);
        world.silent("imex-channel-missing");
        for (asked, fires) in [("all", false), ("", false), ("0", true), ("x,3", true)] {
            world.set("NVIDIA_IMEX_CHANNELS", asked);
            if fires {
                assert_eq!(world.short("imex-channel-missing").severity, Severity::Warning, "{asked}");
            } else {
                world.silent("imex-channel-missing");
            }
        }
        world.container.devices = unseen();
        world.unknown("imex-channel-missing");

        let mut machine = World::machine(1);
        machine.silent("imex-channel-missing");
        let node = CdiNode { path: format!("{CHANNELS}channel7"), ..CdiNode::default() };
        machine.host.cdi = Observed::Known(vec![CdiSpec { nodes: vec![node.clone()], ..CdiSpec::default() }]);
        assert_eq!(machine.short("imex-channel-missing").severity, Severity::Warning);
        let Observed::Known(nodes) = &mut machine.host.device_nodes else { panic!() };
        nodes.insert(node.path, Node::default());
        machine.silent("imex-channel-missing");
    }
}
