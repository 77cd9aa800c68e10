//! The entries of one layer, taken in one after the other as engines unpack them.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::BuildHasherDefault;

use super::told::{DIRECTORY, FILE, Full, HASH_SHIFT, Itself, Kept, MOST_NOTES, Place, Shared, Told, WHITEOUT, cost};
use super::{MOST_ENTRIES, MOST_PATH, name};
use crate::collect::image::telling::{Interest, interest};
use crate::collect::image::view::{Content, Entry};
use crate::model::Unseen;
use crate::model::host::NodeKind;

/// Links followed to find in which directory of the layer an entry is put.
const HOPS: usize = 40;
/// Work on a target for each byte of it: it is taken apart.
const PART: usize = 16;
/// What a second name costs besides.
const LOOSE: usize = 128;
/// Bytes of a name in a message.
const MOST_TOLD: usize = 256;
/// Marks that are paid for at once.
const MARKS: usize = 8192;
/// Directories this deep are kept, so that one which is there and has nothing of interest in it is known to be.
const KEPT_DEPTH: usize = 4;

/// Takes in a layer's entries, one after the other.
pub(super) struct Teller<'a> {
    shared: &'a Shared,
    kept: HashMap<u64, Kept, BuildHasherDefault<Itself>>,
    marks: Vec<u64>,
    paid: usize,
    /// All memory that was taken for it.
    spent: usize,
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
            spent: 0,
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
            let real = if self.links { self.real(parent)? } else { Some(parent.to_vec()) };
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
            self.shared.step(above.len())?;
            self.mark(self.shared.hash(above), DIRECTORY)?;
        }
        parent.clone_into(&mut self.parent);
        Ok(())
    }

    /// The directory that a path leads to by the layer's own links, as engines unpack it: an entry below a link of
    /// the same layer is put where the link points. `None`: in circles.
    fn real(&self, parent: &[u8]) -> Result<Option<Vec<u8>>, Full> {
        let mut rest: Vec<Vec<u8>> = parent.rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
        let mut real: Vec<u8> = Vec::new();
        let mut hops = 0;
        let mut followed = 0;
        while let Some(part) = rest.pop() {
            self.shared.step(real.len())?;
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
            followed += target.len();
            // as the kernel, which follows so many, and a path is no longer than that
            if hops > HOPS || followed > MOST_PATH || real.len() > MOST_PATH {
                return Ok(None);
            }
            self.shared.step(PART * target.len())?;
            real.truncate(if target.starts_with('/') { 0 } else { before });
            rest.extend(target.as_bytes().rsplit(|byte| *byte == b'/').map(<[u8]>::to_vec));
        }
        Ok(Some(real))
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
        let real = if self.links { self.real(&path[..base.saturating_sub(1)])? } else { None };
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
        self.pay(LOOSE + 2 * place.path.len())?;
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
        // its layer's number is known when layers are merged
        let entry = Entry { kind, target, size, mode, layer: 0, content };
        let kept = Kept { path: place.path, entry };
        self.pay(cost(&kept))?;
        match self.kept.entry(place.hash) {
            Slot::Occupied(mut slot) => {
                let old = cost(&slot.insert(kept));
                self.shared.budget.put(old);
                self.spent -= old;
            }
            Slot::Vacant(slot) => {
                slot.insert(kept);
            }
        }
        Ok(())
    }

    /// Something else took the place of what was kept.
    fn forget(&mut self, place: &Place) {
        if !self.kept.is_empty()
            && let Some(old) = self.kept.remove(&place.hash)
        {
            let old = cost(&old);
            self.shared.budget.put(old);
            self.spent -= old;
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

    fn pay(&mut self, bytes: usize) -> Result<(), Full> {
        if !self.shared.budget.take(bytes) {
            return Err(Full::Memory);
        }
        self.spent += bytes;
        Ok(())
    }

    /// Something of this layer could not be read.
    pub(super) fn note(&mut self, name: &[u8], reason: impl Into<String>) {
        if self.unread.len() < MOST_NOTES {
            let name = String::from_utf8_lossy(&name[..name.len().min(MOST_TOLD)]);
            self.unread.push(Unseen::new(format!("/{}", name.trim_start_matches('/')), reason));
        }
    }

    /// Nothing of it is kept after all.
    pub(super) fn undo(self) {
        self.shared.budget.put(self.spent);
    }

    /// All of it was taken in.
    pub(super) fn done(self) -> Told {
        Told {
            kept: self.kept.into_values().collect(),
            marks: self.marks,
            opaque: self.opaque,
            loose: self.loose,
            unread: self.unread,
            by_table: false,
        }
    }
}
