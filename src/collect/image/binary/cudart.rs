//! The CUDA runtime by its code, wherever it is linked in.
//!
//! No text of it tells its release. Two of its functions store the number (`12080`) through a pointer:
//! `mov dword [rdi], imm32` on `x86_64`, `mov`, `str` and `ret` on arm64. Seen exactly twice with one value in all 33
//! libraries from 11.7.99 to 13.5.37 and in what links them statically; by chance it occurs once, so that the text of
//! its first error has to be there as well (2026-11).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::header::Machine;
use crate::knowledge::little_endian::u32_at;
use crate::model::{CudaVersion, Release};

/// A text that every runtime has.
pub(super) const TEXT: &[u8] = b"CUDA driver version is insufficient for CUDA runtime version";
/// Bytes from the first of a place in the code to its last.
pub(super) const REACH: usize = 16;
/// Numbers that look like a release's: there are some sixty.
const MOST: usize = 1024;

static STORE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\xc7\x07"));
static MESSAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TEXT));

/// What of a runtime was found in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    message: bool,
    numbers: BTreeMap<u32, u32>,
}

impl Found {
    /// Looks for the text.
    pub(super) fn text(&mut self, bytes: &[u8]) {
        self.message = self.message || MESSAGE.find(bytes).is_some();
    }

    /// It has the text.
    pub(super) fn has_text(&self) -> bool {
        self.message
    }

    /// Looks for places in the code that begin in the first `fresh` bytes. `at`: where in the file the bytes begin.
    pub(super) fn code(&mut self, machine: Machine, bytes: &[u8], fresh: usize, at: u64) {
        match machine {
            Machine::X86 => {
                let within = &bytes[..bytes.len().min(fresh + 1)];
                for place in STORE.find_iter(within) {
                    if let Some(number) = u32_at(bytes, place + 2) {
                        self.number(number);
                    }
                }
            }
            Machine::Arm => {
                // instructions are aligned
                let first = usize::try_from(at.next_multiple_of(4) - at).unwrap_or(0);
                let code = bytes.get(first..).unwrap_or_default();
                let count = fresh.saturating_sub(first).div_ceil(4);
                for (index, word) in code.as_chunks().0.iter().enumerate().take(count) {
                    if is_move(u32::from_le_bytes(*word)) {
                        self.instruction(&code[index * 4..]);
                    }
                }
            }
            Machine::Other => {}
        }
    }

    /// `mov wN, #imm`, and among the next three `str wN, [xM]` and `ret`.
    fn instruction(&mut self, code: &[u8]) {
        let Some(word) = u32_at(code, 0) else { return };
        let next: Vec<u32> = (1..4).filter_map(|n| u32_at(code, n * 4)).collect();
        let register = word & 31;
        let stores = next.iter().any(|word| word & 0xffff_fc1f == 0xb900_0000 | register);
        if stores && next.contains(&0xd65f_03c0) {
            self.number(word >> 5 & 0xffff);
        }
    }

    fn number(&mut self, number: u32) {
        let is_release = (7000..=20_000).contains(&number) && number.is_multiple_of(10);
        if is_release && (self.numbers.len() < MOST || self.numbers.contains_key(&number)) {
            *self.numbers.entry(number).or_default() += 1;
        }
    }

    /// The release, if what was found allows one alone.
    pub(super) fn version(&self) -> Option<CudaVersion> {
        let mut twice = self.numbers.iter().filter(|(_, count)| **count == 2).map(|(number, _)| *number);
        let number = twice.next().filter(|_| self.message)?;
        twice.next().is_none().then(|| Release::of(&[number / 1000, number % 1000 / 10]))
    }
}

/// `movz wN, #imm`
const fn is_move(word: u32) -> bool {
    word & 0xffe0_0000 == 0x5280_0000
}
