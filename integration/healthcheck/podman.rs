//! podman with the same HEALTHCHECK: it has systemd call `podman healthcheck run` at every interval, which is called here.

use std::path::PathBuf;
use std::time::Duration;

use super::docker::context;
use super::faults::{Inside, faults};
use super::{KEPT, NODES};
use crate::support::process::{Ended, Run};
use crate::support::{Scratch, needs, scratch};

struct Podman {
    scratch: Scratch,
    /// Before the program's name.
    user: &'static [&'static str],
}

impl Podman {
    /// `None`: said and skipped.
    fn ready(user: &'static [&'static str]) -> Option<Self> {
        let able = needs::root() && needs::released() && needs::tools(&["podman", "runc", "cc", "ldd", "setpriv"]);
        let podman = able.then(|| Self { scratch: scratch(), user })?;
        context(&podman.at("context"));
        for directory in ["home", "run", "store"] {
            std::fs::create_dir_all(podman.at(directory)).expect("a directory");
        }
        if !user.is_empty() {
            let given = Run::new("chown").args(["-R", NOBODY]).args([podman.at("")]).end();
            assert!(given.status.success(), "{given:?}");
        }
        let context = podman.at("context").to_string_lossy().into_owned();
        // HEALTHCHECK is docker's: an image in OCI's format has none
        podman.done(&[
            "build",
            "--ulimit=nofile=1024:1024",
            "--ulimit=nproc=1024:1024",
            "--format=docker",
            "--quiet",
            "--tag=checked",
            &context,
        ]);
        Some(podman)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scratch.at(path)
    }

    fn podman(&self, arguments: &[&str]) -> Ended {
        let mut words = self.user.iter().copied().chain(["podman"]);
        let run = Run::new(words.next().expect("a word")).args(words);
        run.env("HOME", self.at("home"))
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .env("PODMAN_IGNORE_CGROUPSV1_WARNING", "1")
            .args(["--root"])
            .args([self.at("store")])
            .args(["--runroot"])
            .args([self.at("run")])
            .args(["--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--runtime=runc", "--events-backend=file"])
            .args(arguments.iter().copied())
            .limit(Duration::from_secs(90))
            .end()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let ended = self.podman(arguments);
        assert!(ended.status.success(), "podman {arguments:?}: {ended:?}");
        ended.stdout.trim().to_owned()
    }

    /// What a check says, and how often it failed since.
    fn checks(&self, id: &str) -> (i32, String) {
        let code = self.podman(&["healthcheck", "run", id]).code();
        let health = self.done(&["inspect", "--format={{json .State.Healthcheck}}", id]);
        let health: serde_json::Value = serde_json::from_str(&health).expect("JSON");
        let last = health["Log"].as_array().and_then(|log| log.last()).cloned().unwrap_or_default();
        let output = last["Output"].as_str().unwrap_or_default().to_owned();
        assert!(output.len() <= KEPT, "{output}");
        let expected = if code == 0 { "healthy" } else { "unhealthy" };
        assert_eq!(health["Status"], expected, "{health:#}");
        (code, output)
    }

    fn faults(&self, options: &[&str]) {
        let devices: Vec<String> =
            NODES.iter().map(|(name, like)| format!("--device={like}:/sim/dev/{name}")).collect();
        for (id, spoil) in faults() {
            if !self.user.is_empty()
                && matches!(id, "cgroup-lost-after-daemon-reload" | "uvm-node-missing" | "gpu-node-missing")
            {
                // It has no device cgroup, and its nodes are mounts, which nobody takes away.
                continue;
            }
            let mut arguments = vec!["run", "--detach", "--network=none", "--cap-drop=ALL"];
            arguments.extend(["--security-opt=no-new-privileges", "--health-interval=disable"]);
            // podman asks for higher limits than this machine may give
            arguments.extend(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
            arguments.extend(options);
            arguments.extend(devices.iter().map(String::as_str));
            arguments.push("checked");
            let container = self.done(&arguments);
            let pid = self.done(&["inspect", "--format={{.State.Pid}}", &container]);
            let (code, said) = self.checks(&container);
            assert!(code == 0 && said.starts_with("healthy: 1 GPU, driver 550.163.01"), "{said}");
            spoil(&Inside::of(&pid));
            let (code, said) = self.checks(&container);
            assert!(code == 1 && said.starts_with(&format!("unhealthy [{id}]: ")), "{id}: {said}");
            self.done(&["rm", "--force", "--time=0", &container]);
        }
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        self.podman(&["rm", "--force", "--all", "--time=0"]);
        self.podman(&["rmi", "--force", "--all"]);
        if !self.user.is_empty() {
            // ends the process that keeps the user's namespace
            self.podman(&["system", "migrate"]);
        }
        for hierarchy in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(hierarchy.path().join("libpod_parent"));
        }
    }
}

const NOBODY: &str = "nobody:nogroup";

#[test]
fn a_fault_shows_at_the_next_check() {
    let Some(podman) = Podman::ready(&[]) else { return };
    podman.faults(&["--user=1000:1000"]);
}

/// Of a user who has one id and no other.
#[test]
fn without_root_a_fault_shows_as_well() {
    let Some(podman) = Podman::ready(&["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]) else {
        return;
    };
    podman.faults(&[]);
}
