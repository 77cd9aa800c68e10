//! What would be changed for an engine, before anything is.

use super::disk::Disk;
use super::record::Records;
use crate::cli::EngineName;
use crate::knowledge::toolkit::{CONFIGURATIONS, RUNTIME, is_runtime};
use crate::model::Host;
use crate::model::host::{Daemon, Engine, EngineKind};
use crate::model::own::{NRI_PLUGINS, RUNTIME as RUNTIME_PROGRAM, WRAPPER, is_hook_injector};
use crate::policy::Policy;
use crate::register::wrapper::Wrapper;
use crate::register::{DIRECTORY, Trouble, cdi, containerd, docker, hooks_d, nvidia};

mod of_docker;

use of_docker::{NO_RELOAD, RELOAD_DOCKER};

/// docker's configuration.
pub(super) const DOCKER: &str = EngineKind::Docker.configuration();
pub(super) const RESTART_DOCKER: &str = "systemctl restart docker";
const CONTAINERD: &str = EngineKind::Containerd.configuration();

/// A file that is to have another text.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) path: String,
    /// As it is.
    pub(super) now: Option<String>,
    /// As it shall be; `None`: it goes.
    pub(super) after: Option<String>,
    pub(super) mode: u32,
}

/// What comes of an engine.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) engine: EngineName,
    pub(super) changes: Vec<Change>,
    /// What its user has to do then.
    pub(super) next: Vec<String>,
    /// What else is worth knowing.
    pub(super) notes: Vec<String>,
    /// Something of ours has to stay.
    pub(super) stays: bool,
    /// Files that other engines may need as well.
    pub(super) shares: Vec<String>,
}

/// Why there is no plan.
#[derive(Debug, Clone)]
pub(super) enum No {
    /// It is not on this machine.
    Absent(String),
    /// Its file, and what is wrong.
    Trouble(String, Trouble),
}

impl Plan {
    fn of(engine: EngineName) -> Self {
        Self { engine, changes: Vec::new(), next: Vec::new(), notes: Vec::new(), stays: false, shares: Vec::new() }
    }

    /// Only what really changes.
    fn change(&mut self, path: &str, now: Option<String>, after: Option<String>, mode: u32) -> bool {
        let changes = now != after;
        if changes {
            self.changes.push(Change { path: path.to_owned(), now, after, mode });
        }
        changes
    }

    fn wrapper(&mut self, wrapper: Option<Wrapper>, disk: &Disk<'_>) {
        if let Some(Wrapper { path, text }) = wrapper {
            let now = disk.text(&path).unwrap_or_default();
            self.change(&path, now, Some(text), 0o755);
        }
    }
}

/// What is asked for, and the machine.
pub(super) struct Asked<'a> {
    pub(super) host: &'a Host,
    pub(super) policy: &'a Policy,
    pub(super) disk: &'a Disk<'a>,
    pub(super) default: bool,
    pub(super) force: bool,
    /// What the docker that runs keeps of ours.
    pub(super) docker: Daemon,
}

