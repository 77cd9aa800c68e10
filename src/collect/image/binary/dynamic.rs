//! What a file asks the dynamic loader for.

use super::Binary;
use super::header::Segments;

/// Libraries a file asks for, and directories: real ones have some dozen.
const MOST: usize = 256;
/// Bytes of the table; libtorch's has some hundred.
pub(super) const LONGEST_TABLE: u64 = 64 << 10;
/// A search path may name many directories, a library is a file's name.
pub(super) const LONGEST_TEXT: usize = 4096;

/// What a text of the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Needed,
    Name,
    Search,
}

/// The loader's table: each text with its place in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Dynamic {
    pub(super) texts: Vec<(Asked, u64)>,
    /// It has texts of which the place cannot be told.
    pub(super) lost: bool,
}

impl Dynamic {
    pub(super) fn of(table: &[u8], segments: &Segments) -> Self {
        let mut strings = None;
        let mut asked = Vec::new();
        for entry in table.chunks_exact(16) {
            let (Some(tag), Some(value)) = (u64_at(entry, 0), u64_at(entry, 8)) else { break };
            match tag {
                0 => break,
                1 => asked.push((Asked::Needed, value)),
                5 => strings = segments.place(value),
                14 => asked.push((Asked::Name, value)),
                15 | 29 => asked.push((Asked::Search, value)),
                _ => {}
            }
        }
        let lost = asked.len() > MOST;
        asked.truncate(MOST);
        let count = asked.len();
        let place = |(what, offset): (Asked, u64)| Some((what, strings?.checked_add(offset)?));
        let texts: Vec<_> = asked.into_iter().filter_map(place).collect();
        Self { lost: lost || texts.len() < count, texts }
    }
}

impl Binary {
    /// A text of the loader's table; `None`: it could not be read.
    pub(super) fn tell(&mut self, what: Asked, text: Option<String>) {
        let Some(text) = text else {
            self.lose("the names of the libraries it needs");
            return;
        };
        match what {
            Asked::Needed => self.needed.push(text),
            Asked::Name => self.name = Some(text),
            Asked::Search => self.search.extend(text.split(':').filter(|path| !path.is_empty()).map(str::to_owned)),
        }
    }
}

/// The text at the beginning of bytes: up to its NUL, without control characters.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let end = memchr::memchr(0, bytes).filter(|end| *end < LONGEST_TEXT)?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}
use crate::knowledge::little_endian::u64_at;
