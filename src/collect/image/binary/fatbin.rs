//! Machine code for GPUs: the containers that nvcc puts into programs, of which only the headers are read.
//!
//! A container is a header and entries, each with a header of its own. Layout and flags were compared with what
//! cuobjdump 13.5.37 tells of the libraries of `CTranslate2`, ONNX Runtime 1.31.1 and torch 2.15 and of small files
//! made with nvcc 13.5.37 (2026-11).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::knowledge::little_endian::{u16_at, u32_at, u64_at};
use crate::model::image::{CodeGroup, DeviceCode};

/// `0xBA55ED50`
pub(super) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
pub(super) const ALIGNMENT: u64 = 8;
/// A container's header, and an entry's as far as it is read.
pub(super) const CONTAINER: usize = 16;
pub(super) const ENTRY: usize = 64;
/// The architectures of a container, and different sets of them in a file: nvcc makes some twenty.
const MOST_ARCHITECTURES: usize = 64;
const MOST_GROUPS: usize = 1024;
/// Architectures in all of these sets.
const MOST_TARGETS: usize = 4096;
/// Places with containers: a section is one, and what is among data some thousands (cuSPARSELt 0.6: 2,494).
const MOST_RUNS: usize = 1 << 16;

/// Sections of machine code for GPUs, that of relocatable code as well.
pub(super) const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];

/// The length of a container's entries, by its header; `None`: it is none. `rest`: bytes from it to the end of what
/// it lies in.
pub(super) fn container(header: &[u8], rest: u64) -> Option<u64> {
    let is_one = header.starts_with(&MAGIC) && u16_at(header, 4)? == 1 && usize::from(u16_at(header, 6)?) == CONTAINER;
    let size = u64_at(header, 8)?;
    (is_one && size >= ENTRY as u64 && size <= rest.checked_sub(CONTAINER as u64)?).then_some(size)
}

/// An entry of a container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    kind: u16,
    /// `90`
    architecture: u32,
    flags: u64,
    version: (u16, u16),
    /// Bytes from its header to the next one.
    pub(super) length: u64,
}

impl Entry {
    pub(super) fn of(header: &[u8]) -> Option<Self> {
        let own = u64::from(u32_at(header, 4)?);
        // newer toolkits write longer headers than 64 bytes
        let is_header = (ENTRY as u64..=4096).contains(&own);
        let length = own.checked_add(u64_at(header, 8)?)?;
        is_header.then_some(Self {
            kind: u16_at(header, 0)?,
            architecture: u32_at(header, 28)?,
            flags: u64_at(header, 40)?,
            version: (u16_at(header, 26)?, u16_at(header, 24)?),
            length,
        })
    }
}

