//! Manifests and indexes of OCI (image specification 1.1) and docker (schema 2): which blobs an image is made of, and
//! which image is meant. Every source reads them by these rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::{Failed, Wish, names};
use crate::collect::image::json;
use crate::collect::image::layer::digest::Hasher;
use crate::model::Unseen;

/// Larger than any index, manifest or configuration of use.
pub(super) const MOST_JSON: usize = 8 << 20;
/// More layers than any engine stacks (overlay2: 128).
const MOST_LAYERS: usize = 500;
/// Indexes in indexes; containerd takes one in one, docker and podman none.
pub(super) const MOST_NESTED: usize = 3;

/// What is asked for: a registry hides what it is not told that its asker reads.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// What builders tell of an image, as a layer.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// Names a blob.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) digest: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) media_type: String,
    pub(super) size: Option<u64>,
    annotations: Option<BTreeMap<String, String>>,
    platform: Option<Platform>,
}

/// What an image is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Platform {
    #[serde(default, deserialize_with = "or_empty")]
    architecture: String,
    #[serde(default, deserialize_with = "or_empty")]
    os: String,
    #[serde(default, deserialize_with = "or_empty")]
    variant: String,
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
    /// No image, but something else that is kept like one; which, says why it is not read.
    Other(Unseen),
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
    let (Some(config), Some(mut layers)) = (written.config, written.layers) else {
        return Err(no("is no manifest of an image: it names no configuration and layers".to_owned()));
    };
    let other = |what: String| Ok(Document::Other(no(format!("is no container image, but {what}"))));
    if !is_configuration(&config.media_type) {
        let artifact = written.artifact_type.filter(|kind| !kind.is_empty());
        return other(
            artifact.map_or_else(|| what(&config.media_type), |kind| format!("an artifact ({})", short(&kind))),
        );
    }
    let many = layers.len();
    layers.retain(|layer| layer.media_type != IN_TOTO);
    if layers.is_empty() && many > 0 {
        return other("what a builder tells of one".to_owned());
    }
    if layers.len() > MOST_LAYERS {
        return Err(no(format!("names more than {MOST_LAYERS} layers")));
    }
    for descriptor in layers.iter().chain([&config]) {
        checked(source, &descriptor.digest)?;
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

/// A digest of a kind that this program computes; it is safe to make a path of.
pub(super) fn checked<'a>(source: &str, digest: &'a str) -> Result<&'a str, Unseen> {
    let no = || Unseen::new(source, format!("names a blob by no digest that is known ({})", short(digest)));
    Hasher::of(digest).map(|_| digest).ok_or_else(no)
}

/// Where layouts and containerd have a blob, below a directory of theirs.
pub(super) fn place(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

/// The bytes are those that a digest names.
pub(super) fn check(source: &str, bytes: &[u8], wanted: &str) -> Result<(), Unseen> {
    let mut hasher = Hasher::of(wanted).unwrap_or_else(Hasher::sha256);
    hasher.update(bytes);
    let found = hasher.finish();
    if found == wanted {
        Ok(())
    } else {
        Err(Unseen::new(source, format!("its digest is {found}, not {}", short(wanted))))
    }
}

/// The images of an index.
pub(super) fn images(entries: &[Descriptor]) -> impl Iterator<Item = &Descriptor> {
    entries.iter().filter(|entry| !entry.is_attestation() && Hasher::of(&entry.digest).is_some())
}

/// The images of an index that may be meant, the best first. One without a platform may be any: its configuration tells.
/// Where there is but one it is meant, and the checks say what it is for.
pub(super) fn choose<'a>(source: &str, entries: &'a [Descriptor], wish: &Wish) -> Result<Vec<&'a Descriptor>, Failed> {
    let rank = |entry: &Descriptor| entry.told().map_or(Some(u8::MAX), |platform| platform.rank(wish));
    let all: Vec<&Descriptor> = images(entries).collect();
    if let [only] = all[..] {
        return Ok(vec![only]);
    }
    let mut chosen: Vec<(u8, &Descriptor)> = all.iter().filter_map(|entry| Some((rank(entry)?, *entry))).collect();
    chosen.sort_by_key(|(rank, _)| *rank);
    if chosen.is_empty() {
        return Err(none_for(source, wish, all.iter().filter_map(|entry| entry.told())).into());
    }
    Ok(chosen.into_iter().map(|(_, entry)| entry).collect())
}

