//! What one layer tells: the files that are kept of it, and where it has anything at all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

use super::budget::Budget;
use super::tar::Kind;
use super::{MOST_ENTRIES, MOST_PATH, name};
use crate::collect::image::binary::Binary;
use crate::collect::image::telling::{Interest, interest};
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

/// Links followed to find in which directory of the layer an entry is put.
const HOPS: usize = 40;
/// What a kept entry costs besides its texts: itself in two maps, its key, its allocations.
const OVERHEAD: usize = 256;
/// What a short text costs besides its letters.
const TEXT: usize = 48;
/// Marks that are paid for at once.
const MARKS: usize = 8192;
/// Told of one layer; the rest are counted.
pub(super) const MOST_NOTES: usize = 16;
/// Directories this deep are kept, so that one which is there and has nothing of interest in it is known to be.
const KEPT_DEPTH: usize = 4;

/// What all layers of an image share.
pub(in crate::collect::image) struct Shared {
    keys: RandomState,
    pub(super) budget: Budget,
}

impl Shared {
    pub(in crate::collect::image) fn new() -> Self {
        Self { keys: RandomState::new(), budget: Budget::new() }
    }

    pub(super) fn hash(&self, path: &[u8]) -> u64 {
        self.keys.hash_one(path) >> HASH_SHIFT
    }
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
}

/// Takes in a layer's entries, one after the other.
pub(super) struct Teller<'a> {
    shared: &'a Shared,
    kept: HashMap<u64, Kept, BuildHasherDefault<Itself>>,
    marks: Vec<u64>,
    paid: usize,
    opaque: Vec<u64>,
    unread: Vec<Unseen>,
    entries: usize,
    /// The directory of the last entry as it was written and as it is, since the next is often in the same.
    written: Option<Vec<u8>>,
    parent: Vec<u8>,
    /// Names may lead through links, as they do not in a directory that is walked.
    follow: bool,
    links: bool,
    loose: Vec<(u64, Vec<u8>)>,
}

/// Why no more of a layer is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Entries,
    Memory,
}

impl Full {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Entries => format!("it has more than {MOST_ENTRIES} entries"),
            Self::Memory => "what it holds needs more memory than is used".to_owned(),
        }
    }
}

/// The place of an entry in its layer.
pub(super) struct Place {
    pub(super) path: Vec<u8>,
    hash: u64,
}

impl Place {
    /// As the rules of what is kept take it.
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }
}

impl<'a> Teller<'a> {
    /// Of a directory that is walked.
    pub(super) fn of_tree(shared: &'a Shared) -> Self {
        Self { follow: false, ..Self::new(shared) }
    }

