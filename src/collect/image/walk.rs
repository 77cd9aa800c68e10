//! The bounded walk over an image's well-known places.

use super::places::Hints;
use crate::collect::files::Files;
use crate::collect::paths::{below, clean};
use crate::knowledge::toolkit::parent;
use crate::model::Unseen;

/// What is looked at in all: a root file system may hold any number of names.
pub(super) const MOST_DIRECTORIES: usize = 160;
pub(super) const MOST_NAMES: usize = 16_384;
/// Files that tell a version are a few kilobytes.
const MOST_FILES: usize = 64;
/// More mounts than a container of use has.
const MOST_MOUNTS: usize = 1024;
const MOST_BYTES: usize = 64 << 10;
const MOST_SCRIPT: usize = 16 << 10;
/// A large image's has some hundred kilobytes.
const MOST_CACHE: usize = 1 << 20;

/// A look at a root file system with what is left of its bounds.
pub(super) struct Walk<'a> {
    pub(super) rootfs: &'a dyn Files,
    directories: usize,
    names: usize,
    files: usize,
    /// Where something will be mounted that this tree does not show.
    mounts: Vec<String>,
    /// Directories that were listed, with the names in them, sorted.
    listed: Vec<(String, Vec<String>)>,
    /// What could not be looked at, and may hold something.
    unread: Option<Unseen>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(rootfs: &'a dyn Files, hints: &Hints<'_>) -> Self {
        let mounts = hints.mounts.iter().take(MOST_MOUNTS).map(|mount| clean(&mount.destination)).collect();
        // whoever knows all files has them in memory, and bounded their number
        let most = |usual: usize| if hints.everywhere.is_some() { usize::MAX } else { usual };
        Self {
            rootfs,
            directories: most(MOST_DIRECTORIES),
            names: most(MOST_NAMES),
            files: most(MOST_FILES),
            mounts,
            listed: Vec::new(),
            unread: None,
        }
    }

    /// Something will be mounted here or above it; what the image has there nobody will see.
    pub(super) fn will_be_covered(&self, path: &str) -> bool {
        let covers = |path: &str| self.mounts.iter().any(|mount| below(path, mount).is_some());
        // a link of the image's may lead to where a mount will be
        covers(path) || (!self.mounts.is_empty() && self.rootfs.resolved(path).is_some_and(|real| covers(&real)))
    }

    fn is_covered(&mut self, path: &str) -> bool {
        let covered = self.will_be_covered(path);
        if covered {
            self.skip(Unseen::new(path, "a mount will cover it"));
        }
        covered
    }

    /// The names in a directory that others are below: these are not looked for where it does not have them.
    pub(super) fn list_parent(&mut self, path: &str) -> Vec<String> {
        let before = self.unread.is_none();
        let names = self.list(path);
        if before && self.unread.is_none() {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            self.listed.push((path.to_owned(), sorted));
        }
        names
    }

    /// A directory above it was listed and does not have it.
    fn is_known_absent(&self, path: &str) -> bool {
        self.listed.iter().any(|(parent, names)| {
            let first =
                below(path, parent).and_then(|rest| rest.strip_prefix('/')).and_then(|rest| rest.split('/').next());
            first.is_some_and(|first| names.binary_search_by(|name| name.as_str().cmp(first)).is_err())
        })
    }

    /// The names in a directory; none where it is absent or could not be read.
    pub(super) fn list(&mut self, path: &str) -> Vec<String> {
        if self.is_known_absent(path) || self.is_covered(path) {
            return Vec::new();
        }
        let Some(left) = self.directories.checked_sub(1) else {
            self.skip(Unseen::new(path, "too many directories before it"));
            return Vec::new();
        };
        self.directories = left;
        match self.rootfs.list(path, self.names) {
            Ok(names) => {
                let names = names.unwrap_or_default();
                self.names -= names.len();
                names.into_iter().filter_map(|name| name.into_string().ok()).collect()
            }
            Err(unseen) => {
                self.skip(unseen);
                Vec::new()
            }
        }
    }

    /// The beginning of a file; `None` where it is absent or could not be read.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        if self.is_covered(path) {
            return None;
        }
        let Some(left) = self.files.checked_sub(1) else {
            self.skip(Unseen::new(path, "too many files before it"));
            return None;
        };
        self.files = left;
        let beginning = self.rootfs.beginning(path, MOST_BYTES);
        let bytes = self.note(beginning)??;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The beginning of a script; `None` of anything else, and of what cannot be read: it says nothing of what lies
    /// where.
    pub(super) fn script(&mut self, path: &str) -> Option<String> {
        let bytes = self.rootfs.beginning(path, MOST_SCRIPT).ok()?.filter(|bytes| bytes.starts_with(b"#!"))?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The loader's cache, as bytes; `None`: there is none, or it could not be read.
    pub(super) fn cache(&mut self) -> Option<Vec<u8>> {
        let cache = self.rootfs.read("/etc/ld.so.cache", MOST_CACHE);
        self.note(cache).flatten()
    }

    /// All files are known, so that asking for another costs nothing.
    pub(super) fn knows_all(&self) -> bool {
        self.rootfs.has_library("").is_some()
    }

    /// Something is there.
    pub(super) fn has(&mut self, path: &str) -> bool {
        let found = self.rootfs.stat(path);
        self.note(found).flatten().is_some()
    }

    /// Where a link leads, if it is one, as an absolute path.
    pub(super) fn link(&mut self, path: &str) -> Option<String> {
        let link = self.rootfs.link(path);
        let target = self.note(link)??;
        let target = target.to_str()?;
        Some(if target.starts_with('/') { target.to_owned() } else { format!("{}/{target}", parent(path)) })
    }

    pub(super) fn note<T>(&mut self, looked: Result<T, Unseen>) -> Option<T> {
        looked.map_err(|unseen| self.skip(unseen)).ok()
    }

    pub(super) fn skip(&mut self, unseen: Unseen) {
        self.unread.get_or_insert(unseen);
    }

    /// The first that could not be looked at.
    pub(super) fn unread(&self) -> Option<&Unseen> {
        self.unread.as_ref()
    }
}
