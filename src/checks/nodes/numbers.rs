//! Nodes whose numbers are not those that the kernel registered, and what is no node at all.

use crate::checks::not_applicable;
use crate::model::container::{ContainerNode, Given};
use crate::model::host::{CdiNode, CdiSpec, Majors, NodeKind};
use crate::model::{Action, Check, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step};

use super::expect::{Compute, Subject, compute, subject};
use super::role::{Role, UVM, UVM_TOOLS, list, plain, role, weight};
use super::ways::legacy_way;

const REGENERATE: Step = Step {
    action: Action::RegenerateCdi,
    text: "Make the CDI specification anew, then the container.",
    command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
};
const ANEW: Step = Step {
    action: Action::PassGpu,
    text: "Create the container anew: the node of this machine is right, what was recorded for the container is old.",
    command: None,
};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "uvm-major-mismatch",
        title: "/dev/nvidia-uvm has an old device number",
        why: "The kernel gives nvidia-uvm a new major number at every load; a node or a specification with the old one leads nowhere, and CUDA fails with error 999.",
        messages: &[
            "{node} in the container is c {found}, but the kernel registered nvidia-uvm as {wanted}: CUDA does not start",
            "{node} on this machine is c {found}, but the kernel registered nvidia-uvm as {wanted}: CUDA does not start",
            "CDI specification {spec} gives {node} as c {found}, but the kernel registered nvidia-uvm as {wanted}",
        ],
        remedy: &[
            Step {
                action: Action::LoadModule,
                text: "Remove the old node and make it anew.",
                command: Some("rm -f /dev/nvidia-uvm /dev/nvidia-uvm-tools && nvidia-modprobe -u -c 0"),
            },
            REGENERATE,
            ANEW,
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host, Place::Healthcheck],
        judge: uvm_major,
    },
    Check {
        id: "node-number-mismatch",
        title: "a device node has a number that the kernel did not register for it",
        why: "The node leads to another driver or to none, so opening it fails or does something else.",
        messages: &[
            "{node} in the container is c {found}, but the kernel registered major {wanted} for it",
            "{node} on this machine is c {found}, but the kernel registered major {wanted} for it",
            "CDI specification {spec} gives {node} as c {found}, but the kernel registered major {wanted} for it",
        ],
        remedy: &[
            Step {
                action: Action::LoadModule,
                text: "Remove the node and let the driver's tool make it anew.",
                command: Some("rm -f {node} && nvidia-smi"),
            },
            REGENERATE,
            ANEW,
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host, Place::Healthcheck],
        judge: other_number,
    },
    Check {
        id: "node-not-a-device",
        title: "something else stands where a device node should be",
        why: "A file, directory or pipe in place of the node cannot be used as a GPU; engines make a directory when they bind a node that the machine lacks.",
        messages: &["{node} in the container is {kind} instead of a character device"],
        remedy: &[Step {
            action: Action::PassGpu,
            text: "Give the node as a device (--gpus, CDI or --device), not as a volume, and remove what stands there.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Healthcheck],
        judge: not_a_device,
    },
];

/// A node with another major than the kernel registered for it.
struct Wrong<'a> {
    node: &'a str,
    major: u32,
    minor: u32,
    wanted: u32,
}

impl Wrong<'_> {
    fn seen(&self) -> String {
        format!("{} c {}:{}", plain(self.node), self.major, self.minor)
    }
}

/// The wrong one among nodes of some place; `uvm`: those of unified memory, else all others.
fn wrong<'a>(node: &'a str, major: u32, minor: u32, majors: &Majors, uvm: bool) -> Option<Wrong<'a>> {
    let wanted = majors.of(node)?;
    ((node == UVM || node == UVM_TOOLS) == uvm && wanted != major).then_some(Wrong { node, major, minor, wanted })
}

fn uvm_major(facts: &Facts<'_>) -> Judgement {
    judge(facts, &CHECKS[0], true)
}

fn other_number(facts: &Facts<'_>) -> Judgement {
    judge(facts, &CHECKS[1], false)
}

fn judge(facts: &Facts<'_>, check: &'static Check, uvm: bool) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    let majors = facts.host.majors.known()?;
    if majors.gpu().is_none() || (uvm && majors.uvm().is_none()) {
        // Its driver has not registered; that is another finding.
        return not_applicable();
    }
    match subject {
        Subject::Machine => on_machine(facts.host, majors, check, uvm),
        Subject::Container => in_container(facts, majors, check, uvm),
    }
}

