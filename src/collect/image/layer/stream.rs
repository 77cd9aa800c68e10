//! One layer as it goes by: bytes are read and hashed in one thread, decompressed in a second, and the archive that
//! comes out is gone through in a third. Decompressing alone decides how long it takes.

use std::io::{self, BufRead, Read};
use std::sync::atomic::Ordering;
use std::thread;

use flate2::bufread::MultiGzDecoder;

use super::Blob;
use super::digest::Hasher;
use super::pipe::{Drain, Filler, fill, pipe};
use super::tar::{Archive, Input, Kind, pass};
use super::teller::Teller;
use super::told::{Full, Place, Shared, Told};
use super::zstd::Zstd;
use crate::collect::image::binary::Scanner;
use crate::collect::image::condense::Condenser;
use crate::collect::image::source::Progress;
use crate::collect::image::telling::Interest;
use crate::collect::image::view::Content;
use crate::knowledge::programs::says_choice;
use crate::model::Unseen;

/// What all layers may expand to beyond this ratio: by a bomb gzip makes a thousand bytes of one, zstd thirty
/// thousand, and an image of use five.
pub(super) const MOST_RATIO: u64 = 200;

/// How bytes are packed, by their first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::collect::image) enum Packing {
    Gzip,
    Zstd,
    /// Packed in a way that is not read.
    Other(&'static str),
    None,
}

/// By magic; what a media type says of it is often wrong.
pub(in crate::collect::image) fn packing(start: &[u8]) -> Packing {
    match start {
        [0x1F, 0x8B, ..] => Packing::Gzip,
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Packing::Zstd,
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Other("xz"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Other("bzip2"),
        _ => Packing::None,
    }
}

/// Reads one layer.
pub(in crate::collect::image) fn read(blob: Blob, shared: &Shared, progress: &Progress) -> Result<Told, Unseen> {
    let Blob { label, digest, diff_id, size, open, parts: _ } = blob;
    let unseen = |reason: String| Unseen::new(&label, reason);
    let hasher = digest.as_ref().map(|digest| {
        Hasher::of(digest).ok_or_else(|| unseen(format!("its digest {digest} is of a kind that is not known")))
    });
    let told_digest = hasher.transpose()?.zip(digest.clone());
    let mut from = open().map_err(|e| unseen(e.to_string()))?;
    let (filler, packed) = pipe();
    thread::scope(|scope| {
        scope.spawn(move || feed(&mut *from, filler, told_digest, size, progress));
        unpack(packed, shared, diff_id.as_deref().filter(|_| digest.is_none()))
    })
    .map_err(|e| unseen(e.to_string()))
}

/// Reads a blob into a pipe. That it has its digest and size is said by its end: before that nothing is believed.
pub(in crate::collect::image) fn feed(
    from: &mut dyn Read,
    filler: Filler,
    mut digest: Option<(Hasher, String)>,
    size: Option<u64>,
    progress: &Progress,
) {
    let mut all = 0;
    loop {
        if progress.cancelled.load(Ordering::Relaxed) {
            return filler.fail(io::Error::other("interrupted"));
        }
        let mut buffer = filler.buffer();
        let read = match fill(from, &mut buffer) {
            Ok(read) => read,
            Err(error) => return filler.fail(error),
        };
        if read == 0 {
            break;
        }
        buffer.truncate(read);
        all += read as u64;
        progress.done.fetch_add(read as u64, Ordering::Relaxed);
        if size.is_some_and(|size| all > size) {
            return filler.fail(invalid("it is longer than its descriptor says"));
        }
        if let Some((hasher, _)) = &mut digest {
            hasher.update(&buffer);
        }
        if !filler.send(buffer) {
            return;
        }
    }
    if let Some(size) = size.filter(|size| *size != all) {
        return filler.fail(invalid(&format!("it is cut off: {all} of {size} bytes are there")));
    }
    match digest {
        Some((hasher, told)) => {
            let found = hasher.finish();
            if found == told { filler.end() } else { filler.fail(invalid(&format!("its digest is {found}"))) }
        }
        None => filler.end(),
    }
}

/// Takes in a layer that comes through a pipe, whatever it is packed with. `diff_id`: the digest that the archive is
/// to have, where nothing else proves it.
pub(in crate::collect::image) fn unpack(mut packed: Drain, shared: &Shared, diff_id: Option<&str>) -> io::Result<Told> {
    let kind = packing(packed.fill_buf()?);
    if kind == Packing::None {
        return walk(packed, shared, diff_id);
    }
    let (filler, archive) = pipe();
    thread::scope(|scope| {
        scope.spawn(move || unpack_into(kind, packed, filler, shared));
        walk(archive, shared, diff_id)
    })
}

/// Decompresses from one pipe to the next.
pub(in crate::collect::image) fn unpack_into(kind: Packing, from: Drain, filler: Filler, shared: &Shared) {
    match kind {
        Packing::Gzip => inflate(MultiGzDecoder::new(from), filler, shared),
        Packing::Zstd => inflate(Zstd::new(from, &shared.budget), filler, shared),
        Packing::Other(name) => filler.fail(invalid(&format!("it is packed with {name}, which is not read"))),
        Packing::None => filler.fail(invalid("it is not packed")),
    }
}

/// A decompressor that says how much it has taken.
trait Unpacker: Read {
    fn taken(&self) -> u64;
}

impl Unpacker for MultiGzDecoder<Drain> {
    fn taken(&self) -> u64 {
        self.get_ref().taken()
    }
}

impl Unpacker for Zstd<'_, Drain> {
    fn taken(&self) -> u64 {
        self.input().taken()
    }
}

