//! Facts of the machine, as files show them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::observed::NOT_STATED;
use super::{Observed, Parts, Release};

mod caller;
mod cuda;
mod driver;
mod gpu;
mod holder;
mod node;
mod nvml;
#[cfg(feature = "cli")]
mod profile;
mod registration;
mod stack;
mod stuck;
#[cfg(feature = "cli")]
mod unseen;
mod uvm;

pub use caller::{PathLibrary, Python};
pub use cuda::CudaStart;
pub use driver::{DkmsModule, Driver, DriverLibrary, DriverRoot, Installed, KernelModule, ModuleFiles};
pub use gpu::{Gpu, PciFunction};
pub use holder::{HeldBy, Holder};
pub use node::{Majors, Node, NodeKind};
pub use nvml::{ComputeMode, Fabric, FabricState, MigDevice, Nvml, NvmlGpu, NvmlProcess, NvmlTrouble, Virtualization};
#[cfg(feature = "cli")]
pub use profile::Carried;
pub use registration::{Daemon, Entry, EntryWay, OwnProgram, RegisteredEngine, Registration};
pub use stack::{CdiDevice, CdiHook, CdiNode, CdiSpec, Engine, EngineKind, Invalid, Toolkit, ToolkitConfig};
pub use stuck::StuckProcess;
pub use uvm::UvmSigns;

/// What kind of NVIDIA machine this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Discrete GPUs behind `nvidia.ko`, or nothing of NVIDIA at all.
    #[default]
    Native,
    /// Windows' GPU through `/dev/dxg`: no modules, no NVIDIA nodes.
    Wsl,
    /// Jetson: the integrated GPU behind `nvgpu`, nodes of other names.
    Tegra,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Host {
    /// Nothing of the caller's own process counts: the facts are of a directory (`--host-root`).
    #[serde(skip)]
    pub laid_out: bool,
    /// What kind of machine.
    pub platform: Platform,
    /// Jetson Linux release of `/etc/nv_tegra_release`, `36.4.0` for `R36, REVISION: 4.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l4t: Option<String>,
    /// `/proc/sys/kernel/osrelease`.
    pub kernel: Observed<String>,
    /// `x86_64`, `aarch64`: of the machine, by `/proc/sys/kernel/arch` or uname.
    pub architecture: Observed<String>,
    /// Driver, modules, libraries.
    pub driver: Driver,
    /// Display and 3D functions of vendor 10de on the PCI bus.
    pub pci: Observed<Vec<PciFunction>>,
    /// GPUs that the driver knows, by `/proc/driver/nvidia/gpus`, in the order of their PCI address.
    pub gpus: Observed<Vec<Gpu>>,
    /// Character devices that the kernel registered.
    pub majors: Observed<Majors>,
    /// NVIDIA's device nodes (and WSL's, and Jetson's) below `/dev`, by path.
    pub device_nodes: Observed<BTreeMap<String, Node>>,
    /// `/dev/char/MAJOR:MINOR` links, of NVIDIA's majors only; `None`: there is no such directory.
    #[serde(skip)]
    pub dev_char: Observed<Option<Vec<String>>>,
    /// Minors of MIG's capability nodes by path below `/proc/driver/nvidia/capabilities`
    /// (`gpu0/mig/gi1`, `gpu0/mig/gi1/ci0`).
    #[serde(skip)]
    pub mig_capabilities: Observed<BTreeMap<String, u32>>,
    /// NVIDIA's container toolkit.
    pub toolkit: Toolkit,
    /// Engines that are installed, with what their configuration says.
    pub engines: Vec<Engine>,
    /// CDI specifications.
    pub cdi: Observed<Vec<CdiSpec>>,
    /// The only cgroup hierarchy is v2.
    #[serde(skip)]
    pub cgroup_v2: Observed<bool>,
    /// `SELinux` enforces, and the boolean `container_use_devices`.
    #[serde(skip)]
    pub selinux: Observed<Option<SeLinux>>,
    /// UEFI Secure Boot is on; `None` without UEFI.
    #[serde(skip)]
    pub secure_boot: Observed<Option<bool>>,
    /// Lines of the kernel's log files that speak of the NVIDIA driver, newest last.
    #[serde(skip)]
    pub kernel_log: Observed<Vec<String>>,
    /// `ID` and `ID_LIKE` of `os-release`.
    #[serde(skip)]
    pub os: Observed<Vec<String>>,
    /// This machine is itself a container: of docker, podman, or LXC.
    #[serde(skip)]
    pub inside: Option<Inside>,
    /// We are in a user namespace that is not the machine's first, whatever made it: there runtimes leave the
    /// device controller alone.
    #[serde(skip)]
    pub in_user_namespace: bool,
    /// The kubelet runs with the static CPU manager policy; `None`: no kubelet seen.
    #[serde(skip)]
    pub kubelet_static_cpu: Option<bool>,
    /// Docker Desktop is installed, whose containers run in a virtual machine.
    #[serde(skip)]
    pub docker_desktop: bool,
    /// The toolkit's service `nvidia-cdi-refresh` is enabled, which makes a CDI specification at boot.
    #[serde(skip)]
    pub cdi_refresh: bool,
    /// How the device plugin for Kubernetes that runs here hands GPUs to containers: `envvar,volume-mounts`; `None`:
    /// none was seen.
    #[serde(skip)]
    pub device_list_strategy: Option<String>,
    /// Sockets of NVIDIA's daemons below `/run`, which the toolkit hands on into containers:
    /// `/run/nvidia-persistenced/socket`, `/run/nvidia-fabricmanager/socket`.
    #[serde(skip)]
    pub sockets: Observed<Vec<String>>,
    /// How this machine calls our hook; looked at for `status` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration: Option<Registration>,
    /// What NVML says of the GPUs; `None`: nobody asked it, since only `host` and `healthcheck` do, and not of a machine
    /// that is laid out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvml: Option<Nvml>,
    /// Who the processes are that NVML names, by pid; those that could not be looked up are absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gpu_processes: BTreeMap<u32, Holder>,
    /// What a real `cuInit` came to; `None`: nobody called it, since only `--cuda` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda_start: Option<CudaStart>,
    /// What explains a CUDA that does not start.
    #[serde(skip)]
    pub uvm: UvmSigns,
    /// The caller's environment, as far as it speaks of CUDA.
    #[serde(skip)]
    pub environment: Observed<BTreeMap<String, String>>,
    /// libcuda in the directories of the caller's `LD_LIBRARY_PATH`, and libcudart in these and where every loader
    /// looks, in the loader's order.
    #[serde(skip)]
    pub library_path: Observed<Vec<PathLibrary>>,
    /// Processes that sleep inside the driver and do not go on.
    #[serde(skip)]
    pub stuck: Observed<Parts<StuckProcess>>,
    /// The Python on the caller's `PATH`; `None`: there is none.
    #[serde(skip_serializing_if = "has_none")]
    pub python: Observed<Option<Box<Python>>>,
}

