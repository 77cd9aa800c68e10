//! One image in real engines, in a registry and in a layout: everywhere the same facts, and the same id.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::engines::{self, Engines};
use crate::support::process::{Ended, Run};
use crate::support::{needs, programs, write};

const PACKAGES: &str = "usr/lib/python3/dist-packages";

/// One file of a layer; a name that ends with a slash is a directory.
type Member = (&'static str, &'static str);

/// A torch that the upper layer replaces, a package that it takes away, a directory that it begins anew.
const LAYERS: [&[Member]; 2] = [
    &[
        ("usr/lib/python3/dist-packages/torch/version.py", "__version__ = '2.0.1+cu117'\ncuda = '11.7'\n"),
        ("usr/lib/python3/dist-packages/torch-2.0.1.dist-info/METADATA", "Name: torch\nVersion: 2.0.1+cu117\n"),
        (
            "usr/lib/python3/dist-packages/cupy_cuda11x-12.0.0.dist-info/METADATA",
            "Name: cupy-cuda11x\nVersion: 12.0.0\n",
        ),
        ("usr/local/cuda-11.7/version.json", "{\"cuda\": {\"version\": \"11.7.1\"}}\n"),
    ],
    &[
        ("usr/lib/python3/dist-packages/torch/version.py", "__version__ = '2.5.1+cu124'\ncuda = '12.4'\n"),
        ("usr/lib/python3/dist-packages/.wh.torch-2.0.1.dist-info", ""),
        ("usr/lib/python3/dist-packages/torch-2.5.1.dist-info/METADATA", "Name: torch\nVersion: 2.5.1+cu124\n"),
        ("usr/lib/python3/dist-packages/.wh.cupy_cuda11x-12.0.0.dist-info", ""),
        ("usr/local/cuda-11.7/.wh..wh..opq", ""),
        ("usr/local/cuda-11.7/README", "empty\n"),
    ],
];

fn layer(members: &[Member]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut made: Vec<String> = Vec::new();
    for (path, content) in members {
        for (at, _) in path.match_indices('/') {
            let directory = format!("{}/", &path[..at]);
            if !made.contains(&directory) {
                let mut header = tar::Header::new_gnu();
                header.set_entry_type(tar::EntryType::Directory);
                header.set_size(0);
                header.set_mode(0o755);
                tar.append_data(&mut header, &directory, std::io::empty()).expect("a tar in memory");
                made.push(directory);
            }
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_bytes()).expect("a tar in memory");
    }
    tar.into_inner().expect("a tar in memory")
}

/// Writes a layout with the image; returns its id.
fn lay_out(layout: &Path) -> String {
    let add = |bytes: &[u8]| {
        let hex = format!("{:x}", Sha256::digest(bytes));
        write(&layout.join("blobs/sha256").join(&hex), bytes);
        json!({"digest": format!("sha256:{hex}"), "size": bytes.len()})
    };
    let typed = |mut descriptor: Value, kind: &str| {
        descriptor["mediaType"] = json!(format!("application/vnd.oci.image.{kind}"));
        descriptor
    };
    let mut diff_ids = Vec::new();
    let mut layers = Vec::new();
    for members in LAYERS {
        let tar = layer(members);
        diff_ids.push(format!("sha256:{:x}", Sha256::digest(&tar)));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&tar).expect("memory");
        layers.push(typed(add(&gzip.finish().expect("memory")), "layer.v1.tar+gzip"));
    }
    let config = json!({"architecture": "amd64", "os": "linux", "config": {"Env": ["NVIDIA_VISIBLE_DEVICES=all"]},
        "rootfs": {"type": "layers", "diff_ids": diff_ids}});
    let config = typed(add(config.to_string().as_bytes()), "config.v1+json");
    let id = config["digest"].as_str().expect("a digest").to_owned();
    let manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": layers});
    let manifest = typed(add(manifest.to_string().as_bytes()), "manifest.v1+json");
    write(&layout.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string());
    write(&layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#);
    id
}

struct World {
    engines: Engines,
    name: String,
    id: String,
}

impl World {
    /// `None`: said and skipped.
    fn new() -> Option<Self> {
        let tools = ["podman", "docker", "dockerd", "containerd", "ctr", "docker-registry"];
        if !needs::root() || !needs::tools(&tools) {
            return None;
        }
        let engines = Engines::start();
        let id = lay_out(&engines.at("layout"));
        engines::push(&engines.registry, &engines.at("layout"), "team/torch", "1");
        let name = format!("{}/team/torch:1", engines.registry);
        let storage =
            format!("[storage]\ndriver = \"overlay\"\ngraphroot = {:?}\n", engines.at("podman").display().to_string());
        write(&engines.at("storage.conf"), storage);
        Some(Self { engines, name, id })
    }