fn in_container(facts: &Facts<'_>, majors: &Majors, check: &'static Check, uvm: bool) -> Judgement {
    let container = facts.container;
    let devices = container.devices.known()?;
    let of =
        |n: &ContainerNode| n.kind == NodeKind::CharDevice && wrong(&n.path, n.major, n.minor, majors, uvm).is_some();
    let broken: Vec<&ContainerNode> = devices.iter().filter(|node| of(node)).collect();
    let Some(first) = broken.first().and_then(|n| wrong(&n.path, n.major, n.minor, majors, uvm)) else {
        return Ok(Outcome::Pass);
    };
    if uvm && compute(facts)? == Compute::Unwanted {
        return not_applicable();
    }
    let nodes = facts.host.device_nodes.seen();
    let machine_too = facts.place != Place::Healthcheck
        && nodes.is_some_and(|nodes| nodes.get(first.node).is_some_and(|node| node.major != first.wanted));
    let only: &'static [Action] = match container.gpu_given.known()? {
        _ if machine_too => &[Action::LoadModule],
        Given::Cdi => &[Action::RegenerateCdi],
        _ => &[Action::PassGpu],
    };
    failure(check, 0, weight(facts, &broken, devices)?, &first)
        .only(only)
        .saw("container.devices", first.seen(), "the container's /dev")
        .found()
}

fn on_machine(host: &Host, majors: &Majors, check: &'static Check, uvm: bool) -> Judgement {
    let nodes = host.device_nodes.known()?;
    let chars = nodes.iter().filter(|(_, node)| node.kind == NodeKind::CharDevice);
    let broken: Vec<Wrong<'_>> =
        chars.filter_map(|(path, node)| wrong(path, node.major, node.minor, majors, uvm)).collect();
    if let Some(first) = broken.first() {
        let gpus = |paths: &mut dyn Iterator<Item = &str>| paths.filter(|path| role(path) == Role::Gpu).count();
        let wrong_gpus = gpus(&mut broken.iter().map(|w| w.node));
        let certain = broken.iter().any(|w| matches!(role(w.node), Role::Control | Role::Uvm))
            || (wrong_gpus > 0 && wrong_gpus == gpus(&mut nodes.keys().map(String::as_str)));
        return failure(check, 1, if certain { Severity::Error } else { Severity::Warning }, first)
            .only(&[Action::LoadModule])
            .saw("host.device_nodes", first.seen(), "/dev")
            .found();
    }
    let specs = host.cdi.seen().map(Vec::as_slice).unwrap_or_default();
    let Some((spec, first)) = specs.iter().find_map(|spec| Some((spec, wrong_in(spec, majors, uvm)?))) else {
        return Ok(Outcome::Pass);
    };
    // Other ways than this specification take the number from the node.
    let severity = if legacy_way(host) { Severity::Warning } else { Severity::Error };
    failure(check, 2, severity, &first)
        .foreign("spec", &spec.path)
        .only(&[Action::RegenerateCdi])
        .saw("host.cdi", first.seen(), &spec.path)
        .found()
}

/// A wrong number that a specification records; most record none and take the node's.
fn wrong_in<'a>(spec: &'a CdiSpec, majors: &Majors, uvm: bool) -> Option<Wrong<'a>> {
    let mut nodes = spec.nodes.iter().chain(spec.devices.iter().flat_map(|device| &device.nodes));
    let recorded = |node: &CdiNode| node.major.filter(|major| *major != 0);
    nodes.find_map(|n| wrong(&n.path, recorded(n)?, n.minor.unwrap_or(0), majors, uvm))
}

fn failure(check: &'static Check, message: usize, severity: Severity, wrong: &Wrong<'_>) -> Failure {
    Failure::new(severity, check.messages[message])
        .arg("node", plain(wrong.node))
        .arg("found", format!("{}:{}", wrong.major, wrong.minor))
        .arg("wanted", wrong.wanted)
        .saw("host.majors", wrong.wanted, "/proc/devices")
}

