//! May the container's user open the nodes?

use crate::checks::not_applicable;
use crate::model::container::{Access, ContainerNode, DeviceRule, Given, Identity, Refusal};
use crate::model::host::Inside;
use crate::model::{
    Action, Check, Container, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown,
};

use super::expect::{Compute, compute, judgeable, set_rules, subject};
use super::here;
use super::role::{Role, list, plain, role, weight};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "node-access-refused",
        title: "the container's user may not open the GPU's nodes",
        why: "The kernel refuses the container's program the device, so NVML and CUDA find no GPU although everything is in place.",
        messages: &["the container's user may not read and write {node}: {reason}", here::REFUSED],
        remedy: &[
            Step {
                action: Action::PassGpu,
                text: "Give the node as a device (--gpus, CDI or --device), which also sets the rule; a volume does not.",
                command: None,
            },
            Step {
                action: Action::FixPermissions,
                text: "Run as a user of the node's group (--group-add), or let everybody use the nodes.",
                command: Some("chmod a+rw {node}"),
            },
            Step {
                action: Action::RegenerateCdi,
                text: "Then make the CDI specification anew, which has the node's mode in it.",
                command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Mount what holds the node without the option nodev.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host, Place::Healthcheck],
        judge: refused,
    },
    Check {
        id: "device-rules-missing",
        title: "no device rule allows the GPU's nodes",
        why: "The spec denies all devices but those it lists; a node without a rule is there and cannot be opened.",
        messages: &["no device rule of the spec allows {node} (c {number}), and all others are denied"],
        remedy: &[Step {
            action: Action::PassGpu,
            text: "Give the node as a device (--gpus, CDI or --device), which also sets the rule; a volume does not.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook],
        judge: rules_missing,
    },
];

fn refused(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host {
        return here::refused(facts);
    }
    let container = facts.container;
    let Some(devices) = asked(facts)? else { return not_applicable() };
    // That nobody serves a node, or that it hangs, is the driver's fault; from inside a container, what its device
    // cgroup refuses was allowed once.
    let counts = |refusal| match refusal {
        Refusal::NoDriver | Refusal::Hangs => false,
        Refusal::Cgroup => facts.place != Place::Healthcheck,
        Refusal::Mode | Refusal::NoDev => true,
    };
    let is_refused = |node: &&ContainerNode| matches!(node.access, Access::Refused(refusal) if counts(refusal));
    let broken: Vec<&ContainerNode> = devices.iter().filter(is_refused).collect();
    let refusal = |node: &ContainerNode| match node.access {
        Access::Refused(refusal) => Some(refusal),
        _ => None,
    };
    // The node that every work needs is named before one that few do.
    let needed = broken.iter().filter(|node| matches!(role(&node.path), Role::Control | Role::Gpu));
    let Some((first, refusal)) = needed.chain(&broken).find_map(|node| Some((*node, refusal(node)?))) else {
        return unanswered(facts, devices);
    };
    let (reason, only): (String, &'static [Action]) = match refusal {
        Refusal::Cgroup | Refusal::NoDriver | Refusal::Hangs => {
            (format!("no rule of the device cgroup allows c {}:{}", first.major, first.minor), &[Action::PassGpu])
        }
        Refusal::NoDev => ("its mount has the option nodev".to_owned(), &[Action::ConfigureEngine]),
        Refusal::Mode if container.gpu_given.seen() == Some(&Given::Cdi) => {
            (by_mode(first, container), &[Action::FixPermissions, Action::RegenerateCdi])
        }
        Refusal::Mode => (by_mode(first, container), &[Action::FixPermissions]),
    };
    // A program that raises its privileges may get what its user may not have; and what is refused to the user of a
    // health check is nothing to programs that another user runs.
    let others = container.inside.as_ref().is_some_and(|inside| inside.has_other_users);
    let may_rise = refusal == Refusal::Mode && (container.privileged_entrypoint == Some(true) || others);
    let severity = if may_rise { Severity::Warning } else { severity(facts, &broken, devices)? };
    let names = list(broken.iter().map(|node| node.path.as_str()));
    Failure::new(severity, CHECKS[0].messages[0])
        .arg("node", plain(&first.path))
        .arg("reason", &reason)
        .only(only)
        .saw("container.devices", format!("{names}: refused"), "the kernel's answer")
        .saw("container.user", user(container), "process.user")
        .found()
}

/// The nodes whose access the kernel was asked for; `None`: nobody asked, or none is there yet.
fn asked<'a>(facts: &Facts<'a>) -> Result<Option<&'a [ContainerNode]>, Unknown> {
    let container = facts.container;
    let tegra = *container.gpu_given.known()? == Given::Tegra;
    if tegra {
        judgeable(container)?;
    }
    if container.moment.is_foretold() || !(tegra || subject(facts)?.is_some()) {
        return Ok(None);
    }
    let devices = container.devices.known()?;
    // What the legacy hook has still to make nobody can open yet.
    let waiting =
        container.legacy_still_to_run() && devices.iter().all(|node| matches!(node.access, Access::Unknown(_)));
    Ok((!waiting).then_some(devices.as_slice()))
}

