//! A registry: the only source on the network, asked only where `registry:` says so.

use std::io::{self, Read};
use std::sync::Arc;

use ureq::http::header;

use super::machine::Machine;
use super::manifest::{self, ACCEPTED, Descriptor, Document, MOST_JSON, MOST_NESTED, Manifest};
use super::{Depth, Failed, Found, Source, Wish};
use crate::collect::http;
use crate::collect::image::layer::digest::Hasher;
use crate::collect::image::layer::{Parts, Table};
use crate::collect::image::view::View;
use crate::collect::image::{configuration, layer};
use crate::model::Unseen;
use blob::Blob;
use client::{Client, Refusal};
pub(super) use name::Name;
use name::Version;

mod blob;
mod challenge;
mod client;
mod credentials;
mod helper;
pub(super) mod name;
#[cfg(test)]
mod tests;
pub(in crate::collect) mod trust;

/// Asking takes two ways there and back, to the registry and to the storage it leads to: some ten milliseconds, in which
/// a fast link brings about as much.
const REQUEST: u64 = 1 << 20;

/// An image of a registry.
pub(super) struct Registry<'a> {
    pub(super) machine: &'a Machine<'a>,
    pub(super) name: &'a str,
}

impl Source for Registry<'_> {
    fn find(&self, wish: &Wish) -> Result<Found, Failed> {
        let name = Name::parse(self.name)?;
        let image = Image { client: Arc::new(Client::new(self.machine, &name)), label: name.whole() };
        let reference = match &name.version {
            Version::Tag(tag) => tag,
            Version::Digest(digest) => digest,
        };
        let manifest = image.manifest(reference, wish, 0)?;
        let config = image.small(&manifest.config)?;
        let configuration = configuration::parse(&config)?;
        let files = match wish.depth {
            Depth::Config => None,
            Depth::Files => {
                let diff_ids = configuration.diff_ids.iter().map(Some).chain(std::iter::repeat(None));
                let blobs = manifest.layers.iter().zip(diff_ids);
                Some(layer::read(blobs.map(|(layer, diff_id)| image.blob(layer, diff_id)).collect(), wish)?)
            }
        };
        let remarks = files.as_ref().and_then(View::remark).into_iter().collect();
        let how = if files.is_some() { ", streamed" } else { "" };
        Ok(Found {
            source: format!("registry {}{how}", name.registry),
            configuration,
            id: Some(manifest.config.digest),
            files,
            remarks,
        })
    }
}

struct Image {
    client: Arc<Client>,
    label: String,
}

impl Image {
    fn failed(&self, refusal: &Refusal) -> Failed {
        let unseen = Unseen::new(&self.label, format!("the registry {}", refusal.words()));
        match refusal {
            Refusal::Absent(_) => Failed::Absent(unseen),
            Refusal::Failed(_) => Failed::Unreadable(unseen),
        }
    }

    fn unseen(&self, error: &io::Error) -> Unseen {
        Unseen::new(&self.label, http::io_words(error))
    }

    /// The manifest of the image for the wished processor.
    fn manifest(&self, reference: &str, wish: &Wish, nested: usize) -> Result<Manifest, Failed> {
        let path = format!("manifests/{reference}");
        let answer = self.client.get(&path, ACCEPTED, None, None).map_err(|refusal| self.failed(&refusal))?;
        let told =
            answer.headers().get("docker-content-digest").and_then(|value| value.to_str().ok().map(str::to_owned));
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok().map(str::to_owned));
        let body = answer.into_body().into_with_config().limit(u64::MAX).reader();
        let bytes = http::short_body(body, MOST_JSON).map_err(|error| self.unseen(&error))?;
        let known = |digest: &String| Hasher::of(digest).is_some();
        if let Some(wanted) = Some(reference.to_owned()).filter(known).or(told.filter(known)) {
            manifest::check(&format!("the manifest of {}", self.label), &bytes, &wanted)?;
        }
        if kind.is_some_and(|kind| kind.contains("distribution.manifest.v1+")) {
            let reason = "is of docker's schema 1, which engines no longer pull: push the image anew";
            return Err(Unseen::new(&self.label, reason).into());
        }
        match manifest::read(&self.label, &bytes)? {
            Document::Manifest(manifest) => Ok(manifest),
            Document::Other(what) => Err(what.into()),
            Document::Index(_) if nested == MOST_NESTED => {
                Err(Unseen::new(&self.label, "is an index of indexes of indexes").into())
            }
            Document::Index(entries) => {
                let chosen = manifest::choose(&self.label, &entries, wish)?;
                let is_only = chosen.len() == 1 && manifest::images(&entries).count() == 1;
                // several may be meant only where the index does not say what they are for
                let mut failed = None;
                for entry in chosen {
                    match self
                        .manifest(&entry.digest, wish, nested + 1)
                        .and_then(|found| self.fits(found, entry, is_only, wish))
                    {
                        Ok(manifest) => return Ok(manifest),
                        Err(error) => failed = failed.or(Some(error)),
                    }
                }
                Err(failed.unwrap_or_else(|| Unseen::new(&self.label, "is an index of nothing").into()))
            }
        }
    }

    /// An entry that does not say what it is for is what its configuration says.
    fn fits(&self, manifest: Manifest, entry: &Descriptor, is_only: bool, wish: &Wish) -> Result<Manifest, Failed> {
        if entry.told().is_none() && !is_only {
            let found = configuration::parse(&self.small(&manifest.config)?)?;
            if found.architecture != wish.architecture {
                let reason = format!("has no image for linux/{}", wish.architecture);
                return Err(Unseen::new(&self.label, reason).into());
            }
        }
        Ok(manifest)
    }

    /// A blob that is kept whole: a configuration.
    fn small(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Failed> {
        let path = format!("blobs/{}", descriptor.digest);
        let answer = self.client.get(&path, "*/*", None, None).map_err(|refusal| self.failed(&refusal))?;
        let body = answer.into_body().into_with_config().limit(u64::MAX).reader();
        let bytes = http::short_body(body, MOST_JSON).map_err(|error| self.unseen(&error))?;
        manifest::check(&format!("the configuration of {}", self.label), &bytes, &descriptor.digest)?;
        Ok(bytes)
    }

    fn blob(&self, layer: &Descriptor, diff_id: Option<&String>) -> layer::Blob {
        let (client, digest, size) = (Arc::clone(&self.client), layer.digest.clone(), layer.size);
        let parts = Table::of(|key| layer.annotation(key)).map(|table| {
            let (client, digest) = (Arc::clone(&self.client), layer.digest.clone());
            let open =
                move |at, length| Ok(Box::new(blob::part(&client, &digest, at, length)?) as Box<dyn Read + Send>);
            Parts { table, request: REQUEST, open: Box::new(open) }
        });
        let open = move || {
            let blob =
                Blob::open(client, &digest, size).map_err(|refusal| io::Error::other(refusal.words().to_owned()))?;
            Ok(Box::new(blob) as Box<dyn Read + Send>)
        };
        layer::Blob {
            label: format!("{} of {}", layer.digest, self.label),
            digest: Some(layer.digest.clone()),
            diff_id: diff_id.cloned(),
            size: layer.size,
            open: Box::new(open),
            parts,
        }
    }
}
