//! What the image's programs need of CUDA.

use crate::knowledge::needs;
pub(super) use crate::knowledge::needs::{Need, Needs};
use crate::model::{CudaVersion, Facts, Unknown};

/// What programs in the image need.
pub(super) fn of<'a>(facts: &Facts<'a>) -> Result<Needs<'a>, Unknown> {
    needs::of(facts.image)
}

/// The CUDA that the image is made of, with where that is said.
pub(super) fn of_image(facts: &Facts<'_>) -> Result<Option<(CudaVersion, String)>, Unknown> {
    needs::of_image(facts.container.environment.known()?, facts.image)
}

/// The newest CUDA in it.
pub(super) fn newest(facts: &Facts<'_>) -> Result<Option<CudaVersion>, Unknown> {
    let of_programs = of(facts)?.all.into_iter().map(|need| need.cuda.clone()).max();
    Ok(of_programs.max(of_image(facts)?.map(|(cuda, _)| cuda)))
}
