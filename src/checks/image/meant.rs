//! Is CUDA work what the container is for?

use crate::checks::nodes::expect::{Compute, compute};
use crate::knowledge::cuda_visible_devices::{hides_all, parse};
use crate::knowledge::monitors::is_monitor;
use crate::knowledge::programs::is_another;
use crate::model::{Facts, Place, Unknown};

/// Whether that is certain; `None`: it is not. Who hides the GPUs computes on the processor, and of a shell, a monitor
/// or another program nothing says that it runs the framework that lies beside it. An image is not asked for the shell
/// that it starts where nobody says what to run.
pub(super) fn computes(facts: &Facts<'_>) -> Result<Option<bool>, Unknown> {
    let wanted = match compute(facts)? {
        Compute::Unwanted => return Ok(None),
        wanted => wanted == Compute::Wanted,
    };
    let hidden = facts.container.variable("CUDA_VISIBLE_DEVICES")?.is_some_and(|value| hides_all(&parse(value)));
    let on_cpu = facts.container.variable("JAX_PLATFORMS")?.is_some_and(|value| value.trim() == "cpu");
    let is_it = if facts.place == Place::Image { is_monitor } else { is_another };
    let another = facts.container.args.seen().is_some_and(|args| is_it(args));
    Ok(Some(wanted && !hidden && !on_cpu && !another))
}
