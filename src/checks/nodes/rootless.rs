//! Nodes that belong to a group which a rootless container leaves behind.

use crate::checks::not_applicable;
use crate::model::container::{Access, ContainerNode, IdMapping, Refusal};
use crate::model::host::{EngineKind, Node};
use crate::model::{Action, Check, Container, Facts, Failure, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::expect::{Compute, Subject, compute, subject};
use super::role::{Role, list, role, weight};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "rootless-group-not-kept",
    title: "the nodes belong to a group that does not reach the rootless container",
    why: "In a user namespace the group of the nodes is not mapped and the caller's own groups are dropped, so the kernel refuses every node.",
    messages: &[
        "{node}: mode {mode}, group {gid}, which the container's user namespace does not map, and the caller's groups are not kept",
        "{node}: mode {mode}, group {gid}, which rootless containers have only where the caller's groups are kept",
    ],
    remedy: &[
        Step {
            action: Action::ConfigureEngine,
            text: "Keep the caller's groups (crun): podman run --group-add keep-groups, as a user of that group.",
            command: None,
        },
        Step {
            action: Action::FixPermissions,
            text: "Let everybody use the nodes.",
            command: Some("chmod a+rw /dev/nvidiactl /dev/nvidia[0-9]* /dev/nvidia-uvm"),
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Host],
    judge: group_not_kept,
}];

/// With it crun leaves the caller's supplementary groups in place. Source: crun's manual, `run.oci.keep_original_groups`.
const KEEP_GROUPS: &str = "run.oci.keep_original_groups";

fn group_not_kept(facts: &Facts<'_>) -> Judgement {
    match subject(facts)? {
        None => not_applicable(),
        Some(Subject::Machine) => on_machine(facts),
        Some(Subject::Container) => in_container(facts),
    }
}

fn on_machine(facts: &Facts<'_>) -> Judgement {
    // Where no engine was found one may lie in a user's own directories, and that is without root.
    let engines = &facts.host.engines;
    if !engines.is_empty() && !engines.iter().any(|engine| engine.kind == EngineKind::Podman) {
        return not_applicable();
    }
    let nodes = facts.host.device_nodes.known()?;
    let grouped = nodes.iter().filter(|(path, node)| is_needed(path) && only_by_group(node) && node.gid != 0);
    let grouped: Vec<(&str, &Node)> = grouped.map(|(path, node)| (path.as_str(), node)).collect();
    let Some((_, first)) = grouped.first() else { return Ok(Outcome::Pass) };
    failure(Severity::Warning, 1, &list(grouped.iter().map(|(path, _)| *path)), first).found()
}

fn in_container(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    if !container.rootless && !container.in_user_namespace()? {
        return not_applicable();
    }
    if container.annotations.known()?.get(KEEP_GROUPS).is_some_and(|value| value == "1") {
        return Ok(Outcome::Pass);
    }
    let uids = container.uid_mappings.known()?;
    let gids = container.gid_mappings.known()?;
    let devices = container.devices.known()?;
    let host = facts.host.device_nodes.known()?;
    // From within the engine's own namespace, ids that it does not map show as one that the container's may.
    let is_strange = |id| facts.host.in_user_namespace && id == IdMapping::OVERFLOW;
    let mapped = |mappings: &[IdMapping], id| !is_strange(id) && IdMapping::inward(mappings, id).is_some();
    let mut broken: Vec<(&ContainerNode, &Node)> = Vec::new();
    for node in devices.iter().filter(|node| is_needed(&node.path)) {
        let Some(on_host) = host.get(&node.path).filter(|on_host| only_by_group(on_host)) else { continue };
        let reached = mapped(uids, on_host.uid) || mapped(gids, on_host.gid);
        let unreached = match node.access {
            Access::Granted
            | Access::Refused(Refusal::Cgroup | Refusal::NoDev | Refusal::NoDriver | Refusal::Hangs) => false,
            Access::Refused(Refusal::Mode) => !reached,
            // Without a mapping of its own the namespace is the engine's, and nobody saw what that maps.
            Access::Unknown(_) => !(reached || uids.is_empty() || gids.is_empty()),
        };
        if unreached {
            broken.push((node, on_host));
        }
    }
    let Some((_, first)) = broken.first() else { return open_question(container, devices, host) };
    let nodes: Vec<&ContainerNode> = broken.iter().map(|(node, _)| *node).collect();
    let mut severity = if concerns_compute_only(&nodes) && compute(facts)? == Compute::Unwanted {
        Severity::Warning
    } else {
        weight(facts, &nodes, devices)?
    };
    let refused = nodes.iter().all(|node| matches!(node.access, Access::Refused(_)));
    if !refused && (!is_rootless(container, uids) || is_strange(first.gid)) {
        // With root's help a runtime makes nodes of its own there, which may be open to all; and whose a node
        // is, does not show from in here.
        severity = Severity::Warning;
    }
    failure(severity, 0, &list(nodes.iter().map(|node| node.path.as_str())), first)
        .saw("container.gid_mappings", format!("group {} is not mapped", first.gid), "linux.gidMappings")
        .found()
}

/// Nothing is known to be out of reach; but an engine's own namespace may map anything.
fn open_question(
    container: &Container,
    devices: &[ContainerNode],
    host: &std::collections::BTreeMap<String, Node>,
) -> Judgement {
    let unseen = container.rootless && container.gid_mappings.known()?.is_empty();
    let open = |node: &&ContainerNode| {
        matches!(node.access, Access::Unknown(_))
            && is_needed(&node.path)
            && host.get(&node.path).is_some_and(only_by_group)
    };
    match devices.iter().find(open) {
        Some(node) if unseen => {
            Err(Unknown::new("container.gid_mappings", &node.path, "the engine's own user namespace was not looked at"))
        }
        _ => Ok(Outcome::Pass),
    }
}

