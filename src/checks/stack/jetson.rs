//! Jetson: its integrated GPU comes by NVIDIA's runtime and lists of files, not by the hook.

use crate::checks::not_applicable;
use crate::knowledge::toolkit::older;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, Strength};
use crate::model::host::Platform;
use crate::model::{Facts, Host, Release};

const BY_HOOK: &str =
    "the container gets its GPU by NVIDIA's hook (--gpus), which refuses to work on Jetson Linux {l4t}";
const NOT_AT_ALL: &str = "the container asks for a GPU ({why}), and on Jetson only NVIDIA's runtime gives it one";
const L4T: &str =
    "the image is for Jetson Linux {image} and this machine runs {host}, whose driver files do not fit it";
const WRONG_BUILD: &str = "NVIDIA Container Toolkit {toolkit} looks for NVML, which Jetson Linux {l4t} does not have; JetPack's own build does not";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "jetson-use-runtime",
        title: "on Jetson the container is started without NVIDIA's runtime",
        why: "The start fails, or the container has neither the nodes nor the libraries of the integrated GPU.",
        messages: &[BY_HOOK, NOT_AT_ALL],
        remedy: &[
            Step { action: Action::PassGpu, text: "Start it with --runtime nvidia.", command: None },
            Step {
                action: Action::ChangeEnvironment,
                text: "For work on the CPU set NVIDIA_VISIBLE_DEVICES=void.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook],
        judge: use_runtime,
    },
    Check {
        id: "jetson-l4t-mismatch",
        title: "the image is for another generation of Jetson Linux",
        why: "The host's driver files are mounted into the image and do not fit its libraries.",
        messages: &[L4T],
        remedy: &[Step {
            action: Action::ChangeImage,
            text: "Use the image's tag for Jetson Linux {host}.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: l4t_mismatch,
    },
    Check {
        id: "jetson-wrong-toolkit-build",
        title: "JetPack's container packages were replaced by NVIDIA's general ones",
        why: "Every start of a container with a GPU fails: libnvidia-ml.so.1 cannot be opened.",
        messages: &[WRONG_BUILD],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Install the packages of JetPack's repository again.",
            command: Some("apt-get install --reinstall nvidia-container"),
        }],
        severities: &[Severity::Error],
        places: &[Place::Hook, Place::Host],
        judge: wrong_toolkit_build,
    },
];

/// The first generation whose toolkit works by lists of files in the runtime, and whose hook refuses
/// (`JetPack` 5, toolkit 1.10). Before, the hook was the way.
const RUNTIME_SINCE: &str = "34";

fn use_runtime(facts: &Facts<'_>) -> Judgement {
    let (host, container) = (facts.host, facts.container);
    if host.platform != Platform::Tegra || !container.wants_gpu.is_asked() {
        return not_applicable();
    }
    match *container.gpu_given.known()? {
        Given::LegacyHook if container.legacy_still_to_run() => {}
        Given::None if container.wants_gpu.strength == Strength::Environment && container.builder.is_none() => {
            return Failure::new(Severity::Warning, NOT_AT_ALL).foreign("why", &container.wants_gpu.why).found();
        }
        _ => return not_applicable(),
    }
    let l4t = release(host);
    if l4t.as_ref().is_some_and(|l4t| older(l4t, RUNTIME_SINCE)) {
        return Ok(Outcome::Pass);
    }
    let config = host.toolkit.config.known()?.as_ref();
    let legacy = config.is_some_and(|c| c.mode.as_deref() == Some("legacy") || c.skip_mode_detection == Some(true));
    let severity = if l4t.is_none() || legacy { Severity::Warning } else { Severity::Error };
    Failure::new(severity, BY_HOOK).foreign("l4t", host.l4t.as_deref().unwrap_or("of unknown release")).found()
}

fn l4t_mismatch(facts: &Facts<'_>) -> Judgement {
    let asked = facts.container.wants_gpu.is_asked() || facts.place == Place::Image;
    if facts.host.platform != Platform::Tegra || !asked {
        return not_applicable();
    }
    let Some(image) = facts.container.variable("L4T_VERSION")? else { return not_applicable() };
    let (Some(of_image), Some(of_host)) = (image.parse::<Release>().ok(), release(facts.host)) else {
        return not_applicable();
    };
    // 34 was the preview of 35
    let generation = |release: &Release| if release.number(0) == 34 { 35 } else { release.number(0) };
    let (image_major, host_major) = (generation(&of_image), generation(&of_host));
    if image_major == host_major {
        return Ok(Outcome::Pass);
    }
    // up to 32 images take CUDA itself from the host; later ones bring it, and need only a driver that is
    // new enough
    let certain = image_major > host_major || image_major <= LAST_WITH_CUDA_OF_HOST;
    Failure::new(if certain { Severity::Error } else { Severity::Warning }, L4T)
        .foreign("image", image)
        .foreign("host", of_host.as_str())
        .saw("container.environment.L4T_VERSION", image, "config.json")
        .saw("host.l4t", of_host.as_str(), "/etc/nv_tegra_release")
        .found()
}