impl Asked<'_> {
    /// Registers with an engine.
    pub(super) fn install(&self, engine: EngineName, records: &Records<'_>) -> Result<Plan, No> {
        match engine {
            EngineName::Docker => self.docker_registered(),
            EngineName::Podman => self.hooks_d(engine, EngineKind::Podman),
            EngineName::Crio => self.hooks_d(engine, EngineKind::Crio),
            EngineName::Containerd => self.containerd(records),
            EngineName::Nvidia => self.nvidia(),
            EngineName::Cdi => self.cdi(),
        }
    }

    fn containerd(&self, records: &Records<'_>) -> Result<Plan, No> {
        let engine = self.engine(EngineKind::Containerd)?;
        if engine.path.starts_with("/var/lib/rancher/") {
            let reason = "k3s and rke2 write it anew at each start".to_owned();
            let way_out = "put hooks/containerd-2.toml into config-v3.toml.tmpl beside it".to_owned();
            return Err(No::Trouble(engine.path.clone(), Trouble::Refused { reason, way_out }));
        }
        let now = self.text(CONTAINERD)?;
        let trouble = |trouble| No::Trouble(CONTAINERD.to_owned(), trouble);
        if let Some(file) = &engine.overridden_by {
            let reason = format!("{file} has the last word on runtimes, and this file none");
            let way_out = "put what hooks/containerd-2.toml (or -1) has into that file".to_owned();
            return Err(trouble(Trouble::Refused { reason, way_out }));
        }
        let before = records.before(CONTAINERD);
        let registered = containerd::register(now.as_deref(), before.as_deref(), self.default).map_err(trouble)?;
        let mut plan = Plan::of(EngineName::Containerd);
        plan.wrapper(registered.wrapper, self.disk);
        if plan.change(CONTAINERD, now, Some(registered.text), 0o644) {
            plan.next.push("systemctl restart containerd".to_owned());
        }
        if self.disk.names(NRI_PLUGINS).iter().any(|name| is_hook_injector(name)) {
            self.add_hooks_d(&mut plan, hooks_d::USUAL)?;
        }
        if !self.default {
            plan.notes.push("only pods whose RuntimeClass names the handler gpu-preflight are checked".to_owned());
        }
        self.note_nvidia(&mut plan, engine, "a RuntimeClass of NVIDIA's runtime");
        Ok(plan)
    }

    /// NVIDIA's runtime calls what its own configuration names.
    fn note_nvidia(&self, plan: &mut Plan, engine: &Engine, how: &str) {
        let has_it = engine.runtimes.values().any(|program| is_runtime(program));
        let mut texts = self.nvidia_configurations().filter_map(|path| self.disk.text(path).ok()?);
        let is_registered = texts.any(|text| nvidia::leads_to_ours(&text));
        if has_it && !is_registered {
            plan.notes.push(format!("containers of {how} are checked after: gpu-preflight install nvidia"));
        }
    }

    fn hooks_d(&self, name: EngineName, kind: EngineKind) -> Result<Plan, No> {
        let engine = self.engine(kind)?;
        let mut plan = Plan::of(name);
        let directory = hooks_directory(engine).ok_or_else(|| {
            let reason = "its configuration names no hooks directory (hooks_dir) that could be written to".to_owned();
            let way_out = format!("hooks_dir = [\"{}\"]", hooks_d::USUAL);
            No::Trouble(engine.path.clone(), Trouble::Refused { reason, way_out })
        })?;
        self.add_hooks_d(&mut plan, directory)?;
        Ok(plan)
    }

    fn add_hooks_d(&self, plan: &mut Plan, directory: &str) -> Result<(), No> {
        let path = format!("{}/{}", directory.trim_end_matches('/'), hooks_d::FILE);
        let now = self.text(&path)?;
        plan.shares.push(path.clone());
        plan.change(&path, now, Some(hooks_d::text(self.policy.wait_for_driver.as_secs())), 0o644);
        Ok(())
    }

    fn nvidia_configurations(&self) -> impl Iterator<Item = &'static str> {
        CONFIGURATIONS.into_iter().filter(|path| self.disk.is_there(path))
    }

    fn nvidia(&self) -> Result<Plan, No> {
        let programs = self.host.toolkit.programs.seen();
        let has_runtime = programs.is_some_and(|programs| programs.contains_key(RUNTIME));
        let mut files: Vec<&str> = self.nvidia_configurations().collect();
        if files.is_empty() && has_runtime {
            files.push(CONFIGURATIONS[0]);
        }
        if files.is_empty() {
            return Err(No::Absent("NVIDIA's container runtime is not on this machine".to_owned()));
        }
        let mut plan = Plan::of(EngineName::Nvidia);
        for path in files {
            let now = self.text(path)?;
            let registered = nvidia::register(
                now.as_deref(),
                if path == CONFIGURATIONS[0] { "nvidia" } else { "nvidia-operator" },
                |program| self.is_on_path(program),
            );
            let registered = registered.map_err(|trouble| No::Trouble(path.to_owned(), trouble))?;
            plan.wrapper(registered.wrapper, self.disk);
            plan.change(path, now, Some(registered.text), 0o644);
            if path == CONFIGURATIONS[1] {
                plan.notes
                    .push(format!("the GPU Operator writes {path} anew at each rollout; gpu-preflight status tells"));
            }
        }
        Ok(plan)
    }

    /// A program by its path, or by its name where a daemon looks for it.
    fn is_on_path(&self, program: &str) -> bool {
        let places = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        if program.contains('/') {
            return self.disk.is_program(program);
        }
        places.iter().any(|place| self.disk.is_program(&format!("{place}/{program}")))
    }

    fn cdi(&self) -> Result<Plan, No> {
        let mut plan = Plan::of(EngineName::Cdi);
        let now = self.text(cdi::FILE)?;
        plan.change(cdi::FILE, now, Some(cdi::text(self.policy.wait_for_driver.as_secs())), 0o644);
        plan.notes.push(format!("a container is checked that asks for it behind its GPU: --device {}", cdi::DEVICE));
        Ok(plan)
    }

    /// Takes ours out again.
    pub(super) fn uninstall(&self, engine: EngineName, records: &Records<'_>) -> Result<Plan, No> {
        let mut plan = Plan::of(engine);
        let remembering = if engine == EngineName::Docker && !self.force { self.remembering()? } else { Vec::new() };
        let remembered = !remembering.is_empty();
        for changed in records.of(engine).files.iter().rev() {
            let path = &changed.path;
            // podman, CRI-O and NRI share a directory
            if let Some(other) = records.other_with(engine, path) {
                plan.notes.push(format!("{path} stays: {} needs it, too", super::record::name(other)));
                continue;
            }
            let Some(now) = self.text(path)? else { continue };
            let before = if changed.existed { records.before(path) } else { None };
            if changed.existed && before.is_none() {
                let reason = "what stood there before was kept, and is gone".to_owned();
                let way_out =
                    format!("take gpu-preflight out of it by hand, then remove {}", super::record::file(engine));
                return Err(No::Trouble(path.clone(), Trouble::Refused { reason, way_out }));
            }
            if engine == EngineName::Containerd && path.contains(WRAPPER) {
                Self::let_wrapper_stay(path, now, &mut plan);
                continue;
            }
            let edited = |text: &str| match engine {
                EngineName::Docker => docker::unregister(text, before.as_deref(), remembered),
                EngineName::Containerd if path == CONTAINERD => containerd::unregister(text, before.as_deref()),
                EngineName::Nvidia if CONFIGURATIONS.contains(&path.as_str()) => {
                    nvidia::unregister(text, before.as_deref())
                }
                _ => Ok(before.clone()),
            };
            let after = if records.is_as_written(engine, path, &now) && !remembered {
                before.clone()
            } else {
                edited(&now).map_err(|trouble| No::Trouble(path.clone(), trouble))?
            };
            let restarts = engine == EngineName::Docker && docker::loses_its_default(&now, after.as_deref());
            let changes = plan.change(path, Some(now), after, 0o644);
            match engine {
                // said below
                EngineName::Docker if self.keeps_docker_default() => {}
                EngineName::Docker if restarts => {
                    plan.next.push(RESTART_DOCKER.to_owned());
                    plan.notes.push(format!("{NO_RELOAD}. Until the restart leave {DIRECTORY} where it is"));
                }
                EngineName::Docker if changes => plan.next.push(RELOAD_DOCKER.to_owned()),
                EngineName::Containerd if changes && path == CONTAINERD => {
                    plan.next.push("systemctl restart containerd".to_owned());
                }
                _ => {}
            }
        }
        if engine == EngineName::Docker {
            self.docker_that_runs(&mut plan)?;
        }
        if remembered {
            plan.stays = true;
            plan.notes.push(format!(
                "the name gpu-preflight stays and leads to the real runtime, since containers remember it: {}. When they are \
                 gone, or to lose them, gpu-preflight uninstall docker [--force]",
                remembering.join(", ")
            ));
        }
        Ok(plan)
    }

    /// containerd calls it until it is restarted, and shims of pods that run do so for all their life: it leads past ours
    /// from now on.
    fn let_wrapper_stay(path: &str, now: String, plan: &mut Plan) {
        let past = now.replace(&format!("exec {RUNTIME_PROGRAM} --runtime "), "exec ");
        plan.change(path, Some(now), Some(past), 0o755);
        plan.notes
            .push(format!("{path} leads past gpu-preflight now; it may go when no pod is left that was started by it"));
    }

    fn engine(&self, kind: EngineKind) -> Result<&Engine, No> {
        let found = self.host.engines.iter().find(|engine| engine.kind == kind);
        found.ok_or_else(|| No::Absent("it is not on this machine".to_owned()))
    }

    fn text(&self, path: &str) -> Result<Option<String>, No> {
        self.disk.text(path).map_err(|reason| No::Trouble(path.to_owned(), Trouble::Broken(reason)))
    }
}

/// The last directory that the engine is configured with, which masks files of earlier ones; else the usual one.
fn hooks_directory(engine: &Engine) -> Option<&str> {
    let Some(directories) = &engine.hooks_dirs else { return Some(hooks_d::USUAL) };
    directories.last().map(String::as_str).filter(|directory| directory.starts_with('/') && directory.len() > 1)
}
