//! One image from each source that needs no engine gives the same facts.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::world::PACKAGES;
use crate::support::process::Run;
use crate::support::programs::cli;
use crate::support::write;

const VERSION: &str = "__version__ = '2.5.1'\ncuda: str = '12.4'\n";

fn piped(program: &str, args: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect(program);
    let mut stdin = child.stdin.take().expect("a pipe");
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).expect("a pipe"));
    let output = child.wait_with_output().expect(program);
    writer.join().expect("a writer");
    assert!(output.status.success(), "{program}");
    output.stdout
}

fn tar(directory: &Path) -> Vec<u8> {
    let directory = directory.to_str().expect("a path");
    piped("tar", &["--sort=name", "-C", directory, "-cf", "-", "."], b"")
}

fn digest(bytes: &[u8]) -> String {
    let output = String::from_utf8(piped("sha256sum", &[], bytes)).expect("text");
    output.split_whitespace().next().expect("a digest").to_owned()
}

fn facts(reference: &str, stdin: Vec<u8>) -> Value {
    let ended = Run::new(cli()).args(["image", reference, "--format", "json"]).stdin(stdin).end();
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{reference}: {e} {ended:?}"));
    let mut facts = report["facts"]["image"].clone();
    // which source it was is the one thing that differs
    facts.as_object_mut().expect("an object").remove("source");
    facts
}

#[test]
fn one_image_has_the_same_facts_from_every_source() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("root");
    write(&root.join(PACKAGES).join("torch/version.py"), VERSION);
    write(&root.join(PACKAGES).join("torch-2.5.1.dist-info/METADATA"), "Name: torch\nVersion: 2.5.1\n");
    write(&root.join("usr/local/cuda-12.4/version.json"), r#"{"cuda": {"version": "12.4.1"}}"#);
    write(&root.join("etc/os-release"), "ID=debian\n");
    let layer = tar(&root);
    let packed = piped("gzip", &["-n"], &layer);
    let config = json!({"architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest(&layer))]}});
    let config = config.to_string();
    let layout = dir.path().join("layout");
    let blob = |bytes: &[u8]| {
        let hex = digest(bytes);
        let path = layout.join("blobs/sha256").join(&hex);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, bytes).expect("a file");
        json!({"digest": format!("sha256:{hex}"), "size": bytes.len()})
    };
    let manifest =
        json!({"schemaVersion": 2, "config": blob(config.as_bytes()), "layers": [blob(&packed)]}).to_string();
    let index = json!({"schemaVersion": 2, "manifests": [blob(manifest.as_bytes())]});
    write(&layout.join("index.json"), index.to_string());
    write(&layout.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#);
    let docker = dir.path().join("docker");
    write(&docker.join("c.json"), config);
    std::fs::create_dir_all(docker.join("1")).expect("a directory");
    std::fs::write(docker.join("1/layer.tar"), &layer).expect("a file");
    let list = json!([{"Config": "c.json", "RepoTags": ["x:1"], "Layers": ["1/layer.tar"]}]);
    write(&docker.join("manifest.json"), list.to_string());

    let wanted = facts(&format!("oci:{}", layout.display()), Vec::new());
    assert_eq!(wanted["frameworks"][0]["name"], "torch", "{wanted}");
    assert_eq!(wanted["frameworks"][0]["cuda"], "12.4", "{wanted}");
    for (kind, directory) in [("oci-archive", &layout), ("docker-archive", &docker)] {
        let archive = tar(directory);
        let file = dir.path().join(format!("{kind}.tar"));
        std::fs::write(&file, &archive).expect("a file");
        assert_eq!(facts(&format!("{kind}:{}", file.display()), Vec::new()), wanted, "{kind}");
        assert_eq!(facts(file.to_str().expect("a path"), Vec::new()), wanted, "{kind} by its path");
        assert_eq!(facts("-", archive.clone()), wanted, "{kind} on standard input");
        assert_eq!(facts("-", piped("gzip", &[], &archive)), wanted, "{kind}, packed as a whole");
    }
    // it has no configuration to say the processor, nor to be known by
    let mut unpacked = facts(&format!("rootfs:{}", root.display()), Vec::new());
    for of_configuration in ["architecture", "id"] {
        unpacked[of_configuration] = wanted[of_configuration].clone();
    }
    assert_eq!(unpacked, wanted);
}