/// NVIDIA L4T Base image, NGC: "the CUDA toolkit is mounted from the host" up to r32.
const LAST_WITH_CUDA_OF_HOST: u32 = 32;

/// libnvidia-container loads `JetPack`'s part from 1.7.0 on (its CHANGELOG), which `JetPack` 4.6.1 (Jetson
/// Linux 32.7) ships itself. What is between that and `JetPack`'s 1.0 is the general build
/// (libnvidia-container issue 135, 2021-04-16).
fn wrong_toolkit_build(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if host.platform != Platform::Tegra {
        return not_applicable();
    }
    let on_machine = facts.place == Place::Host;
    if !on_machine && !facts.container.wants_gpu.is_asked() {
        return not_applicable();
    }
    let Some(l4t) = release(host) else { return not_applicable() };
    if !older(&l4t, "32.7") {
        return Ok(Outcome::Pass);
    }
    // the hook itself does not look into package databases; the command line program does
    let toolkit = if on_machine { host.toolkit.version.known()?.as_ref() } else { host.toolkit_release() };
    let Some(toolkit) = toolkit else { return not_applicable() };
    if older(toolkit, "1.1") || !older(toolkit, "1.7.0") {
        return Ok(Outcome::Pass);
    }
    Failure::new(Severity::Error, WRONG_BUILD)
        .foreign("toolkit", toolkit.as_str())
        .foreign("l4t", l4t.as_str())
        .saw("host.toolkit.version", toolkit, "package database")
        .saw("host.l4t", l4t.as_str(), "/etc/nv_tegra_release")
        .found()
}

fn release(host: &Host) -> Option<Release> {
    host.l4t.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{Given, LegacyState};
    use crate::model::host::Platform;
    use crate::model::{Observed, Severity};

    const RUNTIME: &str = "jetson-use-runtime";
    const L4T: &str = "jetson-l4t-mismatch";
    const BUILD: &str = "jetson-wrong-toolkit-build";

    fn jetson(mut world: World, l4t: &str) -> World {
        world.host.platform = Platform::Tegra;
        world.host.l4t = Some(l4t.into());
        world
    }

    #[test]
    fn the_hook_is_an_error_and_a_mere_wish_a_warning() {
        let hook = || World::legacy(0, LegacyState::StillToRun);
        assert_eq!(jetson(hook(), "36.5.0").failure(RUNTIME).severity, Severity::Error);
        jetson(hook(), "32.7.4").silent(RUNTIME);
        let mut unknown = jetson(hook(), "36.5.0");
        unknown.host.l4t = None;
        assert_eq!(unknown.failure(RUNTIME).severity, Severity::Warning);
        assert_eq!(jetson(World::asking("all"), "38.2.0").failure(RUNTIME).severity, Severity::Warning);
    }

    #[test]
    fn by_the_runtime_or_elsewhere_it_is_fine() {
        let mut given = jetson(World::asking("all"), "36.4.3");
        given.container.gpu_given = Observed::Known(Given::Tegra);
        given.silent(RUNTIME);
        World::legacy(1, LegacyState::StillToRun).silent(RUNTIME);
        jetson(World::plain(), "36.4.3").silent(RUNTIME);
        given.container.gpu_given = unseen();
        given.unknown(RUNTIME);
        let mut world = jetson(World::legacy(0, LegacyState::StillToRun), "36.5.0");
        world.host.toolkit.config = unseen();
        world.unknown(RUNTIME);
    }

    #[test]
    fn generations_of_jetson_linux_do_not_mix() {
        for (image, host, severity) in [
            ("36.2.0", "32.7.4", Some(Severity::Error)),
            ("32.7.1", "35.4.1", Some(Severity::Error)),
            ("35.4.1", "36.4.3", Some(Severity::Warning)),
            ("36.2.0", "36.4.3", None),
            ("35.4.1", "34.1.1", None),
            ("latest", "36.4.3", None),
        ] {
            let mut world = jetson(World::asking("all"), host);
            world.set("L4T_VERSION", image);
            match severity {
                Some(severity) => assert_eq!(world.failure(L4T).severity, severity, "{image} on {host}"),
                None => world.silent(L4T),
            }
        }
        let mut world = jetson(World::asking("all"), "36.4.3");
        world.silent(L4T);
        world.container.environment = unseen();
        world.unknown(L4T);
    }

    #[test]
    fn the_general_build_of_that_time_fails_on_jetpack_4() {
        for world in [World::machine(0), World::asking("all")] {
            for (l4t, toolkit, fails) in [
                ("32.5.1", "1.3.3", true),
                ("32.5.1", "1.0.1", false),
                ("32.7.4", "1.7.0", false),
                ("36.4", "1.3.3", false),
            ] {
                let mut world = jetson(world.clone(), l4t);
                world.host.toolkit.version = Observed::Known(Some(toolkit.parse().unwrap()));
                if fails {
                    world.failure(BUILD);
                } else {
                    world.silent(BUILD);
                }
            }
        }
        let mut world = jetson(World::machine(0), "32.5.1");
        world.host.toolkit.version = unseen();
        world.unknown(BUILD);
    }
}
