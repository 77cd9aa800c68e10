//! An image for another processor.

use crate::checks::not_applicable;
use crate::knowledge::architecture::{oci_name, runs_on};
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, Strength};

const MISMATCH: &str =
    "the image is for {image} and this machine is {host}: its programs cannot use the GPU, not even emulated";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "image-arch-mismatch",
    title: "the image is for another processor than the machine's",
    why: "Its programs do not start, or run emulated, and an emulator does not carry the driver's calls.",
    messages: &[MISMATCH],
    remedy: &[Step {
        action: Action::ChangeImage,
        text: "Use an image for {host}, for example with --platform linux/{host}.",
        command: None,
    }],
    severities: &[Severity::Error],
    places: &[Place::Hook, Place::Image],
    judge: image_arch_mismatch,
}];

fn image_arch_mismatch(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let demanded = container.wants_gpu.strength == Strength::Demand;
    let by_files = facts.place == Place::Image && facts.image.cuda.seen().is_some_and(Option::is_some);
    // on the CPU an image may run emulated, slowly and rightly
    if !demanded && !container.wants_gpu.is_asked() && !by_files {
        return not_applicable();
    }
    if facts.place == Place::Image && !facts.host.has_gpu()? {
        return not_applicable();
    }
    if !demanded && *container.gpu_given.known()? == Given::None {
        return not_applicable();
    }
    let Some(image) = facts.image.architecture.known()? else { return not_applicable() };
    let host = facts.host.architecture.known()?;
    if runs_on(image, host) {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Error, MISMATCH)
        .foreign("image", image)
        .arg("host", oci_name(host))
        .saw(
            "image.architecture",
            image,
            if facts.image.configuration.is_some() { "the image's configuration" } else { "the image's loader" },
        )
        .saw("host.architecture", host, "kernel")
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::{LegacyState, Strength};

    const ID: &str = "image-arch-mismatch";

    fn amd64_on_arm64(mut world: World) -> World {
        world.image.architecture = Observed::Known(Some("amd64".into()));
        world.host.architecture = Observed::Known("aarch64".into());
        world
    }

    #[test]
    fn another_processor_is_an_error_where_a_gpu_is_given_or_demanded() {
        amd64_on_arm64(World::legacy(1, LegacyState::StillToRun)).failure(ID);
        let mut world = amd64_on_arm64(World::asking("all"));
        world.silent(ID);
        world.container.wants_gpu.strength = Strength::Demand;
        world.failure(ID);
    }

    #[test]
    fn the_same_processor_none_at_all_and_work_on_the_cpu_are_fine() {
        let mut world = World::cdi(1);
        world.image.architecture = Observed::Known(Some("amd64".into()));
        world.silent(ID);
        world.image.architecture = Observed::Known(None);
        world.silent(ID);
        amd64_on_arm64(World::plain()).silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = amd64_on_arm64(World::cdi(1));
        world.image.architecture = unseen();
        world.unknown(ID);
        let mut world = amd64_on_arm64(World::cdi(1));
        world.host.architecture = unseen();
        world.unknown(ID);
    }
}
