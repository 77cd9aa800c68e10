//! podman 4.3 and 5, by the hooks directory, with runc and crun, and without root.

use super::lay::{self, CUDA, NODES};
use super::machine::{LOG, Machine};
use super::rows::{self, Becomes, LIBRARY, MISSING, NO_UVM, RAW, RAW_AND_LIBRARY, Row, STRICT, Shows, UNWRITABLE, row};
use crate::support::process::Ended;

/// NVIDIA's own file for podman, as long as a row runs: it injects into every container that asks.
const LEGACY: (&str, &str) = (
    "ln -s /etc/oci-nvidia-hook.json /usr/share/containers/oci/hooks.d/",
    "rm /usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
);

const NVIDIAS_HOOK: &str = r#"{"version": "1.0.0", "when": {"always": true}, "stages": ["prestart"], "hook": {
    "path": "/usr/bin/nvidia-container-runtime-hook", "args": ["nvidia-container-runtime-hook", "prestart"],
    "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}}
"#;

const ROWS: &[Row] = &[
    row("no GPU wanted", "plain", &[], Becomes::Unlogged),
    row("by CDI", "cuda", &["--device=nvidia.com/gpu=all"], Becomes::Given("cdi")),
    Row { changes: LEGACY, ..row("by the legacy hook", "cuda", &[], Becomes::Given("legacy-hook")) },
    row("--privileged", "cuda", &["--privileged"], Becomes::Refused(10, "passthrough-incomplete")),
    row("--privileged, with the library", "cuda", &["--privileged", LIBRARY], Becomes::Given("privileged")),
    row("bare --device", "cuda", RAW, Becomes::Refused(10, "passthrough-incomplete")),
    row("bare --device, with the library", "cuda", RAW_AND_LIBRARY, Becomes::Given("raw-devices")),
    row("forgotten", "cuda", &[], Becomes::Refused(10, "gpu-not-requested")),
    row(
        "forgotten, overridden",
        "cuda",
        &["-e", "GPU_PREFLIGHT_IGNORE=gpu-not-requested"],
        Becomes::Overridden("gpu-not-requested"),
    ),
    row(
        "by CDI, of an earlier boot",
        "cuda",
        &["--device=nvidia.com/stale=all"],
        Becomes::Refused(11, "uvm-major-mismatch"),
    ),
    row(
        "by CDI, the nodes not for everybody",
        "cuda",
        &["--device=nvidia.com/strict=all", "--user=1000:1000"],
        Becomes::Refused(11, "node-access-refused"),
    ),
    Row {
        changes: NO_UVM,
        ..row(
            "by CDI, nvidia-uvm not loaded",
            "cuda",
            &["--device=nvidia.com/gpu=all"],
            Becomes::Refused(12, "uvm-module-not-loaded"),
        )
    },
];

const CRASHES: (&str, &str) = (
    r"cd /usr/libexec/gpu-preflight; mv gpu-preflight-hook kept
      printf '#!/bin/sh\nkill -SEGV $$\n' >gpu-preflight-hook; chmod 755 gpu-preflight-hook",
    "cd /usr/libexec/gpu-preflight; mv kept gpu-preflight-hook",
);

const HANGS: (&str, &str) = (
    r"cd /usr/libexec/gpu-preflight; mv gpu-preflight-hook kept
      printf '#!/bin/sh\nexec sleep 60\n' >gpu-preflight-hook; chmod 755 gpu-preflight-hook",
    "cd /usr/libexec/gpu-preflight; mv kept gpu-preflight-hook",
);

/// What becomes of a hook that fails is podman's to decide, but for the log.
const FAULTS: &[Row] = &[
    Row { changes: MISSING, ..row("forgotten, the hook missing", "cuda", &[], Becomes::Unlogged) },
    Row {
        changes: CRASHES,
        ..row("no GPU wanted, the hook crashes", "plain", &[], Becomes::Fails("segmentation fault"))
    },
    Row { changes: HANGS, ..row("no GPU wanted, the hook hangs", "plain", &[], Becomes::Fails("timeout of 5")) },
    Row {
        changes: UNWRITABLE,
        ..row("forgotten, the log not to be written", "cuda", &[], Becomes::Fails("start refused [gpu-not-requested]"))
    },
];

/// Without root an engine binds the host's nodes, with the host's owners and modes, and nobody sets rules.
const ROOTLESS: &[Row] = &[
    row("no GPU wanted", "plain", &[], Becomes::Unlogged),
    row("by CDI", "cuda", &["--device=nvidia.com/gpu=all"], Becomes::Given("cdi")),
    row("--privileged", "cuda", &["--privileged"], Becomes::Refused(10, "passthrough-incomplete")),
    row("--privileged, with the library", "cuda", &["--privileged", LIBRARY], Becomes::Given("privileged")),
    row("bare --device", "cuda", RAW, Becomes::Refused(10, "passthrough-incomplete")),
    row("bare --device, with the library", "cuda", RAW_AND_LIBRARY, Becomes::Given("raw-devices")),
    row("forgotten", "cuda", &[], Becomes::Refused(10, "gpu-not-requested")),
    Row {
        changes: STRICT,
        ..row(
            "by CDI, the nodes not for everybody",
            "cuda",
            &["--device=nvidia.com/gpu=all"],
            Becomes::Refused(11, "rootless-group-not-kept"),
        )
    },
];

