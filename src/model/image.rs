//! Facts of an image.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CudaVersion, DriverVersion, Observed, Parts};

mod configuration;
mod contents;

pub use configuration::{Configuration, HealthCheck};
pub use contents::{
    CodeGroup, DeviceCode, DriverFile, DriverFileKind, Libc, LibcKind, Manager, MissingLibrary, Package,
};

/// What was seen of the image.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Image {
    /// What its configuration says; `None`: there is none to see, as of a container's root file system.
    #[serde(skip)]
    pub configuration: Option<Configuration>,
    /// The processor its dynamic loader is for, in the words of the image specification (`amd64`,
    /// `arm64`, …); `None` if it has no loader at a known place.
    pub architecture: Observed<Option<String>>,
    /// The path of the first sign of CUDA work among its files: a CUDA toolkit or runtime library at a
    /// well-known place, a framework for Python that carries CUDA; `None`: there is none.
    #[serde(skip)]
    pub cuda: Observed<Option<String>>,
    /// Frameworks that work with CUDA, or could.
    #[serde(serialize_with = "items")]
    pub frameworks: Observed<Parts<Framework>>,
    /// CUDA runtime libraries (libcudart) that programs in it load.
    #[serde(rename = "cuda_versions", serialize_with = "items")]
    pub runtimes: Observed<Parts<CudaLibrary>>,
    /// Directories with a libcuda for forward compatibility.
    #[serde(skip)]
    pub compat: Observed<Parts<Compat>>,
    /// Its C library; `None`: it has none at a known place.
    pub libc: Observed<Option<Libc>>,
    /// Files of NVIDIA's driver in it, stubs and empty ones included.
    #[serde(serialize_with = "files")]
    pub driver_files: Observed<Parts<DriverFile>>,
    /// Packages that bring CUDA or a part of it, and those beside them that tell which is used.
    #[serde(skip)]
    pub packages: Observed<Parts<Package>>,
    /// Machine code for GPUs, library by library. Looked at by `image` alone: in the hook it is unknown.
    #[serde(skip)]
    pub device_code: Observed<Parts<DeviceCode>>,
    /// Shared libraries of CUDA that frameworks load and that are not there.
    #[serde(skip)]
    pub missing: Observed<Parts<MissingLibrary>>,
    /// What of a driver follows from all this, once somebody has asked the tables (`knowledge::answer`).
    #[serde(flatten)]
    pub answer: Answer,
}

/// What an image needs of CUDA and of a driver; `None`: it is not known, or it needs none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Answer {
    /// The highest CUDA that something in it really needs, `12.8`; the major alone where no more is known.
    pub cuda_runtime: Option<CudaVersion>,
    /// The smallest driver on which every framework in it that carries CUDA can start.
    pub min_driver: Option<DriverVersion>,
    /// The driver that its newest toolkit was released with: with it nothing of its CUDA is out of reach.
    pub full_driver: Option<DriverVersion>,
}

/// Of a list that was read in part, what was read.
fn items<T: Serialize, S: Serializer>(list: &Observed<Parts<T>>, serializer: S) -> Result<S::Ok, S::Error> {
    list.seen().map(|list| &list.items).serialize(serializer)
}

/// Of the driver's files what the report tells.
fn files<S: Serializer>(list: &Observed<Parts<DriverFile>>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown<'a> {
        path: &'a str,
        kind: DriverFileKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<&'a DriverVersion>,
    }
    fn shown(file: &DriverFile) -> Shown<'_> {
        let DriverFile { path, kind, version, .. } = file;
        Shown { path, kind: *kind, version: version.as_ref() }
    }
    list.seen().map(|list| list.items.iter().map(shown).collect::<Vec<_>>()).serialize(serializer)
}

/// A framework, as installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framework {
    /// Its package's name: `torch`, `tensorflow`, `paddlepaddle-gpu`, …
    pub name: String,
    /// Its version as the package writes it, `2.9.0+cu128`.
    pub version: String,
    /// What it was built for; `null` in the report: not known.
    #[serde(serialize_with = "known_build", deserialize_with = "build")]
    pub build: Build,
    /// The CUDA it was built for; the major alone (`13`) where no more is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<CudaVersion>,
    /// Where that was read.
    pub source: String,
    /// Its build and its CUDA were read; else they are what its release has where nobody chose another.
    pub sure: bool,
    /// The smallest driver on which it starts, once somebody has asked the tables (`knowledge::answer`).
    #[serde(default)]
    pub min_driver: Option<DriverVersion>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn known_build<S: Serializer>(build: &Build, serializer: S) -> Result<S::Ok, S::Error> {
    (*build != Build::Unknown).then_some(build).serialize(serializer)
}

fn build<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Build, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(Build::Unknown))
}

/// What a framework was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaLibrary {
    /// Its version as far as its file tells: `12.8.90`, or `12` alone.
    pub version: CudaVersion,
    /// Its path, or that of the program or library that it is linked into.
    pub source: String,
    /// It is linked into a program or another library.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linked_in: bool,
}

/// A libcuda that an image brings for forward compatibility.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compat {
    /// Its directory, `/usr/local/cuda-12.8/compat`.
    pub directory: String,
    /// It is what `/usr/local/cuda/compat` is, where NVIDIA's toolkit looks.
    pub current: bool,
    /// The image has a loader's cache, without which NVIDIA's hook leaves it alone.
    pub cache: bool,
    /// The driver it is of, by its file's name; `None`: the name tells none (Jetson).
    pub version: Option<DriverVersion>,
    /// What it says of itself.
    pub note: Option<CompatNote>,
    /// How the image's own configuration leads the loader to it; `None`: it does not.
    pub reach: Option<Reach>,
}

/// `.note.cuda.fwd_compatibility` of a libcuda.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompatNote {
    /// The CUDA it offers.
    pub cuda: CudaVersion,
    /// Branches of the kernel driver it works with; empty: it names none.
    pub branches: Vec<u32>,
    /// GPU brands it works with, by their number in NVML; empty: it names none.
    pub brands: Vec<u32>,
}

/// What leads the loader to a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// `LD_LIBRARY_PATH=…`, or the file of `ld.so.conf.d`.
    pub source: String,
    /// The directories that the loader asks before it, in its order.
    pub before: Vec<String>,
    /// The image's own cache names it; `None`: there is none to see.
    pub cached: Option<bool>,
}
