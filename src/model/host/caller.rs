//! What the caller's own environment leads programs to. None of it reaches into containers.

use serde::{Deserialize, Serialize, Serializer};

use crate::model::image::{Framework, Package};
use crate::model::{Parts, Release};

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

/// The Python that the caller's `PATH` comes to first, by its files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Python {
    /// Where `PATH` finds it: `/opt/venv/bin/python3`.
    pub path: String,
    /// Frameworks that work with CUDA, or could: of several of one name the one that Python comes to first.
    #[serde(serialize_with = "parts")]
    pub frameworks: Parts<Framework>,
    /// Packages of CUDA beside them.
    #[serde(skip)]
    pub packages: Vec<Package>,
}

/// Of a list that was read in part, what was read.
fn parts<S: Serializer>(list: &Parts<Framework>, serializer: S) -> Result<S::Ok, S::Error> {
    list.items.serialize(serializer)
}
