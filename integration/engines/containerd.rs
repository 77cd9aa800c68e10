//! containerd's shim with the runtime in front of runc, by ctr.

use super::lay::{self, CUDA, NODES};
use super::machine::{LIBEXEC, LOG, Machine};
use super::rows::{self, Becomes, RAW, Row, Shows, row};
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

/// Starts containerd, with two images that podman has made.
fn up(machine: &Machine) {
    lay::legacy(machine);
    lay::library(machine);
    machine.serve(&["containerd"], "ctr version");
    let tar = lay::root_of_images(machine);
    let changes = CUDA.map(|change| format!("--change '{change}'")).join(" ");
    let archive = machine.shared("images.tar");
    let archive = archive.display();
    machine.shell(&format!(
        "export PODMAN_IGNORE_CGROUPSV1_WARNING=1
         {tar} | podman --cgroup-manager=cgroupfs import - plain
         {tar} | podman --cgroup-manager=cgroupfs import {changes} - cuda
         podman --cgroup-manager=cgroupfs save -m -o {archive} plain cuda; ctr image import {archive}"
    ));
}

fn run(machine: &Machine, row: &Row) -> Ended {
    let runtime = format!("{LIBEXEC}/gpu-preflight-runtime");
    let image = format!("localhost/{}:latest", row.image);
    let words = ["ctr", "run", "--rm", "--runc-binary", &runtime].into_iter().chain(row.options.iter().copied());
    machine.run(words.chain([&*image, "container", "/app"]).chain(NODES)).end()
}

const SHOWS: Shows = Shows { code: 1, words: true };

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
}
