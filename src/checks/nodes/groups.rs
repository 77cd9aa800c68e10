//! Nodes whose group is left behind on the way into the container.

use crate::checks::not_applicable;
use crate::model::container::{Access, ContainerNode, Given, Identity, Moment, Refusal, SpecDevice};
use crate::model::host::Node;
use crate::model::{
    Action, Check, Container, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown,
};

use super::expect::{Compute, compute, judgeable};
use super::role::{Role, list, role, weight};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "device-gid-lost",
    title: "the group that owns the node does not reach the container",
    why: "On the machine a group may open the node; the CDI specification passes its mode but not its group, so users who are not root are refused.",
    messages: &[
        "{node}: mode {mode}, group {gid} on the machine, but {owner} in the container, whose user {user} may not open it",
        "CDI specification {spec} gives {node} mode {mode} without its group {gid}: users who are not root may not open it",
    ],
    remedy: &[
        Step {
            action: Action::RegenerateCdi,
            text: "Make the CDI specification anew with a toolkit that writes the group (1.19 or newer).",
            command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
        },
        Step { action: Action::ChangeEnvironment, text: "Run the container as root.", command: None },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Host],
    judge: gid_lost,
}];

fn gid_lost(facts: &Facts<'_>) -> Judgement {
    match facts.place {
        Place::Host => gid_lost_on_machine(facts.host),
        Place::Hook => gid_lost_in_container(facts),
        Place::Image | Place::Healthcheck | Place::Status => not_applicable(),
    }
}

fn gid_lost_on_machine(host: &Host) -> Judgement {
    let specs = host.cdi.known()?;
    if specs.is_empty() {
        return not_applicable();
    }
    let nodes = host.device_nodes.known()?;
    for spec in specs {
        for node in spec.nodes.iter().chain(spec.devices.iter().flat_map(|device| &device.nodes)) {
            let path = node.host_path.as_ref().unwrap_or(&node.path);
            let Some(on_host) = nodes.get(path).filter(|on_host| by_group(on_host) != 0) else { continue };
            let (Some(mode), None | Some(0)) = (node.mode, node.gid) else { continue };
            if mode & by_group(on_host) != by_group(on_host) {
                return Failure::new(Severity::Warning, CHECKS[0].messages[1])
                    .foreign("spec", &spec.path)
                    .arg("node", path)
                    .arg("mode", format!("{mode:04o}"))
                    .arg("gid", on_host.gid)
                    .saw("host.cdi", format!("{path}: mode {mode:04o}, no gid"), &spec.path)
                    .saw(
                        "host.device_nodes",
                        format!("{path}: {:04o} {}:{}", on_host.mode, on_host.uid, on_host.gid),
                        "/dev",
                    )
                    .found();
            }
        }
    }
    Ok(Outcome::Pass)
}

/// What the group may do with the node, of reading (4) and writing (2), and others may not.
fn by_group(node: &Node) -> u32 {
    if node.gid == 0 { 0 } else { node.mode >> 3 & 0o6 & !node.mode }
}

fn gid_lost_in_container(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    if matches!(container.gpu_given.known()?, Given::None | Given::Vm | Given::Wsl) || container.builder.is_some() {
        return not_applicable();
    }
    judgeable(container)?;
    if container.rootless || container.in_user_namespace()? {
        // There the machine's own nodes are bound, and whether the group arrives is another question.
        return not_applicable();
    }
    let on_host = facts.host.device_nodes.known()?;
    let candidates: Vec<(&SpecDevice, &Node)> = container
        .spec_devices
        .known()?
        .items
        .iter()
        .filter_map(|device| Some((device, on_host.get(&device.path)?)))
        .filter(|(device, node)| device.mode.is_some() && by_group(node) != 0 && device.gid.unwrap_or(0) != node.gid)
        .collect();
    if candidates.is_empty() {
        return Ok(Outcome::Pass);
    }
    let user = container.user.known()?;
    let devices = container.devices.known()?;
    let granted = |path: &str| devices.iter().any(|node| node.path == path && node.access == Access::Granted);
    let lost: Vec<(&SpecDevice, &Node)> = candidates
        .into_iter()
        .filter(|(device, node)| !granted(&device.path) && !may(user, device, node.mode >> 3 & 0o6))
        .collect();
    let Some((first, node)) = lost.first() else { return Ok(Outcome::Pass) };
    // A program that raises its privileges may open what its user may not.
    let may_rise = container.privileged_entrypoint == Some(true);
    let certain: Vec<(&SpecDevice, &Node)> =
        lost.iter().copied().filter(|(device, _)| is_certain(container, devices, &device.path)).collect();
    let severity = if may_rise || certain.is_empty() { Severity::Warning } else { severity(facts, &certain)? };
    Failure::new(severity, CHECKS[0].messages[0])
        .arg("node", list(lost.iter().map(|(device, _)| device.path.as_str())))
        .arg("mode", format!("{:04o}", node.mode))
        .arg("gid", node.gid)
        .arg(
            "owner",
            format!("{:04o} {}:{}", first.mode.unwrap_or(0o666), first.uid.unwrap_or(0), first.gid.unwrap_or(0)),
        )
        .arg("user", format!("{}:{}", user.uid, user.gid))
        .saw("container.spec_devices", format!("{} without group {}", first.path, node.gid), "linux.devices")
        .saw("host.device_nodes", format!("{}: {:04o} {}:{}", first.path, node.mode, node.uid, node.gid), "/dev")
        .found()
}

