//! A step of docker's classic builder, the default before docker 23.
//!
//! Its specification is that of `docker run` to the byte (docker 20.10 and 26, measured), so the engine's own
//! record is asked: a step runs an image by its id and without a health check, which both stand in
//! `DATA_ROOT/containers/ID/config.v2.json` before the container is created (moby `builder/dockerfile`).

use super::Spec;
use super::paths::clean;
use crate::collect::tree::Tree;

/// A record is a few kilobytes, and the environment of an image may be long.
const MOST_BYTES: usize = 256 << 10;

/// The record of this container says that it is such a step. A record that cannot be read says nothing.
pub(super) fn is_step(spec: &Spec, id: &str, files: &Tree) -> bool {
    let Some(record) = record(spec, id) else { return false };
    let Ok(Some(bytes)) = files.read(&record, MOST_BYTES) else { return false };
    let Ok(record) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return false };
    let by_id = record.pointer("/Config/Image").and_then(|image| image.as_str()).is_some_and(is_id);
    let unchecked = record.pointer("/Config/Healthcheck/Test/0").is_some_and(|test| test == "NONE");
    by_id && unchecked
}

/// docker mounts three of its files into every container, and they lie beside the record.
fn record(spec: &Spec, id: &str) -> Option<String> {
    let directory = format!("/containers/{id}");
    let mounts = &spec.mounts.seen()?.items;
    let ours = mounts.iter().filter(|m| ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"].contains(&&*m.destination));
    let mut sources = ours.map(|mount| clean(&mount.source));
    sources.find_map(|source| {
        let (parent, _) = source.rsplit_once('/')?;
        (!id.is_empty() && parent.ends_with(&directory)).then(|| format!("{parent}/config.v2.json"))
    })
}

fn is_id(image: &str) -> bool {
    image.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parse, plain, with_mount};
    use super::*;
    use crate::collect::tree::Kind;

    const ID: &str = "c0ffee";

    fn step(record: &str, mounted_from: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("data/docker/containers").join(ID);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("config.v2.json"), record).unwrap();
        let files = Tree::open(dir.path(), Kind::Host).unwrap();
        is_step(&parse(&with_mount(plain(&[]), "/etc/hostname", mounted_from)), ID, &files)
    }

    #[test]
    fn the_engines_record_tells() {
        let own = "/data/docker/containers/c0ffee/hostname";
        let id = format!("sha256:{}", "a".repeat(64));
        let record = |image: &str, test: &str| {
            format!(r#"{{"Config":{{"Image":"{image}","Healthcheck":{{"Test":["{test}"]}}}}}}"#)
        };
        assert!(step(&record(&id, "NONE"), own));
        assert!(!step(&record("nvidia/cuda:12.4.1-base", "NONE"), own));
        assert!(!step(&record(&id, "CMD"), own));
        assert!(!step(&format!(r#"{{"Config":{{"Image":"{id}"}}}}"#), own));
        assert!(!step("no JSON", own));
        assert!(!step(&record(&id, "NONE"), "/data/docker/containers/another/hostname"));
        assert!(!step(&record(&id, "NONE"), "/elsewhere/containers/c0ffee/hostname"));
    }
}
