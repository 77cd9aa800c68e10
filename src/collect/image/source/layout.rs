//! An OCI image layout: a directory with `index.json` and blobs named by their digests.

use std::path::Path;

use serde::Deserialize;

use super::{Depth, Failed, Found, Source, Wish};
use crate::collect::image::configuration;
use crate::collect::image::layer;
use crate::collect::tree::{Kind, Tree};
use crate::model::Unseen;

/// Larger than any index, manifest or configuration of use.
const MOST_JSON: usize = 8 << 20;

pub(super) struct Layout<'a> {
    pub(super) directory: &'a Path,
    pub(super) tag: Option<&'a str>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

impl Source for Layout<'_> {
    fn find(&self, wish: &Wish) -> Result<Found, Failed> {
        let tree = Tree::open(self.directory, Kind::Host).map_err(|e| {
            Failed::Absent(Unseen::new(self.directory.to_string_lossy(), format!("cannot be entered ({e})")))
        })?;
        let index: Index = json(&tree, "index.json")?;
        let _ = self.tag;
        let first = index.manifests.first().ok_or_else(|| Unseen::new("index.json", "names no image"))?;
        let manifest: Manifest = json(&tree, &blob(&first.digest))?;
        let path = blob(&manifest.config.digest);
        let bytes = tree.read(&path, MOST_JSON)?.ok_or_else(|| Unseen::new(path, "is absent"))?;
        let configuration = configuration::parse(&bytes)?;
        let files = match wish.depth {
            Depth::Config => None,
            Depth::Files => {
                let open = |layer: &Descriptor| {
                    let path = blob(&layer.digest);
                    tree.file(&path)?.ok_or_else(|| Unseen::new(path, "is absent"))
                };
                let blobs = manifest.layers.iter().map(open).collect::<Result<Vec<_>, _>>()?;
                Some(layer::read(blobs)?)
            }
        };
        Ok(Found {
            source: "OCI layout".to_owned(),
            configuration,
            id: Some(manifest.config.digest),
            files,
            remarks: Vec::new(),
        })
    }
}

fn blob(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

fn json<T: for<'de> Deserialize<'de>>(tree: &Tree, path: &str) -> Result<T, Failed> {
    let bytes = tree.read(path, MOST_JSON)?.ok_or_else(|| Failed::Absent(Unseen::new(path, "is absent")))?;
    serde_json::from_slice(&bytes).map_err(|e| Unseen::new(path, format!("is no such JSON ({e})")).into())
}
