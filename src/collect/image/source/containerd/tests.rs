//! Against databases that containerd 1.6 wrote, and a store with such as the tests write.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use super::super::testing::{Made, image, text, wish};
use super::*;
use crate::collect::tree::{Kind, Tree};

mod damage;
mod writer;

use writer::{Node, bucket, bytes};

const VERSION: &str = "etc/os-release";
/// `meta.db` and `metadata.db` of containerd 1.6.20 after a pull of one image into two namespaces and forty more tags of
/// it, two of which were removed again. Its plugin for Kubernetes named the image by its id as well.
const REAL: [&[u8]; 2] = [include_bytes!("testdata/meta.db.gz"), include_bytes!("testdata/metadata.db.gz")];
const META: &str = "io.containerd.metadata.v1.bolt/meta.db";
const SNAPSHOTTER: &str = "io.containerd.snapshotter.v1.overlayfs";

fn real(number: usize) -> Vec<u8> {
    let mut database = Vec::new();
    flate2::read::GzDecoder::new(REAL[number]).read_to_end(&mut database).unwrap();
    database
}

fn write(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn machine(tree: &Tree) -> Machine<'_> {
    Machine::new(tree, true, BTreeMap::new())
}

#[test]
fn what_containerd_wrote_is_read() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), META, &real(0));
    write(dir.path(), &format!("{SNAPSHOTTER}/metadata.db"), &real(1));
    let tree = Tree::open(dir.path(), Kind::Host).unwrap();
    let machine = machine(&tree);
    let records = records::images(&machine, "").unwrap().unwrap();
    let count = |namespace: &str| records.iter().filter(|record| record.namespace == namespace).count();
    assert_eq!((count("default"), count("k8s.io"), records.len()), (39, 2, 41));
    let target = "sha256:6f3635f20f2b6a6d9a7973eea85d494c9e74e7646bb5742d865c035ad2bda98c";
    assert!(records.iter().all(|record| record.target == target));
    assert!(records.iter().any(|record| record.name == "127.0.0.1:5055/spike/torch:tag-40"));
    assert!(!records.iter().any(|record| record.name == "127.0.0.1:5055/spike/torch:tag-7"));
    let diff_ids = [
        "sha256:8e9778a73b1f2efa7433b3d02487de2d0111a6c31471dbc0c4468fb2c4679033".to_owned(),
        "sha256:dd024ebe19c5b0f519369d2c53333de63844a2e3f4b39eddbfa542f9d6df1596".to_owned(),
    ];
    let unpacked =
        |namespace: &str, chain_ids: &[String]| records::unpacked(&machine, "", namespace, chain_ids).unwrap();
    let paths =
        |numbers: [u32; 2]| Some(numbers.map(|number| format!("/{SNAPSHOTTER}/snapshots/{number}/fs")).to_vec());
    let chains = chain_ids(&diff_ids);
    assert_eq!((unpacked("default", &chains), unpacked("k8s.io", &chains)), (paths([1, 2]), paths([3, 4])));
    assert_eq!((unpacked("moby", &chains), unpacked("default", &diff_ids)), (None, None));
}

#[test]
fn where_no_database_is_there_is_no_containerd() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path(), Kind::Host).unwrap();
    assert_eq!(records::images(&machine(&tree), "").unwrap(), None);
    write(dir.path(), META, b"");
    assert!(records::images(&machine(&tree), "").unwrap_err().reason.contains("no database"));
}

/// What of an image a store has.
#[derive(Default)]
struct Has {
    blobs: bool,
    snapshots: bool,
}

fn made() -> Made {
    image(&[&[(VERSION, "VERSION=1\n")], &[(VERSION, "VERSION=2\n")]])
}

/// A store below `root` with an image under a name of a namespace; `target` is its manifest or an index.
fn lay_out(dir: &Path, root: &str, namespace: &str, name: &str, made: &Made, target: &str, has: &Has) {
    let chains = chain_ids(&made.diff_ids);
    let mut own = BTreeMap::new();
    let mut snapshots = BTreeMap::new();
    for (number, chain) in chains.iter().enumerate().filter(|_| has.snapshots) {
        let key = format!("{namespace}/{number}/{chain}");
        own.insert(chain.clone().into_bytes(), bucket([("name", bytes(&key))]));
        let number = 200 + number;
        let id = [u8::try_from(number & 0x7f).unwrap() | 0x80, 1];
        snapshots.insert(key.into_bytes(), bucket([("id", Node::Bytes(id.to_vec())), ("kind", Node::Bytes(vec![3]))]));
        let directory = format!("{root}/{SNAPSHOTTER}/snapshots/{number}/fs/{VERSION}");
        write(dir, &directory, format!("VERSION={}\n", number - 199).as_bytes());
    }
    let target = bucket([("digest", bytes(target)), ("mediatype", bytes("x"))]);
    let images = bucket([
        ("docker.io/library/other:1", bucket([("target", bucket([("digest", bytes("sha256:0"))]))])),
        (name, bucket([("target", target)])),
    ]);
    let space = bucket([("images", images), ("snapshots", bucket([("overlayfs", Node::Bucket(own))]))]);
    let meta = bucket([("v1", bucket([(namespace, space), ("version", bytes("1"))]))]);
    write(dir, &format!("{root}/{META}"), &writer::database(&meta));
    let metadata = bucket([("v1", bucket([("snapshots", Node::Bucket(snapshots))]))]);
    write(dir, &format!("{root}/{SNAPSHOTTER}/metadata.db"), &writer::database(&metadata));
    for (digest, content) in made.blobs.iter().filter(|(digest, _)| has.blobs || !made.layers.contains(digest)) {
        write(dir, &blob(root, digest).unwrap(), content);
    }
}