/// The user is kept out: the kernel has said so, or nothing has started and the spec is all there is. Where a
/// started container's kernel did not commit itself, its program may rise, or the node be another's.
fn is_certain(container: &Container, devices: &[ContainerNode], path: &str) -> bool {
    container.moment == Moment::NotStarted
        || devices.iter().any(|node| node.path == path && node.access == Access::Refused(Refusal::Mode))
}

fn severity(facts: &Facts<'_>, lost: &[(&SpecDevice, &Node)]) -> Result<Severity, Unknown> {
    let devices = facts.container.devices.known()?;
    let needed = |path: &str| match role(path) {
        Role::Control => Ok(true),
        Role::Uvm => Ok(compute(facts)? == Compute::Wanted),
        // Every work on Jetson allocates through it.
        _ => Ok::<_, Unknown>(path == "/dev/nvmap"),
    };
    for (device, _) in lost {
        if needed(&device.path)? {
            return Ok(Severity::Error);
        }
    }
    let broken: Vec<&ContainerNode> =
        devices.iter().filter(|node| lost.iter().any(|(device, _)| device.path == node.path)).collect();
    weight(facts, &broken, devices)
}

const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;

/// The user may do this with a node as the spec has it made: the first class that matches decides.
fn may(user: &Identity, device: &SpecDevice, wanted: u32) -> bool {
    let mode = device.mode.unwrap_or(0o666);
    let gid = device.gid.unwrap_or(0);
    let bits = if user.uid == device.uid.unwrap_or(0) {
        mode >> 6
    } else if user.gid == gid || user.additional_gids.contains(&gid) {
        mode >> 3
    } else {
        mode
    };
    // What the lack of a `capabilities` object means depends on the runtime: to root it may mean all. Who is not
    // root keeps through execve only what is ambient, which no runtime sets unasked.
    let unsaid = if user.uid == 0 { u64::MAX } else { 0 };
    let capabilities = user.effective_after_exec().unwrap_or(unsaid);
    bits & wanted == wanted
        || capabilities & DAC_OVERRIDE != 0
        || (wanted & 0o2 == 0 && capabilities & DAC_READ_SEARCH != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{Sandbox, Stage};
    use crate::model::host::{CdiNode, CdiSpec};
    use crate::model::{Observed, Parts};

    const GID: &str = "device-gid-lost";

    /// The machine's nodes are `mode` of group 44; the spec gives them that mode and root's group, and
    /// the user is 1000.
    fn regrouped(mode: u32) -> World {
        let mut world = World::cdi(1).with_mode(mode);
        let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
        for node in nodes.values_mut() {
            node.gid = 44;
        }
        let Observed::Known(spec) = &mut world.container.spec_devices else { panic!() };
        for device in &mut spec.items {
            (device.mode, device.uid, device.gid) = (Some(mode), Some(0), Some(0));
        }
        let Observed::Known(devices) = &mut world.container.devices else { panic!() };
        for node in devices.iter_mut() {
            node.access = Access::default();
        }
        world.container.moment = Moment::NotStarted;
        let Observed::Known(user) = &mut world.container.user else { panic!() };
        (user.uid, user.gid, user.additional_gids) = (1000, 1000, vec![44]);
        world
    }

    fn user(world: &mut World) -> &mut Identity {
        let Observed::Known(user) = &mut world.container.user else { panic!() };
        user
    }

    #[test]
    fn a_group_that_stays_behind_locks_its_users_out() {
        assert_eq!(regrouped(0o660).short(GID).severity, Severity::Error);
        assert_eq!(regrouped(0o440).short(GID).severity, Severity::Error);
        regrouped(0o666).silent(GID);
        let mut kept = regrouped(0o660);
        let Observed::Known(spec) = &mut kept.container.spec_devices else { panic!() };
        for device in &mut spec.items {
            device.gid = Some(44);
        }
        kept.silent(GID);
    }

    #[test]
    fn who_may_open_the_node_anyhow_is_left_alone() {
        let mut root = regrouped(0o660);
        user(&mut root).uid = 0;
        root.silent(GID);
        let mut able = regrouped(0o660);
        let sets = user(&mut able).capabilities.as_mut().unwrap();
        (sets.ambient, sets.inheritable) = (DAC_OVERRIDE, DAC_OVERRIDE);
        able.silent(GID);
        let mut unsaid = regrouped(0o660);
        user(&mut unsaid).capabilities = None;
        assert_eq!(unsaid.short(GID).severity, Severity::Error);
        user(&mut unsaid).uid = 0;
        unsaid.silent(GID);
        let mut member = regrouped(0o660);
        user(&mut member).additional_gids.push(0);
        member.silent(GID);
        let mut answered = regrouped(0o660);
        let Observed::Known(devices) = &mut answered.container.devices else { panic!() };
        for node in devices.iter_mut() {
            node.access = Access::Granted;
        }
        answered.silent(GID);
        let mut mapped = regrouped(0o660);
        mapped.container.rootless = true;
        mapped.silent(GID);
    }

    #[test]
    fn after_a_start_only_the_kernel_is_certain() {
        let mut world = regrouped(0o660);
        world.container.moment = Moment::Hook(Stage::CreateRuntime);
        assert_eq!(world.short(GID).severity, Severity::Warning);
        for refusal in [Refusal::Cgroup, Refusal::Mode] {
            world.node("/dev/nvidiactl").access = Access::Refused(refusal);
            let certain = if refusal == Refusal::Mode { Severity::Error } else { Severity::Warning };
            assert_eq!(world.short(GID).severity, certain);
        }
        world.container.privileged_entrypoint = Some(true);
        assert_eq!(world.short(GID).severity, Severity::Warning);
    }

    #[test]
    fn jetson_without_its_allocator() {
        let mut world = regrouped(0o440);
        world.container.gpu_given = Observed::Known(Given::Tegra);
        let path = "/dev/nvmap".to_owned();
        let device = SpecDevice { path: path.clone(), kind: 'c', mode: Some(0o440), ..SpecDevice::default() };
        world.container.spec_devices = Observed::Known(Parts::whole(vec![device]));
        world.container.devices = Observed::default();
        let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
        nodes.insert(path, Node { mode: 0o440, gid: 44, ..Node::default() });
        assert_eq!(world.short(GID).severity, Severity::Error);
        world.container.sandbox = Some(Sandbox::Sysbox);
        world.unknown(GID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = regrouped(0o660);
        world.container.user = unseen();
        world.unknown(GID);
        let mut machine = World::machine(1);
        machine.host.cdi = unseen();
        machine.unknown(GID);
    }

    #[test]
    fn a_specification_without_the_group_is_a_warning() {
        let mut world = World::machine(1).with_mode(0o660);
        let Observed::Known(nodes) = &mut world.host.device_nodes else { panic!() };
        for node in nodes.values_mut() {
            node.gid = 44;
        }
        let with = |mode, gid| {
            let node = CdiNode { path: "/dev/nvidia0".into(), mode, gid, ..CdiNode::default() };
            Observed::Known(vec![CdiSpec {
                path: "/etc/cdi/nvidia.yaml".into(),
                nodes: vec![node],
                ..CdiSpec::default()
            }])
        };
        world.host.cdi = with(Some(0o660), None);
        assert_eq!(world.short(GID).severity, Severity::Warning);
        for (mode, gid) in [(Some(0o660), Some(44)), (Some(0o666), None), (None, None)] {
            world.host.cdi = with(mode, gid);
            world.silent(GID);
        }
    }
}
