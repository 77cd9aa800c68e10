//! A program or library that goes by once, from its beginning to its end.
//!
//! Its section headers come last, so that what they would tell is found by its form: machine code for GPUs by the
//! magic of its containers, of which all but the headers is skipped, a note by its vendor's name. The program headers
//! come first, and tell what is code and where the loader's table lies.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::capture::Capture;
use super::dynamic::{Asked, Dynamic, LONGEST_TEXT, text};
use super::header::{HEAD, Header, Section, Segments, architecture};
use super::strings::{LONGEST_NAME, Strings};
use super::{Binary, cudart, fatbin};
use crate::knowledge::compat::parse_note;
use crate::knowledge::little_endian::u32_at;
use crate::model::image::CompatNote;

/// What is looked at in one go.
const WINDOW: usize = 64 << 10;
/// What has to lie before a find, and behind it.
const BEFORE: usize = LONGEST_NAME;
const BEHIND: usize = LONGEST_TEXT + 64;

/// Names of sections.
const LONGEST_NAMES: u64 = 8 << 10;

/// The name of the note's vendor, and what comes before it: its length, that of the text, a type.
const VENDOR: &[u8] = b"NVIDIA Corporation\0";
const NOTE_HEADER: usize = 12;
/// The text begins where the name, rounded up, ends.
const NOTE_TEXT: usize = 32;

static FATBIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&fatbin::MAGIC));
static NOTE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(VENDOR));

/// A reader of a file that goes by. What it tells does not depend on the pieces in which the file comes.
#[derive(Debug)]
pub struct Scanner {
    size: u64,
    /// Bytes that went by.
    at: u64,
    head: Vec<u8>,
    /// `None`: it is no file that is looked into.
    header: Option<Header>,
    programs: Capture,
    segments: Option<Segments>,
    dynamic: Capture,
    /// The loader's table, and texts of it that lie behind it.
    table: Option<Dynamic>,
    texts: Vec<Capture>,
    /// Of what is loaded first, and of what is loaded with the table.
    strings: [Strings; 2],
    window: Vec<u8>,
    /// Where in the file the window begins, and how much of it was looked at.
    base: u64,
    fresh: usize,
    /// Bytes that need not be looked at.
    skip: u64,
    /// In a container: where its entries end.
    inside: Option<u64>,
    sections: Capture,
    /// What comes before the section headers: their names, as a rule.
    before: Capture,
    /// Their names where they come later.
    names: Capture,
    code: fatbin::Found,
    runtime: cudart::Found,
    compat: Option<CompatNote>,
}

