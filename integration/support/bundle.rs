//! OCI bundles as engines write them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use serde_json::{Value, json};

use super::{link, process, write};

/// docker's 14 capabilities.
const CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// A device of a spec: path below `/dev`, numbers.
pub(crate) type Device = (String, u64, u64);

/// A bundle: its directory, and the spec that will be its config.json.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) dir: PathBuf,
    pub(crate) spec: Value,
}

impl Bundle {
    /// A container that neither wants nor has a GPU; its program says `the container runs`.
    pub(crate) fn plain(dir: &Path) -> Self {
        // A test may write one bundle after the other to the same place.
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).expect("the bundle's directory");
        let dir = std::fs::canonicalize(dir).expect("the bundle's directory");
        lay_rootfs(&dir.join("rootfs"));
        let capabilities: serde_json::Map<_, _> = ["bounding", "effective", "permitted"]
            .map(|set| (set.to_owned(), json!(CAPABILITIES)))
            .into_iter()
            .collect();
        let namespaces = ["pid", "mount", "ipc", "uts", "network"].map(|kind| json!({"type": kind}));
        let spec = json!({
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": 0, "gid": 0},
                "args": ["/app"],
                "cwd": "/",
                "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "capabilities": capabilities,
            },
            "root": {"path": dir.join("rootfs"), "readonly": true},
            "hostname": "test",
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            ],
            "linux": {
                "namespaces": namespaces,
                "devices": [],
                "resources": {"devices": [
                    {"allow": false, "access": "rwm"},
                    {"allow": true, "type": "c", "major": 1, "minor": 3, "access": "rwm"},
                ]},
            },
        });
        Self { dir, spec }
    }

    /// A container whose image asks for every GPU, and to which none was given.
    pub(crate) fn asking(dir: &Path) -> Self {
        let mut bundle = Self::plain(dir);
        bundle.env("NVIDIA_VISIBLE_DEVICES=all");
        bundle
    }

    /// A container to which CDI has given so many GPUs.
    pub(crate) fn cdi(dir: &Path, gpus: u64) -> Self {
        let mut bundle = Self::asking(dir);
        bundle.env("NVIDIA_VISIBLE_DEVICES=void");
        for device in devices(gpus) {
            bundle.give(&device);
        }
        bundle.mount_driver();
        bundle
    }

    /// The same, but its nodes already stand in the rootfs, as a hook at createContainer sees them. For hooks that
    /// are run without a runtime; needs root.
    pub(crate) fn cdi_laid_out(dir: &Path, gpus: u64) -> Self {
        let bundle = Self::cdi(dir, gpus);
        for (path, major, minor) in devices(gpus) {
            bundle.make_node(&path, major, minor);
        }
        for name in ["libcuda.so.550.163.01", "libcuda.so.1"] {
            std::fs::copy(driver_library(), bundle.rootfs().join(libraries()).join(name)).expect("a library");
        }
        bundle
    }

    /// Adds a variable.
    pub(crate) fn env(&mut self, variable: &str) {
        push(&mut self.spec["process"]["env"], json!(variable));
    }

    /// Adds a node and the rule that allows it.
    pub(crate) fn give(&mut self, (path, major, minor): &Device) {
        push(
            &mut self.spec["linux"]["devices"],
            json!({"path": path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666, "uid": 0, "gid": 0}),
        );
        push(
            &mut self.spec["linux"]["resources"]["devices"],
            json!({"allow": true, "type": "c", "major": major, "minor": minor, "access": "rw"}),
        );
    }

    /// Gives nvidia-uvm's nodes and rules another number, as a specification of an earlier boot has them.
    pub(crate) fn renumber_uvm(&mut self, major: u64) {
        for list in ["/linux/devices", "/linux/resources/devices"] {
            let entries = self.spec.pointer_mut(list).and_then(Value::as_array_mut).expect("a list");
            for entry in entries.iter_mut().filter(|entry| entry["major"] == 511) {
                entry["major"] = major.into();
            }
        }
    }

    /// Mounts a stand-in of the driver's library where CDI does.
    pub(crate) fn mount_driver(&mut self) {
        for name in ["libcuda.so.550.163.01", "libcuda.so.1"] {
            push(
                &mut self.spec["mounts"],
                json!({
                    "destination": format!("/{}/{name}", libraries()),
                    "source": driver_library(),
                    "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"],
                }),
            );
        }
    }

    /// Adds a hook.
    pub(crate) fn hook(&mut self, stage: &str, path: &Path, args: &[&str]) {
        let name = path.file_name().and_then(std::ffi::OsStr::to_str).expect("a program's name");
        let words: Vec<&str> = [name].into_iter().chain(args.iter().copied()).collect();
        let hooks = &mut self.spec["hooks"][stage];
        if hooks.is_null() {
            *hooks = json!([]);
        }
        push(hooks, json!({"path": path, "args": words, "env": ["PATH=/usr/bin:/bin"], "timeout": 10}));
    }

    /// A node in the rootfs itself. Needs root.
    pub(crate) fn make_node(&self, path: &str, major: u64, minor: u64) {
        let at = self.rootfs().join(path.trim_start_matches('/'));
        mknod(&at, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(major, minor)).expect("a node");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&at, mode).expect("its mode");
    }

    /// Its root file system.
    pub(crate) fn rootfs(&self) -> PathBuf {
        self.dir.join("rootfs")
    }

    /// Writes config.json.
    pub(crate) fn write(&self) {
        write(&self.dir.join("config.json"), serde_json::to_vec(&self.spec).expect("JSON"));
    }

    /// What a runtime writes to a hook's stdin at a pid.
    pub(crate) fn state(&self, pid: u32) -> Vec<u8> {
        json!({"ociVersion": "1.0.2-dev", "id": "test", "status": "creating", "pid": pid, "bundle": self.dir})
            .to_string()
            .into_bytes()
    }
}