fn not_a_device(facts: &Facts<'_>) -> Judgement {
    if subject(facts)?.is_none() {
        return not_applicable();
    }
    let devices = facts.container.devices.known()?;
    let broken: Vec<&ContainerNode> = devices.iter().filter(|node| node.kind != NodeKind::CharDevice).collect();
    let Some(first) = broken.first() else { return Ok(Outcome::Pass) };
    let kind = match first.kind {
        NodeKind::CharDevice => "a character device",
        NodeKind::BlockDevice => "a block device",
        NodeKind::File => "a plain file",
        NodeKind::Directory => "only a folder",
        NodeKind::Fifo => "a pipe",
        NodeKind::Socket => "a socket",
    };
    let names = list(broken.iter().map(|node| node.path.as_str()));
    Failure::new(weight(facts, &broken, devices)?, CHECKS[2].messages[0])
        .arg("node", &names)
        .arg("kind", kind)
        .saw("container.devices", format!("{names}: {kind}"), "the container's /dev")
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::{LegacyState, Sandbox};
    use crate::model::host::CdiDevice;

    fn renumbered(mut world: World, path: &str, major: u32, of_host: bool) -> World {
        world.node(path).major = major;
        if let (true, Observed::Known(nodes)) = (of_host, &mut world.host.device_nodes) {
            nodes.get_mut(path).unwrap().major = major;
        }
        world
    }

    fn machine_with(path: &str, major: u32) -> World {
        let mut world = World::machine(2);
        let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
        nodes.get_mut(path).unwrap().major = major;
        world
    }

    #[test]
    fn an_old_major_of_uvm_in_the_container() {
        let failure = renumbered(World::cdi(1), UVM, 507, false).short("uvm-major-mismatch");
        assert_eq!((failure.severity, failure.only), (Severity::Error, &[Action::RegenerateCdi][..]));
        let failure = renumbered(World::legacy(1, LegacyState::HasRun), UVM, 507, true).short("uvm-major-mismatch");
        assert_eq!((failure.severity, failure.only), (Severity::Error, &[Action::LoadModule][..]));
        World::cdi(1).silent("uvm-major-mismatch");
        renumbered(World::cdi(1), UVM, 507, false).silent("node-number-mismatch");
    }

    #[test]
    fn only_cuda_work_minds_it() {
        let mut world = renumbered(World::cdi(1), UVM, 507, false);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "graphics");
        world.silent("uvm-major-mismatch");
        let mut raw = renumbered(World::cdi(1), UVM, 507, false);
        raw.container.gpu_given = Observed::Known(Given::RawDevices);
        assert_eq!(raw.short("uvm-major-mismatch").severity, Severity::Warning);
    }

    #[test]
    fn a_module_that_is_not_loaded_has_no_number_to_compare() {
        let mut world = renumbered(World::cdi(1), UVM, 507, false);
        let Observed::Known(majors) = &mut world.host.majors else { panic!() };
        majors.0.remove("nvidia-uvm");
        world.silent("uvm-major-mismatch");
        world.host.majors = unseen();
        world.unknown("uvm-major-mismatch");
        world.unknown("node-number-mismatch");
    }

    #[test]
    fn an_old_node_on_the_machine() {
        assert_eq!(machine_with(UVM, 239).short("uvm-major-mismatch").severity, Severity::Error);
        assert_eq!(machine_with("/dev/nvidiactl", 42).short("node-number-mismatch").severity, Severity::Error);
        assert_eq!(machine_with("/dev/nvidia1", 42).short("node-number-mismatch").severity, Severity::Warning);
        World::machine(2).silent("uvm-major-mismatch");
        World::machine(2).silent("node-number-mismatch");
    }

    #[test]
    fn an_old_number_in_a_specification() {
        let mut world = World::machine(1);
        let node = |major| CdiNode { path: UVM.into(), major, ..CdiNode::default() };
        let with = |major| {
            let device = CdiDevice { name: "all".into(), nodes: vec![node(major)] };
            Observed::Known(vec![CdiSpec {
                path: "/etc/cdi/nvidia.yaml".into(),
                devices: vec![device],
                ..CdiSpec::default()
            }])
        };
        for (major, fires) in [(None, false), (Some(0), false), (Some(511), false), (Some(510), true)] {
            world.host.cdi = with(major);
            if fires {
                assert_eq!(world.short("uvm-major-mismatch").severity, Severity::Warning, "{major:?}");
                world.host.engines.clear();
                assert_eq!(world.short("uvm-major-mismatch").severity, Severity::Error);
            } else {
                world.silent("uvm-major-mismatch");
            }
        }
    }

    #[test]
    fn other_numbers_weigh_by_what_hangs_on_them() {
        for (path, severity) in [
            ("/dev/nvidiactl", Severity::Error),
            ("/dev/nvidia0", Severity::Warning),
            ("/dev/nvidia-modeset", Severity::Warning),
        ] {
            assert_eq!(
                renumbered(World::cdi(2), path, 42, false).short("node-number-mismatch").severity,
                severity,
                "{path}"
            );
        }
        assert_eq!(
            renumbered(World::cdi(1), "/dev/nvidia0", 42, false).short("node-number-mismatch").severity,
            Severity::Error
        );
        World::cdi(1).silent("node-number-mismatch");
    }

    #[test]
    fn a_node_under_another_name_keeps_its_number() {
        let mut world = World::cdi(1);
        world.node("/dev/nvidia0").minor = 1;
        world.silent("node-number-mismatch");
    }

    #[test]
    fn what_is_no_device() {
        let with = |path: &str, kind| {
            let mut world = World::cdi(2);
            world.node(path).kind = kind;
            world
        };
        assert_eq!(with("/dev/nvidiactl", NodeKind::Directory).short("node-not-a-device").severity, Severity::Error);
        assert_eq!(with("/dev/nvidia1", NodeKind::Fifo).short("node-not-a-device").severity, Severity::Warning);
        assert_eq!(with(UVM_TOOLS, NodeKind::File).short("node-not-a-device").severity, Severity::Warning);
        World::cdi(2).silent("node-not-a-device");
        let mut sandboxed = with("/dev/nvidiactl", NodeKind::Directory);
        sandboxed.container.sandbox = Some(Sandbox::Kata);
        sandboxed.unknown("node-not-a-device");
    }
}
