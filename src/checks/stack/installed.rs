//! The toolkit is not there, or half of it.

use super::is_native_with_gpu;
use super::ways::{self, Mechanism};
use crate::checks::not_applicable;
use crate::checks::request::asked::has_legacy_hook;
use crate::knowledge::toolkit::{base_name, is_where_programs_are};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::{Facts, Unknown};

const NO_TOOLKIT: &str = "{engine} is installed and this machine has a GPU, but nothing hands it to containers: no \
                          program of the NVIDIA Container Toolkit, no CDI specification";
const NO_CLI: &str = "nvidia-container-cli is absent, and {hook} calls it to bring the GPU into the container";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "toolkit-not-installed",
        title: "the NVIDIA Container Toolkit is not installed",
        why: "The engine cannot select a device driver with the capability gpu, and no container gets a GPU.",
        messages: &[NO_TOOLKIT],
        remedy: &[
            Step {
                action: Action::ChangePackages,
                text: "Install the package nvidia-container-toolkit.",
                command: None,
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Then register it with {engine}, and restart {engine}.",
                command: Some("{register}"),
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host],
        judge: toolkit_not_installed,
    },
    Check {
        id: "nvidia-container-cli-missing",
        title: "NVIDIA's hook is there and the tool that it calls is not",
        why: "Every start of a container that gets its GPU by the hook fails.",
        messages: &[NO_CLI],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Install the package libnvidia-container-tools.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: cli_missing,
    },
];

fn toolkit_not_installed(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let Some(engine) = host.engines.iter().find(|e| !ways::may_be_gone(e)) else { return not_applicable() };
    if !is_native_with_gpu(host)? {
        return not_applicable();
    }
    if !host.toolkit.programs.known()?.is_empty()
        || host.toolkit_release().is_some()
        || host.toolkit.predecessor.is_some()
    {
        return Ok(Outcome::Pass);
    }
    // what a registered runtime lacks, `default-runtime-binary-missing` says
    if host.engines.iter().any(|e| ways::registered_runtime(e).is_some()) {
        return not_applicable();
    }
    if host.cdi.known()?.iter().any(ways::gives_gpus) {
        return Ok(Outcome::Pass);
    }
    let engine = engine.kind.name();
    let register = match engine {
        "podman" => "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml".to_owned(),
        _ => format!("nvidia-ctk runtime configure --runtime={engine}"),
    };
    Failure::new(Severity::Error, NO_TOOLKIT).arg("engine", engine).arg("register", register).found()
}

