//! containerd: its databases are read as they lie, without it. Unpacked layers come first: managed nodes of Kubernetes
//! discard the blobs once they are unpacked (EKS since 2023-07, GKE since 1.27).

use std::io::Read;
use std::sync::Arc;

use super::dockerd::store::chain_ids;
use super::held::{Held, Looked};
use super::machine::Machine;
use super::manifest::{self, Descriptor, Document, MOST_JSON, MOST_NESTED, Manifest, short};
use super::registry::Name;
use super::{Depth, Failed, Found, Wish, region};
use crate::collect::image::layer::Table;
use crate::collect::image::view::View;
use crate::collect::image::{configuration, layer};
use crate::model::Unseen;
use crate::model::host::EngineKind;
use crate::model::image::Configuration;
use records::Record;

mod bolt;
mod records;
#[cfg(test)]
mod tests;

/// Where containerd keeps all, as a rule.
pub(super) const DEFAULT: &str = "/var/lib/containerd";
const SETTINGS: &str = EngineKind::Containerd.configuration();
/// k3s and rke2 bring one of their own.
const BUNDLED: [&str; 2] = ["/var/lib/rancher/k3s/agent/containerd", "/var/lib/rancher/rke2/agent/containerd"];
/// As few digits of a digest as are looked for.
const FEWEST_DIGITS: usize = 4;

/// Which image is meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'n> {
    /// One of this name.
    Name(&'n str),
    /// The one whose manifest or index has this digest.
    Target(&'n str),
}

/// Looks for `[NAMESPACE/]NAME` in every containerd of the machine.
pub(super) fn locate<'a>(machine: &'a Machine<'a>, name: &str, wish: &Wish) -> Looked<'a> {
    let mut roots = Vec::new();
    let told = machine.toml(SETTINGS).and_then(|table| table.get("root")?.as_str().map(str::to_owned));
    roots.extend(told.filter(|root| root.starts_with('/')));
    roots.push(DEFAULT.to_owned());
    roots.extend(BUNDLED.map(str::to_owned));
    roots.extend(super::dockerd::store::roots(machine).iter().map(|root| format!("{root}/containerd/daemon")));
    let mut seen = std::collections::BTreeSet::new();
    roots.retain(|root| seen.insert(root.clone()));
    match held(machine, roots.clone(), None, Wanted::Name(name), "containerd", wish) {
        Err(Failed::Absent(absent)) => match name.split_once('/') {
            // else the first word is the namespace
            Some((namespace, rest)) => {
                let found = held(machine, roots, Some(namespace), Wanted::Name(rest), "containerd", wish);
                match found {
                    Err(Failed::Absent(_)) => Err(Failed::Absent(absent)),
                    found => found,
                }
            }
            None => Err(Failed::Absent(absent)),
        },
        found => found,
    }
}

/// Looks for an image below some roots, in one namespace or in all.
pub(super) fn held<'a>(
    machine: &'a Machine<'a>,
    roots: Vec<String>,
    namespace: Option<&str>,
    wanted: Wanted<'_>,
    engine: &'static str,
    wish: &Wish,
) -> Looked<'a> {
    let mut unread = None;
    for root in roots {
        let records = match records::images(machine, &root) {
            Ok(records) => records.unwrap_or_default(),
            Err(unseen) => {
                unread = unread.or(Some(unseen));
                continue;
            }
        };
        let inside = records.into_iter().filter(|record| namespace.is_none_or(|name| record.namespace == name));
        if let Some(record) = wanted.find(inside.collect()) {
            return Ok(Box::new(Kept::read(machine, root, record, engine, wish)?));
        }
    }
    Err(match unread {
        Some(unseen) => Failed::Unreadable(Unseen::new(format!("containerd's {}", unseen.source), unseen.reason)),
        None => Failed::Absent(Unseen::new(engine, "has no such image")),
    })
}

impl Wanted<'_> {
    fn find(self, records: Vec<Record>) -> Option<Record> {
        let text = match self {
            Self::Target(digest) => return records.into_iter().find(|record| record.target == digest),
            Self::Name(text) => text,
        };
        let whole = Name::parse(text).map(|name| name.whole()).unwrap_or_default();
        let of = |fits: &dyn Fn(&Record) -> bool| records.iter().find(|record| fits(record)).cloned();
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let is_id = digits.len() >= FEWEST_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
        // CRI names images by their ids as well
        let by_id = |record: &Record| {
            [&record.name, &record.target]
                .iter()
                .any(|name| name.strip_prefix("sha256:").is_some_and(|hex| hex.starts_with(digits)))
        };
        let by_digest = |record: &Record| {
            let (repository, digest) = whole.split_once('@').unwrap_or((&whole, ""));
            let of = record.name.strip_prefix(repository).is_some_and(|rest| rest.starts_with([':', '@']));
            of && record.target == digest
        };
        of(&|record| record.name == text)
            .or_else(|| of(&|record| record.name == whole))
            .or_else(|| of(&by_digest))
            .or_else(|| if is_id { of(&by_id) } else { None })
    }
}

/// An image in containerd's store, with its small documents read.
struct Kept<'a> {
    machine: &'a Machine<'a>,
    root: String,
    record: Record,
    engine: &'static str,
    manifest: Manifest,
    configuration: Configuration,
}

fn blob(root: &str, digest: &str) -> Result<String, Unseen> {
    let digest = manifest::checked(root, digest)?;
    Ok(format!("{root}/io.containerd.content.v1.content/{}", manifest::place(digest)))
}

