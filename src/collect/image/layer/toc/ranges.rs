//! Which parts of a blob are read, and reading them: neighbours are asked for together.

use std::io::{self, BufRead, BufReader, Read};

use super::{OpenPart, Place, odd};
use crate::collect::image::layer::tar::pass;

/// More parts than this are not asked for.
const MOST_RANGES: usize = 4096;

/// Parts that are wanted, as a table's entries come.
pub(super) struct Plan {
    /// Where the layer's files end.
    end: u64,
    request: u64,
    ranges: Vec<(u64, u64)>,
    /// The last file is wanted, and so are its further parts.
    wanted: bool,
    /// Where it ends is where the next one begins.
    open: bool,
    last: u64,
    unpacked: u64,
}

/// What is to be read.
pub(super) struct Planned {
    /// From where to where, in order.
    pub(super) ranges: Vec<(u64, u64)>,
    /// In bytes, what asking costs counted as such.
    pub(super) cost: u64,
    /// Bytes that come of it.
    pub(super) unpacked: u64,
}

impl Plan {
    pub(super) fn new(end: u64, request: u64) -> Self {
        Self { end, request, ranges: Vec::new(), wanted: false, open: false, last: 0, unpacked: 0 }
    }

    /// The next file or part of one, as they stand one behind the other in the archive.
    pub(super) fn add(&mut self, file: Place, wanted: bool) -> io::Result<()> {
        // what has no bytes is nowhere
        if file.size == 0 && !file.is_part || file.offset == 0 && !wanted {
            return Ok(());
        }
        let end = file.end.unwrap_or(file.offset);
        if file.offset < self.last.max(1) || end < file.offset || end > self.end {
            return Err(odd("files are not one behind the other"));
        }
        self.last = file.offset;
        if file.is_part {
            if self.wanted {
                self.extend(end);
            }
            return Ok(());
        }
        if std::mem::take(&mut self.open) {
            self.extend(file.offset);
        }
        self.wanted = wanted;
        if wanted {
            self.unpacked = self.unpacked.saturating_add(file.size);
            self.open = file.end.is_none();
            let near = self.ranges.last().is_some_and(|(_, last)| file.offset.saturating_sub(*last) <= self.request);
            if near {
                self.extend(end);
            } else if self.ranges.len() < MOST_RANGES {
                self.ranges.push((file.offset, end));
            } else {
                return Err(odd("its files are too far apart"));
            }
        }
        Ok(())
    }

    fn extend(&mut self, to: u64) {
        if let Some((_, end)) = self.ranges.last_mut() {
            *end = to.max(*end);
        }
    }

    pub(super) fn done(mut self) -> Planned {
        if self.open {
            self.extend(self.end);
        }
        let bytes = |(start, end): &(u64, u64)| (end - start).saturating_add(self.request);
        let cost = self.ranges.iter().map(bytes).fold(0, u64::saturating_add);
        Planned { ranges: self.ranges, cost, unpacked: self.unpacked }
    }
}

/// Reads a plan's parts, one after the other.
pub(super) struct Ranges<'a> {
    plan: std::slice::Iter<'a, (u64, u64)>,
    source: &'a OpenPart,
    current: BufReader<Box<dyn Read + Send>>,
    at: u64,
    end: u64,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(plan: &'a [(u64, u64)], source: &'a OpenPart) -> Self {
        Self { plan: plan.iter(), source, current: BufReader::new(Box::new(io::empty())), at: 0, end: 0 }
    }

    /// Goes on to a place of the plan.
    pub(super) fn seek(&mut self, to: u64) -> io::Result<()> {
        while to >= self.end {
            let (start, end) = *self.plan.next().ok_or_else(|| odd("a file is elsewhere"))?;
            (self.at, self.end) = (start, end);
            // those before it are of files that are passed by
            if to < end {
                self.current = BufReader::new(Box::new((self.source)(start, end - start)?.take(end - start)));
            }
        }
        let skipped = to.checked_sub(self.at).ok_or_else(|| odd("files are packed together"))?;
        pass(self, skipped)
    }
}

impl BufRead for Ranges<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.current.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount as u64;
        self.current.consume(amount);
    }
}

impl Read for Ranges<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let now = there.len().min(buffer.len());
        buffer[..now].copy_from_slice(&there[..now]);
        self.consume(now);
        Ok(now)
    }
}