fn inflate(mut from: impl Unpacker, filler: Filler, shared: &Shared) {
    let mut all = 0;
    let mut beyond = 0;
    loop {
        let mut buffer = filler.buffer();
        let read = match fill(&mut from, &mut buffer) {
            Ok(read) => read,
            Err(error) => return filler.fail(error),
        };
        if read == 0 {
            return filler.end();
        }
        buffer.truncate(read);
        all += read as u64;
        let now = all.saturating_sub(from.taken().saturating_mul(MOST_RATIO));
        if now > beyond {
            if !shared.expand(now - beyond) {
                return filler.fail(invalid("it expands to more than 200 times its size"));
            }
            beyond = now;
        }
        if !filler.send(buffer) {
            return;
        }
    }
}

/// An archive whose digest is wanted.
struct Hashed<I> {
    input: I,
    hasher: Option<Hasher>,
}

impl<I: Input> Read for Hashed<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.input.fill_buf()?;
        let now = there.len().min(buffer.len());
        buffer[..now].copy_from_slice(&there[..now]);
        self.consume(now);
        Ok(now)
    }
}

impl<I: Input> BufRead for Hashed<I> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(hasher) = &mut self.hasher
            && let Ok(bytes) = self.input.fill_buf()
        {
            hasher.update(&bytes[..amount.min(bytes.len())]);
        }
        self.input.consume(amount);
    }
}

impl<I: Input> Input for Hashed<I> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match self.hasher {
            Some(_) => pass(self, bytes),
            None => self.input.skip(bytes),
        }
    }
}

impl Input for Drain {}

/// Goes through a layer's archive to its end.
pub(in crate::collect::image) fn walk(input: impl Input, shared: &Shared, diff_id: Option<&str>) -> io::Result<Told> {
    let hasher = match diff_id {
        Some(told) => Some(Hasher::of(told).ok_or_else(|| invalid(&format!("its digest {told} is of no known kind")))?),
        None => None,
    };
    let mut archive = Archive::new(Hashed { input, hasher });
    let mut teller = Teller::new(shared);
    let full = |full: Full| invalid(&full.reason());
    while let Some(header) = archive.next()? {
        let (kind, size, mode) = (header.kind, header.size, header.mode);
        let Some(place) = teller.place(&header.name, true).map_err(full)? else { continue };
        match kind {
            Kind::Directory => teller.directory(place, mode),
            Kind::Symlink => teller.link(place, &header.target),
            Kind::HardLink => teller.hard_link(place, &header.target),
            Kind::File | Kind::Sparse => match Teller::wanted(&place, size, mode) {
                Interest::Nothing => teller.passed(&place),
                interest => {
                    let content = match kind {
                        Kind::Sparse => Content::Unread("it has holes, which are not filled".to_owned()),
                        _ => content(&mut archive, interest, size)?,
                    };
                    took(&mut teller, place, (size, mode), interest, content)
                }
            },
            Kind::CharDevice | Kind::BlockDevice | Kind::Fifo => teller.node(place, kind.node(), mode),
        }
        .map_err(full)?;
    }
    let rest = archive.input();
    loop {
        let there = rest.fill_buf()?.len();
        if there == 0 {
            break;
        }
        rest.consume(there);
    }
    if let (Some(hasher), Some(told)) = (rest.hasher.take(), diff_id) {
        let found = hasher.finish();
        if found != told {
            return Err(invalid(&format!("the digest of its archive is {found}")));
        }
    }
    Ok(teller.done())
}

/// A file of which something was to be kept: a script that chooses nothing is one like any other.
pub(super) fn took(
    teller: &mut Teller<'_>,
    place: Place,
    (size, mode): (u64, u32),
    interest: Interest,
    content: Content,
) -> Result<(), Full> {
    match (interest, &content) {
        (Interest::Script(_), Content::Nothing) => teller.passed(&place),
        _ => teller.file(place, size, mode, content),
    }
}

/// A file's bytes, as they go by.
pub(super) trait Bytes {
    /// The next ones, so many at most; `None`: there are no more.
    fn part(&mut self, most: usize) -> io::Result<Option<&[u8]>>;
}

impl<I: Input> Bytes for Archive<I> {
    fn part(&mut self, most: usize) -> io::Result<Option<&[u8]>> {
        Self::part(self, most)
    }
}

/// What is kept of a file.
pub(super) fn content(file: &mut impl Bytes, interest: Interest, size: u64) -> io::Result<Content> {
    Ok(match interest {
        Interest::Nothing | Interest::Name => Content::Nothing,
        Interest::Text(most) => Content::Bytes(beginning(file, most, size)?),
        Interest::Script(most) => {
            let bytes = beginning(file, most, size)?;
            if chooses(&bytes) { Content::Bytes(bytes) } else { Content::Nothing }
        }
        Interest::Packages(database) => {
            let mut condenser = Condenser::new(database);
            while let Some(part) = file.part(usize::MAX)? {
                condenser.push(part);
            }
            Content::Bytes(condenser.finish().into_bytes())
        }
        Interest::Binary => {
            let mut scanner = Scanner::new(size);
            while let Some(part) = file.part(usize::MAX)? {
                scanner.push(part);
            }
            Content::Binary(Box::new(scanner.finish()))
        }
    })
}

fn beginning(file: &mut impl Bytes, most: usize, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most.min(usize::try_from(size).unwrap_or(usize::MAX)));
    while bytes.len() < most
        && let Some(part) = file.part(most - bytes.len())?
    {
        bytes.extend_from_slice(part);
    }
    Ok(bytes)
}

/// A script that sets up an environment: of others nobody asks.
fn chooses(bytes: &[u8]) -> bool {
    bytes.starts_with(b"#!") && says_choice(&String::from_utf8_lossy(bytes))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
