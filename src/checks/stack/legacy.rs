//! NVIDIA's legacy hook is there and cannot do its work with this configuration or on this machine.

use super::is_native_with_gpu;
use super::ways::{self, Mechanism};
use crate::checks::not_applicable;
use crate::checks::request::asked::{has_legacy_hook, reads_variables};
use crate::knowledge::toolkit::{CGROUP_V2, CTK, older};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::EngineKind;
use crate::model::{Facts, Unknown};

const MODE: &str = "mode = {mode} in {config}: NVIDIA's hook, which docker --gpus calls by itself, refuses to work";
const TOO_OLD: &str =
    "NVIDIA Container Toolkit {toolkit} does not know cgroup v2, the only hierarchy here; {since} does";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "toolkit-mode-conflict",
        title: "the toolkit's mode does not go with the way in which containers get the GPU",
        why: "The start fails: invoking the NVIDIA Container Runtime Hook directly is not supported.",
        messages: &[MODE],
        remedy: &[
            Step {
                action: Action::PassGpu,
                text: "Start with --runtime=nvidia, or with --device nvidia.com/gpu=all.",
                command: None,
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Set the toolkit's mode to auto.",
                command: Some("nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto"),
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: mode_conflict,
    },
    Check {
        id: "toolkit-too-old-for-cgroup-v2",
        title: "the toolkit is too old for a machine with cgroup v2",
        why: "Every start of a container that gets its GPU by the hook fails: cgroup subsystem devices is missing.",
        messages: &[TOO_OLD],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Update the NVIDIA Container Toolkit from NVIDIA's repository, libnvidia-container1 included.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: too_old_for_cgroup_v2,
    },
];

/// The hook's work on this container is still to come.
pub(super) fn concerns(facts: &Facts<'_>) -> Result<bool, Unknown> {
    Ok(has_legacy_hook(facts.container)? && facts.container.legacy_still_to_run())
}

fn mode_conflict(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let on_machine = facts.place == Place::Host;
    let docker = |e: &&crate::model::host::Engine| e.kind == EngineKind::Docker && ways::is_installed(e);
    let asked = if on_machine {
        host.engines.iter().any(|e| docker(&e)) && is_native_with_gpu(host)? && ways::has_hook(host)?
    } else {
        // the hook of `ctr --gpus` is the tool itself, which knows no mode
        concerns(facts)? && reads_variables(facts.container)
    };
    if !asked {
        return not_applicable();
    }
    let Some(config) = host.toolkit.config.known()? else { return Ok(Outcome::Pass) };
    let Some(mode) = config.mode.as_deref().filter(|m| matches!(*m, "cdi" | "csv" | "jit-cdi")) else {
        return Ok(Outcome::Pass);
    };
    // NVIDIA's runtime takes the hook out again before it is called
    let removed = host.engines.iter().filter(docker).any(|engine| {
        let default = engine.default_runtime.as_ref().and_then(|name| engine.runtimes.get(name));
        default.is_some_and(|program| crate::knowledge::toolkit::is_runtime(program))
    });
    if config.skip_mode_detection == Some(true) || removed {
        return Ok(Outcome::Pass);
    }
    let severity = if on_machine {
        ways::severity(&ways::of(host)?, |way| way.mechanism == Mechanism::Hook)
    } else {
        Severity::Error
    };
    Failure::new(severity, MODE)
        .foreign("mode", mode)
        .foreign("config", &config.path)
        .saw("host.toolkit.config.mode", mode, &config.path)
        .found()
}

