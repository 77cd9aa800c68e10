//! Layers that say what they hold: zstd:chunked and eStargz have a table of contents, bound to the manifest by its digest,
//! with the place of each file. Of such a layer only the table and the files that tell something are read.
//!
//! Both are ordinary layers as well, so that whatever is odd about a table leads to the whole layer being read, as does
//! one of which much would be read anyhow. That the table and the archive agree only its builder knows; it is said.

use std::io::{self, Read};
use std::sync::atomic::Ordering;

use flate2::bufread::MultiGzDecoder;

use super::Blob;
use super::budget::Budget;
use super::digest::Hasher;
use super::pipe::CHUNK;
use super::stream::{Bytes, MOST_RATIO, content, took};
use super::tar::Kind;
use super::teller::Teller;
use super::told::{Full, Shared, Told};
use super::zstd::Zstd;
use crate::collect::image::source::Progress;
use crate::collect::image::telling::Interest;
use crate::collect::image::view::Content;
use entries::{Entry, entries};
use ranges::{Plan, Ranges};
pub(in crate::collect::image) use table::Table;
use table::{Contents, Packed};

mod entries;
mod ranges;
mod table;
#[cfg(test)]
pub(in crate::collect::image) mod testing;
#[cfg(test)]
mod tests;

/// More than this part of a layer is not picked out of it: one stream is faster than many pieces.
const MOST_SHARE: u64 = 3;
/// What is unpacked of one layer in pieces.
const MOST_UNPACKED: u64 = 4 << 30;

/// A blob of which parts can be read.
pub(in crate::collect::image) struct Parts {
    pub(in crate::collect::image) table: Table,
    /// So many bytes could be read in the time that it takes to ask for some.
    pub(in crate::collect::image) request: u64,
    /// Opens so many bytes from a place on.
    pub(in crate::collect::image) open: OpenPart,
}

/// Opens a part of a blob.
pub(in crate::collect::image) type OpenPart = Box<dyn Fn(u64, u64) -> io::Result<Box<dyn Read + Send>> + Send>;

/// Takes in a layer by its table of contents. An error only says that it is to be read whole.
pub(super) fn read(blob: &Blob, shared: &Shared, progress: &Progress) -> io::Result<Told> {
    let (Some(parts), Some(size)) = (&blob.parts, blob.size) else { return Err(odd("it has no table of contents")) };
    let contents = parts.table.fetch(parts, size, &shared.budget)?;
    let mut plan = Plan::new(contents.end, parts.request);
    let scratch = told(&contents, shared, &mut |file, _, interest| {
        let wanted = file.size > 0 && !matches!(interest, Interest::Nothing | Interest::Name);
        plan.add(file, wanted).map(|()| Content::Nothing)
    })?;
    scratch.undo();
    let plan = plan.done();
    if plan.unpacked > MOST_UNPACKED || contents.length.saturating_add(plan.cost) > size / MOST_SHARE {
        return Err(odd("much of it would be read"));
    }
    let packed: u64 = plan.ranges.iter().map(|(start, end)| end - start).sum();
    if !shared.expand(plan.unpacked.saturating_sub(packed.saturating_mul(MOST_RATIO))) {
        return Err(odd("it expands too far"));
    }
    let mut ranges = Ranges::new(&plan.ranges, &parts.open);
    let teller = told(&contents, shared, &mut |_, entry, interest| {
        if entry.size == 0 {
            return content(&mut Nothing, interest, 0);
        }
        match interest {
            Interest::Nothing | Interest::Name => Ok(Content::Nothing),
            _ => fetched(&mut ranges, contents.packed, (entry, interest), &shared.budget, progress),
        }
    })?;
    progress.done.fetch_add(size, Ordering::Relaxed);
    Ok(Told { by_table: true, ..teller.done() })
}

/// Where a file's bytes are.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    end: Option<u64>,
    size: u64,
    /// It is a further part of the file before it.
    is_part: bool,
}

/// What is kept of a file, which is asked for when its place in the blob is known.
type Keep<'k> = dyn FnMut(Place, &Entry<'_>, Interest) -> io::Result<Content> + 'k;

