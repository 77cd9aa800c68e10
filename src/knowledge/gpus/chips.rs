//! PCI device ids (vendor 10de) and the chips behind them.
//!
//! NVIDIA numbers its boards chip by chip. Up to Volta the ranges come from the chips that stand in the names of the
//! PCI ID data base (pci.ids 2023.04.11), rounded to blocks of 16 in which no other chip is; from Turing on the first
//! byte tells, by the list of products in the README of open-gpu-kernel-modules 595.45.04 (df1c9a3d, 825 rows),
//! which has no chips but product names. Read 2026-11. 29B0 and up is left out: it holds boards for cars, of which
//! nothing is published.

use std::borrow::Cow;

use super::cc;
use crate::model::knowledge::Chip;

const fn chip(first: u16, last: u16, name: &'static str, (major, minor): (u8, u8)) -> Chip {
    Chip { first, last, name: Cow::Borrowed(name), capability: cc(major, minor) }
}

/// In the order of their ids.
pub(crate) const CHIPS: &[Chip] = &[
    chip(0x06C0, 0x06DF, "GF100", (2, 0)),
    chip(0x0DC0, 0x0DFF, "GF106, GF108", (2, 1)),
    chip(0x0E22, 0x0E3F, "GF104", (2, 1)),
    chip(0x0F00, 0x0F0F, "GF108", (2, 1)),
    chip(0x0FC0, 0x0FFF, "GK107", (3, 0)),
    chip(0x1000, 0x102C, "GK110", (3, 5)),
    chip(0x102D, 0x102D, "GK210", (3, 7)),
    chip(0x102E, 0x103F, "GK110", (3, 5)),
    chip(0x1040, 0x107F, "GF119", (2, 1)),
    chip(0x1080, 0x109F, "GF110, GF100", (2, 0)),
    chip(0x1140, 0x114F, "GF117", (2, 1)),
    chip(0x1180, 0x11FF, "GK104, GK106", (3, 0)),
    chip(0x1200, 0x125F, "GF114, GF116", (2, 1)),
    chip(0x1280, 0x12BF, "GK208", (3, 5)),
    chip(0x1340, 0x137F, "GM108", (5, 0)),
    chip(0x1380, 0x13BF, "GM107", (5, 0)),
    chip(0x13C0, 0x13FF, "GM204", (5, 2)),
    chip(0x1400, 0x143F, "GM206", (5, 2)),
    chip(0x15F0, 0x15FF, "GP100", (6, 0)),
    chip(0x1610, 0x161F, "GM204", (5, 2)),
    chip(0x1660, 0x166F, "GM204", (5, 2)),
    chip(0x1725, 0x172F, "GP100", (6, 0)),
    chip(0x1740, 0x174F, "GM108", (5, 0)),
    chip(0x1780, 0x179F, "GM107", (5, 0)),
    chip(0x17C0, 0x17FF, "GM200", (5, 2)),
    chip(0x1B00, 0x1B7F, "GP102", (6, 1)),
    chip(0x1B80, 0x1BFF, "GP104", (6, 1)),
    chip(0x1C00, 0x1C7F, "GP106", (6, 1)),
    chip(0x1C80, 0x1CFF, "GP107", (6, 1)),
    chip(0x1D00, 0x1D5F, "GP108", (6, 1)),
    chip(0x1D80, 0x1DFF, "GV100", (7, 0)),
    chip(0x1E00, 0x1FFF, "TU102, TU104, TU106, TU117", (7, 5)),
    chip(0x2000, 0x20FF, "GA100", (8, 0)),
    chip(0x2100, 0x21FF, "TU116", (7, 5)),
    chip(0x2200, 0x22FF, "GA102", (8, 6)),
    chip(0x2300, 0x23FF, "GH100", (9, 0)),
    chip(0x2400, 0x25FF, "GA103, GA104, GA106, GA107", (8, 6)),
    chip(0x2600, 0x28FF, "AD102, AD103, AD104, AD106, AD107", (8, 9)),
    chip(0x2900, 0x29AF, "GB100", (10, 0)),
    chip(0x2B00, 0x2DFF, "GB202, GB203, GB205, GB206, GB207", (12, 0)),
    chip(0x2E00, 0x2E7F, "GB10", (12, 1)),
    chip(0x2F00, 0x2FFF, "GB205", (12, 0)),
    chip(0x3180, 0x31FF, "GB110 (B300, GB300)", (10, 3)),
];
