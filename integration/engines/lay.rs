//! What lies on a machine: images, CDI specifications, and the stand-in for NVIDIA's legacy hook.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::machine::Machine;
use crate::support::bundle::{lay_rootfs, libraries};
use crate::support::process::compile_c;
use crate::support::repository;

/// What an image of NVIDIA's declares.
pub(super) const CUDA: [&str; 2] = ["ENV NVIDIA_VISIBLE_DEVICES=all", "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility"];

/// What the program of a container opens.
pub(super) const NODES: [&str; 3] = ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"];

/// Lays out the root of every image; returns a script that writes it as a tar archive.
pub(super) fn root_of_images(machine: &Machine) -> String {
    let rootfs = machine.shared("rootfs");
    // a machine may have images of several users
    if !rootfs.exists() {
        lay_rootfs(&rootfs);
    }
    std::fs::copy(app(), rootfs.join("app")).expect("the program");
    format!("tar -C {} -c .", rootfs.display())
}

fn app() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let source = || repository().join("integration/engines/app.c");
    BUILT.get_or_init(|| compile_c(&source(), "engines-app", &["-static"]))
}

/// Puts three specifications into `/etc/cdi`: `nvidia.com/gpu` as `nvidia-ctk cdi generate` writes it on this
/// machine; `nvidia.com/stale`, of a boot in which nvidia-uvm had another number; `nvidia.com/strict`, of a
/// driver loaded with `NVreg_DeviceFileMode=0660`. Without an owner podman would give its nodes to the
/// container's user.
pub(super) fn cdi(machine: &Machine) {
    for (name, uvm, mode) in [
        ("gpu", 511, "fileMode: 438"),
        ("stale", 507, "fileMode: 438"),
        ("strict", 511, "fileMode: 432, uid: 0, gid: 44"),
    ] {
        machine.put(&format!("/etc/cdi/nvidia-{name}.yaml"), specification(name, uvm, mode));
    }
}

fn specification(name: &str, uvm: u32, access: &str) -> String {
    let node = |indent: &str, path: &str, major: u32, minor: u32| {
        format!(
            "{indent}- {{path: /dev/{path}, type: c, major: {major}, minor: {minor}, {access}, permissions: rwm}}\n"
        )
    };
    let mut text = format!("---\ncdiVersion: 0.5.0\nkind: nvidia.com/{name}\ndevices:\n");
    for (device, minors) in [("0", 0..1), ("1", 1..2), ("all", 0..2)] {
        let _ = write!(text, "    - name: \"{device}\"\n      containerEdits:\n        deviceNodes:\n");
        for minor in minors {
            text.push_str(&node("            ", &format!("nvidia{minor}"), 195, minor));
        }
    }
    text.push_str("containerEdits:\n    env:\n        - NVIDIA_VISIBLE_DEVICES=void\n    deviceNodes:\n");
    for (path, major, minor) in
        [("nvidiactl", 195, 255), ("nvidia-modeset", 195, 254), ("nvidia-uvm", uvm, 0), ("nvidia-uvm-tools", uvm, 1)]
    {
        text.push_str(&node("        ", path, major, minor));
    }
    text.push_str("    mounts:\n");
    for name in ["libcuda.so.550.163.01", "libcuda.so.1"] {
        let path = format!("/{}/{name}", libraries());
        let _ = write!(
            text,
            "        - hostPath: {path}\n          containerPath: {path}\n          options: [ro, nosuid, nodev, rbind, rprivate]\n"
        );
    }
    text
}

/// Puts the driver's library where a user may take it from.
pub(super) fn library(machine: &Machine) {
    let library = std::fs::read(machine.at(&format!("{}/libcuda.so.1", libraries()))).expect("the driver's library");
    machine.put("/opt/driver/libcuda.so.1", library);
}

/// Puts the stand-in where docker, podman's hook files and containerd look for NVIDIA's programs.
pub(super) fn legacy(machine: &Machine) {
    for name in ["nvidia-container-runtime-hook", "nvidia-container-cli"] {
        machine.program(&format!("/usr/bin/{name}"), &repository().join("integration/engines/legacy.sh"));
    }
}
