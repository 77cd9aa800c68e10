//! Where a layer's table of contents is, and reading it.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::{Parts, odd};
use crate::collect::image::layer::budget::{Budget, Held};
use crate::collect::image::layer::digest::matches;
use crate::collect::image::layer::tar::{Archive, Input};
use crate::collect::image::layer::zstd::Zstd;

/// zstd:chunked (containers/storage 1.51, `pkg/chunked/internal/minimal`): `OFFSET:LENGTH:UNPACKED:TYPE`, and the digest
/// of the table as it is packed. Before Podman 5 their names were shorter (seen of 4.3).
const CHUNKED: [&str; 2] = ["io.github.containers.zstd-chunked", "io.containers.zstd-chunked"];
/// eStargz (stargz-snapshotter 0.15, `docs/estargz.md`): the digest of the table unpacked.
const STARGZ: &str = "containerd.io/snapshot/stargz/toc.digest";
const STARGZ_NAME: &[u8] = b"stargz.index.json";
/// At a blob's end: an empty gzip member that names the table's place.
const FOOTER: u64 = 51;

/// Packed or unpacked: some sixty thousand entries. Longer ones are dearer in memory than the layer itself.
const MOST_TABLE: u64 = 16 << 20;

/// Where the table is, by a layer's descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::collect::image) enum Table {
    /// zstd:chunked.
    Chunked { at: u64, length: u64, unpacked: u64, digest: String },
    /// eStargz.
    Stargz { digest: String },
}

/// How each file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    Gzip,
    Zstd,
}

/// A table that is the one its digest names.
pub(super) struct Contents<'b> {
    pub(super) json: Vec<u8>,
    pub(super) packed: Packed,
    /// Where the layer's files end at the latest.
    pub(super) end: u64,
    /// Bytes that were read for it.
    pub(super) length: u64,
    _memory: Held<'b>,
}

impl Table {
    /// By the annotations of a layer's descriptor; `None`: it has no such table.
    pub(in crate::collect::image) fn of<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let of = |prefix: &str, what: &str| annotation(&format!("{prefix}.manifest-{what}"));
        let chunked = CHUNKED.iter().find_map(|prefix| of(prefix, "position").zip(of(prefix, "checksum")));
        if let Some((position, digest)) = chunked {
            let mut numbers = position.split(':').map(|number| number.parse::<u64>().ok());
            let mut next = || numbers.next().flatten();
            let (at, length, unpacked, kind) = (next()?, next()?, next()?, next()?);
            return (kind == 1).then(|| Self::Chunked { at, length, unpacked, digest: digest.to_owned() });
        }
        annotation(STARGZ).map(|digest| Self::Stargz { digest: digest.to_owned() })
    }

    /// Reads the table of a blob of `size` bytes.
    pub(super) fn fetch<'b>(&self, parts: &Parts, size: u64, budget: &'b Budget) -> io::Result<Contents<'b>> {
        match self {
            Self::Chunked { at, length, unpacked, digest } => {
                let fits = at.checked_add(*length).is_some_and(|end| end <= size) && *unpacked <= MOST_TABLE;
                if !fits {
                    return Err(odd("the place of its table is none"));
                }
                let _packed = memory(budget, *length)?;
                let packed = part(parts, *at, *length)?;
                if !matches(digest, &packed) {
                    return Err(odd("its table has another digest"));
                }
                let memory = memory(budget, *unpacked)?;
                let json = all(Zstd::new(&packed[..], budget), *unpacked)?;
                Ok(Contents { json, packed: Packed::Zstd, end: *at, length: *length, _memory: memory })
            }
            Self::Stargz { digest } => {
                let footer_at = size.checked_sub(FOOTER).ok_or_else(|| odd("it is too short"))?;
                let at = place(&part(parts, footer_at, FOOTER)?).filter(|at| *at < footer_at);
                let at = at.ok_or_else(|| odd("its end names no table"))?;
                let length = footer_at - at;
                let _packed = memory(budget, length)?;
                let packed = part(parts, at, length)?;
                let mut archive = Archive::new(BufReader::new(MultiGzDecoder::new(&packed[..])));
                let header = archive.next()?.filter(|header| header.name == STARGZ_NAME);
                let unpacked =
                    header.map(|header| header.size).ok_or_else(|| odd("its table is not where it is said"))?;
                let memory = memory(budget, unpacked)?;
                let mut json = Vec::with_capacity(usize::try_from(unpacked).unwrap_or(0));
                while let Some(part) = archive.part(usize::MAX)? {
                    json.extend_from_slice(part);
                }
                if !matches(digest, &json) {
                    return Err(odd("its table has another digest"));
                }
                let length = length + FOOTER;
                Ok(Contents { json, packed: Packed::Gzip, end: at, length, _memory: memory })
            }
        }
    }
}

impl<R: Read> Input for BufReader<R> {}

fn memory(budget: &Budget, bytes: u64) -> io::Result<Held<'_>> {
    let bytes = usize::try_from(bytes).ok().filter(|_| bytes <= MOST_TABLE);
    bytes.and_then(|bytes| budget.hold(bytes)).ok_or_else(|| odd("its table is too long"))
}

fn part(parts: &Parts, at: u64, length: u64) -> io::Result<Vec<u8>> {
    all((parts.open)(at, length)?.take(length), length)
}

/// So many bytes, no more and no fewer.
fn all(from: impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    from.take(length + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(odd("its table has another length")) }
}

/// `%016xSTARGZ` in the extra field `SG` of the last member's header (RFC 1952, 2.3.1.1).
fn place(footer: &[u8]) -> Option<u64> {
    let hex = footer.strip_prefix(&[0x1F, 0x8B])?.get(8..)?.strip_prefix(&[26, 0, b'S', b'G', 22, 0])?;
    let (hex, rest) = hex.split_at_checked(16)?;
    let hex = std::str::from_utf8(hex).ok().filter(|_| rest.starts_with(b"STARGZ"))?;
    u64::from_str_radix(hex, 16).ok()
}
