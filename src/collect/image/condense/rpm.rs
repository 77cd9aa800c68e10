//! rpm's packages: a table with the header of each, of which name, version and release lie at the beginning.
//!
//! A header: how many entries it has and how many bytes of values, the entries (tag, type, place, count, four bytes
//! each), the values (rpm.org, "RPM v4 package format", read 2026-11; databases of rpm 4.18).

use super::is_kept;
use super::sqlite::{Pages, columns, u32_at};

/// The table.
pub(super) const TABLE: &str = "Packages";
const NAME: u32 = 1000;
const VERSION: u32 = 1001;
const RELEASE: u32 = 1002;
/// Entries of a header: a package has some seventy.
const MOST_ENTRIES: usize = 1024;
const LONGEST: usize = 256;

/// The line that tells that the list is not whole.
pub(in crate::collect::image) const UNREAD: &str = "Unread";

/// A page that a row is continued on can hold its name: it begins within a header's entries.
pub(super) fn may_continue(page: &[u8]) -> bool {
    let is_entry = |at: usize| {
        page.get(at..at + 16).is_some_and(|entry| {
            entry[..2] == [0, 0] && entry[4..7] == [0, 0, 0] && (1..=9).contains(&entry[7]) && entry[8] == 0
        })
    };
    (0..16).any(|at| is_entry(at) && (is_entry(at + 16) || is_entry(at + 32)))
}

/// The packages of interest, in dpkg's form.
pub(super) fn text(pages: &Pages) -> String {
    let mut text = String::new();
    let mut lost = !pages.is_whole();
    match root(pages) {
        Some(root) => {
            for (row, _) in pages.rows(root) {
                match package(&row) {
                    Some((name, version)) if is_kept(&name) => {
                        text.extend(["Package: ", &name, "\nVersion: ", &version, "\n\n"]);
                    }
                    Some(_) => {}
                    None => lost = true,
                }
            }
        }
        None => lost = true,
    }
    if lost {
        text.extend([UNREAD, ": a part of it\n\n"]);
    }
    text
}

/// The first page of the table's tree, which the table of tables on the first page tells.
fn root(pages: &Pages) -> Option<u32> {
    pages.rows(1).find_map(|(row, _)| {
        let columns = columns(&row)?;
        let text = |n: usize| row.get(columns.get(n)?.1.clone());
        let is_it = text(0) == Some(b"table".as_slice()) && text(1) == Some(TABLE.as_bytes());
        let (kind, place) = columns.get(3)?.clone();
        if !is_it || !(1..=4).contains(&kind) {
            return None;
        }
        Some(row.get(place)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    })
}

/// Name and version of a row's package.
fn package(row: &[u8]) -> Option<(String, String)> {
    let (kind, place) = columns(row)?.get(1)?.clone();
    let header = row.get(place.start..).filter(|_| kind >= 12)?;
    let count = usize::try_from(u32_at(header, 0)?).ok().filter(|count| *count <= MOST_ENTRIES)?;
    let values = 8 + count * 16;
    let value = |tag: u32| {
        let entry = (0..count).map(|n| 8 + n * 16).find(|at| u32_at(header, *at) == Some(tag))?;
        let place = values.checked_add(usize::try_from(u32_at(header, entry + 8)?).ok()?)?;
        let bytes = header.get(place..header.len().min(place + LONGEST))?;
        let text = std::str::from_utf8(&bytes[..memchr::memchr(0, bytes)?]).ok()?;
        text.chars().all(|c| c.is_ascii_graphic()).then_some(text)
    };
    let name = value(NAME)?.to_owned();
    if !is_kept(&name) {
        return Some((name, String::new()));
    }
    Some((name, format!("{}-{}", value(VERSION)?, value(RELEASE)?)))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::super::{Condenser, Database};

    /// Made with rpm 4.18: eight packages of sixty files each, of which libnccl and pkg1 were removed again; the
    /// tables beside `Packages` were dropped.
    fn database() -> Vec<u8> {
        let mut bytes = Vec::new();
        let packed: &[u8] = include_bytes!("fixtures/rpmdb.sqlite.gz");
        flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn of(bytes: &[u8], length: usize) -> String {
        let mut condenser = Condenser::new(Database::Rpm);
        bytes.chunks(length).for_each(|piece| condenser.push(piece));
        condenser.finish()
    }

    #[test]
    fn what_is_installed_is_told_and_what_was_removed_is_not() {
        let expected = "Package: cuda-cudart-12-8\nVersion: 12.8.90-1\n\n\
            Package: glibc\nVersion: 2.34-1\n\n\
            Package: libcublas-12-8\nVersion: 12.8.4.1-1\n\n\
            Package: libcudnn9-cuda-12\nVersion: 9.10.2.21-1\n\n\
            Package: libnvinfer10\nVersion: 10.9.0.34-1\n\n";
        let bytes = database();
        let name = b"libnccl\0";
        assert!(memchr::memmem::find(&bytes, name).is_some(), "what is left of it lies in there");
        for length in [usize::MAX, 4096, 1000, 7] {
            let mut told: Vec<String> = of(&bytes, length).split_inclusive("\n\n").map(str::to_owned).collect();
            told.sort();
            assert_eq!(told.concat(), expected, "{length}");
        }
    }

    #[test]
    fn what_is_none_or_cut_off_says_so() {
        for bytes in [&b""[..], b"SQLite format 3\0", &[0; 10_000], &database()[..20_000]] {
            assert!(of(bytes, 4096).ends_with("Unread: a part of it\n\n"));
        }
    }

    proptest! {
        #[test]
        fn damaged_ones_are_read_to_an_end(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
            early in proptest::collection::vec((0usize..5000, any::<u8>()), 0..10)) {
            let mut bytes = database();
            for (place, value) in changes {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            for (place, value) in early {
                bytes[place] = value;
            }
            let told = of(&bytes, 4096);
            prop_assert!(told.len() < 1 << 20);
        }
    }
}