/// No node is refused; but a needed one of which the kernel did not say leaves the question open.
fn unanswered(facts: &Facts<'_>, devices: &[ContainerNode]) -> Judgement {
    let still_to_come = facts.container.legacy_still_to_run();
    for node in devices.iter().filter(|node| node.looked_at || !still_to_come) {
        if let (true, Access::Unknown(reason)) = (is_needed(facts, node)?, &node.access) {
            return Err(Unknown::new("container.devices", &node.path, reason));
        }
    }
    Ok(Outcome::Pass)
}

fn is_needed(facts: &Facts<'_>, node: &ContainerNode) -> Result<bool, Unknown> {
    Ok(match role(&node.path) {
        Role::Control | Role::Gpu => true,
        Role::Uvm => compute(facts)? != Compute::Unwanted,
        Role::Cap | Role::Other => false,
    })
}

fn severity(facts: &Facts<'_>, broken: &[&ContainerNode], all: &[ContainerNode]) -> Result<Severity, Unknown> {
    if *facts.container.gpu_given.known()? == Given::Tegra {
        // Every work on Jetson allocates through it.
        let certain = broken.len() == all.len() || broken.iter().any(|node| node.path == "/dev/nvmap");
        return Ok(if certain { Severity::Error } else { Severity::Warning });
    }
    weight(facts, broken, all)
}

fn by_mode(node: &ContainerNode, container: &Container) -> String {
    let bits = format!("mode {:04o} {}:{}, {}", node.mode & 0o7777, node.uid, node.gid, user(container));
    if node.mode & 0o6 == 0o6 {
        format!("{bits}; so a folder on its path or an access list stands in the way")
    } else {
        bits
    }
}

fn user(container: &Container) -> String {
    let Some(Identity { uid, gid, additional_gids, .. }) = container.user.seen() else {
        return "user unknown".to_owned();
    };
    let groups: Vec<String> = additional_gids.iter().take(6).map(u32::to_string).collect();
    let more = if additional_gids.len() > 6 { ",..." } else { "" };
    if groups.is_empty() {
        format!("user {uid}:{gid}")
    } else {
        format!("user {uid}:{gid} groups {}{more}", groups.join(","))
    }
}

fn rules_missing(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let unenforced = container.rootless || without_device_controller(facts.host);
    if subject(facts)?.is_none() || *container.gpu_given.known()? == Given::LegacyHook || unenforced {
        // The legacy hook adds rules of its own; without root runtimes leave the device controller alone.
        return not_applicable();
    }
    let devices = container.devices.known()?;
    let asked: Vec<&ContainerNode> = devices.iter().filter(|node| matches!(node.access, Access::Unknown(_))).collect();
    if asked.is_empty() {
        // The kernel was asked, which is worth more than its rules in the spec.
        return not_applicable();
    }
    let rules = set_rules(container)?;
    if !rules.iter().any(DeviceRule::denies_all) {
        return Ok(Outcome::Pass);
    }
    let broken: Vec<&ContainerNode> = asked.into_iter().filter(|node| !allowed(rules, node)).collect();
    let Some(first) = broken.first() else { return Ok(Outcome::Pass) };
    let names = list(broken.iter().map(|node| node.path.as_str()));
    Failure::new(weight(facts, &broken, devices)?, CHECKS[1].messages[0])
        .arg("node", &names)
        .arg("number", format!("{}:{}", first.major, first.minor))
        .saw("container.rules", format!("{} rules, none for {names}", rules.len()), "linux.resources.devices")
        .found()
}

