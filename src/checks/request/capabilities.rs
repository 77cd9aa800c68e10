//! Parts of the driver that the container's work needs and `NVIDIA_DRIVER_CAPABILITIES` leaves out.

use super::asked::{has_legacy_hook, reads_variables};
use crate::checks::not_applicable;
use crate::knowledge::driver_capabilities::{Capabilities, speaks_of_cuda};
use crate::knowledge::{require, toolkit, variables};
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, Strength};
use crate::model::host::Platform;

const STATED: &str = "NVIDIA_DRIVER_CAPABILITIES={value} lacks compute: NVIDIA's hook brings neither libcuda nor \
                      /dev/nvidia-uvm, so CUDA cannot start";
const UNSET: &str = "NVIDIA_DRIVER_CAPABILITIES is unset, which NVIDIA Container Toolkit {toolkit} takes for utility: \
                     no libcuda, no /dev/nvidia-uvm";
const MACHINE: &str = "NVIDIA Container Toolkit {toolkit} gives containers that set no NVIDIA_DRIVER_CAPABILITIES \
                       only utility, without CUDA";
const IGNORED: &str = "NVIDIA_DRIVER_CAPABILITIES={value} lacks compute; CDI does not use the variable, so CUDA works \
                       here and fails where NVIDIA's hook injects";
const ANOTHER_PART: &str = "{sign} speaks of {work} work, and NVIDIA_DRIVER_CAPABILITIES ({value}) lacks {word}: its libraries are not injected";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "capability-compute-missing",
        title: "the container asks NVIDIA's hook for a GPU without CUDA",
        why: "nvidia-smi works and shows no CUDA version; libcuda.so.1 cannot be opened.",
        messages: &[STATED, UNSET, MACHINE, IGNORED],
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
        places: &[Place::Hook, Place::Host],
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
        places: &[Place::Hook],
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
        places: &[Place::Hook],
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
    if !container.wants_gpu.wanted || !(by_cdi || by_hook) {
        return not_applicable();
    }
    let environment = container.environment.known()?;
    let capabilities = Capabilities::of(environment);
    if capabilities == Capabilities::Default {
        return match facts.host.toolkit_release() {
            Some(release) if by_hook && toolkit::older(release, toolkit::COMPUTE_BY_DEFAULT) => {
                Failure::new(Severity::Warning, UNSET).foreign("toolkit", release.as_str()).found()
            }
            _ => Ok(Outcome::Pass),
        };
    }
    if capabilities.allow_compute() {
        return Ok(Outcome::Pass);
    }
    // graphics or video by name, and no word of CUDA: the container knows what it needs
    let means_cuda = speaks_of_cuda(environment) || container.wants_gpu.strength == Strength::Demand;
    if capabilities.name_another_use() && !means_cuda {
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
    // utility alone is what monitors ask for, in any image (docker's own example is `--gpus
    // 'all,capabilities=utility' ubuntu nvidia-smi`); a scheduler's own (device plugins, exporters) above
    // all, and these switch the image's requirements off
    let may_be_a_monitor = !means_cuda || container.scheduler.is_some() || require::is_disabled(environment);
    let severity =
        if capabilities.name_another_use() || may_be_a_monitor { Severity::Warning } else { Severity::Error };
    failure(severity, STATED).found()
}

fn machine(facts: &Facts<'_>) -> Judgement {
    if facts.host.platform != Platform::Native || !facts.host.has_gpu()? {
        return not_applicable();
    }
    match facts.host.toolkit_release() {
        Some(release) if toolkit::older(release, toolkit::COMPUTE_BY_DEFAULT) => {
            Failure::new(Severity::Warning, MACHINE).foreign("toolkit", release.as_str()).found()
        }
        _ => Ok(Outcome::Pass),
    }
}

fn video_missing(facts: &Facts<'_>) -> Judgement {
    another_part(facts, "video", variables::video_work, &["video"])
}

fn graphics_missing(facts: &Facts<'_>) -> Judgement {
    another_part(facts, "graphics", variables::graphics_work, &["graphics", "display"])
}

type Sign = fn(&std::collections::BTreeMap<String, String>) -> Option<&'static str>;

fn another_part(facts: &Facts<'_>, work: &'static str, sign: Sign, words: &[&'static str]) -> Judgement {
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
    use crate::model::container::{Given, LegacyState, Scheduler, Strength};
    use crate::model::{Observed, Severity};

    const COMPUTE: &str = "capability-compute-missing";
    const VIDEO: &str = "capability-video-missing";
    const GRAPHICS: &str = "capability-graphics-missing";

    fn with(value: &str) -> World {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.set("NVIDIA_DRIVER_CAPABILITIES", value);
        world
    }

    fn cuda_image(value: &str) -> World {
        let mut world = with(value);
        world.set("CUDA_VERSION", "12.4.1");
        world
    }

    fn toolkit(world: &mut World, release: &str) {
        world.host.toolkit.version = Observed::Known(Some(release.parse().unwrap()));
    }

    #[test]
    fn utility_alone_is_an_error_for_a_cuda_image() {
        for value in ["utility", "utility,compat32"] {
            assert_eq!(cuda_image(value).failure(COMPUTE).severity, Severity::Error, "{value}");
        }
        for value in ["compute", "all", "compute,utility", "utility,compute,video", ""] {
            with(value).silent(COMPUTE);
        }
    }

    #[test]
    fn graphics_alone_is_chosen_and_beside_cuda_a_warning() {
        let mut world = with("graphics,utility");
        world.silent(COMPUTE);
        world.set("CUDA_VERSION", "12.4.1");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
    }

    #[test]
    fn what_may_be_a_monitor_is_a_warning() {
        let mut world = with("utility");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
        world.container.wants_gpu.strength = Strength::Demand;
        assert_eq!(world.failure(COMPUTE).severity, Severity::Error);
        let mut world = cuda_image("utility");
        world.container.scheduler = Some(Scheduler::Kubernetes);
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
        let mut world = cuda_image("utility");
        world.set("NVIDIA_DISABLE_REQUIRE", "true");
        assert_eq!(world.failure(COMPUTE).severity, Severity::Warning);
    }

    #[test]
    fn windows_libraries_come_by_the_hook_too() {
        let mut world = cuda_image("utility");
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
        toolkit(&mut world, "1.3.0");
        world.set("CUDA_VERSION", "9.0.176");
        world.silent(COMPUTE);
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
