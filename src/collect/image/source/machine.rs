//! The machine whose engines are asked, and whose caller's settings count.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use serde::de::DeserializeOwned;

use crate::collect::image::layer::Marks;
use crate::collect::tree::{Kind, Tree};
use crate::model::Unseen;

/// Larger than the list of images of any machine, or its engines' configuration.
const MOST_JSON: usize = 32 << 20;
/// Configuration files of people.
const MOST_SETTINGS: usize = 1 << 20;
/// `/proc/self/uid_map` where no user namespace is.
const WHOLE: &str = "4294967295";

/// The machine: its files, and what of the caller belongs to it.
///
/// With `--host-root` the engines' stores below that directory are looked at. Sockets, the caller's environment and home
/// belong to this machine then, and not to that one: they are left alone, but for a registry's credentials, which are the
/// caller's wherever the image is judged.
#[derive(Debug)]
pub struct Machine<'a> {
    files: &'a Tree,
    laid_out: bool,
    environment: BTreeMap<String, String>,
}

impl<'a> Machine<'a> {
    /// Of its files; `laid_out`: they are below a directory (`--host-root`). `environment` is the caller's.
    pub fn new(files: &'a Tree, laid_out: bool, environment: BTreeMap<String, String>) -> Self {
        Self { files, laid_out, environment }
    }

    /// Its files.
    pub(super) fn files(&self) -> &'a Tree {
        self.files
    }

    /// It is a directory: nobody listens there.
    pub(super) fn is_laid_out(&self) -> bool {
        self.laid_out
    }

    /// A variable that says where something of this machine is; an empty one says nothing.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        if self.laid_out { None } else { self.callers(name) }
    }

    /// A variable of the caller, of whatever machine.
    pub(super) fn callers(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The caller's home, if it is on the machine that is looked at.
    pub(super) fn home(&self) -> Option<&str> {
        self.variable("HOME").filter(|home| home.starts_with('/'))
    }

    /// Nobody's own store is asked for: the caller is root, or not of this machine.
    pub(super) fn is_root(&self) -> bool {
        self.laid_out || geteuid().is_root()
    }

    /// Where one of its directories is for this process.
    pub(super) fn real(&self, path: &str) -> Result<PathBuf, Unseen> {
        if !self.laid_out {
            return Ok(PathBuf::from(path));
        }
        // a link there may be absolute, and means a place below the directory
        self.files.place(path)?.ok_or_else(|| Unseen::new(path, "is absent"))
    }

    /// A JSON document; `None`: it is absent.
    pub(super) fn json<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Unseen> {
        json(self.files, path)
    }

    /// A configuration file in TOML; `None`: it is absent, or no such file.
    pub(super) fn toml(&self, path: &str) -> Option<toml::Table> {
        self.files.read_text(path, MOST_SETTINGS).ok()??.parse().ok()
    }

    /// How opaque directories are marked in a store that somebody has: an engine without root's rights on the machine
    /// marks them as a user can.
    pub(super) fn marks(&self, store: &str) -> Marks {
        let owner = self.files.stat(store).ok().flatten().map_or(0, |found| found.uid);
        let map = self.files.read_text("/proc/self/uid_map", MOST_SETTINGS).ok().flatten().unwrap_or_default();
        let in_namespace = !self.laid_out && !map.is_empty() && !map.contains(WHOLE);
        if owner != 0 || in_namespace { Marks::User } else { Marks::Trusted }
    }
}

/// A JSON document below a tree; `None`: it is absent.
pub(super) fn json<T: DeserializeOwned>(files: &Tree, path: &str) -> Result<Option<T>, Unseen> {
    let Some(bytes) = files.read(path, MOST_JSON)? else { return Ok(None) };
    let document = serde_json::from_slice(&bytes);
    document.map(Some).map_err(|error| Unseen::new(path, format!("is no such JSON ({error})")))
}

/// The files of the machine that this process runs on.
pub(super) fn here() -> Result<Tree, Unseen> {
    Tree::open(Path::new("/"), Kind::Host).map_err(|error| Unseen::new("/", format!("cannot be entered ({error})")))
}
