//! Against a store as podman 4.3 lays it out.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::testing::{Reply, serve_on, text, wish};
use super::*;
use crate::collect::image::layer::testing::digest_of;
use crate::collect::tree::{Kind, Tree};

const ROOT: &str = "var/lib/containers/storage";
const DIFFS: [&str; 2] = ["1", "2"];

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn hex(digit: &str) -> String {
    digit.repeat(64)
}

/// A store with one image of two layers, `/version` in both; returns its id.
fn lay_out(root: &Path, store: &str, driver: &str, diff_ids: &Value) -> String {
    let config =
        json!({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"diff_ids": diff_ids}}).to_string();
    let id = digest_of(config.as_bytes());
    let hexes = DIFFS.map(hex);
    let file = format!("={}", STANDARD.encode(&id));
    let id = id.trim_start_matches("sha256:").to_owned();
    let images = json!([{"id": id, "names": ["docker.io/library/t:1"], "layer": hexes[1]}]);
    let layers = json!([
        {"id": hexes[0], "diff-digest": format!("sha256:{}", hexes[0]), "compression": 2},
        {"id": hexes[1], "parent": hexes[0], "diff-digest": format!("sha256:{}", hexes[1])}]);
    write(root, &format!("{store}/{driver}-images/images.json"), &images.to_string());
    write(root, &format!("{store}/{driver}-layers/layers.json"), &layers.to_string());
    write(root, &format!("{store}/{driver}-images/{id}/{file}"), &config);
    for layer in &hexes {
        let directory = if driver == "vfs" { format!("vfs/dir/{layer}") } else { format!("overlay/{layer}/diff") };
        write(root, &format!("{store}/{directory}/etc/os-release"), &format!("VERSION={}\n", &layer[..1]));
    }
    id
}

fn both() -> Value {
    json!([format!("sha256:{}", hex("1")), format!("sha256:{}", hex("2"))])
}

fn find(root: &Path, name: &str, depth: Depth) -> Result<Found, Failed> {
    let tree = Tree::open(root, Kind::Host).unwrap();
    locate(&Machine::new(&tree, true, BTreeMap::new()), name)?.read(&wish(depth))
}

#[test]
fn layers_are_read_where_they_lie() {
    for driver in ["overlay", "vfs"] {
        let dir = tempfile::tempdir().unwrap();
        let id = lay_out(dir.path(), ROOT, driver, &both());
        let found = find(dir.path(), "t:1", Depth::Files).unwrap();
        assert_eq!(found.id, Some(format!("sha256:{id}")));
        assert_eq!(found.source, "podman (/var/lib/containers/storage), in place");
        assert_eq!(text(found.files.as_ref().unwrap(), "/etc/os-release").as_deref(), Some("VERSION=2\n"));
        assert!(found.remarks.is_empty());
        assert!(find(dir.path(), &id[..12], Depth::Config).unwrap().files.is_none());
        let absent = find(dir.path(), "t:2", Depth::Files).unwrap_err();
        assert!(matches!(absent, Failed::Absent(_)), "{absent}");
    }
}

#[test]
fn a_further_store_holds_images_and_layers_too() {
    let dir = tempfile::tempdir().unwrap();
    let id = lay_out(dir.path(), "ro", "overlay", &both());
    let conf = "[storage]\ngraphroot = \"/own\"\n[storage.options]\nadditionalimagestores = [\"/ro\"]\n";
    write(dir.path(), "etc/containers/storage.conf", conf);
    write(dir.path(), "own/overlay-images/images.json", "[]");
    let found = find(dir.path(), "t:1", Depth::Files).unwrap();
    assert_eq!((found.id, found.source.as_str()), (Some(format!("sha256:{id}")), "podman (/ro), in place"));
}

#[test]
fn layers_that_the_configuration_does_not_name_are_not_taken_for_its_own() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), ROOT, "overlay", &json!([format!("sha256:{}", hex("1"))]));
    let failed = find(dir.path(), "t:1", Depth::Files).unwrap_err().to_string();
    assert!(failed.contains("not those that its configuration names"), "{failed}");
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), ROOT, "overlay", &json!([]));
    let found = find(dir.path(), "t:1", Depth::Files).unwrap();
    assert!(found.remarks[0].contains("podman's list"), "{:?}", found.remarks);
}

