//! Our own registration: the silent gaps by which a container passes the hook by.

use crate::checks::not_applicable;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{Daemon, EngineKind, Entry, EntryWay, OwnProgram, RegisteredEngine, Registration};
use crate::model::own::{HOOK, hook_seconds};
use crate::model::{Facts, Unknown};

const NO_START: &str = "{file} names {program}, which is absent: {engine} starts no container";
const NO_CHECK: &str = "{file} names {program}, which is absent: {engine} passes over it, and checks no container";
const UNSOUND: &str = "{program}: {reason}";
const UNAWARE: &str = "{file} registers the hook, and the running {engine} does not have it yet: {reason}";
const OLDER: &str = "{file} was changed after {engine} was started, which reads it at its start only";
const LINGERS: &str = "{file} does not register the hook any more, and the running {engine} calls it: without its program no container starts";
const LINGERS_IN_VAIN: &str = "{file} does not register the hook any more, and the running {engine} calls its program, which is absent: no container starts";
const KEEPS_NAME: &str = "{file} does not name the default runtime gpu-preflight any more, and the running {engine} still has it: each container that it makes remembers the name";
const SEVERAL: &str = "{engines} have not read their files since the hook's registration there was changed";
const OVERWRITTEN: &str = "{file} was written anew by somebody else, without the registration that install put there";
const NOT_REGISTERED: &str = "containers of {engines} are not checked: nothing calls the hook there";
const NAMED_ONLY: &str = "of {engines} only containers that name the runtime gpu-preflight are checked";
const NONE_OR_NAMED: &str = "containers of {engines} are not checked: nothing calls the hook there, or only for containers that name the runtime gpu-preflight";
const ROOTLESS: &str =
    "a rootless docker runs here, and its own configuration {file} does not name the runtime gpu-preflight as default";
const NOT_SEARCHED: &str = "{file} lies in a directory that {engine} does not search";
const NOT_CALLED: &str = "{file} has {engine} call the hook for no container: its version, its when or its stages";
const LOWERED: &str = "the policy's mode is {mode}: what would be refused starts";
const PASSED_BY: &str =
    "containers of {engine} that name the runtime {runtime} are not checked: NVIDIA's runtime calls others";
const TOO_SHORT: &str = "{file} gives the hook {timeout} s, and the policy lets it wait {wait} s for the driver";

/// docker's configuration.
const DOCKER: &str = EngineKind::Docker.configuration();

const INSTALL: Step =
    Step { action: Action::ConfigureEngine, text: "Register it.", command: Some("gpu-preflight install {engine}") };

