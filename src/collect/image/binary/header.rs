//! The headers of an ELF file of 64 bits, little-endian: all that NVIDIA's software is made for.

use std::ops::Range;

use crate::collect::image::processor;
use crate::knowledge::little_endian::{u16_at, u32_at, u64_at};

/// An ELF header.
pub(super) const HEAD: usize = 64;
const PROGRAM: usize = 56;
const SECTION: usize = 64;
/// Real files have a dozen segments, and some forty sections.
const MOST_SEGMENTS: usize = 128;
const MOST_SECTIONS: usize = 4096;

/// `e_machine`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    X86,
    Arm,
    Other,
}

/// What the file's header tells.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) machine: Machine,
    /// Where the program headers lie; empty: there are none.
    pub(super) programs: Range<u64>,
    /// Where the section headers lie.
    pub(super) sections: Range<u64>,
    /// Which section holds their names.
    pub(super) names: usize,
}

/// Whatever it is an ELF file of: its processor, empty of anything else.
pub(super) fn architecture(head: &[u8]) -> String {
    head.first_chunk().and_then(processor).unwrap_or_default().to_owned()
}

impl Header {
    /// `None`: it is no such file. Tables with more entries than a file of use has count as absent.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        if head.len() < HEAD || !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let table = |at: usize, size: usize, count: usize, entry: usize, most: usize| {
            let count = Some(usize::from(u16_at(head, count)?)).filter(|count| *count <= most)?;
            let start = u64_at(head, at)?;
            if usize::from(u16_at(head, size)?) != entry {
                return None;
            }
            Some(start..start.checked_add((count * entry) as u64)?)
        };
        Some(Self {
            machine: match u16_at(head, 18)? {
                62 => Machine::X86,
                183 => Machine::Arm,
                _ => Machine::Other,
            },
            programs: table(32, 54, 56, PROGRAM, MOST_SEGMENTS).unwrap_or_default(),
            sections: table(40, 58, 60, SECTION, MOST_SECTIONS).unwrap_or_default(),
            names: usize::from(u16_at(head, 62)?),
        })
    }
}

/// Segments that are of use here.
#[derive(Debug, Clone, Default)]
pub(super) struct Segments {
    /// What is loaded: place in the file and address.
    loads: Vec<(Range<u64>, u64)>,
    /// Places of what can be executed.
    pub(super) code: Vec<Range<u64>>,
    /// Where the loader's table lies.
    pub(super) dynamic: Option<Range<u64>>,
}

impl Segments {
    pub(super) fn of(table: &[u8]) -> Self {
        let mut found = Self::default();
        for entry in table.chunks_exact(PROGRAM) {
            let (Some(kind), Some(flags)) = (u32_at(entry, 0), u32_at(entry, 4)) else { continue };
            let (Some(at), Some(address), Some(size)) = (u64_at(entry, 8), u64_at(entry, 16), u64_at(entry, 32)) else {
                continue;
            };
            let Some(end) = at.checked_add(size) else { continue };
            match kind {
                1 => {
                    found.loads.push((at..end, address));
                    if flags & 1 != 0 {
                        found.code.push(at..end);
                    }
                }
                2 => found.dynamic = Some(at..end),
                _ => {}
            }
        }
        found.loads.sort_by_key(|(place, _)| place.start);
        found
    }

    /// Where in the file an address lies.
    pub(super) fn place(&self, address: u64) -> Option<u64> {
        self.loads.iter().find_map(|(place, start)| {
            let offset = address.checked_sub(*start).filter(|offset| *offset < place.end - place.start)?;
            place.start.checked_add(offset)
        })
    }

    /// What is loaded with a place: patchelf writes the strings anew, with the table and before it.
    pub(super) fn around(&self, at: u64) -> Range<u64> {
        self.loads.iter().find(|(place, _)| place.contains(&at)).map(|(place, _)| place.clone()).unwrap_or_default()
    }

    /// What is loaded first: the loader's strings are in it, as linkers write it.
    pub(super) fn first(&self) -> Range<u64> {
        self.loads.first().map(|(place, _)| place.clone()).unwrap_or_default()
    }
}

/// A section's header.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// Where its name begins in the names.
    pub(super) name: usize,
    /// Its place in the file; empty of one that is only in memory.
    pub(super) place: Range<u64>,
}

impl Section {
    /// Its name; empty: it has none there.
    pub(super) fn name_in<'a>(&self, names: &'a [u8]) -> &'a [u8] {
        let rest = names.get(self.name..).unwrap_or_default();
        &rest[..memchr::memchr(0, rest).unwrap_or(0)]
    }

    pub(super) fn all(table: &[u8]) -> Vec<Self> {
        let of = |entry: &[u8]| {
            // a section without bytes in the file has a place as well
            let size = if u32_at(entry, 4)? == 8 { 0 } else { u64_at(entry, 32)? };
            let at = u64_at(entry, 24)?;
            Some(Self { name: usize::try_from(u32_at(entry, 0)?).ok()?, place: at..at.checked_add(size)? })
        };
        let none = Self { name: usize::MAX, place: 0..0 };
        table.chunks_exact(SECTION).map(|entry| of(entry).unwrap_or_else(|| none.clone())).collect()
    }
}
