//! Texts that the loader's table may turn out to name: in most files its strings go by before it does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

use super::dynamic::{LONGEST_TEXT, text};

/// A file's name.
pub(super) const LONGEST_NAME: usize = 256;
/// Real files need some dozen libraries; the strings come before other data that has such texts.
const MOST: usize = 2048;
const MOST_BYTES: usize = 64 << 10;

static LIBRARY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b".so"));
static ABSOLUTE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\0/"));
static ORIGIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\0$"));

/// Texts by their place in the file.
#[derive(Debug, Default)]
pub(super) struct Strings {
    kept: BTreeMap<u64, String>,
    bytes: usize,
}

impl Strings {
    /// There is no room for more.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= MOST || self.bytes >= MOST_BYTES
    }

    /// Keeps the texts of `fresh` that look like a library's name or a search path. `at`: where `bytes` begins.
    pub(super) fn look(&mut self, bytes: &[u8], fresh: std::ops::Range<usize>, at: u64) {
        let part = &bytes[fresh.clone()];
        for place in LIBRARY.find_iter(part) {
            let place = fresh.start + place;
            let before = &bytes[place.saturating_sub(LONGEST_NAME)..place];
            if let Some(nul) = memrchr(0, before) {
                self.keep(bytes, place - before.len() + nul + 1, LONGEST_NAME, at);
            }
        }
        for finder in [&*ABSOLUTE, &*ORIGIN] {
            for place in finder.find_iter(part) {
                self.keep(bytes, fresh.start + place + 1, LONGEST_TEXT, at);
            }
        }
    }

    fn keep(&mut self, bytes: &[u8], start: usize, longest: usize, at: u64) {
        if self.is_full() {
            return;
        }
        let rest = &bytes[start..bytes.len().min(start + longest)];
        let Some(end) = memchr(0, rest).filter(|end| *end > 1) else { return };
        if !rest[..end].iter().all(|byte| (b' '..=b'~').contains(byte)) {
            return;
        }
        let Some(text) = text(&rest[..=end]) else { return };
        self.bytes += text.len();
        if let Some(other) = self.kept.insert(at + start as u64, text) {
            self.bytes -= other.len();
        }
    }

    /// The text at a place: linkers let one begin within another that ends as it does.
    pub(super) fn at(&self, place: u64) -> Option<&str> {
        let (start, text) = self.kept.range(..=place).next_back()?;
        text.get(usize::try_from(place - start).ok()?..).filter(|text| !text.is_empty())
    }
}
