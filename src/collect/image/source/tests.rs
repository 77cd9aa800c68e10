use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::collect::files::Files as _;
use crate::collect::image::layer::testing::{Tar, digest_of, wish};
use crate::collect::tree::{Kind, Tree};

const VERSION: &str = "/usr/lib/python3/dist-packages/torch/version.py";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn hex(digest: &str) -> &str {
    digest.split_once(':').unwrap().1
}

/// Three layers: the last is the first once more, so that archives write a link in its place.
fn layers() -> Vec<Vec<u8>> {
    let first = Tar::default().file(&VERSION[1..], b"one").file("gone/version.py", b"1").done();
    let second = Tar::default().file(&VERSION[1..], b"two").file(".wh.gone", b"").file("x.so", &vec![7; 70_000]).done();
    vec![first.clone(), second, first]
}

fn config(layers: &[Vec<u8>], architecture: &str) -> Vec<u8> {
    let diff_ids: Vec<String> = layers.iter().map(|layer| digest_of(layer)).collect();
    json!({"architecture": architecture, "os": "linux", "config": {"Env": ["A=1"]},
        "rootfs": {"type": "layers", "diff_ids": diff_ids}})
    .to_string()
    .into_bytes()
}

/// Files of a layout or archive, by their names.
type Files = Vec<(String, Vec<u8>)>;

fn blob(files: &mut Files, bytes: Vec<u8>) -> Value {
    let digest = digest_of(&bytes);
    let size = bytes.len();
    files.push((format!("blobs/{}", digest.replace(':', "/")), bytes));
    json!({"digest": digest, "size": size})
}

fn with(mut descriptor: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("no object") };
    descriptor.as_object_mut().unwrap().extend(more);
    descriptor
}

/// An image's manifest, and all that it names.
fn image(files: &mut Files, layers: &[Vec<u8>], architecture: &str, pack: fn(&[u8]) -> Vec<u8>) -> Value {
    let config = blob(files, config(layers, architecture));
    let config = with(config, json!({"mediaType": "application/vnd.oci.image.config.v1+json"}));
    let layers: Vec<Value> = layers.iter().map(|layer| blob(files, pack(layer))).collect();
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string().into_bytes();
    blob(files, manifest)
}

fn index(files: &mut Files, manifests: &[Value]) {
    let index = json!({"schemaVersion": 2, "manifests": manifests}).to_string().into_bytes();
    files.push(("index.json".to_owned(), index));
    files.push(("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
}

fn named(name: &str) -> Value {
    json!({"annotations": {"org.opencontainers.image.ref.name": name}})
}

fn layout(pack: fn(&[u8]) -> Vec<u8>) -> Files {
    let mut files = Files::new();
    let manifest = image(&mut files, &layers(), "amd64", pack);
    index(&mut files, &[with(manifest, named("latest"))]);
    files
}

fn write(files: &Files) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

fn archive(files: &Files) -> Vec<u8> {
    // by name, as engines write them: what lists the others comes last
    let mut files: Vec<&(String, Vec<u8>)> = files.iter().collect();
    files.sort();
    files.dedup();
    files.iter().fold(Tar::default(), |tar, (name, bytes)| tar.file(name, bytes)).done()
}

fn manifest_of(files: &[(&str, &str)], tag: &str) -> Vec<u8> {
    let layers: Vec<&str> = files[1..].iter().map(|(name, _)| *name).collect();
    json!([{"Config": files[0].0, "RepoTags": [tag], "Layers": layers}]).to_string().into_bytes()
}

/// docker 20: links for equal layers, before what they point to.
fn docker_of_20() -> Vec<u8> {
    let layers = layers();
    let config = config(&layers, "amd64");
    let name = format!("{}.json", hex(&digest_of(&config)));
    let list = manifest_of(&[(&name, ""), ("c/layer.tar", ""), ("b/layer.tar", ""), ("a/layer.tar", "")], "x:1");
    Tar::default()
        .link("a/layer.tar", "../c/layer.tar")
        .file("a/VERSION", b"1.0")
        .file("b/layer.tar", &layers[1])
        .file("c/layer.tar", &layers[0])
        .file(&name, &config)
        .file("manifest.json", &list)
        .file("repositories", b"{}")
        .done()
}

/// docker 25 and newer: both lists, layers by their digests.
fn docker_of_25() -> Vec<u8> {
    let mut files = layout(<[u8]>::to_vec);
    let layers = layers();
    let digests: Vec<String> =
        layers.iter().map(|layer| format!("blobs/{}", digest_of(layer).replace(':', "/"))).collect();
    let config = format!("blobs/sha256/{}", hex(&digest_of(&config(&layers, "amd64"))));
    let names = [(config.as_str(), ""), (&digests[0], ""), (&digests[1], ""), (&digests[2], "")];
    files.push(("manifest.json".to_owned(), manifest_of(&names, "x:1")));
    archive(&files)
}

/// go-containerregistry: gzip in docker's archive, the configuration's name with a colon.
fn docker_of_ko() -> Vec<u8> {
    let layers = layers();
    let config = config(&layers, "amd64");
    let name = digest_of(&config);
    let list = manifest_of(&[(&name, ""), ("1.tar.gz", ""), ("2.tar.gz", ""), ("1.tar.gz", "")], "x:1");
    Tar::default()
        .file(&name, &config)
        .file("1.tar.gz", &gzip(&layers[0]))
        .file("2.tar.gz", &gzip(&layers[1]))
        .file("manifest.json", &list)
        .done()
}

/// What a path or archive names, on no machine in particular.
fn here(reference: &Reference) -> Result<Found, Failed> {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path(), Kind::Host).unwrap();
    find(reference, &wish(), &Machine::new(&tree, true, BTreeMap::new()))
}

fn in_file(bytes: &[u8], tag: Option<&str>) -> Result<Found, Failed> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("image.tar");
    fs::write(&file, bytes).unwrap();
    here(&Reference::Archive { file, tag: tag.map(str::to_owned) })
}

