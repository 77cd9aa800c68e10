//! Where a container forbids, lacks or leads astray, and its GPU is well: it must not be killed for that.

use std::path::Path;

use serde_json::{Value, json};

use super::roots::{AT, Root, bundle};
use super::{BOTH, Laid, OTHER_LIBRARY, Program, is_healthy, is_unhealthy, nvml};
use crate::support::process::{Ended, Run};
use crate::support::{needs, programs, scratch};

/// An image may bring a libnvidia-ml of its own, which CUDA does without.
#[test]
fn a_library_of_the_images_own_is_no_error_where_cuda_works() {
    let Some(laid) = Laid::out() else { return };
    std::fs::copy(&nvml().other, laid.at("other")).expect("a library");
    laid.shell(OTHER_LIBRARY);
    for program in BOTH.into_iter().filter(|program| *program == Program::Dynamic || needs::released()) {
        let (ended, _) = laid.check(program, &[]);
        assert!(ended.code() == 0 && ended.stdout.contains("\nwarning [driver-library-mismatch]"), "{ended:?}");
    }
}

/// Who started the container may say that it is not to be judged.
#[test]
fn its_mode_is_kept_to() {
    let Some(laid) = Laid::out() else { return };
    laid.shell("rm dev/nvidia-uvm");
    is_unhealthy(&laid.said(Program::Dynamic, &[]), "uvm-node-missing");
    let with = |name: &str, value: &str| laid.run(Program::Dynamic, &[]).env(name, value).end();
    let warned = with("GPU_PREFLIGHT", "warn");
    assert_eq!(warned.code(), 0, "{warned:?}");
    assert!(warned.stdout.starts_with("healthy by its mode, else unhealthy [uvm-node-missing]: "), "{warned:?}");
    let off = with("GPU_PREFLIGHT", "off");
    assert_eq!((off.code(), &*off.stdout), (0, "healthy: its mode is off, and nothing was judged\n"));
    assert_eq!(with("GPU_PREFLIGHT_IGNORE", "uvm-node-missing").code(), 0);
}

/// What lies where it remembers may be anybody's.
#[test]
fn its_memory_may_be_anything() {
    let Some(laid) = Laid::out() else { return };
    is_healthy(&laid.said(Program::Dynamic, &[]));
    let kept = "../run/gpu-preflight-health-0";
    for forged in [
        format!("rm {kept}; ln -s /etc/passwd {kept}"),
        format!("rm {kept}; mkfifo {kept}"),
        format!("rm {kept}; truncate -s 1G {kept}"),
        format!("rm {kept}; printf '{{\"start\": \"of another\", \"nodes\": [\"/dev/nvidia7\"]}}' > {kept}"),
        format!("rm {kept}; sed 's/nvidia0/nvidia7/' was > {kept}; chmod 666 {kept}"),
        format!("chmod 600 {kept}; chown 1 {kept}"),
    ] {
        if forged.contains("nvidia7") && forged.contains("sed") {
            laid.shell(&format!("rm -f {kept}"));
            is_healthy(&laid.said(Program::Dynamic, &[]));
            laid.shell(&format!("cp {kept} was"));
        }
        laid.shell(&forged);
        is_healthy(&laid.said(Program::Dynamic, &[]));
        assert!(Path::new("/etc/passwd").exists());
    }
}

/// Limits of the process that it is.
#[test]
fn limits_of_its_own_are_no_fault_of_the_gpu() {
    let Some(laid) = Laid::out() else { return };
    for limit in ["-n 4", "-v 200000", "-f 0", "-u 1", "-t 1"] {
        for program in BOTH.into_iter().filter(|program| *program == Program::Dynamic || needs::released()) {
            let line = format!("ulimit {limit}; exec \"$@\"");
            let ended = laid.run_by(Run::new("bash").args(["-c", &line, "sh"]), program, &[]).end();
            assert!(ended.code() == 0 && ended.stdout.starts_with("healthy: "), "{limit}, {program:?}: {ended:?}");
        }
    }
}

fn in_container(laid: &Laid, change: impl FnOnce(&mut Value)) -> Ended {
    let scratch = scratch();
    let root = Root { name: "empty", program: Program::Static, is_distribution: false, lay: |_| () };
    let mut bundle = bundle(&root, laid, &scratch.at(""));
    change(&mut bundle.spec);
    bundle.write();
    let (state, bundle) = (scratch.at("state"), scratch.at("bundle"));
    Run::new("runc")
        .args([Path::new("--root"), &state, Path::new("run"), Path::new("--bundle"), &bundle])
        .args([&format!("checked-{}", std::process::id())])
        .end()
}

fn profile(names: &[&str], action: &str) -> Value {
    let rule = match action {
        "SCMP_ACT_ERRNO" => json!({"names": names, "action": action, "errnoRet": 1}),
        _ => json!({"names": names, "action": action}),
    };
    json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]})
}

/// A profile refuses, or ends whoever asks; a kernel in a container's place has no `/proc`.
#[test]
fn what_a_container_forbids_or_lacks_is_unknown() {
    if !needs::root() || !needs::released() || !needs::tools(&["runc", "cc"]) {
        return;
    }
    let Some(laid) = Laid::out() else { return };
    std::fs::copy(programs::healthcheck(), laid.at("gpu-preflight-healthcheck")).expect("a program");
    assert!(Path::new(AT).is_absolute());
    let access = ["access", "faccessat", "faccessat2"];
    for (names, action) in [
        (&access[..], "SCMP_ACT_ERRNO"),
        (&access, "SCMP_ACT_KILL_PROCESS"),
        (&["openat2"], "SCMP_ACT_KILL_PROCESS"),
        (&["pipe2"], "SCMP_ACT_ERRNO"),
    ] {
        let ended = in_container(&laid, |spec| spec["linux"]["seccomp"] = profile(names, action));
        assert!(ended.code() == 0 && ended.stdout.starts_with("healthy: "), "{names:?} {action}: {ended:?}");
    }
    let without_dev = in_container(&laid, |spec| {
        spec["mounts"].as_array_mut().expect("mounts").retain(|mount| mount["destination"] != "/dev");
    });
    assert!(without_dev.code() == 0 && without_dev.stdout.starts_with("healthy: "), "{without_dev:?}");
    // runc itself does not start without it
    let line = "umount --lazy /proc && exec \"$@\"";
    let unshared = Run::new("unshare").args(["--mount", "sh", "-c", line, "sh"]);
    let without_proc = laid.run_by(unshared, Program::Static, &[]).end();
    assert!(without_proc.code() == 0 && without_proc.stdout.starts_with("healthy: "), "{without_proc:?}");
    let hidden = in_container(&laid, |spec| {
        spec["linux"]["maskedPaths"] = json!(["/proc/driver", "/proc/devices", "/proc/sys", "/sys"]);
    });
    assert!(hidden.code() == 0 && hidden.stdout.starts_with("healthy: "), "{hidden:?}");
}