    fn run(&self, args: &[&str]) -> Ended {
        let storage = self.engines.at("storage.conf");
        let run = programs::gpu_preflight(&["image", "--fail-on", "never"]).args(args.iter().copied());
        run.env("DOCKER_HOST", self.engines.docker_host()).env("CONTAINERS_STORAGE_CONF", storage).end()
    }

    /// What an image is, its id with it, and where it was read.
    fn looked(&self, args: &[&str]) -> (Value, String) {
        facts(&self.run(&[&["--format", "json"], args].concat()))
    }

    /// The engines' own root as the machine's, for those that no variable leads to.
    fn below(&self) -> String {
        self.engines.at("").display().to_string()
    }
}

#[test]
fn every_engine_tells_the_same_of_one_image() {
    let Some(world) = World::new() else { return };
    let engines = &world.engines;
    engines.docker_pull(&world.name);
    engines.podman_pull("podman", "overlay", &world.name);
    engines.containerd_pull("k8s.io", &world.name);

    let layout = format!("oci:{}", engines.at("layout").display());
    let (expected, _) = world.looked(&[&layout]);
    let frameworks = expected["frameworks"].as_array().expect("frameworks");
    assert_eq!(frameworks.len(), 1, "{expected:#}");
    assert_eq!(expected["id"], json!(world.id));
    assert_eq!((&frameworks[0]["version"], &frameworks[0]["cuda"]), (&json!("2.5.1"), &json!("12.4")));
    assert!(frameworks[0]["source"].as_str().is_some_and(|source| source.contains(PACKAGES)));

    let of = |source: &str| format!("{source}:{}", world.name);
    let (root, name) = (world.below(), &world.name);
    let podman = format!("podman ({}), in place", engines.at("podman").display());
    let registry = format!("registry {}, streamed", engines.registry);
    let rows: [(&[&str], &str); 7] = [
        (&[&of("docker")], "docker, in place (overlay2)"),
        (&[&of("podman")], &podman),
        (&["podman:team/torch:1"], &podman),
        (&["--host-root", &root, &of("containerd")], "containerd (/var/lib/containerd, namespace k8s.io), in place"),
        (&["--host-root", &root, &of("docker")], "docker, in place (overlay2)"),
        (&[&of("registry")], &registry),
        (&[name], "docker, in place (overlay2)"),
    ];
    for (args, from) in rows {
        let (image, source) = world.looked(args);
        assert_eq!(image, expected, "{args:?}");
        assert!(source.starts_with(from), "{args:?} is {source}");
    }
}

#[test]
fn a_store_of_whole_trees_and_one_without_what_its_marks_need_are_read_right() {
    let Some(world) = World::new() else { return };
    let engines = &world.engines;
    let layout = format!("oci:{}", engines.at("layout").display());
    let (expected, _) = world.looked(&[&layout]);
    engines.podman_pull("podman", "vfs", &world.name);
    let (image, source) = world.looked(&["podman:team/torch:1"]);
    assert_eq!(image, expected, "{source}");

    // without CAP_SYS_ADMIN nobody sees which directories begin anew: what docker hands out is read instead
    engines.docker_pull(&world.name);
    let program = programs::cli();
    let run = Run::new("setpriv").args(["--bounding-set", "-sys_admin", "--"]).args([program]);
    let run = run.args(["image", "--fail-on", "never", "--format", "json"]).args([format!("docker:{}", world.name)]);
    let ended = run.env("DOCKER_HOST", engines.docker_host()).end();
    assert_eq!(facts(&ended), (expected, "docker, streamed".to_owned()));
}

/// The facts of the image, and apart from them its source.
fn facts(ended: &Ended) -> (Value, String) {
    let document: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let mut image = document["facts"]["image"].clone();
    let source = image.as_object_mut().and_then(|image| image.remove("source"));
    (image, source.as_ref().and_then(Value::as_str).expect("a source").to_owned())
}

#[test]
fn what_no_engine_has_is_said_of_each() {
    let Some(world) = World::new() else { return };
    let ended = world.run(&["team/absent:1"]);
    assert_ne!(ended.code(), 0, "{ended:?}");
    for words in [
        "docker has no such image",
        "podman has no such image",
        "containerd has no such image",
        "registry:team/absent:1",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {ended:?}");
    }
    let ended = world.run(&[&format!("registry:{}/team/absent:1", world.engines.registry)]);
    assert!(ended.stderr.contains("MANIFEST_UNKNOWN") || ended.stderr.contains("NAME_UNKNOWN"), "{ended:?}");
    let ended = world.run(&["docker:team/absent:1"]);
    assert!(ended.stderr.contains("has no such image"), "{ended:?}");
}
