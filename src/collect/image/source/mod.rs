//! Where images come from. Each source finds one by its reference and gives its configuration and, where it is asked
//! for, its files; which source it was and how deep it looked is said.

use std::fmt;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::view::View;
use crate::model::Unseen;
use crate::model::image::Configuration;

mod any;
mod archive;
mod containerd;
mod docker;
mod dockerd;
mod given;
mod held;
mod layout;
mod machine;
mod manifest;
mod members;
mod names;
mod oci;
mod passing;
mod path;
mod podman;
mod reference;
mod region;
pub(in crate::collect) mod registry;
mod rootfs;
mod served;
mod store;
#[cfg(test)]
mod testing;

pub use machine::Machine;
pub use reference::Reference;

/// How deep to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// The configuration alone.
    Config,
    /// The files as well.
    #[default]
    Files,
}

/// What is wanted of a source.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// How deep to look.
    pub depth: Depth,
    /// The processor whose image is taken where there are several, in the words of the image specification.
    pub architecture: String,
    /// How far the reading is.
    pub progress: Arc<Progress>,
}

/// How far the reading of an image is, for whoever waits: told while it goes on.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that were read, as they are stored or sent.
    pub done: AtomicU64,
    /// Bytes that there are, as far as that is known.
    pub total: AtomicU64,
    /// Nobody waits any more: the reading ends at the next chunk.
    pub cancelled: AtomicBool,
}

/// An image that was found.
#[derive(Debug)]
pub struct Found {
    /// Where, for the user: `docker, in place (overlay2)`.
    pub source: String,
    /// Its configuration.
    pub configuration: Configuration,
    /// The digest of its configuration, which is its id: the same in every source.
    pub id: Option<String>,
    /// Its files; `None`: nobody asked.
    pub files: Option<View>,
    /// What the user should know besides: another source has the name for another image.
    pub remarks: Vec<String>,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The source has no image of this name; the next may be asked.
    Absent(Unseen),
    /// It is there, or should be, and cannot be read.
    Unreadable(Unseen),
}

impl From<Unseen> for Failed {
    fn from(unseen: Unseen) -> Self {
        Self::Unreadable(unseen)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Absent(unseen) | Self::Unreadable(unseen)) = self;
        write!(f, "{}: {}", unseen.source, unseen.reason)
    }
}

/// A place where images are.
pub trait Source {
    /// Finds the image and reads of it what is wished.
    fn find(&self, wish: &Wish) -> Result<Found, Failed>;
}

/// Finds the image of a reference.
pub fn find(reference: &Reference, wish: &Wish, machine: &Machine<'_>) -> Result<Found, Failed> {
    match reference {
        Reference::Any(name) => any::find(machine, name, wish),
        Reference::Docker(name) => dockerd::locate(machine, name, wish)?.read(wish),
        Reference::Containerd(name) => containerd::locate(machine, name, wish)?.read(wish),
        Reference::Podman(name) => podman::locate(machine, name)?.read(wish),
        Reference::Registry(name) => registry::Registry { machine, name }.find(wish),
        Reference::Layout { directory, tag } => layout::Layout { directory, tag: tag.as_deref() }.find(wish),
        Reference::Rootfs(directory) => rootfs::Rootfs(directory).find(wish),
        Reference::Archive { file, tag } => archive::InFile { file, tag: tag.as_deref() }.find(wish),
        Reference::Stdin if std::io::stdin().is_terminal() => {
            Err(Unseen::new("standard input", "is a terminal: let a program write the image's archive to it").into())
        }
        Reference::Stdin => passing::find(Box::new(std::io::stdin()), None, None, wish),
        Reference::Path(path) => path::find(path, wish),
    }
}

/// Finds the image in an archive that goes by.
#[cfg(any(feature = "fuzzing", test))]
pub(super) fn in_passing(from: Box<dyn std::io::Read + Send>, wish: &Wish) -> Result<Found, Failed> {
    passing::find(from, None, None, wish)
}

#[cfg(test)]
mod tests;
