//! Machine code for GPUs: the containers that nvcc puts into programs, of which only the headers are read.
//!
//! A container is a header and entries, each with a header of its own. Layout and flags were compared with what
//! cuobjdump 13.5.37 tells of the libraries of `CTranslate2`, ONNX Runtime 1.31.1 and torch 2.15 and of small files
//! made with nvcc 13.5.37 (2026-11).

use std::collections::{BTreeMap, BTreeSet};

use super::header::{u16_at, u32_at, u64_at};
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

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    groups: BTreeMap<(BTreeSet<Target>, BTreeSet<Target>), u32>,
    machine: BTreeSet<Target>,
    ptx: BTreeSet<Target>,
    ptx_version: Option<(u16, u16)>,
    zstd: bool,
    /// Some of it could not be read.
    pub(super) lost: bool,
}

impl Found {
    /// An entry of the container that is being read.
    pub(super) fn entry(&mut self, entry: &Entry) {
        let letter = match entry.flags & 0x30_0000 {
            0 => "",
            0x10_0000 => "a",
            _ => "f",
        };
        let target = (entry.architecture, letter);
        match entry.kind {
            1 => {
                self.ptx_version = self.ptx_version.max(Some(entry.version));
                self.ptx.insert(target);
            }
            2 => {
                self.machine.insert(target);
            }
            // intermediate code for the linker (LTO), which has run
            _ => return,
        }
        self.zstd |= entry.flags & 0x8000 != 0;
        self.lost |= self.machine.len() > MOST_ARCHITECTURES || self.ptx.len() > MOST_ARCHITECTURES;
        if self.lost {
            self.machine.clear();
            self.ptx.clear();
        }
    }

    /// The container's end.
    pub(super) fn end(&mut self) {
        let key = (std::mem::take(&mut self.machine), std::mem::take(&mut self.ptx));
        if key.0.is_empty() && key.1.is_empty() {
            return;
        }
        if self.groups.len() < MOST_GROUPS || self.groups.contains_key(&key) {
            let count = self.groups.entry(key).or_default();
            *count = count.saturating_add(1);
        } else {
            self.lost = true;
        }
    }

    /// As a fact; `None`: there was no code. Whoever knows the file names it.
    pub(super) fn into_code(self) -> Option<DeviceCode> {
        let texts = |targets: BTreeSet<Target>| {
            targets.into_iter().map(|(number, letter)| format!("{}.{}{letter}", number / 10, number % 10)).collect()
        };
        let group = |((machine, ptx), containers)| CodeGroup { machine: texts(machine), ptx: texts(ptx), containers };
        let groups: Vec<CodeGroup> = self.groups.into_iter().map(group).collect();
        (!groups.is_empty()).then_some(DeviceCode {
            source: String::new(),
            groups,
            ptx_version: self.ptx_version,
            zstd: self.zstd,
        })
    }
}
