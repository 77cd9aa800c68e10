//! What hands GPUs to containers on this machine: toolkit, engines, CDI.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Observed, Release};

/// NVIDIA's container toolkit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Toolkit {
    /// Its version by the package database; `None`: no package of it is installed.
    pub version: Observed<Option<Release>>,
    /// Version of the library below it, libnvidia-container, whose package may be newer; `None`: no package
    /// tells it.
    #[serde(skip)]
    pub libnvidia_container: Option<Release>,
    /// Version of the package `nvidia-container-runtime-hook`, which the toolkit replaced in 2019: it counts
    /// its versions apart, and whatever it is, it is older. `None`: it is not installed, or the toolkit is too.
    #[serde(skip)]
    pub predecessor: Option<Release>,
    /// Its programs by name, with the path each was found at.
    #[serde(skip)]
    pub programs: Observed<BTreeMap<String, String>>,
    /// Its configuration; `None`: there is no such file, the defaults hold.
    #[serde(skip)]
    pub config: Observed<Option<ToolkitConfig>>,
}

/// `/etc/nvidia-container-runtime/config.toml`, as far as it matters here. Absent keys are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolkitConfig {
    /// Where it was read.
    pub path: String,
    /// `disable-require`
    pub disable_require: Option<bool>,
    /// `accept-nvidia-visible-devices-as-volume-mounts`
    pub accept_volume_mounts: Option<bool>,
    /// `accept-nvidia-visible-devices-envvar-when-unprivileged`
    pub accept_envvar_unprivileged: Option<bool>,
    /// `swarm-resource`
    pub swarm_resource: Option<String>,
    /// `[nvidia-container-cli] root`
    pub cli_root: Option<String>,
    /// `[nvidia-container-cli] no-cgroups`
    pub no_cgroups: Option<bool>,
    /// `[nvidia-container-cli] load-kmods`
    pub load_kmods: Option<bool>,
    /// `[nvidia-container-cli] user`
    pub cli_user: Option<String>,
    /// `[nvidia-container-cli] path`
    pub cli_path: Option<String>,
    /// `supported-driver-capabilities`
    pub supported_capabilities: Option<String>,
    /// `[nvidia-container-cli] ldconfig`
    pub ldconfig: Option<String>,
    /// `[nvidia-container-runtime] mode`
    pub mode: Option<String>,
    /// `[nvidia-container-runtime] runtimes`
    pub runtimes: Option<Vec<String>>,
    /// `[nvidia-container-runtime.modes.legacy] cuda-compat-mode`
    pub cuda_compat_mode: Option<String>,
    /// `[features] disable-cuda-compat-lib-hook`
    pub disable_cuda_compat_hook: Option<bool>,
    /// `[nvidia-container-runtime-hook] skip-mode-detection`
    pub skip_mode_detection: Option<bool>,
}

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EngineKind {
    Docker,
    Podman,
    Containerd,
    Crio,
}

impl EngineKind {
    /// The name that the engine's tools have.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Containerd => "containerd",
            Self::Crio => "crio",
        }
    }

    /// The configuration file that the engine reads if it is told of no other.
    pub const fn configuration(self) -> &'static str {
        match self {
            Self::Docker => "/etc/docker/daemon.json",
            Self::Podman => "/etc/containers/containers.conf",
            Self::Containerd => "/etc/containerd/config.toml",
            Self::Crio => "/etc/crio/crio.conf",
        }
    }
}

/// An installed engine with what its configuration files say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// Which.
    pub kind: EngineKind,
    /// Its program or configuration, whichever was found.
    pub path: String,
    /// Runtimes it is configured with, name to program; empty: none but the default.
    #[serde(default)]
    pub runtimes: BTreeMap<String, String>,
    /// Arguments of these runtimes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runtime_args: BTreeMap<String, Vec<String>>,
    /// Its default runtime, if the configuration names one.
    pub default_runtime: Option<String>,
    /// The cgroup driver is systemd's; `None`: the configuration does not say.
    pub systemd_cgroup: Option<bool>,
    /// Directories it searches for CDI specifications, if the configuration names them.
    pub cdi_spec_dirs: Option<Vec<String>>,
    /// CDI is switched on or off; `None`: the configuration does not say.
    pub cdi: Option<bool>,
    /// Directories it takes hooks from, if the configuration names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks_dirs: Option<Vec<String>>,
    /// Options of its unit that name runtimes; docker does not start where its file names some, too.
    #[serde(skip)]
    pub runtime_flags: Vec<String>,
    /// A file that has the last word over the engine's main one on its default runtime.
    #[serde(skip)]
    pub overridden_by: Option<String>,
    /// Installed as a snap.
    #[serde(default)]
    pub snap: bool,
    /// A file of its configuration that could not be read as what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// docker: its file is one that dockerd does not start with.
    #[serde(skip)]
    pub invalid: Option<Invalid>,
}

/// A file that an engine's daemon does not start with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The file.
    pub file: String,
    /// What is wrong with it, and where.
    pub reason: String,
    /// The daemon runs, by what it read before; `None`: its processes do not show.
    pub runs: Option<bool>,
}

impl Engine {
    /// One of which nothing but its kind and place is known.
    pub fn new(kind: EngineKind, path: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.into(),
            runtimes: BTreeMap::new(),
            runtime_args: BTreeMap::new(),
            default_runtime: None,
            systemd_cgroup: None,
            cdi_spec_dirs: None,
            cdi: None,
            hooks_dirs: None,
            runtime_flags: Vec::new(),
            overridden_by: None,
            snap: false,
            broken: None,
            invalid: None,
        }
    }
}

/// One CDI specification file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CdiSpec {
    /// The file.
    pub path: String,
    /// `cdiVersion`
    pub version: String,
    /// `nvidia.com/gpu`, …
    pub kind: String,
    /// Its devices.
    pub devices: Vec<CdiDevice>,
    /// Nodes that every device of it brings.
    pub nodes: Vec<CdiNode>,
    /// Files that it mounts from the host, of all devices, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// Hooks, of all devices, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<CdiHook>,
    /// Host paths named in it (nodes, mounts, hooks) that are not there.
    pub gone: Vec<String>,
    /// Driver version by the names of the libraries it mounts.
    pub driver: Option<Release>,
    /// It could not be read as what it is; all else is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// A device of a CDI specification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CdiDevice {
    /// `0`, `all`, a UUID, …
    pub name: String,
    /// Its own nodes.
    pub nodes: Vec<CdiNode>,
}

/// A node in a CDI specification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CdiNode {
    /// Path in the container.
    pub path: String,
    /// Path on the host, where it differs.
    pub host_path: Option<String>,
    /// Absent or 0: the engine takes the host node's number.
    pub major: Option<u32>,
    /// See `major`.
    pub minor: Option<u32>,
    /// Group that the node gets.
    pub gid: Option<u32>,
    /// Mode that the node gets.
    pub mode: Option<u32>,
}

/// A hook in a CDI specification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CdiHook {
    /// The program.
    pub path: String,
    /// Its arguments.
    pub args: Vec<String>,
}
