//! A database of `SQLite` that goes by page after page, in no order of use.
//!
//! Kept is what the rows of one table with large values need: the numbers of the pages of its tree, the beginnings of
//! large rows, and of the pages that rows are continued on those that a row is known to need or that look like it.
//! Which of them are in use is told by the tree, at the end: others may be left from rows that were deleted.
//! Format: sqlite.org, "Database File Format" (read 2026-11).

use std::collections::{BTreeMap, BTreeSet};

const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER: usize = 100;
/// rpm's has four kilobytes a page.
const MOST_PAGE: usize = 64 << 10;
/// What is kept in all: some four kilobytes of each of a thousand packages.
const MOST_KEPT: usize = 12 << 20;
/// A row that is smaller tells no package.
const LARGE: usize = 512;
/// Trees of use are a few pages deep.
const DEEPEST: usize = 12;

/// What is kept.
#[derive(Debug, Default)]
pub(in crate::collect::image) struct Pages {
    page: Vec<u8>,
    /// `None`: the header has not gone by.
    size: Option<usize>,
    /// Bytes of a page that hold something.
    usable: usize,
    number: u32,
    /// How many pages there are to be.
    count: u32,
    inner: BTreeMap<u32, Vec<u32>>,
    rows: BTreeMap<u32, Vec<Row>>,
    continued: BTreeMap<u32, Vec<u8>>,
    wanted: BTreeSet<u32>,
    kept: usize,
    /// It is no database of this kind, or too large a one.
    lost: bool,
}

/// A row, or the beginning of one.
#[derive(Debug)]
struct Row {
    bytes: Vec<u8>,
    length: usize,
    /// The page that it is continued on; zero: none.
    next: u32,
}

