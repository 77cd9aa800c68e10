//! docker's own archives: `manifest.json` lists images, each with the files of its configuration and layers.

use serde::Deserialize;

use super::store::{Layer, Picked, Store, json};
use super::{Failed, names};
use crate::collect::image::layer::digest;
use crate::model::Unseen;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Option<Vec<String>>,
}

impl Image {
    fn tags(&self) -> impl Iterator<Item = &str> {
        self.repo_tags.iter().flatten().map(String::as_str)
    }

    /// `NAME`, `NAME:TAG` or `TAG` alone.
    fn is_called(&self, tag: &str) -> bool {
        self.tags().any(|name| names::is(name, tag))
    }
}

/// Picks the image of a tag, or the only one.
pub(super) fn pick(store: &dyn Store, tag: Option<&str>) -> Result<Picked, Failed> {
    const NAME: &str = "manifest.json";
    let images: Vec<Image> = json(store, NAME)?.ok_or_else(|| Failed::Absent(Unseen::new(NAME, "is absent")))?;
    let there = || names::list(images.iter().map(|image| image.tags().next().unwrap_or("one without a name")));
    let called: Vec<&Image> = images.iter().filter(|image| tag.is_none_or(|tag| image.is_called(tag))).collect();
    let Some(image) = called.first() else {
        let reason = match tag {
            Some(tag) => format!("has no image named {tag}; it has {}", there()),
            None => "names no image".to_owned(),
        };
        return Err(Failed::Absent(Unseen::new(NAME, reason)));
    };
    if called.iter().any(|other| other.config != image.config) {
        return Err(Unseen::new(NAME, format!("has several images, so say which: {}", there())).into());
    }
    let configuration = store.small(&image.config)?.ok_or_else(|| Unseen::new(&image.config, "is not there"))?;
    if let Some(told) = in_name(&image.config).filter(|told| !digest::matches(told, &configuration)) {
        return Err(Unseen::new(told, "the image's configuration has another digest").into());
    }
    let layers = image.layers.iter().flatten().enumerate().map(|(number, name)| Layer {
        name: name.clone(),
        label: format!("layer {} ({name})", number + 1),
        digest: in_blobs(name),
        diff_id: None,
        size: None,
        sought: true,
        table: None,
    });
    Ok(Picked { configuration, layers: layers.collect(), remarks: Vec::new() })
}

/// The digest that a configuration's file is named by: `HEX.json`, `blobs/sha256/HEX`, `sha256:HEX`.
fn in_name(name: &str) -> Option<String> {
    let base = name.rsplit('/').next()?;
    let hex = base.strip_suffix(".json").unwrap_or(base);
    let digest = format!("sha256:{}", hex.strip_prefix("sha256:").unwrap_or(hex));
    digest::Hasher::of(&digest).map(|_| digest)
}

/// Of a layer only docker's newer archives name the file by its own digest; the older ones by other digests.
pub(super) fn in_blobs(name: &str) -> Option<String> {
    let (algorithm, hex) = name.strip_prefix("blobs/")?.split_once('/')?;
    let digest = format!("{algorithm}:{hex}");
    digest::Hasher::of(&digest).map(|_| digest)
}
