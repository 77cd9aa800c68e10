//! Which products the container's GPUs are.

use crate::checks::nodes::role::list;
use crate::checks::request::asked;
use crate::knowledge::compat;
use crate::knowledge::gpus::Brand;
use crate::knowledge::visible_devices::select;
use crate::model::host::{Gpu, Majors, NodeKind, PciFunction};
use crate::model::observed::NOT_STATED;
use crate::model::{ComputeCapability, Facts, Place, Unknown};

/// A GPU that the container was given, by what tells its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Product {
    /// `NVIDIA A100-SXM4-80GB`, if the driver was asked.
    pub(super) name: Option<String>,
    /// PCI device id.
    pub(super) device: Option<u16>,
    /// What it runs, where that was told.
    pub(super) told: Option<ComputeCapability>,
}

impl Product {
    /// Its compute capability, as far as the tables know it.
    pub(super) fn capability(&self, facts: &Facts<'_>) -> Option<ComputeCapability> {
        self.told.or_else(|| facts.knowledge.capability_of(self.name.as_deref(), self.device))
    }

    /// As forward compatibility asks for it.
    pub(super) fn for_compat(&self, facts: &Facts<'_>) -> compat::Gpu {
        compat::Gpu { brand: self.brand().map(Brand::number), capability: self.capability(facts) }
    }

    /// Its brand, as far as its name or its id tells.
    pub(super) fn brand(&self) -> Option<Brand> {
        Brand::of(self.name.as_deref(), self.device)
    }

    /// For messages.
    pub(super) fn label(&self) -> String {
        match (&self.name, self.device, self.told) {
            (Some(name), _, _) => name.clone(),
            (None, Some(device), _) => format!("GPU 10de:{device:04x}"),
            (None, None, Some(capability)) => format!("sm_{}{}", capability.major, capability.minor),
            (None, None, None) => "GPU".to_owned(),
        }
    }
}

/// Several, for messages.
pub(super) fn names<'a>(products: impl Iterator<Item = &'a Product>) -> String {
    let mut names: Vec<String> = products.map(Product::label).collect();
    names.dedup();
    list(names.iter().map(String::as_str))
}

/// The container's GPUs. Where all of the machine's are of one kind it matters not which were given, and
/// the bus alone tells; else the driver is asked.
pub(super) fn of(facts: &Facts<'_>) -> Result<Vec<Product>, Unknown> {
    let bus = match facts.host.pci.known() {
        // GPUs that are stated are on no bus
        Err(unknown) if unknown.reason == NOT_STATED => &Vec::new(),
        bus => bus?,
    };
    let on_bus: Vec<&PciFunction> = bus.iter().filter(|gpu| gpu.is_for_the_host()).collect();
    if let Some(first) = on_bus.first().filter(|first| first.device != 0)
        && on_bus.iter().all(|gpu| gpu.device == first.device)
    {
        let gpu = facts.host.gpus.seen().and_then(|gpus| gpus.first());
        let (name, told) = gpu.map(|gpu| (gpu.name.clone(), gpu.compute_capability)).unwrap_or_default();
        return Ok(vec![Product { name, device: Some(first.device), told }]);
    }
    let gpus = facts.host.gpus.known()?;
    let given: Vec<&Gpu> = given(facts, gpus)?;
    let product = |gpu: &&Gpu| Product {
        name: gpu.name.clone(),
        told: gpu.compute_capability,
        device: on_bus
            .iter()
            .find(|function| function.address == gpu.pci)
            .map(|function| function.device)
            .filter(|d| *d != 0),
    };
    let products: Vec<Product> = given.iter().map(product).collect();
    if products.is_empty() {
        return Err(Unknown::new("host.gpus", "/proc/driver/nvidia/gpus", "which GPUs were given could not be told"));
    }
    Ok(products)
}

/// Those that the container was given, by the request that NVIDIA's hook has still to fulfil or by its nodes; an image
/// is judged for all.
pub(super) fn given<'a>(facts: &Facts<'_>, gpus: &'a [Gpu]) -> Result<Vec<&'a Gpu>, Unknown> {
    if facts.place == Place::Image {
        return Ok(gpus.iter().filter(|gpu| !gpu.excluded).collect());
    }
    if facts.container.legacy_still_to_run() {
        let Some(asked) = asked::of_hook(facts)? else { return Ok(gpus.iter().collect()) };
        let selection = select(&asked.request, gpus);
        return Ok(gpus.iter().filter(|gpu| selection.gpus.contains(&gpu.index)).collect());
    }
    let nodes = facts.container.devices.known()?;
    let is_gpu = |path: &str| Majors::gpu_minor(path).is_some();
    let minors: Vec<u32> =
        nodes.iter().filter(|n| n.kind == NodeKind::CharDevice && is_gpu(&n.path)).map(|n| n.minor).collect();
    Ok(gpus.iter().filter(|gpu| gpu.minor.is_some_and(|minor| minors.contains(&minor))).collect())
}
