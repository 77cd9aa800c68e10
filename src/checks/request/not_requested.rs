//! A GPU is wanted, and nothing gives one.

use super::way;
use crate::checks::not_applicable;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, Strength};
use crate::model::host::Platform;
use crate::model::{Container, Facts, Unknown};

const WANTED: &str =
    "the container asks for a GPU ({why}), and its start gives it none: no device, no NVIDIA hook, no CDI device";
const IN_A_BUILD: &str = "a step of a {builder} build asks for a GPU ({why}); build steps are given none";
const BY_FILES: &str = "files of the image work with CUDA ({why}), and the container is given no GPU";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "gpu-not-requested",
    title: "the container wants a GPU and none was requested for it",
    why: "CUDA finds no device: the program stops, or works on the CPU and nobody notices.",
    messages: &[WANTED, IN_A_BUILD, BY_FILES],
    remedy: &[
        Step { action: Action::PassGpu, text: "Give it a GPU with {way}.", command: None },
        Step {
            action: Action::ChangeEnvironment,
            text: "For work on the CPU set NVIDIA_VISIBLE_DEVICES=void.",
            command: None,
        },
    ],
    severities: &[Severity::Error, Severity::Warning, Severity::Note],
    places: &[Place::Hook, Place::Healthcheck],
    judge: gpu_not_requested,
}];

fn gpu_not_requested(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let wants = &container.wants_gpu;
    if !wants.wanted || wants.strength == Strength::None {
        return not_applicable();
    }
    if *container.gpu_given.known()? != Given::None {
        return Ok(Outcome::Pass);
    }
    if let Some(sandbox) = container.sandbox {
        if !wants.is_asked() {
            return not_applicable();
        }
        let reason = format!("its devices are opened by {}, outside the container", sandbox.name());
        return Err(Unknown::new("container.gpu_given", "config.json", reason));
    }
    if let Some(builder) = container.builder {
        return Failure::new(Severity::Note, IN_A_BUILD)
            .arg("builder", builder.name())
            .foreign("why", &wants.why)
            .only(&[Action::ChangeEnvironment])
            .found();
    }
    // `jetson-use-runtime` says it, with Jetson's way out
    if wants.strength == Strength::Environment && facts.host.platform == Platform::Tegra {
        return not_applicable();
    }
    let (severity, message) = match wants.strength {
        Strength::None | Strength::Files => (Severity::Note, BY_FILES),
        Strength::Environment
            if container.scheduler.is_some() || given_another_gpu(container) || !facts.host.has_gpu()? =>
        {
            (Severity::Warning, WANTED)
        }
        Strength::Environment | Strength::Demand => (Severity::Error, WANTED),
    };
    let failure = Failure::new(severity, message)
        .foreign("why", &wants.why)
        .arg("way", way::to_give(container))
        .saw("container.wants_gpu", &wants.why, "config.json")
        .saw("container.gpu_given", "none", "config.json");
    // who said in so many words that a GPU is required does not work on the CPU
    if wants.strength == Strength::Demand { failure.only(&[Action::PassGpu]).found() } else { failure.found() }
}

