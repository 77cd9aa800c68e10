//! A program or library that can be asked for any of its parts: read by its headers, and little of it.

use std::io;
use std::ops::Range;

use super::dynamic::{Asked, Dynamic, LONGEST_TABLE, LONGEST_TEXT, text};
use super::header::{HEAD, Header, Machine, Section, Segments, architecture};
use super::stream::Scanner;
use super::{Binary, cudart, fatbin};
use crate::knowledge::compat::note_of_elf;

/// Fills a buffer from a place in the file, as `pread` does.
type ReadAt<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> io::Result<usize>;

/// What is read at once where all of a part is looked through, and of one container's entries.
const BLOCK: usize = 256 << 10;
const NEAR: usize = 4 << 10;
/// Names of sections: a file has some forty.
const MOST_NAMES: u64 = 256 << 10;
/// A library of a gigabyte has some ten thousand entries.
const MOST_ENTRIES: usize = 400_000;
/// Code and texts that are looked through for a runtime.
const MOST_CODE: u64 = 2 << 30;
/// A file without section headers is read as a stream, if it is no larger.
const MOST_WITHOUT: u64 = 1 << 30;

const TEXTS: &[u8] = b".rodata";

/// Reads a file of `size` bytes.
pub fn read(read_at: ReadAt<'_>, size: u64) -> Binary {
    let mut file = File { read_at, size };
    let head = file.up_to(0, HEAD);
    let mut told = Binary { architecture: architecture(&head), ..Binary::default() };
    let Some(header) = Header::of(&head) else {
        told.head = head;
        return told;
    };
    if header.sections.is_empty() && size <= MOST_WITHOUT {
        return file.stream();
    }
    let segments = Segments::of(&file.all(&header.programs, u64::MAX).unwrap_or_default());
    file.dynamic(&segments, &mut told);
    let sections = file.sections(&header);
    if sections.is_none() {
        told.lose("its sections");
    }
    let sections = sections.unwrap_or_default();
    let mut code = fatbin::Found::default();
    let mut left = MOST_ENTRIES;
    let of_code = |(_, name): &&(Section, Vec<u8>)| fatbin::SECTIONS.contains(&name.as_slice());
    for (section, _) in sections.iter().filter(of_code).filter(|_| !told.is_of_nvidia()) {
        file.containers(&section.place, &mut code, &mut left);
    }
    told.head = head;
    told.compat = note_of_elf(file.read_at);
    told.conclude(code, |told| file.runtime(header.machine, &sections, &segments, told));
    told
}

/// What the section of a name holds; `None`: the file has none, or one longer than `most`.
pub fn section(read_at: ReadAt<'_>, size: u64, name: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut file = File { read_at, size };
    let header = Header::of(&file.up_to(0, HEAD))?;
    let sections = file.sections(&header)?;
    let (section, _) = sections.iter().find(|(_, known)| known == name)?;
    file.all(&section.place, most)
}

struct File<'a> {
    read_at: ReadAt<'a>,
    size: u64,
}

