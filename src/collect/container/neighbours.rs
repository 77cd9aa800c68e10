//! What else runs in a container, as far as one of its processes sees it.

use crate::collect::tree::Tree;
use crate::model::container::ContainerNode;
use crate::model::host::Majors;

/// Processes that are looked at, and descriptors of each.
const MOST: usize = 256;
const MOST_OPEN: usize = 4096;
/// A kernel lists its processes among some dozens of other names.
const MOST_NAMES: usize = 1 << 16;
const MOST_STATUS: usize = 64 << 10;

/// Another user's program runs here, or may: a kernel that hides what belongs to others does not show it.
pub fn other_users(own: &Tree) -> bool {
    let Some(mine) = identity(own, "self") else { return true };
    let processes = processes(own);
    let first_is_hidden = !processes.iter().any(|pid| pid == "1");
    // what has ended since shows nothing
    let differs = |pid: &String| identity(own, pid).is_some_and(|theirs| theirs != mine);
    first_is_hidden || processes.len() > MOST || processes.iter().any(differs)
}

/// Users and groups, as the kernel writes them.
fn identity(own: &Tree, pid: &str) -> Option<Vec<String>> {
    let status = own.read_text(&format!("/proc/{pid}/status"), MOST_STATUS).ok()??;
    let is_of_it = |line: &&str| ["Uid:", "Gid:", "Groups:"].iter().any(|name| line.starts_with(name));
    Some(status.lines().filter(is_of_it).map(|line| line.trim_end().to_owned()).collect())
}

/// Each of the GPUs' nodes is open in some process, this program's own apart. Those that may not be looked into do not
/// count.
pub fn has_all_gpus_open(own: &Tree, nodes: &[ContainerNode]) -> bool {
    let mut closed: Vec<&str> =
        nodes.iter().map(|node| node.path.as_str()).filter(|path| Majors::gpu_minor(path).is_some()).collect();
    if closed.is_empty() {
        return false;
    }
    let name = |pid: &str| own.read_text(&format!("/proc/{pid}/comm"), 64).ok().flatten();
    let mine = name("self");
    for pid in processes(own).iter().take(MOST).filter(|pid| name(pid) != mine) {
        let descriptors = own.list(&format!("/proc/{pid}/fd"), MOST_OPEN).ok().flatten().unwrap_or_default();
        for descriptor in descriptors {
            let link = own.link(&format!("/proc/{pid}/fd/{}", descriptor.display())).ok().flatten();
            closed.retain(|gpu| !link.as_ref().is_some_and(|link| link.to_string_lossy().ends_with(gpu)));
        }
        if closed.is_empty() {
            return true;
        }
    }
    false
}

fn processes(own: &Tree) -> Vec<String> {
    let names = own.list("/proc", MOST_NAMES).ok().flatten().unwrap_or_default();
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    names.into_iter().filter_map(|name| name.into_string().ok().filter(is_number)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::collect::tree::Kind;

    fn process(root: &Path, pid: &str, comm: &str, uid: u32, groups: &str) {
        let at = root.join("proc").join(pid);
        fs::create_dir_all(at.join("fd")).unwrap();
        fs::write(at.join("comm"), format!("{comm}\n")).unwrap();
        let status = format!("Name:\t{comm}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t0\t0\t0\t0\nGroups:\t{groups}\n");
        fs::write(at.join("status"), status).unwrap();
    }

    #[test]
    fn another_user_or_group_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let others = || other_users(&Tree::open(dir.path(), Kind::Host).unwrap());
        assert!(others(), "nothing shows");
        process(dir.path(), "self", "gpu-preflight", 1000, "44");
        process(dir.path(), "7", "gpu-preflight", 1000, "44");
        assert!(others(), "the first is hidden");
        process(dir.path(), "1", "app", 1000, "44");
        assert!(!others());
        process(dir.path(), "9", "app", 1000, "44 27");
        assert!(others(), "it has one more group");
        process(dir.path(), "9", "app", 0, "44");
        assert!(others());
    }

    #[test]
    fn a_gpu_in_use_shows_by_an_open_node_of_somebody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let gpu = ContainerNode { path: "/dev/nvidia0".into(), ..ContainerNode::default() };
        let of = |gpus: &[ContainerNode]| has_all_gpus_open(&Tree::open(dir.path(), Kind::Host).unwrap(), gpus);
        let in_use = || of(std::slice::from_ref(&gpu));
        process(dir.path(), "self", "gpu-preflight", 0, "");
        process(dir.path(), "1", "app", 0, "");
        process(dir.path(), "7", "gpu-preflight", 0, "");
        symlink("/dev/nvidia0", dir.path().join("proc/7/fd/3")).unwrap();
        symlink("/dev/nvidiactl", dir.path().join("proc/1/fd/3")).unwrap();
        assert!(!in_use(), "this program's own, and the control node alone");
        symlink("/dev/nvidia0", dir.path().join("proc/1/fd/4")).unwrap();
        assert!(in_use() && !of(&[]));
        let other = ContainerNode { path: "/dev/nvidia1".into(), ..ContainerNode::default() };
        assert!(!of(&[gpu.clone(), other]), "the other one may be asleep");
    }
}