    /// Of an archive.
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self {
            follow: true,
            shared,
            kept: HashMap::default(),
            marks: Vec::new(),
            paid: 0,
            opaque: Vec::new(),
            unread: Vec::new(),
            entries: 0,
            written: None,
            parent: Vec::new(),
            links: false,
            loose: Vec::new(),
        }
    }

    /// Where an entry of this name is put; `None`: nowhere, because it is the root, a whiteout or too long.
    pub(super) fn place(&mut self, raw: &[u8], whiteouts: bool) -> Result<Option<Place>, Full> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(Full::Entries);
        }
        let Some((path, base)) = name::clean(raw) else {
            self.note(raw, format!("its name is longer than {MOST_PATH} bytes"));
            return Ok(None);
        };
        let (parent, base) = (&path[..base.saturating_sub(1)], &path[base..]);
        if base.is_empty() {
            return Ok(None);
        }
        if self.written.as_deref() != Some(parent) {
            let real = if self.links { self.real(parent) } else { Some(parent.to_vec()) };
            let Some(real) = real else {
                self.note(raw, "its links go round in circles");
                return Ok(None);
            };
            self.enter(&real)?;
            self.written = Some(parent.to_vec());
        }
        if whiteouts && let Some(hidden) = base.strip_prefix(b".wh.") {
            if base == b".wh..wh..opq" {
                self.opaque()?;
            } else if !hidden.starts_with(b".wh.") && !matches!(hidden, b"" | b"." | b"..") {
                let path = self.child(hidden);
                self.mark(self.shared.hash(&path), WHITEOUT)?;
            }
            return Ok(None);
        }
        let path = self.child(base);
        let hash = self.shared.hash(&path);
        Ok(Some(Place { path, hash }))
    }

    /// The directory of the last place hides what is below it.
    fn opaque(&mut self) -> Result<(), Full> {
        let hash = self.shared.hash(&self.parent);
        self.pay(8)?;
        self.opaque.push(hash);
        Ok(())
    }

    /// A directory, by its path, hides what is below it.
    pub(super) fn hides(&mut self, directory: &[u8]) -> Result<(), Full> {
        let hash = self.shared.hash(directory);
        self.pay(8)?;
        self.opaque.push(hash);
        Ok(())
    }

    fn child(&self, base: &[u8]) -> Vec<u8> {
        let slash: &[u8] = if self.parent.is_empty() { b"" } else { b"/" };
        [&self.parent, slash, base].concat()
    }

    /// Directories are made for what is in them, and then hide what is no directory below.
    fn enter(&mut self, parent: &[u8]) -> Result<(), Full> {
        let ends = (1..=parent.len()).filter(|end| matches!(parent.get(*end), None | Some(b'/')));
        for above in ends.map(|end| &parent[..end]) {
            // what is above both was marked for the one before
            if name::is_at_or_below(&self.parent, above) {
                continue;
            }
            self.mark(self.shared.hash(above), DIRECTORY)?;
        }
        parent.clone_into(&mut self.parent);
        Ok(())
    }

    /// The directory that a path leads to by the layer's own links, as engines unpack it: an entry below a link of
    /// the same layer is put where the link points. `None`: in circles.
    fn real(&self, parent: &[u8]) -> Option<Vec<u8>> {
        let mut rest: Vec<Vec<u8>> = parent.rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
        let mut real: Vec<u8> = Vec::new();
        let mut hops = 0;
        while let Some(part) = rest.pop() {
            match part.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    real.truncate(real.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let before = real.len();
            if !real.is_empty() {
                real.push(b'/');
            }
            real.extend_from_slice(&part);
            let Some(Kept { entry: Entry { kind: None, target, .. }, .. }) = self.kept.get(&self.shared.hash(&real))
            else {
                continue;
            };
            hops += 1;
            if hops > HOPS || real.len() > MOST_PATH {
                return None;
            }
            real.truncate(if target.starts_with('/') { 0 } else { before });
            rest.extend(target.as_bytes().rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec));
        }
        Some(real)
    }

    /// A directory.
    pub(super) fn directory(&mut self, place: Place, mode: u32) -> Result<(), Full> {
        self.mark(place.hash, DIRECTORY)?;
        let keep = memchr::memchr_iter(b'/', &place.path).count() < KEPT_DEPTH || place.path.ends_with(b"-info");
        let there = self.kept.get(&place.hash).is_some_and(|kept| kept.entry.kind == Some(NodeKind::Directory));
        if there {
            return Ok(());
        }
        if keep && !name::is_apart(&place.path) {
            self.keep(place, Some(NodeKind::Directory), String::new(), 0, mode, Content::Nothing)
        } else {
            self.forget(&place);
            Ok(())
        }
    }

    /// What of a file is to be kept.
    pub(super) fn wanted(place: &Place, size: u64, mode: u32) -> Interest {
        interest(&place.text(), size, mode & 0o111 != 0)
    }

    /// Its name alone does not say that nothing is kept of it.
    pub(super) fn may_tell(place: &Place) -> bool {
        let sizes = [0, 1, 16 << 20, 64 << 30];
        sizes.into_iter().any(|size| Self::wanted(place, size, 0o755) != Interest::Nothing)
    }

    /// Layers below have nothing here any more.
    pub(super) fn whiteout(&mut self, place: &Place) -> Result<(), Full> {
        self.mark(place.hash, WHITEOUT)
    }

    /// A file of which nothing is kept.
    pub(super) fn passed(&mut self, place: &Place) -> Result<(), Full> {
        self.mark(place.hash, FILE)?;
        self.forget(place);
        Ok(())
    }

    /// A file of which something is kept.
    pub(super) fn file(&mut self, place: Place, size: u64, mode: u32, content: Content) -> Result<(), Full> {
        self.mark(place.hash, FILE)?;
        self.keep(place, Some(NodeKind::File), String::new(), size, mode, content)
    }

    /// A device, FIFO or socket: that it is there, if its name tells anything.
    pub(super) fn node(&mut self, place: Place, kind: NodeKind, mode: u32) -> Result<(), Full> {
        let told = place.path.starts_with(b"dev/nvidia") || Self::wanted(&place, 0, mode) != Interest::Nothing;
        if !told {
            return self.passed(&place);
        }
        self.mark(place.hash, FILE)?;
        self.keep(place, Some(kind), String::new(), 0, mode, Content::Nothing)
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, place: Place, target: &[u8]) -> Result<(), Full> {
        if name::is_apart(&place.path) {
            return self.passed(&place);
        }
        self.mark(place.hash, FILE)?;
        self.links = self.follow;
        // what lies behind a name may be another directory now
        self.written = None;
        let target = String::from_utf8_lossy(&target[..target.len().min(MOST_PATH)]).into_owned();
        self.keep(place, None, target, 0, 0o777, Content::Nothing)
    }

    /// A second name of what this layer has had under another.
    pub(super) fn hard_link(&mut self, place: Place, target: &[u8]) -> Result<(), Full> {
        self.mark(place.hash, FILE)?;
        let Some((path, base)) = name::clean(target) else {
            self.note(&place.path, "it is a second name of something whose name is too long");
            return Ok(());
        };
        let real = if self.links { self.real(&path[..base.saturating_sub(1)]) } else { None };
        let path = match real {
            Some(parent) if !parent.is_empty() => [&parent, &b"/"[..], &path[base..]].concat(),
            Some(_) => path[base..].to_vec(),
            None => path,
        };
        let hash = self.shared.hash(&path);
        if let Some(kept) = self.kept.get(&hash) {
            let Entry { kind, target, size, mode, content, .. } = kept.entry.clone();
            return self.keep(place, kind, target, size, mode, content);
        }
        self.pay(place.path.len() + 32)?;
        self.loose.push((hash, place.path.clone()));
        // of a file that is not kept its name may tell something all the same
        if Self::wanted(&place, 1, 0o755) == Interest::Nothing {
            self.forget(&place);
            return Ok(());
        }
        let reason = format!("a second name of {}, of which nothing was kept", String::from_utf8_lossy(&path));
        self.keep(place, Some(NodeKind::File), String::new(), 0, 0o755, Content::Unread(reason))
    }

    fn keep(
        &mut self,
        place: Place,
        kind: Option<NodeKind>,
        target: String,
        size: u64,
        mode: u32,
        content: Content,
    ) -> Result<(), Full> {
        self.pay(OVERHEAD + 2 * place.path.len() + target.len() + weight(&content))?;
        // its layer's number is known when layers are merged
        let entry = Entry { kind, target, size, mode, layer: 0, content };
        let kept = Kept { path: place.path, entry };
        match self.kept.entry(place.hash) {
            Slot::Occupied(mut slot) => {
                let old = slot.insert(kept);
                self.shared
                    .budget
                    .put(OVERHEAD + 2 * old.path.len() + old.entry.target.len() + weight(&old.entry.content));
            }
            Slot::Vacant(slot) => {
                slot.insert(kept);
            }
        }
        Ok(())
    }

    /// Something else took the place of what was kept.
    fn forget(&mut self, place: &Place) {
        if !self.kept.is_empty() {
            self.kept.remove(&place.hash);
        }
    }

    fn mark(&mut self, hash: u64, kind: u64) -> Result<(), Full> {
        if self.marks.len() == self.paid {
            self.pay(MARKS * size_of::<u64>())?;
            self.paid += MARKS;
        }
        self.marks.push(hash << HASH_SHIFT | kind);
        Ok(())
    }

    fn pay(&self, bytes: usize) -> Result<(), Full> {
        if self.shared.budget.take(bytes) { Ok(()) } else { Err(Full::Memory) }
    }

    /// Something of this layer could not be read.
    pub(super) fn note(&mut self, name: &[u8], reason: impl Into<String>) {
        if self.unread.len() < MOST_NOTES {
            let name = String::from_utf8_lossy(&name[..name.len().min(MOST_PATH)]);
            self.unread.push(Unseen::new(format!("/{}", name.trim_start_matches('/')), reason));
        }
    }

    /// All of it was taken in.
    pub(super) fn done(self) -> Told {
        Told {
            kept: self.kept.into_values().collect(),
            marks: self.marks,
            opaque: self.opaque,
            loose: self.loose,
            unread: self.unread,
        }
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

/// Bytes that are kept of a file.
fn weight(content: &Content) -> usize {
    match content {
        Content::Nothing | Content::InPlace => 0,
        Content::Unread(reason) => reason.len(),
        Content::Bytes(bytes) => bytes.capacity(),
        Content::Binary(binary) => {
            let texts = binary.needed.iter().chain(&binary.search).map(|text| text.len() + TEXT);
            let groups = binary.code.iter().flat_map(|code| &code.groups);
            let names = groups.map(|group| (group.machine.len() + group.ptx.len() + 2) * TEXT);
            size_of::<Binary>() + binary.head.len() + texts.sum::<usize>() + names.sum::<usize>()
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
