//! Containers for the rehearsal's tests, and how each runtime is started.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::hook;

/// The stages at which the rehearsal is tried.
pub(super) const STAGES: [&str; 3] = ["prestart", "createRuntime", "createContainer"];
/// docker's 14 capabilities.
pub(super) const DOCKER: u64 = 0xa804_25fb;
/// `CAP_DAC_OVERRIDE`
pub(super) const DAC_OVERRIDE: u64 = 1 << 1;

/// A runtime, and the cgroups that it works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setup {
    RuncV1,
    CrunV1,
    RuncV2,
}

impl Setup {
    pub(super) const ALL: [Self; 3] = [Self::RuncV1, Self::CrunV1, Self::RuncV2];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RuncV1 => "runc, v1",
            Self::CrunV1 => "crun, v1",
            Self::RuncV2 => "runc, v2",
        }
    }

    pub(super) fn runtime(self) -> &'static str {
        if self == Self::CrunV1 { "crun" } else { "runc" }
    }

    /// What of the machine must be put aside in a mount namespace of the runtime's own. crun refuses v1
    /// and v2 side by side; runc takes v2 if that is what `/sys/fs/cgroup` is.
    fn cgroups(self) -> &'static str {
        match self {
            Self::RuncV1 => ":",
            Self::CrunV1 => {
                "mount -t tmpfs cgroups /sys/fs/cgroup; \
                 for c in cpu cpuacct cpuset memory devices freezer blkio pids; do \
                 mkdir /sys/fs/cgroup/$c; mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c; done"
            }
            Self::RuncV2 => "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
        }
    }
}

/// `/dev` of the machine as the container's starter sees it: never the real one.
const DEV: &str = "d=$(mktemp -d); mount -t tmpfs -o mode=755 dev $d; \
    for n in null zero full random urandom tty; do cp -a /dev/$n $d/; done; \
    mkdir $d/pts $d/shm $d/mqueue; mount -t devpts -o newinstance,ptmxmode=0666 devpts $d/pts; ln -s pts/ptmx $d/ptmx; \
    mount --move $d /dev; rmdir $d";

/// A container: its spec, and the question that the hook is asked about it.
pub(super) struct Container<'a> {
    tools: &'a Tools,
    scratch: TempDir,
    pub(super) spec: Value,
    pub(super) question: Value,
    /// Shell commands that prepare the machine, in the runtime's mount namespace.
    pub(super) machine: String,
    /// Whom the runtime is started as, with all that this needs.
    pub(super) starter: Vec<&'static str>,
}

impl<'a> Container<'a> {
    /// User 0 with docker's capabilities, and three nodes: nvidia0 0660 of root and group 44, nvidiactl
    /// 0666, and nvidia-uvm 0666 without a rule.
    pub(super) fn new(tools: &'a Tools) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        open(scratch.path(), 0o711);
        let rootfs = scratch.path().join("rootfs");
        for dir in ["rootfs/dev", "rootfs/proc", "answers"] {
            std::fs::create_dir_all(scratch.path().join(dir)).unwrap();
        }
        open(&rootfs, 0o755);
        open(&scratch.path().join("answers"), 0o777);
        std::fs::copy(tools.at("probe"), rootfs.join("probe")).unwrap();
        let namespaces = ["pid", "mount", "ipc", "uts", "network"].map(|kind| json!({"type": kind}));
        let hooks: serde_json::Map<_, _> = STAGES
            .map(|stage| (stage.to_owned(), json!([tools.hook_entry(scratch.path(), stage)])))
            .into_iter()
            .collect();
        let spec = json!({
            "ociVersion": "1.0.2",
            "process": {"user": {}, "args": [], "cwd": "/", "env": ["PATH=/"]},
            "root": {"path": rootfs},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            ],
            "hooks": hooks,
            "linux": {
                "namespaces": namespaces,
                "devices": [],
                "resources": {"devices": [
                    {"allow": false, "access": "rwm"},
                    {"allow": true, "type": "c", "major": 1, "access": "rwm"},
                ]},
            },
        });
        let question = json!({"rootfs": rootfs, "identity": {"uid": 0, "gid": 0}, "nodes": [], "entrypoint": false});
        let mut container = Self { tools, scratch, spec, question, machine: String::new(), starter: Vec::new() };
        container.user(0, 0, &[]);
        container.capabilities(&[("bounding", DOCKER), ("effective", DOCKER), ("permitted", DOCKER)]);
        container.node("/dev/nvidia0", (195, 0), (0o660, 0, 44)).rule("/dev/nvidia0", "rw");
        container.node("/dev/nvidiactl", (195, 255), (0o666, 0, 0)).rule("/dev/nvidiactl", "rwm");
        container.node("/dev/nvidia-uvm", (511, 0), (0o666, 0, 0));
        container
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(super) fn user(&mut self, uid: u32, gid: u32, groups: &[u32]) -> &mut Self {
        self.spec["process"]["user"] = json!({"uid": uid, "gid": gid, "additionalGids": groups});
        for (key, value) in [("uid", json!(uid)), ("gid", json!(gid)), ("groups", json!(groups))] {
            self.question["identity"][key] = value;
        }
        self
    }

