//! What images are picked from: a directory or an archive, with small files of JSON and large ones, the layers.

use serde::de::DeserializeOwned;

use super::{Depth, Failed, Found, Wish};
use crate::collect::image::layer::{self, Table, digest};
use crate::collect::image::view::View;
use crate::collect::image::{self, configuration};
use crate::model::Unseen;

/// A place with files of an image, by their names in it.
pub(super) trait Store {
    /// A small file; `None`: it is absent.
    fn small(&self, name: &str) -> Result<Option<Vec<u8>>, Unseen>;

    /// The layers' files, bottom to top, as one view.
    fn layers(self: Box<Self>, layers: Vec<Layer>, wish: &Wish) -> Result<View, Unseen>;
}

/// A layer in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layer {
    /// Its file.
    pub(super) name: String,
    /// What it is called in messages.
    pub(super) label: String,
    /// The digest of its file, if that is told.
    pub(super) digest: Option<String>,
    /// The digest of its archive, if that is told.
    pub(super) diff_id: Option<String>,
    /// How long its file is, if that is told.
    pub(super) size: Option<u64>,
    /// Only what tells something need be read of it: its digests are the word of the same file that it is in.
    pub(super) sought: bool,
    /// Where its table of contents is, if it has one.
    pub(super) table: Option<Table>,
}

/// An image in a store.
#[derive(Debug, Default)]
pub(super) struct Picked {
    /// Its configuration, as it is written.
    pub(super) configuration: Vec<u8>,
    /// Its layers, bottom to top.
    pub(super) layers: Vec<Layer>,
    /// What the user should know.
    pub(super) remarks: Vec<String>,
}

/// Reads of a picked image what is wished.
pub(super) fn found(store: Box<dyn Store>, picked: Picked, source: &str, wish: &Wish) -> Result<Found, Failed> {
    let Picked { configuration: bytes, mut layers, mut remarks } = picked;
    if layers.len() > layer::MOST_LAYERS {
        let reason = format!("names more than {} layers", layer::MOST_LAYERS);
        return Err(Unseen::new("the manifest", reason).into());
    }
    let configuration = configuration::parse(&bytes)?;
    let mut hasher = digest::Hasher::sha256();
    hasher.update(&bytes);
    let told = configuration.diff_ids.len();
    if told == layers.len() {
        for (layer, diff_id) in layers.iter_mut().zip(&configuration.diff_ids) {
            layer.diff_id = Some(diff_id.clone());
        }
    } else {
        remarks.push(format!("its configuration names {told} layers, and its manifest {}", layers.len()));
    }
    let files = match wish.depth {
        Depth::Config => None,
        Depth::Files => Some(store.layers(layers, wish)?),
    };
    remarks.extend(files.as_ref().and_then(View::remark));
    Ok(Found { source: source.to_owned(), configuration, id: Some(hasher.finish()), files, remarks })
}

/// A small file as what it should be.
pub(super) fn json<T: DeserializeOwned>(store: &dyn Store, name: &str) -> Result<Option<T>, Unseen> {
    let Some(bytes) = store.small(name)? else { return Ok(None) };
    image::json::read(name, &bytes).map(Some)
}
