//! A container that runs.

use std::path::{Path, PathBuf};

use super::assemble::{Call, Draft, shm_size};
use super::bundle::Reading;
use super::nodes;
use super::procfs::{self, Process, open};
use super::spec::{MOST_BYTES, Spec};
use crate::collect::tree::{Kind, Tree};
use crate::model::container::{CapabilitySets, Container, DeviceRule, Moment, SpecDevice, SpecHook};
use crate::model::{Host, Observed, Parts, Unseen};

/// Where engines keep the bundle of a running container, by its id: containerd (docker's, its own,
/// Kubernetes', nerdctl's), podman and CRI-O.
const BUNDLES: [&str; 6] = [
    "/run/containerd/io.containerd.runtime.v2.task/moby/ID",
    "/run/containerd/io.containerd.runtime.v2.task/k8s.io/ID",
    "/run/containerd/io.containerd.runtime.v2.task/default/ID",
    "/run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby/ID",
    "/run/containers/storage/overlay-containers/ID/userdata",
    "/var/lib/containers/storage/overlay-containers/ID/userdata",
];

/// Reads the container of a process. `bundle`: where its spec lies, if an engine said so; else it is
/// looked for by the id in the process's cgroup. Without a spec the process itself tells what it can.
/// An error: there is no such process.
pub fn read_pid(pid: i32, bundle: Option<&Path>, host: &Host, files: &Tree) -> Result<Reading, Unseen> {
    let process = Process { files, pid: Some(pid) };
    let uids = process.mappings("uid_map")?;
    let gids = process.mappings("gid_map")?;
    let user = process.identity(&uids, &gids)?;
    let cgroup = process.cgroup();
    let id = cgroup.as_ref().ok().and_then(|path| container_id(path.as_deref()?)).unwrap_or_default();
    let rootfs = Tree::open(&files.label().join(format!("proc/{pid}/root")), Kind::Container).ok();
    let mounts = process.mounts();
    let found = bundle.map(Path::to_owned).into_iter().chain(bundles(id)).find_map(|bundle| spec(bundle, files));
    let (bundle, spec) = match found {
        Some((bundle, spec)) => (Some(bundle), spec),
        None => (None, by_process(&process, rootfs.as_ref(), user.capabilities)),
    };
    let label = bundle.as_deref().unwrap_or(Path::new("")).to_string_lossy();
    let call = Call { id, bundle: &label, moment: Moment::Running, own_program: None };
    let mut draft = Draft::new(&spec, call, Some(host));
    draft.container.uid_mappings = Observed::Known(uids);
    draft.container.gid_mappings = Observed::Known(gids);
    if let Some(rootfs) = &rootfs {
        draft.look_at_nodes(host, rootfs);
    } else {
        let reason = "its root file system could not be entered";
        draft.container.devices = Observed::unknown("container.devices", format!("/proc/{pid}/root"), reason);
    }
    draft.look_for_libcuda(host, files, rootfs.as_ref(), rootfs.is_some());
    let mut container = draft.container;
    container.user = Observed::Known(user);
    container.selinux_label = Observed::Known(process.label());
    container.cgroups_path = Observed::from(open("container.cgroups_path", cgroup));
    container.shm_size = Observed::from(open("container.shm_size", mounts.map(|mounts| shm_size(&mounts))));
    if bundle.is_none() {
        forget_the_stand_ins(&mut container);
    }
    let root_path = spec.root_path().map(|root| bundle.as_deref().unwrap_or(Path::new("/")).join(root));
    Ok(Reading { container, rootfs, root_path, bundle })
}

/// The id in a cgroup's path: `/docker/ID`, `docker-ID.scope`, `libpod-ID`, `cri-containerd-ID.scope`.
fn container_id(cgroup: &str) -> Option<&str> {
    cgroup.rsplit('/').find_map(|component| {
        let name = component.strip_suffix(".scope").unwrap_or(component);
        let id = name.rsplit(['-', ':']).next()?;
        (id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
    })
}

fn bundles(id: &str) -> impl Iterator<Item = PathBuf> + '_ {
    BUNDLES.iter().filter(|_| !id.is_empty()).map(|pattern| pattern.replace("ID", id).into())
}

fn spec(bundle: PathBuf, files: &Tree) -> Option<(PathBuf, Spec)> {
    let path = bundle.join("config.json").to_string_lossy().into_owned();
    let bytes = files.read(&path, MOST_BYTES).ok()??;
    Some((bundle, Spec::parse(bytes, &path)))
}

/// A spec as the process shows it: its nodes, the driver's libraries that are mounted, its variables. It
/// serves to say how a GPU was given.
pub(super) fn by_process(process: &Process<'_>, rootfs: Option<&Tree>, capabilities: Option<CapabilitySets>) -> Spec {
    let mut spec = Spec::unread("config.json", "no engine's bundle was found for the process");
    spec.process.environment = Observed::from(open("container.environment", process.environment()));
    if let Some(Observed::Known(nodes)) = rootfs.map(nodes::look) {
        let device = |node: &crate::model::container::ContainerNode| SpecDevice {
            path: node.path.clone(),
            kind: 'c',
            major: i64::from(node.major),
            minor: i64::from(node.minor),
            ..SpecDevice::default()
        };
        spec.linux.devices = Observed::Known(Parts::whole(nodes.iter().map(device).collect()));
    }
    if capabilities.is_some_and(|sets| is_everything(sets.bounding)) {
        let everything = DeviceRule { allow: true, kind: 'a', access: "rwm".to_owned(), ..DeviceRule::default() };
        spec.linux.rules = Observed::Known(Parts::whole(vec![everything]));
    }
    if let Ok(mounts) = process.mounts() {
        let hook = SpecHook {
            stage: "prestart".to_owned(),
            path: "nvidia-container-runtime-hook".to_owned(),
            ..SpecHook::default()
        };
        let hooks = if procfs::has_legacy_mounts(&mounts) { vec![hook] } else { Vec::new() };
        spec.hooks = Observed::Known(Parts::whole(hooks));
        spec.mounts = Observed::Known(Parts::whole(procfs::bound(mounts)));
    }
    spec
}

/// All that the kernel has; the newest three came with Linux 5.8 and 5.9.
fn is_everything(mask: u64) -> bool {
    let all = caps::all().iter().fold(0_u64, |mask, capability| mask | capability.bitmask());
    mask.count_ones() + 3 >= all.count_ones()
}

fn forget_the_stand_ins(container: &mut Container) {
    let reason = "no engine's bundle was found for the process";
    container.spec_devices = Observed::unknown("container.spec_devices", "config.json", reason);
    container.rules = Observed::unknown("container.rules", "config.json", reason);
    container.mounts = Observed::unknown("container.mounts", "config.json", reason);
    container.hooks = Observed::unknown("container.hooks", "config.json", reason);
    container.volume_mount_devices = Observed::unknown("container.volume_mount_devices", "config.json", reason);
}
