//! A GPU is wanted, and nothing gives one.

use super::way;
use crate::checks::cuda::is_for_cpu;
use crate::checks::driver::nvidia_loaded;
use crate::checks::nodes::role::{Role, role};
use crate::checks::not_applicable;
use crate::knowledge::toolkit::{base_name, is_hook_of_nvidia};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, Mount, Strength};
use crate::model::host::{NodeKind, Platform};
use crate::model::{Container, Facts, Host, Unknown};

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
    if given_unseen_by_the_spec(container)? {
        return Ok(Outcome::Pass);
    }
    let (severity, message) = match wants.strength {
        Strength::None | Strength::Files => (Severity::Note, BY_FILES),
        _ if foreign_gpu_hook(container) => (Severity::Warning, WANTED),
        Strength::Environment
            if container.scheduler.is_some()
                || given_another_gpu(container)
                || is_for_cpu(facts)?
                || !could_be_given(facts.host)? =>
        {
            (Severity::Warning, WANTED)
        }
        Strength::Environment | Strength::Demand => (Severity::Error, WANTED),
    };
    let failure = Failure::new(severity, message)
        .foreign("why", &wants.why)
        .arg("way", way::to_give(facts)?)
        .saw("container.wants_gpu", &wants.why, "config.json")
        .saw("container.gpu_given", "none", "config.json");
    // who said in so many words that a GPU is required does not work on the CPU
    if wants.strength == Strength::Demand { failure.only(&[Action::PassGpu]).found() } else { failure.found() }
}

/// The machine has a GPU whose driver runs. Under nouveau, or with no driver, `--gpus` would give none either:
/// nothing was forgotten, and the images that run here work on the CPU.
fn could_be_given(host: &Host) -> Result<bool, Unknown> {
    Ok(host.has_gpu()? && (host.platform != Platform::Native || nvidia_loaded(host)?))
}

/// A GPU's nodes are there, and nothing in the spec that we know gave them: a site's own hook made them, or
/// they were bound from a place that is no `/dev`. Where nobody could look, nobody knows.
fn given_unseen_by_the_spec(container: &Container) -> Result<bool, Unknown> {
    if container.moment.is_foretold() {
        // What will be there is foretold, and what such a mount brings cannot be.
        let brings =
            |mount: &&Mount| mount.source.starts_with('/') && mount.source != "/dev/null" && leads_to_gpu(mount);
        let mounts = container.mounts.seen().map(|mounts| mounts.items.as_slice()).unwrap_or_default();
        return match mounts.iter().find(brings) {
            Some(_) => Err(Unknown::new("container.gpu_given", "mounts", "a mount on /dev may bring a GPU's nodes")),
            None => Ok(false),
        };
    }
    let of_a_gpu = |path: &str| matches!(role(path), Role::Gpu | Role::Control);
    let nodes = container.devices.known()?;
    Ok(nodes.iter().any(|node| node.looked_at && node.kind == NodeKind::CharDevice && of_a_gpu(&node.path)))
}

/// The mount may put a GPU's node into the container; the machine's own `/dev` counts as given elsewhere.
fn leads_to_gpu(mount: &Mount) -> bool {
    let destination = mount.destination.trim_end_matches('/');
    let whole = destination == "/dev" && mount.source.trim_end_matches('/') != "/dev";
    whole || matches!(role(destination), Role::Gpu | Role::Control)
}

