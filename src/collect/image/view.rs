//! An image's files as its container will see them: all layers merged, and of each file what was kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use super::binary::{self, Binary};
use super::condense::{Database, condensed};
use crate::collect::files::{Files, Found};
use crate::collect::paths::clean;
use crate::collect::tree::Tree;
use crate::model::Unseen;
use crate::model::host::NodeKind;
use crate::model::image::CompatNote;

/// As many links as the kernel follows in one path.
const HOPS: usize = 40;
/// Bytes of them together, as of a path.
const MOST_FOLLOWED: usize = 4096;

/// What stands at a path of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is; `None`: a link.
    pub kind: Option<NodeKind>,
    /// Where a link points, as written.
    pub target: String,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Which layer it comes from, counted from the bottom.
    pub layer: usize,
    /// What of it was kept.
    pub content: Content,
}

/// What of a file was kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Content {
    /// That it is there.
    #[default]
    Nothing,
    /// Its first bytes; all of them, if they are as many as its size.
    Bytes(Vec<u8>),
    /// What it tells as a program or library.
    Binary(Box<Binary>),
    /// It could not be read, and why.
    Unread(String),
    /// All of it: it lies unpacked in its layer's directory, and is read when it is asked for.
    InPlace,
}

/// The files of an image.
#[derive(Debug, Default)]
pub struct View {
    /// By path with a slash before it, in the order of bytes.
    entries: BTreeMap<String, Entry>,
    /// Directories of layers that are read in place, bottom to top.
    layers: Vec<Option<Tree>>,
    /// What could not be read, and may hold something.
    unread: Vec<Unseen>,
    /// Layers that were told by their tables of contents.
    tables: usize,
}

impl View {
    /// Of entries that are merged.
    pub fn new(entries: BTreeMap<String, Entry>, layers: Vec<Option<Tree>>, unread: Vec<Unseen>) -> Self {
        Self { entries, layers, unread, tables: 0 }
    }

    /// So many of its layers were told by their tables of contents.
    #[must_use]
    pub fn told_by_tables(self, tables: usize) -> Self {
        Self { tables, ..self }
    }

    /// What of how it was read is to be known.
    pub fn remark(&self) -> Option<String> {
        let layers = if self.tables == 1 { "1 layer was".to_owned() } else { format!("{} layers were", self.tables) };
        let remark = "read from the table of contents that whoever built the image put there, not from the whole";
        (self.tables > 0).then(|| format!("{layers} {remark}"))
    }

    /// All entries, by path.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// All that could not be read.
    pub fn all_unread(&self) -> &[Unseen] {
        &self.unread
    }

    /// The path that a path stands for once its links are followed, all of them or all but the last. Below a path that
    /// nothing was kept of there may be anything; it is taken as it is written.
    pub fn real(&self, path: &str, follow_last: bool) -> Option<String> {
        let mut rest: Vec<String> = clean(path).split('/').rev().map(str::to_owned).collect();
        let mut real = String::new();
        let mut hops = 0;
        let mut followed = 0;
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    real.truncate(real.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let next = format!("{real}/{part}");
            match self.entries.get(&next) {
                Some(Entry { kind: None, target, .. }) if follow_last || !rest.is_empty() => {
                    hops += 1;
                    followed += target.len();
                    if hops > HOPS || followed > MOST_FOLLOWED {
                        return None;
                    }
                    if target.starts_with('/') {
                        real.clear();
                    }
                    rest.extend(target.split('/').rev().map(str::to_owned));
                }
                _ => real = next,
            }
        }
        Some(if real.is_empty() { "/".to_owned() } else { real })
    }

    /// What stands at a path, links followed, with its real path.
    pub fn at(&self, path: &str) -> Option<(&str, &Entry)> {
        let real = self.real(path, true)?;
        self.entries.get_key_value(&real).map(|(path, entry)| (path.as_str(), entry))
    }

    /// What a program or library tells; `None`: nothing is there, or it is none.
    pub fn binary(&self, path: &str) -> Option<Cow<'_, Binary>> {
        let (real, entry) = self.at(path)?;
        self.binary_of(real, entry)
    }

    /// What an entry tells, by its own path.
    pub fn binary_of<'a>(&self, path: &str, entry: &'a Entry) -> Option<Cow<'a, Binary>> {
        match &entry.content {
            Content::Binary(binary) => Some(Cow::Borrowed(binary)),
            Content::InPlace => {
                let file = self.layers.get(entry.layer)?.as_ref()?.file(path).ok()??;
                Some(Cow::Owned(binary::read(&mut |at, buffer| file.read_at(buffer, at), entry.size)))
            }
            _ => None,
        }
    }

    /// What is left of a database of packages; `None`: nothing is there, or it cannot be read.
    pub(super) fn condensed(&self, path: &str, database: Database) -> Option<String> {
        let (real, entry) = self.at(path)?;
        if let Content::Bytes(bytes) = &entry.content {
            return Some(String::from_utf8_lossy(bytes).into_owned());
        }
        let Content::InPlace = entry.content else { return None };
        condensed(self.layers.get(entry.layer)?.as_ref()?.file(real).ok()??, database)
    }

    fn is_directory(&self, real: &str) -> bool {
        let below = if real == "/" { "/".to_owned() } else { format!("{real}/") };
        self.entries.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
    }
}

