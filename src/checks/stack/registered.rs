//! NVIDIA's runtime is registered with another engine, or its program is gone.

use super::is_native_with_gpu;
use super::ways;
use crate::checks::not_applicable;
use crate::knowledge::toolkit::is_runtime;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{EngineName, Given};
use crate::model::host::{Engine, EngineKind};
use crate::model::own::{RUNTIME_NAME, is_our_runtime};
use crate::model::{Facts, Host, Unknown};

const ELSEWHERE: &str =
    "NVIDIA's runtime is registered with {other} and not with {engine}, whose configuration names other runtimes only";
const NOT_FOR_PODS: &str = "the container asks for a GPU ({why}), and {engine} is configured without NVIDIA's runtime";
const DEFAULT_GONE: &str =
    "{engine} starts every container with its default runtime {name}, whose program {program} is absent";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "runtime-not-registered",
        title: "NVIDIA's runtime is not registered with the engine that starts the containers",
        why: "Containers of this engine start without a GPU, or their runtime handler is unknown.",
        messages: &[ELSEWHERE, NOT_FOR_PODS],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Register NVIDIA's runtime with {engine}, and restart {engine}.",
            command: Some("nvidia-ctk runtime configure --runtime={engine}"),
        }],
        severities: &[Severity::Warning, Severity::Error],
        places: &[Place::Hook, Place::Host],
        judge: runtime_not_registered,
    },
    Check {
        id: "default-runtime-binary-missing",
        title: "the program of the engine's default runtime is absent",
        why: "No container of this engine starts, with or without a GPU.",
        messages: &[DEFAULT_GONE],
        remedy: &[
            Step {
                action: Action::ConfigureEngine,
                text: "Take the default runtime out of {engine}'s configuration, and restart {engine}.",
                command: None,
            },
            Step {
                action: Action::ChangePackages,
                text: "Install the package nvidia-container-toolkit again.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host],
        judge: default_runtime_binary_missing,
    },
];

fn runtime_not_registered(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host { on_machine(facts.host) } else { for_container(facts) }
}

/// Registered with one engine and not with another that serves Kubernetes.
fn on_machine(host: &Host) -> Judgement {
    if !is_native_with_gpu(host)? {
        return not_applicable();
    }
    let Some(other) = host.engines.iter().find(|e| ways::registered_runtime(e).is_some()) else {
        return not_applicable();
    };
    let mut lacking = Vec::new();
    for engine in &host.engines {
        if lacks_a_way(host, engine)? {
            lacking.push(engine);
        }
    }
    let Some(engine) = lacking.first() else { return Ok(Outcome::Pass) };
    let severity = ways::severity(&ways::of(host)?, |_| false);
    Failure::new(severity, ELSEWHERE)
        .arg("other", other.kind.name())
        .arg("engine", engine.kind.name())
        .saw("host.engines", format!("{} {}", other.kind.name(), other.path), &other.path)
        .saw("host.engines", format!("{} {}", engine.kind.name(), engine.path), &engine.path)
        .found()
}

fn for_container(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let kind = match container.engine {
        EngineName::Containerd => EngineKind::Containerd,
        EngineName::Crio => EngineKind::Crio,
        _ => return not_applicable(),
    };
    if !container.wants_gpu.is_asked() || container.scheduler.is_none() || *container.gpu_given.known()? != Given::None
    {
        return not_applicable();
    }
    let mut found = None;
    for engine in facts.host.engines.iter().filter(|e| e.kind == kind) {
        if !lacks_a_way(facts.host, engine)? {
            return Ok(Outcome::Pass);
        }
        found = Some(engine);
    }
    let Some(engine) = found else { return not_applicable() };
    Failure::new(Severity::Warning, NOT_FOR_PODS)
        .foreign("why", &container.wants_gpu.why)
        .arg("engine", engine.kind.name())
        .found()
}

/// An engine of Kubernetes that is configured with other runtimes only, and has no CDI specification.
fn lacks_a_way(host: &Host, engine: &Engine) -> Result<bool, Unknown> {
    if !matches!(engine.kind, EngineKind::Containerd | EngineKind::Crio) || engine.broken.is_some() {
        return Ok(false);
    }
    // our own runtime, and its name, say nothing of how the engine gives GPUs
    let others = engine.runtimes.iter().any(|(name, program)| name != RUNTIME_NAME && !is_our_runtime(program));
    let configured = others || engine.default_runtime.as_ref().is_some_and(|name| name != RUNTIME_NAME);
    if !configured || ways::registered_runtime(engine).is_some() {
        return Ok(false);
    }
    Ok(!host.cdi.known()?.iter().any(|s| ways::gives_gpus(s) && ways::is_searched(engine, s)))
}

fn default_runtime_binary_missing(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let mut named = false;
    for engine in host.engines.iter().filter(|e| ways::is_installed(e)) {
        let Some(name) = &engine.default_runtime else { continue };
        let Some(program) = engine.runtimes.get(name).filter(|p| is_runtime(p)) else { continue };
        named = true;
        if ways::is_there(host, program)? {
            continue;
        }
        // nothing of this engine works, whatever other mechanism it has
        let severity = ways::severity(&ways::of(host)?, |way| way.engine == engine);
        return Failure::new(severity, DEFAULT_GONE)
            .arg("engine", engine.kind.name())
            .foreign("name", name)
            .foreign("program", program)
            .saw("host.toolkit.programs", "none of this name", "/usr/bin and others")
            .found();
    }
    if named { Ok(Outcome::Pass) } else { not_applicable() }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, cdi_spec, unseen};
    use crate::model::container::{EngineName, Scheduler};
    use crate::model::host::{Engine, EngineKind};
    use crate::model::{Observed, Severity};

    const REGISTERED: &str = "runtime-not-registered";
    const DEFAULT: &str = "default-runtime-binary-missing";

    fn containerd(world: &World) -> Engine {
        Engine {
            kind: EngineKind::Containerd,
            path: "/etc/containerd/config.toml".into(),
            runtimes: [("runc".to_owned(), "io.containerd.runc.v2".to_owned())].into(),
            default_runtime: Some("runc".into()),
            ..world.host.engines[0].clone()
        }
    }

    fn two_engines() -> World {
        let mut world = World::machine(1);
        let engine = containerd(&world);
        world.host.engines.push(engine);
        world
    }

    #[test]
    fn our_own_runtime_is_no_other_way_that_was_chosen() {
        let mut world = two_engines();
        let engine = world.host.engines.last_mut().unwrap();
        let ours = crate::model::own::RUNTIME.to_owned();
        engine.runtimes = [("gpu-preflight".to_owned(), ours)].into();
        engine.default_runtime = Some("gpu-preflight".into());
        world.silent(REGISTERED);
    }

    #[test]
    fn registered_with_docker_only_is_a_warning_and_with_a_docker_that_is_gone_an_error() {
        let mut world = two_engines();
        assert_eq!(world.failure(REGISTERED).severity, Severity::Warning);
        world.host.engines[0].path = "/etc/docker/daemon.json".into();
        assert_eq!(world.failure(REGISTERED).severity, Severity::Error);
    }

    #[test]
    fn registered_with_both_with_none_or_by_cdi_is_fine() {
        World::machine(1).silent(REGISTERED);
        let mut world = two_engines();
        world.host.engines[1].runtimes.insert("nvidia".into(), "/usr/bin/nvidia-container-runtime".into());
        world.silent(REGISTERED);
        let mut world = two_engines();
        world.host.engines[0].runtimes.clear();
        world.silent(REGISTERED);
        let mut world = two_engines();
        world.host.cdi = Observed::Known(vec![cdi_spec()]);
        world.silent(REGISTERED);
        let mut world = two_engines();
        world.host.engines[1].runtimes.clear();
        world.host.engines[1].default_runtime = None;
        world.silent(REGISTERED);
    }

    #[test]
    fn a_pod_of_an_engine_without_the_runtime_is_a_warning() {
        let mut world = World::asking("all");
        world.container.engine = EngineName::Containerd;
        world.container.scheduler = Some(Scheduler::Kubernetes);
        world.silent(REGISTERED);
        let engine = containerd(&world);
        world.host.engines.push(engine);
        assert_eq!(world.failure(REGISTERED).severity, Severity::Warning);
        world.host.cdi = unseen();
        world.unknown(REGISTERED);
        let mut plain = World::plain();
        plain.container.engine = EngineName::Containerd;
        plain.silent(REGISTERED);
    }

    #[test]
    fn a_default_runtime_without_its_program_is_an_error() {
        let mut world = World::machine(1);
        world.silent(DEFAULT);
        world.host.engines[0].default_runtime = Some("nvidia".into());
        world.silent(DEFAULT);
        world.host.toolkit.programs = Observed::Known([].into());
        assert_eq!(world.failure(DEFAULT).severity, Severity::Error);
        world.host.engines[0].default_runtime = Some("runc".into());
        world.silent(DEFAULT);
    }

    #[test]
    fn a_program_elsewhere_was_not_looked_for_and_another_engine_is_another_way() {
        let mut world = World::machine(1);
        world.host.toolkit.programs = Observed::Known([].into());
        world.host.engines[0].default_runtime = Some("nvidia".into());
        let mut other = containerd(&world);
        other.runtimes.insert("nvidia".into(), "/srv/t/nvidia-container-runtime".into());
        world.host.engines.push(other);
        assert_eq!(world.failure(DEFAULT).severity, Severity::Warning);
        world.host.engines[0].runtimes.insert("nvidia".into(), "/srv/t/nvidia-container-runtime".into());
        world.silent(DEFAULT);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = two_engines();
        world.host.cdi = unseen();
        world.unknown(REGISTERED);
        let mut world = World::machine(1);
        world.host.engines[0].default_runtime = Some("nvidia".into());
        world.host.toolkit.programs = unseen();
        world.unknown(DEFAULT);
    }
}
