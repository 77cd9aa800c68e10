//! No CDI specification where one is needed, or none that the engine would see.

use crate::checks::not_applicable;
use crate::checks::stack::{is_native_with_gpu, ways};
use crate::knowledge::toolkit::RUNTIME;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{Engine, EngineKind};

const MISSING: &str = "podman gives GPUs by CDI, and there is no CDI specification of NVIDIA's GPUs on this machine";
const NOT_ENABLED: &str = "docker is configured with features.cdi = false, and {spec} is the way to a GPU here";
const NOT_SEARCHED: &str = "{engine} searches {directories} for CDI specifications, and NVIDIA's is {spec}";

pub(in crate::checks::stack) const CHECKS: &[Check] = &[
    Check {
        id: "cdi-spec-missing",
        title: "there is no CDI specification for an engine that gives GPUs by CDI",
        why: "The engine cannot resolve nvidia.com/gpu=all.",
        messages: &[MISSING],
        remedy: &[Step {
            action: Action::RegenerateCdi,
            text: "Write the CDI specification while the driver is loaded.",
            command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host],
        judge: missing,
    },
    Check {
        id: "cdi-not-enabled-in-daemon",
        title: "CDI is switched off in the engine's configuration",
        why: "The engine cannot select a device driver cdi.",
        messages: &[NOT_ENABLED],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Set features.cdi to true in daemon.json, and restart docker.",
            command: Some("nvidia-ctk runtime configure --runtime=docker --cdi.enabled"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host],
        judge: not_enabled,
    },
    Check {
        id: "cdi-spec-dir-not-searched",
        title: "the CDI specification lies where the engine does not look",
        why: "The engine cannot resolve nvidia.com/gpu=all.",
        messages: &[NOT_SEARCHED],
        remedy: &[
            Step {
                action: Action::ConfigureEngine,
                text: "Add the directory of {spec} to {engine}'s CDI directories.",
                command: None,
            },
            Step {
                action: Action::RegenerateCdi,
                text: "Write the specification where {engine} looks.",
                command: Some("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
            },
        ],
        severities: &[Severity::Warning],
        places: &[Place::Host],
        judge: dir_not_searched,
    },
];

fn missing(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let is_podman = |e: &&Engine| e.kind == EngineKind::Podman && e.broken.is_none() && !ways::may_be_gone(e);
    let podman = host.engines.iter().find(is_podman);
    let Some(podman) = podman else { return not_applicable() };
    if !is_native_with_gpu(host)? {
        return not_applicable();
    }
    if host.cdi.known()?.iter().any(ways::gives_gpus) || ways::registered_runtime(podman).is_some() {
        return Ok(Outcome::Pass);
    }
    if super::at_boot::concerns(host) {
        return not_applicable();
    }
    let programs = host.toolkit.programs.known()?;
    // without any toolkit `toolkit-not-installed` speaks
    if programs.is_empty() {
        return not_applicable();
    }
    // NVIDIA's runtime can be named at the start, `podman --runtime`, without being registered
    let severity =
        if programs.contains_key(RUNTIME) { Severity::Warning } else { ways::severity(&ways::of(host)?, |_| false) };
    Failure::new(severity, MISSING).saw("host.cdi", "none of NVIDIA's GPUs", "/etc/cdi, /run/cdi").found()
}

fn not_enabled(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let Some(docker) = host.engines.iter().find(|e| e.kind == EngineKind::Docker && ways::is_installed(e)) else {
        return not_applicable();
    };
    if docker.cdi != Some(false) {
        return Ok(Outcome::Pass);
    }
    if !is_native_with_gpu(host)? {
        return not_applicable();
    }
    let specs = host.cdi.known()?;
    let Some(spec) = specs.iter().find(|s| ways::gives_gpus(s) && ways::is_searched(docker, s)) else {
        return Ok(Outcome::Pass);
    };
    let ways = ways::of(host)?;
    // docker has another way of its own: somebody chose it
    if ways.iter().any(|way| way.engine == docker) {
        return Ok(Outcome::Pass);
    }
    Failure::new(ways::severity(&ways, |_| false), NOT_ENABLED).foreign("spec", &spec.path).found()
}

fn dir_not_searched(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if !is_native_with_gpu(host)? {
        return not_applicable();
    }
    let specs = host.cdi.known()?;
    let Some(spec) = specs.iter().find(|s| ways::gives_gpus(s)) else { return not_applicable() };
    let blind = host.engines.iter().filter(|e| ways::is_installed(e)).find_map(|engine| {
        let directories = engine.cdi_spec_dirs.as_ref()?;
        let sees = specs.iter().any(|s| ways::gives_gpus(s) && ways::is_searched(engine, s));
        (!sees).then_some((engine, directories))
    });
    let Some((engine, directories)) = blind else { return Ok(Outcome::Pass) };
    let directories = if directories.is_empty() { "no directory".to_owned() } else { directories.join(", ") };
    Failure::new(Severity::Warning, NOT_SEARCHED)
        .arg("engine", engine.kind.name())
        .foreign("directories", directories)
        .foreign("spec", &spec.path)
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::stack::cdi::testing::spec;
    use crate::checks::testing::{World, unseen};
    use crate::model::host::{Engine, EngineKind, Platform};
    use crate::model::{Observed, Severity};

    const MISSING: &str = "cdi-spec-missing";
    const ENABLED: &str = "cdi-not-enabled-in-daemon";
    const SEARCHED: &str = "cdi-spec-dir-not-searched";

    fn with_podman() -> World {
        let mut world = World::machine(1);
        let podman = Engine {
            kind: EngineKind::Podman,
            path: "/usr/bin/podman".into(),
            runtimes: [].into(),
            ..world.host.engines[0].clone()
        };
        world.host.engines = vec![podman];
        world
    }

    fn only_ctk(world: &mut World) {
        world.host.toolkit.programs = Observed::Known([("nvidia-ctk".to_owned(), "/usr/bin/nvidia-ctk".into())].into());
    }

    #[test]
    fn podman_without_a_specification_has_no_way_unless_the_runtime_is_there() {
        let mut world = with_podman();
        assert_eq!(world.failure(MISSING).severity, Severity::Warning);
        only_ctk(&mut world);
        assert_eq!(world.failure(MISSING).severity, Severity::Error);
        world.host.cdi = Observed::Known(vec![spec("/etc/cdi/nvidia.yaml")]);
        world.silent(MISSING);
    }

    #[test]
    fn a_configuration_of_podman_alone_needs_none() {
        let mut world = with_podman();
        only_ctk(&mut world);
        world.host.engines[0].path = "/etc/containers/containers.conf".into();
        world.silent(MISSING);
        world.host.engines[0].cdi_spec_dirs = Some(vec!["/etc/cdi".into()]);
        world.host.cdi = Observed::Known(vec![spec("/run/cdi/nvidia.json")]);
        assert_eq!(world.failure(SEARCHED).severity, Severity::Warning);
    }

    #[test]
    fn other_engines_and_machines_need_none() {
        World::machine(1).silent(MISSING);
        let mut world = with_podman();
        world.host.platform = Platform::Wsl;
        world.silent(MISSING);
        let mut world = with_podman();
        world.host.engines[0].runtimes.insert("n".into(), "/usr/bin/nvidia-container-runtime".into());
        world.silent(MISSING);
        let mut world = with_podman();
        world.host.toolkit.programs = Observed::Known([].into());
        world.silent(MISSING);
    }

    #[test]
    fn docker_with_cdi_switched_off_and_nothing_else() {
        let mut world = World::machine(1);
        world.host.cdi = Observed::Known(vec![spec("/etc/cdi/nvidia.yaml")]);
        world.silent(ENABLED);
        world.host.engines[0].cdi = Some(false);
        world.silent(ENABLED);
        only_ctk(&mut world);
        assert_eq!(world.failure(ENABLED).severity, Severity::Error);
        world.host.cdi = unseen();
        world.unknown(ENABLED);
    }

    #[test]
    fn a_specification_outside_the_configured_directories_is_a_warning() {
        let mut world = with_podman();
        world.host.cdi = Observed::Known(vec![spec("/run/cdi/nvidia.yaml")]);
        world.silent(SEARCHED);
        world.host.engines[0].cdi_spec_dirs = Some(vec!["/etc/cdi".into()]);
        assert_eq!(world.failure(SEARCHED).severity, Severity::Warning);
        world.host.engines[0].cdi_spec_dirs = Some(vec!["/etc/cdi".into(), "/var/run/cdi".into()]);
        world.silent(SEARCHED);
        world.host.cdi = Observed::Known(vec![]);
        world.silent(SEARCHED);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = with_podman();
        world.host.cdi = unseen();
        world.unknown(MISSING);
        world.unknown(SEARCHED);
        let mut world = with_podman();
        world.host.toolkit.programs = unseen();
        world.unknown(MISSING);
    }
}