impl Files for View {
    fn list(&self, path: &str, limit: usize) -> Result<Option<Vec<OsString>>, Unseen> {
        let Some(real) = self.real(path, true) else { return Ok(None) };
        let below = if real == "/" { real.clone() } else { format!("{real}/") };
        let mut names = BTreeSet::new();
        let mut entries = self.entries.range(below.clone()..);
        while let Some(rest) = entries.next().and_then(|(path, _)| path.strip_prefix(&below)) {
            let name = match rest.split_once('/') {
                Some((name, _)) => {
                    // on to what is behind all that lies below it: `0` comes next to the slash
                    entries = self.entries.range(format!("{below}{name}0")..);
                    name
                }
                None => rest,
            };
            names.insert(name);
            if names.len() > limit {
                return Err(Unseen::new(path, format!("more than {limit} names")));
            }
        }
        let is_one = !names.is_empty() || self.entries.get(&real).is_some_and(|e| e.kind == Some(NodeKind::Directory));
        Ok(is_one.then(|| names.into_iter().map(OsString::from).collect()))
    }

    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen> {
        let Some((real, entry)) = self.at(path) else { return Ok(None) };
        if entry.size > limit as u64 {
            return Err(Unseen::new(real, format!("larger than {limit} bytes")));
        }
        match (&entry.content, entry.kind) {
            (Content::InPlace, _) => match self.layers.get(entry.layer) {
                Some(Some(tree)) => tree.read(real, limit),
                _ => Err(Unseen::new(real, "its layer is gone")),
            },
            (Content::Unread(reason), _) => Err(Unseen::new(real, reason)),
            (Content::Bytes(bytes), _) if bytes.len() as u64 == entry.size => Ok(Some(bytes.clone())),
            (_, Some(NodeKind::File)) if entry.size == 0 => Ok(Some(Vec::new())),
            (_, Some(NodeKind::File)) => Err(Unseen::new(real, "not kept")),
            _ => Err(Unseen::new(real, "no regular file")),
        }
    }

    fn beginning(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen> {
        let Some((real, entry)) = self.at(path) else { return Ok(None) };
        let part = |bytes: &[u8]| Ok(Some(bytes[..bytes.len().min(limit)].to_vec()));
        match &entry.content {
            Content::InPlace => match self.layers.get(entry.layer) {
                Some(Some(tree)) => Files::beginning(tree, real, limit),
                _ => Err(Unseen::new(real, "its layer is gone")),
            },
            Content::Unread(reason) => Err(Unseen::new(real, reason)),
            Content::Bytes(bytes) => part(bytes),
            Content::Binary(binary) => part(&binary.head),
            Content::Nothing if entry.kind == Some(NodeKind::File) && entry.size == 0 => Ok(Some(Vec::new())),
            Content::Nothing => Err(Unseen::new(real, "not kept")),
        }
    }

    fn stat(&self, path: &str) -> Result<Option<Found>, Unseen> {
        let Some(real) = self.real(path, true) else { return Ok(None) };
        let found = self.entries.get(&real).and_then(|entry| {
            let kind = entry.kind?;
            Some(Found { kind, size: entry.size, mode: entry.mode })
        });
        let directory = Found { kind: NodeKind::Directory, size: 0, mode: 0o755 };
        Ok(found.or_else(|| self.is_directory(&real).then_some(directory)))
    }

    fn link(&self, path: &str) -> Result<Option<PathBuf>, Unseen> {
        let Some(real) = self.real(path, false) else { return Ok(None) };
        let link = self.entries.get(&real).filter(|entry| entry.kind.is_none());
        Ok(link.map(|entry| PathBuf::from(&entry.target)))
    }

    fn unread(&self) -> Option<&Unseen> {
        self.unread.first()
    }

    fn has_library(&self, name: &str) -> Option<bool> {
        if name.is_empty() {
            return Some(false);
        }
        let is_it = |path: &String| {
            let rest = path.rsplit('/').next().and_then(|last| last.strip_prefix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        // what could not be read may have it
        let found = self.entries.keys().any(is_it);
        (found || self.unread.is_empty()).then_some(found)
    }

    fn compat_note(&self, path: &str) -> Option<CompatNote> {
        let (real, entry) = self.at(path)?;
        match &entry.content {
            Content::Binary(binary) => binary.compat.clone(),
            Content::InPlace => self.layers.get(entry.layer)?.as_ref()?.compat_note(real),
            _ => None,
        }
    }
}