/// Goes through a table, as through the archive that it is of. Of whatever is left half taken in nothing stays.
fn told<'s>(contents: &Contents<'_>, shared: &'s Shared, keep: &mut Keep<'_>) -> io::Result<Teller<'s>> {
    let mut teller = Teller::new(shared);
    match entries(&contents.json, &mut |entry| tell(&mut teller, entry, keep)) {
        Ok(()) => Ok(teller),
        Err(error) => {
            teller.undo();
            Err(error)
        }
    }
}

fn tell(teller: &mut Teller<'_>, entry: &Entry<'_>, keep: &mut Keep<'_>) -> io::Result<()> {
    let full = |full: Full| odd(&full.reason());
    // a letter that is none stands for bytes that the archive has there
    if entry.name.contains('\u{fffd}') || entry.target().contains('\u{fffd}') {
        return Err(odd("a name is no text"));
    }
    let kind = entry.kind()?;
    let file = Place { offset: entry.offset, end: entry.end(), size: entry.size, is_part: kind.is_none() };
    let Some(kind) = kind else {
        return keep(file, entry, Interest::Nothing).map(drop);
    };
    let place = teller.place(entry.name.as_bytes(), true).map_err(full)?;
    let Some(place) = place else { return Ok(()) };
    let mode = entry.mode();
    match kind {
        Kind::Directory => teller.directory(place, mode),
        Kind::Symlink => teller.link(place, entry.target().as_bytes()),
        Kind::HardLink => teller.hard_link(place, entry.target().as_bytes()),
        Kind::File | Kind::Sparse => match Teller::wanted(&place, entry.size, mode) {
            Interest::Nothing => {
                keep(file, entry, Interest::Nothing)?;
                teller.passed(&place)
            }
            interest => {
                let content = keep(file, entry, interest)?;
                took(teller, place, (entry.size, mode), interest, content)
            }
        },
        Kind::CharDevice | Kind::BlockDevice | Kind::Fifo => teller.node(place, kind.node(), mode),
    }
    .map_err(full)
}

/// A file without bytes.
struct Nothing;

impl Bytes for Nothing {
    fn part(&mut self, _: usize) -> io::Result<Option<&[u8]>> {
        Ok(None)
    }
}

/// What is kept of a file, out of its part of the blob.
fn fetched(
    ranges: &mut Ranges<'_>,
    packed: Packed,
    (entry, interest): (&Entry<'_>, Interest),
    budget: &Budget,
    progress: &Progress,
) -> io::Result<Content> {
    let wanted = entry.digest.as_deref().unwrap_or_default();
    let hasher = Hasher::of(wanted).ok_or_else(|| odd("a file has no digest"))?;
    ranges.seek(entry.offset)?;
    let from: Box<dyn Read + '_> = match packed {
        Packed::Gzip => Box::new(MultiGzDecoder::new(ranges)),
        Packed::Zstd => Box::new(Zstd::new(ranges, budget)),
    };
    let mut file = Unpacked { from, left: entry.size, buffer: vec![0; CHUNK], hasher, progress };
    let content = content(&mut file, interest, entry.size)?;
    while file.part(usize::MAX)?.is_some() {}
    if file.hasher.finish() == wanted { Ok(content) } else { Err(odd("a file has another digest")) }
}

/// A file as it is unpacked.
struct Unpacked<'a> {
    from: Box<dyn Read + 'a>,
    left: u64,
    buffer: Vec<u8>,
    hasher: Hasher,
    progress: &'a Progress,
}

impl Bytes for Unpacked<'_> {
    fn part(&mut self, most: usize) -> io::Result<Option<&[u8]>> {
        let now = usize::try_from(self.left).unwrap_or(usize::MAX).min(most).min(self.buffer.len());
        if now == 0 {
            return Ok(None);
        }
        if self.progress.cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.from.read(&mut self.buffer[..now])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        self.hasher.update(&self.buffer[..read]);
        Ok(Some(&self.buffer[..read]))
    }
}

fn odd(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
