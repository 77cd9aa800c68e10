//! Parts of the driver that the container's work needs and `NVIDIA_DRIVER_CAPABILITIES` leaves out.

use super::asked::{has_legacy_hook, reads_variables};
use crate::checks::{cuda, not_applicable};
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::{require, toolkit, variables};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::Given;
use crate::model::host::Platform;
use crate::model::{Facts, Host};

const STATED: &str = "NVIDIA_DRIVER_CAPABILITIES={value} lacks compute: NVIDIA's hook brings neither libcuda nor \
                      /dev/nvidia-uvm, so CUDA cannot start";
const MAY_BE_MEANT: &str = "NVIDIA_DRIVER_CAPABILITIES={value} lacks compute: NVIDIA's hook brings neither libcuda \
                            nor /dev/nvidia-uvm; monitors work, CUDA would not";
const UNSET: &str = "NVIDIA_DRIVER_CAPABILITIES is unset, which {toolkit} takes for utility: no libcuda, no \
                     /dev/nvidia-uvm";
const MACHINE: &str = "{toolkit} gives containers that set no NVIDIA_DRIVER_CAPABILITIES only utility, without CUDA";
const IGNORED: &str = "NVIDIA_DRIVER_CAPABILITIES={value} lacks compute; CDI does not use the variable, so CUDA works \
                       here and fails where NVIDIA's hook injects";
const ANOTHER_PART: &str = "{sign} speaks of {work} work, and NVIDIA_DRIVER_CAPABILITIES ({value}) lacks {word}: its libraries are not injected";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "capability-compute-missing",
        title: "the container asks NVIDIA's hook for a GPU without CUDA",
        why: "nvidia-smi works and shows no CUDA version; libcuda.so.1 cannot be opened.",
        messages: &[STATED, MAY_BE_MEANT, UNSET, MACHINE, IGNORED],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility (compose: capabilities: [gpu]).",
                command: None,
            },
            Step {
                action: Action::ChangePackages,
                text: "Update the NVIDIA Container Toolkit: from 1.4.0 on unset means compute,utility.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning, Severity::Note],
        places: &[Place::Hook, Place::Image, Place::Host, Place::Healthcheck],
        judge: compute_missing,
    },
    Check {
        id: "capability-video-missing",
        title: "video work is meant and the driver's video part is not asked for",
        why: "NVENC, NVDEC and VDPAU cannot be opened; CUDA itself works.",
        messages: &[ANOTHER_PART],
        remedy: &[Step {
            action: Action::ChangeEnvironment,
            text: "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility,video.",
            command: None,
        }],
        severities: &[Severity::Note],
        places: &[Place::Hook, Place::Image],
        judge: video_missing,
    },
    Check {
        id: "capability-graphics-missing",
        title: "graphics work is meant and the driver's graphics part is not asked for",
        why: "OpenGL and Vulkan do not see the GPU; CUDA itself works.",
        messages: &[ANOTHER_PART],
        remedy: &[Step {
            action: Action::ChangeEnvironment,
            text: "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics.",
            command: None,
        }],
        severities: &[Severity::Note],
        places: &[Place::Hook, Place::Image],
        judge: graphics_missing,
    },
];

fn compute_missing(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host {
        return machine(facts);
    }
    let container = facts.container;
    let by_cdi = *container.gpu_given.known()? == Given::Cdi;
    let by_hook = has_legacy_hook(container)? && reads_variables(container);
    // an image is judged as if a GPU were asked for
    let is_image = facts.place == Place::Image;
    let asked = container.wants_gpu.is_asked() || (is_image && facts.host.is_target()?);
    if !asked || !(by_cdi || by_hook) {
        return not_applicable();
    }
    let environment = container.environment.known()?;
    let capabilities = Capabilities::of(environment);
    if capabilities == Capabilities::Default {
        return if by_hook && is_of_utility_by_default(facts.host) {
            Failure::new(Severity::Warning, UNSET).arg("toolkit", toolkit::name_of_hook(&facts.host.toolkit)).found()
        } else {
            Ok(Outcome::Pass)
        };
    }
    if capabilities.allow_compute() {
        return Ok(Outcome::Pass);
    }
    let sign = cuda::sign(facts)?;
    // graphics or video by name, and no word of CUDA: the container knows what it needs
    if capabilities.name_another_use() && sign.is_none() {
        return not_applicable();
    }
    let value = environment.get("NVIDIA_DRIVER_CAPABILITIES").map_or("", String::as_str);
    let failure = |severity, message| {
        Failure::new(severity, message)
            .foreign("value", value)
            .saw("container.environment.NVIDIA_DRIVER_CAPABILITIES", value, "config.json")
            .only(&[Action::ChangeEnvironment])
    };
    if by_cdi {
        return failure(Severity::Note, IGNORED).found();
    }
    // utility alone is what monitors ask for; a scheduler's own (device plugins, exporters) above all,
    // and these switch the image's requirements off
    let may_be_a_monitor =
        container.scheduler.is_some() || require::is_disabled(environment) || cuda::only_monitors(container);
    match sign {
        // whoever starts an image can still say what it needs
        Some((fact, value, source)) if !capabilities.name_another_use() && !may_be_a_monitor && !is_image => {
            failure(Severity::Error, STATED).saw(fact, value, source).found()
        }
        _ => failure(Severity::Warning, MAY_BE_MEANT).found(),
    }
}

