//! Names of containers, by the files that engines keep.
//!
//! Places as of docker 29, podman 5, nerdctl 2 (their sources, 2026-11); only root can read docker's.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::collect::tree::Tree;
use crate::collect::users;

/// A file about one container.
const LIMIT: usize = 8 << 20;
/// At most so many containers are looked at.
const MOST: usize = 16_384;

/// docker's containers lie below its data root, one directory each.
const DOCKER: &str = "/var/lib/docker";
const DOCKER_SETTINGS: &str = "/etc/docker/daemon.json";

/// One file for all of podman's, beside the layers of its storage driver.
const PODMAN: [&str; 2] = ["overlay-containers/containers.json", "vfs-containers/containers.json"];
const PODMAN_ROOT: &str = "/var/lib/containers/storage";
const PODMAN_HOME: &str = ".local/share/containers/storage";

/// `nerdctl`: `ADDRESS/names/NAMESPACE/NAME`, a file that holds the id.
const NERDCTL: &str = "/var/lib/nerdctl";

#[derive(Deserialize)]
struct OfDocker {
    #[serde(rename = "Name")]
    name: String,
}

#[derive(Deserialize)]
struct DockerSettings {
    #[serde(rename = "data-root")]
    data_root: Option<String>,
}

#[derive(Deserialize)]
struct OfPodman {
    id: String,
    #[serde(default)]
    names: Option<Vec<String>>,
}

/// Ids of the containers that have this name. A file that cannot be read names none.
pub(super) fn ids(host: &Tree, name: &str) -> BTreeSet<String> {
    let usable = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if name.is_empty() || name.starts_with('.') || !usable {
        return BTreeSet::new();
    }
    [of_docker(host, name), of_podman(host, name), of_nerdctl(host, name)].into_iter().flatten().collect()
}

fn of_docker(host: &Tree, name: &str) -> Vec<String> {
    let settings: Option<DockerSettings> = json(host, DOCKER_SETTINGS);
    let root = settings.and_then(|settings| settings.data_root).unwrap_or_else(|| DOCKER.to_owned());
    let directory = format!("{}/containers", root.trim_end_matches('/'));
    let mut ids = names(host, &directory);
    ids.retain(|id| {
        let container: Option<OfDocker> = json(host, &format!("{directory}/{id}/config.v2.json"));
        container.is_some_and(|container| container.name.strip_prefix('/') == Some(name))
    });
    ids
}

fn of_podman(host: &Tree, name: &str) -> Vec<String> {
    let homes = users::at_work(host).into_iter().filter_map(|uid| users::home(host, uid));
    let roots = homes.map(|home| format!("{home}/{PODMAN_HOME}")).chain([PODMAN_ROOT.to_owned()]);
    let mut ids = Vec::new();
    for file in roots.flat_map(|root| PODMAN.map(|file| format!("{root}/{file}"))) {
        let all: Vec<OfPodman> = json(host, &file).unwrap_or_default();
        let has_it = |container: &OfPodman| container.names.iter().flatten().any(|own| own == name);
        ids.extend(all.into_iter().filter(has_it).map(|container| container.id));
    }
    ids
}

fn of_nerdctl(host: &Tree, name: &str) -> Vec<String> {
    let spaces = names(host, NERDCTL).into_iter().flat_map(|address| {
        let directory = format!("{NERDCTL}/{address}/names");
        names(host, &directory).into_iter().map(move |space| format!("{directory}/{space}"))
    });
    let id = |space: String| host.read_text(&format!("{space}/{name}"), 256).ok()?;
    spaces.filter_map(id).map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect()
}

fn names(host: &Tree, directory: &str) -> Vec<String> {
    let names = host.list(directory, MOST).ok().flatten().unwrap_or_default();
    names.into_iter().filter_map(|name| name.into_string().ok()).collect()
}

fn json<T: for<'a> Deserialize<'a>>(host: &Tree, path: &str) -> Option<T> {
    serde_json::from_slice(&host.read(path, LIMIT).ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::laid;
    use crate::collect::tree::Kind;

    #[test]
    fn every_engines_names_are_known() {
        let podman = |id: &str| format!(r#"[{{"id": "{id}", "names": ["train"]}}, {{"id": "x", "names": null}}]"#);
        let dir = laid(&[
            ("/etc/docker/daemon.json", r#"{"data-root": "/srv/docker/"}"#),
            ("/srv/docker/containers/aaa1/config.v2.json", r#"{"ID": "aaa1", "Name": "/train"}"#),
            ("/srv/docker/containers/aaa2/config.v2.json", r#"{"ID": "aaa2", "Name": "/other"}"#),
            ("/srv/docker/containers/aaa3/config.v2.json", "{"),
            ("/var/lib/containers/storage/overlay-containers/containers.json", &podman("bbb1")),
            ("/etc/passwd", "ann:x:1000:1000::/home/ann:/bin/sh\n"),
            ("/run/user/1000/bus", ""),
            ("/home/ann/.local/share/containers/storage/vfs-containers/containers.json", &podman("bbb2")),
            ("/var/lib/nerdctl/1935db59/names/default/train", "ccc1\n"),
        ]);
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        assert_eq!(ids(&tree, "train").into_iter().collect::<Vec<_>>(), ["aaa1", "bbb1", "bbb2", "ccc1"]);
        assert_eq!(ids(&tree, "other").len(), 1);
        for none in ["tra", "../train", "", ".", "/train"] {
            assert!(ids(&tree, none).is_empty(), "{none}");
        }
    }
}
