//! The nodes that a container has: looked at, never opened.

use crate::collect::tree::{Stat, Tree};
use crate::model::container::{ContainerNode, IdMapping};
use crate::model::host::Majors;
use crate::model::{Observed, Unseen};

use super::names::is_gpu_node;

/// Names in `/dev` that are still read. A host's `/dev` has a few hundred; a container may have that.
const MOST_NAMES: usize = 16_384;
/// Nodes of one container that are still kept: a machine has some dozens.
pub(super) const MOST_NODES: usize = 1024;
/// Directories of nodes below `/dev`: MIG's capabilities, IMEX channels, Jetson's GPU.
const DIRECTORIES: [&str; 4] = ["/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels", "/dev/nvgpu", "/dev/nvgpu/igpu0"];
/// Nodes without which a statement about the container would be wrong.
const NEEDED: [&str; 6] =
    ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", "/dev/dxg", "/dev/nvmap"];

/// What stands at the places of NVIDIA's nodes below a root. The names come from the directory, the
/// kernel follows links within the root.
pub fn look(root: &Tree) -> Observed<Vec<ContainerNode>> {
    found(root).map(|found| as_nodes(&found))
}

/// The same, with all that the kernel told of each.
pub(super) fn found(root: &Tree) -> Observed<Vec<(String, Stat)>> {
    let found = paths(root).and_then(|paths| looked_at(root, paths));
    Observed::from(found.map_err(|unseen| unseen.leaves_open("container.devices")))
}

/// As facts of the container.
pub(super) fn as_nodes(found: &[(String, Stat)]) -> Vec<ContainerNode> {
    found.iter().map(|(path, stat)| node(path, stat)).collect()
}

/// An id as a user namespace shows it; no mapping: as it is.
pub(super) fn inside(mappings: Option<&[IdMapping]>, id: u32) -> u32 {
    match mappings {
        Some(mappings) if !mappings.is_empty() => IdMapping::inward(mappings, id).unwrap_or(IdMapping::OVERFLOW),
        _ => id,
    }
}

fn paths(root: &Tree) -> Result<Vec<String>, Unseen> {
    let mut paths = Vec::new();
    let mut directories = vec!["/dev"];
    while let Some(directory) = directories.pop() {
        for name in root.list(directory, MOST_NAMES)?.unwrap_or_default() {
            let Some(name) = name.to_str() else { continue };
            let path = format!("{directory}/{name}");
            if let Some(below) = DIRECTORIES.into_iter().find(|below| *below == path) {
                directories.push(below);
            } else if is_gpu_node(&path) {
                if paths.len() == MOST_NODES {
                    return Err(Unseen::new(directory, format!("more than {MOST_NODES} nodes")));
                }
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

fn looked_at(root: &Tree, paths: Vec<String>) -> Result<Vec<(String, Stat)>, Unseen> {
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        match root.stat(&path) {
            Ok(Some(stat)) => found.push((path, stat)),
            Ok(None) => {}
            // an entry that only looks like a node of NVIDIA's spoils nothing
            Err(_) if Majors::gpu_minor(&path).is_none() && !NEEDED.contains(&path.as_str()) => {}
            Err(unseen) => return Err(unseen),
        }
    }
    Ok(found)
}

fn node(path: &str, found: &Stat) -> ContainerNode {
    ContainerNode {
        path: path.to_owned(),
        kind: found.kind,
        major: found.major,
        minor: found.minor,
        mode: found.mode,
        uid: found.uid,
        gid: found.gid,
        looked_at: true,
        ..ContainerNode::default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::collect::tree::Kind;
    use crate::model::host::NodeKind;

    #[test]
    fn names_come_from_the_directory_and_links_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let dev = dir.path().join("dev");
        fs::create_dir_all(dev.join("nvidia-caps")).unwrap();
        fs::create_dir_all(dev.join("nvidia7")).unwrap();
        fs::create_dir_all(dev.join("nvgpu/igpu0")).unwrap();
        for file in ["nvidia0", "null", "nvme0", "nvidia-caps/nvidia-cap1", "nvgpu/igpu0/ctrl", "nvidia-what"] {
            fs::write(dev.join(file), "").unwrap();
        }
        symlink("/dev/null", dev.join("nvidiactl")).unwrap();
        symlink("nowhere", dev.join("nvidia-uvm")).unwrap();
        let nodes = look(&Tree::open(dir.path(), Kind::Container).unwrap());
        let nodes: Vec<_> = nodes.known().unwrap().iter().map(|n| (n.path.as_str(), n.kind)).collect();
        assert_eq!(
            nodes,
            [
                ("/dev/nvidia-what", NodeKind::File),
                ("/dev/nvidia0", NodeKind::File),
                ("/dev/nvidia7", NodeKind::Directory),
                ("/dev/nvidiactl", NodeKind::File),
                ("/dev/nvidia-caps/nvidia-cap1", NodeKind::File),
                ("/dev/nvgpu/igpu0/ctrl", NodeKind::File),
            ]
        );
    }

    #[test]
    fn ids_in_a_user_namespace() {
        let mappings = vec![IdMapping { inside: 0, outside: 100_000, size: 65_536 }];
        assert_eq!((inside(Some(&mappings), 100_044), inside(Some(&mappings), 44)), (44, IdMapping::OVERFLOW));
        assert_eq!((inside(None, 44), inside(Some(&[]), 44)), (44, 44));
    }

    #[test]
    fn no_dev_is_no_nodes() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(&Tree::open(dir.path(), Kind::Container).unwrap()), Observed::Known(vec![]));
    }

    #[test]
    fn needed_nodes_that_cannot_be_looked_at_are_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let dev = dir.path().join("dev");
        fs::create_dir(&dev).unwrap();
        symlink("nvidia-odd", dev.join("nvidia-odd")).unwrap();
        let root = Tree::open(dir.path(), Kind::Container).unwrap();
        assert_eq!(look(&root), Observed::Known(vec![]));
        symlink("nvidia0", dev.join("nvidia0")).unwrap();
        assert!(look(&root).known().is_err());
    }
}
