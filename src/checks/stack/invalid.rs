//! docker's own configuration is none that dockerd starts with.

use super::ways;
use crate::checks::not_applicable;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::EngineKind;
use crate::model::{Facts, Host};

const INVALID: &str = "{file} is no valid JSON ({reason}): docker does not start with it";
const STILL_RUNS: &str =
    "{file} is no valid JSON ({reason}): docker goes on with what it read before, and does not start again";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "docker-configuration-invalid",
    title: "docker's configuration is no valid JSON",
    why: "dockerd does not start with it; one that runs goes on until it is restarted, or the machine is.",
    messages: &[INVALID, STILL_RUNS],
    remedy: &[Step {
        action: Action::ConfigureEngine,
        text: "Mend the file first; until then restart nothing, and register nothing.",
        command: None,
    }],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Host],
    judge: configuration_invalid,
}];

fn configuration_invalid(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    let mut dockers = host.engines.iter().filter(|engine| engine.kind == EngineKind::Docker).peekable();
    if dockers.peek().is_none() {
        return not_applicable();
    }
    let Some(invalid) = dockers.find_map(|docker| docker.invalid.as_ref()) else { return Ok(Outcome::Pass) };
    // status asks on any machine
    if host.registration.is_none() && !host.has_gpu()? {
        return not_applicable();
    }
    let message = if invalid.runs == Some(true) { STILL_RUNS } else { INVALID };
    Failure::new(severity(host, invalid.runs), message)
        .foreign("file", &invalid.file)
        .arg("reason", &invalid.reason)
        .saw("host.engines", &invalid.reason, &invalid.file)
        .found()
}

/// An error only where docker is down for certain, and nothing else hands over GPUs.
fn severity(host: &Host, runs: Option<bool>) -> Severity {
    match (runs, host.has_gpu(), ways::of(host)) {
        (Some(false), Ok(true), Ok(ways)) => ways::severity(&ways, |way| way.engine.kind == EngineKind::Docker),
        _ => Severity::Warning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, cdi_spec, unseen};
    use crate::model::Observed;
    use crate::model::host::{Engine, Invalid};

    const ID: &str = "docker-configuration-invalid";

    fn machine(runs: Option<bool>) -> World {
        let mut world = World::machine(1);
        let reason = "EOF while parsing an object at line 1 column 2".to_owned();
        world.host.engines[0].invalid = Some(Invalid { file: "/etc/docker/daemon.json".into(), reason, runs });
        world
    }

    #[test]
    fn a_docker_that_is_down_and_alone_is_an_error() {
        World::machine(1).silent(ID);
        let failure = machine(Some(false)).failure(ID);
        assert_eq!((failure.severity, failure.message), (Severity::Error, INVALID));
        let failure = machine(Some(true)).failure(ID);
        assert_eq!((failure.severity, failure.message), (Severity::Warning, STILL_RUNS));
        assert_eq!(machine(None).failure(ID).severity, Severity::Warning, "whether it runs did not show");
    }

    #[test]
    fn where_others_hand_over_gpus_or_nobody_knows_it_is_a_warning() {
        let mut world = machine(Some(false));
        world.host.engines.push(Engine::new(EngineKind::Podman, "/usr/bin/podman"));
        world.host.cdi = Observed::Known(vec![cdi_spec()]);
        assert_eq!(world.failure(ID).severity, Severity::Warning);
        world.host.cdi = unseen();
        assert_eq!(world.failure(ID).severity, Severity::Warning);
    }

    #[test]
    fn without_a_gpu_only_status_asks() {
        let mut world = World::machine(0);
        world.host.engines = machine(Some(false)).host.engines;
        world.silent(ID);
        world.host.registration = Some(crate::model::host::Registration::default());
        assert_eq!(world.failure(ID).severity, Severity::Warning);
    }
}