fn small(machine: &Machine<'_>, root: &str, digest: &str) -> Result<Option<Vec<u8>>, Unseen> {
    let path = blob(root, digest)?;
    let Some(bytes) = machine.files().read(&path, MOST_JSON)? else { return Ok(None) };
    manifest::check(&path, &bytes, digest)?;
    Ok(Some(bytes))
}

/// The manifest and configuration of the wished image behind a digest; `None`: they were not fetched, as those for other
/// processors are not.
fn document(
    machine: &Machine<'_>,
    root: &str,
    digest: &str,
    wish: &Wish,
    nested: usize,
) -> Result<Option<(Manifest, Configuration)>, Failed> {
    let Some(bytes) = small(machine, root, digest)? else { return Ok(None) };
    match manifest::read(digest, &bytes)? {
        Document::Manifest(manifest) => {
            let Some(config) = small(machine, root, &manifest.config.digest)? else { return Ok(None) };
            let configuration = configuration::parse(&config)?;
            Ok(Some((manifest, configuration)))
        }
        Document::Other(what) => Err(what.into()),
        Document::Index(_) if nested == MOST_NESTED => {
            Err(Unseen::new(digest, "is an index of indexes of indexes").into())
        }
        Document::Index(entries) => {
            let read = |entry: &Descriptor| document(machine, root, &entry.digest, wish, nested + 1);
            for entry in manifest::choose(digest, &entries, wish)? {
                let fits = |found: &Configuration| entry.told().is_some() || found.architecture == wish.architecture;
                if let Some(found) = read(entry)?.filter(|(_, configuration)| fits(configuration)) {
                    return Ok(Some(found));
                }
            }
            // somebody may have pulled it for another processor alone
            let mut there = Vec::new();
            for entry in manifest::images(&entries) {
                there.extend(read(entry)?);
            }
            Ok(if there.len() == 1 { there.pop() } else { None })
        }
    }
}

impl<'a> Kept<'a> {
    fn read(
        machine: &'a Machine<'a>,
        root: String,
        record: Record,
        engine: &'static str,
        wish: &Wish,
    ) -> Result<Self, Failed> {
        let found = document(machine, &root, &record.target, wish, 0)?.ok_or_else(|| {
            let reason = format!("its manifest or configuration for linux/{} is not in {root}", wish.architecture);
            Unseen::new(short(&record.name), reason)
        })?;
        let (manifest, configuration) = found;
        Ok(Self { machine, root, record, engine, manifest, configuration })
    }

    fn in_place(&self) -> Result<Option<View>, Unseen> {
        let diff_ids = &self.configuration.diff_ids;
        if diff_ids.len() != self.manifest.layers.len() {
            return Ok(None);
        }
        let found = records::unpacked(self.machine, &self.root, &self.record.namespace, &chain_ids(diff_ids))?;
        let Some(directories) = found else { return Ok(None) };
        let real = directories.iter().map(|directory| self.machine.real(directory)).collect::<Result<Vec<_>, _>>()?;
        layer::in_place(&real, self.machine.marks(&self.root)).map(Some)
    }

    fn blobs(&self) -> Result<Vec<layer::Blob>, Unseen> {
        let diff_ids = self.configuration.diff_ids.iter().cloned().map(Some).chain(std::iter::repeat(None));
        let mut blobs = Vec::new();
        for (descriptor, diff_id) in self.manifest.layers.iter().zip(diff_ids) {
            let path = blob(&self.root, &descriptor.digest)?;
            let file = self.machine.files().file(&path)?.ok_or_else(|| {
                Unseen::new(&path, "is absent, and the image is not unpacked for containerd's own snapshotter either")
            })?;
            let file = Arc::new(file);
            let table = Table::of(|key| descriptor.annotation(key));
            blobs.push(layer::Blob {
                label: descriptor.digest.clone(),
                digest: Some(descriptor.digest.clone()),
                diff_id,
                size: descriptor.size,
                parts: table.map(|table| region::parts(table, file.clone(), 0)),
                open: Box::new(move || Ok(Box::new(file) as Box<dyn Read + Send>)),
            });
        }
        Ok(blobs)
    }
}

impl Held for Kept<'_> {
    fn id(&self) -> Option<&str> {
        Some(&self.manifest.config.digest)
    }

    fn read(self: Box<Self>, wish: &Wish) -> Result<Found, Failed> {
        let mut remarks = Vec::new();
        let (files, how) = match wish.depth {
            Depth::Config => (None, ""),
            Depth::Files => match self.in_place() {
                Ok(Some(view)) => (Some(view), ", in place (overlayfs)"),
                Ok(None) => (Some(layer::read(self.blobs()?, wish)?), ", its layers' blobs"),
                Err(unseen) => {
                    remarks.push(format!("the layers were not read in place: {}: {}", unseen.source, unseen.reason));
                    (Some(layer::read(self.blobs()?, wish)?), ", its layers' blobs")
                }
            },
        };
        remarks.extend(files.as_ref().and_then(View::remark));
        let namespace = short(&self.record.namespace);
        let source = match self.engine {
            "containerd" => format!("containerd ({}, namespace {namespace}){how}", self.root),
            engine => format!("{engine}{how}"),
        };
        let Self { configuration, manifest, .. } = *self;
        Ok(Found { source, configuration, id: Some(manifest.config.digest), files, remarks })
    }
}
