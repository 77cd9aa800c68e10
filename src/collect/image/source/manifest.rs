//! Manifests and indexes of OCI and docker: which blobs an image is made of, and which image is meant.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Failed, Wish};
use crate::collect::image::json;
use crate::model::Unseen;

/// Larger than any index, manifest or configuration of use.
pub(super) const MOST_JSON: usize = 8 << 20;
/// More layers than any engine stacks (overlay2: 128).
const MOST_LAYERS: usize = 500;
/// Indexes in indexes.
pub(super) const MOST_NESTED: usize = 3;

/// What is asked for: a registry hides what it is not told that its asker reads.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// Names a blob.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) digest: String,
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) size: Option<u64>,
    #[serde(default)]
    pub(super) annotations: Option<BTreeMap<String, String>>,
    pub(super) platform: Option<Platform>,
}

/// What an image is for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Platform {
    #[serde(default)]
    pub(super) architecture: String,
    #[serde(default)]
    pub(super) os: String,
    #[serde(default)]
    variant: Option<String>,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Document {
    Index(Vec<Descriptor>),
    Manifest(Manifest),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    schema_version: Option<u32>,
    #[serde(default)]
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

/// Reads a manifest or an index; `source` is what it is called.
pub(super) fn read(source: &str, bytes: &[u8]) -> Result<Document, Unseen> {
    let no = |reason: String| Unseen::new(source, reason);
    let written: Written =
        json::read(source, bytes).map_err(|unseen| no(format!("is no manifest of an image: it {}", unseen.reason)))?;
    let media_type = written.media_type.as_deref().unwrap_or_default();
    if written.schema_version == Some(1) || media_type.contains("distribution.manifest.v1+") {
        return Err(no("is of docker's schema 1, which engines no longer pull: push the image anew".to_owned()));
    }
    if let Some(manifests) = written.manifests {
        return Ok(Document::Index(manifests));
    }
    let (Some(config), Some(layers)) = (written.config, written.layers) else {
        return Err(no("is no manifest of an image: it names no configuration and layers".to_owned()));
    };
    if let Some(kind) = written.artifact_type.filter(|kind| !kind.is_empty() && !is_configuration(&config.media_type)) {
        return Err(no(format!("is no container image, but an artifact ({})", short(&kind))));
    }
    if !is_configuration(&config.media_type) {
        return Err(no(format!("is no container image, but {}", what(&config.media_type))));
    }
    if layers.len() > MOST_LAYERS {
        return Err(no(format!("names more than {MOST_LAYERS} layers")));
    }
    for descriptor in layers.iter().chain([&config]) {
        hex(&descriptor.digest)
            .ok_or_else(|| no(format!("names a blob by no digest ({})", short(&descriptor.digest))))?;
    }
    Ok(Document::Manifest(Manifest { config, layers }))
}

fn is_configuration(media_type: &str) -> bool {
    // images of old programs name none
    matches!(
        media_type,
        "" | "application/vnd.oci.image.config.v1+json" | "application/vnd.docker.container.image.v1+json"
    )
}

fn what(media_type: &str) -> String {
    match media_type {
        "application/vnd.cncf.helm.config.v1+json" => "a chart of Helm".to_owned(),
        "application/vnd.oci.empty.v1+json" => "an artifact".to_owned(),
        other => format!("something of the type {}", short(other)),
    }
}

/// Words of an image, cut for a message.
pub(super) fn short(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_default).collect()
}

/// The hexadecimal part of a digest that this program can check.
pub(super) fn hex(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    (hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))).then_some(hex)
}

/// `sha256:…` of bytes.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

/// The bytes are those that a digest names.
pub(super) fn check(source: &str, bytes: &[u8], wanted: &str) -> Result<(), Unseen> {
    let found = digest(bytes);
    if found == wanted { Ok(()) } else { Err(Unseen::new(source, format!("its digest is {found}, not {wanted}"))) }
}

/// The images of an index.
pub(super) fn images(entries: &[Descriptor]) -> impl Iterator<Item = &Descriptor> {
    entries.iter().filter(|entry| !is_attestation(entry) && hex(&entry.digest).is_some())
}

