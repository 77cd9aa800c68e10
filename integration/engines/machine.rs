//! A machine with GPUs and engines of its own: a private root, in which everything may be written, simulated by
//! `integration/simhost.sh`. It ends with the value, and whatever still runs in it.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::process::Run;
use crate::support::{Scratch, needs, programs, repository, scratch, write};

/// A daemon takes a second or two to come up.
const PATIENCE: Duration = Duration::from_secs(40);

/// Where the programs lie, in every registration.
pub(super) const LIBEXEC: &str = "/usr/libexec/gpu-preflight";

/// Where the hook logs, called by root.
pub(super) const LOG: &str = "/var/log/gpu-preflight/hook.jsonl";

/// How many machines there are. The cgroups that engines leave, empty, are common to all.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// See the module.
#[derive(Debug)]
pub(super) struct Machine {
    child: Child,
    scratch: Scratch,
}

impl Machine {
    /// This machine's own Debian and its engines. `None`: said and skipped.
    pub(super) fn debian_12(tools: &[&str]) -> Option<Self> {
        (can_be() && needs::tools(tools)).then(|| Self::start(Path::new("/")))
    }

    /// A Debian 13 and its engines. `None`: said and skipped.
    pub(super) fn debian_13() -> Option<Self> {
        if !can_be() {
            return None;
        }
        let Some(tree) = std::env::var_os("GPU_PREFLIGHT_TEST_TRIXIE") else {
            needs::skip("a Debian 13", "GPU_PREFLIGHT_TEST_TRIXIE names no tree; integration/test.sh makes one");
            return None;
        };
        Some(Self::start(Path::new(&tree)))
    }

    fn start(root: &Path) -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        let scratch = scratch();
        let mut command = Command::new(repository().join("integration/simhost.sh"));
        // bash reaps what an engine leaves to process 1
        command.args(["run", "bash", "-c", "echo up; exec >&-; sleep infinity & wait"]);
        command.env("FRESH", scratch.path()).env("ROOT", root).env("LC_ALL", "C").env_remove("SPOIL");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("simhost.sh");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut said).expect("a line");
        let machine = Self { child, scratch };
        assert_eq!(said, "up\n", "the machine does not come up");
        // whatever has been logged on this machine before
        let _ = std::fs::remove_file(machine.at(LOG));
        machine.program("/opt/gpu-preflight/gpu-preflight", &programs::cli());
        machine.program("/opt/gpu-preflight/gpu-preflight-hook", &programs::hook());
        machine
    }

    /// `gpu-preflight` with these arguments, which must succeed; returns what it prints.
    pub(super) fn gpu_preflight(&self, arguments: &str) -> String {
        self.shell(&format!("/opt/gpu-preflight/gpu-preflight {arguments}"))
    }

    /// One that no other machine has.
    pub(super) fn number(&self) -> u32 {
        self.child.id()
    }

    /// A path of the machine, as it is seen from here.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.child.id())).join(path.trim_start_matches('/'))
    }

    /// A directory that both see at the same place, on a real disk.
    pub(super) fn shared(&self, name: &str) -> PathBuf {
        self.scratch.at(name)
    }

    /// Writes a file of the machine.
    pub(super) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        write(&self.at(path), content);
    }

    /// Installs a program in it.
    pub(super) fn program(&self, path: &str, from: &Path) {
        self.put(path, std::fs::read(from).expect("a program"));
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    }

    fn entered(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vec<OsString> {
        let ns = |name: &str| format!("=/proc/{}/ns/{name}", self.child.id());
        let mut all: Vec<OsString> =
            ["nsenter".into(), format!("--mount{}", ns("mnt")), format!("--pid{}", ns("pid_for_children"))]
                .map(OsString::from)
                .into();
        all.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        all
    }

    /// A command in the machine, as its root.
    pub(super) fn run(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        let words = self.entered(words);
        Run::new(&words[0]).args(words[1..].to_vec()).env("HOME", "/root").limit(Duration::from_secs(60))
    }

    /// A shell's script in the machine, which must succeed; returns what it prints.
    pub(super) fn shell(&self, script: &str) -> String {
        let ended = self.run(["sh", "-euc", script]).end();
        assert!(ended.status.success(), "{script}: {ended:?}");
        ended.stdout
    }

    /// Starts a daemon in the machine and waits until a command succeeds.
    pub(super) fn serve(&self, daemon: &str, is_up: &str) {
        let log = self.log_of(daemon);
        self.shell(&format!("{daemon} </dev/null >>{} 2>&1 &", log.display()));
        self.wait_until(is_up);
    }

    /// Waits until a shell's command succeeds.
    pub(super) fn wait_until(&self, command: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.run(["sh", "-c", command]).end().status.success() {
            assert!(Instant::now() < until, "in vain: {command}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log_of(&self, daemon: &str) -> PathBuf {
        self.shared(&format!("{daemon}.log"))
    }

    /// What a daemon has said.
    pub(super) fn said(&self, daemon: &str) -> String {
        std::fs::read_to_string(self.log_of(daemon)).unwrap_or_default()
    }

    /// A decision log's lines since the last call.
    pub(super) fn decisions(&self, log: &str) -> Vec<Value> {
        let path = self.at(log);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// `gpu-preflight install` takes nothing but the released, static program.
fn can_be() -> bool {
    needs::root() && needs::released() && needs::tools(&["unshare", "nsenter", "cc"])
}

impl Drop for Machine {
    fn drop(&mut self) {
        // process 1 of the machine dies with the one that made it, and with it all others
        let _ = self.child.kill();
        let _ = self.child.wait();
        let until = Instant::now() + PATIENCE;
        // the mounts go when the last process has gone
        while Instant::now() < until && std::fs::remove_dir_all(self.scratch.path()).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if ALIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
            remove_cgroups();
        }
    }
}

/// The engines' own, where nothing is in them.
fn remove_cgroups() {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    for hierarchy in hierarchies.chain([root.to_owned()]) {
        for name in ["docker/buildkit", "docker", "default", "libpod_parent/conmon", "libpod_parent", "k8s.io"] {
            let _ = std::fs::remove_dir(hierarchy.join(name));
        }
    }
}