/// The nodes that CDI gives for so many GPUs.
pub(crate) fn devices(gpus: u64) -> Vec<Device> {
    let mut all: Vec<_> = (0..gpus).map(|n| (format!("/dev/nvidia{n}"), 195, n)).collect();
    all.extend([
        ("/dev/nvidiactl".into(), 195, 255),
        ("/dev/nvidia-modeset".into(), 195, 254),
        ("/dev/nvidia-uvm".into(), 511, 0),
        ("/dev/nvidia-uvm-tools".into(), 511, 1),
    ]);
    all
}

/// Where Debian's libraries lie, without the leading slash.
pub(crate) fn libraries() -> String {
    format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH)
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().expect("an array").push(item);
}

/// A glibc image's bones, and one static program.
pub(crate) fn lay_rootfs(rootfs: &Path) {
    for dir in ["dev", "proc", "sys", "tmp", "etc", &libraries()] {
        std::fs::create_dir_all(rootfs.join(dir)).expect("directories");
    }
    link("usr/lib", &rootfs.join("lib"));
    write(&rootfs.join("etc/os-release"), "ID=debian\nVERSION_ID=\"12\"\n");
    write(&rootfs.join("etc/ld.so.conf"), format!("/{}\n", libraries()));
    std::fs::copy(app(), rootfs.join("app")).expect("the program");
}

/// The program of every container: prints `the container runs`.
fn app() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("app.c");
        write(
            &source,
            "#include <unistd.h>\nint main(void) { return write(1, \"the container runs\\n\", 19) != 19; }\n",
        );
        process::compile_c(&source, "app", &["-static"])
    })
}

/// A shared object with a name and no code, which stands for the driver's.
fn driver_library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let flags = ["-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1", "-x", "c"];
        process::compile_c(Path::new("/dev/null"), "libcuda.so.1", &flags)
    })
}
