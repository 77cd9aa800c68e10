//! The nodes that a container will have, by its spec and the host, before anybody made them.

use std::collections::BTreeMap;

use super::Spec;
use super::names::is_gpu_node;
use super::nodes;
use super::paths::{below, clean};
use super::request::Request;
use crate::collect::tree::Tree;
use crate::model::container::{ContainerNode, Mount, SpecDevice};
use crate::model::host::{Node, NodeKind};
use crate::model::{Host, Observed, Unknown};

type Nodes = BTreeMap<String, ContainerNode>;

/// What a runtime will do with this spec: the root file system's own nodes, mounts over them in their
/// order, the spec's devices where nothing stands yet, and what a legacy hook that is still to run binds
/// over all. Owners are those on the host, or as the spec writes them.
pub(super) fn foretell(
    spec: &Spec,
    legacy: Option<&Request>,
    host: &Host,
    rootfs: Option<&Tree>,
    rootless: bool,
) -> Observed<Vec<ContainerNode>> {
    let read = || -> Result<Vec<ContainerNode>, Unknown> {
        let mounts = mounts(spec)?;
        let mut nodes = own(&mounts, rootfs)?;
        for mount in &mounts {
            apply(mount, host, &mut nodes)?;
            if nodes.len() > nodes::MOST_NODES {
                let reason = format!("more than {} nodes", nodes::MOST_NODES);
                return Err(Unknown::new("container.devices", "the spec's mounts", reason));
            }
        }
        // runc makes no nodes below a `/dev` that is bound from the host
        if !mounts.iter().any(|mount| is_dev(mount) && is_bind(mount)) {
            devices(spec, host, rootless, &mut nodes)?;
        }
        if let Some(request) = legacy {
            inject(request, host, &mut nodes)?;
        }
        Ok(nodes.into_values().collect())
    };
    Observed::from(read())
}

/// Adds what a legacy hook that is still to run will make to what was looked at.
pub(super) fn with_legacy(looked_at: &[ContainerNode], request: &Request, host: &Host) -> Observed<Vec<ContainerNode>> {
    let mut nodes: Nodes = looked_at.iter().map(|node| (node.path.clone(), node.clone())).collect();
    Observed::from(inject(request, host, &mut nodes).map(|()| nodes.into_values().collect()))
}

pub(super) fn mounts(spec: &Spec) -> Result<Vec<Mount>, Unknown> {
    if spec.no_mounts_key {
        return Ok(Vec::new());
    }
    spec.mounts.known()?.all().map(<[_]>::to_vec)
}

/// What the image brings in its own `/dev`: it shows only where no mount covers that.
fn own(mounts: &[Mount], rootfs: Option<&Tree>) -> Result<Nodes, Unknown> {
    if mounts.iter().any(is_dev) {
        return Ok(Nodes::new());
    }
    let unseen = || Unknown::new("container.devices", "the root file system", "it was not looked at");
    let found = nodes::look(rootfs.ok_or_else(unseen)?);
    Ok(found.known()?.iter().map(|node| (node.path.clone(), node.clone())).collect())
}

fn is_dev(mount: &Mount) -> bool {
    below("/dev", &clean(&mount.destination)).is_some()
}

pub(super) fn is_bind(mount: &Mount) -> bool {
    mount.source.starts_with('/')
        && (mount.kind == "bind" || mount.options.iter().any(|option| option == "bind" || option == "rbind"))
}

fn apply(mount: &Mount, host: &Host, nodes: &mut Nodes) -> Result<(), Unknown> {
    let destination = clean(&mount.destination);
    if below(&destination, "/dev").is_none() {
        return Ok(());
    }
    nodes.retain(|path, _| below(path, &destination).is_none());
    let source = clean(&mount.source);
    if !is_bind(mount) || source == "/dev/null" {
        return Ok(());
    }
    let from_elsewhere = destination == "/dev" && below(&source, "/dev").is_none();
    if from_elsewhere || is_gpu_node(&destination) && !is_gpu_node(&source) {
        // a driver in a container has its nodes elsewhere, and a link in /dev may lead to one
        let reason = "a mount from there may bring a GPU's nodes";
        return Err(Unknown::new("container.devices", source, reason));
    }
    for (path, node) in host.device_nodes.known()? {
        let Some(path) = below(path, &source).map(|rest| format!("{destination}{rest}")) else { continue };
        if is_gpu_node(&path) {
            nodes.insert(path.clone(), of_host(path, node));
        }
    }
    Ok(())
}

