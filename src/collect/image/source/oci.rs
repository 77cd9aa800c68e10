//! Picks an image out of an OCI layout, whether it is a directory or an archive: its index names several, by tags and by
//! what they are for.

use std::cell::Cell;

use super::manifest::{self, Descriptor, Document, MOST_NESTED, Manifest, Platform};
use super::store::{Layer, Picked, Store};
use super::{Failed, Wish, names};
use crate::collect::image::json;
use crate::collect::image::layer::Table;
use crate::model::Unseen;

/// Images in one layout, and platforms in one index.
const MOST_IMAGES: usize = 1024;
/// Of all small files that are looked at to find one image, each with what it costs to look; images are named by as
/// many as their platforms, each with some ten kilobytes.
const MOST_BYTES: usize = 64 << 20;
const LOOK: usize = 8 << 10;
const REF_NAME: &str = "org.opencontainers.image.ref.name";
const CONTAINERD_NAME: &str = "io.containerd.image.name";

fn is_called(entry: &Descriptor, tag: &str) -> bool {
    let names = [REF_NAME, CONTAINERD_NAME].map(|key| entry.annotation(key));
    names.into_iter().flatten().any(|name| names::is(name, tag)) || entry.digest == tag
}

fn tag_of(entry: &Descriptor) -> Option<&str> {
    entry.annotation(CONTAINERD_NAME).or_else(|| entry.annotation(REF_NAME))
}

fn name_of(entry: &Descriptor) -> &str {
    tag_of(entry).unwrap_or(&entry.digest)
}

/// A manifest that may be the one.
struct Candidate<'a> {
    /// The entry of the outermost index that led to it.
    entry: &'a Descriptor,
    digest: String,
    platform: Platform,
}

