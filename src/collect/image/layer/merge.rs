//! Layers made into one view, as overlayfs does: by path, and never through links.

use std::collections::BTreeMap;

use super::told::{DIRECTORY, FILE, HASH_SHIFT, Kept, LAYER_SHIFT, MOST_NOTES, Shared, Told};
use crate::collect::image::view::Entry;
use crate::model::Unseen;
use crate::model::host::NodeKind;

/// Merges, bottom to top. Below a layer that could not be read nothing is certain: it may hide or replace anything,
/// so that what lies below is left out.
pub(super) fn merge(layers: Vec<Result<Told, Unseen>>, shared: &Shared) -> (BTreeMap<String, Entry>, Vec<Unseen>) {
    let floor = layers.iter().rposition(Result::is_err).unwrap_or(0);
    let mut unread = Vec::new();
    let mut marks = Vec::new();
    let mut opaque = Vec::new();
    let mut loose = Vec::new();
    let mut kept: Vec<(usize, Vec<Kept>)> = Vec::new();
    for (number, layer) in layers.into_iter().enumerate() {
        let told = match layer {
            Ok(told) => told,
            Err(unseen) => {
                unread.push(unseen);
                continue;
            }
        };
        if number < floor {
            continue;
        }
        unread.extend(told.unread);
        opaque.extend(told.opaque.iter().map(|hash| hash << HASH_SHIFT | (number as u64) << LAYER_SHIFT));
        loose.extend(told.loose.into_iter().map(|(target, path)| (number, target, path)));
        kept.push((number, told.kept));
        marks.push((number, told.marks));
    }
    let upper = Upper { marks: together(marks), opaque: sorted(opaque), shared };
    for (number, target, path) in loose {
        if !of_layer(&upper.marks, target, number).any(|kind| kind == FILE) {
            note(&mut unread, &path, "it is a second name of nothing that its layer has");
        }
    }
    let mut all = BTreeMap::new();
    for (number, mut entries) in kept {
        entries.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let mut place = Place { upper: &upper, layer: number, directory: Vec::new(), levels: Vec::new() };
        for Kept { path, entry } in entries {
            let base = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            let is_other = place.levels.is_empty() || place.directory != path[..base];
            let Level { two, hidden, .. } = place.enter(&path[..base]);
            if two && is_other {
                note(&mut unread, &path[..base], "its layer has a file there, and other files below it");
            }
            if two || hidden || upper.hides(&path, entry.kind == Some(NodeKind::Directory), number) {
                continue;
            }
            all.insert(format!("/{}", String::from_utf8_lossy(&path)), Entry { layer: number, ..entry });
        }
    }
    (all, unread)
}

/// All layers' marks in one list, by path and layer. The longest list grows, so that none is held twice.
fn together(mut lists: Vec<(usize, Vec<u64>)>) -> Vec<u64> {
    let Some(longest) = (0..lists.len()).max_by_key(|n| lists[*n].1.len()) else { return Vec::new() };
    let (number, mut all) = lists.swap_remove(longest);
    for mark in &mut all {
        *mark |= (number as u64) << LAYER_SHIFT;
    }
    for (number, marks) in lists {
        all.extend(marks.into_iter().map(|mark| mark | (number as u64) << LAYER_SHIFT));
    }
    sorted(all)
}

fn sorted(mut marks: Vec<u64>) -> Vec<u64> {
    marks.sort_unstable();
    marks
}

/// What layers have, asked by those below them.
struct Upper<'a> {
    marks: Vec<u64>,
    opaque: Vec<u64>,
    shared: &'a Shared,
}

impl Upper<'_> {
    /// Something above it stands at the path itself in its stead. Of two directories the lower stays, with what is in
    /// it.
    fn hides(&self, path: &[u8], directory: bool, layer: usize) -> bool {
        let mut above = of(&self.marks, self.shared.hash(path), layer + 1);
        above.any(|kind| kind != DIRECTORY || !directory)
    }

    /// A directory is hidden by layers above it, with all that this layer and those below it have in it.
    fn hides_below(&self, directory: u64, layer: usize) -> bool {
        of(&self.marks, directory, layer + 1).any(|kind| kind != DIRECTORY)
            || of(&self.opaque, directory, layer + 1).next().is_some()
    }

    /// One layer has the directory as a file too: which of them came last is not known any more.
    fn is_two(&self, directory: u64, layer: usize) -> bool {
        of_layer(&self.marks, directory, layer).any(|kind| kind == FILE)
    }
}

/// A directory of a layer whose paths go by in their order: of those above it each is looked up once.
struct Place<'a> {
    upper: &'a Upper<'a>,
    layer: usize,
    directory: Vec<u8>,
    /// The directory and those above it, the root first.
    levels: Vec<Level>,
}

/// What is so of a directory because of itself or one above it.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Where its path ends.
    end: usize,
    two: bool,
    hidden: bool,
}

impl Place<'_> {
    fn enter(&mut self, directory: &[u8]) -> Level {
        let same = self.directory.iter().zip(directory).take_while(|(one, other)| one == other).count();
        let ends_at = |end: usize| end == 0 || matches!(directory.get(end), None | Some(b'/'));
        self.levels.retain(|level| level.end <= same && ends_at(level.end));
        let first = self.levels.last().map_or(0, |level| level.end + 1);
        for end in (first..=directory.len()).filter(|end| ends_at(*end)) {
            let above = self.levels.last().copied().unwrap_or_default();
            let hash = self.upper.shared.hash(&directory[..end]);
            self.levels.push(Level {
                end,
                two: above.two || self.upper.is_two(hash, self.layer),
                hidden: above.hidden || self.upper.hides_below(hash, self.layer),
            });
        }
        directory.clone_into(&mut self.directory);
        self.levels.last().copied().unwrap_or_default()
    }
}

fn note(unread: &mut Vec<Unseen>, path: &[u8], reason: &str) {
    if unread.len() < MOST_NOTES {
        unread.push(Unseen::new(format!("/{}", String::from_utf8_lossy(path)), reason));
    }
}

/// What layers from one on have at a path.
fn of(marks: &[u64], hash: u64, from: usize) -> impl Iterator<Item = u64> {
    let first = hash << HASH_SHIFT | (from as u64) << LAYER_SHIFT;
    let start = marks.partition_point(|mark| *mark < first);
    marks[start..].iter().take_while(move |mark| **mark >> HASH_SHIFT == hash).map(|mark| mark & 3)
}

fn of_layer(marks: &[u64], hash: u64, layer: usize) -> impl Iterator<Item = u64> {
    let first = hash << HASH_SHIFT | (layer as u64) << LAYER_SHIFT;
    let start = marks.partition_point(|mark| *mark < first);
    marks[start..].iter().take_while(move |mark| **mark >> LAYER_SHIFT == first >> LAYER_SHIFT).map(|mark| mark & 3)
}
