//! What the engines' daemons know of the registration.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::collect::engine_api::{Api, Silent};
use crate::collect::host::look::{processes, short};
use crate::collect::process_stat::Stat;
use crate::collect::tree::Tree;
use crate::knowledge::toolkit::is_runtime;
use crate::model::Host;
use crate::model::host::{Daemon, Engine, EngineKind, Entry, EntryWay};
use crate::model::own::{RUNTIME_NAME, is_our_runtime};

/// docker's answer to `GET /info`, as far as it is of interest.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Information {
    default_runtime: String,
    #[serde(default)]
    docker_root_dir: Option<String>,
    runtimes: BTreeMap<String, Value>,
}

/// Of one engine, whose files say this.
pub(super) fn of(tree: &Tree, host: &Host, engine: &Engine, entries: &[Entry]) -> Daemon {
    let Some(entry) = entries.iter().find(|entry| entry.way != EntryWay::HooksDirectory) else {
        return if engine.kind == EngineKind::Docker && !host.laid_out { docker_keeps(tree) } else { Daemon::None };
    };
    // NVIDIA's runtime reads its configuration for each container
    if entry.way == EntryWay::BehindNvidia && (engine.kind != EngineKind::Docker || host.laid_out) {
        return Daemon::None;
    }
    match engine.kind {
        // each command reads the files anew
        EngineKind::Podman => Daemon::None,
        EngineKind::Docker if !host.laid_out => {
            let information = information();
            match information.as_ref().map(|information| information.keeps(tree)) {
                // by default, and its file says beside the others at most
                Ok(keeps) if entry.way == EntryWay::NamedRuntime && keeps != Daemon::None => keeps,
                _ => asked(entry, information),
            }
        }
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

/// What a docker that runs keeps of a default runtime that is ours, whatever its file says: a reload does not take it
/// away (20.10 and 26, measured 2026-11).
pub fn docker_keeps(files: &Tree) -> Daemon {
    match information() {
        Ok(information) => information.keeps(files),
        Err(Silent::Nobody | Silent::Absent) => Daemon::None,
        Err(Silent::Failed(unseen)) => Daemon::Unknown(unseen.reason),
    }
}

impl Information {
    fn program(&self, runtime: &str) -> Option<&str> {
        self.runtimes.get(runtime)?.get("path")?.as_str()
    }

    fn keeps(&self, files: &Tree) -> Daemon {
        match self.program(&self.default_runtime) {
            // where dockerd looks for a mere name is its own affair
            Some(program) if is_our_runtime(program) => {
                Daemon::Lingers { there: !program.starts_with('/') || files.is_program(program) }
            }
            _ if self.default_runtime == RUNTIME_NAME => Daemon::KeepsName,
            _ => Daemon::None,
        }
    }
}

/// What dockerd says itself.
fn asked(entry: &Entry, information: Result<Information, Silent>) -> Daemon {
    match information {
        Err(Silent::Nobody | Silent::Absent) => Daemon::Down,
        Err(Silent::Failed(unseen)) => Daemon::Unknown(unseen.reason),
        Ok(information) if entry.way == EntryWay::BehindNvidia => {
            match information.program(&information.default_runtime) {
                Some(program) if is_runtime(program) => Daemon::Current,
                _ => Daemon::Unaware(format!("its default runtime is {}", information.default_runtime)),
            }
        }
        Ok(information) if !information.runtimes.contains_key(RUNTIME_NAME) => {
            Daemon::Unaware("it knows no runtime of this name".to_owned())
        }
        Ok(information) => {
            if information.program(RUNTIME_NAME).is_some_and(|path| !is_our_runtime(path)) {
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
    let running = processes(tree, name).unwrap_or_default();
    let Some(pid) = running.iter().find(|pid| !is_dockers_own(tree, pid)) else { return Daemon::Down };
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
    let stat = short(tree, &format!("/proc/{pid}/stat")).ok()??;
    let ticks = i64::try_from(Stat::parse(&stat)?.started).ok()?;
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
        assert_eq!(daemon(), Daemon::Down);
        process(8, "/usr/bin/containerd\0");
        assert_eq!(daemon(), Daemon::Older("/etc/containerd/config.toml".to_owned()));
    }
}
