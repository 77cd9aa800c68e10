//! What comes of a runtime, a driver, an image's libcuda and the GPUs that a container sees.

use super::{BRANDS, least_capability};
use crate::knowledge::cuda::Start;
use crate::model::image::Compat;
use crate::model::{ComputeCapability, CudaVersion, DriverVersion, Knowledge};

/// What is to be decided.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The CUDA of the runtime; `None`: not known.
    pub cuda: Option<&'a CudaVersion>,
    /// The kernel driver's version.
    pub driver: &'a DriverVersion,
    /// The image's libcuda that the loader takes, if it takes one.
    pub compat: Option<&'a Compat>,
    /// All GPUs that the container sees; empty: not known.
    pub gpus: &'a [Gpu],
}

/// A GPU that a container sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gpu {
    /// Its brand, by its number in NVML; 0 ("unknown") counts as `None`.
    pub brand: Option<u32>,
    /// Its compute capability.
    pub capability: Option<ComputeCapability>,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The driver offers all that the runtime's release needs.
    NotNeeded,
    /// It starts by minor-version compatibility.
    MinorVersion,
    /// The image's libcuda is used, and works.
    Forward,
    /// Error 804: it is used, and a GPU does not allow it.
    RefusedOnGpu,
    /// Error 803: it is used, and does not suit the kernel driver, which is newer or of another branch.
    OlderWins,
    /// Whatever is used cannot run it.
    Impossible,
}

/// What decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// The CUDA that the driver offers.
    DriverOffers(CudaVersion),
    /// The CUDA that the image's libcuda offers.
    CompatOffers(CudaVersion),
    /// The image's libcuda and its version, older than the driver.
    Older(DriverVersion),
    /// The branches that the libcuda's note lists.
    Branches(Vec<u32>),
    /// The brand of a GPU.
    Brand(u32),
    /// The GPUs are older than the least that the libcuda has code for.
    Generation(ComputeCapability),
    /// The branch of the driver is one that the libcuda works with; the CUDA it offers is not known.
    Allowed,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What comes of it.
    pub outcome: Outcome,
    /// What decided.
    pub because: Because,
    /// The driver is newer than the tables: it offers at least what is said, and maybe all that is needed.
    pub by_rule: bool,
}

/// The fact without which nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// The runtime's CUDA.
    Runtime,
    /// The CUDA that this driver offers: it is older than the tables, or newer and no rule decides.
    Driver,
    /// The version of the image's libcuda.
    CompatVersion,
    /// The brand of a GPU.
    Brand,
    /// The compute capability of a GPU.
    Capability,
    /// Whether the image's libcuda works with the driver's branch: it has no note, and no table lists it.
    Branches,
}

/// Decides. One GPU that does not allow forward compatibility among those visible is enough for error 804.
///
/// That a branch not listed gives 803 is inferred (no GPU was at hand; field reports agree); of a brand and a branch
/// that are both wrong the brand speaks first, as on `GeForce` boards with a driver of no listed branch.
pub fn outcome(knowledge: &Knowledge, question: &Question<'_>) -> Result<Decided, Lacking> {
    match question.compat {
        Some(compat) => {
            let version = compat.version.as_ref().ok_or(Lacking::CompatVersion)?;
            match version.cmp(question.driver) {
                std::cmp::Ordering::Less => decided(Outcome::OlderWins, Because::Older(version.clone())),
                // The same library twice.
                std::cmp::Ordering::Equal => by_driver(knowledge, question),
                std::cmp::Ordering::Greater => forward(knowledge, question, compat, version),
            }
        }
        None => by_driver(knowledge, question),
    }
}

fn by_driver(knowledge: &Knowledge, question: &Question<'_>) -> Result<Decided, Lacking> {
    let cuda = question.cuda.ok_or(Lacking::Runtime)?;
    let offered = knowledge.offered_by(question.driver).ok_or(Lacking::Driver)?;
    let outcome = match knowledge.starts(cuda, &offered.value) {
        Start::Fully => Outcome::NotNeeded,
        Start::ByMinorVersion => Outcome::MinorVersion,
        Start::No if offered.by_rule => return Err(Lacking::Driver),
        Start::No => Outcome::Impossible,
    };
    Ok(Decided { outcome, because: Because::DriverOffers(offered.value), by_rule: offered.by_rule })
}

fn forward(
    knowledge: &Knowledge,
    question: &Question<'_>,
    compat: &Compat,
    version: &DriverVersion,
) -> Result<Decided, Lacking> {
    let note = compat.note.as_ref();
    let branch = question.driver.number(0);
    let brands = note.map(|note| note.brands.as_slice()).filter(|brands| !brands.is_empty()).unwrap_or(&BRANDS);
    let known = |gpu: &Gpu| gpu.brand.filter(|brand| *brand != 0);
    if let Some(brand) = question.gpus.iter().filter_map(known).find(|brand| !brands.contains(brand)) {
        return decided(Outcome::RefusedOnGpu, Because::Brand(brand));
    }
    let listed = note.map(|note| note.branches.as_slice()).filter(|branches| !branches.is_empty());
    // A newer release of the driver's own branch suits it (Paddle#76558: an image with 580.82.07 on 580.65.06).
    let is_same = version.number(0) == branch;
    if let Some(branches) = listed.filter(|branches| !is_same && !branches.contains(&branch)) {
        return decided(Outcome::OlderWins, Because::Branches(branches.to_vec()));
    }
    if question.gpus.is_empty() || question.gpus.iter().any(|gpu| known(gpu).is_none()) {
        return Err(Lacking::Brand);
    }
    if let Some(least) = lost(version, question)? {
        return decided(Outcome::Impossible, Because::Generation(least));
    }

    let offered = note.map(|note| note.cuda.clone()).or_else(|| knowledge.offered_by_compat(version));
    if listed.is_none() && !is_same {
        let branches = offered.as_ref().and_then(|cuda| knowledge.compat_branches(cuda));
        if !branches.is_some_and(|branches| branches.contains(&branch)) {
            return Err(Lacking::Branches);
        }
    }
    match (offered, question.cuda) {
        (Some(offered), Some(cuda)) if knowledge.starts(cuda, &offered) == Start::No => {
            decided(Outcome::Impossible, Because::CompatOffers(offered))
        }
        (Some(offered), _) => decided(Outcome::Forward, Because::CompatOffers(offered)),
        (None, _) => decided(Outcome::Forward, Because::Allowed),
    }
}

/// The least GPU that the library has code for, if every visible one is older; none is where the driver's own
/// branch has dropped as much.
fn lost(version: &DriverVersion, question: &Question<'_>) -> Result<Option<ComputeCapability>, Lacking> {
    let (library, driver) = (least_capability(version.number(0)), least_capability(question.driver.number(0)));
    let Some(least) = library.filter(|_| library > driver) else { return Ok(None) };
    let older = |gpu: &Gpu| gpu.capability.map(|capability| capability < least);
    if question.gpus.iter().any(|gpu| older(gpu) == Some(false)) {
        return Ok(None);
    }
    if question.gpus.iter().any(|gpu| gpu.capability.is_none()) { Err(Lacking::Capability) } else { Ok(Some(least)) }
}

#[expect(clippy::unnecessary_wraps, reason = "it ends functions that may lack a fact")]
fn decided(outcome: Outcome, because: Because) -> Result<Decided, Lacking> {
    Ok(Decided { outcome, because, by_rule: false })
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
