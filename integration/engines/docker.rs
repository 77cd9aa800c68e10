//! docker 20.10 and 26, by the runtime in front of runc and crun.

use serde_json::Value;

use super::lay::{self, CUDA, NODES};
use super::machine::{LIBEXEC, LOG, Machine};
use super::rows::{self, Becomes, LIBRARY, MISSING, NO_UVM, RAW, RAW_AND_LIBRARY, Row, STRICT, Shows, UNWRITABLE, row};
use crate::support::process::Ended;

const COMMON: &[Row] = &[
    row("no GPU wanted", "plain", &[], Becomes::Unlogged),
    row("by the legacy hook", "cuda", &["--gpus", "all"], Becomes::Given("legacy-hook")),
    row("--privileged", "cuda", &["--privileged"], Becomes::Refused(10, "passthrough-incomplete")),
    row("bare --device", "cuda", RAW, Becomes::Refused(10, "passthrough-incomplete")),
    row("bare --device, with the library", "cuda", RAW_AND_LIBRARY, Becomes::Given("raw-devices")),
    row("forgotten", "cuda", &[], Becomes::Refused(10, "gpu-not-requested")),
    row(
        "forgotten, overridden",
        "cuda",
        &["-e", "GPU_PREFLIGHT_IGNORE=gpu-not-requested"],
        Becomes::Overridden("gpu-not-requested"),
    ),
    row("to work on the CPU", "cuda", &["-e", "NVIDIA_VISIBLE_DEVICES=void"], Becomes::Unlogged),
    Row {
        what: "by the legacy hook, nvidia-uvm not loaded",
        changes: NO_UVM,
        image: "cuda",
        options: &["--gpus", "all"],
        becomes: Becomes::Refused(12, "uvm-module-not-loaded"),
    },
    Row {
        what: "by the legacy hook, the nodes not for everybody",
        changes: STRICT,
        image: "cuda",
        options: &["--gpus", "all", "--user", "1000:1000"],
        becomes: Becomes::Refused(11, "node-access-refused"),
    },
];

const PRIVILEGED: &[&str] = &["--privileged", LIBRARY];

/// docker 20.10 gives every capability that the kernel knows, which fails where the machine itself lacks one.
const ALLOWED: &[Row] = &[row("--privileged, with the library", "cuda", PRIVILEGED, Becomes::Allowed("privileged"))];

const CDI: &[Row] = &[
    row("--privileged, with the library", "cuda", PRIVILEGED, Becomes::Given("privileged")),
    row("by CDI", "cuda", &["--device", "nvidia.com/gpu=all"], Becomes::Given("cdi")),
    row(
        "by CDI, of an earlier boot",
        "cuda",
        &["--device", "nvidia.com/stale=all"],
        Becomes::Refused(11, "uvm-major-mismatch"),
    ),
    row(
        "by CDI, the nodes not for everybody",
        "cuda",
        &["--device", "nvidia.com/strict=all", "--user", "1000:1000"],
        Becomes::Refused(11, "node-access-refused"),
    ),
    Row {
        what: "by CDI, nvidia-uvm not loaded",
        changes: NO_UVM,
        image: "cuda",
        options: &["--device", "nvidia.com/gpu=all"],
        becomes: Becomes::Refused(12, "uvm-module-not-loaded"),
    },
];

/// The program is the runtime itself: without it docker starts no container.
const FAULTS: &[Row] = &[
    Row {
        changes: MISSING,
        ..row("no GPU wanted, the programs missing", "plain", &[], Becomes::Fails("gpu-preflight-runtime"))
    },
    Row {
        changes: (
            "mv /usr/libexec/gpu-preflight/gpu-preflight-hook /run/",
            "mv /run/gpu-preflight-hook /usr/libexec/gpu-preflight/",
        ),
        ..row("forgotten, the name of the hook missing", "cuda", &[], Becomes::Refused(10, "gpu-not-requested"))
    },
    Row {
        changes: UNWRITABLE,
        ..row("forgotten, the log not to be written", "cuda", &[], Becomes::Fails("start refused [gpu-not-requested]"))
    },
];

