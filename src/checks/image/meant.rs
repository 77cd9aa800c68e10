//! Is CUDA work what the container is for?

use crate::checks::cuda;
use crate::checks::nodes::expect::{Compute, compute, subject};
use crate::knowledge::monitors::is_monitor;
use crate::knowledge::programs::is_another;
use crate::model::container::Given;
use crate::model::host::Platform;
use crate::model::{Facts, Place, Unknown};

/// The container has a GPU to work with, or the image is for one: as it will be run here, by its configuration, or by
/// what is in it.
pub(super) fn has_gpu(facts: &Facts<'_>) -> Result<bool, Unknown> {
    let given = *facts.container.gpu_given.known()?;
    if given == Given::None || facts.container.builder.is_some() {
        return Ok(false);
    }
    if subject(facts)?.is_some() || given == Given::Wsl || facts.host.platform == Platform::Wsl {
        return Ok(true);
    }
    Ok(facts.place == Place::Image && is_for_gpu(facts)?)
}

/// Somebody asks for a GPU, or something speaks of CUDA.
pub(super) fn is_for_gpu(facts: &Facts<'_>) -> Result<bool, Unknown> {
    Ok(facts.container.wants_gpu.is_asked() || cuda::sign(facts)?.is_some())
}

/// Whether that is certain; `None`: it is not. Who hides the GPUs computes on the processor, and of a shell, a monitor
/// or another program nothing says that it runs the framework that lies beside it. An image is not asked for the shell
/// that it starts where nobody says what to run.
pub(super) fn computes(facts: &Facts<'_>) -> Result<Option<bool>, Unknown> {
    let wanted = match compute(facts)? {
        Compute::Unwanted => return Ok(None),
        wanted => wanted == Compute::Wanted,
    };
    let on_cpu = cuda::is_for_cpu(facts)?;
    let is_it = if facts.place == Place::Image { is_monitor } else { is_another };
    let another = facts.container.args.seen().is_some_and(|args| is_it(args));
    Ok(Some(wanted && !on_cpu && !another))
}
