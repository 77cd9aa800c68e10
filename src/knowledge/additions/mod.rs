//! What an administrator adds to the tables, as the text of a file:
//!
//! ```toml
//! [[toolkit]]                 # a release of the CUDA toolkit
//! cuda = "14.0.0"
//! driver = "650.41.03"
//!
//! [[branch]]                  # a branch of the driver, and the CUDA it offers
//! number = 650
//! cuda = "14.0"
//!
//! [[major]]                   # a major version of CUDA, and the first driver its runtimes start on
//! number = 14
//! driver = "650.41.03"
//!
//! [[compat]]                  # a package for forward compatibility: its driver, the branches it works with
//! cuda = "14.0.0"
//! driver = "650.41.03"
//! branches = [580, 610, 620]
//!
//! [[generation]]              # of GPUs, with the branches of the driver that run it
//! name = "Next"
//! capabilities = ["14.0", "14.1"]
//! first_branch = 650          # may be left out, as last_branch
//! modules = "open"            # or "proprietary", "either"
//!
//! [[gpu]]                     # by its PCI device id, or a range of them, or by its name
//! pci = "0x4000-0x40ff"
//! name = "X200"               # as the driver says it, as far as it means all of them
//! compute_capability = "14.0"
//!
//! [[target]]                  # what a release of the toolkit, and those up to the next row's, compile for
//! cuda = "14.0"
//! capabilities = ["8.0", "9.0", "14.0"]
//!
//! [[ptx]]                     # the PTX that it writes
//! cuda = "14.0"
//! isa = "10.0"
//! ```
//!
//! A row with the key of one that is there replaces it; of a GPU's ids and names the last row that has
//! them counts. The brand of a GPU, by which forward compatibility goes, follows from its name and is no table here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::model::Release;
use crate::model::knowledge::Knowledge;

mod cuda;
mod gpus;
#[cfg(test)]
mod tests;

/// No table grows beyond that: the hook reads them before a container starts.
const MOST: usize = 1000;

/// Reads a row and lays it over its table.
type Lay = fn(&mut Knowledge, toml::Value) -> Laid;

/// The keys of a row that nobody knows, or why it does not count.
type Laid = Result<BTreeMap<String, toml::Value>, String>;

const TABLES: [(&str, Lay); 8] = [
    ("toolkit", cuda::toolkit),
    ("branch", cuda::branch),
    ("major", cuda::major),
    ("compat", cuda::compat),
    ("generation", gpus::generation),
    ("gpu", gpus::gpu),
    ("target", gpus::target),
    ("ptx", gpus::ptx),
];

/// Lays the rows of a file over the tables. What is odd is said, one line each, and the rest counts; a row that
/// breaks a table's order (a newer branch with an older CUDA) does not. A text that is not TOML does not count at
/// all.
pub fn lay_over(knowledge: &mut Knowledge, text: &str) -> Vec<String> {
    let file: toml::Table = match toml::from_str(text) {
        Ok(file) => file,
        Err(error) => return vec![format!("the file does not count: {}", error.message().replace('\n', " "))],
    };
    let mut odd = Vec::new();
    for (key, value) in file {
        let Some((_, lay)) = TABLES.iter().find(|(name, _)| *name == key) else {
            odd.push(format!("{key}: no such table"));
            continue;
        };
        let toml::Value::Array(rows) = value else {
            odd.push(format!("{key}: a row is written [[{key}]]"));
            continue;
        };
        for (place, row) in rows.into_iter().enumerate() {
            let name = format!("[[{key}]] {}", place + 1);
            match lay(knowledge, row) {
                Ok(rest) => odd.extend(rest.keys().map(|unknown| format!("{name}: {unknown}: no such key"))),
                Err(reason) => odd.push(format!("{name} does not count: {reason}")),
            }
        }
    }
    odd
}

fn read<T: DeserializeOwned>(row: toml::Value) -> Result<T, String> {
    row.try_into().map_err(|error: toml::de::Error| error.message().replace('\n', " "))
}

/// Puts a row where its key belongs, in place of one with the same key, if its neighbours' values rise by way of
/// its own: `rises(older, newer)`.
fn lay<T: Clone, K: Ord>(
    table: &mut Cow<'static, [T]>,
    row: T,
    key: impl Fn(&T) -> K,
    rises: impl Fn(&T, &T) -> bool,
    say: impl Fn(&T) -> String,
) -> Result<(), String> {
    let at = table.partition_point(|other| key(other) < key(&row));
    let replaces = table.get(at).is_some_and(|other| key(other) == key(&row));
    let before = at.checked_sub(1).and_then(|at| table.get(at)).filter(|other| !rises(other, &row));
    let after = table.get(at + usize::from(replaces)).filter(|other| !rises(&row, other));
    if let Some(other) = before.or(after) {
        return Err(format!("{} is out of order beside {}", say(&row), say(other)));
    }
    if !replaces {
        has_room(table, 1)?;
    }
    let rows = table.to_mut();
    if replaces {
        rows[at] = row;
    } else {
        rows.insert(at, row);
    }
    Ok(())
}

fn has_room<T>(table: &[T], more: usize) -> Result<(), String> {
    if table.len() + more <= MOST { Ok(()) } else { Err(format!("the table has {} rows", table.len())) }
}

fn number(text: &str) -> Option<Release> {
    text.parse().ok()
}

/// Major and minor.
fn pair(release: &Release) -> (u32, u32) {
    (release.number(0), release.number(1))
}
