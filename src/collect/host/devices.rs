//! Device numbers that the kernel registered, and the nodes in `/dev`. Looked at, never opened.

use std::collections::{BTreeMap, BTreeSet};

use super::look::{fact, names, names_if_there};
use crate::collect::tree::Tree;
use crate::model::host::{Majors, Node, NodeKind};
use crate::model::{Observed, Unseen};

/// Terminals and disks make `/dev` long, not GPUs.
const NAMES_LIMIT: usize = 1 << 16;

/// The character devices of `/proc/devices`.
pub(super) fn majors(tree: &Tree) -> Observed<Majors> {
    let read = || {
        let text = tree.read_text("/proc/devices", 1 << 18)?.ok_or_else(|| Unseen::new("/proc/devices", "absent"))?;
        Ok(parse(&text))
    };
    fact("host.majors", read())
}

/// Only the first section: block devices have numbers of their own.
fn parse(text: &str) -> Majors {
    let section = text.lines().skip_while(|line| !line.starts_with("Character devices")).skip(1);
    let pair = |line: &str| {
        let (number, name) = line.trim().split_once(' ')?;
        Some((name.trim().to_owned(), number.parse().ok()?))
    };
    Majors(section.take_while(|line| !line.ends_with("devices:")).filter_map(pair).collect())
}

/// NVIDIA's nodes, WSL's and Jetson's, by path.
pub(super) fn nodes(tree: &Tree) -> Observed<BTreeMap<String, Node>> {
    let read = || {
        let top = names_if_there(tree, "/dev", NAMES_LIMIT)?.ok_or_else(|| Unseen::new("/dev", "absent"))?;
        let mut found = BTreeMap::new();
        for name in top {
            if name.starts_with("nvidia") || name.starts_with("nvhost-") || matches!(&*name, "dxg" | "nvmap" | "nvgpu")
            {
                add(tree, format!("/dev/{name}"), 2, &mut found)?;
            }
        }
        Ok(found)
    };
    fact("host.device_nodes", read())
}

/// A node, or those in a directory of nodes (`nvidia-caps`, `nvgpu/igpu0`).
fn add(tree: &Tree, path: String, levels: u32, found: &mut BTreeMap<String, Node>) -> Result<(), Unseen> {
    let Some(stat) = tree.stat(&path)? else { return Ok(()) };
    if stat.kind == NodeKind::Directory {
        if levels > 0 {
            for name in names(tree, &path, NAMES_LIMIT)? {
                add(tree, format!("{path}/{name}"), levels - 1, found)?;
            }
        }
        return Ok(());
    }
    let node =
        Node { kind: stat.kind, major: stat.major, minor: stat.minor, mode: stat.mode, uid: stat.uid, gid: stat.gid };
    found.insert(path, node);
    Ok(())
}

/// The `MAJOR:MINOR` names in `/dev/char` of NVIDIA's majors; `None`: there is no such directory.
/// systemd before 240 finds devices by these links only.
pub fn dev_char(tree: &Tree, majors: &Observed<Majors>) -> Observed<Option<Vec<String>>> {
    let majors = match majors.known() {
        Ok(majors) => majors,
        Err(unknown) => return Observed::unknown("host.dev_char", unknown.source, unknown.reason),
    };
    let ours: BTreeSet<u32> = majors.0.iter().filter(|(name, _)| name.starts_with("nv")).map(|(_, n)| *n).collect();
    let of_ours = |name: &String| {
        let major = name.split_once(':').and_then(|(major, _)| major.parse().ok());
        major.is_some_and(|major: u32| ours.contains(&major))
    };
    let read = names_if_there(tree, "/dev/char", NAMES_LIMIT);
    fact("host.dev_char", read.map(|all| all.map(|all| all.into_iter().filter(of_ours).collect())))
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    const DEVICES: &str = "Character devices:\n  1 mem\n  4 /dev/vc/0\n195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n236 nvidia-caps-imex-channels\n237 nvidia-caps\n511 nvidia-uvm\n\nBlock devices:\n  8 sd\n259 blkext\n";

    #[test]
    fn only_character_devices_count() {
        let majors = parse(DEVICES);
        assert_eq!(
            (majors.gpu(), majors.uvm(), majors.caps(), majors.imex()),
            (Some(195), Some(511), Some(237), Some(236))
        );
        assert_eq!((majors.0.get("/dev/vc/0"), majors.0.get("sd")), (Some(&4), None));
        assert!(parse("").0.is_empty() && parse("Block devices:\n195 nvidia\n").0.is_empty());
    }

    #[test]
    fn nodes_are_found_at_every_depth_and_strangers_left_out() {
        let laid = Laid::out(&[
            ("/dev/nvidia0", ""),
            ("/dev/nvidia-caps/nvidia-cap1", ""),
            ("/dev/nvidia-caps-imex-channels/channel0", ""),
            ("/dev/nvgpu/igpu0/power", ""),
            ("/dev/nvhost-ctrl", ""),
            ("/dev/dxg", ""),
            ("/dev/null", ""),
            ("/dev/nvme0", ""),
        ]);
        laid.link("nvidia0", "/dev/nvidia-link");
        laid.link("gone", "/dev/nvidia7");
        let nodes = nodes(&laid.tree());
        let nodes = nodes.seen().unwrap();
        let expected = [
            "/dev/dxg",
            "/dev/nvgpu/igpu0/power",
            "/dev/nvhost-ctrl",
            "/dev/nvidia-caps-imex-channels/channel0",
            "/dev/nvidia-caps/nvidia-cap1",
            "/dev/nvidia-link",
            "/dev/nvidia0",
        ];
        assert_eq!(nodes.keys().collect::<Vec<_>>(), expected);
        assert_eq!(nodes["/dev/nvidia0"].kind, NodeKind::File);
    }

    #[test]
    fn links_of_foreign_majors_do_not_count() {
        let laid = Laid::out(&[("/proc/devices", DEVICES)]);
        let majors = majors(&laid.tree());
        assert_eq!(dev_char(&laid.tree(), &majors), Observed::Known(None));
        for name in ["1:3", "195:255", "511:0", "195"] {
            laid.link("../x", &format!("/dev/char/{name}"));
        }
        let seen = dev_char(&laid.tree(), &majors);
        assert_eq!(seen, Observed::Known(Some(vec!["195:255".into(), "511:0".into()])));
    }
}
