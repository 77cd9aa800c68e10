//! Against a store as docker 20 and 26 lay it out, and a socket that answers as they do.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::super::testing::{Reply, serve_on, text, wish};
use super::store::chain_ids;
use super::*;
use crate::collect::image::layer::testing::digest_of;
use crate::collect::tree::{Kind, Tree};

const ROOT: &str = "/var/lib/docker";

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn diff_ids() -> Vec<String> {
    ["1", "2"].map(|digit| format!("sha256:{}", digit.repeat(64))).to_vec()
}

/// A store with an image of two layers, `t:1` and `team/x:latest`; returns its id.
fn lay_out(root: &Path, driver: &str) -> String {
    let config = json!({"architecture": "amd64", "os": "linux", "config": {"Env": ["A=b"]},
        "rootfs": {"diff_ids": diff_ids()}});
    let config = config.to_string();
    let id = digest_of(config.as_bytes());
    let image = format!("{ROOT}/image/{driver}");
    write(root, &format!("{image}/imagedb/content/sha256/{}", hex(&id).unwrap()), &config);
    let names = json!({"Repositories": {"t": {"t:1": id}, "team/x": {"team/x:latest": id},
        "q.io/x": {"q.io/x:1": id, format!("q.io/x@sha256:{}", "d".repeat(64)): id}}});
    write(root, &format!("{image}/repositories.json"), &names.to_string());
    for (number, (chain, diff)) in chain_ids(&diff_ids()).iter().zip(diff_ids()).enumerate() {
        let layer = format!("{image}/layerdb/{}", chain.replacen(':', "/", 1));
        write(root, &format!("{layer}/diff"), &diff);
        write(root, &format!("{layer}/cache-id"), &format!("cache{number}"));
        let directory =
            if driver == "vfs" { format!("vfs/dir/cache{number}") } else { format!("{driver}/cache{number}/diff") };
        write(root, &format!("{ROOT}/{directory}/etc/os-release"), &format!("VERSION={number}\n"));
    }
    id
}

fn on_disk_of(root: &Path, name: &str) -> Result<Found, Failed> {
    let tree = Tree::open(root, Kind::Host).unwrap();
    locate(&Machine::new(&tree, true, BTreeMap::new()), name, &wish(Depth::Files))?.read(&wish(Depth::Files))
}

fn release(found: &Found) -> Option<String> {
    text(found.files.as_ref().unwrap(), "/etc/os-release")
}

#[test]
fn stacks_of_layers_are_named_as_dockers_are() {
    // of an image that docker 20.10 unpacked
    let diffs = diff_ids();
    let chains = chain_ids(&diffs);
    assert_eq!(chains[0], diffs[0]);
    assert_eq!(chains[1], digest_of(format!("{} {}", diffs[0], diffs[1]).as_bytes()));
}

#[test]
fn without_a_daemon_its_files_tell_all() {
    for driver in ["overlay2", "fuse-overlayfs", "vfs"] {
        let dir = tempfile::tempdir().unwrap();
        let id = lay_out(dir.path(), driver);
        let digest = format!("q.io/x@sha256:{}", "d".repeat(64));
        let names = ["t:1", "library/t:1", "docker.io/t:1", "team/x", "q.io/x:1", digest.as_str(), &id, &id[7..19]];
        for name in names {
            let found = on_disk_of(dir.path(), name).unwrap();
            assert_eq!(found.id.as_ref(), Some(&id), "{name}");
            assert_eq!(found.source, format!("docker, in place ({driver})"));
            assert_eq!(release(&found).as_deref(), Some("VERSION=1\n"));
        }
        for name in ["t", "t:2", "y.io/x:1", "../t:1", ""] {
            assert!(matches!(on_disk_of(dir.path(), name), Err(Failed::Absent(_))), "{name}");
        }
    }
}

#[test]
fn a_data_root_of_the_configuration_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let id = lay_out(dir.path(), "overlay2");
    std::fs::create_dir_all(dir.path().join("srv")).unwrap();
    std::fs::rename(dir.path().join("var/lib/docker"), dir.path().join("srv/docker")).unwrap();
    assert!(on_disk_of(dir.path(), "t:1").is_err());
    write(dir.path(), "etc/docker/daemon.json", r#"{"data-root": "/srv/docker"}"#);
    assert_eq!(on_disk_of(dir.path(), "t:1").unwrap().id, Some(id));
}

