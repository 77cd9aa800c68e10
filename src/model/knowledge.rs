//! The tables that grow with every release of the vendor's, as plain data. `knowledge` fills them, and has
//! the functions over them.

use std::borrow::Cow;

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
