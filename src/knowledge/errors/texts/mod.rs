//! The texts, a file for each kind of program that prints them.
//!
//! The wordings are those of public reports that were collected for this project until 2026-11, of the sources that
//! a file names, and of general knowledge: a wording that no program prints any more does no harm.

use std::collections::BTreeMap;

use super::{Code, Text};
use crate::knowledge::cuda::codes;

mod benign;
mod cdi;
mod cli;
mod cli_mounts;
mod cuda;
mod cuda_at_work;
mod device;
mod engines;
mod entrypoints;
mod frameworks;
mod images;
mod kernel;
mod nvml;
mod own;
mod platforms;
mod python;
mod words;

/// The ways in which loaders and programs say that a library is not there.
const ABSENT: &[&str] = &[
    "cannot open",
    "cannot load",
    "cannot find",
    "cannot be found",
    "cannot be loaded",
    "can't load",
    "can't find",
    "could not load",
    "could not open",
    "could not find",
    "could not be found",
    "could not be loaded",
    "couldn't load",
    "couldn't find",
    "unable to load",
    "unable to find",
    "unable to open",
    "unable to dynamically load",
    "failed to load",
    "failed to open",
    "failed to find",
    "failed loading",
    "not found",
    "dlopen",
    "no such file",
    "\u{627e}\u{4e0d}\u{5230}",
    "\u{65e0}\u{6cd5}\u{52a0}\u{8f7d}",
];

/// All of them. Where two fit equally well, the former counts.
pub const FILES: &[&[Text]] = &[
    own::TEXTS,
    cli::TEXTS,
    cli_mounts::TEXTS,
    device::TEXTS,
    engines::TEXTS,
    cdi::TEXTS,
    platforms::TEXTS,
    kernel::TEXTS,
    nvml::TEXTS,
    images::TEXTS,
    entrypoints::TEXTS,
    frameworks::TEXTS,
    python::TEXTS,
    cuda::TEXTS,
    cuda_at_work::TEXTS,
    words::TEXTS,
    benign::TEXTS,
];

/// A line of the kernel's log with an Xid number; its causes are the number's.
pub const XID: Text = Text { name: "Xid", tells: &[&["nvrm: xid"]], ..Text::PLAIN };

/// All texts, in the order of [`FILES`].
pub fn all() -> impl Iterator<Item = &'static Text> {
    FILES.iter().flat_map(|file| file.iter())
}

/// The text of each number, by its place among [`all`]. A number of CUDA that none has is the program's business.
pub(super) fn codes() -> BTreeMap<Code, usize> {
    let program = all().position(|text| text.name == cuda_at_work::PROGRAM);
    let any = codes::ROWS.iter().map(|row| Code::Cuda(row.number)).zip(program.into_iter().cycle());
    let own = all().enumerate().flat_map(|(place, text)| text.codes.iter().map(move |code| (*code, place)));
    // The former of two texts counts: it is put in last.
    let mut own: Vec<_> = own.collect();
    own.reverse();
    any.chain(own).collect()
}
