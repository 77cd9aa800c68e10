//! Nodes that nobody named.

use super::Place;
use super::scene::Scene;
use crate::model::Unseen;

/// Directories of nodes below `/dev`.
const DIRECTORIES: [&str; 2] = ["nvidia-caps", "nvidia-caps-imex-channels"];
/// A privileged container has all of the host's `/dev`; there may be 2048 IMEX channels.
const MOST: usize = 4096;

/// Paths of what the container has below `/dev` with a name that begins with `nvidia`, sorted, and of
/// what is in NVIDIA's directories there, whatever it is.
pub fn nvidia_names(place: Place<'_>) -> Result<Vec<String>, Unseen> {
    let tree = Scene::open(place)?.tree;
    let list = |directory: &str| -> Result<Vec<String>, Unseen> {
        let names = tree.list(directory, MOST)?.unwrap_or_default();
        // no node of NVIDIA's has a name that is not UTF-8
        Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
    };
    let mut paths = Vec::new();
    for name in list("/dev")?.into_iter().filter(|name| name.starts_with("nvidia")) {
        if DIRECTORIES.contains(&name.as_str()) {
            paths.extend(list(&format!("/dev/{name}"))?.into_iter().map(|node| format!("/dev/{name}/{node}")));
        } else {
            paths.push(format!("/dev/{name}"));
        }
    }
    Ok(paths)
}