fn passing(bytes: &[u8]) -> Result<Found, Failed> {
    super::passing::find(Box::new(Cursor::new(bytes.to_vec())), None, None, &wish())
}

fn of_layout(files: &Files, tag: Option<&str>) -> Result<Found, Failed> {
    let dir = write(files);
    here(&Reference::Layout { directory: dir.path().to_owned(), tag: tag.map(str::to_owned) })
}

/// All that a view has, but for which layer it is of.
fn all(found: &Found) -> Vec<String> {
    let view = found.files.as_ref().unwrap();
    assert_eq!(view.all_unread(), []);
    view.entries().map(|(path, entry)| format!("{path} {:?} {} {:?}", entry.kind, entry.size, entry.content)).collect()
}

#[test]
fn one_image_is_the_same_from_every_source() {
    let plain = |bytes: &[u8]| bytes.to_vec();
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
    let first = of_layout(&layout(gzip), None).unwrap();
    let view = first.files.as_ref().unwrap();
    assert_eq!(view.read(VERSION, 10).unwrap().unwrap(), b"one");
    assert_eq!(view.read("/gone/version.py", 10).unwrap().unwrap(), b"1");
    let whole = all(&first);
    let check = |what: &str, found: Result<Found, Failed>| {
        let found = found.unwrap_or_else(|failed| panic!("{what}: {failed}"));
        assert_eq!(found.id, first.id, "{what}");
        assert_eq!(found.configuration, first.configuration, "{what}");
        assert_eq!(found.remarks, [] as [&str; 0], "{what}");
        assert_eq!(all(&found), whole, "{what}");
    };
    check("zstd", of_layout(&layout(zstd), Some("latest")));
    check("not packed", of_layout(&layout(plain), None));
    for (what, bytes) in [
        ("OCI, gzip", archive(&layout(gzip))),
        ("OCI, plain", archive(&layout(plain))),
        ("docker 20", docker_of_20()),
        ("docker 25", docker_of_25()),
        ("ko", docker_of_ko()),
    ] {
        check(what, in_file(&bytes, None));
        check(what, passing(&bytes));
        check(what, passing(&gzip(&bytes)));
        check(what, in_file(&zstd(&bytes), None));
    }
    check("docker by name", in_file(&docker_of_20(), Some("x:1")));
    // skopeo's directory
    let mut files = layout(gzip);
    let manifest: Value =
        serde_json::from_slice(&files.iter().find(|(name, _)| name == "index.json").unwrap().1).unwrap();
    let digest = manifest["manifests"][0]["digest"].as_str().unwrap().to_owned();
    for (name, _) in &mut files {
        *name = name.rsplit('/').next().unwrap().to_owned();
    }
    files.retain(|(name, _)| name != "index.json" && name != "oci-layout");
    for (name, _) in files.iter_mut().filter(|(name, _)| *name == hex(&digest)) {
        "manifest.json".clone_into(name);
    }
    let dir = write(&files);
    check("dir:", here(&Reference::Path(dir.path().to_owned())));
}

