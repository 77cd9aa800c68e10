//! Generations of GPUs, and the drivers that run them.
//!
//! Last branches: NVIDIA's "Unix driver feature deprecation schedule" and its list of legacy GPUs (Fermi: dropped
//! in 396, Kepler in 495, Maxwell to Volta in 590). First branches: that of the first CUDA that compiles for it, a
//! hint. Kernel modules: driver installation guide of R610, "Kernel Modules" (the open ones from Turing on, since
//! R515; needed by Blackwell and newer, and by Grace Hopper). 10.7 is Rubin's by the notes of nvCOMPDx; 10.1 was
//! Jetson Thor's name in CUDA 12.8 and 12.9, 11.0 since 13.0. Read 2026-11.

use std::borrow::Cow;

use super::cc;
use crate::knowledge::cuda::Answer;
use crate::model::knowledge::{Generation, Modules};
use crate::model::{ComputeCapability, DriverVersion, Knowledge};

const fn generation(
    name: &'static str,
    capabilities: &'static [ComputeCapability],
    (first_branch, last_branch): (Option<u32>, Option<u32>),
    modules: Modules,
) -> Generation {
    Generation {
        name: Cow::Borrowed(name),
        capabilities: Cow::Borrowed(capabilities),
        first_branch,
        last_branch,
        modules,
    }
}

/// Oldest first.
pub(crate) const GENERATIONS: &[Generation] = &[
    generation("Fermi", &[cc(2, 0), cc(2, 1)], (None, Some(390)), Modules::Proprietary),
    generation("Kepler", &[cc(3, 0), cc(3, 2), cc(3, 5), cc(3, 7)], (None, Some(470)), Modules::Proprietary),
    generation("Maxwell", &[cc(5, 0), cc(5, 2), cc(5, 3)], (None, Some(580)), Modules::Proprietary),
    generation("Pascal", &[cc(6, 0), cc(6, 1), cc(6, 2)], (Some(361), Some(580)), Modules::Proprietary),
    generation("Volta", &[cc(7, 0), cc(7, 2)], (Some(384), Some(580)), Modules::Proprietary),
    generation("Turing", &[cc(7, 5)], (Some(410), None), Modules::Either),
    generation("Ampere", &[cc(8, 0), cc(8, 6), cc(8, 7)], (Some(450), None), Modules::Either),
    generation("Ada", &[cc(8, 9)], (Some(520), None), Modules::Either),
    generation("Hopper", &[cc(9, 0)], (Some(520), None), Modules::Either),
    generation(
        "Blackwell",
        &[cc(10, 0), cc(10, 1), cc(10, 3), cc(11, 0), cc(12, 0), cc(12, 1)],
        (Some(570), None),
        Modules::Open,
    ),
    generation("Rubin", &[cc(10, 7)], (Some(615), None), Modules::Open),
];

impl Knowledge {
    /// The generation of a capability. One that no table has counts, by rule, to the generation of the nearest
    /// lesser one of its major version; one beyond all tables to the newest generation, which is the least it can
    /// be. `None`: older than the tables.
    pub fn generation_of(&self, capability: ComputeCapability) -> Option<Answer<&Generation>> {
        let known = self.generations.iter().find(|g| g.capabilities.contains(&capability));
        if let Some(generation) = known {
            return Some(Answer::known(generation));
        }
        let all = || self.generations.iter().flat_map(|g| g.capabilities.iter().map(move |c| (*c, g)));
        let below = all().filter(|(c, _)| *c < capability).max_by_key(|(c, _)| *c)?;
        let newest = all().all(|(c, _)| c < capability).then(|| self.generations.last()).flatten();
        if below.0.major == capability.major { Some(Answer::by_rule(below.1)) } else { newest.map(Answer::by_rule) }
    }

    /// Whether a driver runs GPUs of this capability. `Some(false)`: its branch comes after the last that does;
    /// `None`: it may be too old for them, or the capability is in no table.
    pub fn driver_supports(&self, capability: ComputeCapability, driver: &DriverVersion) -> Option<bool> {
        let generation = self.generation_of(capability).filter(|answer| !answer.by_rule)?.value;
        // Windows' drivers have numbers between the branches: 475.14 is of 470, 582.16 of 580
        let number = driver.number(0);
        let newest = self.branches.iter().map(|b| b.number).max().unwrap_or_default();
        let below = self.branches.iter().map(|b| b.number).filter(|b| *b <= number).max();
        // one that is newer than the tables is of a branch of its own
        let branch = below.filter(|_| number <= newest).unwrap_or(number);
        if generation.last_branch.is_some_and(|last| branch > last) {
            return Some(false);
        }
        generation.first_branch.is_none_or(|first| branch >= first).then_some(true)
    }
}