fn find(dir: &Path, name: &str) -> Result<Found, Failed> {
    let tree = Tree::open(dir, Kind::Host).unwrap();
    let wish = wish(Depth::Files);
    locate(&machine(&tree), name, &wish)?.read(&wish)
}

fn version(found: &Found) -> Option<String> {
    text(found.files.as_ref().unwrap(), &format!("/{VERSION}"))
}

const ROOT: &str = "var/lib/containerd";
const UNPACKED: Has = Has { blobs: false, snapshots: true };

#[test]
fn unpacked_layers_are_enough() {
    let (dir, made) = (tempfile::tempdir().unwrap(), made());
    lay_out(dir.path(), ROOT, "k8s.io", "docker.io/library/t:1", &made, &made.manifest, &UNPACKED);
    for name in ["t:1", "docker.io/library/t:1", "k8s.io/t:1", &format!("t@{}", made.manifest), &made.manifest[..19]] {
        let found = find(dir.path(), name).unwrap();
        assert_eq!(found.id.as_ref(), Some(&made.config), "{name}");
        assert_eq!(found.source, "containerd (/var/lib/containerd, namespace k8s.io), in place (overlayfs)");
        assert_eq!(version(&found).as_deref(), Some("VERSION=2\n"));
    }
    for name in ["t", "default/t:1", "t:2", ""] {
        assert!(matches!(find(dir.path(), name), Err(Failed::Absent(_))), "{name}");
    }
}

#[test]
fn blobs_are_read_where_nothing_is_unpacked() {
    let (dir, made) = (tempfile::tempdir().unwrap(), made());
    let k3s = &BUNDLED[0][1..];
    lay_out(dir.path(), k3s, "k8s.io", "q.io/t:1", &made, &made.manifest, &Has { blobs: true, snapshots: false });
    let found = find(dir.path(), "q.io/t:1").unwrap();
    assert!(found.source.ends_with("its layers' blobs"), "{}", found.source);
    assert_eq!(version(&found).as_deref(), Some("VERSION=2\n"));
}

#[test]
fn blobs_with_tables_of_contents_are_read_by_them() {
    let (dir, made) = (tempfile::tempdir().unwrap(), super::super::testing::with_tables(VERSION));
    lay_out(dir.path(), ROOT, "default", "q.io/t:1", &made, &made.manifest, &Has { blobs: true, snapshots: false });
    let found = find(dir.path(), "q.io/t:1").unwrap();
    assert_eq!(version(&found).as_deref(), Some("2"));
    assert!(found.remarks[0].starts_with("2 layers were read from the table"), "{:?}", found.remarks);
}

#[test]
fn layers_that_are_nowhere_are_said_to_be() {
    let (dir, made) = (tempfile::tempdir().unwrap(), made());
    lay_out(dir.path(), ROOT, "default", "q.io/t:1", &made, &made.manifest, &Has::default());
    let failed = find(dir.path(), "q.io/t:1").unwrap_err().to_string();
    assert!(failed.contains("is absent, and the image is not unpacked"), "{failed}");
}

#[test]
fn of_an_index_what_is_there_is_taken() {
    let (dir, mut made) = (tempfile::tempdir().unwrap(), made());
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [
        {"digest": format!("sha256:{}", "a".repeat(64)), "platform": {"architecture": "arm64", "os": "linux"}},
        {"digest": format!("sha256:{}", "b".repeat(64)), "platform": {"architecture": "amd64", "os": "linux", "variant": "v1"}},
        {"digest": made.manifest, "platform": {"architecture": "amd64", "os": "linux", "variant": "v2"}}]});
    let (index, _) = made.add(index.to_string().into_bytes());
    lay_out(dir.path(), ROOT, "default", "q.io/t:1", &made, &index, &UNPACKED);
    assert_eq!(find(dir.path(), "q.io/t:1").unwrap().id, Some(made.config.clone()));
    std::fs::remove_file(dir.path().join(blob(ROOT, &made.config).unwrap())).unwrap();
    let failed = find(dir.path(), "q.io/t:1").unwrap_err().to_string();
    assert!(failed.contains("is not in /var/lib/containerd"), "{failed}");
}

#[test]
fn a_blob_that_is_another_is_found_out() {
    let (dir, made) = (tempfile::tempdir().unwrap(), made());
    lay_out(dir.path(), ROOT, "default", "q.io/t:1", &made, &made.manifest, &UNPACKED);
    write(dir.path(), &blob(ROOT, &made.config).unwrap(), b"{}");
    assert!(find(dir.path(), "q.io/t:1").unwrap_err().to_string().contains("its digest is"));
}

#[test]
fn a_root_of_the_settings_is_looked_at() {
    let (dir, made) = (tempfile::tempdir().unwrap(), made());
    lay_out(dir.path(), "srv/c", "default", "q.io/t:1", &made, &made.manifest, &UNPACKED);
    assert!(find(dir.path(), "q.io/t:1").is_err());
    write(dir.path(), "etc/containerd/config.toml", b"version = 2\nroot = \"/srv/c\"\n");
    assert_eq!(find(dir.path(), "q.io/t:1").unwrap().id, Some(made.config));
}

#[test]
fn what_was_pulled_for_another_processor_alone_is_taken() {
    let (dir, mut made) = (tempfile::tempdir().unwrap(), made());
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [
        {"digest": made.manifest, "platform": {"architecture": "arm64", "os": "linux"}},
        {"digest": format!("sha256:{}", "b".repeat(64)), "platform": {"architecture": "amd64", "os": "linux"}}]});
    let (index, _) = made.add(index.to_string().into_bytes());
    lay_out(dir.path(), ROOT, "moby", "q.io/t:1", &made, &index, &UNPACKED);
    assert_eq!(find(dir.path(), "q.io/t:1").unwrap().id, Some(made.config));
}
