//! Indexes and manifests of the OCI image specification (1.1), and docker's of the second version.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::store::{Layer, Picked, Store, json};
use super::{Failed, Wish, names};
use crate::collect::image::json::read;
use crate::collect::image::layer::digest;
use crate::model::Unseen;

/// Indexes in indexes; containerd takes one in one, docker and podman none.
const MOST_NESTED: usize = 3;
/// Images in one layout, and platforms in one index.
const MOST_IMAGES: usize = 1024;
/// Of all small files that are looked at to find one image, each with what it costs to look; images are named by as
/// many as their platforms, each with some ten kilobytes.
const MOST_BYTES: usize = 64 << 20;
const LOOK: usize = 8 << 10;
const REF_NAME: &str = "org.opencontainers.image.ref.name";
const CONTAINERD_NAME: &str = "io.containerd.image.name";
const CONFIGS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Descriptor {
    media_type: Option<String>,
    digest: String,
    size: Option<u64>,
    platform: Option<Platform>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Platform {
    architecture: Option<String>,
    os: Option<String>,
    variant: Option<String>,
}

/// An index or a manifest: which of them it is, its fields tell, and of media types not even that there is one is
/// certain.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    schema_version: Option<u64>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    artifact_type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfPlatform {
    architecture: Option<String>,
    os: Option<String>,
}

impl Descriptor {
    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// What builders tell of an image, and no image.
    fn is_attestation(&self) -> bool {
        let unknown = |word: &Option<String>| word.as_deref() == Some("unknown");
        self.annotation("vnd.docker.reference.type").is_some()
            || self.platform.as_ref().is_some_and(|on| unknown(&on.architecture) && unknown(&on.os))
    }

    fn is_called(&self, tag: &str) -> bool {
        let names = [REF_NAME, CONTAINERD_NAME].map(|key| self.annotation(key));
        names.into_iter().flatten().any(|name| names::is(name, tag)) || self.digest == tag
    }

    fn name(&self) -> &str {
        self.annotation(CONTAINERD_NAME).or_else(|| self.annotation(REF_NAME)).unwrap_or(&self.digest)
    }
}

/// A manifest that may be the one.
struct Candidate {
    /// Which entry of the outermost index it is of.
    entry: usize,
    digest: String,
    platform: String,
}

/// Picks the image of a tag, or the only one, out of an index. `blob`: where a store has the file of a digest.
pub(super) fn pick(
    store: &dyn Store,
    blob: fn(&str) -> String,
    index: &str,
    tag: Option<&str>,
    wish: &Wish,
) -> Result<Picked, Failed> {
    let absent = || Failed::Absent(Unseen::new(index, "is absent"));
    let outer: Document = json(store, index)?.ok_or_else(absent)?;
    let entries = outer.manifests.unwrap_or_default();
    let images: Vec<&Descriptor> = entries.iter().filter(|entry| !entry.is_attestation()).collect();
    let called: Vec<&Descriptor> =
        images.iter().copied().filter(|entry| tag.is_none_or(|tag| entry.is_called(tag))).collect();
    if called.is_empty() {
        let reason = match tag {
            Some(tag) => {
                format!("has no image named {tag}; it has {}", names::list(images.iter().map(|entry| entry.name())))
            }
            None => "names no image".to_owned(),
        };
        return Err(Failed::Absent(Unseen::new(index, reason)));
    }
    let reader = Reader { store, blob, left: Cell::new(MOST_BYTES) };
    let mut candidates = Vec::new();
    let mut missing = None;
    for (entry, descriptor) in called.iter().enumerate() {
        reader.collect(entry, descriptor, 1, &mut candidates, &mut missing)?;
    }
    let architecture = &wish.architecture;
    let wanted = format!("linux/{architecture}");
    let suits = |candidate: &&Candidate| candidate.platform == wanted;
    let suitable: Vec<&Candidate> = candidates.iter().filter(suits).collect();
    let Some(first) = candidates.first() else {
        return Err(missing.unwrap_or_else(|| Unseen::new(index, "names no image")).into());
    };
    let chosen = match suitable.first() {
        Some(chosen) => *chosen,
        // of one alone it is for the checks to say that it is for another processor
        None if candidates.iter().all(|other| other.digest == first.digest) => first,
        None => {
            let there = names::list(candidates.iter().map(|candidate| candidate.platform.as_str()));
            return Err(Unseen::new(index, format!("has no image for {wanted}; it has {there}")).into());
        }
    };
    let others = suitable.iter().filter(|other| other.entry != chosen.entry);
    if others.clone().any(|other| other.digest != chosen.digest) {
        let names = names::list(called.iter().map(|entry| entry.name()));
        return Err(Unseen::new(index, format!("has several images, so say which: {names}")).into());
    }
    let wanted = Descriptor { digest: chosen.digest.clone(), ..Descriptor::default() };
    let bytes = reader.verified(&wanted)?.ok_or_else(|| Unseen::new(&wanted.digest, "is not there"))?;
    reader.image(&wanted.digest, &read(&wanted.digest, &bytes)?)
}