/// A hook of somebody else's that has to do with GPUs by its words: NVIDIA's under a wrapper's name, or a
/// site's own. What it makes or has made is not ours to foretell.
fn foreign_gpu_hook(container: &Container) -> bool {
    let hooks = container.hooks.seen().map(|hooks| hooks.items.as_slice()).unwrap_or_default();
    hooks.iter().any(|hook| {
        let words = || hook.args.iter().chain([&hook.path]).map(String::as_str);
        matches!(hook.stage.as_str(), "prestart" | "createRuntime" | "createContainer")
            // what these give, and whether they act, is known
            && !words().any(|word| is_hook_of_nvidia(word) || base_name(word).starts_with("gpu-preflight"))
            && words().map(str::to_ascii_lowercase).any(|word| word.contains("nvidia") || word.contains("gpu"))
    })
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
        Builder, ContainerNode, EngineName, Given, LegacyState, Moment, Mount, Sandbox, Scheduler, SpecDevice,
        SpecHook, Stage, Strength, Wants,
    };
    use crate::model::host::{NodeKind, Platform};
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
        world.host = crate::model::testing::bare_host();
        assert_eq!(severity(&world), Severity::Warning);
    }

    #[test]
    fn under_a_scheduler_a_wish_in_the_environment_is_a_warning_and_a_demand_an_error() {
        let mut world = World::asking("all");
        world.container.scheduler = Some(Scheduler::Kubernetes);
        assert_eq!(severity(&world), Severity::Warning);
        world.container.wants_gpu.strength = Strength::Demand;
        assert_eq!(severity(&world), Severity::Error);
        world.host = crate::model::testing::bare_host();
        assert_eq!(severity(&world), Severity::Error);
    }

    #[test]
    fn without_a_running_driver_nothing_was_forgotten() {
        let mut world = World::asking("all");
        world.host.driver.modules = Observed::Known([].into());
        world.host.driver.version = Observed::Known(None);
        assert_eq!(severity(&world), Severity::Warning);
        world.container.wants_gpu.strength = Strength::Demand;
        assert_eq!(severity(&world), Severity::Error);
    }

    /// An image's variable asks for a GPU, and whoever starts it says that it works without.
    #[test]
    fn who_hides_all_gpus_from_cuda_is_warned() {
        for place in [Place::Hook, Place::Healthcheck] {
            let mut world = World::asking("all");
            world.place = place;
            world.set("CUDA_VISIBLE_DEVICES", "-1");
            assert_eq!(severity(&world), Severity::Warning);
            world.container.wants_gpu.strength = Strength::Demand;
            assert_eq!(severity(&world), Severity::Error);
        }
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

    fn node(path: &str) -> ContainerNode {
        ContainerNode { path: path.to_owned(), looked_at: true, ..ContainerNode::default() }
    }

    #[test]
    fn nodes_that_a_hook_of_another_name_made_are_a_gpu() {
        for path in ["/dev/nvidia0", "/dev/nvidiactl"] {
            let mut world = World::asking("all");
            world.container.devices = Observed::Known(vec![node(path)]);
            world.silent(ID);
            world.container.wants_gpu.strength = Strength::Demand;
            world.silent(ID);
        }
        let mut world = World::asking("all");
        world.container.devices = Observed::Known(vec![
            node("/dev/nvidia-uvm"),
            ContainerNode { kind: NodeKind::File, ..node("/dev/nvidia0") },
        ]);
        assert_eq!(severity(&world), Severity::Error);
        world.container.devices = unseen();
        world.unknown(ID);
    }

    #[test]
    fn a_hook_that_may_bring_a_gpu_makes_it_a_warning() {
        let hook = |stage: &str, path: &str, args: &[&str]| SpecHook {
            stage: stage.into(),
            path: path.into(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
            ..SpecHook::default()
        };
        let with = |hook: SpecHook, moment| {
            let mut world = World::asking("all");
            world.container.moment = moment;
            world.container.hooks = Observed::Known(Parts::whole(vec![hook]));
            severity(&world)
        };
        for moment in [Moment::NotStarted, Moment::Hook(Stage::CreateRuntime)] {
            let wrapper = hook("prestart", "/usr/libexec/oci/hooks.d/oci-nvidia-hook", &[]);
            assert_eq!(with(wrapper, moment), Severity::Warning);
            assert_eq!(
                with(hook("createContainer", "/bin/sh", &["sh", "/opt/site-GPU.sh"]), moment),
                Severity::Warning
            );
            assert_eq!(with(hook("createRuntime", "/usr/bin/gpu-preflight-hook", &[]), moment), Severity::Error);
            assert_eq!(
                with(hook("createRuntime", "/usr/bin/env", &["env", "gpu-preflight-hook"]), moment),
                Severity::Error
            );
            assert_eq!(with(hook("prestart", "/usr/bin/nvidia-container-runtime-hook", &[]), moment), Severity::Error);
            assert_eq!(with(hook("poststop", "/opt/gpu-accounting", &[]), moment), Severity::Error);
            assert_eq!(with(hook("prestart", "/usr/bin/netavark", &[]), moment), Severity::Error);
        }
    }

    #[test]
    fn what_a_mount_on_dev_brings_is_not_foretold() {
        let mut world = World::asking("all");
        world.container.moment = Moment::NotStarted;
        for (source, destination) in [("/run/nvidia/driver/dev/nvidia0", "/dev/nvidia0"), ("/srv/dev", "/dev")] {
            let mount = Mount { destination: destination.into(), source: source.into(), ..Mount::default() };
            world.container.mounts = Observed::Known(Parts::whole(vec![mount]));
            world.unknown(ID);
        }
        let tmpfs = Mount { destination: "/dev".into(), source: "tmpfs".into(), ..Mount::default() };
        world.container.mounts = Observed::Known(Parts::whole(vec![tmpfs]));
        assert_eq!(severity(&world), Severity::Error);
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
