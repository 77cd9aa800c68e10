//! What share of a library's machine code a GPU can run.

use std::borrow::Cow;

use super::architectures::{Archs, Code, Coverage as Of, Runs, covers};
use crate::model::ComputeCapability;
use crate::model::image::{CodeGroup, DeviceCode};

/// A library's fatbin containers, by what a GPU can do with each. Every container is one compilation unit, and some
/// are made for one generation alone: a share is to be compared with that of other GPUs, not with all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// It has machine code for the GPU.
    pub machine: u32,
    /// The driver has to compile its PTX.
    pub ptx_only: u32,
    /// It has nothing the GPU could run.
    pub none: u32,
}

impl Coverage {
    /// Containers in all.
    pub const fn all(&self) -> u32 {
        self.machine.saturating_add(self.ptx_only).saturating_add(self.none)
    }
}

/// Counts.
pub fn coverage(code: &DeviceCode, gpu: ComputeCapability) -> Coverage {
    let mut counted = Coverage::default();
    for group in &code.groups {
        let count = match covers(&archs(group), gpu) {
            Of::Native => &mut counted.machine,
            Of::Ptx => &mut counted.ptx_only,
            Of::No => &mut counted.none,
        };
        *count = count.saturating_add(group.containers);
    }
    counted
}

/// What the containers of a group carry.
pub fn archs(group: &CodeGroup) -> Archs {
    let read = |texts: &[String]| Cow::Owned(texts.iter().filter_map(|text| target(text)).collect());
    Archs { machine_code: read(&group.machine), ptx: read(&group.ptx), confirmed: true }
}

/// `9.0`, `9.0a`, `12.0f`.
pub fn target(text: &str) -> Option<Code> {
    let (number, runs) = match text.as_bytes().last()? {
        b'a' => (&text[..text.len() - 1], Runs::Exact),
        b'f' => (&text[..text.len() - 1], Runs::Family),
        _ => (text, Runs::Compatible),
    };
    Some(Code { capability: number.parse().ok()?, runs })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(machine: &[&str], ptx: &[&str], containers: u32) -> CodeGroup {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        CodeGroup { machine: owned(machine), ptx: owned(ptx), containers }
    }

    fn on(code: &DeviceCode, gpu: &str) -> (u32, u32, u32) {
        let counted = coverage(code, gpu.parse().unwrap());
        (counted.machine, counted.ptx_only, counted.none)
    }

    #[test]
    fn containers_are_counted_and_not_their_union() {
        // as in paddlepaddle-gpu 2.6.2
        let groups = vec![
            group(&["6.1", "7.0", "7.5", "8.0", "8.6"], &[], 665),
            group(&["6.1", "7.0", "7.5", "8.0", "8.6", "9.0"], &[], 8),
        ];
        let code = DeviceCode { groups, ..DeviceCode::default() };
        assert_eq!(on(&code, "9.0"), (8, 0, 665));
        assert_eq!(on(&code, "8.9"), (673, 0, 0));
        assert_eq!(coverage(&code, ComputeCapability::new(9, 0)).all(), 673);
    }

    #[test]
    fn letters_narrow_what_runs_it() {
        let groups = vec![group(&["9.0a"], &[], 2), group(&["10.0f"], &["12.0"], 3), group(&[], &["9.0a"], 5)];
        let code = DeviceCode { groups, ..DeviceCode::default() };
        assert_eq!(on(&code, "9.0"), (2, 5, 3));
        assert_eq!(on(&code, "10.3"), (3, 0, 7));
        assert_eq!(on(&code, "12.1"), (0, 3, 7));
        assert_eq!(on(&DeviceCode::default(), "9.0"), (0, 0, 0));
    }

    #[test]
    fn texts_that_are_none_are_left_out() {
        assert_eq!(target("12.0f"), Some(Code { capability: ComputeCapability::new(12, 0), runs: Runs::Family }));
        assert!(["", "a", "9.0x", "é", "9.é"].into_iter().all(|text| target(text).is_none()));
    }
}