/// Picks the image of a manifest.
pub(super) fn of_manifest(store: &dyn Store, blob: fn(&str) -> String, manifest: &str) -> Result<Picked, Failed> {
    let absent = || Failed::Absent(Unseen::new(manifest, "is absent"));
    let document: Document = json(store, manifest)?.ok_or_else(absent)?;
    Reader { store, blob, left: Cell::new(MOST_BYTES) }.image(manifest, &document)
}

struct Reader<'a> {
    store: &'a dyn Store,
    blob: fn(&str) -> String,
    /// What may still be read.
    left: Cell<usize>,
}

impl Reader<'_> {
    /// All manifests that a descriptor leads to. What is not there may be of another platform, which nobody fetched.
    fn collect(
        &self,
        entry: usize,
        descriptor: &Descriptor,
        nested: usize,
        candidates: &mut Vec<Candidate>,
        missing: &mut Option<Unseen>,
    ) -> Result<(), Unseen> {
        if nested > MOST_NESTED {
            return Err(Unseen::new(&descriptor.digest, format!("indexes are in each other, more than {MOST_NESTED}")));
        }
        let Some(bytes) = self.verified(descriptor)? else {
            missing.get_or_insert(Unseen::new(&descriptor.digest, "is not there"));
            return Ok(());
        };
        let document: Document = read(&descriptor.digest, &bytes)?;
        if let Some(manifests) = &document.manifests {
            for inner in manifests.iter().filter(|inner| !inner.is_attestation()) {
                self.collect(entry, inner, nested + 1, candidates, missing)?;
            }
            return Ok(());
        }
        if candidates.len() == MOST_IMAGES {
            return Err(Unseen::new("the index", format!("it has more than {MOST_IMAGES} images")));
        }
        let platform = self.platform(descriptor, &document)?;
        candidates.push(Candidate { entry, digest: descriptor.digest.clone(), platform });
        Ok(())
    }

    /// As its index says, or its configuration where that says nothing.
    fn platform(&self, descriptor: &Descriptor, document: &Document) -> Result<String, Unseen> {
        let word = |word: Option<String>| word.filter(|word| !word.is_empty());
        if let Some(Platform { architecture: Some(architecture), os, .. }) = &descriptor.platform {
            return Ok(format!("{}/{architecture}", os.as_deref().unwrap_or("linux")));
        }
        let Some(config) = &document.config else { return Ok(String::new()) };
        let Some(bytes) = self.verified(config)? else { return Ok(String::new()) };
        let of: OfPlatform = read(&config.digest, &bytes).unwrap_or_default();
        let os = word(of.os).unwrap_or_else(|| "linux".to_owned());
        Ok(format!("{os}/{}", word(of.architecture).unwrap_or_default()))
    }

    fn image(&self, name: &str, document: &Document) -> Result<Picked, Failed> {
        if document.schema_version == Some(1) {
            return Err(
                Unseen::new(name, "is a manifest of docker's first version, which nobody writes any more").into()
            );
        }
        let Some(config) = &document.config else {
            let kind = document.artifact_type.as_deref().unwrap_or("it has no configuration");
            return Err(Unseen::new(name, format!("is no container image: {kind}")).into());
        };
        if let Some(kind) = config.media_type.as_deref().filter(|kind| !CONFIGS.contains(kind)) {
            return Err(Unseen::new(name, format!("is no container image: {kind}")).into());
        }
        let configuration = self
            .verified(config)?
            .ok_or_else(|| Unseen::new(&config.digest, "the image's configuration is not there"))?;
        let layers = document.layers.iter().flatten();
        let layers = layers.filter(|layer| layer.media_type.as_deref() != Some("application/vnd.in-toto+json"));
        let layers = layers.enumerate().map(|(number, layer)| {
            Ok(Layer {
                name: self.place(&layer.digest)?,
                label: format!("layer {} ({})", number + 1, short(&layer.digest)),
                digest: Some(layer.digest.clone()),
                diff_id: None,
                size: layer.size,
                sought: false,
            })
        });
        Ok(Picked { configuration, layers: layers.collect::<Result<_, Unseen>>()?, remarks: Vec::new() })
    }

    /// A small blob, if it is what its digest says.
    fn verified(&self, descriptor: &Descriptor) -> Result<Option<Vec<u8>>, Unseen> {
        let digest = &descriptor.digest;
        let Some(bytes) = self.store.small(&self.place(digest)?)? else {
            self.pay(LOOK)?;
            return Ok(None);
        };
        self.pay(LOOK + bytes.len())?;
        if digest::matches(digest, &bytes) {
            Ok(Some(bytes))
        } else {
            Err(Unseen::new(digest, "what lies there has another digest"))
        }
    }

    fn pay(&self, bytes: usize) -> Result<(), Unseen> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.ok_or_else(|| Unseen::new("the index", "it leads to more than is read"))?);
        Ok(())
    }

    fn place(&self, digest: &str) -> Result<String, Unseen> {
        match digest::Hasher::of(digest) {
            Some(_) => Ok((self.blob)(digest)),
            None => Err(Unseen::new(digest, "is no digest that is known")),
        }
    }
}

/// A digest as people read it.
fn short(digest: &str) -> &str {
    let end = digest.find(':').map_or(0, |colon| colon + 1) + 12;
    digest.get(..end).unwrap_or(digest)
}