/// The same through crun, which hides a hook's words: our runtime says them itself.
const CRUN: &[Row] = &[
    row("by the legacy hook, crun", "cuda", &["--runtime=with-crun", "--gpus", "all"], Becomes::Given("legacy-hook")),
    row("forgotten, crun", "cuda", &["--runtime=with-crun"], Becomes::Refused(10, "gpu-not-requested")),
];

/// docker's configuration before anybody installs, in an order and layout of its own.
const SETTINGS: &str = r#"{
    "iptables": false,
    "bridge": "none",
    "runtimes": {
        "with-crun": {"path": "/usr/libexec/gpu-preflight/gpu-preflight-runtime", "runtimeArgs": ["--runtime", "crun"]}
    },
    "features": {"cdi": true}
}
"#;

const FILE: &str = "/etc/docker/daemon.json";

/// Registers with docker and starts it, with two images.
fn up(machine: &Machine) {
    machine.put(FILE, SETTINGS);
    machine.gpu_preflight("install docker");
    lay::cdi(machine);
    lay::legacy(machine);
    lay::library(machine);
    start(machine);
    let tar = lay::root_of_images(machine);
    machine.shell(&format!("{tar} | docker import - plain"));
    let changes = CUDA.map(|change| format!("--change '{change}'")).join(" ");
    machine.shell(&format!("{tar} | docker import {changes} - cuda"));
}

fn run(machine: &Machine, row: &Row) -> Ended {
    let words = ["/usr/bin/docker", "run", "--rm", "--network=none"].iter().chain(row.options);
    machine.run(words.chain([&row.image, &"/app"]).chain(&NODES)).end()
}

const SHOWS: Shows = Shows { code: 125, setting: Some("-e"), by_runtime: false };

#[test]
fn docker_20_starts_the_right_and_refuses_the_wrong() {
    let Some(machine) = Machine::debian_12(&["docker", "dockerd", "containerd", "runc", "crun"]) else { return };
    up(&machine);
    rows::check(&machine, "docker 20.10, runc", LOG, SHOWS, COMMON, |row| run(&machine, row));
    rows::check(&machine, "docker 20.10, runc", LOG, SHOWS, FAULTS, |row| run(&machine, row));
    rows::check(&machine, "docker 20.10, runc", LOG, SHOWS, ALLOWED, |row| run(&machine, row));
    let shows = Shows { by_runtime: true, ..SHOWS };
    rows::check(&machine, "docker 20.10, crun", LOG, shows, CRUN, |row| run(&machine, row));
    builds(&machine, "DOCKER_BUILDKIT=1");
    build_host(&machine);
    outlives(&machine);
}

#[test]
fn docker_26_starts_the_right_and_refuses_the_wrong() {
    let Some(machine) = Machine::debian_13() else { return };
    up(&machine);
    rows::check(&machine, "docker 26, runc", LOG, SHOWS, COMMON, |row| run(&machine, row));
    rows::check(&machine, "docker 26, runc", LOG, SHOWS, FAULTS, |row| run(&machine, row));
    rows::check(&machine, "docker 26, runc", LOG, SHOWS, CDI, |row| run(&machine, row));
    let shows = Shows { by_runtime: true, ..SHOWS };
    rows::check(&machine, "docker 26, crun", LOG, shows, CRUN, |row| run(&machine, row));
    composes(&machine);
    builds(&machine, "DOCKER_BUILDKIT=1");
    build_host(&machine);
    outlives(&machine);
}

