//! Directory trees: the one way in which this program reads files.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::model::Unseen;
use crate::model::host::NodeKind;

/// What kind of tree, and so what may be read in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A root file system or layer whose author is not trusted: everything stays below the root, no
    /// mounts are crossed, no magic links followed, only regular files read.
    Image,
    /// The machine's own files: mounts may be crossed, pseudo files may be read.
    Host,
    /// Device nodes and driver libraries of a container: looked at, and read only on file systems that
    /// cannot hang (no procfs, sysfs, FUSE, network).
    Container,
}

/// A directory below which files are looked at.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    kind: Kind,
    label: PathBuf,
}

/// What stands at a path. Looked at, never opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: NodeKind,
    /// Number of the device that it is.
    pub major: u32,
    /// See `major`.
    pub minor: u32,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Device and inode number: the file's identity.
    pub identity: (u64, u64),
    /// Its mount has `nodev`.
    pub nodev: bool,
}

impl Tree {
    /// A tree below a directory, named as it is given.
    pub fn open(path: &Path, kind: Kind) -> io::Result<Self> {
        let _ = (path, kind);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A tree below a directory that is open already; `label` stands for it in messages.
    pub fn of(root: OwnedFd, kind: Kind, label: impl Into<PathBuf>) -> Self {
        Self { root, kind, label: label.into() }
    }

    /// What it is called in messages.
    pub fn label(&self) -> &Path {
        &self.label
    }

    /// The whole file; `None`: it is absent. Longer than `limit` bytes is `Unseen`, as is anything that
    /// is not a regular file.
    pub fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen> {
        let _ = (path, limit, &self.root, self.kind);
        Err(Unseen::new("", ""))
    }

    /// The whole file as text, wrong UTF-8 replaced.
    pub fn read_text(&self, path: &str, limit: usize) -> Result<Option<String>, Unseen> {
        Ok(self.read(path, limit)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The names in a directory, sorted, without `.` and `..`; `None`: it is absent. More than `limit`
    /// names are `Unseen`.
    pub fn list(&self, path: &str, limit: usize) -> Result<Option<Vec<OsString>>, Unseen> {
        let _ = (path, limit);
        Err(Unseen::new("", ""))
    }

    /// What stands at a path, links followed inside the tree; `None`: nothing.
    pub fn stat(&self, path: &str) -> Result<Option<Stat>, Unseen> {
        let _ = path;
        Err(Unseen::new("", ""))
    }

    /// Where a link points, as it is written; `None`: nothing is there, or no link.
    pub fn link(&self, path: &str) -> Result<Option<PathBuf>, Unseen> {
        let _ = path;
        Err(Unseen::new("", ""))
    }

    /// The regular file at a path, open for reading, for readers that need only parts of it.
    pub fn file(&self, path: &str) -> Result<Option<File>, Unseen> {
        let _ = path;
        Err(Unseen::new("", ""))
    }

    /// The tree below one of its directories.
    pub fn below(&self, path: &str, kind: Kind) -> Result<Option<Tree>, Unseen> {
        let _ = (path, kind);
        Err(Unseen::new("", ""))
    }
}
