//! Xid numbers: what the driver writes into the kernel's log when a GPU, or a program on it, fails.
//!
//! NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors, read 2026-11, for Ampere
//! and newer), in our words; 61 and 122 to 125, which it has as unused, by the names in `nverror.h` of
//! open-gpu-kernel-modules.

use super::{Cause, high, low, medium};

/// What a number asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program on the GPU did something wrong; the GPU is well.
    Program,
    /// The GPU is gone from the bus.
    Bus,
    /// Memory errors that could not be corrected.
    Memory,
    /// A row or page of memory is to be replaced: reset.
    RemapPending,
    /// No row is left to replace one by.
    RemapFailed,
    /// The GPU or its firmware stopped: reset.
    Reset,
    /// A link between GPUs.
    Link,
    /// The driver could not start the GPU.
    Start,
    /// Only a hint.
    Hint,
}

/// Number, meaning, what it asks for.
#[rustfmt::skip]
pub const ROWS: &[(u32, &str, Kind)] = &[
    (8, "the GPU stopped processing: a channel was idle too long", Kind::Program),
    (11, "invalid or corrupted commands from a program", Kind::Program),
    (13, "graphics engine exception: usually a program's access out of bounds", Kind::Program),
    (25, "invalid or illegal commands from a program", Kind::Program),
    (31, "memory page fault: a program used an address that it does not have", Kind::Program),
    (32, "invalid or corrupted push buffer: mostly the quality of the PCIe link", Kind::Hint),
    (37, "driver firmware error", Kind::Hint),
    (38, "driver firmware error", Kind::Hint),
    (39, "copy engine exception", Kind::Program),
    (40, "copy engine exception", Kind::Program),
    (41, "copy engine exception", Kind::Program),
    (43, "the GPU stopped processing: a program's fault ended its channel", Kind::Program),
    (44, "graphics engine fault during a context switch", Kind::Hint),
    (45, "channels were torn down: a program was ended, or an earlier error", Kind::Program),
    (46, "the GPU stopped processing", Kind::Reset),
    (48, "double-bit ECC error", Kind::Memory),
    (54, "auxiliary power is not connected", Kind::Start),
    (60, "video processor exception", Kind::Program),
    (61, "internal microcontroller breakpoint", Kind::Hint),
    (62, "internal microcontroller halt", Kind::Reset),
    (63, "memory remapping or page retirement was recorded", Kind::RemapPending),
    (64, "memory remapping or page retirement failed", Kind::RemapFailed),
    (66, "illegal access by the driver", Kind::Hint),
    (67, "illegal access by the driver", Kind::Hint),
    (68, "video decoder exception", Kind::Program),
    (69, "graphics engine class error", Kind::Program),
    (74, "NVLink error", Kind::Link),
    (78, "a vGPU did not start", Kind::Start),
    (79, "the GPU has fallen off the bus", Kind::Bus),
    (80, "corrupted data was sent to the GPU", Kind::Program),
    (92, "many single-bit ECC errors", Kind::Hint),
    (93, "a violation of the info ROM's wear limit", Kind::Hint),
    (94, "contained memory error: only the program that met it was ended", Kind::Memory),
    (95, "uncontained memory error: all programs on the GPU are affected", Kind::Memory),
    (109, "a context switch timed out", Kind::Reset),
    (110, "security fault", Kind::Reset),
    (119, "the GPU's system processor (GSP) did not answer in time", Kind::Reset),
    (120, "the GPU's system processor (GSP) reported an error", Kind::Reset),
    (121, "corrected errors on the link to the processor", Kind::Hint),
    (122, "reading the board's SPI memory failed", Kind::Hint),
    (123, "writing the board's SPI memory failed", Kind::Hint),
    (124, "erasing the board's SPI memory failed", Kind::Hint),
    (125, "the info ROM's file system has an error", Kind::Hint),
    (136, "link training failed", Kind::Link),
    (137, "an access over NVLink was refused: usually a program's", Kind::Program),
    (140, "an ECC error was not recovered", Kind::Memory),
    (143, "the GPU did not initialise", Kind::Start),
    (144, "NVLink error (SAW)", Kind::Link),
    (145, "NVLink error (RLW)", Kind::Link),
    (146, "NVLink error (TLW)", Kind::Link),
    (147, "NVLink error (TREX)", Kind::Link),
    (148, "NVLink error (NVLPW_CTRL)", Kind::Link),
    (149, "NVLink error (NETIR)", Kind::Link),
    (150, "NVLink error (MSE)", Kind::Link),
    (151, "an error in key rotation", Kind::Hint),
    (154, "what recovery the GPU asks for, after another Xid", Kind::Reset),
    (155, "an NVLink went down, or another error that the software defines", Kind::Link),
    (156, "a resource of the GPU was retired", Kind::RemapPending),
    (157, "a resource of the GPU could not be retired: none is left in its place", Kind::RemapFailed),
    (158, "a fatal timeout in the GPU", Kind::Reset),
    (160, "a channel was retired", Kind::Hint),
    (161, "a channel could not be retired", Kind::Hint),
    (167, "a fatal timeout on PCIe", Kind::Hint),
    (168, "errors in protected memory: less of it is left", Kind::Hint),
    (169, "internal microcontroller halt", Kind::Hint),
    (171, "an error in DRAM that could not be corrected", Kind::Memory),
    (172, "an error in SRAM that could not be corrected", Kind::Memory),
];

