//! What an image's files are.

use serde::{Deserialize, Serialize};

use super::Reach;
use crate::model::DriverVersion;

/// A C library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Libc {
    /// Whose.
    pub kind: LibcKind,
    /// Its version, `2.36`, if a file tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where that was read.
    pub source: String,
}

/// Whose C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the words of the report")]
pub enum LibcKind {
    Glibc,
    Musl,
}

/// A file of NVIDIA's driver, which belongs to the host and is injected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverFile {
    /// Its path.
    pub path: String,
    /// What it is.
    pub kind: DriverFileKind,
    /// The driver it is of, by its file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<DriverVersion>,
    /// How the image's own configuration leads the loader to it; `None`: it does not.
    pub reach: Option<Reach>,
    /// A link of the name under which NVIDIA's tools bring the host's own on some machines; `None`: there is none.
    pub link: Option<String>,
    /// That link leads, by relative links alone, to a file of mode 0755, as the host's programs are.
    pub link_passes: bool,
    /// NVIDIA's tools bring the host's into the same directory.
    pub in_drivers_place: bool,
}

/// What a file of the driver's name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverFileKind {
    /// A real library.
    Library,
    /// A program, such as nvidia-smi.
    Program,
    /// A stub to link against, without a driver behind it.
    Stub,
    /// A file without a byte, as a container with GPUs leaves it behind when it is committed as an image.
    Empty,
}

/// What installed a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the managers'")]
pub enum Manager {
    Pip,
    Conda,
    Dpkg,
    Rpm,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Its name; of Python's packages normalised, with dashes: `nvidia-cuda-runtime-cu12`.
    pub name: String,
    /// Its version as the manager writes it.
    pub version: String,
    /// Its build, of conda's packages alone: `py3.11_cuda12.1_cudnn8.9.2_0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// What installed it.
    pub manager: Manager,
    /// Where it was read: a file or directory. Packages of one environment of Python have one parent.
    pub source: String,
}

/// Machine code for GPUs in one file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceCode {
    /// The file.
    pub source: String,
    /// Its fatbin containers, those with the same architectures together: what a GPU can run is counted over
    /// containers, since each holds one compilation unit and many exist for one generation only.
    pub groups: Vec<CodeGroup>,
    /// The newest version of PTX in it, `(8, 7)`.
    pub ptx_version: Option<(u16, u16)>,
    /// Some of it is compressed with zstd.
    pub zstd: bool,
}

/// Fatbin containers with the same architectures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CodeGroup {
    /// Machine code (cubin): architectures with their suffix, `9.0`, `9.0a`, `12.0f`, sorted.
    pub machine: Vec<String>,
    /// PTX: likewise.
    pub ptx: Vec<String>,
    /// How many containers.
    pub containers: u32,
}

/// A shared library that is needed and not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingLibrary {
    /// `libcudnn.so.9`.
    pub name: String,
    /// The file, or the framework, that loads it.
    pub needed_by: String,
    /// Where that was read.
    pub source: String,
}