fn cli_missing(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if facts.place == Place::Host {
        if !is_native_with_gpu(host)? || !ways::has_hook(host)? {
            return not_applicable();
        }
        if ways::has_cli(host)? {
            return Ok(Outcome::Pass);
        }
        let alone = ways::runtime_works_alone(host);
        let severity = ways::severity(&ways::of(host)?, |way| match way.mechanism {
            Mechanism::Cdi => false,
            Mechanism::Runtime => !alone,
            Mechanism::Hook => true,
        });
        return Failure::new(severity, NO_CLI).arg("hook", "NVIDIA's hook").found();
    }
    let container = facts.container;
    let Some(hook) = &container.legacy_hook else { return not_applicable() };
    if !has_legacy_hook(container)? || !container.legacy_still_to_run() {
        return not_applicable();
    }
    // the hook itself does not look for programs; the command line program does
    let Some(programs) = host.toolkit.programs.seen() else { return not_applicable() };
    if programs.contains_key("nvidia-container-cli") {
        return Ok(Outcome::Pass);
    }
    if let Some(path) = host.toolkit.config.seen().and_then(|config| config.as_ref()?.cli_path.as_deref()) {
        return Err(Unknown::new(
            "host.toolkit.programs",
            path,
            "the tool is configured to lie there, and nobody looked",
        ));
    }
    if !programs.contains_key(base_name(&hook.path)) || !is_where_programs_are(&hook.path) {
        let reason = format!("{} is not among the programs seen, so others may lie elsewhere too", hook.path);
        return Err(Unknown::new("host.toolkit.programs", "/usr/bin", reason));
    }
    Failure::new(Severity::Error, NO_CLI).foreign("hook", &hook.path).found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, cdi_spec, unseen};
    use crate::model::container::LegacyState;
    use crate::model::host::{Platform, ToolkitConfig};
    use crate::model::{Observed, Severity};

    const TOOLKIT: &str = "toolkit-not-installed";
    const CLI: &str = "nvidia-container-cli-missing";

    fn without_toolkit() -> World {
        let mut world = World::machine(1);
        world.host.toolkit.programs = Observed::Known([].into());
        world.host.toolkit.version = Observed::Known(None);
        world.host.engines[0].runtimes.clear();
        world
    }

    fn remove(world: &mut World, program: &str) {
        let Observed::Known(programs) = &mut world.host.toolkit.programs else { panic!() };
        programs.remove(program);
    }

    #[test]
    fn an_engine_and_a_gpu_and_nothing_between_is_an_error() {
        assert_eq!(without_toolkit().failure(TOOLKIT).severity, Severity::Error);
    }

    #[test]
    fn a_package_a_program_a_specification_or_no_need_is_fine() {
        World::machine(1).silent(TOOLKIT);
        let mut world = without_toolkit();
        world.host.toolkit.version = Observed::Known(Some("1.17.8".parse().unwrap()));
        world.silent(TOOLKIT);
        let mut world = without_toolkit();
        world.host.cdi = Observed::Known(vec![cdi_spec()]);
        world.silent(TOOLKIT);
        let mut world = without_toolkit();
        world.host.platform = Platform::Wsl;
        world.silent(TOOLKIT);
        let mut world = without_toolkit();
        world.host.engines.clear();
        world.silent(TOOLKIT);
        let mut world = without_toolkit();
        world.host.gpus = Observed::Known(vec![]);
        world.host.pci = Observed::Known(vec![]);
        world.silent(TOOLKIT);
    }

    #[test]
    fn a_hook_without_its_tool_is_an_error_unless_another_way_is_left() {
        let mut world = World::machine(1);
        world.silent(CLI);
        remove(&mut world, "nvidia-container-cli");
        assert_eq!(world.failure(CLI).severity, Severity::Error);
        world.host.cdi = Observed::Known(vec![cdi_spec()]);
        assert_eq!(world.failure(CLI).severity, Severity::Warning);
        world.host.cdi = Observed::Known(vec![]);
        world.host.toolkit.version = Observed::Known(Some("1.18.0".parse().unwrap()));
        assert_eq!(world.failure(CLI).severity, Severity::Warning);
        remove(&mut world, "nvidia-container-runtime-hook");
        world.silent(CLI);
    }

    #[test]
    fn a_container_that_needs_the_tool_fails() {
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.silent(CLI);
        remove(&mut world, "nvidia-container-cli");
        assert_eq!(world.failure(CLI).severity, Severity::Error);
        let mut configured = world.clone();
        let config = ToolkitConfig { cli_path: Some("/srv/nvidia-container-cli".into()), ..ToolkitConfig::default() };
        configured.host.toolkit.config = Observed::Known(Some(config));
        configured.unknown(CLI);
        remove(&mut world, "nvidia-container-runtime-hook");
        world.unknown(CLI);
        let mut world = World::cdi(1);
        remove(&mut world, "nvidia-container-cli");
        world.silent(CLI);
        let mut world = World::legacy(1, LegacyState::HasRun);
        remove(&mut world, "nvidia-container-cli");
        world.silent(CLI);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = without_toolkit();
        world.host.toolkit.programs = unseen();
        world.unknown(TOOLKIT);
        world.unknown(CLI);
        let mut world = without_toolkit();
        world.host.cdi = unseen();
        world.unknown(TOOLKIT);
    }
}