fn too_old_for_cgroup_v2(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let on_machine = facts.place == Place::Host;
    let asked = if on_machine { is_native_with_gpu(host)? } else { concerns(facts)? && !facts.container.rootless };
    if !asked {
        return not_applicable();
    }
    if host.cgroup_v2.seen() == Some(&false) {
        return Ok(Outcome::Pass);
    }
    // the hook itself does not look into package databases; the command line program does
    if on_machine && ways::is_older(host, CGROUP_V2, CTK)? != Some(true) {
        return Ok(Outcome::Pass);
    }
    let Some(release) = host.toolkit.libnvidia_container.as_ref().or(host.toolkit_release()) else {
        return not_applicable();
    };
    if !older(release, CGROUP_V2) || !*host.cgroup_v2.known()? {
        return Ok(Outcome::Pass);
    }
    if host.toolkit.config.known()?.as_ref().is_some_and(|c| c.no_cgroups == Some(true)) {
        return Ok(Outcome::Pass);
    }
    let severity = match on_machine {
        true if host.engines.is_empty() => Severity::Warning,
        true => ways::severity(&ways::of(host)?, |way| way.mechanism != Mechanism::Cdi),
        false => Severity::Error,
    };
    Failure::new(severity, TOO_OLD)
        .foreign("toolkit", release.as_str())
        .arg("since", CGROUP_V2)
        .saw("host.toolkit.version", release, "package database")
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::stack::testing::{both, with_spec, without_runtime};
    use crate::checks::testing::{World, unseen};
    use crate::model::host::ToolkitConfig;
    use crate::model::{Observed, Severity};

    const MODE: &str = "toolkit-mode-conflict";
    const CGROUP: &str = "toolkit-too-old-for-cgroup-v2";

    fn config(world: &mut World, change: impl Fn(&mut ToolkitConfig)) {
        let mut config =
            ToolkitConfig { path: "/etc/nvidia-container-runtime/config.toml".into(), ..ToolkitConfig::default() };
        change(&mut config);
        world.host.toolkit.config = Observed::Known(Some(config));
    }

    #[test]
    fn a_mode_that_the_hook_refuses() {
        for mut world in both() {
            world.silent(MODE);
            without_runtime(&mut world);
            config(&mut world, |c| c.mode = Some("cdi".into()));
            assert_eq!(world.failure(MODE).severity, Severity::Error);
            config(&mut world, |c| c.mode = Some("auto".into()));
            world.silent(MODE);
            config(&mut world, |c| {
                c.mode = Some("cdi".into());
                c.skip_mode_detection = Some(true);
            });
            world.silent(MODE);
            world.host.toolkit.config = unseen();
            world.unknown(MODE);
        }
    }

    #[test]
    fn on_a_machine_the_runtime_is_another_way_and_as_the_default_it_takes_the_hook_out() {
        let mut world = World::machine(1);
        config(&mut world, |c| c.mode = Some("cdi".into()));
        assert_eq!(world.failure(MODE).severity, Severity::Warning);
        world.host.engines[0].default_runtime = Some("nvidia".into());
        world.silent(MODE);
        World::cdi(1).silent(MODE);
    }

    #[test]
    fn an_old_toolkit_on_cgroup_v2() {
        for mut world in both() {
            world.host.toolkit.version = Observed::Known(Some("1.5.1".parse().unwrap()));
            world.silent(CGROUP);
            world.host.cgroup_v2 = Observed::Known(true);
            assert_eq!(world.failure(CGROUP).severity, Severity::Error);
            config(&mut world, |c| c.no_cgroups = Some(true));
            world.silent(CGROUP);
            world.host.toolkit.config = Observed::Known(None);
            world.host.cgroup_v2 = unseen();
            world.unknown(CGROUP);
            world.host.toolkit.libnvidia_container = Some("1.14.3".parse().unwrap());
            world.silent(CGROUP);
            world.host.toolkit.libnvidia_container = None;
            world.host.toolkit.version = Observed::Known(Some("1.8.0".parse().unwrap()));
            world.silent(CGROUP);
        }
        let mut world = World::machine(1);
        world.host.cgroup_v2 = Observed::Known(true);
        world.host.toolkit.version = unseen();
        world.silent(CGROUP);
        world.host.toolkit.programs = unseen();
        world.unknown(CGROUP);
        World::cdi(1).silent(CGROUP);
    }

    #[test]
    fn on_a_machine_cdi_is_another_way() {
        let mut world = World::machine(1);
        world.host.toolkit.version = Observed::Known(Some("1.5.1".parse().unwrap()));
        world.host.cgroup_v2 = Observed::Known(true);
        with_spec(&mut world);
        assert_eq!(world.failure(CGROUP).severity, Severity::Warning);
    }
}
