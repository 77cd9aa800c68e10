//! How this machine calls our hook: what its engines' configurations name, and what their daemons know of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::look::{ending, names, seems_there, short};
use crate::collect::engine_api::{Api, Silent};
use crate::collect::image::binary;
use crate::collect::tree::Tree;
use crate::knowledge::toolkit::is_runtime;
use crate::model::Host;
use crate::model::host::{Daemon, Engine, EngineKind, Entry, EntryWay, OwnProgram, RegisteredEngine, Registration};
use crate::model::own::{
    HOOK, HOOK_FILE, HOOKS_DIRECTORY, LARGEST_PROGRAM, NRI_PLUGINS, RECORDS, RUNTIME, RUNTIME_NAME, WRAPPER,
    is_hook_injector, is_our_runtime,
};

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
        overwritten: overwritten(tree),
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
        daemon: daemon(tree, host, engine, &entries),
        entries,
        passed_by: beside.map(|(name, _)| name.clone()),
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

/// Files of the records of `install` that are there and name us no more.
fn overwritten(tree: &Tree) -> Vec<String> {
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
            if !is_ours && !found.contains(&file.path) {
                found.push(file.path);
            }
        }
    }
    found
}

/// A rootless docker reads `~/.config/docker/daemon.json` (docker's documentation, rootless mode, 2026-11). Only where
/// one runs: homes of others may lie on a file server that is gone.
fn rootless(tree: &Tree) -> Vec<String> {
    let passwd = tree.read_text("/etc/passwd", LIMIT).ok().flatten().unwrap_or_default();
    let home = |uid: &str| {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':').skip(2);
            (fields.next()? == uid).then(|| fields.nth(2).map(str::to_owned))?
        })
    };
    let users = names(tree, "/run/user", 1 << 12).unwrap_or_default();
    let running = users.into_iter().filter(|uid| seems_there(tree, &format!("/run/user/{uid}/docker.sock")));
    running
        .filter_map(|uid| {
            let file = format!("{}/.config/docker/daemon.json", home(&uid)?);
            let text = tree.read_text(&file, LIMIT).ok().flatten().unwrap_or_default();
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            let is_ours = value.get("default-runtime").and_then(Value::as_str) == Some(RUNTIME_NAME);
            (!is_ours).then_some(file)
        })
        .collect()
}

/// docker's answer to `GET /info`, as far as it is of interest.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Information {
    default_runtime: String,
    #[serde(default)]
    docker_root_dir: Option<String>,
    runtimes: BTreeMap<String, Value>,
}

fn daemon(tree: &Tree, host: &Host, engine: &Engine, entries: &[Entry]) -> Daemon {
    let Some(entry) = entries.iter().find(|entry| entry.way != EntryWay::HooksDirectory) else {
        return if engine.kind == EngineKind::Docker && !host.laid_out { lingers() } else { Daemon::None };
    };
    // NVIDIA's runtime reads its configuration for each container
    if entry.way == EntryWay::BehindNvidia && (engine.kind != EngineKind::Docker || host.laid_out) {
        return Daemon::None;
    }
    match engine.kind {
        // each command reads the files anew
        EngineKind::Podman => Daemon::None,
        EngineKind::Docker if !host.laid_out => asked(entry),
        EngineKind::Docker => older(tree, "dockerd", &entry.file),
        EngineKind::Containerd => older(tree, "containerd", &entry.file),
        EngineKind::Crio => older(tree, "crio", &entry.file),
    }
}

fn information() -> Result<Information, Silent> {
    // a docker beside a sick GPU may hang
    Api::socket(Path::new("/var/run/docker.sock")).json_within("/info", Duration::from_secs(3))
}

/// Where docker keeps what it has, as it says itself.
pub fn docker_root() -> Option<String> {
    information().ok()?.docker_root_dir
}

/// Whether a docker whose file does not name ours calls it all the same.
fn lingers() -> Daemon {
    let Ok(information) = information() else { return Daemon::None };
    let path = information.runtimes.get(&information.default_runtime).and_then(|runtime| runtime.get("path")?.as_str());
    if path.is_some_and(is_our_runtime) { Daemon::Lingers } else { Daemon::None }
}