    /// Sets that are not named are empty.
    pub(super) fn capabilities(&mut self, sets: &[(&str, u64)]) -> &mut Self {
        self.spec["process"]["capabilities"] = sets.iter().map(|(set, bits)| (*set, json!(names(*bits)))).collect();
        self.question["identity"]["capabilities"] = sets.iter().map(|(set, bits)| (*set, json!(bits))).collect();
        self
    }

    pub(super) fn no_new_privileges(&mut self) -> &mut Self {
        self.spec["process"]["noNewPrivileges"] = true.into();
        self.question["identity"]["no_new_privileges"] = true.into();
        self
    }

    /// A node of the spec, in place of one of the same path. No rule is added.
    pub(super) fn node(&mut self, path: &str, number: (u32, u32), owner: (u32, u32, u32)) -> &mut Self {
        self.ask(path);
        let ((major, minor), (mode, uid, gid)) = (number, owner);
        let devices = self.spec["linux"]["devices"].as_array_mut().unwrap();
        devices.retain(|d| d["path"] != path);
        let device = json!({"path": path, "type": "c", "major": major, "minor": minor});
        devices.push(device);
        let last = devices.last_mut().unwrap();
        (last["fileMode"], last["uid"], last["gid"]) = (mode.into(), uid.into(), gid.into());
        self
    }

    /// The same node, with another mode and owner.
    pub(super) fn owned(&mut self, path: &str, owner: (u32, u32, u32)) -> &mut Self {
        let number = self.number(path);
        self.node(path, number, owner)
    }

    /// A last word about a node of the spec; `-rw` denies.
    pub(super) fn rule(&mut self, path: &str, access: &str) -> &mut Self {
        let (major, minor) = self.number(path);
        let (allow, access) = access.strip_prefix('-').map_or((true, access), |access| (false, access));
        let rules = self.spec["linux"]["resources"]["devices"].as_array_mut().unwrap();
        rules.push(json!({"allow": allow, "type": "c", "major": major, "minor": minor, "access": access}));
        self
    }

    /// The hook is asked about a path.
    pub(super) fn ask(&mut self, path: &str) -> &mut Self {
        let nodes = self.question["nodes"].as_array_mut().unwrap();
        if !nodes.iter().any(|n| n == path) {
            nodes.push(path.into());
        }
        self
    }

    /// Takes a node out of the spec; the rule stays.
    pub(super) fn without(&mut self, path: &str) -> &mut Self {
        self.spec["linux"]["devices"].as_array_mut().unwrap().retain(|d| d["path"] != path);
        self
    }

    pub(super) fn mount(&mut self, mount: Value) -> &mut Self {
        self.spec["mounts"].as_array_mut().unwrap().push(mount);
        self
    }

    /// A user namespace that maps all that is inside to `outside` and above.
    pub(super) fn user_namespace(&mut self, outside: u32, size: u32) -> &mut Self {
        self.spec["linux"]["namespaces"].as_array_mut().unwrap().push(json!({"type": "user"}));
        for mappings in ["uidMappings", "gidMappings"] {
            self.spec["linux"][mappings] = json!([{"containerID": 0, "hostID": outside, "size": size}]);
        }
        self
    }

    /// A hook before ours at a stage.
    pub(super) fn before(&mut self, stage: &str, what: &str) -> &mut Self {
        let entry = self.tools.hook_entry(self.scratch.path(), what);
        self.spec["hooks"][stage].as_array_mut().unwrap().insert(0, entry);
        self
    }

    fn number(&self, path: &str) -> (u32, u32) {
        let device = self.spec["linux"]["devices"].as_array().unwrap().iter().find(|d| d["path"] == path).unwrap();
        let number = |key: &str| u32::try_from(device[key].as_u64().unwrap()).unwrap();
        (number("major"), number("minor"))
    }

