//! How this machine calls our hook: what its engines' configurations name, and what their daemons know of it.

use serde::Deserialize;
use serde_json::Value;

use super::look::{ending, names, seems_there};
use crate::collect::image::binary;
use crate::collect::tree::Tree;
use crate::collect::users;
use crate::knowledge::toolkit::is_runtime;
use crate::model::Host;
use crate::model::host::{Engine, EngineKind, Entry, EntryWay, OwnProgram, RegisteredEngine, Registration};
use crate::model::own::{
    HOOK, HOOK_FILE, HOOKS_DIRECTORY, LARGEST_PROGRAM, NRI_PLUGINS, RECORDS, RUNTIME, RUNTIME_NAME, WRAPPER,
    is_hook_injector, is_our_runtime,
};

mod daemon;

pub use daemon::{docker_keeps, docker_root};

const LIMIT: usize = 1 << 20;

/// Looks at all of it. `wait`: seconds of the policy's `wait_for_driver`.
pub fn registration(tree: &Tree, host: &Host, wait: u64) -> Registration {
    let config = host.toolkit.config.seen().and_then(Option::as_ref);
    let first = config.and_then(|config| config.runtimes.as_ref()?.first());
    let behind_nvidia = config.filter(|_| first.is_some_and(|first| is_our_runtime(first))).map(|c| c.path.as_str());
    let engines = host.engines.iter().map(|engine| registered(tree, host, engine, behind_nvidia)).collect();
    Registration {
        program: program(tree),
        engines,
        overwritten: overwritten(tree, host),
        rootless: rootless(tree),
        lowered: None,
        wait,
    }
}

fn registered(tree: &Tree, host: &Host, engine: &Engine, behind_nvidia: Option<&str>) -> RegisteredEngine {
    let mut entries = runtimes(tree, engine);
    let default = engine.default_runtime.as_deref().and_then(|name| engine.runtimes.get(name));
    let default_is_nvidias = default.is_some_and(|program| is_runtime(program));
    if let (true, Some(file)) = (default_is_nvidias, behind_nvidia) {
        entries.push(entry(tree, EntryWay::BehindNvidia, file, RUNTIME));
    }
    entries.extend(hooks(tree, engine));
    let beside = engine.runtimes.iter().find(|(name, program)| {
        is_runtime(program) && behind_nvidia.is_none() && engine.default_runtime.as_ref() != Some(*name)
    });
    RegisteredEngine {
        engine: engine.kind,
        daemon: daemon::of(tree, host, engine, &entries),
        entries,
        passed_by: beside.map(|(name, _)| name.clone()),
        unread: engine.broken.clone(),
    }
}

/// Runtimes of its configuration that are ours.
fn runtimes(tree: &Tree, engine: &Engine) -> Vec<Entry> {
    let ours = engine.runtimes.iter().filter(|(_, program)| is_our_runtime(program));
    let file = engine.kind.configuration();
    ours.map(|(name, program)| {
        let is_default = engine.default_runtime.as_ref() == Some(name);
        entry(tree, if is_default { EntryWay::DefaultRuntime } else { EntryWay::NamedRuntime }, file, program)
    })
    .collect()
}

fn entry(tree: &Tree, way: EntryWay, file: &str, program: &str) -> Entry {
    Entry {
        way,
        file: file.to_owned(),
        program: program.to_owned(),
        // a wrapper is nothing without the program that it calls
        there: tree.is_program(program) && (!program.contains(WRAPPER) || tree.is_program(RUNTIME)),
        searched: true,
        called: true,
        timeout: None,
    }
}