fn machine(facts: &Facts<'_>) -> Judgement {
    if facts.host.platform != Platform::Native || !facts.host.has_gpu()? {
        return not_applicable();
    }
    if is_of_utility_by_default(facts.host) {
        Failure::new(Severity::Warning, MACHINE).arg("toolkit", toolkit::name_of_hook(&facts.host.toolkit)).found()
    } else {
        Ok(Outcome::Pass)
    }
}

/// The hook takes an unset variable for `utility`. A toolkit of unknown release is taken for one of the last years.
fn is_of_utility_by_default(host: &Host) -> bool {
    toolkit::hook_is_older(&host.toolkit, toolkit::COMPUTE_BY_DEFAULT) == Ok(Some(true))
}

fn video_missing(facts: &Facts<'_>) -> Judgement {
    another_part(facts, "video", variables::video_work, &["video"])
}

fn graphics_missing(facts: &Facts<'_>) -> Judgement {
    another_part(facts, "graphics", variables::graphics_work, &["graphics", "display"])
}

type Word = fn(&std::collections::BTreeMap<String, String>) -> Option<&'static str>;

fn another_part(facts: &Facts<'_>, work: &'static str, sign: Word, words: &[&'static str]) -> Judgement {
    if !has_legacy_hook(facts.container)? || !reads_variables(facts.container) {
        return not_applicable();
    }
    let environment = facts.container.environment.known()?;
    let Some(sign) = sign(environment) else { return not_applicable() };
    let capabilities = Capabilities::of(environment);
    if words.iter().any(|word| capabilities.names(word)) {
        return Ok(Outcome::Pass);
    }
    let value = environment.get("NVIDIA_DRIVER_CAPABILITIES").map_or("unset", String::as_str);
    Failure::new(Severity::Note, ANOTHER_PART)
        .arg("sign", sign)
        .arg("work", work)
        .arg("word", work)
        .foreign("value", value)
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{Given, LegacyState, Scheduler, Strength, Wants};
    use crate::model::observed::NOT_STATED;
    use crate::model::{Host, Observed, Place, Severity};

    const COMPUTE: &str = "capability-compute-missing";
    const VIDEO: &str = "capability-video-missing";
    const GRAPHICS: &str = "capability-graphics-missing";

    fn with(value: &str) -> World {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.set("NVIDIA_DRIVER_CAPABILITIES", value);
        world
    }

    fn toolkit(world: &mut World, release: &str) {
        world.host.toolkit.version = Observed::Known(Some(release.parse().unwrap()));
    }

    #[test]
    fn utility_alone_is_an_error_where_something_speaks_of_cuda() {
        for value in ["utility", "utility,compat32"] {
            let mut framework = with(value);
            framework.image.cuda = Observed::Known(Some("/usr/local/cuda/lib64".into()));
            let mut image = with(value);
            image.set("NVIDIA_REQUIRE_CUDA", "cuda>=12.4");
            let mut demanded = with(value);
            demanded.container.wants_gpu.strength = Strength::Demand;
            for world in [framework, image, demanded] {
                assert_eq!(world.short(COMPUTE).severity, Severity::Error, "{value}");
            }
        }
    }

    #[test]
    fn monitors_ask_for_utility_alone_and_work() {
        for value in ["utility", "utility,compat32"] {
            let mut world = with(value);
            assert_eq!(world.short(COMPUTE).severity, Severity::Warning, "{value}");
            world.image.cuda = unseen();
            assert_eq!(world.failure(COMPUTE).severity, Severity::Warning, "{value}");
        }
        for value in ["compute", "all", "compute,utility", "utility,compute,video", ""] {
            with(value).silent(COMPUTE);
        }
    }

    #[test]
    fn graphics_alone_is_chosen_and_beside_cuda_a_warning() {
        let mut world = with("graphics,utility");
        world.silent(COMPUTE);
        world.image.cuda = unseen();
        world.silent(COMPUTE);
        world.image.cuda = Observed::Known(Some("/usr/local/cuda/lib64".into()));
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
        world.image.cuda = Observed::default();
        world.set("CUDA_VERSION", "12.4.1");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
    }

    #[test]
    fn what_may_be_a_monitor_is_a_warning() {
        let with = |value| {
            let mut world = with(value);
            world.image.cuda = Observed::Known(Some("/usr/local/cuda/lib64".into()));
            world
        };
        let mut world = with("utility");
        world.container.scheduler = Some(Scheduler::Kubernetes);
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
        let mut world = with("utility");
        world.set("NVIDIA_DISABLE_REQUIRE", "true");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
        let mut world = with("utility");
        world.set("CUDA_VERSION", "12.4.1");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Error);
        world.container.args = Observed::Known(vec!["nvidia-smi".into(), "-l".into()]);
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
    }

    #[test]
    fn windows_libraries_come_by_the_hook_too() {
        let mut world = with("utility");
        world.image.cuda = Observed::Known(Some("/usr/local/cuda/lib64".into()));
        world.container.gpu_given = Observed::Known(Given::Wsl);
        assert_eq!(world.failure(COMPUTE).severity, Severity::Error);
        world.container.legacy_hook = None;
        world.silent(COMPUTE);
    }

    #[test]
    fn unset_depends_on_the_toolkits_release() {
        let mut world = with("");
        toolkit(&mut world, "1.3.0");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
        toolkit(&mut world, "1.4.0");
        world.silent(COMPUTE);
        world.host.toolkit.predecessor = Some("1.4.0".parse().unwrap());
        let failure = world.failure(COMPUTE);
        assert_eq!(failure.severity, Severity::Warning);
        let (_, check) = crate::checks::find(COMPUTE).unwrap();
        let words = crate::checks::testing::words(check, &failure);
        assert!(words.contains("nvidia-container-runtime-hook 1.4.0 takes"), "{words}");
        world.host.toolkit.predecessor = None;
        toolkit(&mut world, "1.3.0");
        world.set("CUDA_VERSION", "9.0.176");
        world.unset("NVIDIA_DRIVER_CAPABILITIES");
        world.silent(COMPUTE);
    }

    #[test]
    fn an_image_is_judged_for_a_driver_alone_too() {
        let mut world = World { place: Place::Image, ..with("utility") };
        world.container.wants_gpu = Wants::default();
        world.host = Host::unseen("the command line", NOT_STATED);
        world.host.driver.version = Observed::Known(Some("580.95.05".parse().unwrap()));
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
    }

    #[test]
    fn cdi_does_not_use_the_variable() {
        let mut world = World::cdi(1);
        world.silent(COMPUTE);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "utility");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Note);
        World::asking("all").silent(COMPUTE);
    }

    #[test]
    fn a_machine_with_an_old_toolkit_is_a_warning() {
        let mut world = World::machine(1);
        world.silent(COMPUTE);
        toolkit(&mut world, "1.3.0");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
        world.host.gpus = unseen();
        world.host.pci = unseen();
        world.unknown(COMPUTE);
    }

    #[test]
    fn other_parts_are_notes_where_the_environment_speaks_of_them() {
        let mut world = with("compute,utility");
        world.silent(VIDEO);
        world.silent(GRAPHICS);
        world.set("OLLAMA_VULKAN", "1");
        world.set("LIBVA_DRIVER_NAME", "nvidia");
        assert_eq!(world.failure(VIDEO).severity, Severity::Note);
        assert_eq!(world.failure(GRAPHICS).severity, Severity::Note);
        world.set("NVIDIA_DRIVER_CAPABILITIES", "all");
        world.silent(VIDEO);
        world.silent(GRAPHICS);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        for id in [COMPUTE, VIDEO, GRAPHICS] {
            let mut world = with("utility");
            world.container.environment = unseen();
            world.unknown(id);
            let mut world = with("utility");
            world.container.gpu_given = unseen();
            world.unknown(id);
        }
    }
}