impl Scanner {
    /// Of a file of so many bytes.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            at: 0,
            head: Vec::new(),
            header: None,
            programs: Capture::default(),
            segments: None,
            dynamic: Capture::default(),
            table: None,
            texts: Vec::new(),
            strings: <[Strings; 2]>::default(),
            window: Vec::new(),
            base: 0,
            fresh: 0,
            skip: 0,
            inside: None,
            sections: Capture::default(),
            before: Capture::default(),
            names: Capture::default(),
            code: fatbin::Found::default(),
            runtime: cudart::Found::default(),
            compat: None,
        }
    }

    /// The next bytes of the file.
    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.head.len() < HEAD {
            let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
            self.head.extend_from_slice(head);
            if self.head.len() < HEAD {
                return;
            }
            self.header = Header::of(&self.head);
            if let Some(header) = &self.header {
                self.programs = Capture::of(&header.programs);
                self.sections = Capture::of(&header.sections);
                let start = header.sections.start;
                self.before = Capture::of(&(start.saturating_sub(LONGEST_NAMES)..start));
                self.segments = header.programs.is_empty().then(Segments::default);
                self.window.reserve_exact(WINDOW);
                self.pass(&self.head.clone());
            }
            bytes = rest;
        }
        if self.header.is_some() {
            self.pass(bytes);
        }
    }

    fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = if self.skip > 0 { self.skip } else { (WINDOW - self.window.len()) as u64 };
            let count = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
            let (part, rest) = bytes.split_at(count);
            self.capture(part);
            self.at += part.len() as u64;
            if self.skip > 0 {
                self.skip -= part.len() as u64;
            } else {
                self.window.extend_from_slice(part);
                if self.window.len() >= WINDOW {
                    self.work(false);
                }
            }
            bytes = rest;
        }
    }

    /// Takes out of the passing bytes what the headers told of.
    fn capture(&mut self, bytes: &[u8]) {
        if self.segments.is_none() && self.programs.feed(self.at, bytes) {
            let segments = Segments::of(&self.programs.bytes);
            let end = self.programs.place.end;
            // what went by before this table is lost, whatever the pieces are
            let place = segments.dynamic.clone().filter(|place| place.start >= end);
            self.dynamic = place.as_ref().map(Capture::of).unwrap_or_default();
            self.segments = Some(segments);
        }
        if self.table.is_none() && self.dynamic.feed(self.at, bytes) {
            let table = Dynamic::of(&self.dynamic.bytes, self.segments.as_ref().unwrap_or(&Segments::default()));
            let end = self.dynamic.place.end;
            let behind = table.texts.iter().filter(|(_, place)| *place >= end);
            self.texts = behind.map(|(_, place)| Capture::text(*place)).collect();
            self.table = Some(table);
        }
        for text in &mut self.texts {
            text.feed(self.at, bytes);
        }
        self.before.feed(self.at, bytes);
        if self.sections.feed(self.at, bytes)
            && let Some(place) = self.place_of_names().filter(|place| place.start >= self.sections.place.end)
        {
            self.names = Capture::of(&place);
        }
        self.names.feed(self.at, bytes);
    }

    /// Looks at what has come together in the window; `last`: nothing comes behind it.
    fn work(&mut self, last: bool) {
        loop {
            let length = self.window.len();
            if let Some(end) = self.inside {
                let at = self.base + self.fresh as u64;
                if at.saturating_add(fatbin::ENTRY as u64) > end {
                    self.leave(end);
                } else if self.fresh.saturating_add(fatbin::ENTRY) > length {
                    if last {
                        self.code.lose();
                        self.leave(end);
                    }
                    break;
                } else if let Some(entry) = fatbin::Entry::of(&self.window[self.fresh..]) {
                    self.code.entry(&entry);
                    self.go(at.saturating_add(entry.length).min(end));
                } else {
                    self.code.lose();
                    self.leave(end);
                }
            } else {
                let limit = if last { length } else { length.saturating_sub(BEHIND) };
                if self.fresh >= limit {
                    break;
                }
                let container = self.container(self.fresh..limit);
                let limit = container.map_or(limit, |(place, _)| place);
                self.look(self.fresh..limit);
                self.fresh = limit;
                if let Some((place, size)) = container {
                    self.code.begin(self.base + place as u64);
                    self.fresh = place + fatbin::CONTAINER;
                    self.inside = Some(self.base + self.fresh as u64 + size);
                }
            }
            if self.fresh > self.window.len() {
                self.skip = (self.fresh - self.window.len()) as u64;
                self.base += self.fresh as u64;
                self.window.clear();
                self.fresh = 0;
                return;
            }
        }
        let done = self.fresh.saturating_sub(BEFORE);
        self.window.drain(..done);
        self.base += done as u64;
        self.fresh -= done;
    }

    /// To a place in the file.
    fn go(&mut self, place: u64) {
        self.fresh = usize::try_from(place.saturating_sub(self.base)).unwrap_or(usize::MAX);
    }

    /// Behind a container.
    fn leave(&mut self, end: u64) {
        self.code.end(end);
        self.inside = None;
        self.go(end);
    }

    /// The first container that begins in a part of the window, and the length of its entries.
    fn container(&self, part: Range<usize>) -> Option<(usize, u64)> {
        let start = part.start;
        let within = &self.window[start..self.window.len().min(part.end + fatbin::MAGIC.len() - 1)];
        FATBIN.find_iter(within).map(|place| start + place).find_map(|place| {
            let at = self.base + place as u64;
            let header = self.window.get(place..).filter(|_| at.is_multiple_of(fatbin::ALIGNMENT))?;
            Some((place, fatbin::container(header, self.size.checked_sub(at)?)?))
        })
    }

    /// Looks at a part of the window; what is found begins in it.
    fn look(&mut self, part: Range<usize>) {
        let at = self.base + part.start as u64;
        let end = self.base + part.end as u64;
        let behind = |length: usize| self.window.len().min(part.end + length);
        self.runtime.text(&self.window[part.start..behind(cudart::TEXT.len() - 1)]);
        if self.compat.is_none() {
            let within = &self.window[part.start..behind(VENDOR.len() - 1)];
            self.compat = NOTE.find_iter(within).find_map(|place| note(&self.window, part.start + place));
        }
        let Some(segments) = &self.segments else { return };
        if let Some(header) = &self.header {
            for code in &segments.code {
                let fresh = code.start.max(at)..code.end.min(end);
                if fresh.start < fresh.end {
                    let offset = |place: u64| usize::try_from(place - self.base).unwrap_or(usize::MAX);
                    let code = &self.window[offset(fresh.start)..behind(cudart::REACH)];
                    self.runtime.code(header.machine, code, offset(fresh.end) - offset(fresh.start), fresh.start);
                }
            }
        }
        // the loader's strings come before its table, or are taken by their place
        let table = segments.dynamic.as_ref().map_or(0, |place| place.start);
        let places = [segments.first(), segments.around(table)];
        for (place, strings) in places.into_iter().zip(&mut self.strings) {
            if place.start < end && at < place.end.min(table) && !strings.is_full() {
                strings.look(&self.window, part.clone(), self.base);
            }
        }
    }

    fn place_of_names(&self) -> Option<Range<u64>> {
        let header = self.header.as_ref()?;
        let is_whole = self.sections.bytes.len() as u64 == header.sections.end - header.sections.start;
        let sections = Section::all(&self.sections.bytes);
        sections.get(header.names).filter(|_| is_whole).map(|section| section.place.clone())
    }

    /// The sections with machine code for GPUs, by their names; where these went by before anybody knew, those that
    /// begin with a container. `None`: it cannot be told.
    fn sections_of_code(&self) -> Option<Vec<Range<u64>>> {
        let place = self.place_of_names()?;
        let names = [&self.before, &self.names].into_iter().find_map(|part| {
            let offset = |place: u64| usize::try_from(place.checked_sub(part.place.start)?).ok();
            part.bytes.get(offset(place.start)?..offset(place.end)?)
        });
        let all = Section::all(&self.sections.bytes).into_iter();
        let of_code = all.filter(|section| match names {
            Some(names) => fatbin::SECTIONS.contains(&section.name_in(names)),
            None => {
                self.code.begins_at(section.place.start.checked_next_multiple_of(fatbin::ALIGNMENT).unwrap_or(u64::MAX))
            }
        });
        Some(of_code.map(|section| section.place).collect())
    }

    /// What the file told.
    pub fn finish(mut self) -> Binary {
        let mut told = Binary { architecture: architecture(&self.head), ..Binary::default() };
        if self.header.is_none() {
            told.head = self.head;
            return told;
        }
        self.work(true);
        if let Some(end) = self.inside.take() {
            self.code.lose();
            self.code.end(end);
        }
        match self.table.take() {
            Some(table) => {
                for (what, place) in &table.texts {
                    let behind = self.texts.iter().find(|text| text.place.start == *place);
                    let text = match behind {
                        Some(behind) => text(&behind.bytes),
                        None => self.strings.iter().find_map(|strings| strings.at(*place)).map(str::to_owned),
                    };
                    told.tell(*what, text);
                }
                if table.lost {
                    told.tell(Asked::Name, None);
                }
            }
            None if self.segments.as_ref().is_none_or(|segments| segments.dynamic.is_some()) => {
                told.tell(Asked::Name, None);
            }
            None => {}
        }
        if self.at < self.size {
            told.lose("its end");
        }
        if let Some(sections) = self.sections_of_code() {
            self.code.retain(&sections);
        }
        told.head = self.head;
        told.compat = self.compat;
        told.conclude(self.code, |_| self.runtime);
        told
    }
}

/// A note whose vendor's name begins at a place.
fn note(bytes: &[u8], place: usize) -> Option<CompatNote> {
    let start = place.checked_sub(NOTE_HEADER)?;
    let length = usize::try_from(u32_at(bytes, start + 4)?).ok()?;
    let is_one = usize::try_from(u32_at(bytes, start)?).ok()? == VENDOR.len();
    let text = start + NOTE_TEXT;
    bytes.get(text..text.checked_add(length)?).filter(|_| is_one).and_then(parse_note)
}
