//! GPUs: what is plugged in, and what the driver made of it.

use serde::{Deserialize, Serialize};

use crate::model::ComputeCapability;

/// A display or 3D function of vendor 10de.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciFunction {
    /// `0000:65:00.0`, lower case, four digits of domain.
    pub address: String,
    /// PCI device id, `0x2330`.
    pub device: u16,
    /// The kernel driver bound to it, if any.
    pub driver: Option<String>,
    /// A virtual function (SR-IOV).
    pub virtual_function: bool,
}

impl PciFunction {
    /// Not handed to a virtual machine: not bound to vfio or a stub.
    pub fn is_for_the_host(&self) -> bool {
        !self
            .driver
            .as_deref()
            .is_some_and(|d| d.starts_with("vfio") || d.ends_with("stub") || d == "nvgrace_gpu_vfio_pci")
    }
}

/// A GPU that the driver knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Its place in the order of PCI addresses: the index that the container stack and `nvidia-smi` use.
    pub index: u32,
    /// PCI address, `0000:65:00.0`.
    pub pci: String,
    /// `GPU-…`; `None`: not read, or the driver has not read it itself (`GPU-????…` on an idle GPU).
    pub uuid: Option<String>,
    /// The number of its device node; `None`: not read.
    pub minor: Option<u32>,
    /// Its product name.
    pub name: Option<String>,
    /// What machine code it runs, where that was told; else name and PCI device tell it, if the tables know them.
    pub compute_capability: Option<ComputeCapability>,
    /// Bytes of memory, as NVML says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The driver was told to leave it alone (`NVreg_ExcludedGpus`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub excluded: bool,
}
