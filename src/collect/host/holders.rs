//! Who the processes are that NVML names, by their files below `/proc`. Their command lines are left alone: people write
//! secrets there.

use std::collections::BTreeMap;

use super::look::short;
use crate::collect::tree::Tree;
use crate::model::host::{HeldBy, Holder};

/// `PROC_PID_INIT_INO` (Linux, `include/linux/proc_ns.h`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// `status` has some fifty lines; `cgroup` one for each hierarchy.
const MOST_STATUS: usize = 64 << 10;
/// Longer lists of users are a directory service's, and not in this file.
const MOST_PASSWD: usize = 1 << 20;
/// A machine with 16 busy GPUs has some hundred.
const MOST_PROCESSES: usize = 1024;

/// This process is in the machine's first pid namespace: pids that NVML names are those of its `/proc`. In any other one
/// the same number is somebody else, or nobody.
pub fn sees_all_processes(tree: &Tree) -> bool {
    matches!(tree.link("/proc/self/ns/pid"), Ok(Some(link)) if link.as_os_str() == FIRST_PID_NAMESPACE)
}

/// Those of the processes that are still there. `maps_users`: users have the machine's own numbers here.
pub fn holders(tree: &Tree, pids: impl IntoIterator<Item = u32>, maps_users: bool) -> BTreeMap<u32, Holder> {
    let mut all: BTreeMap<u32, Holder> =
        pids.into_iter().take(MOST_PROCESSES).filter_map(|pid| Some((pid, holder(tree, pid)?))).collect();
    let passwd = tree.read_text("/etc/passwd", MOST_PASSWD).ok().flatten().unwrap_or_default();
    for holder in all.values_mut() {
        holder.uid = holder.uid.filter(|_| maps_users);
        holder.user = holder.uid.and_then(|uid| name_of(uid, &passwd));
    }
    all
}

fn holder(tree: &Tree, pid: u32) -> Option<Holder> {
    let read = |file: &str| tree.read_text(&format!("/proc/{pid}/{file}"), MOST_STATUS).ok().flatten();
    let status = read("status")?;
    let mut holder = read("cgroup").map(|text| by_cgroup(&text)).unwrap_or_default();
    holder.program = short(tree, &format!("/proc/{pid}/comm")).ok().flatten().filter(|name| !name.is_empty());
    // real, effective, saved, of the file system
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    holder.uid = uids.and_then(|uids| uids.split_whitespace().nth(1)?.parse().ok());
    Some(holder)
}