    /// The command that runs it.
    pub(super) fn command(&mut self, setup: Setup, id: &str) -> Command {
        self.question["runtime"] = setup.runtime().into();
        if self.spec["process"]["args"] == json!([]) {
            let nodes = self.question["nodes"].as_array().unwrap().iter().map(|node| {
                let node = node.as_str().unwrap();
                if node.starts_with("/dev/nvidia-caps/") { format!("r:{node}") } else { node.to_owned() }
            });
            self.spec["process"]["args"] = ["/probe".to_owned()].into_iter().chain(nodes).collect();
        }
        std::fs::write(self.path("config.json"), self.spec.to_string()).unwrap();
        std::fs::write(self.path("answers/question.json"), self.question.to_string()).unwrap();
        let script = format!("set -e; {}; {DEV}; {} exec \"$@\"", setup.cgroups(), self.machine);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]).args(&self.starter);
        command.arg(setup.runtime()).arg("--root").arg(self.path("answers/state"));
        command.args(["run", "--bundle"]).arg(self.scratch.path()).arg(id);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.path("answers"));
        command
    }

    /// Starts it, to run until it is dropped. Its program must be one that says that it waits.
    pub(super) fn start(&mut self, setup: Setup) -> Running {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("rehearsal-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut starter = self.command(setup, &id).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(starter.stdout.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        let running = Running { starter, said, state: self.path("answers/state"), setup, id };
        assert_eq!(first, "waiting\n");
        running
    }
}

/// A container that runs.
pub(super) struct Running {
    starter: Child,
    said: BufReader<ChildStdout>,
    state: PathBuf,
    setup: Setup,
    id: String,
}

impl Running {
    /// Of its first process.
    pub(super) fn pid(&self) -> i32 {
        let state: Value = serde_json::from_slice(&self.runtime(&["state"]).stdout).unwrap();
        i32::try_from(state["pid"].as_i64().unwrap()).unwrap()
    }

    /// Ends it: what it has said since it waited.
    pub(super) fn end(&mut self) -> String {
        self.runtime(&["kill", "KILL"]);
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        self.starter.wait().unwrap();
        rest
    }

    fn runtime(&self, arguments: &[&str]) -> Output {
        let (command, rest) = arguments.split_first().unwrap();
        let mut runtime = Command::new(self.setup.runtime());
        runtime.arg("--root").arg(&self.state).arg(command).arg(&self.id).args(rest).output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The two programs that the tests need, where every user can execute them.
pub(super) struct Tools {
    dir: TempDir,
}

impl Tools {
    /// The container's program is linked statically, since its rootfs has no libraries; the hook is the
    /// test's own program.
    pub(super) fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let tools = Self { dir };
        std::fs::copy(std::env::current_exe().unwrap(), tools.at("hook")).unwrap();
        std::fs::write(tools.at("probe.rs"), include_str!("probe.rs")).unwrap();
        let built = Command::new("rustc")
            .args(["--edition", "2024", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o"])
            .args([tools.at("probe"), tools.at("probe.rs")])
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        tools
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn hook_entry(&self, scratch: &Path, stage: &str) -> Value {
        let question = scratch.join("answers/question.json");
        let arguments: Vec<_> = ["hook"].into_iter().chain(hook::ARGUMENTS).collect();
        let environment = [format!("{}={}", hook::QUESTION, question.display()), format!("{}={stage}", hook::STAGE)];
        json!({"path": self.at("hook"), "args": arguments, "env": environment, "timeout": 20})
    }
}

fn names(bits: u64) -> Vec<&'static str> {
    const NAMES: [(u32, &str); 14] = [
        (0, "CAP_CHOWN"),
        (1, "CAP_DAC_OVERRIDE"),
        (3, "CAP_FOWNER"),
        (4, "CAP_FSETID"),
        (5, "CAP_KILL"),
        (6, "CAP_SETGID"),
        (7, "CAP_SETUID"),
        (8, "CAP_SETPCAP"),
        (10, "CAP_NET_BIND_SERVICE"),
        (13, "CAP_NET_RAW"),
        (18, "CAP_SYS_CHROOT"),
        (27, "CAP_MKNOD"),
        (29, "CAP_AUDIT_WRITE"),
        (31, "CAP_SETFCAP"),
    ];
    NAMES.into_iter().filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, name)| name).collect()
}