#[test]
fn of_layers_with_tables_of_contents_little_is_read() {
    let made = testing::with_tables(&VERSION[1..]);
    let mut files: Files = made.blobs.iter().map(|(digest, bytes)| (manifest::place(digest), bytes.clone())).collect();
    index(&mut files, &[json!({"digest": made.manifest, "size": 1})]);
    // what tells nothing is another file's now: nobody looks
    for digest in &made.layers {
        let file = files.iter_mut().find(|(name, _)| *name == manifest::place(digest)).unwrap();
        file.1[testing::LONG / 2] ^= 1;
    }
    for found in [of_layout(&files, None), in_file(&archive(&files), None)] {
        let found = found.unwrap();
        let view = found.files.unwrap();
        assert_eq!((view.read(VERSION, 10).unwrap().unwrap(), view.all_unread()), (b"2".to_vec(), &[][..]));
        assert!(found.remarks[0].starts_with("2 layers were read from the table"), "{:?}", found.remarks);
    }
}

#[test]
fn a_path_says_itself_what_it_is() {
    let source = |path: PathBuf| here(&Reference::Path(path)).map(|found| found.source);
    let dir = write(&layout(gzip));
    assert_eq!(source(dir.path().to_owned()).unwrap(), "OCI layout");
    assert_eq!(source(format!("{}:latest", dir.path().display()).into()).unwrap(), "OCI layout");
    let file = dir.path().join("x.tar");
    fs::write(&file, docker_of_20()).unwrap();
    assert_eq!(source(file).unwrap(), "docker archive");
    let root = write(&vec![("usr/lib/x.so".to_owned(), vec![1])]);
    assert_eq!(source(root.path().to_owned()).unwrap(), "root file system, in place");
    for wrong in [root.path().join("usr"), root.path().join("none")] {
        assert!(matches!(source(wrong), Err(Failed::Absent(_))));
    }
    let text = root.path().join("text");
    fs::write(&text, "no archive".repeat(100)).unwrap();
    assert!(matches!(source(text), Err(Failed::Unreadable(_))));
}

#[test]
fn of_several_images_the_right_one_is_taken_or_none() {
    let mut files = Files::new();
    let one = layers();
    let two = vec![Tar::default().file("two/version.py", b"2").done()];
    let manifest = image(&mut files, &one, "amd64", gzip);
    let other = image(&mut files, &two, "amd64", gzip);
    index(&mut files, &[with(manifest, named("1")), with(other, named("docker.io/library/x:2"))]);
    let count = |tag| of_layout(&files, tag).map(|found| found.configuration.diff_ids.len());
    assert_eq!((count(Some("1")), count(Some("2")), count(Some("x:2"))), (Ok(3), Ok(1), Ok(1)));
    let said = |failed: Result<usize, Failed>| failed.unwrap_err().to_string();
    assert_eq!(said(count(None)), "index.json: has several images, so say which: 1, docker.io/library/x:2");
    assert!(said(count(Some("3"))).contains("has no image named 3; it has 1, docker.io/library/x:2"));
}

