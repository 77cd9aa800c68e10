//! What the driver's management library says of the GPUs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One reading of NVML, recorded and replayed as JSON. What an old driver cannot tell, or a GPU does not have, is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Nvml {
    /// Why it told nothing, or nothing more: it could not be loaded, did not start, or did not come back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<NvmlTrouble>,
    /// The driver's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The CUDA that the driver offers, `12.4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// It was asked in the machine's own pid namespace, where it names every process.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sees_all_processes: bool,
    /// The GPUs in its own order.
    pub gpus: Vec<NvmlGpu>,
}

/// A call that did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NvmlTrouble {
    /// There is no library where the loader looks, or it cannot be loaded: why.
    NotLoaded(String),
    /// The call and its code (`nvmlReturn_t`).
    Failed(String, u32),
    /// The call had not come back when the time was over.
    Late(String),
    /// The process ended in the call.
    Died(String),
    /// Nobody could ask, which is no fault of its own: why.
    NotAsked(String),
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NvmlGpu {
    /// NVML's index.
    pub index: u32,
    /// It did not answer: nothing else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<NvmlTrouble>,
    /// `GPU-…`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// What the driver calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// As the kernel writes it, `0000:65:00.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
    /// Number of its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
    /// `9.0`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Bytes of it that are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_free: Option<u64>,
    /// Bytes of it that the driver keeps for itself, which are neither free nor in use; older drivers count them as in
    /// use and do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_reserved: Option<u64>,
    /// Persistence mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
    /// Who may use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_mode: Option<ComputeMode>,
    /// Uncorrectable memory errors since the driver was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncorrectable: Option<u64>,
    /// A row of memory waits for a reset to be replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remap_pending: Option<bool>,
    /// A row of memory could not be replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remap_failed: Option<bool>,
    /// A page of memory waits for a reset to be retired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retirement_pending: Option<bool>,
    /// Pages of memory that are retired (GPUs before Ampere).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retired_pages: Option<u32>,
    /// MIG is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig: Option<bool>,
    /// Its MIG devices; `None`: it does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig_devices: Option<Vec<MigDevice>>,
    /// MPS shares it among processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mps: Option<bool>,
    /// Processes that compute on it; `None`: it does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<NvmlProcess>>,
    /// Processes that draw on it; `None`: it does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphics: Option<Vec<NvmlProcess>>,
    /// How it comes to this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<Virtualization>,
    /// A virtual GPU that needs a licence has one; `None`: it needs none, or does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licensed: Option<bool>,
    /// Its place in an `NVSwitch` fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
}

/// Who may use a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeMode {
    /// Any number of processes.
    Default,
    /// One process.
    Exclusive,
    /// Nobody.
    Prohibited,
}

/// How a GPU comes to a machine (`nvmlGpuVirtualizationMode_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Virtualization {
    /// The machine's own.
    None,
    /// A virtual machine has the whole of it.
    Passthrough,
    /// A virtual machine has a part of it, a vGPU.
    Vgpu,
    /// This machine gives parts of it to virtual machines.
    HostVgpu,
    /// As before, for graphics alone.
    HostVsga,
}

/// How far a GPU's registration with an `NVSwitch` fabric is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fabric {
    /// Where it is.
    pub state: FabricState,
    /// How it ended (`nvmlReturn_t`, 0: well).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u32>,
}

/// The states of a registration (`nvmlGpuFabricState_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are NVIDIA's")]
pub enum FabricState {
    NotSupported,
    NotStarted,
    InProgress,
    Completed,
}

/// A part of a GPU that CUDA sees as a device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MigDevice {
    /// `MIG-…`
    pub uuid: String,
    /// `1g.10gb`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NvmlProcess {
    /// In the pid namespace that NVML was asked in; a recording does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Bytes of memory that it holds, if the driver tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl Nvml {
    /// The code with which it did not start.
    pub fn code(&self) -> Option<u32> {
        self.trouble.as_ref()?.code()
    }

    /// GPUs that answered.
    pub fn answering(&self) -> impl Iterator<Item = &NvmlGpu> {
        self.gpus.iter().filter(|gpu| gpu.trouble.is_none())
    }
}

impl NvmlGpu {
    /// Processes of every kind, each once, those that hold most memory first; none if it does not tell.
    pub fn holders(&self) -> Vec<&NvmlProcess> {
        let mut all: Vec<&NvmlProcess> = self.processes.iter().chain(&self.graphics).flatten().collect();
        all.sort_by_key(|process| (Reverse(process.memory), process.pid));
        let mut seen = BTreeSet::new();
        all.retain(|process| process.pid.is_none_or(|pid| seen.insert(pid)));
        all
    }
}

impl NvmlTrouble {
    /// The library's own code, if it gave one.
    pub fn code(&self) -> Option<u32> {
        match self {
            Self::Failed(_, code) => Some(*code),
            _ => None,
        }
    }
}