/// Our file in the hooks directories that it searches, and in the usual one if it does not search that.
fn hooks(tree: &Tree, engine: &Engine) -> Vec<Entry> {
    let injects = || names(tree, NRI_PLUGINS, 64).unwrap_or_default().iter().any(|name| is_hook_injector(name));
    let searched: Vec<&str> = match engine.kind {
        EngineKind::Docker => return Vec::new(),
        EngineKind::Containerd if !injects() => return Vec::new(),
        _ => engine
            .hooks_dirs
            .as_ref()
            .map_or_else(|| vec![HOOKS_DIRECTORY], |all| all.iter().map(String::as_str).collect()),
    };
    let file = |directory: &str| format!("{}/{HOOK_FILE}", directory.trim_end_matches('/'));
    // a file of a later directory masks one of the same name before it
    let counts = searched.iter().rev().find(|directory| seems_there(tree, &file(directory)));
    let place = counts.copied().or_else(|| {
        (!searched.contains(&HOOKS_DIRECTORY) && seems_there(tree, &file(HOOKS_DIRECTORY))).then_some(HOOKS_DIRECTORY)
    });
    let Some(place) = place else { return Vec::new() };
    let path = file(place);
    let text = tree.read_text(&path, LIMIT).ok().flatten().unwrap_or_default();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let program = value.pointer("/hook/path").and_then(Value::as_str).unwrap_or_default();
    let calls = value.pointer("/when/always") == Some(&Value::Bool(true))
        && value.get("version").and_then(Value::as_str) == Some("1.0.0")
        && value.get("stages").and_then(Value::as_array).is_some_and(|stages| !stages.is_empty());
    let timeout = value.pointer("/hook/timeout").and_then(Value::as_u64);
    vec![Entry {
        searched: counts.is_some(),
        called: calls,
        timeout,
        ..entry(tree, EntryWay::HooksDirectory, &path, program)
    }]
}

/// The static program: whose it is, and that it is static.
fn program(tree: &Tree) -> OwnProgram {
    let stat = match tree.stat(HOOK) {
        Ok(Some(stat)) => stat,
        Ok(None) => return OwnProgram::Absent,
        Err(unseen) => return OwnProgram::Unsound(unseen.reason),
    };
    if stat.uid != 0 {
        return OwnProgram::Unsound(format!("it belongs to user {}, not to root", stat.uid));
    }
    if stat.mode & 0o022 != 0 {
        return OwnProgram::Unsound(format!("others may write it (mode {:04o})", stat.mode));
    }
    if stat.mode & 0o111 == 0 {
        return OwnProgram::Unsound(format!("nobody may execute it (mode {:04o})", stat.mode));
    }
    match tree.read(HOOK, LARGEST_PROGRAM) {
        Ok(Some(bytes)) if binary::is_static(&bytes) => OwnProgram::Sound,
        Ok(_) => OwnProgram::Unsound("it is linked dynamically".to_owned()),
        Err(unseen) => OwnProgram::Unsound(unseen.reason),
    }
}

#[derive(Deserialize)]
struct Kept {
    files: Vec<KeptFile>,
}

#[derive(Deserialize)]
struct KeptFile {
    path: String,
}

/// Files of the records of `install` that are there and name us no more. One that no engine can read has other troubles.
fn overwritten(tree: &Tree, host: &Host) -> Vec<String> {
    let is_invalid = |file: &str| host.engines.iter().any(|e| e.invalid.as_ref().is_some_and(|i| i.file == file));
    let mut found = Vec::new();
    for name in names(tree, RECORDS, 64).unwrap_or_default().iter().filter(|name| ending(name) == "json") {
        let record = tree.read_text(&format!("{RECORDS}/{name}"), LIMIT).ok().flatten();
        let record = record.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
        for file in record.into_iter().flat_map(|record| record.files) {
            let is_ours = match tree.read_text(&file.path, LIMIT) {
                // one that is gone registers nothing, and no engine misses it
                Ok(text) => text.is_none_or(|text| text.contains(RUNTIME_NAME)),
                Err(_) => true,
            };
            if !is_ours && !found.contains(&file.path) && !is_invalid(&file.path) {
                found.push(file.path);
            }
        }
    }
    found
}

/// A rootless docker reads `~/.config/docker/daemon.json` (docker's documentation, rootless mode, 2026-11). Only where
/// one runs: homes of others may lie on a file server that is gone.
fn rootless(tree: &Tree) -> Vec<String> {
    let running =
        users::at_work(tree).into_iter().filter(|uid| seems_there(tree, &format!("/run/user/{uid}/docker.sock")));
    running
        .filter_map(|uid| {
            let file = format!("{}/.config/docker/daemon.json", users::home(tree, uid)?);
            let text = tree.read_text(&file, LIMIT).ok().flatten().unwrap_or_default();
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            let is_ours = value.get("default-runtime").and_then(Value::as_str) == Some(RUNTIME_NAME);
            (!is_ours).then_some(file)
        })
        .collect()
}
