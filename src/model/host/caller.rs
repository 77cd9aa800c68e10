//! What the caller's own environment leads programs to. None of it reaches into containers.

use serde::{Deserialize, Serialize};

use crate::model::Release;

/// A library that the loader comes to, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathLibrary {
    /// The name that programs ask for: `libcuda.so.1`, `libcudart.so.12`.
    pub name: String,
    /// Where it lies, as the loader finds it.
    pub path: String,
    /// What it is by the name of the file that its links lead to: `550.163.01`, `12.4.127`; `None`: that tells none.
    pub version: Option<Release>,
    /// Its directory stands in `LD_LIBRARY_PATH`, not only where every program's loader looks.
    pub by_variable: bool,
    /// It is one of the driver's own libraries, reached by whatever way.
    pub of_driver: bool,
}
