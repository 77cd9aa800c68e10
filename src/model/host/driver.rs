//! The NVIDIA driver: kernel modules and user-space libraries.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{DriverVersion, Observed};

/// The driver.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Driver {
    /// Version of the loaded kernel module; `None`: `nvidia` is not loaded.
    pub version: Observed<Option<DriverVersion>>,
    /// The loaded module is the open one.
    pub open_kernel_modules: Observed<Option<bool>>,
    /// Loaded modules of NVIDIA's and nouveau, by name with underscores.
    pub modules: Observed<BTreeMap<String, KernelModule>>,
    /// `options nvidia …` of modprobe.d, option to value.
    #[serde(skip)]
    pub module_options: Observed<BTreeMap<String, String>>,
    /// Module files on disk.
    #[serde(skip)]
    pub module_files: Observed<ModuleFiles>,
    /// Where the driver's user-space files lie.
    pub root: DriverRoot,
    /// libcuda and libnvidia-ml under the driver root, every version found; in WSL's store of drivers
    /// libnvdxgdmal as well.
    pub libraries: Observed<Vec<DriverLibrary>>,
    /// What is installed by whatever tells it besides; `None`: nobody looked, since libraries and module agree.
    #[serde(skip)]
    pub installed: Option<Box<Installed>>,
}

impl Driver {
    /// A module is loaded.
    pub fn has_module(&self, name: &str) -> Result<bool, crate::model::Unknown> {
        Ok(self.modules.known()?.contains_key(name))
    }
}

/// A loaded kernel module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KernelModule {
    /// `/sys/module/NAME/version`.
    pub version: Option<String>,
}

/// Kernel module files of the driver below `/lib/modules`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleFiles {
    /// For the running kernel, `nvidia`, `nvidia_uvm`, …
    pub running: Vec<String>,
    /// The running kernel's `nvidia` carries a signature, of whatever key; `None`: there is no such file,
    /// or it is compressed and was not looked into.
    pub signed: Option<bool>,
    /// Kernels with a module directory, and whether `nvidia` is in it.
    pub kernels: BTreeMap<String, bool>,
    /// Those whose headers are installed, which a module is built with.
    pub headers: BTreeSet<String>,
    /// What DKMS has of the driver.
    pub dkms: Vec<DkmsModule>,
}

/// A version of the driver's modules that DKMS was given to build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DkmsModule {
    /// `nvidia`, `nvidia-current`, …
    pub name: String,
    /// `550.163.01`
    pub version: String,
    /// The kernels that it was built for, and whether it was installed there as well.
    pub kernels: BTreeMap<String, bool>,
}

/// What was installed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installed {
    /// The package that brings libnvidia-ml, with the driver's version; `None`: there is none, or several disagree.
    pub package: Option<(String, DriverVersion)>,
    /// All packages could be read.
    pub complete: bool,
    /// What NVIDIA's own installer leaves behind to take its work away again.
    pub uninstaller: Option<String>,
    /// The version of the `nvidia` module on disk for the running kernel, where that can be told.
    pub module: Option<DriverVersion>,
}

/// Where the driver's user-space files lie.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DriverRoot {
    /// `/`, `/run/nvidia/driver`, …
    pub path: String,
    /// Who said so: `default`, `--driver-root`, the toolkit's configuration, …
    pub source: String,
}

/// A driver library on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverLibrary {
    /// `libcuda`, `libnvidia-ml`, on WSL `libnvdxgdmal`.
    pub name: String,
    /// Path on the host.
    pub path: String,
    /// From the file's name; `None`: the name carries none.
    pub version: Option<DriverVersion>,
    /// The `.so.1` link in its directory leads to this file: it is the one that a loader takes.
    pub current: bool,
    /// Size in bytes.
    pub size: u64,
}
