//! docker's part: its file, its containers that remember our runtime, and the docker that runs.

use super::{Asked, DOCKER, No, Plan, RESTART_DOCKER};
use crate::cli::EngineName;
use crate::collect::host;
use crate::model::host::{Daemon, EngineKind};
use crate::model::own::RUNTIME_NAME;
use crate::register::{DIRECTORY, Trouble, docker};

/// Where its containers remember their runtime, if it says nothing else.
const DOCKER_DATA: &str = "/var/lib/docker";
pub(super) const RELOAD_DOCKER: &str = "systemctl reload docker";
/// Measured, 20.10 and 26.
pub(super) const NO_RELOAD: &str = "A reload would not do: docker keeps a default runtime that its file no longer names, and docker \
                         20.10 does not survive it";

impl Asked<'_> {
    pub(super) fn docker_registered(&self) -> Result<Plan, No> {
        let engine = self.engine(EngineKind::Docker)?;
        let refused = |reason: &str, way_out: &str| {
            let (reason, way_out) = (reason.to_owned(), way_out.to_owned());
            No::Trouble(DOCKER.to_owned(), Trouble::Refused { reason, way_out })
        };
        if engine.snap {
            return Err(refused(
                "docker is a snap, whose confinement keeps other runtimes from it",
                "install docker's own packages",
            ));
        }
        if let Some(flag) = engine.runtime_flags.first() {
            let reason =
                format!("docker's unit says {flag}, and dockerd does not start where its file names runtimes, too");
            return Err(refused(&reason, "move the unit's options into daemon.json"));
        }
        let now = self.text(DOCKER)?;
        let after = docker::register(now.as_deref(), self.default)
            .map_err(|trouble| No::Trouble(DOCKER.to_owned(), trouble))?;
        let mut plan = Plan::of(EngineName::Docker);
        if plan.change(DOCKER, now, Some(after), 0o644) {
            plan.next.push(RELOAD_DOCKER.to_owned());
        }
        if !self.default {
            plan.notes.push("only containers of --runtime gpu-preflight are checked".to_owned());
        }
        self.note_nvidia(&mut plan, engine, "--runtime nvidia");
        Ok(plan)
    }

    /// The docker that runs has our name as its default runtime, whatever its file says.
    pub(in super::super) fn keeps_docker_default(&self) -> bool {
        matches!(self.docker, Daemon::Lingers { .. } | Daemon::KeepsName)
    }

    /// What a docker that runs needs, once its file is as it shall be.
    pub(super) fn docker_that_runs(&self, plan: &mut Plan) -> Result<(), No> {
        if let Daemon::Unknown(reason) = &self.docker {
            plan.notes.push(format!(
                "whether the docker that runs calls gpu-preflight could not be told ({reason}): restart it before you \
                 remove {DIRECTORY}"
            ));
        }
        if !self.keeps_docker_default() {
            return Ok(());
        }
        let changed = plan.changes.iter().find(|change| change.path == DOCKER).map(|change| change.after.clone());
        let file = changed.map_or_else(|| self.text(DOCKER), Ok)?;
        let until = match &self.docker {
            Daemon::KeepsName => {
                "what the docker that runs makes until then remembers the name gpu-preflight".to_owned()
            }
            _ => format!(
                "the docker that runs calls gpu-preflight until then, and starts no container without its program: leave \
                 {DIRECTORY} where it is"
            ),
        };
        match file.as_deref().and_then(docker::default_of) {
            // install put nothing there, so nothing is taken away
            Some(name) if name == RUNTIME_NAME => plan.notes.push(format!(
                "{DOCKER} names the default runtime gpu-preflight, and install has no record of it: take it out by hand, \
                 then {RESTART_DOCKER}; {until}"
            )),
            Some(_) => {
                plan.next.push(RELOAD_DOCKER.to_owned());
                plan.notes.push(until);
            }
            None => {
                plan.next.push(RESTART_DOCKER.to_owned());
                plan.notes.push(format!("{until}. {NO_RELOAD}"));
            }
        }
        Ok(())
    }

    /// Containers of docker that will be started by our name, whatever the default is by then.
    pub(super) fn remembering(&self) -> Result<Vec<String>, No> {
        let configured = self.disk.text(DOCKER).ok().flatten().and_then(|text| {
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            Some(value.get("data-root")?.as_str()?.to_owned())
        });
        let asked = if self.host.laid_out { None } else { host::docker_root() };
        let root = asked.or(configured).unwrap_or_else(|| DOCKER_DATA.to_owned());
        // with userns-remap each mapping has a directory of its own, `100000.100000`
        let is_mapping = |name: &String| name.bytes().all(|b| b.is_ascii_digit() || b == b'.') && name.contains('.');
        let mapped = self.names(&root)?.into_iter().filter(is_mapping).map(|name| format!("{root}/{name}"));
        let mut found = Vec::new();
        for directory in [root.clone()].into_iter().chain(mapped).map(|root| format!("{root}/containers")) {
            for id in self.names(&directory)? {
                let read = |file: &str| {
                    let text = self.disk.text(&format!("{directory}/{id}/{file}")).ok()??;
                    serde_json::from_str::<serde_json::Value>(&text).ok()
                };
                if read("hostconfig.json").is_some_and(|config| config["Runtime"] == RUNTIME_NAME) {
                    let name = read("config.v2.json")
                        .and_then(|config| Some(config["Name"].as_str()?.trim_start_matches('/').to_owned()));
                    found.push(name.unwrap_or_else(|| id.chars().take(12).collect()));
                }
            }
        }
        Ok(found)
    }

    /// The names in a directory of docker's; where they cannot be read nobody knows who remembers ours.
    fn names(&self, directory: &str) -> Result<Vec<String>, No> {
        self.disk.list(directory).map_err(|reason| {
            let reason = format!("whether containers remember the runtime cannot be told ({reason})");
            let way_out = "gpu-preflight uninstall docker --force, if none does".to_owned();
            No::Trouble(directory.to_owned(), Trouble::Refused { reason, way_out })
        })
    }
}
