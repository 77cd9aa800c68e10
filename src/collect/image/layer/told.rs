//! What one layer tells: the files that are kept of it, and where it has anything at all.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use super::MOST_ENTRIES;
use super::budget::Budget;
use super::tar::Kind;
use crate::collect::image::binary::Binary;
use crate::collect::image::view::{Content, Entry};
use crate::model::Unseen;
use crate::model::host::NodeKind;

/// Bits of a path's hash. With a million entries and ten thousand kept paths the chance that two look the same is
/// one in a hundred thousand; nobody can bring it about, since the key is drawn anew each time.
pub(super) const HASH_BITS: u32 = 53;
/// What of a mark is not the hash: nine bits of the layer's number, two of what stands there.
pub(super) const LAYER_SHIFT: u32 = 2;
pub(super) const HASH_SHIFT: u32 = 64 - HASH_BITS;
pub(super) const FILE: u64 = 0;
pub(super) const DIRECTORY: u64 = 1;
pub(super) const WHITEOUT: u64 = 2;

/// Zeros, as a rule: files that are large and empty compress without bounds.
const MOST_EMPTY: u64 = 8 << 30;
/// Work on names, in bytes that are hashed: each directory of each name is looked up by its whole path. A million names
/// of use in 150 000 directories need a tenth of it, and names of two thousand directories a thousand times as much.
const MOST_WORK: u64 = 2 << 30;
/// What looking up one costs besides.
const STEP: usize = 128;
/// What a kept entry costs besides its texts: itself in two maps, its key, its allocations.
const OVERHEAD: usize = 256;
/// Its path here, in the view, and in lists of names.
const COPIES: usize = 4;
/// What a program or library costs besides: its allocations, and its name in lists.
const BINARY: usize = 160;
/// What a short text costs besides its letters.
const TEXT: usize = 48;
/// Told of one layer; the rest are counted.
pub(super) const MOST_NOTES: usize = 16;

/// What all layers of an image share.
pub(in crate::collect::image) struct Shared {
    keys: RandomState,
    pub(super) budget: Budget,
    /// What layers may still expand to beyond what is usual.
    empty: AtomicU64,
    /// What is left of the work on names.
    work: AtomicU64,
}

impl Shared {
    pub(in crate::collect::image) fn new() -> Self {
        Self {
            keys: RandomState::new(),
            budget: Budget::new(),
            empty: AtomicU64::new(MOST_EMPTY),
            work: AtomicU64::new(MOST_WORK),
        }
    }

    /// A layer expands to so many bytes beyond what is usual; `false`: all layers together, to too many.
    pub(super) fn expand(&self, bytes: u64) -> bool {
        take(&self.empty, bytes)
    }

    /// A directory is looked up by its path, of so many bytes.
    pub(super) fn step(&self, bytes: usize) -> Result<(), Full> {
        if take(&self.work, (bytes + STEP) as u64) { Ok(()) } else { Err(Full::Names) }
    }

    pub(super) fn hash(&self, path: &[u8]) -> u64 {
        self.keys.hash_one(path) >> HASH_SHIFT
    }
}

/// Takes from what is left; `false`: it is not enough.
fn take(left: &AtomicU64, bytes: u64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
}

/// A file that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// Without a slash before it.
    pub(super) path: Vec<u8>,
    pub(super) entry: Entry,
}

/// What one layer tells.
#[derive(Debug, Default)]
pub(in crate::collect::image) struct Told {
    pub(super) kept: Vec<Kept>,
    /// Hash and kind of every path that the layer has something at, or takes away.
    pub(super) marks: Vec<u64>,
    /// Hashes of directories whose lower contents it hides.
    pub(super) opaque: Vec<u64>,
    /// Second names of what is not kept: the first one's hash, and the path.
    pub(super) loose: Vec<(u64, Vec<u8>)>,
    /// What of it could not be read.
    pub(super) unread: Vec<Unseen>,
    /// It was told by its table of contents.
    pub(super) by_table: bool,
}

/// Why no more of a layer is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Entries,
    Memory,
    Names,
}

impl Full {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Entries => format!("it has more than {MOST_ENTRIES} entries"),
            Self::Names => "its names lead through too many directories and links".to_owned(),
            Self::Memory => "what it holds needs more memory than is used".to_owned(),
        }
    }
}

/// The place of an entry in its layer.
pub(super) struct Place {
    pub(super) path: Vec<u8>,
    pub(super) hash: u64,
}

impl Place {
    /// As the rules of what is kept take it.
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }
}

impl Kind {
    /// As what stands at a path, for what is neither file, directory nor link.
    pub(super) fn node(self) -> NodeKind {
        match self {
            Self::CharDevice => NodeKind::CharDevice,
            Self::BlockDevice => NodeKind::BlockDevice,
            Self::Fifo => NodeKind::Fifo,
            _ => NodeKind::File,
        }
    }
}

/// What it takes to keep an entry, up to the facts that are made of it.
pub(super) fn cost(kept: &Kept) -> usize {
    OVERHEAD + COPIES * kept.path.len() + kept.entry.target.len() + weight(&kept.entry.content)
}

/// Bytes that are kept of a file.
fn weight(content: &Content) -> usize {
    match content {
        Content::Nothing | Content::InPlace => 0,
        Content::Unread(reason) => TEXT + reason.len(),
        Content::Bytes(bytes) => bytes.capacity(),
        Content::Binary(binary) => {
            let texts = binary.needed.iter().chain(&binary.search).map(|text| text.len() + TEXT);
            // once more as a fact
            let groups = binary.code.iter().flat_map(|code| &code.groups);
            let names = groups.map(|group| 2 * (group.machine.len() + group.ptx.len() + 2) * TEXT);
            size_of::<Binary>() + BINARY + binary.head.len() + texts.sum::<usize>() + names.sum::<usize>()
        }
    }
}

/// A hash that is one already.
#[derive(Default)]
pub(super) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        // its high bits are what the map groups by
        self.0 << HASH_SHIFT | self.0 >> (HASH_BITS - HASH_SHIFT)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
