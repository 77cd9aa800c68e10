//! Who started a container, and how far it has come.

/// How far the container's start has come when it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moment {
    /// A bundle that nobody has started: what will be there is foretold.
    #[default]
    NotStarted,
    /// A runtime is about to be called for it: foretold as well, and what its hook will see of it is not guessed.
    HandedOver,
    /// The runtime called us as a hook.
    Hook(Stage),
    /// It runs.
    Running,
}

impl Moment {
    /// What will be there is foretold.
    pub const fn is_foretold(self) -> bool {
        matches!(self, Self::NotStarted | Self::HandedOver)
    }
}

/// Stage of an OCI hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are the specification's")]
pub enum Stage {
    Prestart,
    #[default]
    CreateRuntime,
    CreateContainer,
}

impl Stage {
    /// The specification's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prestart => "prestart",
            Self::CreateRuntime => "createRuntime",
            Self::CreateContainer => "createContainer",
        }
    }
}

/// Who started it, as far as the spec shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EngineName {
    Docker,
    Podman,
    Containerd,
    Crio,
    #[default]
    Unknown,
}

impl EngineName {
    /// As the decision log has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Containerd => "containerd",
            Self::Crio => "crio",
            Self::Unknown => "unknown",
        }
    }
}

/// A scheduler, by annotation or cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Scheduler {
    Kubernetes,
    Nomad,
    Ecs,
    Slurm,
}

impl Scheduler {
    /// For messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "Kubernetes",
            Self::Nomad => "Nomad",
            Self::Ecs => "ECS",
            Self::Slurm => "Slurm",
        }
    }
}

/// A builder whose steps never have a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Builder {
    BuildKit,
    Buildah,
    DockerClassic,
}

impl Builder {
    /// For messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuildKit => "BuildKit",
            Self::Buildah => "buildah",
            Self::DockerClassic => "docker",
        }
    }
}

/// A sandbox: its devices are opened by a process outside the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Sandbox {
    Gvisor,
    Kata,
    Sysbox,
}

impl Sandbox {
    /// For messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gvisor => "gVisor",
            Self::Kata => "Kata",
            Self::Sysbox => "Sysbox",
        }
    }
}
