//! The kubelet's CPU manager: its static policy rewrites device rules of running containers.

use super::look::{names, short};
use crate::collect::tree::Tree;

const STATE: &str = "/var/lib/kubelet/cpu_manager_state";
const CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// It lists the CPUs of every container of the node.
const STATE_LIMIT: usize = 4 << 20;
const PROCESSES: usize = 1 << 17;

/// The static policy is in force; `None`: no kubelet was seen.
pub fn kubelet_static_cpu(tree: &Tree) -> Option<bool> {
    by_its_files(tree).or_else(|| by_its_process(tree))
}

/// Its state file tells what it really does, its configuration what it was told.
pub(super) fn by_its_files(tree: &Tree) -> Option<bool> {
    let state = tree.read_text(STATE, STATE_LIMIT).ok().flatten();
    let state = state.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    if let Some(policy) = state.as_ref().and_then(|state| state.get("policyName")).and_then(|policy| policy.as_str()) {
        return Some(policy == "static");
    }
    let config = tree.read_text(CONFIG, 1 << 18).ok().flatten()?;
    let policy = config.lines().find_map(|line| line.strip_prefix("cpuManagerPolicy:"));
    // absent from its configuration it may still be an argument
    policy.map(|policy| policy.trim().trim_matches(['"', '\'']) == "static")
}

fn by_its_process(tree: &Tree) -> Option<bool> {
    let is_kubelet = |pid: &String| {
        pid.bytes().all(|b| b.is_ascii_digit())
            && short(tree, &format!("/proc/{pid}/comm")).ok().flatten().is_some_and(|name| name == "kubelet")
    };
    let pid = names(tree, "/proc", PROCESSES).ok()?.into_iter().find(is_kubelet)?;
    let line = tree.read(&format!("/proc/{pid}/cmdline"), 1 << 17).ok().flatten()?;
    let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
    let joined = words.contains(&b"--cpu-manager-policy=static".as_slice());
    Some(joined || words.windows(2).any(|pair| *pair == [b"--cpu-manager-policy".as_slice(), b"static"]))
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn each_place_tells_the_policy() {
        for (path, text, expected) in [
            (STATE, r#"{"policyName":"static","defaultCpuSet":"","checksum":1}"#, Some(true)),
            (STATE, r#"{"policyName":"none","defaultCpuSet":"","checksum":1}"#, Some(false)),
            (CONFIG, "kind: KubeletConfiguration\ncpuManagerPolicy: static\n", Some(true)),
            (CONFIG, "kind: KubeletConfiguration\n", None),
            ("/proc/uptime", "1 1", None),
        ] {
            assert_eq!(kubelet_static_cpu(&Laid::out(&[(path, text)]).tree()), expected, "{path} {text}");
        }
        for (line, expected) in [
            ("/usr/bin/kubelet\0--cpu-manager-policy=static\0", true),
            ("/usr/bin/kubelet\0--cpu-manager-policy\0static\0", true),
            ("/usr/bin/kubelet\0--v=2\0", false),
        ] {
            let laid = Laid::out(&[
                ("/proc/1/comm", "systemd\n"),
                ("/proc/900/comm", "kubelet\n"),
                ("/proc/900/cmdline", line),
            ]);
            assert_eq!(kubelet_static_cpu(&laid.tree()), Some(expected), "{line}");
        }
    }
}