fn name_of(uid: u32, passwd: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// What the kernel's `cgroup` file tells. Every hierarchy has a path of its own, and those without a controller of note
/// may be short: the first that tells counts.
fn by_cgroup(text: &str) -> Holder {
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut told = Holder::default();
    for path in paths {
        let one = by_path(path);
        told.of_user_manager |= one.of_user_manager;
        told.container = told.container.or(one.container);
        told.pod = told.pod.or(one.pod);
        told.unit = told.unit.or(one.unit);
    }
    told
}

/// From the root down: what stands first is this machine's own, what stands below a container is that container's affair.
fn by_path(path: &str) -> Holder {
    let mut told = Holder::default();
    let mut parent = "";
    for name in path.split('/').filter(|name| !name.is_empty()) {
        told.pod = told.pod.or_else(|| pod(name.split(':').next().unwrap_or_default()));
        if let Some(container) = container(name, parent) {
            told.container = Some(container);
            break;
        }
        told.of_user_manager |= name.starts_with("user@") && name.ends_with(".service");
        if told.unit.is_none() && is_unit(name) {
            told.unit = Some(name.to_owned());
        }
        parent = name;
    }
    told
}

/// `docker-ID.scope`, `libpod-ID.scope`, `cri-containerd-ID.scope`, `crio-ID.scope`, `nerdctl-ID.scope` of systemd's
/// driver; `/docker/ID`, `/libpod_parent/libpod-ID` and `/kubepods/…/podUID/ID` of the other.
fn container(name: &str, parent: &str) -> Option<HeldBy> {
    let bare = name.strip_suffix(".scope").unwrap_or(name);
    let (prefix, id) = bare.rsplit_once(['-', ':']).unwrap_or(("", bare));
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    // conmon watches a container from outside of it
    if !is_id || prefix.ends_with("conmon") {
        return None;
    }
    let engine = match (prefix.rsplit(':').next().unwrap_or_default(), parent) {
        ("docker", _) | ("", "docker") => Some("docker"),
        ("libpod", _) => Some("podman"),
        ("crio", _) => Some("cri-o"),
        ("cri-containerd" | "nerdctl", _) => Some("containerd"),
        _ => None,
    };
    Some(HeldBy { engine, id: id.to_owned() })
}

/// `kubepods-burstable-pod1234_5678.slice` of systemd's driver, where `-` leads down; `pod1234-5678` of the other.
fn pod(name: &str) -> Option<String> {
    let bare = name.strip_suffix(".slice").unwrap_or(name);
    let uid = bare.rsplit_once("-pod").filter(|(before, _)| before.starts_with("kubepods")).map(|(_, uid)| uid);
    let uid = uid.or_else(|| bare.strip_prefix("pod"))?.replace('_', "-");
    let is_uid = uid.len() >= 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_uid.then_some(uid)
}

/// A service, or a scope: `session-3.scope`. The name is part of a command that people type.
fn is_unit(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":_.@-".contains(&byte);
    let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
    matches!(kind, "service" | "scope") && !name.starts_with('-') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn held(engine: Option<&'static str>) -> HeldBy {
        HeldBy { engine, id: ID.to_owned() }
    }

    #[test]
    fn each_engine_has_its_own_way_of_naming_cgroups() {
        for (path, engine) in [
            ("/system.slice/docker-ID.scope", Some("docker")),
            ("/docker/ID", Some("docker")),
            ("/machine.slice/libpod-ID.scope/container", Some("podman")),
            ("/libpod_parent/libpod-ID", Some("podman")),
            ("/kubepods.slice/kubepods-burstable.slice/cri-containerd-ID.scope", Some("containerd")),
            ("/kubepods.slice/crio-ID.scope/container", Some("cri-o")),
            ("/kubepods/besteffort/pod1/ID", None),
            ("/system.slice/containerd.service/kubepods-besteffort-pod1.slice:cri-containerd:ID", Some("containerd")),
        ] {
            assert_eq!(by_path(&path.replace("ID", ID)).container, Some(held(engine)), "{path}");
        }
        for path in
            ["/machine.slice/libpod-conmon-ID.scope", "/system.slice/a-ID0.scope", "/", "", "/system.slice/ID.mount"]
        {
            assert_eq!(by_path(&path.replace("ID", ID)).container, None, "{path}");
        }
    }

    #[test]
    fn the_container_that_this_machine_started_is_named_not_one_inside_it() {
        let path = format!("/docker/{ID}/kubelet.slice/cri-containerd-{}.scope", ID.replace('0', "f"));
        assert_eq!(by_path(&path).container, Some(held(Some("docker"))));
    }

    #[test]
    fn pods_units_and_users() {
        let pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8e1c3c3e_4b1f_4c5a_9d47_0c0e5a1b2c3d.slice/cri-containerd-ID.scope";
        assert_eq!(by_path(&pod.replace("ID", ID)).pod.as_deref(), Some("8e1c3c3e-4b1f-4c5a-9d47-0c0e5a1b2c3d"));
        let other = "/kubepods/burstable/pod8e1c3c3e-4b1f-4c5a-9d47-0c0e5a1b2c3d/ID";
        assert_eq!(by_path(&other.replace("ID", ID)).pod.as_deref(), Some("8e1c3c3e-4b1f-4c5a-9d47-0c0e5a1b2c3d"));
        assert_eq!(by_path("/system.slice/podman.service").pod, None);

        let unit = by_path("/system.slice/ollama.service");
        assert_eq!((unit.unit.as_deref(), unit.of_user_manager), (Some("ollama.service"), false));
        // what a user calls a cgroup of their own is no unit of the machine's
        let own = by_path("/user.slice/user-1000.slice/user@1000.service/app.slice/sshd.service");
        assert_eq!((own.unit.as_deref(), own.of_user_manager), (Some("user@1000.service"), true));
        assert_eq!(by_path("/user.slice/user-1000.slice/session-3.scope").unit.as_deref(), Some("session-3.scope"));
        assert_eq!(by_path("/system.slice/$(reboot).service/a b.service").unit, None);
    }

    #[test]
    fn a_process_is_told_by_its_files_and_never_by_its_command_line() {
        let laid = Laid::out(&[
            ("/proc/4711/comm", "python3\n"),
            ("/proc/4711/status", "Name:\tpython3\nUid:\t0\t1000\t0\t0\n"),
            ("/proc/4711/cgroup", &format!("12:devices:/docker/{ID}\n1:name=systemd:/system.slice/x.service\n0::/\n")),
            ("/proc/4711/cmdline", "python3\0--token=SECRET"),
            ("/proc/4712/status", "Uid:\t7\t7\t7\t7\n"),
            ("/etc/passwd", "root:x:0:0::/:\nalice:x:1000:1000::/:\nbroken\n"),
        ]);
        let all = holders(&laid.tree(), [4711, 4712, 4713], true);
        let first = &all[&4711];
        assert_eq!((first.program.as_deref(), first.user.as_deref()), (Some("python3"), Some("alice")));
        assert_eq!(first.container, Some(held(Some("docker"))));
        assert!(!format!("{all:?}").contains("SECRET"));
        assert_eq!((all[&4712].uid, all[&4712].user.as_deref()), (Some(7), None));
        assert_eq!(all.len(), 2, "one that is gone is absent");
        let mapped = holders(&laid.tree(), [4711], false);
        assert_eq!((mapped[&4711].uid, mapped[&4711].user.as_deref()), (None, None));
    }

    #[test]
    fn in_another_pid_namespace_pids_are_somebody_elses() {
        let laid = Laid::out(&[("/proc/self/ns/x", "")]);
        assert!(!sees_all_processes(&laid.tree()));
        laid.link("pid:[4026531836]", "/proc/self/ns/pid");
        assert!(sees_all_processes(&laid.tree()));
        let inner = Laid::out(&[("/proc/self/ns/x", "")]);
        inner.link("pid:[4026532201]", "/proc/self/ns/pid");
        assert!(!sees_all_processes(&inner.tree()));
    }
}