#[test]
fn a_damaged_store_is_said_to_be_one() {
    let broken = |path: &str, content: &str| {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path(), ROOT, "overlay", &both());
        write(dir.path(), &format!("{ROOT}/{path}"), content);
        match find(dir.path(), "t:1", Depth::Files) {
            Err(Failed::Unreadable(unseen)) => unseen.reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(broken("overlay-images/images.json", "[{").contains("no such JSON"));
    assert!(broken("overlay-layers/layers.json", "[]").contains("has no layer"));
    let circle = json!([{"id": hex("2"), "parent": hex("2"), "diff-digest": "x"}]).to_string();
    assert!(broken("overlay-layers/layers.json", &circle).contains("more than"));
    let path = json!([{"id": hex("2"), "parent": "../../x"}, {"id": "../../x"}]).to_string();
    assert!(broken("overlay-layers/layers.json", &path).contains("by no id"));
    let incomplete = json!([{"id": hex("2"), "flags": {"incomplete": true}}]).to_string();
    assert!(broken("overlay-layers/layers.json", &incomplete).contains("not unpacked as a whole"));
    assert!(broken(&format!("overlay/{}/composefs-data/x", hex("1")), "").contains("composefs"));
}

#[test]
fn a_store_below_another_root_is_not_left_by_its_links() {
    let dir = tempfile::tempdir().unwrap();
    let id = lay_out(dir.path(), "data/c", "overlay", &both());
    std::fs::create_dir_all(dir.path().join("var/lib/containers")).unwrap();
    std::os::unix::fs::symlink("/data/c", dir.path().join(ROOT)).unwrap();
    let found = find(dir.path(), "t:1", Depth::Files).unwrap();
    assert_eq!(found.id, Some(format!("sha256:{id}")));
}

/// What podman's socket says of an image, when its files tell nothing.
#[test]
fn a_store_that_cannot_be_read_is_asked_for_on_the_socket() {
    let dir = tempfile::tempdir().unwrap();
    let id = lay_out(dir.path(), "store", "overlay", &json!([format!("sha256:{}", hex("1"))]));
    let conf = format!("[storage]\ngraphroot = \"{}/store\"\n", dir.path().display());
    write(dir.path(), "storage.conf", &conf);
    write(dir.path(), "run/podman/x", "");
    let answer = json!({"Id": format!("sha256:{id}"), "Architecture": "amd64", "Os": "linux", "Config": {"Env": ["A=b"]}, "Size": 7,
        "GraphDriver": {"Name": "overlay", "Data": {}}, "RootFS": {"Layers": []}});
    let log = serve_on(&dir.path().join("run/podman/podman.sock"), move |asked| match asked.path.as_str() {
        "/images/t:1/json" => Reply::of(200, answer.to_string()),
        _ => Reply::of(404, ""),
    });
    let at = |path: &str| format!("{}/{path}", dir.path().display());
    let environment = [("CONTAINERS_STORAGE_CONF", at("storage.conf")), ("XDG_RUNTIME_DIR", at("run"))];
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).into();
    let tree = Tree::open(Path::new("/"), Kind::Host).unwrap();
    let machine = Machine::new(&tree, false, environment);
    // its layers are another's, so what podman hands out is asked for
    let held = locate(&machine, "t:1").unwrap();
    assert!(held.read(&wish(Depth::Files)).is_err());
    let paths: Vec<String> = log.lock().unwrap().iter().map(|asked| asked.path.clone()).collect();
    assert_eq!(paths, ["/images/t:1/json", "/images/t:1/get"]);

    write(dir.path(), "store/overlay-images/images.json", "[{");
    let found = locate(&machine, "t:1").unwrap().read(&wish(Depth::Config)).unwrap();
    assert_eq!((found.source.as_str(), found.id), ("podman", Some(format!("sha256:{id}"))));
    assert_eq!(found.configuration.environment["A"], "b");
    assert!(locate(&machine, "t:2").is_err());
}
