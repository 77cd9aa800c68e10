//! Does the container work with CUDA? Asking for a GPU alone does not say so.

use crate::knowledge::cuda_visible_devices::{hides_all, parse};
use crate::knowledge::driver_capabilities::word_of_cuda;
use crate::knowledge::monitors::is_monitor;
use crate::model::container::Strength;
use crate::model::wording::quote;
use crate::model::{Container, Facts, Unknown};

/// What says that CUDA work is meant: a fact with its value, and where it was seen.
pub(crate) type Sign = (&'static str, String, &'static str);

/// The strongest sign of CUDA work; `None`: there is none, or nobody could look at the image's files.
pub(crate) fn sign(facts: &Facts<'_>) -> Result<Option<Sign>, Unknown> {
    let container = facts.container;
    if let Some(variable) = word_of_cuda(container.environment.known()?) {
        return Ok(Some(("container.environment", variable.to_owned(), "config.json")));
    }
    if container.wants_gpu.strength == Strength::Demand {
        return Ok(Some(("container.wants_gpu", quote(&container.wants_gpu.why), "config.json")));
    }
    let files = facts.image.cuda.seen().and_then(Option::as_ref);
    Ok(files.map(|path| ("image.cuda", quote(path), "the image's files")))
}

/// Its program is one that looks after GPUs without CUDA.
pub(crate) fn only_monitors(container: &Container) -> bool {
    container.args.seen().is_some_and(|args| is_monitor(args))
}
/// Its environment says that it computes on the processor.
pub(crate) fn is_for_cpu(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let hidden = facts.container.variable("CUDA_VISIBLE_DEVICES")?.is_some_and(|value| hides_all(&parse(value)));
    let on_cpu = facts.container.variable("JAX_PLATFORMS")?.is_some_and(|value| value.trim() == "cpu");
    Ok(hidden || on_cpu)
}
