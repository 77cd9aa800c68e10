//! GPUs: which generation a device or a product is of, which driver runs it, what toolkits compile for it.

mod brand;
mod chips;
mod generations;
mod products;
#[cfg(feature = "cli")]
mod stated;
mod targets;
#[cfg(test)]
mod tests;

pub use brand::Brand;
pub(crate) use chips::CHIPS;
pub(crate) use generations::GENERATIONS;
pub(crate) use products::PRODUCTS;
#[cfg(feature = "cli")]
pub use stated::{Stated, Unnamed};
pub(crate) use targets::{PTX, TARGETS};

use crate::model::{ComputeCapability, Knowledge};

const fn cc(major: u8, minor: u8) -> ComputeCapability {
    ComputeCapability::new(major, minor)
}

impl Knowledge {
    /// The compute capability of a GPU, by its PCI device id (vendor 10de), or else by the product name that the
    /// driver gives it. `None`: neither is known; nothing is guessed.
    pub fn capability_of(&self, name: Option<&str>, pci_device: Option<u16>) -> Option<ComputeCapability> {
        let by_id = |id: u16| self.chips.iter().find(|chip| (chip.first..=chip.last).contains(&id));
        let chip = pci_device.and_then(by_id).map(|chip| chip.capability);
        chip.or_else(|| name.and_then(|name| products::capability(&self.products, name)))
    }
}
