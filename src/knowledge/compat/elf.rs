//! Finds the note in a libcuda: a hundred megabytes of which a few kilobytes are read. The file comes out of an
//! image, so every number in it is checked before it is used.

use std::io;

use super::note::{self, parse_note};
use crate::knowledge::little_endian::{u16_at, u32_at, u64_at};
use crate::model::image::CompatNote;

const SECTION: &[u8] = b".note.cuda.fwd_compatibility";
const VENDOR: &[u8] = b"NVIDIA Corporation\0";
/// `SHT_NOTE`
const NOTE: u32 = 7;
const HEADER: usize = 64;
const ENTRY: usize = 64;

/// A libcuda has some forty sections, and a few hundred bytes of their names.
const MOST_SECTIONS: usize = 256;
const MOST_NAMES: usize = 64 * 1024;

type ReadAt<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> io::Result<usize>;

/// Reads the note of a 64-bit little-endian ELF through `read_at`, which fills a buffer from a place in the file
/// as `pread` does. `None`: it has none, or is not such a file.
pub fn note_of_elf(read_at: ReadAt<'_>) -> Option<CompatNote> {
    let header = read(read_at, 0, HEADER)?;
    // 64 bits, little-endian
    if !header.starts_with(b"\x7fELF\x02\x01") || usize::from(u16_at(&header, 58)?) != ENTRY {
        return None;
    }
    let count = usize::from(u16_at(&header, 60)?);
    let of_names = usize::from(u16_at(&header, 62)?);
    if count > MOST_SECTIONS || of_names >= count {
        return None;
    }
    let table = read(read_at, u64_at(&header, 40)?, count * ENTRY)?;
    let sections: Vec<Section> = table.chunks_exact(ENTRY).map_while(Section::of).collect();
    let names = sections.get(of_names)?.read(read_at, MOST_NAMES)?;
    let is_it = |section: &&Section| section.kind == NOTE && section.is_named(SECTION, &names);
    let section = sections.iter().find(is_it)?;
    // Larger than a note: the header of one, the vendor's name and the text.
    let bytes = section.read(read_at, note::LONGEST)?;
    text_of(&bytes, section.align).and_then(parse_note)
}

struct Section {
    name: usize,
    kind: u32,
    at: u64,
    size: u64,
    align: usize,
}

impl Section {
    fn of(entry: &[u8]) -> Option<Self> {
        Some(Self {
            name: usize::try_from(u32_at(entry, 0)?).ok()?,
            kind: u32_at(entry, 4)?,
            at: u64_at(entry, 24)?,
            size: u64_at(entry, 32)?,
            align: if u64_at(entry, 48)? == 8 { 8 } else { 4 },
        })
    }