#[test]
fn layers_of_another_image_and_paths_are_refused() {
    let broken = |path: &str, content: &str| {
        let dir = tempfile::tempdir().unwrap();
        let id = lay_out(dir.path(), "overlay2");
        let chain = chain_ids(&diff_ids())[1].replacen(':', "/", 1);
        let path = path.replace("CHAIN", &chain).replace("ID", hex(&id).unwrap());
        write(dir.path(), &format!("{ROOT}/image/overlay2/{path}"), content);
        on_disk_of(dir.path(), "t:1").unwrap_err().to_string()
    };
    assert!(broken("layerdb/CHAIN/diff", &diff_ids()[0]).contains("is of sha256:1"));
    assert!(broken("layerdb/CHAIN/cache-id", "../../../etc").contains("by no such name"));
    assert!(broken("imagedb/content/sha256/ID", "{}").contains("its digest is"));
}

/// What the daemon of a store says of its image.
fn described(root: &str, id: &str) -> Value {
    json!({"Id": id, "Architecture": "amd64", "Os": "linux", "Size": 7, "Config": {"Env": ["A=b"]},
        "GraphDriver": {"Name": "overlay2", "Data": {
            "UpperDir": format!("{root}/overlay2/cache1/diff"), "LowerDir": format!("{root}/overlay2/cache0/diff")}},
        "RootFS": {"Type": "layers", "Layers": diff_ids()}})
}

fn asked(described: &Value, name: &str, depth: Depth) -> (Result<Found, Failed>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("docker.sock");
    let answer = described.to_string();
    let log = serve_on(&socket, move |asked| match asked.path.as_str() {
        "/images/t:1/json" => Reply::of(200, answer.clone()),
        "/info" => Reply::of(200, r#"{"DockerRootDir":"/nowhere"}"#),
        "/images/odd/json" => Reply::of(500, r#"{"message":"layer does not exist"}"#),
        _ => Reply::of(404, r#"{"message":"no such image"}"#),
    });
    let tree = Tree::open(Path::new("/"), Kind::Host).unwrap();
    let host = format!("unix://{}", socket.display());
    let machine = Machine::new(&tree, false, BTreeMap::from([("DOCKER_HOST".to_owned(), host)]));
    let found = locate(&machine, name, &wish(depth)).and_then(|held| held.read(&wish(depth)));
    let paths = log.lock().unwrap().iter().map(|asked| asked.path.clone()).collect();
    (found, paths)
}

#[test]
fn what_the_daemon_names_is_read_in_place_where_it_is_the_images() {
    let dir = tempfile::tempdir().unwrap();
    let id = lay_out(dir.path(), "overlay2");
    let root = format!("{}{ROOT}", dir.path().display());
    let (found, paths) = asked(&described(&root, &id), "t:1", Depth::Files);
    let found = found.unwrap();
    assert_eq!((found.source.as_str(), found.id.as_ref()), ("docker, in place (overlay2)", Some(&id)));
    assert_eq!(release(&found).as_deref(), Some("VERSION=1\n"));
    assert_eq!(paths, ["/images/t:1/json"]);
    let mut other = described(&root, &id);
    other["GraphDriver"]["Data"]["LowerDir"] = Value::Null;
    let (found, paths) = asked(&other, "t:1", Depth::Files);
    assert!(found.is_err());
    assert_eq!(paths.last().map(String::as_str), Some("/images/t:1/get"), "streamed instead");
}

#[test]
fn of_files_that_are_not_here_the_daemons_words_are_the_configuration() {
    let id = format!("sha256:{}", "a".repeat(64));
    let (found, paths) = asked(&described("/nowhere", &id), "t:1", Depth::Config);
    let found = found.unwrap();
    assert_eq!((found.id.as_ref(), found.source.as_str()), (Some(&id), "docker"));
    assert_eq!(found.configuration.environment["A"], "b");
    assert_eq!(found.configuration.diff_ids, diff_ids());
    assert_eq!(paths, ["/images/t:1/json"]);
}

#[test]
fn an_artifact_is_no_image_and_trouble_is_told() {
    let artifact = json!({"Id": format!("sha256:{}", "a".repeat(64)), "Architecture": "", "RootFS": {}});
    let (found, _) = asked(&artifact, "t:1", Depth::Files);
    assert!(found.unwrap_err().to_string().contains("an artifact"));
    let (found, _) = asked(&artifact, "absent", Depth::Files);
    assert!(matches!(found, Err(Failed::Absent(_))));
    let (found, _) = asked(&artifact, "odd", Depth::Files);
    assert!(found.unwrap_err().to_string().contains("layer does not exist"));
    let (found, paths) = asked(&artifact, "../info", Depth::Files);
    assert!(matches!(found, Err(Failed::Absent(_))) && paths.is_empty());
}
