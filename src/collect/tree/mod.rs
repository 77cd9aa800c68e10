//! Directory trees: the one way in which this program reads files.
//!
//! Every path is resolved below the tree's root by the kernel (`openat2`) or, where that is missing or
//! forbidden, by a walk of our own; neither lets a link lead out of the tree. What is read is the very file
//! that was looked at: no path is asked twice.

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

use crate::model::Unseen;
use crate::model::host::NodeKind;

mod filesystem;
mod reopen;
mod resolve;
mod stat;
#[cfg(test)]
mod tests;
mod walk;

use resolve::{Last, Resolver, Rules};
pub use stat::Stat;

/// What most attributes of the kernel fit into.
const PAGE: usize = 4096;

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
///
/// Paths are given with or without a leading slash; both start at the root. What is not UTF-8 can be
/// listed, but not asked for.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    kind: Kind,
    label: PathBuf,
    resolver: Resolver,
}

impl Tree {
    /// A tree below a directory, named as it is given.
    pub fn open(path: &Path, kind: Kind) -> io::Result<Self> {
        let root = open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Self::of(root, kind, path))
    }

    /// A tree below a directory that is open already; `label` stands for it in messages.
    pub fn of(root: OwnedFd, kind: Kind, label: impl Into<PathBuf>) -> Self {
        Self { root, kind, label: label.into(), resolver: Resolver::Kernel }
    }

    /// What it is called in messages.
    pub fn label(&self) -> &Path {
        &self.label
    }

    /// The whole file; `None`: it is absent. Longer than `limit` bytes is `Unseen`, as is anything that
    /// is not a regular file. A sparse file of any size costs nothing: its size is looked at first.
    pub fn read(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Unseen> {
        let Some((file, found)) = self.regular(path)? else { return Ok(None) };
        let too_long = || self.unseen(path, format!("larger than {limit} bytes"));
        let size = usize::try_from(found.st_size).unwrap_or(usize::MAX);
        // sysfs claims a page for every attribute, however short
        if size > limit && !(self.kind == Kind::Host && filesystem::sizes_mean_nothing(&file)) {
            return Err(too_long());
        }
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        // with room for one more, so that the end shows without growing; pseudo files claim no size
        let mut bytes = Vec::with_capacity(size.max(PAGE).min(limit).saturating_add(1));
        file.take(most).read_to_end(&mut bytes).map_err(|e| self.refused(path, errno(&e)))?;
        if bytes.len() > limit { Err(too_long()) } else { Ok(Some(bytes)) }
    }

    /// The whole file as text, wrong UTF-8 replaced.
    pub fn read_text(&self, path: &str, limit: usize) -> Result<Option<String>, Unseen> {
        Ok(self.read(path, limit)?.map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(wrong) => String::from_utf8_lossy(wrong.as_bytes()).into_owned(),
        }))
    }

    /// The names in a directory, sorted, without `.` and `..`; `None`: it is absent, or no directory.
    /// More than `limit` names are `Unseen`.
    pub fn list(&self, path: &str, limit: usize) -> Result<Option<Vec<OsString>>, Unseen> {
        let Some(place) = self.locate(path, Last::Follow)? else { return Ok(None) };
        self.may_read(path, &place)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = openat(&place, c".", flags, Mode::empty()).and_then(Dir::from_fd);
        let Some(directory) = self.absent(path, directory)? else { return Ok(None) };
        let mut names = Vec::new();
        for entry in directory {
            let entry = entry.map_err(|e| self.refused(path, e))?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if names.len() == limit {
                return Err(self.unseen(path, format!("more than {limit} names")));
            }
            names.push(OsString::from_vec(name.to_vec()));
        }
        names.sort_unstable();
        Ok(Some(names))
    }

    /// What stands at a path, links followed inside the tree; `None`: nothing.
    pub fn stat(&self, path: &str) -> Result<Option<Stat>, Unseen> {
        let Some(place) = self.locate(path, Last::Follow)? else { return Ok(None) };
        // Nobody opens a node by the machine's own mount of it.
        let with_mount = self.kind != Kind::Host;
        Stat::of(&place, with_mount).map(Some).map_err(|e| self.refused(path, e))
    }

    /// A file is there that somebody may execute.
    pub fn is_program(&self, path: &str) -> bool {
        self.stat(path).is_ok_and(|stat| stat.is_some_and(|stat| stat.kind == NodeKind::File && stat.mode & 0o111 != 0))
    }

    /// Where a link points, as it is written; `None`: nothing is there, or no link.
    pub fn link(&self, path: &str) -> Result<Option<PathBuf>, Unseen> {
        let Some(place) = self.locate(path, Last::Stay)? else { return Ok(None) };
        match readlinkat(&place, c"") {
            Ok(target) => Ok(Some(target.into())),
            // of something that is no link; `EINVAL` before Linux 5.10, or by a file system
            Err(Errno::ENOENT | Errno::EINVAL) => Ok(None),
            Err(e) => Err(self.refused(path, e)),
        }
    }

    /// The regular file at a path, open for reading, for readers that need only parts of it.
    pub fn file(&self, path: &str) -> Result<Option<File>, Unseen> {
        Ok(self.regular(path)?.map(|(file, _)| file))
    }

    /// The tree below one of its directories.
    pub fn below(&self, path: &str, kind: Kind) -> Result<Option<Tree>, Unseen> {
        let Some(root) = self.locate(path, Last::Follow)? else { return Ok(None) };
        let found = fstat(&root).map_err(|e| self.refused(path, e))?;
        if file_type(&found) != SFlag::S_IFDIR {
            return Ok(None);
        }
        Ok(Some(Self { root, kind, label: self.named(path), resolver: self.resolver }))
    }

    /// Where the directory or file at a path is for this process, links resolved inside the tree; `None`: nothing is there.
    pub fn place(&self, path: &str) -> Result<Option<PathBuf>, Unseen> {
        let Some(place) = self.locate(path, Last::Follow)? else { return Ok(None) };
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&place));
        let found = nix::fcntl::readlink(link.as_str()).map_err(|e| self.not_reopened(path, e))?;
        Ok(Some(found.into()))
    }

    /// The file or directory at a path has an extended attribute of this name; `None`: nothing is there. It is
    /// not opened.
    pub fn has_xattr(&self, path: &str, name: &CStr) -> Result<Option<bool>, Unseen> {
        let Some(place) = self.locate(path, Last::Follow)? else { return Ok(None) };
        self.may_read(path, &place)?;
        reopen::has_xattr(&place, name).map(Some).map_err(|e| self.not_reopened(path, e))
    }

    /// Opens a regular file, and never anything else: a device that takes the file's place while it is looked
    /// at must not be opened by root.
    fn regular(&self, path: &str) -> Result<Option<(File, FileStat)>, Unseen> {
        let Some(place) = self.locate(path, Last::Follow)? else { return Ok(None) };
        let found = fstat(&place).map_err(|e| self.refused(path, e))?;
        if file_type(&found) != SFlag::S_IFREG {
            return Err(self.unseen(path, "no regular file"));
        }
        self.may_read(path, &place)?;
        let opened = reopen::for_reading(&place).map_err(|e| self.not_reopened(path, e))?;
        Ok(Some((opened.into(), found)))
    }

    fn locate(&self, path: &str, last: Last) -> Result<Option<OwnedFd>, Unseen> {
        self.absent(path, self.resolver.locate(self.root.as_fd(), path, last, self.rules()))
    }

    fn rules(&self) -> Rules {
        Rules { cross_mounts: self.kind != Kind::Image }
    }

    fn may_read(&self, path: &str, place: &OwnedFd) -> Result<(), Unseen> {
        match filesystem::refusal(self.kind, place) {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(self.unseen(path, reason)),
            Err(e) => Err(self.refused(path, e)),
        }
    }

    fn absent<T>(&self, path: &str, result: nix::Result<T>) -> Result<Option<T>, Unseen> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            Err(e) => Err(self.refused(path, e)),
        }
    }

    /// It is there; only the way to it by our own `/proc` is not, if that is missing.
    fn not_reopened(&self, path: &str, errno: Errno) -> Unseen {
        match errno {
            Errno::ENOENT | Errno::ENOTDIR => self.unseen(path, "no /proc to open it by"),
            _ => self.refused(path, errno),
        }
    }

    fn refused(&self, path: &str, errno: Errno) -> Unseen {
        self.unseen(path, resolve::reason(errno))
    }

    fn unseen(&self, path: &str, reason: impl Into<String>) -> Unseen {
        Unseen::new(self.named(path).to_string_lossy(), reason)
    }

    fn named(&self, path: &str) -> PathBuf {
        self.label.join(path.trim_start_matches('/'))
    }
}

fn file_type(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

fn node_kind(of: SFlag) -> NodeKind {
    match of {
        SFlag::S_IFCHR => NodeKind::CharDevice,
        SFlag::S_IFBLK => NodeKind::BlockDevice,
        SFlag::S_IFDIR => NodeKind::Directory,
        SFlag::S_IFIFO => NodeKind::Fifo,
        SFlag::S_IFSOCK => NodeKind::Socket,
        _ => NodeKind::File,
    }
}
