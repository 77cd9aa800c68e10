//! Root file systems of every kind, as any user, read-only, without a capability: a distribution's, musl's, one without
//! a shell, and an empty one.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::docker::{executable, without_a_shell};
use super::{Laid, Program};
use crate::support::bundle::Bundle;
use crate::support::process::{Ended, Run};
use crate::support::{link, needs, programs, scratch, write};

/// Where the laid machine is in the container: a directory that every distribution has.
pub(super) const AT: &str = "/mnt";

pub(super) struct Root {
    pub(super) name: &'static str,
    pub(super) program: Program,
    pub(super) is_distribution: bool,
    pub(super) lay: fn(&Path),
}

const ROOTS: [Root; 5] = [
    Root { name: "this distribution's", program: Program::Dynamic, is_distribution: true, lay: distribution },
    Root {
        name: "this distribution's, the static program",
        program: Program::Static,
        is_distribution: true,
        lay: distribution,
    },
    Root { name: "without a shell", program: Program::Dynamic, is_distribution: false, lay: without_a_shell },
    Root { name: "musl", program: Program::Static, is_distribution: false, lay: musl },
    Root { name: "empty", program: Program::Static, is_distribution: false, lay: |_| () },
];

/// Links into `/usr`, which runc binds. The test itself mounts nothing of the machine's: what clears its directory away
/// would go through such a mount.
fn distribution(root: &Path) {
    for name in ["bin", "lib", "lib64", "sbin"] {
        link(format!("usr/{name}"), &root.join(name));
    }
    std::fs::create_dir_all(root.join("usr")).expect("a mount point");
}

/// As far as anybody can tell from outside: musl's loader, and nothing of glibc's.
fn musl(root: &Path) {
    let loader = root.join(format!("lib/ld-musl-{}.so.1", std::env::consts::ARCH));
    write(&loader, "\u{7f}ELF");
    executable(&loader);
    write(&root.join("etc/os-release"), "ID=alpine\n");
}

/// As an engine of 2019 has it, which refuses calls that it does not know as if they were not permitted (runc#2750,
/// 2021-01).
fn old_profile() -> serde_json::Value {
    let unknown = ["faccessat2", "openat2", "close_range", "clone3"];
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": unknown, "action": "SCMP_ACT_ERRNO", "errnoRet": 1}],
    })
}

/// A container that does nothing but check itself.
pub(super) fn bundle(root: &Root, laid: &Laid, dir: &Path) -> Bundle {
    let rootfs = dir.join("root");
    std::fs::create_dir_all(&rootfs).expect("a directory");
    (root.lay)(&rootfs);
    for point in ["proc", "dev", "mnt"] {
        std::fs::create_dir_all(rootfs.join(point)).expect("a mount point");
    }
    let mut bundle = Bundle::plain(&dir.join("bundle"));
    bundle.env("NVIDIA_VISIBLE_DEVICES=all");
    bundle.env("NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    bundle.spec["root"] = json!({"path": rootfs, "readonly": true});
    let process = &mut bundle.spec["process"];
    process["user"] = json!({"uid": 1000, "gid": 1000});
    process["capabilities"] = json!({});
    process["noNewPrivileges"] = json!(true);
    process["args"] = match root.program {
        Program::Dynamic => json!(["/mnt/gpu-preflight", "healthcheck", "--host-root", AT]),
        Program::Static => json!(["/mnt/gpu-preflight-healthcheck", "--host-root", AT]),
    };
    let bind = |source: &Path, to: &str| json!({"destination": to, "type": "bind", "source": source, "options": ["bind", "ro"]});
    let mounts = bundle.spec["mounts"].as_array_mut().expect("mounts");
    mounts.push(bind(&laid.at(""), AT));
    if root.is_distribution {
        mounts.push(bind(Path::new("/usr"), "/usr"));
    }
    bundle.spec["linux"]["resources"] = json!({});
    bundle
}

fn run(root: &Root, laid: &Laid, dir: &Path) -> Ended {
    let mut bundle = bundle(root, laid, dir);
    bundle.spec["linux"]["seccomp"] = old_profile();
    bundle.write();
    let state: PathBuf = dir.join("state");
    let bundle = dir.join("bundle");
    Run::new("runc")
        .args([Path::new("--root"), &state, Path::new("run"), Path::new("--bundle"), &bundle])
        .args(["checked"])
        .end()
}

#[test]
fn every_root_file_system_is_judged() {
    if !needs::root() || !needs::released() || !needs::tools(&["runc", "cc", "ldd"]) {
        return;
    }
    let Some(laid) = Laid::out() else { return };
    for (from, name) in [(programs::cli(), "gpu-preflight"), (programs::healthcheck(), "gpu-preflight-healthcheck")] {
        std::fs::copy(from, laid.at(name)).expect("a program");
    }
    let scratch = scratch();
    for (number, root) in ROOTS.iter().enumerate() {
        let well = run(root, &laid, &scratch.at(&number.to_string()));
        assert!(well.stdout.starts_with("healthy: 1 GPU, driver 550.163.01"), "{}: {well:?}", root.name);
        assert_eq!(well.code(), 0, "{}: {well:?}", root.name);
        let says_so = well.stdout.contains("NVML was not asked");
        assert_eq!(says_so, root.program == Program::Static, "{}: {well:?}", root.name);
    }
    laid.shell("rm dev/nvidia-uvm");
    for (number, root) in ROOTS.iter().enumerate() {
        let ill = run(root, &laid, &scratch.at(&format!("without-{number}")));
        assert!(ill.stdout.starts_with("unhealthy [uvm-node-missing]"), "{}: {ill:?}", root.name);
        assert_eq!(ill.code(), 1, "{}: {ill:?}", root.name);
    }
}