/// Nodes of the kernel's graphics or of AMD's compute were passed: images that transcode or infer on any
/// vendor's GPU bring NVIDIA's variable along (Jellyfin does), and whoever passes these chose another.
fn given_another_gpu(container: &Container) -> bool {
    let is_other = |path: &str| path == "/dev/kfd" || path == "/dev/dri" || path.starts_with("/dev/dri/");
    let devices = container.spec_devices.seen().map(|devices| devices.items.as_slice()).unwrap_or_default();
    let mounts = container.mounts.seen().map(|mounts| mounts.items.as_slice()).unwrap_or_default();
    devices.iter().any(|device| is_other(&device.path)) || mounts.iter().any(|mount| is_other(&mount.destination))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{
        Builder, EngineName, Given, LegacyState, Mount, Sandbox, Scheduler, SpecDevice, Strength, Wants,
    };
    use crate::model::host::Platform;
    use crate::model::{Observed, Parts, Place, Severity};

    const ID: &str = "gpu-not-requested";

    fn severity(world: &World) -> Severity {
        world.failure(ID).severity
    }

    #[test]
    fn a_wish_in_the_environment_is_an_error_where_a_gpu_is() {
        let mut world = World::asking("all");
        assert_eq!(severity(&world), Severity::Error);
        world.place = Place::Healthcheck;
        assert_eq!(severity(&world), Severity::Error);
        world.host = World::bare_host();
        assert_eq!(severity(&world), Severity::Warning);
    }

    #[test]
    fn under_a_scheduler_a_wish_in_the_environment_is_a_warning_and_a_demand_an_error() {
        let mut world = World::asking("all");
        world.container.scheduler = Some(Scheduler::Kubernetes);
        assert_eq!(severity(&world), Severity::Warning);
        world.container.wants_gpu.strength = Strength::Demand;
        assert_eq!(severity(&world), Severity::Error);
        world.host = World::bare_host();
        assert_eq!(severity(&world), Severity::Error);
    }

    #[test]
    fn who_was_given_another_gpu_is_warned() {
        let mut world = World::asking("all");
        let path = "/dev/dri/renderD128".to_owned();
        world.container.spec_devices =
            Observed::Known(Parts::whole(vec![SpecDevice { path: path.clone(), ..SpecDevice::default() }]));
        assert_eq!(severity(&world), Severity::Warning);
        world.container.wants_gpu.strength = Strength::Demand;
        assert_eq!(severity(&world), Severity::Error);
        // without root a node is a mount
        let mut world = World::asking("all");
        let mount = Mount { destination: path.clone(), source: path, ..Mount::default() };
        world.container.mounts = Observed::Known(Parts::whole(vec![mount]));
        assert_eq!(severity(&world), Severity::Warning);
    }

    #[test]
    fn build_steps_and_files_are_notes() {
        let mut world = World::asking("all");
        world.container.builder = Some(Builder::BuildKit);
        assert_eq!(severity(&world), Severity::Note);
        let mut world = World::plain();
        world.container.wants_gpu = Wants { wanted: true, strength: Strength::Files, why: "torch 2.5.1+cu124".into() };
        assert_eq!(severity(&world), Severity::Note);
        world.container.sandbox = Some(Sandbox::Kata);
        world.silent(ID);
    }

    fn errors(world: &World) -> Vec<&'static str> {
        let judged = crate::checks::judge(&world.facts()).into_iter();
        let failed = judged.filter_map(|j| Some((j.check.id, j.judgement.ok()?.failure()?.severity)));
        failed.filter(|(_, severity)| *severity == Severity::Error).map(|(id, _)| id).collect()
    }

    /// However the GPU was given, and whatever does not fit.
    #[test]
    fn a_wish_by_files_makes_no_error_anywhere() {
        for platform in [Platform::Native, Platform::Tegra, Platform::Wsl] {
            for given in [Given::None, Given::Privileged, Given::RawDevices, Given::Vm, Given::Wsl, Given::Tegra] {
                let mut world = World::plain();
                world.host.platform = platform;
                world.host.l4t = Some("35.1".into());
                world.image.architecture = Observed::Known(Some("arm64".into()));
                world.set("L4T_VERSION", "36.4");
                world.container.gpu_given = Observed::Known(given);
                let without = errors(&world);
                world.container.wants_gpu = Wants { wanted: true, strength: Strength::Files, why: "torch".into() };
                assert_eq!(errors(&world), without, "{platform:?} {given:?}");
            }
        }
    }

    #[test]
    fn nothing_wanted_or_something_given_is_fine() {
        World::plain().silent(ID);
        World::cdi(1).silent(ID);
        World::legacy(1, LegacyState::StillToRun).silent(ID);
        let mut jetson = World::asking("all");
        jetson.host.platform = Platform::Tegra;
        jetson.silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = World::asking("all");
        world.host.gpus = unseen();
        world.host.pci = unseen();
        world.unknown(ID);
        let mut world = World::asking("all");
        world.container.gpu_given = unseen();
        world.unknown(ID);
        let mut world = World::asking("all");
        world.container.sandbox = Some(Sandbox::Kata);
        world.unknown(ID);
    }

    #[test]
    fn the_way_out_is_in_the_words_of_the_engine() {
        let (_, check) = crate::checks::find(ID).unwrap();
        let words = |world: &World| crate::checks::testing::words(check, &world.failure(ID));
        let mut world = World::asking("all");
        world.container.engine = EngineName::Podman;
        assert!(words(&world).contains("with --device nvidia.com/gpu=all."), "{}", words(&world));
        world.container.gpu_given = Observed::Known(Given::None);
        world.container.engine = EngineName::Docker;
        assert!(words(&world).contains("with --gpus all."), "{}", words(&world));
        assert!(words(&world).contains("NVIDIA_VISIBLE_DEVICES=void"), "{}", words(&world));
    }
}