fn devices(spec: &Spec, host: &Host, rootless: bool, nodes: &mut Nodes) -> Result<(), Unknown> {
    let mapped = rootless || spec.linux.uid_mappings.seen().is_some_and(|mappings| !mappings.is_empty());
    for device in spec.linux.devices.known()?.all()? {
        let path = clean(&device.path);
        if !is_gpu_node(&path) {
            continue;
        }
        if !mapped {
            let made = made(&path, device)?;
            nodes.entry(path).or_insert(made);
            continue;
        }
        // in a user namespace nobody may make nodes: the host's are bound, and count as they are there
        match host.device_nodes.known()?.get(&path) {
            Some(node) => {
                nodes.insert(path.clone(), of_host(path, node));
            }
            None if rootless => {}
            // crun as root makes it outside the namespace
            None => {
                let made = made(&path, device)?;
                nodes.entry(path).or_insert(made);
            }
        }
    }
    Ok(())
}

fn inject(request: &Request, host: &Host, nodes: &mut Nodes) -> Result<(), Unknown> {
    let present = host.device_nodes.known()?;
    for path in request.nodes(host)? {
        if let Some(node) = present.get(&path) {
            nodes.insert(path.clone(), of_host(path, node));
        }
    }
    Ok(())
}

/// As the runtimes make it: 0666 of root's unless the spec says more.
fn made(path: &str, device: &SpecDevice) -> Result<ContainerNode, Unknown> {
    let number = |n: i64| {
        u32::try_from(n).map_err(|_| Unknown::new("container.devices", path, "a device number that there is not"))
    };
    Ok(ContainerNode {
        path: path.to_owned(),
        kind: match device.kind {
            'b' => NodeKind::BlockDevice,
            'p' => NodeKind::Fifo,
            _ => NodeKind::CharDevice,
        },
        major: number(device.major)?,
        minor: number(device.minor)?,
        mode: device.mode.unwrap_or(0o666),
        uid: device.uid.unwrap_or(0),
        gid: device.gid.unwrap_or(0),
        ..ContainerNode::default()
    })
}

