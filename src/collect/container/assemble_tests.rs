//! Bundles, hook calls and processes as they lie on a disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::testing::{plain, with_cdi, with_hook, with_mount};
use super::{Call, Called, Reading, Spec, State, from_spec, read_bundle, read_pid};
use crate::collect::tree::{Kind, Tree};
use crate::model::container::{Given, LegacyState, Moment, Stage, Strength};
use crate::model::host::{DriverLibrary, Node};
use crate::model::{Container, Host, Observed};

const ALL: &[&str] = &["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda>=12.8", "PATH=/bin"];
const HOOK: &str = "/usr/bin/nvidia-container-runtime-hook";
const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A machine with one GPU below a directory, and a place for a bundle.
struct World {
    dir: tempfile::TempDir,
    host: Host,
}

impl World {
    fn new() -> Self {
        let node = |minor| Node { major: 195, minor, mode: 0o666, ..Node::default() };
        let mut host = Host::default();
        let nodes = [("/dev/nvidia0", node(0)), ("/dev/nvidiactl", node(255))];
        host.device_nodes = Observed::Known(nodes.map(|(path, node)| (path.to_owned(), node)).into());
        host.driver.libraries = Observed::Known(vec![DriverLibrary {
            name: "libcuda".into(),
            path: "/usr/lib64/libcuda.so.550.1".into(),
            version: None,
            current: true,
            size: 1,
        }]);
        let world = Self { dir: tempfile::tempdir().unwrap(), host };
        for directory in ["host", "bundle/rootfs/dev", "bundle/rootfs/bin"] {
            fs::create_dir_all(world.path(directory)).unwrap();
        }
        world
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the spec; its root file system is the bundle's.
    fn spec(&self, mut spec: Value) {
        spec["root"]["path"] = json!("rootfs");
        self.write("bundle/config.json", spec.to_string());
    }

    fn files(&self) -> Tree {
        Tree::open(&self.path("host"), Kind::Host).unwrap()
    }

    fn bundle(&self) -> Reading {
        read_bundle(&self.path("bundle"), &self.host, &self.files()).unwrap()
    }

    /// A hook call on a host whose process 77 sees this machine's own root.
    fn hook(&self, at: Stage, bundle: &Path) -> Seen {
        let state = json!({"id": "c1", "pid": 77, "bundle": bundle, "status": "creating", "annotations": {"a": "b"}});
        let state = State::parse(state.to_string().as_bytes()).unwrap();
        fs::create_dir_all(self.path("host/proc/77")).unwrap();
        let _ = symlink("/", self.path("host/proc/77/root"));
        // all of this machine's files, under a name below which process 77 lies
        let everything = nix::fcntl::open("/", OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty()).unwrap();
        let root = Tree::of(everything, Kind::Host, self.path("host"));
        read_hook(&state, at, None, &self.host, &root)
    }
}

/// What a hook sees of its container.
struct Seen {
    container: Container,
    entered: bool,
    root_path: Option<PathBuf>,
    bundle: Option<PathBuf>,
    idle: bool,
}

fn read_hook(state: &State, at: Stage, own_program: Option<&str>, host: &Host, files: &Tree) -> Seen {
    let called = Called::read(state.clone(), at, own_program.map(str::to_owned), files);
    let read_host = || host.clone();
    let mut inside = called.inside(&read_host, files);
    inside.devices();
    inside.privileged_entrypoint();
    inside.libcuda();
    Seen {
        container: inside.container().clone(),
        entered: inside.rootfs().is_some(),
        root_path: called.root_path().map(Path::to_owned),
        bundle: called.bundle().map(Path::to_owned),
        idle: called.is_idle(),
    }
}

fn paths(container: &Container) -> Vec<&str> {
    container.devices.known().unwrap().iter().map(|node| node.path.as_str()).collect()
}

#[test]
fn a_bundle_that_was_given_a_gpu_by_cdi() {
    let world = World::new();
    world.spec(with_cdi(plain(ALL)));
    let reading = world.bundle();
    let container = &reading.container;
    assert_eq!((container.moment, &container.gpu_given), (Moment::NotStarted, &Observed::Known(Given::Cdi)));
    assert_eq!(container.wants_gpu.strength, Strength::Environment);
    assert!(container.cdi_marked);
    assert_eq!(container.visible_devices, Observed::Known(Some("all".into())));
    assert_eq!(container.variable("NVIDIA_VISIBLE_DEVICES").unwrap(), Some("all"));
    assert_eq!(paths(&reading.container).len(), 4);
    assert_eq!(container.libcuda.known().unwrap().len(), 1);
    assert_eq!(container.shm_size, Observed::Known(Some(64 << 20)));
    assert_eq!(reading.root_path, Some(world.path("bundle/rootfs")));
    assert!(reading.rootfs.is_some() && container.privileged_entrypoint.is_none());
    let by_file = read_bundle(&world.path("bundle/config.json"), &world.host, &world.files()).unwrap();
    assert_eq!(by_file.container, reading.container);
}

#[test]
fn a_bundle_whose_legacy_hook_is_still_to_run() {
    let world = World::new();
    world.spec(with_hook(plain(ALL), "prestart", HOOK, &["nvidia-container-runtime-hook", "prestart"]));
    let reading = world.bundle();
    assert!(reading.container.legacy_still_to_run());
    assert_eq!(paths(&reading.container), ["/dev/nvidia0", "/dev/nvidiactl"]);
    assert_eq!(reading.container.libcuda, Observed::Known(vec!["/usr/lib64/libcuda.so.550.1".into()]));
    world.spec(with_hook(plain(&[]), "prestart", HOOK, &[]));
    let reading = world.bundle();
    assert_eq!(reading.container.legacy_hook, None, "it has nothing to do here");
    assert!(paths(&reading.container).is_empty());
}

#[test]
fn a_bundle_that_is_none() {
    let world = World::new();
    assert!(read_bundle(&world.path("bundle"), &world.host, &world.files()).is_err(), "no file");
    assert!(read_bundle(&world.path("nowhere/at/all"), &world.host, &world.files()).is_err());
    world.write("bundle/config.json", "no JSON");
    let container = world.bundle().container;
    assert!(container.gpu_given.known().is_err() && container.environment.known().is_err());
    assert!(!container.wants_gpu.wanted);
}

#[test]
fn the_entrypoint_of_a_user_is_looked_at() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.write("bundle/rootfs/bin/true", "#!");
    fs::set_permissions(world.path("bundle/rootfs/bin/true"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = plain(ALL);
    spec["process"]["user"]["uid"] = json!(1000);
    world.spec(spec);
    assert_eq!(world.bundle().container.privileged_entrypoint, Some(false));
    fs::set_permissions(world.path("bundle/rootfs/bin/true"), fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(world.bundle().container.privileged_entrypoint, Some(true));
}

#[test]
fn a_hook_sees_what_is_there() {
    let world = World::new();
    world.spec(with_hook(plain(ALL), "prestart", HOOK, &[]));
    world.write("bundle/rootfs/dev/nvidia0", "");
    world.write("bundle/rootfs/usr/lib64/libcuda.so.1", "elf");
    let reading = world.hook(Stage::CreateRuntime, &world.path("bundle"));
    let container = &reading.container;
    assert_eq!(container.moment, Moment::Hook(Stage::CreateRuntime));
    assert_eq!(container.legacy_hook.as_ref().unwrap().state, LegacyState::HasRun);
    assert_eq!(paths(&reading.container), ["/dev/nvidia0"]);
    assert!(container.devices.known().unwrap()[0].looked_at);
    assert_eq!(container.libcuda, Observed::Known(vec!["/usr/lib64/libcuda.so.1".into()]));
    assert_eq!(container.annotations.known().unwrap()["a"], "b");
    assert_eq!(container.id, "c1");
}

#[test]
fn a_hook_before_the_legacy_hook_adds_what_that_will_make() {
    let world = World::new();
    world.spec(with_hook(plain(ALL), "createRuntime", HOOK, &[]));
    let reading = world.hook(Stage::CreateRuntime, &world.path("bundle"));
    assert!(reading.container.legacy_still_to_run(), "our own place is not in the list");
    assert_eq!(paths(&reading.container), ["/dev/nvidia0", "/dev/nvidiactl"]);
    assert!(reading.container.devices.known().unwrap().iter().all(|node| !node.looked_at));
    world.write("bundle/rootfs/dev/nvidia0", "");
    let reading = world.hook(Stage::CreateRuntime, &world.path("bundle"));
    assert!(!reading.container.legacy_still_to_run(), "a node that the spec does not give is there");
    assert_eq!(paths(&reading.container), ["/dev/nvidia0"]);
    let ours =
        with_hook(with_hook(plain(ALL), "createRuntime", "/x/gpu-preflight-hook", &[]), "createRuntime", HOOK, &[]);
    world.spec(ours);
    let reading = world.hook(Stage::CreateRuntime, &world.path("bundle"));
    assert!(reading.container.legacy_still_to_run(), "the list says so");
}

#[test]
fn a_hook_whose_bundle_is_hidden() {
    let world = World::new();
    let mut spec = with_cdi(plain(ALL));
    spec["root"]["path"] = json!(world.path("bundle/rootfs"));
    world.write("host/run/crun/c1/config.json", spec.to_string());
    world.write("host/proc/self/status", "Name:\tx\nPPid:\t50\n");
    fs::create_dir_all(world.path("host/proc/77")).unwrap();
    symlink("/", world.path("host/proc/77/root")).unwrap();
    let state = |bundle: &str| {
        State::parse(json!({"id": "c1", "pid": 77, "bundle": bundle, "root": "/r"}).to_string().as_bytes()).unwrap()
    };
    let read = |bundle: &str| read_hook(&state(bundle), Stage::CreateRuntime, None, &world.host, &world.files());
    let by_copy = read("/");
    assert_eq!(by_copy.container.gpu_given, Observed::Known(Given::Cdi));
    assert_eq!(by_copy.root_path, Some(world.path("bundle/rootfs")));
    assert!(by_copy.entered && by_copy.bundle.is_none());
    world.write("host/elsewhere/config.json", with_hook(plain(ALL), "prestart", HOOK, &[]).to_string());
    for line in ["crun\0create\0--bundle\0/elsewhere\0c1\0", "crun\0create\0-b=/elsewhere\0c1\0"] {
        world.write("host/proc/50/cmdline", line);
        let by_arguments = read("/");
        assert_eq!(by_arguments.container.gpu_given, Observed::Known(Given::LegacyHook));
        assert_eq!(by_arguments.bundle.as_deref(), Some(Path::new("/elsewhere")));
    }
    let nowhere = read("/nowhere");
    assert!(nowhere.container.gpu_given.known().is_err());
    assert_eq!(nowhere.root_path.as_deref(), Some(Path::new("/r")), "crun's own word for it");
}

#[test]
fn a_hook_that_cannot_enter_foretells_unless_a_hook_was_there_before() {
    let world = World::new();
    world.spec(with_cdi(plain(ALL)));
    let without_pid = |at| {
        let state = json!({"id": "c1", "bundle": world.path("bundle")});
        let state = State::parse(state.to_string().as_bytes()).unwrap();
        let root = Tree::open(Path::new("/"), Kind::Host).unwrap();
        read_hook(&state, at, None, &world.host, &root)
    };
    let reading = without_pid(Stage::CreateRuntime);
    assert!(!reading.entered);
    assert_eq!(paths(&reading.container).len(), 4);
    world.spec(with_hook(plain(ALL), "prestart", HOOK, &[]));
    assert!(without_pid(Stage::CreateRuntime).container.devices.known().is_err());
    assert!(without_pid(Stage::CreateContainer).entered, "there the path itself is the container's");
}

#[test]
fn a_container_that_nobody_asks_anything_of_is_not_searched() {
    let world = World::new();
    world.spec(plain(&["PATH=/bin"]));
    let seen = world.hook(Stage::CreateRuntime, &world.path("bundle"));
    assert_eq!((seen.container.wants_gpu.wanted, seen.container.gpu_given.seen()), (false, Some(&Given::None)));
    assert!(seen.idle);
}

#[test]
fn a_process_tells_by_itself_how_it_was_given_a_gpu() {
    let world = World::new();
    let process = |devices: &str, mountinfo: &str| {
        world.write("host/proc/9/status", "Uid:\t0\t1000\t0\t0\nGid:\t0\t44\t0\t0\nGroups:\t\nCapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\ta80425fb\nCapAmb:\t0\n");
        world.write("host/proc/9/environ", format!("PATH=/bin\0NVIDIA_VISIBLE_DEVICES={devices}\0"));
        for map in ["uid_map", "gid_map"] {
            world.write(&format!("host/proc/9/{map}"), "         0          0 4294967295\n");
        }
        world.write("host/proc/9/cgroup", format!("0::/system.slice/docker-{ID}.scope\n"));
        world.write("host/proc/9/mountinfo", mountinfo);
        world.write("host/proc/9/root/dev/nvidia0", "");
        world.write("host/proc/9/root/usr/lib64/libcuda.so.1", "elf");
        read_pid(9, None, &world.host, &world.files()).unwrap()
    };
    let lib = "30 29 8:1 /l /usr/lib64/libcuda.so.550.1 ro - ext4 /dev/sda1 rw\n";
    let by_cdi = process("void", lib);
    let container = &by_cdi.container;
    assert_eq!((container.gpu_given.seen(), container.moment), (Some(&Given::Cdi), Moment::Running));
    assert_eq!((container.id.as_str(), container.wants_gpu.strength), (ID, Strength::Environment));
    assert_eq!((container.user.known().unwrap().uid, container.user.known().unwrap().gid), (1000, 44));
    assert!(container.uid_mappings.known().unwrap().is_empty());
    assert_eq!(paths(&by_cdi.container), ["/dev/nvidia0"]);
    assert_eq!(
        container.libcuda,
        Observed::Known(vec!["/usr/lib64/libcuda.so.1".into(), "/usr/lib64/libcuda.so.550.1".into()])
    );
    assert!(container.spec_devices.known().is_err() && container.rules.known().is_err());
    assert_eq!(container.shm_size, Observed::Known(None));
    let legacy = format!(
        "{lib}31 29 0:9 / /proc/driver/nvidia ro - tmpfs tmpfs rw\n32 29 0:8 / /dev/shm rw - tmpfs shm rw,size=65536k\n"
    );
    let legacy = process("0", &legacy);
    assert_eq!(legacy.container.gpu_given.seen(), Some(&Given::LegacyHook));
    assert_eq!(legacy.container.legacy_hook.unwrap().state, LegacyState::HasRun);
    assert_eq!(legacy.container.shm_size, Observed::Known(Some(64 << 20)));
    for mounts in ["", lib] {
        assert_eq!(process("0", mounts).container.gpu_given.seen(), Some(&Given::RawDevices), "{mounts}");
    }
    // an engine's bundle tells more
    let bundle = format!("host/run/containerd/io.containerd.runtime.v2.task/moby/{ID}/config.json");
    world.write(&bundle, with_hook(plain(ALL), "prestart", HOOK, &[]).to_string());
    let by_spec = process("0", "");
    assert_eq!(by_spec.container.gpu_given.seen(), Some(&Given::LegacyHook));
    assert!(by_spec.container.rules.known().is_ok());
    assert!(read_pid(10, None, &world.host, &world.files()).is_err());
}

#[test]
fn this_process_can_be_read() {
    let files = Tree::open(Path::new("/"), Kind::Host).unwrap();
    let pid = i32::try_from(std::process::id()).unwrap();
    let reading = read_pid(pid, None, &Host::default(), &files).unwrap();
    assert_eq!(reading.container.user.known().unwrap().uid, nix::unistd::geteuid().as_raw());
    assert!(reading.container.uid_mappings.known().unwrap().is_empty());
}

#[test]
fn a_spec_alone_says_what_it_can() {
    let spec = with_mount(with_cdi(plain(ALL)), "/var/run/nvidia-container-devices/GPU-1", "/dev/null");
    let spec = Spec::parse(spec.to_string().into_bytes(), "config.json");
    let container = from_spec(&spec, Call { id: "c1", ..Call::default() }, None);
    assert_eq!(container.gpu_given, Observed::Known(Given::Cdi));
    assert_eq!(container.wants_gpu.strength, Strength::Demand);
    assert_eq!(container.volume_mount_devices, Observed::Known(vec!["GPU-1".into()]));
    assert!(container.devices.known().is_err() && container.libcuda.known().is_err());
    let bare = Spec::parse(br#"{"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]}}"#.to_vec(), "config.json");
    let container = from_spec(&bare, Call::default(), None);
    assert_eq!((&container.gpu_given, container.mounts.known().is_err()), (&Observed::Known(Given::None), true));
    assert_eq!(container.volume_mount_devices, Observed::Known(vec![]));
}

proptest! {
    #[test]
    fn a_spec_with_errors_is_a_container_all_the_same(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let spec = with_hook(with_mount(with_cdi(plain(ALL)), "/dev/nvidia1", "/dev/nvidia0"), "createRuntime", HOOK, &["x"]);
        let mut bytes = spec.to_string().into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let spec = Spec::parse(bytes, "config.json");
        from_spec(&spec, Call::default(), Some(&Host::default()));
    }
}
