//! What an image is judged against.

use crate::model::Facts;
use crate::model::check::{Check, Failure, Judgement, Outcome, Place, Severity};

const NO_GPU: &str = "the machine has no NVIDIA GPU, so nothing of the image was judged against one";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "no-gpu-host",
    title: "the image was judged on a machine without a GPU",
    why: "Whether a driver and a GPU suit the image shows only against a stated or real machine that has them.",
    messages: &[NO_GPU],
    remedy: &[],
    severities: &[Severity::Note],
    places: &[Place::Image],
    judge: no_gpu_host,
}];

fn no_gpu_host(facts: &Facts<'_>) -> Judgement {
    if facts.host.is_target()? {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Note, NO_GPU).saw("host.gpus", "none", "/sys/bus/pci/devices").found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::{Observed, Place};

    const ID: &str = "no-gpu-host";

    #[test]
    fn a_machine_without_a_gpu_is_a_note_unless_a_driver_is_stated() {
        let mut world = World { place: Place::Image, host: crate::model::testing::bare_host(), ..World::machine(0) };
        world.failure(ID);
        world.host.driver.version = Observed::Known(Some("535.183.01".parse().unwrap()));
        world.silent(ID);
        world.host = crate::model::testing::host(1);
        world.silent(ID);
        world.host = crate::model::testing::bare_host();
        world.host.pci = unseen();
        world.unknown(ID);
    }
}
