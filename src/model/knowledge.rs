//! The tables that grow with every release of the vendor's, as plain data. `knowledge` fills them, and has
//! the functions over them.

use std::borrow::Cow;

use super::ComputeCapability;

/// The tables, built in or with what the administrator adds to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge {
    /// Releases of the CUDA toolkit, oldest first.
    pub toolkits: Cow<'static, [Toolkit]>,
    /// Branches of the driver, oldest first.
    pub branches: Cow<'static, [Branch]>,
    /// Major versions with minor-version compatibility, oldest first.
    pub majors: Cow<'static, [Major]>,
    /// Packages for forward compatibility, oldest first.
    pub compat_packages: Cow<'static, [CompatPackage]>,
    /// Branches of the host's driver that they work with, oldest CUDA first.
    pub compat_branches: Cow<'static, [CompatBranches]>,
    /// Generations of GPUs, oldest first.
    pub generations: Cow<'static, [Generation]>,
    /// Ranges of PCI device ids, in order, none over another.
    pub chips: Cow<'static, [Chip]>,
    /// Product names; the first that fits counts.
    pub products: Cow<'static, [Product]>,
    /// What toolkits compile for, oldest first. Each stands for the releases up to the next, the newest for itself.
    pub targets: Cow<'static, [Targets]>,
    /// The PTX that toolkits write, oldest first.
    pub ptx: Cow<'static, [Ptx]>,
}

/// A release of the toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// `12.8.1`
    pub cuda: Cow<'static, str>,
    /// The driver it was released with.
    pub driver: Cow<'static, str>,
}

/// A branch of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The first number of its versions.
    pub number: u32,
    /// The CUDA it offers: major and minor.
    pub cuda: (u32, u32),
}

/// A major version of CUDA with minor-version compatibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Major {
    /// 11, 12, …
    pub number: u32,
    /// The first driver on which every runtime of it starts.
    pub driver: Cow<'static, str>,
}

/// A package for forward compatibility, `cuda-compat-12-8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompatPackage {
    /// The release of CUDA, `12.8.1`.
    pub cuda: Cow<'static, str>,
    /// The driver whose libcuda it has.
    pub driver: Cow<'static, str>,
}

/// Drivers that the packages of a CUDA work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompatBranches {
    /// Major and minor of the CUDA.
    pub cuda: (u32, u32),
    /// Branches of the host's driver, in order.
    pub branches: Cow<'static, [u32]>,
}

/// A generation of GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// `Turing`
    pub name: Cow<'static, str>,
    /// Its compute capabilities, least first.
    pub capabilities: Cow<'static, [ComputeCapability]>,
    /// The first branch of the driver that runs some of it; a hint. `None`: older than the tables.
    pub first_branch: Option<u32>,
    /// The last branch that runs it; `None`: the newest does.
    pub last_branch: Option<u32>,
    /// Which kernel modules drive it.
    pub modules: Modules,
}

/// Which flavour of the kernel modules drives a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modules {
    /// Only the proprietary ones.
    Proprietary,
    /// Both.
    Either,
    /// Only the open ones.
    Open,
}

/// PCI device ids of one kind of chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// The first id.
    pub first: u16,
    /// The last.
    pub last: u16,
    /// `GA102`, for readers.
    pub name: Cow<'static, str>,
    /// What they run.
    pub capability: ComputeCapability,
}

/// Product names of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// The words that the name begins with, `GeForce RTX`; empty: the model is the first word.
    pub family: Cow<'static, str>,
    /// The word behind them, any of these.
    pub models: Cow<'static, str>,
    /// A word that must stand somewhere behind, `Ada`; empty: none.
    pub with: Cow<'static, str>,
    /// What they run.
    pub capability: ComputeCapability,
}

/// What a toolkit compiles for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// Its release: major and minor.
    pub cuda: (u32, u32),
    /// Compute capabilities, least first.
    pub capabilities: Cow<'static, [ComputeCapability]>,
}

/// The version of PTX that a toolkit writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ptx {
    /// Its release: major and minor.
    pub cuda: (u32, u32),
    /// Major and minor.
    pub isa: (u32, u32),
}
