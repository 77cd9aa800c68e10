//! Databases of packages, of which a few lines are kept: a large image's has several megabytes, in each layer that
//! installs something.

use std::io::Read;

use crate::knowledge::frameworks::is_of_interest;

pub(super) use rpm::UNREAD;

mod dpkg;
mod rpm;
mod sqlite;

/// Whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Database {
    /// Stanzas of `Name: value`.
    Dpkg,
    /// A database of `SQLite`, as rpm has it from 4.16 on.
    Rpm,
}

/// Reads one that goes by. What is left of it, of the packages of interest, has dpkg's form.
#[derive(Debug)]
pub(super) enum Condenser {
    /// dpkg's.
    Dpkg(dpkg::Status),
    /// rpm's.
    Rpm(sqlite::Pages),
}

impl Condenser {
    pub(super) fn new(database: Database) -> Self {
        match database {
            Database::Dpkg => Self::Dpkg(dpkg::Status::default()),
            Database::Rpm => Self::Rpm(sqlite::Pages::default()),
        }
    }

    /// The next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Dpkg(status) => status.push(bytes),
            Self::Rpm(pages) => pages.push(bytes),
        }
    }

    /// What is left of it.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Dpkg(status) => status.finish(),
            Self::Rpm(pages) => rpm::text(&pages),
        }
    }
}

/// A database that lies unpacked; the largest have some hundred megabytes.
const MOST: u64 = 1 << 30;

/// Reads one from its beginning to its end; `None`: it cannot be read.
pub(super) fn condensed(file: impl Read, database: Database) -> Option<String> {
    let mut file = file.take(MOST);
    let mut condenser = Condenser::new(database);
    let mut buffer = vec![0; 128 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Some(condenser.finish()),
            Ok(count) => condenser.push(&buffer[..count]),
            Err(_) => return None,
        }
    }
}

/// A package of interest, or the C library's.
pub(super) fn is_kept(name: &str) -> bool {
    is_of_interest(name) || is_of_libc(name)
}

/// The package of the C library, in Debian's and in Red Hat's words.
pub(super) fn is_of_libc(name: &str) -> bool {
    matches!(name, "libc6" | "glibc")
}