/// This machine is in a user namespace, as an unprivileged LXC container is: runtimes in there set no rules.
pub(super) fn without_device_controller(host: &Host) -> bool {
    host.in_user_namespace || host.inside == Some(Inside::UnprivilegedLxc)
}

/// MIG's capability nodes are only read.
fn allowed(rules: &[DeviceRule], node: &ContainerNode) -> bool {
    if role(&node.path) != Role::Cap {
        return DeviceRule::allow_read_write(rules, node.major, node.minor);
    }
    let last = rules.iter().rev().find(|rule| rule.covers(node.major, node.minor) && rule.access.contains('r'));
    last.is_some_and(|rule| rule.allow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::check::Arg;
    use crate::model::container::{LegacyState, Moment, Sandbox};
    use crate::model::{Observed, Parts};

    const ACCESS: &str = "node-access-refused";
    const RULES: &str = "device-rules-missing";

    fn refused_by(mut world: World, path: &str, refusal: Refusal) -> World {
        world.node(path).access = Access::Refused(refusal);
        world
    }

    fn reason(failure: &Failure) -> &str {
        match failure.args.iter().find(|(name, _)| *name == "reason") {
            Some((_, Arg::Ours(text))) => text,
            other => panic!("{other:?}"),
        }
    }

    fn not_asked(mut world: World) -> World {
        let Observed::Known(devices) = &mut world.container.devices else { panic!() };
        for node in devices.iter_mut() {
            node.access = Access::default();
        }
        world
    }

    #[test]
    fn a_node_that_is_needed_is_named_first() {
        let mut world = World::cdi(1);
        let Observed::Known(devices) = &mut world.container.devices else { panic!() };
        devices.sort_by_key(|node| node.path.clone());
        for node in devices.iter_mut() {
            node.access = Access::Refused(Refusal::Mode);
        }
        let failure = world.failure(ACCESS);
        let node = failure.args.iter().find(|(name, _)| *name == "node");
        assert!(
            matches!(node, Some((_, Arg::Ours(path))) if path.starts_with("/dev/nvidia0") || path == "/dev/nvidiactl"),
            "{node:?}"
        );
    }

    #[test]
    fn the_kernels_no_is_explained() {
        let mut world = refused_by(World::cdi(1), "/dev/nvidia0", Refusal::Mode);
        let node = world.node("/dev/nvidia0");
        (node.mode, node.gid) = (0o660, 44);
        let Observed::Known(user) = &mut world.container.user else { panic!() };
        (user.uid, user.gid, user.additional_gids) = (1000, 1000, vec![1000]);
        let failure = world.short(ACCESS);
        assert_eq!(failure.severity, Severity::Error);
        assert_eq!(reason(&failure), "mode 0660 0:44, user 1000:1000 groups 1000");
        // a specification has the mode in it, a bare device has not
        assert!(failure.only.contains(&Action::RegenerateCdi));
        let mut bare = world.clone();
        bare.container.gpu_given = Observed::Known(Given::RawDevices);
        assert_eq!(bare.failure(ACCESS).only, [Action::FixPermissions]);
        world.container.privileged_entrypoint = Some(true);
        assert_eq!(world.short(ACCESS).severity, Severity::Warning);

        let failure = refused_by(World::cdi(2), "/dev/nvidiactl", Refusal::Cgroup).short(ACCESS);
        assert_eq!(failure.severity, Severity::Error);
        assert_eq!(reason(&failure), "no rule of the device cgroup allows c 195:255");
        assert_eq!(failure.only, [Action::PassGpu]);
        let failure = refused_by(World::cdi(2), "/dev/nvidia1", Refusal::NoDev).short(ACCESS);
        assert_eq!(failure.severity, Severity::Warning);
    }

    #[test]
    fn what_the_kernel_grants_passes_and_what_it_does_not_say_is_unknown() {
        World::cdi(1).silent(ACCESS);
        not_asked(World::cdi(1)).unknown(ACCESS);
        let mut tools = World::cdi(1);
        tools.node("/dev/nvidia-uvm-tools").access = Access::default();
        tools.silent(ACCESS);
        let mut sandboxed = World::cdi(1);
        sandboxed.container.sandbox = Some(Sandbox::Gvisor);
        sandboxed.unknown(ACCESS);
        let mut lost = World::cdi(1);
        lost.container.devices = unseen();
        lost.unknown(ACCESS);
    }

    #[test]
    fn nobody_asks_before_the_nodes_are_there() {
        let mut world = not_asked(World::cdi(1));
        world.container.moment = Moment::NotStarted;
        world.silent(ACCESS);
        let mut waiting = World::legacy(1, LegacyState::StillToRun);
        waiting.container.devices = not_asked(World::cdi(1)).container.devices;
        waiting.container.moment = World::cdi(1).container.moment;
        waiting.silent(ACCESS);
        refused_by(World::legacy(1, LegacyState::HasRun), "/dev/nvidiactl", Refusal::Cgroup).short(ACCESS);
    }

    #[test]
    fn jetson_hangs_on_its_allocator() {
        let mut world = World::cdi(1);
        world.container.gpu_given = Observed::Known(Given::Tegra);
        let node = |path: &str, access| ContainerNode { path: path.into(), access, ..ContainerNode::default() };
        let no = || Access::Refused(Refusal::Mode);
        world.container.devices =
            Observed::Known(vec![node("/dev/nvmap", no()), node("/dev/nvhost-gpu", Access::Granted)]);
        assert_eq!(world.short(ACCESS).severity, Severity::Error);
        world.container.devices =
            Observed::Known(vec![node("/dev/nvmap", Access::Granted), node("/dev/nvhost-vic", no())]);
        assert_eq!(world.short(ACCESS).severity, Severity::Warning);
    }

    #[test]
    fn rules_speak_only_where_the_kernel_does_not() {
        let denied = |world: World| {
            let mut world = not_asked(world);
            let Observed::Known(rules) = &mut world.container.rules else { panic!() };
            rules.items.insert(0, DeviceRule { kind: 'a', access: "rwm".into(), ..DeviceRule::default() });
            world
        };
        denied(World::cdi(1)).silent(RULES);
        let mut world = denied(World::cdi(1));
        let Observed::Known(rules) = &mut world.container.rules else { panic!() };
        rules.items.retain(|rule| rule.minor != Some(255));
        assert_eq!(world.short(RULES).severity, Severity::Error);

        world.container.rootless = true;
        world.silent(RULES);
        world.container.rootless = false;
        let mut namespaced = world.clone();
        namespaced.host.in_user_namespace = true;
        namespaced.silent(RULES);
        world.host.inside = Some(Inside::UnprivilegedLxc);
        world.silent(RULES);
        world.host.inside = None;
        let Observed::Known(devices) = &mut world.container.devices else { panic!() };
        for node in devices.iter_mut() {
            node.access = Access::Granted;
        }
        world.silent(RULES);
        denied(World::legacy(1, LegacyState::HasRun)).silent(RULES);
    }

    #[test]
    fn rules_that_are_not_there_or_not_readable_prove_nothing() {
        let mut world = not_asked(World::cdi(1));
        world.container.rules = Observed::Known(Parts::default());
        world.unknown(RULES);
        world.container.rules = Observed::Known(Parts { items: Vec::new(), unread: vec![Unknown::new("a", "b", "c")] });
        world.unknown(RULES);
        let all = DeviceRule { allow: true, kind: 'a', access: "rwm".into(), ..DeviceRule::default() };
        world.container.rules = Observed::Known(Parts::whole(vec![all]));
        world.silent(RULES);
    }

    #[test]
    fn capability_nodes_are_only_read() {
        let rules = [DeviceRule { allow: true, kind: 'c', major: Some(510), minor: None, access: "r".into() }];
        let node = |path: &str| ContainerNode { path: path.into(), major: 510, minor: 21, ..ContainerNode::default() };
        assert!(allowed(&rules, &node("/dev/nvidia-caps/nvidia-cap21")));
        assert!(!allowed(&rules, &node("/dev/nvidia-uvm")));
    }
}