const AGAIN: Step =
    Step { action: Action::ConfigureEngine, text: "Register it again.", command: Some("gpu-preflight install") };

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "preflight-program-missing",
        title: "a registration names a program of gpu-preflight that is absent",
        why: "podman and CRI-O say nothing and check nothing; with docker and containerd no container starts.",
        messages: &[NO_CHECK, NO_START],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Put the program there again, or take the registration out (gpu-preflight uninstall).",
            command: Some("gpu-preflight install"),
        }],
        severities: &[Severity::Error],
        places: &[Place::Status],
        judge: program_missing,
    },
    Check {
        id: "preflight-program-unsound",
        title: "the hook's program is not static, or others may write it",
        why: "It runs as root for every container: a container's variables, or another user, could make it run something else.",
        messages: &[UNSOUND],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Put the program there that packaging/build.sh makes, owned by root, mode 0755.",
            command: Some("gpu-preflight install"),
        }],
        severities: &[Severity::Error],
        places: &[Place::Status],
        judge: program_unsound,
    },
    Check {
        id: "preflight-not-loaded",
        title: "the engine runs with a configuration older than the registration",
        why: "Containers start unchecked until the engine has read it.",
        messages: &[UNAWARE, OLDER, LINGERS, LINGERS_IN_VAIN, KEEPS_NAME, SEVERAL],
        remedy: &[
            Step {
                action: Action::ConfigureEngine,
                text: "Have docker read it; containers that run stay as they are.",
                command: Some("systemctl reload docker"),
            },
            Step {
                action: Action::StartService,
                text: "Restart it; containers that run stay as they are, docker's only with live-restore.",
                command: Some("systemctl restart {engine}"),
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Status],
        judge: not_loaded,
    },
    Check {
        id: "preflight-overwritten",
        title: "a file that install had changed no longer has the registration",
        why: "Containers start unchecked.",
        messages: &[OVERWRITTEN],
        remedy: &[AGAIN],
        severities: &[Severity::Error],
        places: &[Place::Status],
        judge: overwritten,
    },
    Check {
        id: "preflight-not-searched",
        title: "the hook's file lies where the engine does not look",
        why: "Containers start unchecked.",
        messages: &[NOT_SEARCHED, NOT_CALLED],
        remedy: &[INSTALL],
        severities: &[Severity::Error],
        places: &[Place::Status],
        judge: not_searched,
    },
    Check {
        id: "preflight-not-registered",
        title: "an engine's containers are not checked",
        why: "They start, and fail later.",
        messages: &[NOT_REGISTERED, NAMED_ONLY, NONE_OR_NAMED],
        remedy: &[INSTALL],
        severities: &[Severity::Warning],
        places: &[Place::Status],
        judge: not_registered,
    },
    Check {
        id: "preflight-passed-by",
        title: "containers of NVIDIA's runtime are not checked",
        why: "Whoever names that runtime passes the hook by.",
        messages: &[PASSED_BY],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Register it with NVIDIA's runtime, too.",
            command: Some("gpu-preflight install nvidia"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Status],
        judge: passed_by,
    },
    Check {
        id: "preflight-mode-lowered",
        title: "the policy refuses nothing",
        why: "Hopeless containers start, and fail later; in mode warn the decision log says which.",
        messages: &[LOWERED],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Write mode = \"enforce\" into /etc/gpu-preflight/config.toml, when it is time.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Status],
        judge: mode_lowered,
    },
    Check {
        id: "preflight-rootless-apart",
        title: "a rootless docker has a configuration of its own, without the registration",
        why: "Its containers are not checked.",
        messages: &[ROOTLESS],
        remedy: &[Step {
            action: Action::ConfigureEngine,
            text: "Put what hooks/docker-daemon.json has into that file, and have docker read it.",
            command: Some("systemctl --user restart docker"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Status],
        judge: rootless_apart,
    },
    Check {
        id: "preflight-timeout-too-short",
        title: "the hook is registered with less time than it may wait for the driver",
        why: "It waits no longer than it was registered for, so containers are refused at boot that only had to wait.",
        messages: &[TOO_SHORT],
        remedy: &[AGAIN],
        severities: &[Severity::Warning],
        places: &[Place::Status],
        judge: timeout_too_short,
    },
];

fn registration<'f>(facts: &'f Facts<'_>) -> Result<&'f Registration, Unknown> {
    let lacks = || Unknown::new("host.registration", "this command", "only status looks at it");
    facts.host.registration.as_ref().ok_or_else(lacks)
}

/// Every entry with its engine.
fn entries(registration: &Registration) -> impl Iterator<Item = (&RegisteredEngine, &Entry)> {
    registration.engines.iter().flat_map(|engine| engine.entries.iter().map(move |entry| (engine, entry)))
}

fn program_missing(facts: &Facts<'_>) -> Judgement {
    let registration = registration(facts)?;
    let Some((engine, entry)) = entries(registration).find(|(_, entry)| !entry.there) else {
        return if entries(registration).next().is_some() { Ok(Outcome::Pass) } else { not_applicable() };
    };
    let message = if entry.way == EntryWay::HooksDirectory { NO_CHECK } else { NO_START };
    Failure::new(Severity::Error, message)
        .foreign("file", &entry.file)
        .foreign("program", &entry.program)
        .arg("engine", engine.engine.name())
        .saw("host.registration.engines", &entry.program, &entry.file)
        .found()
}

fn program_unsound(facts: &Facts<'_>) -> Judgement {
    let registration = registration(facts)?;
    match &registration.program {
        OwnProgram::Unsound(reason) if entries(registration).next().is_some() => {
            Failure::new(Severity::Error, UNSOUND).arg("program", HOOK).arg("reason", reason).found()
        }
        OwnProgram::Sound => Ok(Outcome::Pass),
        _ => not_applicable(),
    }
}

fn not_loaded(facts: &Facts<'_>) -> Judgement {
    let registration = registration(facts)?;
    // with a file that nobody can read a daemon must not be told to start anew
    let is_behind = |engine: &&RegisteredEngine| engine.unread.is_none() && is_behind(engine);
    let behind: Vec<&RegisteredEngine> = registration.engines.iter().filter(is_behind).collect();
    let Some(first) = behind.first() else {
        let asked = registration.engines.iter().any(|engine| engine.daemon == Daemon::Current);
        return if asked { Ok(Outcome::Pass) } else { not_applicable() };
    };
    let severity = behind.iter().map(|engine| severity(engine)).max().unwrap_or(Severity::Warning);
    let (reload, restart): (Vec<&RegisteredEngine>, Vec<_>) = behind
        .iter()
        .partition(|engine| matches!((engine.engine, &engine.daemon), (EngineKind::Docker, Daemon::Unaware(_))));
    let only: &[Action] = match (reload.is_empty(), restart.is_empty()) {
        (false, true) => &[Action::ConfigureEngine],
        (true, _) => &[Action::StartService],
        (false, false) => &[Action::ConfigureEngine, Action::StartService],
    };
    let failure = if behind.len() > 1 {
        let engines = names(&behind);
        Failure::new(severity, SEVERAL).arg("engines", engines).arg("engine", joined(&restart, " "))
    } else {
        said_of(first, severity)
    };
    failure.only(only).found()
}

/// The daemon runs with what its files do not say any more, or not yet.
fn is_behind(engine: &RegisteredEngine) -> bool {
    match engine.daemon {
        Daemon::Unaware(_) | Daemon::Older(_) | Daemon::Lingers { .. } | Daemon::KeepsName => true,
        Daemon::None | Daemon::Down | Daemon::Unknown(_) | Daemon::Current => false,
    }
}

fn severity(engine: &RegisteredEngine) -> Severity {
    match engine.daemon {
        Daemon::Unaware(_) | Daemon::Lingers { there: false } => Severity::Error,
        _ => Severity::Warning,
    }
}

fn said_of(engine: &RegisteredEngine, severity: Severity) -> Failure {
    // docker alone is asked whether it lingers
    let file = engine.entries.first().map_or(DOCKER, |entry| entry.file.as_str());
    let failure = |message| Failure::new(severity, message).foreign("file", file).arg("engine", engine.engine.name());
    match &engine.daemon {
        Daemon::Unaware(reason) => failure(UNAWARE).arg("reason", reason),
        Daemon::Lingers { there: true } => failure(LINGERS),
        Daemon::Lingers { there: false } => failure(LINGERS_IN_VAIN),
        Daemon::KeepsName => failure(KEEPS_NAME),
        _ => failure(OLDER),
    }
}

/// `a, b and c`.
fn names(engines: &[&RegisteredEngine]) -> String {
    let words = joined(engines, ", ");
    words.rsplit_once(", ").map_or_else(|| words.clone(), |(before, last)| format!("{before} and {last}"))
}

fn joined(engines: &[&RegisteredEngine], between: &str) -> String {
    engines.iter().map(|engine| engine.engine.name()).collect::<Vec<_>>().join(between)
}

fn overwritten(facts: &Facts<'_>) -> Judgement {
    match registration(facts)?.overwritten.first() {
        Some(file) => Failure::new(Severity::Error, OVERWRITTEN).foreign("file", file).found(),
        None => Ok(Outcome::Pass),
    }
}

fn not_searched(facts: &Facts<'_>) -> Judgement {
    let registration = registration(facts)?;
    let mut hooks = entries(registration).filter(|(_, entry)| entry.way == EntryWay::HooksDirectory).peekable();
    if hooks.peek().is_none() {
        return not_applicable();
    }
    match hooks.find(|(_, entry)| !entry.searched || !entry.called) {
        Some((engine, entry)) => Failure::new(Severity::Error, if entry.searched { NOT_CALLED } else { NOT_SEARCHED })
            .foreign("file", &entry.file)
            .arg("engine", engine.engine.name())
            .found(),
        None => Ok(Outcome::Pass),
    }
}

fn not_registered(facts: &Facts<'_>) -> Judgement {
    let registration = registration(facts)?;
    if registration.engines.is_empty() {
        return not_applicable();
    }
    // a registration that does not count is the matter of another check
    let is_named = |entry: &Entry| entry.way == EntryWay::NamedRuntime;
    let unregistered = registration.engines.iter().filter(|engine| engine.entries.iter().all(is_named));
    let (unread, lacking): (Vec<_>, Vec<_>) = unregistered.partition(|engine| engine.unread.is_some());
    let message = match (lacking.iter().any(|e| e.entries.is_empty()), lacking.iter().any(|e| !e.entries.is_empty())) {
        (false, false) => {
            let Some(reason) = unread.iter().find_map(|engine| engine.unread.as_ref()) else {
                return Ok(Outcome::Pass);
            };
            return Err(Unknown::new("host.registration.engines", names(&unread), reason));
        }
        (true, false) => NOT_REGISTERED,
        (false, true) => NAMED_ONLY,
        (true, true) => NONE_OR_NAMED,
    };
    Failure::new(Severity::Warning, message)
        .arg("engines", names(&lacking))
        .arg("engine", joined(&lacking, " "))
        .found()
}

fn passed_by(facts: &Facts<'_>) -> Judgement {
    let registration = registration(facts)?;
    let registered = || registration.engines.iter().filter(|engine| !engine.entries.is_empty());
    match registered().find_map(|engine| Some((engine, engine.passed_by.as_ref()?))) {
        Some((engine, runtime)) => Failure::new(Severity::Warning, PASSED_BY)
            .arg("engine", engine.engine.name())
            .foreign("runtime", runtime)
            .found(),
        None if registered().next().is_some() => Ok(Outcome::Pass),
        None => not_applicable(),
    }
}

fn mode_lowered(facts: &Facts<'_>) -> Judgement {
    match registration(facts)?.lowered {
        Some(mode) => Failure::new(Severity::Warning, LOWERED).arg("mode", mode).found(),
        None => Ok(Outcome::Pass),
    }
}

fn rootless_apart(facts: &Facts<'_>) -> Judgement {
    match registration(facts)?.rootless.first() {
        Some(file) => Failure::new(Severity::Warning, ROOTLESS).foreign("file", file).found(),
        None => Ok(Outcome::Pass),
    }
}

fn timeout_too_short(facts: &Facts<'_>) -> Judgement {
    let registration = registration(facts)?;
    let wait = registration.wait;
    if wait == 0 {
        return not_applicable();
    }
    let short =
        |(_, entry): &(&RegisteredEngine, &Entry)| entry.timeout.is_some_and(|timeout| timeout < hook_seconds(wait));
    match entries(registration).find(short) {
        Some((_, entry)) => Failure::new(Severity::Warning, TOO_SHORT)
            .foreign("file", &entry.file)
            .arg("timeout", entry.timeout.unwrap_or_default())
            .arg("wait", wait)
            .found(),
        None => Ok(Outcome::Pass),
    }
}

#[cfg(test)]
mod tests;
