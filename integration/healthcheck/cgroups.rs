//! Limits and rules of cgroups, of both versions.

use std::path::{Path, PathBuf};

use super::{BOTH, Laid, Program, is_healthy};
use crate::support::needs;
use crate::support::process::{Ended, Run};
use crate::support::repository;

/// A group of one hierarchy, which goes with the value.
struct Group(PathBuf);

impl Group {
    /// `None`: said and skipped. `file`: what such a group must have.
    fn below(hierarchy: &str, file: &str) -> Option<Self> {
        let path = Path::new(hierarchy).join(format!("gpu-preflight-{}-{}", std::process::id(), file));
        let made = std::fs::create_dir(&path).is_ok();
        let group = Self(path);
        let able = made && group.0.join(file).exists();
        (able || needs::skip(&format!("{hierarchy} with {file}"), "no such cgroup can be made")).then_some(group)
    }

    fn set(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap_or_else(|error| panic!("{file} = {value}: {error}"));
    }

    /// Runs it in the group.
    fn run(&self, laid: &Laid, program: Program) -> Ended {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        laid.run_by(Run::new("sh").args(["-c", &enter, "sh"]), program, &[]).end()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // what was in it may still be ending
        for _ in 0..50 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// What is refused by a program attached to the container's cgroup, as on machines with version 2 alone.
#[test]
fn a_rule_of_version_2_that_is_lost_has_its_name() {
    let Some(laid) = Laid::out() else { return };
    if !needs::tools(&["python3"]) {
        return;
    }
    let unified = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .into_iter()
        .find(|mount| Path::new(mount).join("cgroup.controllers").exists());
    let Some(unified) = unified else {
        needs::skip("a cgroup of version 2", "none is mounted");
        return;
    };
    for program in BOTH.into_iter().filter(|program| *program == Program::Dynamic || needs::released()) {
        let Some(group) = Group::below(unified, "cgroup.procs") else { return };
        let first = |ended: &Ended| (ended.code(), ended.stdout.lines().next().unwrap_or_default().to_owned());
        is_healthy(&first(&group.run(&laid, program)));
        let script = repository().join("integration/healthcheck/refuse.py");
        let attached = Run::new("python3").args([script]).args([&group.0]).args(["1", "7"]).end();
        if !attached.status.success() {
            needs::skip("BPF_PROG_TYPE_CGROUP_DEVICE", &attached.stderr);
            return;
        }
        let (code, said) = first(&group.run(&laid, program));
        assert_eq!(code, 1, "{said}");
        assert!(said.starts_with("unhealthy [cgroup-lost-after-daemon-reload]: "), "{said}");
        assert!(said.contains("/dev/nvidia-uvm (c 1:7), which it allowed since"), "{said}");
        is_healthy(&laid.said(program, &[]));
    }
}

#[test]
fn who_may_make_no_process_is_not_unhealthy_for_it() {
    let Some(laid) = Laid::out() else { return };
    let Some(group) = Group::below("/sys/fs/cgroup/pids", "pids.max") else { return };
    for most in ["1", "2", "3", "16"] {
        group.set("pids.max", most);
        for program in BOTH.into_iter().filter(|program| *program == Program::Dynamic || needs::released()) {
            let ended = group.run(&laid, program);
            assert_eq!(ended.code(), 0, "{most} processes, {program:?}: {ended:?}");
            assert!(ended.stdout.starts_with("healthy: "), "{most} processes: {ended:?}");
            assert_eq!(most == "1", ended.stdout.contains("no process could be made to look in"), "{most}: {ended:?}");
        }
    }
}

/// It goes before the container's own programs do, and that says nothing of the GPU.
#[test]
fn where_memory_is_used_up_it_goes_first_and_harms_nobody() {
    let Some(laid) = Laid::out() else { return };
    let Some(group) = Group::below("/sys/fs/cgroup/memory", "memory.limit_in_bytes") else { return };
    if !needs::released() {
        return;
    }
    // docker takes no limit below 6 MiB
    for limit in ["16M", "8M", "6M"] {
        group.set("memory.limit_in_bytes", limit);
        for program in BOTH {
            let ended = group.run(&laid, program);
            assert!(ended.code() == 0 && ended.stdout.starts_with("healthy: "), "{limit}, {program:?}: {ended:?}");
        }
    }
}