impl Pages {
    /// The next bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.lost {
            let wanted = self.size.unwrap_or(HEADER) - self.page.len();
            let (part, rest) = bytes.split_at(bytes.len().min(wanted));
            self.page.extend_from_slice(part);
            bytes = rest;
            if self.page.len() < self.size.unwrap_or(HEADER) {
                continue;
            }
            if self.size.is_none() {
                self.header();
            } else {
                self.number = self.number.saturating_add(1);
                let page = std::mem::take(&mut self.page);
                self.take(&page);
                self.page = page;
                self.page.clear();
                self.lost |= self.kept > MOST_KEPT;
            }
        }
    }

    fn header(&mut self) {
        let size = match u16_at(&self.page, 16) {
            Some(1) => MOST_PAGE,
            Some(size) => usize::from(size),
            None => 0,
        };
        self.usable = size.saturating_sub(self.page.get(20).map_or(0, |reserved| usize::from(*reserved)));
        self.lost = !self.page.starts_with(MAGIC) || !size.is_power_of_two() || self.usable < 480;
        self.count = u32_at(&self.page, 28).unwrap_or(0);
        self.size = Some(size.max(HEADER));
    }

    fn take(&mut self, page: &[u8]) {
        let start = if self.number == 1 { HEADER } else { 0 };
        match page.get(start) {
            Some(5) => {
                let last = u32_at(page, start + 8);
                let cells = self.cells(page, start, 12).filter_map(|at| u32_at(page, at));
                let children: Vec<u32> = cells.chain(last).collect();
                self.kept += children.len() * 4;
                self.inner.insert(self.number, children);
            }
            Some(13) => {
                let cells: Vec<usize> = self.cells(page, start, 8).collect();
                let rows: Vec<Row> = cells.into_iter().filter_map(|at| self.row(page, at)).collect();
                self.wanted.extend(rows.iter().map(|row| row.next).filter(|next| *next > self.number));
                self.kept += rows.iter().map(|row| row.bytes.len() + 64).sum::<usize>();
                if !rows.is_empty() {
                    self.rows.insert(self.number, rows);
                }
            }
            // the number of the page behind it comes first, which is no large one
            Some(0)
                if self.number > 1 && (self.wanted.remove(&self.number) || super::rpm::may_continue(&page[4..])) =>
            {
                self.kept += page.len();
                self.continued.insert(self.number, page[..self.usable.min(page.len())].to_vec());
            }
            _ => {}
        }
    }

    /// Where the cells of a page of a tree begin.
    fn cells<'a>(&self, page: &'a [u8], start: usize, header: usize) -> impl Iterator<Item = usize> + use<'a> {
        let count = usize::from(u16_at(page, start + 3).unwrap_or(0));
        let most = self.usable / 2;
        (0..count.min(most)).filter_map(move |n| u16_at(page, start + header + n * 2).map(usize::from))
    }

    fn row(&self, page: &[u8], at: usize) -> Option<Row> {
        let (length, at) = number(page, at)?;
        let (_, at) = number(page, at)?;
        let length = usize::try_from(length).ok()?;
        let most = self.usable - 35;
        let least = (self.usable - 12) * 32 / 255 - 23;
        let own = match length.checked_sub(least) {
            Some(more) if length > most => {
                Some(least + more % (self.usable - 4)).filter(|own| *own <= most).unwrap_or(least)
            }
            _ => length,
        };
        let bytes = page.get(at..at.checked_add(own)?)?;
        // the table of tables is small, and tells where the others are
        let is_kept = length >= LARGE || memchr::memmem::find(bytes, super::rpm::TABLE.as_bytes()).is_some();
        let next = if own < length { u32_at(page, at + own)? } else { 0 };
        is_kept.then(|| Row { bytes: bytes.to_vec(), length, next })
    }

    /// All of it went by.
    pub(super) fn is_whole(&self) -> bool {
        !self.lost && self.number >= self.count
    }

    /// The pages with rows of a tree.
    fn leaves(&self, root: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut level = vec![root];
        for _ in 0..DEEPEST {
            let mut next = Vec::new();
            for page in level {
                match self.inner.get(&page) {
                    Some(children) => next.extend(children.iter().copied()),
                    None => {
                        found.insert(page);
                    }
                }
            }
            if next.is_empty() || next.len() > 1 << 20 {
                break;
            }
            level = next;
        }
        found
    }

    /// The rows of a tree, each as far as it was kept, with its whole length.
    pub(super) fn rows(&self, root: u32) -> impl Iterator<Item = (Vec<u8>, usize)> {
        let rows = self.leaves(root).into_iter().filter_map(|page| self.rows.get(&page)).flatten();
        rows.map(|row| {
            let mut bytes = row.bytes.clone();
            let mut next = row.next;
            while bytes.len() < row.length.min(MOST_PAGE)
                && let Some(page) = self.continued.get(&next)
            {
                let rest = &page[4..];
                bytes.extend_from_slice(&rest[..rest.len().min(row.length - bytes.len())]);
                next = u32_at(page, 0).unwrap_or(0);
            }
            (bytes, row.length)
        })
    }
}

/// The columns of a row: the kind of each, and where it lies.
pub(super) fn columns(row: &[u8]) -> Option<Vec<(u64, std::ops::Range<usize>)>> {
    let (end, mut at) = number(row, 0)?;
    let end = usize::try_from(end).ok().filter(|end| *end <= row.len())?;
    let mut value = end;
    let mut columns = Vec::new();
    while at < end {
        let (kind, next) = number(row, at)?;
        at = next;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            _ => kind.checked_sub(12)? / 2,
        };
        let after = value.checked_add(usize::try_from(length).ok()?)?;
        columns.push((kind, value..after));
        value = after;
    }
    Some(columns)
}

/// A number of one to nine bytes, and where it ends.
fn number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for n in 0..9 {
        let byte = *bytes.get(at.checked_add(n)?)?;
        if n == 8 {
            return Some((value << 8 | u64::from(byte), at + 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + n + 1));
        }
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_be_bytes)
}