/// What a number means.
pub fn meaning(number: u32) -> Option<(&'static str, Kind)> {
    ROWS.iter().find(|(known, _, _)| *known == number).map(|(_, text, kind)| (*text, *kind))
}

/// The causes of a number; of one that the table lacks only what all have in common.
pub fn causes(number: u32) -> &'static [Cause] {
    match meaning(number).map(|(_, kind)| kind) {
        Some(Kind::Program) => PROGRAM,
        Some(Kind::Bus) => BUS,
        Some(Kind::Memory) => MEMORY,
        Some(Kind::RemapPending) => PENDING,
        Some(Kind::RemapFailed) => FAILED,
        Some(Kind::Reset) => RESET,
        Some(Kind::Link) => LINK,
        Some(Kind::Start) => START,
        Some(Kind::Hint) | None => HINT,
    }
}

const OTHERS: Cause =
    low("xid-recent", "Xid {found}: the lines before it in the kernel's log may name an earlier one.");
const PROGRAM: &[Cause] = &[
    medium("not-a-gpu-problem", "Xid {found} usually comes from the program that ran on the GPU, not from the GPU."),
    medium("xid-recent", "If it comes with several programs, or on one GPU only, it is that GPU's."),
];
const BUS: &[Cause] = &[
    high("gpu-fallen-off-bus", "Xid {found} says that the driver lost the GPU on PCIe."),
    low("one-gpu-unhealthy", "The other GPUs may still work, but tools that ask all of them stop at this one."),
    OTHERS,
];
const MEMORY: &[Cause] = &[
    high("ecc-uncorrectable", "Xid {found} is an error in the GPU's memory that could not be corrected."),
    medium("gpu-reset-required", "The GPU has to be reset before it is used again."),
    low("row-remap-failed", "If it comes again, no spare row may be left."),
];
const PENDING: &[Cause] = &[
    high("row-remap-pending", "Xid {found}: a faulty row of memory is replaced at the next reset of the GPU."),
    medium("page-retirement-pending", "GPUs before Ampere retire the page instead."),
    medium("gpu-reset-required", "The replacement counts only after a reset."),
    low("ecc-uncorrectable", "It follows an error that could not be corrected."),
];
const FAILED: &[Cause] = &[
    high("row-remap-failed", "Xid {found}: a faulty row of memory could not be replaced."),
    medium("ecc-uncorrectable", "It follows an error that could not be corrected."),
    OTHERS,
];
const RESET: &[Cause] = &[
    high(
        "gpu-reset-required",
        "Xid {found}: the GPU or its firmware stopped, and works again after a reset or a reboot.",
    ),
    low("gpu-fallen-off-bus", "The GPU may not answer on the bus any more."),
    OTHERS,
];
const LINK: &[Cause] = &[
    medium(
        "gpu-reset-required",
        "Xid {found} is a fault of a link between GPUs; a reset of all that are linked clears it.",
    ),
    medium("fabric-not-ready", "Where NVSwitches link them, the Fabric Manager has to be up again."),
    OTHERS,
];
const START: &[Cause] = &[
    high("gpu-failed-to-initialise", "Xid {found}: the driver could not start this GPU."),
    medium("gpu-reset-required", "A reset, or the machine off and on, may bring it back."),
    OTHERS,
];
const HINT: &[Cause] = &[
    medium("xid-recent", "Xid {found} alone asks for nothing at once; NVIDIA's catalogue says what it can mean."),
    low("gpu-reset-required", "If work on that GPU fails since, reset it."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_and_each_has_causes() {
        assert!(ROWS.windows(2).all(|two| two[0].0 < two[1].0));
        assert_eq!(causes(79)[0].id, "gpu-fallen-off-bus");
        assert_eq!(causes(48)[0].id, "ecc-uncorrectable");
        assert_eq!(causes(31)[0].id, "not-a-gpu-problem");
        assert_eq!(causes(9999)[0].id, "xid-recent");
    }
}