/// The images of an index that may be meant, the best first. One without a platform may be any: its configuration tells.
/// Where there is but one it is meant, and the checks say what it is for.
pub(super) fn choose<'a>(source: &str, entries: &'a [Descriptor], wish: &Wish) -> Result<Vec<&'a Descriptor>, Failed> {
    let rank = |entry: &&Descriptor| match &entry.platform {
        Some(platform) if platform.os == "linux" && platform.architecture == wish.architecture => {
            match platform.variant.as_deref() {
                None | Some("" | "v1" | "v8") => Some(0),
                Some(_) => Some(1),
            }
        }
        Some(_) => None,
        None => Some(2),
    };
    let all: Vec<&Descriptor> = images(entries).collect();
    if let [only] = all[..] {
        return Ok(vec![only]);
    }
    let mut chosen: Vec<(u8, &Descriptor)> = all.iter().filter_map(|entry| Some((rank(entry)?, *entry))).collect();
    chosen.sort_by_key(|(rank, _)| *rank);
    if chosen.is_empty() {
        let mut have: Vec<String> =
            all.iter().filter_map(|entry| entry.platform.as_ref()).map(Platform::name).collect();
        have.sort();
        have.dedup();
        let have = if have.is_empty() { "none at all".to_owned() } else { have.join(", ") };
        let reason = format!("has no image for linux/{}: it has {have}", wish.architecture);
        return Err(Failed::Unreadable(Unseen::new(source, reason)));
    }
    Ok(chosen.into_iter().map(|(_, entry)| entry).collect())
}

/// What buildx pushes beside the images, told by either of its marks.
fn is_attestation(entry: &Descriptor) -> bool {
    let annotation = entry.annotations.as_ref().and_then(|all| all.get("vnd.docker.reference.type"));
    annotation.is_some_and(|kind| kind == "attestation-manifest")
        || entry.platform.as_ref().is_some_and(|platform| platform.architecture == "unknown")
}

impl Platform {
    fn name(&self) -> String {
        let variant = self.variant.as_ref().map(|variant| format!("/{variant}")).unwrap_or_default();
        short(&format!("{}/{}{variant}", self.os, self.architecture))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Depth;
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn wish(architecture: &str) -> Wish {
        Wish { depth: Depth::Config, architecture: architecture.into(), progress: std::sync::Arc::default() }
    }

    fn refused(document: &str) -> String {
        read("x", document.as_bytes()).unwrap_err().reason
    }

    #[test]
    fn what_is_no_image_is_told_apart() {
        let with = |config: &str| {
            format!(r#"{{"schemaVersion":2,"config":{{"mediaType":"{config}","digest":"{DIGEST}"}},"layers":[]}}"#)
        };
        assert!(read("x", with("application/vnd.oci.image.config.v1+json").as_bytes()).is_ok());
        assert!(refused(&with("application/vnd.oci.empty.v1+json")).contains("an artifact"));
        assert!(refused(&with("application/vnd.cncf.helm.config.v1+json")).contains("chart of Helm"));
        assert!(refused(r#"{"schemaVersion":1,"fsLayers":[]}"#).contains("schema 1"));
        assert!(refused(r#"{"errors":[]}"#).contains("no manifest"));
        assert!(refused("[").contains("no manifest"));
        let wrong = with("").replace(DIGEST, "sha256:../../etc");
        assert!(refused(&wrong).contains("by no digest"));
    }

    #[test]
    fn the_image_for_the_wished_processor_is_taken_and_no_attestation() {
        let index = format!(
            r#"{{"schemaVersion":2,"manifests":[
              {{"digest":"{DIGEST}","size":1,"platform":{{"architecture":"unknown","os":"unknown"}}}},
              {{"digest":"{DIGEST}","size":2,"platform":{{"architecture":"amd64","os":"windows"}}}},
              {{"digest":"{DIGEST}","size":3}},
              {{"digest":"{DIGEST}","size":4,"platform":{{"architecture":"amd64","os":"linux","variant":"v3"}}}},
              {{"digest":"{DIGEST}","size":5,"platform":{{"architecture":"amd64","os":"linux"}}}}]}}"#
        );
        let Ok(Document::Index(entries)) = read("x", index.as_bytes()) else { panic!("an index") };
        let sizes = |architecture: &str| -> Vec<Option<u64>> {
            choose("x", &entries, &wish(architecture)).unwrap().iter().map(|entry| entry.size).collect()
        };
        assert_eq!(sizes("amd64"), [Some(5), Some(4), Some(3)]);
        assert_eq!(sizes("arm64"), [Some(3)]);
        let only = choose("x", &entries[1..2], &wish("arm64")).unwrap();
        assert_eq!(only[0].size, Some(2), "there is no other");
        let named: Vec<Descriptor> = entries.into_iter().filter(|entry| entry.platform.is_some()).collect();
        let failed = choose("x", &named, &wish("arm64")).unwrap_err().to_string();
        assert!(
            failed.contains("linux/arm64") && failed.contains("linux/amd64, linux/amd64/v3, windows/amd64"),
            "{failed}"
        );
    }
}
