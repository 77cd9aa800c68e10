//! Was a GPU wished for, and how was one given?

use serde::Serialize;

/// How strong the wish for a GPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// No wish.
    #[default]
    None,
    /// Only files in the image: a default `PyTorch` wheel brings CUDA to machines that never had a GPU.
    Files,
    /// `NVIDIA_VISIBLE_DEVICES` is neither empty, `void` nor `none`.
    Environment,
    /// Said in so many words: our annotation or variable, a CDI annotation, the device plugin's mounts.
    Demand,
}

/// The wish, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Wants {
    /// There is one.
    pub wanted: bool,
    /// How strong.
    pub strength: Strength,
    /// Why we think so: the variable or annotation with its value.
    pub why: String,
}

impl Wants {
    /// Somebody asked for a GPU. A wish that only files show is too weak to be let down: the default wheels
    /// of frameworks bring CUDA to machines that never had a GPU.
    pub fn is_asked(&self) -> bool {
        self.wanted && self.strength >= Strength::Environment
    }
}

/// How a GPU was given, recognised by nodes, rules, mounts and hooks, never by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Given {
    /// Not at all.
    #[default]
    None,
    /// Nodes, mounts and hooks of a CDI specification.
    Cdi,
    /// NVIDIA's prestart or createRuntime hook injects.
    LegacyHook,
    /// All of the host's nodes and nothing else.
    Privileged,
    /// Single nodes, and nothing else.
    RawDevices,
    /// `/dev/dxg`.
    Wsl,
    /// Jetson's nodes.
    Tegra,
    /// A whole function, for a virtual machine (vfio).
    Vm,
}

/// NVIDIA's injecting hook in the spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyHook {
    /// Its program.
    pub path: String,
    /// Stage it stands in.
    pub stage: String,
    /// Has it run?
    pub state: LegacyState,
}

/// Whether the legacy hook has done its work when we look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyState {
    /// It ran before us: what it made is there to be judged.
    HasRun,
    /// It comes after us: what it will make counts as made.
    StillToRun,
}
