//! Simulated GPU hosts, laid out by `integration/simhost.sh`.

use std::ffi::OsString;
use std::path::Path;

use super::process::Run;
use super::repository;

/// How the host is to be. The default is a machine with two GPUs on which all is well.
#[derive(Debug, Clone)]
pub(crate) struct SimHost {
    pub(crate) gpus: u32,
    pub(crate) driver: &'static str,
    /// What the driver calls the GPUs, and their PCI device id.
    pub(crate) gpu: (&'static str, &'static str),
    pub(crate) modules: &'static str,
    /// What stands for libnvidia-ml, if not an empty library.
    pub(crate) nvml: Option<std::path::PathBuf>,
    /// A shell command that spoils it, run in its root.
    pub(crate) spoil: &'static str,
}

impl Default for SimHost {
    fn default() -> Self {
        Self {
            gpus: 2,
            driver: "550.163.01",
            gpu: ("NVIDIA H100 80GB HBM3", "0x2330"),
            modules: "nvidia nvidia_uvm nvidia_modeset nvidia_drm",
            nvml: None,
            spoil: "",
        }
    }
}

impl SimHost {
    /// A machine without any part of NVIDIA's.
    pub(crate) fn bare() -> Self {
        Self { gpus: 0, modules: "", ..Self::default() }
    }

    /// The same with so many GPUs.
    pub(crate) fn gpus(gpus: u32) -> Self {
        Self { gpus, ..Self::default() }
    }

    /// The same, spoilt.
    pub(crate) fn spoilt(spoil: &'static str) -> Self {
        Self { spoil, ..Self::default() }
    }

    /// Lays it out below a directory, as `--host-root` takes it. Without root it has no device nodes.
    pub(crate) fn lay(&self, dir: &Path) {
        let laid = self.script().args([OsString::from("lay"), dir.into()]).end();
        assert!(laid.status.success(), "simhost.sh: {}", laid.stderr);
    }

    /// A run of a command on this machine, made to look like the host. Needs root.
    pub(crate) fn run(&self, command: impl IntoIterator<Item = impl Into<OsString>>) -> Run {
        self.script().args(["run"]).args(command)
    }

    fn script(&self) -> Run {
        Run::new(repository().join("integration/simhost.sh"))
            .env("GPUS", self.gpus.to_string())
            .env("DRIVER", self.driver)
            .env("GPU_NAME", self.gpu.0)
            .env("GPU_ID", self.gpu.1)
            .env("MODULES", self.modules)
            .env("NVML", self.nvml.clone().unwrap_or_default())
            .env("SPOIL", self.spoil)
    }
}
