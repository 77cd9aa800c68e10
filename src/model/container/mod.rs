//! Facts of one container: what it asks for, what it was given, who it runs as.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Observed, Parts, Unknown};

mod given;
mod identity;
mod inside;
mod nodes;
mod origin;

pub use given::{Given, LegacyHook, LegacyState, Strength, Wants};
pub use identity::{CapabilitySets, IdMapping, Identity};
pub use inside::FromInside;
pub use nodes::{Access, ContainerNode, DeviceRule, Refusal, SpecDevice};
pub use origin::{Builder, EngineName, Moment, Sandbox, Scheduler, Stage};

/// A container, running, about to start, or only laid out as a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Container {
    /// The engine's id for it, if there is one.
    #[serde(skip)]
    pub id: String,
    /// How far its start has come.
    #[serde(skip)]
    pub moment: Moment,
    /// Who started it.
    #[serde(skip)]
    pub engine: EngineName,
    /// A scheduler placed it here, and hands out GPUs by resource.
    #[serde(skip)]
    pub scheduler: Option<Scheduler>,
    /// It is a step of an image build.
    #[serde(skip)]
    pub builder: Option<Builder>,
    /// Its devices are opened by somebody else.
    #[serde(skip)]
    pub sandbox: Option<Sandbox>,
    /// It runs in an engine without root.
    #[serde(skip)]
    pub rootless: bool,
    /// Does it want a GPU?
    pub wants_gpu: Wants,
    /// How a GPU was given to it.
    pub gpu_given: Observed<Given>,
    /// NVIDIA's hook in its spec, and whether it has run.
    #[serde(skip)]
    pub legacy_hook: Option<LegacyHook>,
    /// Its environment, the last value of each variable, as the spec has it before CDI put in `void`.
    #[serde(skip)]
    pub environment: Observed<BTreeMap<String, String>>,
    /// The value of `NVIDIA_VISIBLE_DEVICES` that counts: not the `void` that CDI put in.
    #[serde(skip)]
    pub visible_devices: Observed<Option<String>>,
    /// CDI's own `void` was seen: the devices come from a CDI specification.
    #[serde(skip)]
    pub cdi_marked: bool,
    /// Annotations.
    #[serde(skip)]
    pub annotations: Observed<BTreeMap<String, String>>,
    /// Names of devices that the device plugin hands over as volume mounts.
    #[serde(skip)]
    pub volume_mount_devices: Observed<Vec<String>>,
    /// Names of CDI devices in its annotations.
    #[serde(skip)]
    pub cdi_annotations: Observed<Vec<String>>,
    /// Nodes that the spec names.
    #[serde(skip)]
    pub spec_devices: Observed<Parts<SpecDevice>>,
    /// Device rules of the spec, in order; the last that matches counts.
    #[serde(skip)]
    pub rules: Observed<Parts<DeviceRule>>,
    /// Nodes of NVIDIA's that the container has, or will have: looked at where that is possible,
    /// foretold from spec and host where not.
    pub devices: Observed<Vec<ContainerNode>>,
    /// Where the dynamic loader would find libcuda in the container; empty: nowhere.
    #[serde(skip)]
    pub libcuda: Observed<Vec<String>>,
    /// Its program and that one's arguments.
    #[serde(skip)]
    pub args: Observed<Vec<String>>,
    /// Where its program starts, if the spec says it.
    #[serde(skip)]
    pub working_directory: Option<String>,
    /// Its program's user.
    pub user: Observed<Identity>,
    /// Its user namespace, inside to outside; empty: the engine's own.
    #[serde(skip)]
    pub uid_mappings: Observed<Vec<IdMapping>>,
    /// See `uid_mappings`.
    #[serde(skip)]
    pub gid_mappings: Observed<Vec<IdMapping>>,
    /// `linux.cgroupsPath`.
    #[serde(skip)]
    pub cgroups_path: Observed<Option<String>>,
    /// `SELinux` label of the process.
    #[serde(skip)]
    pub selinux_label: Observed<Option<String>>,
    /// Size of its `/dev/shm` in bytes; `None`: the spec sets none.
    #[serde(skip)]
    pub shm_size: Observed<Option<u64>>,
    /// Mounts of the spec.
    #[serde(skip)]
    pub mounts: Observed<Parts<Mount>>,
    /// Hooks of the spec by stage, program and arguments.
    #[serde(skip)]
    pub hooks: Observed<Parts<SpecHook>>,
    /// The entrypoint may raise its privileges: setuid, or with file capabilities; `None`: nobody looked.
    #[serde(skip)]
    pub privileged_entrypoint: Option<bool>,
    /// What the health check was told, and remembers; `None`: somebody else asks.
    #[serde(skip)]
    pub inside: Option<FromInside>,
}

/// A mount of the spec.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mount {
    /// In the container.
    pub destination: String,
    /// On the host, or a file system's name.
    pub source: String,
    /// `bind`, `tmpfs`, …
    pub kind: String,
    /// Options.
    pub options: Vec<String>,
}

/// A hook of the spec.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecHook {
    /// `prestart`, `createRuntime`, …
    pub stage: String,
    /// Its place in the stage's list.
    pub place: usize,
    /// The program.
    pub path: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Container {
    /// A variable of its environment.
    pub fn variable(&self, name: &str) -> Result<Option<&str>, Unknown> {
        Ok(self.environment.known()?.get(name).map(String::as_str))
    }

    /// It asks for a GPU in a way that counts where it runs: under a scheduler GPUs are asked for by
    /// resource, and a variable that the image brings says nothing.
    pub fn asks_for_gpu(&self) -> bool {
        match self.wants_gpu.strength {
            Strength::None | Strength::Files => false,
            Strength::Environment => self.wants_gpu.wanted && self.scheduler.is_none(),
            Strength::Demand => self.wants_gpu.wanted,
        }
    }

    /// Everything the legacy hook would do is still to come, so what it makes counts as made.
    pub fn legacy_still_to_run(&self) -> bool {
        self.legacy_hook.as_ref().is_some_and(|h| h.state == LegacyState::StillToRun)
    }

    /// A GPU was given, in whatever way.
    pub fn has_gpu(&self) -> Result<bool, Unknown> {
        Ok(*self.gpu_given.known()? != Given::None)
    }

    /// By the health check's memory, the container could use such a node since its start.
    pub fn had(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.inside.as_ref().is_some_and(|inside| inside.had.iter().any(|node| is_it(node)))
    }

    /// It is in a user namespace of its own.
    pub fn in_user_namespace(&self) -> Result<bool, Unknown> {
        Ok(!self.uid_mappings.known()?.is_empty())
    }
}
