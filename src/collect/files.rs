//! Files below a root, however they are kept: in a directory tree, or as what was kept of an image's layers.

use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use super::tree::{Stat, Tree};
use crate::knowledge::compat::note_of_elf;
use crate::model::Unseen;
use crate::model::host::NodeKind;
use crate::model::image::CompatNote;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub kind: NodeKind,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
}

/// What can be asked of files. Paths are absolute or below the root; links are followed inside it.
pub trait Files {
    /// The names in a directory, sorted; `None`: it is absent, or no directory. More than `limit` are `Unseen`.
    fn list(&self, path: &str, limit: usize) -> Result<Option<Vec<OsString>>, Unseen>;

    /// The whole file; `None`: it is absent. Longer than `limit` bytes is `Unseen`.
    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen>;

    /// The file's first bytes, at most `limit`; `None`: it is absent.
    fn beginning(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen>;

    /// What stands at a path; `None`: nothing.
    fn stat(&self, path: &str) -> Result<Option<Found>, Unseen>;

    /// Where a link points, as it is written; `None`: nothing is there, or no link.
    fn link(&self, path: &str) -> Result<Option<PathBuf>, Unseen>;

    /// The path that a path leads to, links on the way followed; `None`: nothing is there, or nobody can tell.
    fn resolved(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// What a libcuda for forward compatibility says of itself.
    fn compat_note(&self, path: &str) -> Option<CompatNote>;

    /// What of the files could not be read at all: of nothing can it be said then that it is not there.
    fn unread(&self) -> Option<&Unseen> {
        None
    }

    /// There is a file of this name in some directory, or one of it with more numbers (`libcudnn.so.9.1.0`); `None`:
    /// nobody knows all directories.
    fn has_library(&self, name: &str) -> Option<bool> {
        let _ = name;
        None
    }

    /// The whole file as text, wrong UTF-8 replaced.
    fn read_text(&self, path: &str, limit: usize) -> Result<Option<String>, Unseen> {
        Ok(self.read(path, limit)?.map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(wrong) => String::from_utf8_lossy(wrong.as_bytes()).into_owned(),
        }))
    }
}

impl From<&Stat> for Found {
    fn from(stat: &Stat) -> Self {
        Self { kind: stat.kind, size: stat.size, mode: stat.mode }
    }
}

impl Files for Tree {
    fn list(&self, path: &str, limit: usize) -> Result<Option<Vec<OsString>>, Unseen> {
        Tree::list(self, path, limit)
    }

    fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen> {
        Tree::read(self, path, limit)
    }

    fn beginning(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen> {
        let Some(file) = self.file(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX);
        match file.take(most).read_to_end(&mut bytes) {
            Ok(_) => Ok(Some(bytes)),
            Err(e) => Err(Unseen::new(path, format!("cannot be read ({:?})", e.kind()))),
        }
    }

    fn stat(&self, path: &str) -> Result<Option<Found>, Unseen> {
        Ok(Tree::stat(self, path)?.as_ref().map(Found::from))
    }

    fn link(&self, path: &str) -> Result<Option<PathBuf>, Unseen> {
        Tree::link(self, path)
    }

    fn resolved(&self, path: &str) -> Option<String> {
        let place = |path: &str| self.place(path).ok()?;
        let below = place(path)?.strip_prefix(place("/")?).ok()?.to_str().map(str::to_owned)?;
        Some(format!("/{below}"))
    }

    fn compat_note(&self, path: &str) -> Option<CompatNote> {
        let mut file = self.file(path).ok()??;
        note_of_elf(&mut |offset, buffer| {
            file.seek(SeekFrom::Start(offset))?;
            file.read(buffer)
        })
    }
}
