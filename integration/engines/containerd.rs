//! containerd's shim with the runtime in front of runc, by ctr, and as a kubelet calls it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::cri::Pod;
use super::lay::{self, CUDA, NODES};
use super::machine::{LIBEXEC, LOG, Machine};
use super::rows::{self, Becomes, NO_UVM, RAW, Row, Shows, row};
use crate::support::process::Ended;

const LIBRARY: &str = "--mount=type=bind,src=/opt/driver/libcuda.so.1,dst=/usr/lib/libcuda.so.1,options=rbind:ro";

const RAW_AND_LIBRARY: &[&str] = &[RAW[0], RAW[1], RAW[2], LIBRARY];

const ROWS: &[Row] = &[
    row("no GPU wanted", "plain", &[], Becomes::Unlogged),
    row("by the legacy hook", "cuda", &["--gpus=0", "--gpus=1"], Becomes::Given("legacy-hook")),
    row("bare --device", "cuda", RAW, Becomes::Refused(10, "passthrough-incomplete")),
    row("bare --device, with the library", "cuda", RAW_AND_LIBRARY, Becomes::Given("raw-devices")),
    row("--privileged", "cuda", &["--privileged"], Becomes::Refused(10, "passthrough-incomplete")),
    row("--privileged, with the library", "cuda", &["--privileged", LIBRARY], Becomes::Given("privileged")),
    row("forgotten", "cuda", &[], Becomes::Refused(10, "gpu-not-requested")),
    row(
        "forgotten, overridden",
        "cuda",
        &["--env=GPU_PREFLIGHT_IGNORE=gpu-not-requested"],
        Becomes::Overridden("gpu-not-requested"),
    ),
];

/// What a pod's containers are given, the devices by CDI. Where somebody schedules, a container that asks for a GPU
/// and has none may have been put there on purpose.
const KUBERNETES: &[Row] = &[
    row("no GPU wanted", "plain", &[], Becomes::Unlogged),
    row("by CDI", "cuda", &["nvidia.com/gpu=all"], Becomes::Given("cdi")),
    row("none requested", "cuda", &[], Becomes::Warned("gpu-not-requested")),
    row("by CDI, of an earlier boot", "cuda", &["nvidia.com/stale=all"], Becomes::Refused(11, "uvm-major-mismatch")),
    Row {
        changes: NO_UVM,
        ..row(
            "by CDI, nvidia-uvm not loaded",
            "cuda",
            &["nvidia.com/gpu=all"],
            Becomes::Refused(12, "uvm-module-not-loaded"),
        )
    },
];

/// For a pod on a machine of tests: CDI, which containerd 1.7 does not use unasked, and no priorities in the
/// kernel's choice of whom to kill, which it may lack the right to give.
const CRI: &str = r#"version = 2

[plugins."io.containerd.grpc.v1.cri"]
enable_cdi = true
restrict_oom_score_adj = true
sandbox_image = "localhost/pause:latest"
"#;

/// Starts containerd, with two images that podman has made.
fn up(machine: &Machine) {
    machine.put("/etc/containerd/config.toml", CRI);
    machine.gpu_preflight("install containerd");
    lay::cdi(machine);
    lay::legacy(machine);
    lay::library(machine);
    machine.serve("containerd", "ctr version");
    let tar = lay::root_of_images(machine);
    let changes = CUDA.map(|change| format!("--change '{change}'")).join(" ");
    let archive = machine.shared("images.tar");
    let archive = archive.display();
    machine.shell(&format!(
        "export PODMAN_IGNORE_CGROUPSV1_WARNING=1
         {tar} | podman --cgroup-manager=cgroupfs import - plain
         {tar} | podman --cgroup-manager=cgroupfs import {changes} - cuda
         {tar} | podman --cgroup-manager=cgroupfs import --change 'CMD [\"/app\",\"--wait\"]' - pause
         podman --cgroup-manager=cgroupfs save -m -o {archive} plain cuda pause
         ctr image import {archive}; ctr --namespace k8s.io image import {archive}"
    ));
}

fn run(machine: &Machine, row: &Row) -> Ended {
    let runtime = format!("{LIBEXEC}/gpu-preflight-runtime");
    let image = format!("localhost/{}:latest", row.image);
    // it is the name of a cgroup too, and those are common to all machines
    let id = format!("container-{}", machine.number());
    let words = ["ctr", "run", "--rm", "--runc-binary", &runtime].into_iter().chain(row.options.iter().copied());
    machine.run(words.chain([&*image, &id, "/app"]).chain(NODES)).end()
}

/// A container as a kubelet starts it, with what it logs, and for an error with the words that the kubelet gets.
fn run_in(machine: &Machine, pod: &Pod<'_>, row: &Row) -> Ended {
    let log = machine.at(PODS).join(row.what);
    let image = format!("localhost/{}:latest", row.image);
    let command: Vec<&str> = ["/app"].into_iter().chain(NODES).collect();
    let started = pod.run(row.what, &image, &command, row.options);
    if started.is_err() {
        let said = machine.said("containerd");
        let words = said.lines().rev().find(|line| line.contains("StartContainer for")).unwrap_or_default();
        return Ended { status: ExitStatus::from_raw(1 << 8), stdout: String::new(), stderr: words.to_owned() };
    }
    let until = Instant::now() + Duration::from_secs(20);
    let mut logged = String::new();
    while logged.lines().count() <= NODES.len() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        logged = std::fs::read_to_string(&log).unwrap_or_default();
    }
    let lines = logged.lines().filter_map(|line| line.split(" stdout F ").nth(1));
    let stdout = lines.flat_map(|line| [line, "\n"]).collect();
    Ended { status: ExitStatus::default(), stdout, stderr: String::new() }
}

const PODS: &str = "/var/log/pods";

const IN_A_POD: Shows = Shows { setting: Some("in the container's env"), ..SHOWS };

const SHOWS: Shows = Shows { code: 1, setting: Some("--env"), by_runtime: false };

#[test]
fn containerd_1_6_starts_the_right_and_refuses_the_wrong() {
    let Some(machine) = Machine::debian_12(&["containerd", "ctr", "podman", "runc"]) else { return };
    up(&machine);
    rows::check(&machine, "containerd 1.6", LOG, SHOWS, ROWS, |row| run(&machine, row));
}

#[test]
fn containerd_1_7_starts_the_right_and_refuses_the_wrong() {
    let Some(machine) = Machine::debian_13() else { return };
    up(&machine);
    rows::check(&machine, "containerd 1.7", LOG, SHOWS, ROWS, |row| run(&machine, row));
    let socket = machine.at("/run/containerd/containerd.sock");
    let pod = Pod::start(&socket, PODS);
    let pod = pod.unwrap_or_else(|error| panic!("{error}: {:?}", machine.said("containerd").lines().next_back()));
    rows::check(&machine, "containerd 1.7, a pod", LOG, IN_A_POD, KUBERNETES, |row| run_in(&machine, &pod, row));
}