#[test]
fn of_several_platforms_the_one_that_is_wished_for_is_taken() {
    let platform = |architecture: &str| json!({"platform": {"os": "linux", "architecture": architecture}});
    let nested = |wrapped: usize, platforms: &[&str]| {
        let mut files = Files::new();
        let mut manifests: Vec<Value> = platforms
            .iter()
            .map(|on| with(image(&mut files, &layers()[..if *on == "amd64" { 3 } else { 1 }], on, gzip), platform(on)))
            .collect();
        let attestation = blob(&mut files, br#"{"schemaVersion":2,"layers":[]}"#.to_vec());
        let unknown = json!({"platform": {"os": "unknown", "architecture": "unknown"},
            "annotations": {"vnd.docker.reference.type": "attestation-manifest"}});
        manifests.push(with(attestation, unknown));
        // of another platform, which nobody fetched
        let absent = json!({"digest": format!("sha256:{}", "0".repeat(64)), "size": 1});
        manifests.push(with(absent, platform("s390x")));
        for _ in 0..wrapped {
            let inner = json!({"schemaVersion": 2, "manifests": manifests}).to_string().into_bytes();
            manifests = vec![blob(&mut files, inner)];
        }
        index(&mut files, &manifests);
        of_layout(&files, None).map(|found| found.configuration.architecture)
    };
    for wrapped in 0..3 {
        assert_eq!(nested(wrapped, &["arm64", "amd64"]).as_deref(), Ok("amd64"), "{wrapped}");
    }
    assert!(nested(3, &["amd64"]).unwrap_err().to_string().contains("indexes"));
    // one alone is judged for what it is
    assert_eq!(nested(1, &["arm64"]).as_deref(), Ok("arm64"));
    let none = nested(1, &["arm64", "riscv64"]).unwrap_err().to_string();
    assert!(none.contains("has no image for linux/amd64: it has linux/arm64, linux/riscv64"), "{none}");
}

#[test]
fn what_is_no_image_is_said_to_be_none() {
    let of = |manifest: Value| {
        let mut files = Files::new();
        let empty = blob(&mut files, b"{}".to_vec());
        let mut manifest = manifest;
        if manifest["config"].is_object() {
            manifest["config"]["digest"] = empty["digest"].clone();
        }
        let manifest = blob(&mut files, manifest.to_string().into_bytes());
        index(&mut files, &[manifest]);
        of_layout(&files, None).map(drop).unwrap_err().to_string()
    };
    let helm = "application/vnd.cncf.helm.config.v1+json";
    assert!(of(json!({"schemaVersion": 2, "config": {"mediaType": helm}, "layers": []})).contains("a chart of Helm"));
    assert!(of(json!({"schemaVersion": 1, "fsLayers": []})).contains("schema 1"));
    assert!(of(json!({"schemaVersion": 2, "layers": []})).contains("names no configuration"));
    assert!(of(json!([1, 2])).contains("is no manifest of an image"));
}

#[test]
fn an_artifact_beside_an_image_is_no_image_and_what_cannot_be_read_may_be_the_one() {
    let beside = |other: &[u8], architecture: &str| {
        let mut files = Files::new();
        let other = blob(&mut files, other.to_vec());
        let image = image(&mut files, &layers(), architecture, gzip);
        index(&mut files, &[other, image]);
        of_layout(&files, None).map(|found| found.configuration.architecture).map_err(|failed| failed.to_string())
    };
    let empty = json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": "sha256:0"});
    let artifact = json!({"schemaVersion": 2, "artifactType": "x", "config": empty, "layers": []}).to_string();
    assert_eq!(beside(artifact.as_bytes(), "amd64").as_deref(), Ok("amd64"));
    assert_eq!(beside(artifact.as_bytes(), "arm64").as_deref(), Ok("arm64"));
    assert_eq!(beside(b"{", "amd64").as_deref(), Ok("amd64"));
    assert!(beside(b"{", "arm64").unwrap_err().contains("is no manifest of an image"));
}

#[test]
fn wrong_digests_are_not_believed() {
    let broken = |what: &str| {
        let mut files = layout(gzip);
        let place = files.iter_mut().find(|(_, bytes)| bytes.windows(what.len()).any(|part| part == what.as_bytes()));
        place.unwrap().1.push(b' ');
        of_layout(&files, None).map(drop).unwrap_err().to_string()
    };
    assert!(broken("\"layers\":[").contains("its digest is"));
    assert!(broken("diff_ids").contains("its digest is"));
    // of a layer only what is above it is known
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, <[u8]>::to_vec] {
        let mut files = layout(pack);
        let second = pack(&layers()[1]);
        files.iter_mut().find(|(_, bytes)| *bytes == second).unwrap().1[300] ^= 1;
        let names = |found: Result<Found, Failed>| {
            let view = found.unwrap().files.unwrap();
            assert_eq!(view.all_unread().len(), 1);
            view.entries().count()
        };
        let wanted = names(of_layout(&files, None));
        assert_eq!((names(in_file(&archive(&files), None)), names(passing(&archive(&files)))), (wanted, wanted));
    }
}

#[test]
fn hostile_archives_get_an_answer() {
    let failed = |bytes: Vec<u8>| {
        let one = in_file(&bytes, None).map(drop);
        let other = passing(&bytes).map(drop);
        assert!(one.is_err() && other.is_err());
        one.unwrap_err().to_string()
    };
    assert!(failed(Tar::default().done()).contains("no image's archive"));
    assert!(failed(Tar::default().file("manifest.json", b"[]").done()).contains("names no image"));
    assert!(failed(Tar::default().link("manifest.json", "manifest.json").done()).contains("no image's archive"));
    let list = manifest_of(&[("none.json", ""), ("none.tar", "")], "x");
    assert!(failed(Tar::default().file("manifest.json", &list).done()).contains("not there"));
    assert!(failed(Tar::default().raw(b'0', b"manifest.json", b"", 1 << 40, b"[").0).contains("cut off"));
    let big = vec![b'['; manifest::MOST_JSON + 1];
    failed(Tar::default().file("manifest.json", &big).done());
    let many = (0..30_000).fold(Tar::default(), |tar, n| tar.file(&format!("{n}"), b""));
    assert!(failed(many.done()).contains("members"));
    // a layer that leads out of the archive
    let config = config(&[], "amd64");
    let list = manifest_of(&[("c.json", ""), ("../../etc/passwd", "")], "x");
    let out = Tar::default().file("c.json", &config).file("manifest.json", &list).link("etc/passwd", "/etc/passwd");
    for found in [in_file(&out.clone().done(), None), passing(&out.done())] {
        let view = found.unwrap().files.unwrap();
        assert_eq!((view.entries().count(), view.all_unread().len()), (0, 1));
    }
}