impl File<'_> {
    /// Fills the buffer as far as the file goes.
    fn fill(&mut self, at: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let Some(place) = at.checked_add(done as u64).filter(|place| *place < self.size) else { break };
            match (self.read_at)(place, &mut buffer[done..]) {
                Ok(count) if count > 0 && count <= buffer.len() - done => done += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        done
    }

    /// At most so many bytes.
    fn up_to(&mut self, at: u64, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let done = self.fill(at, &mut bytes);
        bytes.truncate(done);
        bytes
    }

    /// All of a place, if it is no longer than `most`.
    fn all(&mut self, place: &Range<u64>, most: u64) -> Option<Vec<u8>> {
        let length = place.end.checked_sub(place.start).filter(|length| *length <= most.min(self.size))?;
        let length = usize::try_from(length).ok()?;
        Some(self.up_to(place.start, length)).filter(|bytes| bytes.len() == length)
    }

    fn stream(&mut self) -> Binary {
        let mut scanner = Scanner::new(self.size);
        let mut buffer = vec![0; BLOCK];
        let mut at = 0;
        loop {
            let done = self.fill(at, &mut buffer);
            scanner.push(&buffer[..done]);
            at += done as u64;
            if done < buffer.len() {
                return scanner.finish();
            }
        }
    }

    fn dynamic(&mut self, segments: &Segments, told: &mut Binary) {
        let Some(place) = &segments.dynamic else { return };
        let place = place.start..place.end.min(place.start.saturating_add(LONGEST_TABLE));
        let Some(table) = self.all(&place, u64::MAX) else {
            told.tell(Asked::Name, None);
            return;
        };
        let table = Dynamic::of(&table, segments);
        for (what, place) in &table.texts {
            // most are short
            let near = text(&self.up_to(*place, 128));
            told.tell(*what, near.or_else(|| text(&self.up_to(*place, LONGEST_TEXT))));
        }
        if table.lost {
            told.tell(Asked::Name, None);
        }
    }

    /// The sections, with their names.
    fn sections(&mut self, header: &Header) -> Option<Vec<(Section, Vec<u8>)>> {
        let sections = Section::all(&self.all(&header.sections, u64::MAX)?);
        let names = sections.get(header.names)?.place.clone();
        let names = self.all(&names, MOST_NAMES)?;
        Some(sections.iter().map(|section| (section.clone(), section.name_in(&names).to_vec())).collect())
    }

    /// From container to container, and in each from entry to entry.
    fn containers(&mut self, place: &Range<u64>, found: &mut fatbin::Found, left: &mut usize) {
        let end = place.end.min(self.size);
        if place.end > self.size {
            found.lose_section();
        }
        let mut at = place.start.checked_next_multiple_of(fatbin::ALIGNMENT).unwrap_or(u64::MAX);
        let mut near = Near::default();
        while at < end {
            let header = near.get(self, at, fatbin::CONTAINER);
            let Some(size) = fatbin::container(header, end - at) else {
                // between containers there is nothing but a few bytes of padding
                let Some(rest) = left.checked_sub(1) else {
                    found.lose_section();
                    return;
                };
                *left = rest;
                at += fatbin::ALIGNMENT;
                continue;
            };
            found.begin(at);
            at += fatbin::CONTAINER as u64;
            let last = at + size;
            while at + fatbin::ENTRY as u64 <= last {
                let entry = fatbin::Entry::of(near.get(self, at, fatbin::ENTRY));
                let (Some(entry), Some(rest)) = (entry, left.checked_sub(1)) else {
                    found.lose();
                    break;
                };
                *left = rest;
                found.entry(&entry);
                at = at.saturating_add(entry.length).min(last);
            }
            found.end(last);
            at = last.checked_next_multiple_of(fatbin::ALIGNMENT).unwrap_or(u64::MAX);
        }
    }

    /// Looks for a runtime: first for its text, and only where that is for its code.
    fn runtime(
        &mut self,
        machine: Machine,
        sections: &[(Section, Vec<u8>)],
        segments: &Segments,
        told: &mut Binary,
    ) -> cudart::Found {
        let mut found = cudart::Found::default();
        let mut left = MOST_CODE;
        for (section, _) in sections.iter().filter(|(_, name)| name.starts_with(TEXTS)) {
            let whole = self.blocks(&section.place, cudart::TEXT.len(), &mut left, &mut |bytes, _, _| {
                found.text(bytes);
                !found.has_text()
            });
            if !whole {
                told.lose("its texts");
            }
        }
        if found.has_text() {
            for place in &segments.code {
                let whole = self.blocks(place, cudart::REACH, &mut left, &mut |bytes, fresh, at| {
                    found.code(machine, bytes, fresh, at);
                    true
                });
                if !whole {
                    told.lose("its code");
                }
            }
        }
        found
    }

    /// Block by block, each with so many bytes behind it that what begins in it is whole: its bytes, how many of them
    /// are its own, and where it lies. Ends as soon as `look` has seen enough; `false`: it was too long.
    fn blocks(
        &mut self,
        place: &Range<u64>,
        behind: usize,
        left: &mut u64,
        look: &mut dyn FnMut(&[u8], usize, u64) -> bool,
    ) -> bool {
        let end = place.end.min(self.size);
        let mut buffer = vec![0; BLOCK + behind];
        let mut at = place.start;
        while at < end {
            let Some(rest) = left.checked_sub(BLOCK as u64) else { return false };
            *left = rest;
            let done = self.fill(at, &mut buffer);
            let own = usize::try_from(end - at).unwrap_or(BLOCK).min(BLOCK).min(done);
            if own == 0 || !look(&buffer[..done], own, at) {
                return true;
            }
            at += own as u64;
        }
        true
    }
}

/// What was read last: entries lie close together.
#[derive(Default)]
struct Near {
    at: u64,
    bytes: Vec<u8>,
}

impl Near {
    /// Bytes of a place, fewer where the file ends.
    fn get(&mut self, file: &mut File<'_>, at: u64, length: usize) -> &[u8] {
        let offset = at.checked_sub(self.at).and_then(|offset| usize::try_from(offset).ok());
        let offset = offset.filter(|offset| offset + length <= self.bytes.len()).unwrap_or_else(|| {
            self.bytes.resize(NEAR, 0);
            let done = file.fill(at, &mut self.bytes);
            self.bytes.truncate(done);
            self.at = at;
            0
        });
        &self.bytes[offset..self.bytes.len().min(offset + length)]
    }
}