fn has_none<T>(fact: &Observed<Option<T>>) -> bool {
    !matches!(fact, Observed::Known(Some(_)))
}

/// `SELinux` as far as containers and devices are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeLinux {
    /// `/sys/fs/selinux/enforce` is 1.
    pub enforcing: bool,
    /// One of the policy's booleans that let containers use GPUs' nodes, `container_use_devices` and
    /// `container_use_xserver_devices`, is on; `None`: the policy has no such boolean.
    pub container_use_devices: Option<bool>,
}

/// What kind of container the judged machine itself is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// docker (`/.dockerenv`) or podman (`/run/.containerenv`).
    Container,
    /// LXC, privileged.
    Lxc,
    /// LXC with an identity mapping that is not the whole range.
    UnprivilegedLxc,
}

impl Host {
    /// This machine has a GPU of NVIDIA's that containers could use: on the bus and not bound to
    /// vfio or a stub, or known to the driver, or behind WSL, or integrated (Jetson).
    pub fn has_gpu(&self) -> Result<bool, super::Unknown> {
        if self.platform != Platform::Native || self.gpus.seen().is_some_and(|g| !g.is_empty()) {
            return Ok(true);
        }
        let on_bus = self.pci.known()?.iter().any(PciFunction::is_for_the_host);
        if !on_bus {
            self.gpus.known()?;
        }
        Ok(on_bus)
    }

    /// There is something to judge an image against: a driver, seen or stated, or a GPU.
    pub fn is_target(&self) -> Result<bool, super::Unknown> {
        Ok(self.driver.version.seen().is_some_and(Option::is_some) || self.has_gpu()?)
    }

    /// It was stated by options, not read: what nobody stated is not known.
    pub fn is_stated(&self) -> bool {
        matches!(&self.cdi, Observed::Unknown(unknown) if unknown.reason == NOT_STATED)
    }

    /// Where the version of its driver was read.
    pub fn source_of_driver(&self) -> &str {
        match &self.cdi {
            Observed::Unknown(unknown) if self.is_stated() => &unknown.source,
            _ => "/sys/module/nvidia/version",
        }
    }

    /// The toolkit's release, if it is installed and known.
    pub fn toolkit_release(&self) -> Option<&Release> {
        self.toolkit.version.seen().and_then(Option::as_ref)
    }
}