/// What dockerd says itself.
fn asked(entry: &Entry) -> Daemon {
    match information() {
        Err(Silent::Nobody | Silent::Absent) => Daemon::Unknown("it does not run".to_owned()),
        Err(Silent::Failed(unseen)) => Daemon::Unknown(unseen.reason),
        Ok(information) if entry.way == EntryWay::BehindNvidia => {
            match information.runtimes.get(&information.default_runtime) {
                Some(runtime) if runtime.get("path").and_then(Value::as_str).is_some_and(is_runtime) => Daemon::Current,
                _ => Daemon::Unaware(format!("its default runtime is {}", information.default_runtime)),
            }
        }
        Ok(information) if !information.runtimes.contains_key(RUNTIME_NAME) => {
            Daemon::Unaware("it knows no runtime of this name".to_owned())
        }
        Ok(information) => {
            let path = information.runtimes.get(RUNTIME_NAME).and_then(|runtime| runtime.get("path")?.as_str());
            if path.is_some_and(|path| !is_our_runtime(path)) {
                Daemon::Unaware("to it the name leads elsewhere".to_owned())
            } else if entry.way == EntryWay::DefaultRuntime && information.default_runtime != RUNTIME_NAME {
                Daemon::Unaware(format!("its default runtime is {}", information.default_runtime))
            } else {
                Daemon::Current
            }
        }
    }
}

/// By its process and its file: when each was begun.
fn older(tree: &Tree, name: &str, file: &str) -> Daemon {
    let processes = names(tree, "/proc", 1 << 20).unwrap_or_default();
    let is_it = |pid: &&String| {
        pid.bytes().all(|b| b.is_ascii_digit())
            && short(tree, &format!("/proc/{pid}/comm")).ok().flatten().is_some_and(|comm| comm == name)
            && !is_dockers_own(tree, pid)
    };
    let Some(pid) = processes.iter().find(is_it) else { return Daemon::Unknown("it does not run".to_owned()) };
    let (Some(started), Ok(Some(stat))) = (started(tree, pid), tree.stat(file)) else {
        return Daemon::Unknown("when it was started could not be read".to_owned());
    };
    if stat.changed > started { Daemon::Older(file.to_owned()) } else { Daemon::Current }
}

/// Where no containerd runs, dockerd starts one of its own, with a configuration of its own (measured, 20.10 and 26).
fn is_dockers_own(tree: &Tree, pid: &str) -> bool {
    let command = short(tree, &format!("/proc/{pid}/cmdline")).ok().flatten();
    command.is_some_and(|command| command.split('\0').any(|word| word.ends_with("/docker/containerd/containerd.toml")))
}

/// Seconds since 1970, by the machine's start and the ticks since then: `proc(5)`, 100 a second on every Linux.
fn started(tree: &Tree, pid: &str) -> Option<i64> {
    const TICKS: i64 = 100;
    const START_TIME: usize = 19;
    let stat = short(tree, &format!("/proc/{pid}/stat")).ok()??;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    let ticks: i64 = behind_name.split(' ').nth(START_TIME)?.parse().ok()?;
    let machine = tree.read_text("/proc/stat", 8 << 20).ok()??;
    let boot: i64 = machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())?;
    Some(boot + ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tree::Kind;

    #[test]
    fn the_containerd_of_docker_reads_another_file_than_the_machines() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("etc/containerd/config.toml", "version = 2\n");
        put("proc/stat", "btime 1000\n");
        let process = |pid: u32, command: &str| {
            put(&format!("proc/{pid}/comm"), "containerd\n");
            put(&format!("proc/{pid}/cmdline"), command);
            let fields = vec!["0"; 18].join(" ");
            put(&format!("proc/{pid}/stat"), &format!("{pid} (containerd) S {fields} 100 0\n"));
        };
        let daemon =
            || older(&Tree::open(dir.path(), Kind::Host).unwrap(), "containerd", "/etc/containerd/config.toml");
        process(7, "containerd\0--config\0/var/run/docker/containerd/containerd.toml\0--log-level\0info\0");
        assert_eq!(daemon(), Daemon::Unknown("it does not run".to_owned()));
        process(8, "/usr/bin/containerd\0");
        assert_eq!(daemon(), Daemon::Older("/etc/containerd/config.toml".to_owned()));
    }
}