/// Picks the image of a tag, or the only one, out of an index. `blob`: where a store has the file of a digest.
pub(super) fn pick(
    store: &dyn Store,
    blob: fn(&str) -> String,
    index: &str,
    tag: Option<&str>,
    wish: &Wish,
) -> Result<Picked, Failed> {
    let Document::Index(entries) = document(store, index)? else {
        return Err(Unseen::new(index, "is no index").into());
    };
    let images = || manifest::images(&entries);
    let called: Vec<&Descriptor> = images().filter(|entry| tag.is_none_or(|tag| is_called(entry, tag))).collect();
    if called.is_empty() {
        let reason = match tag {
            Some(tag) => format!("has no image named {tag}; it has {}", names::list(images().map(name_of))),
            None => "names no image".to_owned(),
        };
        return Err(Failed::Absent(Unseen::new(index, reason)));
    }
    let mut reader = Reader::new(store, blob);
    for entry in &called {
        reader.collect(entry, entry, 1)?;
    }
    let Reader { candidates, none, unread, .. } = &reader;
    let ranked = candidates.iter().filter_map(|candidate| Some((candidate.platform.rank(wish)?, candidate)));
    let suitable: Vec<(u8, &Candidate<'_>)> = ranked.collect();
    let chosen = match (suitable.iter().min_by_key(|(rank, _)| rank), unread, candidates.first()) {
        (Some(chosen), ..) => *chosen,
        // what could not be read may be the one
        (None, Some(unread), _) => return Err(unread.clone().into()),
        // of one alone it is for the checks to say that it is for another processor
        (None, None, Some(first)) if candidates.iter().all(|other| other.digest == first.digest) => (0, first),
        (None, None, Some(_)) => {
            return Err(manifest::none_for(index, wish, candidates.iter().map(|candidate| &candidate.platform)).into());
        }
        (None, None, None) => {
            return Err(none.clone().unwrap_or_else(|| Unseen::new(index, "names no image")).into());
        }
    };
    let (rank, chosen) = chosen;
    let as_good =
        |(other, candidate): &(u8, &Candidate<'_>)| *other == rank || tag_of(candidate.entry) != tag_of(chosen.entry);
    if suitable
        .iter()
        .any(|other| as_good(other) && other.1.digest != chosen.digest && !std::ptr::eq(other.1.entry, chosen.entry))
    {
        let names = names::list(called.iter().copied().map(name_of));
        return Err(Unseen::new(index, format!("has several images, so say which: {names}")).into());
    }
    // not kept of each: all together would take much memory
    let bytes = reader.verified(&chosen.digest)?.ok_or_else(|| Unseen::new(&chosen.digest, "is not there"))?;
    reader.picked(&chosen.digest, manifest::read(&chosen.digest, &bytes)?)
}

/// Picks the image of a manifest.
pub(super) fn of_manifest(store: &dyn Store, blob: fn(&str) -> String, name: &str) -> Result<Picked, Failed> {
    Reader::new(store, blob).picked(name, document(store, name)?)
}

/// One that nothing names by a digest.
fn document(store: &dyn Store, name: &str) -> Result<Document, Failed> {
    let bytes = store.small(name)?.ok_or_else(|| Failed::Absent(Unseen::new(name, "is absent")))?;
    Ok(manifest::read(name, &bytes)?)
}

struct Reader<'a> {
    store: &'a dyn Store,
    blob: fn(&str) -> String,
    /// What may still be read.
    left: Cell<usize>,
    candidates: Vec<Candidate<'a>>,
    /// The first thing that is no image, or not there: another platform's, which nobody fetched.
    none: Option<Unseen>,
    /// The first that may be one, and cannot be read.
    unread: Option<Unseen>,
}

impl<'a> Reader<'a> {
    fn new(store: &'a dyn Store, blob: fn(&str) -> String) -> Self {
        Self { store, blob, left: Cell::new(MOST_BYTES), candidates: Vec::new(), none: None, unread: None }
    }

    /// Collects all manifests that a descriptor leads to.
    fn collect(&mut self, entry: &'a Descriptor, descriptor: &Descriptor, nested: usize) -> Result<(), Unseen> {
        let digest = &descriptor.digest;
        if nested > MOST_NESTED {
            return Err(Unseen::new(digest, "is an index of indexes of indexes"));
        }
        let Some(bytes) = self.verified(digest)? else {
            self.none.get_or_insert(Unseen::new(digest, "is not there"));
            return Ok(());
        };
        match manifest::read(digest, &bytes) {
            Ok(Document::Index(entries)) => {
                for inner in manifest::images(&entries) {
                    self.collect(entry, inner, nested + 1)?;
                }
            }
            Ok(Document::Manifest(manifest)) => {
                if self.candidates.len() == MOST_IMAGES {
                    return Err(Unseen::new("the index", format!("it has more than {MOST_IMAGES} images")));
                }
                let platform = self.platform(descriptor, &manifest)?;
                self.candidates.push(Candidate { entry, digest: digest.clone(), platform });
            }
            Ok(Document::Other(what)) => {
                self.none.get_or_insert(what);
            }
            Err(unseen) => {
                self.unread.get_or_insert(unseen);
            }
        }
        Ok(())
    }

    /// As its index says, or its configuration where that says nothing.
    fn platform(&self, descriptor: &Descriptor, manifest: &Manifest) -> Result<Platform, Unseen> {
        if let Some(platform) = descriptor.told() {
            return Ok(platform.clone());
        }
        let digest = &manifest.config.digest;
        let config = self.verified(digest)?.unwrap_or_default();
        Ok(json::read(digest, &config).unwrap_or_default())
    }

    fn picked(&self, name: &str, document: Document) -> Result<Picked, Failed> {
        match document {
            Document::Manifest(manifest) => self.image(&manifest),
            Document::Index(_) => Err(Unseen::new(name, "is an index, where a manifest should be").into()),
            Document::Other(what) => Err(what.into()),
        }
    }

    fn image(&self, manifest: &Manifest) -> Result<Picked, Failed> {
        let digest = &manifest.config.digest;
        let configuration =
            self.verified(digest)?.ok_or_else(|| Unseen::new(digest, "the image's configuration is not there"))?;
        let layers = manifest.layers.iter().enumerate().map(|(number, layer)| Layer {
            name: (self.blob)(&layer.digest),
            label: format!("layer {} ({})", number + 1, short(&layer.digest)),
            digest: Some(layer.digest.clone()),
            diff_id: None,
            size: layer.size,
            sought: false,
            table: Table::of(|key| layer.annotation(key)),
        });
        Ok(Picked { configuration, layers: layers.collect(), remarks: Vec::new() })
    }

    /// A small blob, if it is what its digest says.
    fn verified(&self, digest: &str) -> Result<Option<Vec<u8>>, Unseen> {
        let Some(bytes) = self.store.small(&(self.blob)(digest))? else {
            self.pay(LOOK)?;
            return Ok(None);
        };
        self.pay(LOOK + bytes.len())?;
        manifest::check(digest, &bytes, digest)?;
        Ok(Some(bytes))
    }

    fn pay(&self, bytes: usize) -> Result<(), Unseen> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.ok_or_else(|| Unseen::new("the index", "it leads to more than is read"))?);
        Ok(())
    }
}

/// A digest as people read it.
fn short(digest: &str) -> &str {
    let end = digest.find(':').map_or(0, |colon| colon + 1) + 12;
    digest.get(..end).unwrap_or(digest)
}
