//! Facts of an image. Here: the little that a bundle's root file system tells at a glance.

use serde::Serialize;

use super::{CudaVersion, DriverVersion, Observed};

/// What was seen of the image.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Image {
    /// The processor its dynamic loader is for, in the words of the image specification (`amd64`,
    /// `arm64`, …); `None` if it has no loader at a known place.
    pub architecture: Observed<Option<String>>,
    /// The path of the first sign of CUDA work among its files: a CUDA toolkit or runtime library at a
    /// well-known place, a framework for Python that carries CUDA; `None`: there is none.
    #[serde(skip)]
    pub cuda: Observed<Option<String>>,
    /// Frameworks that work with CUDA, or could.
    pub frameworks: Observed<Vec<Framework>>,
    /// CUDA runtime libraries (libcudart) that programs in it load.
    #[serde(rename = "cuda_versions")]
    pub runtimes: Observed<Vec<CudaLibrary>>,
    /// Directories with a libcuda for forward compatibility.
    #[serde(skip)]
    pub compat: Observed<Vec<Compat>>,
}

/// A framework, as installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Framework {
    /// Its package's name: `torch`, `tensorflow`, `paddlepaddle-gpu`, …
    pub name: String,
    /// Its version as the package writes it, `2.9.0+cu128`.
    pub version: String,
    /// What it was built for.
    pub build: Build,
    /// The CUDA it was built for; the major alone (`13`) where no more is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<CudaVersion>,
    /// Where that was read.
    pub source: String,
}

/// What a framework was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Build {
    /// NVIDIA's GPUs.
    Cuda,
    /// The processor alone.
    Cpu,
    /// Not known.
    Unknown,
}

/// A CUDA runtime library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CudaLibrary {
    /// Its version as far as its file tells: `12.8.90`, or `12` alone.
    pub version: CudaVersion,
    /// Its path.
    pub source: String,
}

/// A libcuda that an image brings for forward compatibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compat {
    /// Its directory, `/usr/local/cuda-12.8/compat`.
    pub directory: String,
    /// The driver it is of, by its file's name; `None`: the name tells none (Jetson).
    pub version: Option<DriverVersion>,
    /// What it says of itself.
    pub note: Option<CompatNote>,
    /// How the image's own configuration leads the loader to it; `None`: it does not.
    pub reach: Option<Reach>,
}

/// `.note.cuda.fwd_compatibility` of a libcuda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompatNote {
    /// The CUDA it offers.
    pub cuda: CudaVersion,
    /// Branches of the kernel driver it works with; empty: it names none.
    pub branches: Vec<u32>,
    /// GPU brands it works with, by their number in NVML; empty: it names none.
    pub brands: Vec<u32>,
}

/// What leads the loader to a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// `LD_LIBRARY_PATH=…`, or the file of `ld.so.conf.d`.
    pub source: String,
    /// It comes before the directories that drivers are put into.
    pub first: bool,
}
