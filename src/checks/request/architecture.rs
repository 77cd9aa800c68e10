//! An image for another processor.

use crate::checks::not_applicable;
use crate::knowledge::architecture::{oci_name, runs_on};
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, Strength};

const MISMATCH: &str =
    "the image is for {image} and the machine is {host}: its programs cannot use the GPU, not even emulated";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "image-arch-mismatch",
    title: "the image is for another processor than the machine's",
    why: "Its programs do not start, or run emulated, and an emulator does not carry the driver's calls.",
    messages: &[MISMATCH],
    remedy: &[Step {
        action: Action::ChangeImage,
        text: "Use an image for {platform}: --platform takes it where there are several.",
        command: None,
    }],
    severities: &[Severity::Error],
    places: &[Place::Hook, Place::Image],
    judge: image_arch_mismatch,
}];

fn image_arch_mismatch(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let demanded = container.wants_gpu.strength == Strength::Demand;
    let is_image = facts.place == Place::Image;
    let asked = demanded || container.wants_gpu.is_asked();
    // on the CPU an image may run emulated, slowly and rightly
    if !asked && (!is_image || facts.image.cuda.seen() == Some(&None)) {
        return not_applicable();
    }
    if is_image && !facts.host.is_target()? {
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
    if !asked {
        facts.image.cuda.known()?;
    }
    Failure::new(Severity::Error, MISMATCH)
        .foreign("image", image)
        .arg("host", oci_name(host))
        .arg("platform", format!("linux/{}", oci_name(host)))
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
    use crate::model::container::{Given, LegacyState, Strength};
    use crate::model::observed::NOT_STATED;
    use crate::model::{Host, Observed, Place};

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
    fn of_an_image_its_files_ask_and_a_driver_alone_is_a_machine_to_judge_for() {
        let mut world = amd64_on_arm64(World { place: Place::Image, ..World::plain() });
        world.container.gpu_given = Observed::Known(Given::LegacyHook);
        world.silent(ID);
        world.image.cuda = Observed::Known(Some("/usr/local/cuda/lib64".into()));
        world.failure(ID);
        let architecture = world.host.architecture.clone();
        world.host = Host { architecture, ..Host::unseen("the command line", NOT_STATED) };
        world.unknown(ID);
        world.host.driver.version = Observed::Known(Some("580.95.05".parse().unwrap()));
        world.failure(ID);
        // files that nobody read may ask, which counts where it cannot run
        world.image.cuda = unseen();
        world.unknown(ID);
        world.image.architecture = Observed::Known(Some("arm64".into()));
        world.silent(ID);
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
