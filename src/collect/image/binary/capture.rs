//! Parts of a file that goes by.

use std::ops::Range;

use super::dynamic::{LONGEST_TABLE, LONGEST_TEXT};

/// A part of the file that is taken out as it goes by.
#[derive(Debug, Default)]
pub(super) struct Capture {
    pub(super) place: Range<u64>,
    /// It ends with the first NUL.
    text: bool,
    pub(super) bytes: Vec<u8>,
}

impl Capture {
    pub(super) fn of(place: &Range<u64>) -> Self {
        let end = place.end.min(place.start.saturating_add(LONGEST_TABLE));
        Self { place: place.start..end, ..Self::default() }
    }

    pub(super) fn text(at: u64) -> Self {
        Self { place: at..at.saturating_add(LONGEST_TEXT as u64), text: true, ..Self::default() }
    }

    /// Takes what is its own out of bytes at a place; whether it is complete with them.
    pub(super) fn feed(&mut self, at: u64, bytes: &[u8]) -> bool {
        let next = self.place.start + self.bytes.len() as u64;
        if next >= self.place.end || self.text && self.bytes.last() == Some(&0) {
            return false;
        }
        let Some(from) = next.checked_sub(at).and_then(|from| usize::try_from(from).ok()) else { return false };
        let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) else { return false };
        let room = usize::try_from(self.place.end - next).unwrap_or(usize::MAX);
        let mut own = &rest[..rest.len().min(room)];
        if self.text
            && let Some(nul) = memchr::memchr(0, own)
        {
            own = &own[..=nul];
        }
        self.bytes.extend_from_slice(own);
        self.place.start + self.bytes.len() as u64 == self.place.end
    }
}