fn of_host(path: String, node: &Node) -> ContainerNode {
    ContainerNode {
        path,
        kind: node.kind,
        major: node.major,
        minor: node.minor,
        mode: node.mode,
        uid: node.uid,
        gid: node.gid,
        ..ContainerNode::default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::super::environment::Environment;
    use super::super::testing::{parse, plain, with_cdi, with_mount, with_nodes};
    use super::*;
    use crate::collect::tree::Kind;
    use crate::model::container::SpecHook;

    fn host() -> Host {
        let numbers = [("nvidia0", 195, 0), ("nvidia1", 195, 1), ("nvidiactl", 195, 255), ("nvidia-uvm", 511, 0)];
        let node = |major, minor| Node { major, minor, mode: 0o660, gid: 44, ..Node::default() };
        Host {
            device_nodes: Observed::Known(
                numbers.into_iter().map(|(name, major, minor)| (format!("/dev/{name}"), node(major, minor))).collect(),
            ),
            ..Host::default()
        }
    }

    fn nodes(spec: &Value, rootless: bool) -> Vec<(String, u32, u32, u32)> {
        let found = foretell(&parse(spec), None, &host(), None, rootless);
        found.known().unwrap().iter().map(|n| (n.path.clone(), n.minor, n.mode, n.gid)).collect()
    }

    #[test]
    fn spec_devices_are_made_as_they_are_written() {
        let mut spec = with_cdi(plain(&[]));
        spec["linux"]["devices"][0]["gid"] = json!(7);
        spec["linux"]["devices"][1].as_object_mut().unwrap().remove("fileMode");
        assert_eq!(
            nodes(&spec, false),
            [
                ("/dev/nvidia-uvm".to_owned(), 0, 0o666, 7),
                ("/dev/nvidia-uvm-tools".to_owned(), 1, 0o666, 0),
                ("/dev/nvidia0".to_owned(), 0, 0o666, 0),
                ("/dev/nvidiactl".to_owned(), 255, 0o666, 0),
            ]
        );
    }

    #[test]
    fn in_a_user_namespace_the_hosts_nodes_count() {
        let mut spec = with_cdi(plain(&[]));
        spec["linux"]["uidMappings"] = json!([{"containerID": 0, "hostID": 1000, "size": 1}]);
        let rootless = nodes(&spec, true);
        let paths: Vec<_> = rootless.iter().map(|n| n.0.as_str()).collect();
        assert_eq!(paths, ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"], "the host has no uvm-tools");
        assert!(rootless.iter().all(|n| (n.2, n.3) == (0o660, 44)));
        assert_eq!(nodes(&spec, false).len(), 4);
    }

    #[test]
    fn mounts_of_nodes_and_of_dev() {
        let one = with_mount(plain(&[]), "/dev/nvidia0", "/dev/nvidia1");
        assert_eq!(nodes(&one, false), [("/dev/nvidia0".to_owned(), 1, 0o660, 44)]);
        let absent = with_mount(plain(&[]), "/dev/nvidia5", "/dev/nvidia5");
        assert!(nodes(&absent, false).is_empty());
        let whole = with_mount(with_cdi(plain(&[])), "/dev", "/dev");
        assert_eq!(nodes(&whole, false).len(), 4);
        assert!(nodes(&whole, false).iter().all(|n| n.2 == 0o660), "the spec's own are not made there");
        let mut hidden = one;
        hidden["mounts"]
            .as_array_mut()
            .unwrap()
            .push(json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}));
        assert!(nodes(&hidden, false).is_empty());
    }

    #[test]
    fn what_brings_nodes_from_elsewhere_foretells_nothing() {
        let devices = |source: &str, destination: &str| {
            foretell(&parse(&with_mount(plain(&[]), destination, source)), None, &host(), None, false)
        };
        for (source, destination) in [
            ("/run/nvidia/driver/dev/nvidia0", "/dev/nvidia0"),
            ("/dev/by-name/gpu", "/dev/nvidia0"),
            ("/run/nvidia/driver/dev", "/dev"),
            ("/srv/caps", "/dev/nvidia-caps"),
        ] {
            assert!(devices(source, destination).known().is_err(), "{source} on {destination}");
        }
        for (source, destination) in
            [("/dev/null", "/dev/nvidia0"), ("/var/lib/x/shm", "/dev/shm"), ("/dev/fuse", "/dev/fuse")]
        {
            assert_eq!(devices(source, destination), Observed::Known(Vec::new()), "{source} on {destination}");
        }
    }

    #[test]
    fn the_images_own_dev_shows_where_nothing_covers_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("dev")).unwrap();
        fs::write(dir.path().join("dev/nvidia0"), "").unwrap();
        let rootfs = Tree::open(dir.path(), Kind::Image).unwrap();
        let kinds = |spec: &Value| -> Vec<NodeKind> {
            let found = foretell(&parse(spec), None, &host(), Some(&rootfs), false);
            found.known().unwrap().iter().map(|n| n.kind).collect()
        };
        let mut bare = with_nodes(plain(&[]), &[("/dev/nvidia0", 195, 0)]);
        assert_eq!(kinds(&bare), [NodeKind::CharDevice]);
        bare["mounts"] = json!([]);
        assert_eq!(kinds(&bare), [NodeKind::File], "mknod leaves alone what is there");
        assert!(foretell(&parse(&bare), None, &host(), None, false).known().is_err());
    }

    #[test]
    fn a_legacy_hook_binds_what_the_host_has() {
        let environment = Environment::new(&[("NVIDIA_VISIBLE_DEVICES".to_owned(), "all".to_owned())], false);
        let request = Request::of(&SpecHook::default(), &environment, &[], &host());
        let found = foretell(&parse(&plain(&[])), Some(&request), &host(), None, false);
        let paths: Vec<_> = found.known().unwrap().iter().map(|n| n.path.as_str()).collect();
        assert_eq!(paths, ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"]);
        let kept = ContainerNode { path: "/dev/nvidia7".to_owned(), looked_at: true, ..ContainerNode::default() };
        assert_eq!(with_legacy(&[kept], &request, &host()).known().unwrap().len(), 5);
    }

    #[test]
    fn an_unreadable_list_foretells_nothing() {
        let mut spec = plain(&[]);
        spec["linux"]["devices"] = json!([{"path": "/dev/x", "type": "tomorrow"}]);
        assert!(foretell(&parse(&spec), None, &host(), None, false).known().is_err());
        let mut spec = plain(&[]);
        spec["mounts"] = json!([1]);
        assert!(foretell(&parse(&spec), None, &host(), None, false).known().is_err());
    }
}
