//! An OCI image layout: a directory with `index.json` and blobs named by their digests; and skopeo's directory
//! (`dir:`), which has one manifest, `manifest.json`, and blobs beside it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::manifest::MOST_JSON;
use super::store::{Layer, Picked, Store, found};
use super::{Failed, Found, Source, Wish, manifest, oci, region};
use crate::collect::image::layer::{self, Blob};
use crate::collect::image::view::View;
use crate::collect::tree::{Kind, Tree};
use crate::model::Unseen;

pub(super) struct Layout<'a> {
    pub(super) directory: &'a Path,
    pub(super) tag: Option<&'a str>,
}

/// skopeo's.
pub(super) struct Directory<'a> {
    pub(super) directory: &'a Path,
}

impl Source for Layout<'_> {
    fn find(&self, wish: &Wish) -> Result<Found, Failed> {
        let store = opened(self.directory)?;
        let picked = oci::pick(&store, manifest::place, "index.json", self.tag, wish)?;
        found(Box::new(store), picked, "OCI layout", wish)
    }
}

impl Source for Directory<'_> {
    fn find(&self, wish: &Wish) -> Result<Found, Failed> {
        let store = opened(self.directory)?;
        let picked: Picked = oci::of_manifest(&store, beside, "manifest.json")?;
        found(Box::new(store), picked, "directory", wish)
    }
}

fn beside(digest: &str) -> String {
    digest.split_once(':').map_or(digest, |(_, hex)| hex).to_owned()
}

/// A directory.
struct Files(Arc<Tree>);

fn opened(directory: &Path) -> Result<Files, Failed> {
    let unseen = |e: io::Error| Unseen::new(directory.to_string_lossy(), format!("cannot be entered ({e})"));
    let tree = Tree::open(directory, Kind::Host).map_err(|e| Failed::Absent(unseen(e)))?;
    Ok(Files(Arc::new(tree)))
}

impl Store for Files {
    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, Unseen> {
        self.0.read(name, MOST_JSON)
    }

    fn layers(self: Box<Self>, layers: Vec<Layer>, wish: &Wish) -> Result<View, Unseen> {
        let blobs = layers.into_iter().map(|Layer { name, label, digest, diff_id, size, table, .. }| {
            let file = match self.0.file(&name) {
                Ok(Some(file)) => Ok(Arc::new(file)),
                Ok(None) => Err("it is not there".to_owned()),
                Err(unseen) => Err(unseen.reason),
            };
            let parts = file.as_ref().ok().zip(table).map(|(file, table)| region::parts(table, file.clone(), 0));
            let open = move || match file {
                Ok(file) => Ok(Box::new(file) as Box<dyn Read + Send>),
                Err(reason) => Err(io::Error::other(reason)),
            };
            Blob { label, digest, diff_id, size, open: Box::new(open), parts }
        });
        layer::read(blobs.collect(), wish)
    }
}