/// There are images, but for other platforms.
pub(super) fn none_for<'a>(source: &str, wish: &Wish, there: impl Iterator<Item = &'a Platform>) -> Unseen {
    let mut have: Vec<String> = there.map(Platform::name).collect();
    have.sort();
    let have = if have.is_empty() { "none at all".to_owned() } else { names::list(have.iter().map(String::as_str)) };
    Unseen::new(source, format!("has no image for linux/{}: it has {have}", wish.architecture))
}

impl Descriptor {
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// What it is for, if that is said.
    pub(super) fn told(&self) -> Option<&Platform> {
        self.platform.as_ref().filter(|platform| !platform.architecture.is_empty())
    }

    /// What buildx pushes beside the images, told by either of its marks.
    fn is_attestation(&self) -> bool {
        self.annotation("vnd.docker.reference.type").is_some()
            || self.platform.as_ref().is_some_and(|platform| platform.architecture == "unknown")
    }
}

impl Platform {
    /// How well it suits, the best least; `None`: not at all.
    pub(super) fn rank(&self, wish: &Wish) -> Option<u8> {
        if !matches!(self.os.as_str(), "linux" | "") || self.architecture != wish.architecture {
            return None;
        }
        Some(u8::from(!matches!(self.variant.as_str(), "" | "v1" | "v8")))
    }

    fn name(&self) -> String {
        let os = if self.os.is_empty() { "linux" } else { &self.os };
        let variant = if self.variant.is_empty() { String::new() } else { format!("/{}", self.variant) };
        short(&format!("{os}/{}{variant}", self.architecture))
    }
}

/// A text that may be absent or `null`.
fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
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
        match read("x", document.as_bytes()) {
            Err(unseen) | Ok(Document::Other(unseen)) => unseen.reason,
            Ok(found) => panic!("{found:?}"),
        }
    }

    #[test]
    fn what_is_no_image_is_told_apart() {
        let with = |config: &str| {
            format!(r#"{{"schemaVersion":2,"config":{{"mediaType":"{config}","digest":"{DIGEST}"}},"layers":[]}}"#)
        };
        let image = read("x", with("application/vnd.oci.image.config.v1+json").as_bytes());
        assert!(matches!(image, Ok(Document::Manifest(_))));
        assert!(refused(&with("application/vnd.oci.empty.v1+json")).contains("an artifact"));
        assert!(refused(&with("application/vnd.cncf.helm.config.v1+json")).contains("chart of Helm"));
        assert!(refused(r#"{"schemaVersion":1,"fsLayers":[]}"#).contains("schema 1"));
        assert!(refused(r#"{"errors":[]}"#).contains("no manifest"));
        assert!(refused("[").contains("no manifest"));
        let with_layers = |kinds: &[&str]| {
            let of = |kind: &&str| format!(r#"{{"mediaType":"{kind}","digest":"{DIGEST}"}}"#);
            let layers = kinds.iter().map(of).collect::<Vec<_>>().join(",");
            with("").replace(r#""layers":[]"#, &format!(r#""layers":[{layers}]"#))
        };
        assert!(refused(&with_layers(&[IN_TOTO])).contains("what a builder tells"));
        let Ok(Document::Manifest(image)) = read("x", with_layers(&["", IN_TOTO]).as_bytes()) else {
            panic!("an image")
        };
        assert_eq!(image.layers.len(), 1);
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