    fn is_named(&self, name: &[u8], names: &[u8]) -> bool {
        let found = names.get(self.name..).unwrap_or_default();
        found.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn read(&self, read_at: ReadAt<'_>, most: usize) -> Option<Vec<u8>> {
        let size = usize::try_from(self.size).ok().filter(|size| *size <= most)?;
        read(read_at, self.at, size)
    }
}

/// The text of a note: the sizes of its two parts, a type, the vendor's name, the text, each part aligned.
fn text_of(note: &[u8], align: usize) -> Option<&[u8]> {
    let name = usize::try_from(u32_at(note, 0)?).ok()?;
    let text = usize::try_from(u32_at(note, 4)?).ok()?;
    let rest = note.get(12..)?;
    if rest.get(..name)? != VENDOR {
        return None;
    }
    let start = name.next_multiple_of(align);
    rest.get(start..start.checked_add(text)?)
}

/// All of `size` bytes, or nothing.
fn read(read_at: ReadAt<'_>, at: u64, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size];
    let mut done = 0;
    while done < size {
        let place = at.checked_add(u64::try_from(done).ok()?)?;
        match read_at(place, &mut bytes[done..]) {
            Ok(read) if read > 0 && read <= size - done => done += read,
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JSON: &[u8] = b"{\"format\":1,\"CUDA version\":\"13.1\",\"driver\":[535,590],\"device\":[1,2]}\0";

    /// An ELF of three sections: none, the note, their names.
    fn elf(vendor: &[u8], json: &[u8]) -> Vec<u8> {
        let padded = |bytes: &[u8]| [bytes, &vec![0; bytes.len().next_multiple_of(4) - bytes.len()]].concat();
        let size = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
        let note = [&size(vendor.len())[..], &size(json.len()), &[0; 4], &padded(vendor), &padded(json)].concat();
        let names = [b"\0", SECTION, b"\0.shstrtab\0"].concat();
        let at_names = HEADER + note.len();
        let at_table = (at_names + names.len()).next_multiple_of(8);
        let entry = |name: u32, kind: u32, at: usize, size: usize| {
            let numbers = [0, 0, at as u64, size as u64, 0, 4, 0].map(u64::to_le_bytes).concat();
            [&name.to_le_bytes()[..], &kind.to_le_bytes(), &numbers].concat()
        };
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(40, 0);
        file.extend((at_table as u64).to_le_bytes());
        file.resize(58, 0);
        file.extend([64u16, 3, 2].map(u16::to_le_bytes).concat());
        file.extend(&note);
        file.extend(&names);
        file.resize(at_table, 0);
        file.extend([0; 64]);
        file.extend(entry(1, NOTE, HEADER, note.len()));
        file.extend(entry(u32::try_from(SECTION.len()).unwrap() + 2, 3, at_names, names.len()));
        file
    }

    fn of(file: &[u8]) -> Option<CompatNote> {
        note_of_elf(&mut |at, buffer| {
            let rest = usize::try_from(at).ok().and_then(|at| file.get(at..)).unwrap_or_default();
            // As short as a read may be.
            let length = rest.len().min(buffer.len()).min(100);
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        })
    }

    #[test]
    fn the_note_is_found() {
        let note = of(&elf(VENDOR, JSON)).unwrap();
        assert_eq!((note.cuda.to_string().as_str(), note.branches.as_slice()), ("13.1", &[535, 590][..]));
        assert_eq!(of(&elf(b"GNU\0", JSON)), None);
        assert_eq!(of(&elf(VENDOR, b"{\"format\":1,}\0")), None);
        assert_eq!(of(b""), None);
        assert_eq!(of(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn sizes_out_of_bounds_are_no_note() {
        let with = |at: usize, bytes: &[u8]| {
            let mut file = elf(VENDOR, JSON);
            file[at..at + bytes.len()].copy_from_slice(bytes);
            of(&file)
        };
        let table = usize::try_from(u64_at(&elf(VENDOR, JSON), 40).unwrap()).unwrap();
        assert_eq!(with(60, &[0xff, 0xff]), None, "sections");
        assert_eq!(with(62, &[3, 0]), None, "index of names");
        assert_eq!(with(40, &[0xff; 8]), None, "place of the table");
        assert_eq!(with(table + 64 + 32, &[0xff; 8]), None, "size of the note");
        assert_eq!(with(table + 64 + 24, &[0xff; 8]), None, "place of the note");
        assert_eq!(with(table + 128 + 32, &[0, 0, 2, 0]), None, "size of names");
        assert_eq!(with(64, &[0xff; 4]), None, "size of the vendor's name");
        assert_eq!(with(68, &[0xff; 4]), None, "size of the text");
        assert!(with(100_000 % 64, &[]).is_some());
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200),
            at in 0usize..400, changed in proptest::collection::vec(any::<u8>(), 1..16)) {
            let _ = of(&bytes);
            let mut file = elf(VENDOR, JSON);
            let at = at.min(file.len() - changed.len());
            file[at..at + changed.len()].copy_from_slice(&changed);
            let _ = of(&file);
        }
    }
}