/// Architecture and letter, so that they sort by number.
type Target = (u32, &'static str);

/// The architectures of a container: of its machine code, and of its PTX.
type Group = (BTreeSet<Target>, BTreeSet<Target>);

/// Containers that follow each other.
#[derive(Debug, Default)]
struct Run {
    start: u64,
    end: u64,
    /// Which of the file's groups, and how many containers.
    groups: Vec<(usize, u32)>,
    ptx_version: Option<(u16, u16)>,
    zstd: bool,
    /// Some of it could not be read.
    lost: bool,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    runs: Vec<Run>,
    /// Each with its number.
    groups: BTreeMap<Group, usize>,
    targets: usize,
    /// Of the container that is being read.
    machine: BTreeSet<Target>,
    ptx: BTreeSet<Target>,
    /// From here on there were more places with containers than are kept.
    full_at: Option<u64>,
    /// Some of a section could not be read.
    lost: bool,
}

impl Found {
    /// A container whose header is at a place.
    pub(super) fn begin(&mut self, at: u64) {
        let follows = self.runs.last().is_some_and(|run| at.abs_diff(run.end) < ALIGNMENT);
        if !follows && self.runs.len() < MOST_RUNS {
            self.runs.push(Run { start: at, ..Run::default() });
        } else if !follows {
            self.full_at.get_or_insert(at);
        }
    }

    /// The place of the container that is being read; `None`: it is not kept.
    fn run(&mut self) -> Option<&mut Run> {
        if self.full_at.is_some() { None } else { self.runs.last_mut() }
    }

    /// Some of the container that is being read cannot be read.
    pub(super) fn lose(&mut self) {
        if let Some(run) = self.run() {
            run.lost = true;
        }
    }

    /// Some of a section cannot be read, wherever in it.
    pub(super) fn lose_section(&mut self) {
        self.lost = true;
    }

    /// An entry of it.
    pub(super) fn entry(&mut self, entry: &Entry) {
        let letter = match entry.flags & 0x30_0000 {
            0 => "",
            0x10_0000 => "a",
            _ => "f",
        };
        let target = (entry.architecture, letter);
        let Some(run) = self.runs.last_mut().filter(|_| self.full_at.is_none()) else { return };
        match entry.kind {
            1 => {
                run.ptx_version = run.ptx_version.max(Some(entry.version));
                self.ptx.insert(target);
            }
            2 => {
                self.machine.insert(target);
            }
            // intermediate code for the linker (LTO), which has run
            _ => return,
        }
        run.zstd |= entry.flags & 0x8000 != 0;
        if self.machine.len() > MOST_ARCHITECTURES || self.ptx.len() > MOST_ARCHITECTURES {
            run.lost = true;
            self.machine.clear();
            self.ptx.clear();
        }
    }

    /// Its end.
    pub(super) fn end(&mut self, at: u64) {
        let key = (std::mem::take(&mut self.machine), std::mem::take(&mut self.ptx));
        let Some(run) = self.runs.last_mut().filter(|_| self.full_at.is_none()) else { return };
        run.end = at;
        if key.0.is_empty() && key.1.is_empty() {
            return;
        }
        let next = self.groups.len();
        if !self.groups.contains_key(&key) {
            if next >= MOST_GROUPS || self.targets >= MOST_TARGETS {
                run.lost = true;
                return;
            }
            self.targets += key.0.len() + key.1.len();
        }
        let number = *self.groups.entry(key).or_insert(next);
        match run.groups.iter_mut().find(|(known, _)| *known == number) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => run.groups.push((number, 1)),
        }
    }

    /// Containers begin at a place.
    pub(super) fn begins_at(&self, at: u64) -> bool {
        self.runs.iter().any(|run| run.start == at)
    }

    /// Leaves out what lies outside of the sections of such code: libraries keep containers among their data as well,
    /// which they load when they see fit.
    pub(super) fn retain(&mut self, sections: &[Range<u64>]) {
        self.runs.retain(|run| sections.iter().any(|section| section.contains(&run.start)));
        self.full_at = self.full_at.filter(|at| sections.iter().any(|section| *at < section.end));
    }

    /// Not all of the code could be read.
    pub(super) fn is_lost(&self) -> bool {
        self.lost || self.full_at.is_some() || self.runs.iter().any(|run| run.lost)
    }

    /// As a fact; `None`: there was no code. Whoever knows the file names it.
    pub(super) fn into_code(self) -> Option<DeviceCode> {
        let mut counts = vec![0_u32; self.groups.len()];
        let (mut ptx_version, mut zstd) = (None, false);
        for run in &self.runs {
            ptx_version = ptx_version.max(run.ptx_version);
            zstd |= run.zstd;
            for (number, containers) in &run.groups {
                if let Some(count) = counts.get_mut(*number) {
                    *count = count.saturating_add(*containers);
                }
            }
        }
        let texts = |targets: BTreeSet<Target>| {
            targets.into_iter().map(|(number, letter)| format!("{}.{}{letter}", number / 10, number % 10)).collect()
        };
        let group = |((machine, ptx), number): (Group, usize)| {
            let containers = counts.get(number).copied().filter(|count| *count > 0)?;
            Some(CodeGroup { machine: texts(machine), ptx: texts(ptx), containers })
        };
        let groups: Vec<CodeGroup> = self.groups.into_iter().filter_map(group).collect();
        (!groups.is_empty()).then_some(DeviceCode { source: String::new(), groups, ptx_version, zstd })
    }
}
