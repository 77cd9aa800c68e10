//! Branches of the driver, and the CUDA that each offers (what `cuDriverGetVersion` answers).
//!
//! NVIDIA's release notes of CUDA 13.1 (2026-01), names of runfiles for 595 and 610, `nvidia-smi`'s banner for
//! 565, 615 and 620 (2026-11). 430 is mixed: 430.26 says 10.2, later ones 10.1; the table has the lesser.

use crate::model::knowledge::Branch;

const fn branch(number: u32, major: u32, minor: u32) -> Branch {
    Branch { number, cuda: (major, minor) }
}

/// Oldest first.
pub(crate) const BRANCHES: &[Branch] = &[
    branch(346, 7, 0),
    branch(352, 7, 5),
    branch(361, 8, 0),
    branch(367, 8, 0),
    branch(375, 8, 0),
    branch(384, 9, 0),
    branch(387, 9, 1),
    branch(390, 9, 1),
    branch(396, 9, 2),
    branch(410, 10, 0),
    branch(418, 10, 1),
    branch(430, 10, 1),
    branch(435, 10, 1),
    branch(440, 10, 2),
    branch(450, 11, 0),
    branch(455, 11, 1),
    branch(460, 11, 2),
    branch(465, 11, 3),
    branch(470, 11, 4),
    branch(495, 11, 5),
    branch(510, 11, 6),
    branch(515, 11, 7),
    branch(520, 11, 8),
    branch(525, 12, 0),
    branch(530, 12, 1),
    branch(535, 12, 2),
    branch(545, 12, 3),
    branch(550, 12, 4),
    branch(555, 12, 5),
    branch(560, 12, 6),
    branch(565, 12, 7),
    branch(570, 12, 8),
    branch(575, 12, 9),
    branch(580, 13, 0),
    branch(590, 13, 1),
    branch(595, 13, 2),
    branch(610, 13, 3),
    branch(615, 13, 4),
    branch(620, 13, 5),
];