/// The engine runs without root. Told by the shape of the mapping too: the caller's own id alone.
fn is_rootless(container: &Container, uids: &[IdMapping]) -> bool {
    container.rootless || uids.iter().any(|mapping| mapping.size == 1 && mapping.outside != 0)
}

fn is_needed(path: &str) -> bool {
    matches!(role(path), Role::Control | Role::Gpu | Role::Uvm)
}

fn concerns_compute_only(nodes: &[&ContainerNode]) -> bool {
    nodes.iter().all(|node| role(&node.path) == Role::Uvm)
}

/// Owner and group may use it, others may not.
fn only_by_group(node: &Node) -> bool {
    node.mode & 0o060 == 0o060 && node.mode & 0o006 != 0o006
}

fn failure(severity: Severity, message: usize, names: &str, node: &Node) -> Failure {
    Failure::new(severity, CHECKS[0].messages[message])
        .arg("node", names)
        .arg("mode", format!("{:04o}", node.mode))
        .arg("gid", node.gid)
        .saw("host.device_nodes", format!("{names}: mode {:04o} {}:{}", node.mode, node.uid, node.gid), "/dev")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::host::Engine;

    #[test]
    fn it_is_told_before_the_refusal_that_it_causes() {
        let place = |id: &str| crate::checks::all().position(|(_, check)| check.id == id).unwrap();
        assert!(place("rootless-group-not-kept") < place("node-access-refused"));
    }

    const ID: &str = "rootless-group-not-kept";

    /// The nodes are 0660 of group 44, on the machine and as foretold in the container.
    fn grouped(mut world: World) -> World {
        let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
        for node in nodes.values_mut() {
            (node.mode, node.gid) = (0o660, 44);
        }
        if let Observed::Known(devices) = &mut world.container.devices {
            for node in devices {
                (node.mode, node.gid, node.access) = (0o660, 44, Access::default());
            }
        }
        world
    }

    fn mapping(outside: u32, size: u32) -> Observed<Vec<IdMapping>> {
        Observed::Known(vec![IdMapping { inside: 0, outside, size }])
    }

    fn mapped(mut world: World, outside: u32, size: u32) -> World {
        world.container.uid_mappings = mapping(outside, size);
        world.container.gid_mappings = mapping(outside, size);
        world
    }

    #[test]
    fn a_rootless_container_without_the_group() {
        let mut world = mapped(grouped(World::cdi(1)), 1000, 1);
        assert_eq!(world.short(ID).severity, Severity::Error);
        let keep = [(KEEP_GROUPS.to_owned(), "1".to_owned())].into();
        world.container.annotations = Observed::Known(keep);
        world.silent(ID);
    }

    /// `podman run --userns=keep-id`, seen from within podman's own namespace: the machine's root and group
    /// show as 65534, which the container's mapping has.
    #[test]
    fn an_id_that_the_engine_does_not_map_reaches_no_container() {
        let mut world = mapped(grouped(World::cdi(1)), 0, 65_536);
        world.container.rootless = true;
        let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
        for node in nodes.values_mut() {
            (node.uid, node.gid) = (65_534, 65_534);
        }
        world.silent(ID);
        world.host.in_user_namespace = true;
        assert_eq!(world.short(ID).severity, Severity::Warning);
        let Observed::Known(devices) = &mut world.container.devices else { panic!() };
        for node in devices.iter_mut() {
            node.access = Access::Refused(Refusal::Mode);
        }
        assert_eq!(world.short(ID).severity, Severity::Error);
    }

    #[test]
    fn with_root_behind_it_the_runtime_may_make_open_nodes() {
        let mut world = mapped(grouped(World::cdi(1)), 100_000, 65_536);
        assert_eq!(world.short(ID).severity, Severity::Warning);
        world.container.rootless = true;
        assert_eq!(world.short(ID).severity, Severity::Error);
    }

    #[test]
    fn the_kernels_answer_counts_before_the_mapping() {
        let mut world = mapped(grouped(World::cdi(1)), 1000, 1);
        let Observed::Known(devices) = &mut world.container.devices else { panic!() };
        for node in devices.iter_mut() {
            node.access = Access::Granted;
        }
        world.silent(ID);
        world.node("/dev/nvidiactl").access = Access::Refused(Refusal::Mode);
        assert_eq!(world.short(ID).severity, Severity::Error);
        world.node("/dev/nvidiactl").access = Access::Refused(Refusal::Cgroup);
        world.silent(ID);
    }

    #[test]
    fn groups_that_arrive_and_nodes_that_are_open_to_all() {
        mapped(World::cdi(1), 1000, 1).silent(ID);
        mapped(grouped(World::cdi(1)), 0, 100).silent(ID);
        grouped(World::cdi(1)).silent(ID);
    }

    #[test]
    fn an_engines_own_namespace_is_unknown() {
        let mut world = grouped(World::cdi(1));
        world.container.rootless = true;
        world.unknown(ID);
        world.container.gid_mappings = unseen();
        world.unknown(ID);
        let mut open = World::cdi(1);
        open.container.rootless = true;
        open.silent(ID);
    }

    #[test]
    fn a_machine_with_podman_is_warned() {
        let mut world = grouped(World::machine(1));
        world.silent(ID);
        let mut none = world.clone();
        none.host.engines.clear();
        assert_eq!(none.short(ID).severity, Severity::Warning);
        let podman = Engine { kind: EngineKind::Podman, ..world.host.engines[0].clone() };
        world.host.engines.push(podman.clone());
        assert_eq!(world.short(ID).severity, Severity::Warning);
        let mut open = World::machine(1);
        open.host.engines.push(podman);
        open.silent(ID);
    }
}