/// Whose podman it is.
#[derive(Debug, Clone, Copy)]
struct Podman<'a> {
    machine: &'a Machine,
    user: &'static [&'static str],
}

const ROOT: &[&str] = &["env", "PODMAN_IGNORE_CGROUPSV1_WARNING=1"];

const TESTER: &[&str] = &[
    "runuser",
    "-u",
    "tester",
    "--",
    "env",
    "-C",
    "/",
    "HOME=/home/tester",
    "USER=tester",
    "XDG_RUNTIME_DIR=/run/user/4711",
    "PODMAN_IGNORE_CGROUPSV1_WARNING=1",
];

const LOG_OF_TESTER: &str = "/home/tester/.local/state/gpu-preflight/hook.jsonl";

impl<'a> Podman<'a> {
    /// Registers the hook, and makes two images.
    fn up(machine: &'a Machine, user: &'static [&'static str]) -> Self {
        machine.gpu_preflight("install podman");
        machine.put("/etc/oci-nvidia-hook.json", NVIDIAS_HOOK);
        lay::cdi(machine);
        lay::legacy(machine);
        lay::library(machine);
        let podman = Self { machine, user };
        let tar = lay::root_of_images(machine);
        let changes = CUDA.map(|change| format!("--change '{change}'")).join(" ");
        let import = [user, &["podman", "--cgroup-manager=cgroupfs", "import"]].concat().join(" ");
        machine.shell(&format!("{tar} | {import} - plain; {tar} | {import} {changes} - cuda"));
        podman
    }

    fn run(self, runtime: &str, row: &Row) -> Ended {
        let words = self.user.iter().chain(&["podman", "--cgroup-manager=cgroupfs", "--runtime"]);
        let words = words.chain([&runtime]).chain(&["run", "--rm", "--network=none"]).chain(row.options);
        self.machine.run(words.chain([&row.image, &"/app"]).chain(&NODES)).end()
    }

    /// The steps of a build have no GPU whatever their image asks for.
    fn builds(self) {
        self.machine.put("/build/Dockerfile", "FROM localhost/cuda\nRUN [\"/app\", \"/dev/nvidia0\"]\n");
        // buildah asks for higher limits than this machine may give
        let words = ["podman", "--cgroup-manager=cgroupfs", "build", "--no-cache", "--network=none"];
        let words = words.into_iter().chain(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "/build"]);
        let ended = self.machine.run(self.user.iter().copied().chain(words)).end();
        assert!(ended.status.success() && ended.stdout.contains("/dev/nvidia0 absent"), "{ended:?}");
    }
}

const RUNC: Shows = Shows { code: 126, setting: Some("-e"), by_runtime: false };

const CRUN: Shows = Shows { code: 126, setting: None, by_runtime: false };

fn as_root(machine: &Machine, name: &str) {
    let podman = Podman::up(machine, ROOT);
    rows::check(machine, &format!("{name}, runc"), LOG, RUNC, ROWS, |row| podman.run("runc", row));
    rows::check(machine, &format!("{name}, runc"), LOG, RUNC, FAULTS, |row| podman.run("runc", row));
    rows::check(machine, &format!("{name}, crun"), LOG, CRUN, ROWS, |row| podman.run("crun", row));
    podman.builds();
    let logged = machine.decisions(LOG);
    assert!(logged.iter().all(|line| line["decision"] == "start"), "{logged:?}");
}

/// A user, with numbers of their own for containers.
fn rootless(machine: &Machine, name: &str) {
    machine.shell(
        "echo tester:x:4711:4711::/home/tester:/bin/sh >>/etc/passwd; echo tester:x:4711: >>/etc/group
         echo tester:200000:65536 >>/etc/subuid; echo tester:200000:65536 >>/etc/subgid
         mkdir -p /home/tester /run/user/4711; chown 4711:4711 /home/tester /run/user/4711",
    );
    let podman = Podman::up(machine, TESTER);
    rows::check(machine, &format!("{name}, rootless"), LOG_OF_TESTER, RUNC, ROOTLESS, |row| podman.run("runc", row));
}

#[test]
fn podman_4_starts_the_right_and_refuses_the_wrong() {
    let Some(machine) = Machine::debian_12(&["podman", "runc", "crun", "newuidmap"]) else { return };
    as_root(&machine, "podman 4.3");
    rootless(&machine, "podman 4.3");
}

#[test]
fn podman_5_starts_the_right_and_refuses_the_wrong() {
    let Some(machine) = Machine::debian_13() else { return };
    as_root(&machine, "podman 5");
    rootless(&machine, "podman 5");
}