/// docker compose: what is forgotten is refused in the same words, and a service that reserves a GPU starts.
fn composes(machine: &Machine) {
    let compose = |reserved: &str| {
        let service = format!("{{image: cuda, network_mode: none, command: [/app, {}]{reserved}}}", NODES.join(", "));
        machine.put("/compose/compose.yaml", format!("services:\n  train: {service}\n"));
        let words =
            ["/usr/bin/docker", "compose", "--ansi=never", "--project-directory=/compose", "up", "--force-recreate"];
        let ended = machine.run(words.iter().chain(&["--exit-code-from=train", "--no-log-prefix"])).end();
        (ended, machine.decisions(LOG))
    };
    let (forgotten, logged) = compose("");
    assert_eq!(forgotten.code(), 1, "{forgotten:?}");
    assert_eq!(logged.len(), 1, "{logged:?}");
    for words in ["start refused [gpu-not-requested]: ", "To start anyway: -e GPU_PREFLIGHT_IGNORE=gpu-not-requested."]
    {
        assert!(forgotten.stderr.contains(words), "{words} is not shown: {forgotten:?}");
    }
    let (reserved, logged) = compose(
        ", deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}",
    );
    assert_eq!(reserved.code(), 0, "{reserved:?}");
    assert!(reserved.stdout.contains("/dev/nvidia-uvm granted"), "{reserved:?}");
    assert_eq!(logged[0]["gpu_given"], "legacy-hook", "{logged:?}");
    machine.shell("docker compose --project-directory=/compose down");
}

/// A step of a build has no GPU whatever its image asks for. Only docker's classic builder starts its steps as
/// `docker run` starts a container, through the default runtime.
fn builds(machine: &Machine, buildkit: &str) {
    let log = machine.shared("build.log");
    machine.put("/build/Dockerfile", "FROM cuda\nRUN [\"/app\", \"/dev/nvidia0\"]\n");
    for (kind, setting) in [("BuildKit", buildkit), ("classic", "DOCKER_BUILDKIT=0")] {
        let script =
            format!("{setting} /usr/bin/docker build --no-cache --network=none /build >{} 2>&1", log.display());
        let ended = machine.run(["sh", "-c", &script]).end();
        let said = std::fs::read_to_string(&log).expect("the build's output");
        assert!(ended.status.success() && said.contains("/dev/nvidia0 absent"), "{kind}: {said}");
        let logged = machine.decisions(LOG);
        assert!(logged.iter().all(|line| line["decision"] == "start"), "{kind}: {logged:?}");
    }
}

/// A container remembers the name of its runtime: after `uninstall` it starts all the same, unchecked. docker must be
/// restarted, as it is said: through a reload it keeps a default runtime that its file no longer names.
fn outlives(machine: &Machine) {
    machine.shell("docker create --name kept --network=none cuda /app");
    let said = machine.gpu_preflight("uninstall docker");
    assert!(said.contains("kept"), "who remembers it is not named: {said}");
    assert!(said.contains("then: systemctl restart docker"), "{said}");
    machine.shell("kill $(cat /run/docker.pid)");
    machine.wait_until("! kill -0 $(cat /run/docker.pid)");
    machine.shell(&format!("rm -r {LIBEXEC}"));
    start(machine);
    assert_eq!(machine.shell("docker start --attach kept"), "the container runs\n");
    assert_eq!(machine.shell("docker run --rm --network=none cuda /app"), "the container runs\n");
    assert_eq!(machine.decisions(LOG), Vec::<Value>::new());
    machine.shell("docker rm kept");
    machine.gpu_preflight("uninstall docker");
    assert_eq!(std::fs::read_to_string(machine.at(FILE)).expect("docker's configuration"), SETTINGS);
}

fn start(machine: &Machine) {
    machine.serve("dockerd", "docker version");
}

/// On a machine that builds, who starts a container without a GPU has not forgotten one.
fn build_host(machine: &Machine) {
    machine.gpu_preflight("install docker --build-host");
    let row = row("on a build host", "cuda", &[], Becomes::Warned("gpu-not-requested"));
    rows::check(machine, "docker", LOG, SHOWS, &[row], |row| run(machine, row));
    builds(machine, "DOCKER_BUILDKIT=1");
}
