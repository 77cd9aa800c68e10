//! Packages of Python: frameworks, and CUDA runtimes that come as packages.

use std::collections::BTreeSet;

use super::survey::{MOST_FRAMEWORKS, Survey};
use super::walk::Walk;
use crate::knowledge::frameworks::{of_package, of_version_file, older_place};
use crate::model::image::{Build, CudaLibrary, Framework};
use crate::model::{CudaVersion, Unseen};

const MOST_RUNTIMES: usize = 64;
/// Packages of runtimes in one directory: more is no environment of use.
const MOST_NAMED: usize = 256;

/// Packages of Python in one directory, by their metadata's directories (`NAME-VERSION.dist-info`). The first
/// of them that is a sign of work with CUDA.
pub(super) fn python_packages(
    walk: &mut Walk<'_>,
    directory: &str,
    names: &[String],
    found: &mut Survey,
) -> Option<String> {
    let packages: Vec<Package<'_>> = names.iter().filter_map(|name| Package::of(name)).collect();
    let known: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let beside = |wanted: &str| known.contains(wanted);
    let runtimes: Vec<CudaLibrary> =
        packages.iter().filter_map(|package| package.runtime(directory)).take(MOST_NAMED).collect();
    for package in &packages {
        let Some(recognised) = of_package(&package.name, package.version, &beside) else { continue };
        if found.frameworks.len() >= MOST_FRAMEWORKS {
            found.open = Some(Unseen::new(directory, "there are more frameworks than are kept"));
            break;
        }
        let mut framework = Framework {
            name: recognised.name.to_owned(),
            version: package.version.to_owned(),
            build: recognised.build,
            cuda: recognised.cuda,
            source: format!("{directory}/{}", package.entry),
            sure: recognised.sure,
            min_driver: None,
        };
        if let Some((file, (build, cuda))) = recognised.version_file.and_then(|file| written(walk, directory, file)) {
            let cuda = cuda.or(framework.cuda.filter(|_| build == Build::Cuda));
            framework = Framework { build, cuda, source: format!("{directory}/{file}"), sure: true, ..framework };
        }
        // What is usual for a release is no guess where the only runtime beside it is of that major.
        let major = framework.cuda.as_ref().map(|cuda| cuda.number(0));
        let borne_out = runtimes.iter().all(|runtime| Some(runtime.version.number(0)) == major) && !runtimes.is_empty();
        framework.sure |= framework.build == Build::Cuda && borne_out;
        found.frameworks.push(framework);
    }
    for runtime in runtimes {
        if found.runtimes.iter().any(|other| other.version == runtime.version) {
            continue;
        }
        if found.runtimes.len() >= MOST_RUNTIMES {
            found.open = Some(Unseen::new(directory, "there are more runtimes than are kept"));
            break;
        }
        found.runtimes.push(runtime);
    }
    packages.iter().find(|package| package.is_for_cuda(&known)).map(|package| format!("{directory}/{}", package.entry))
}

/// What the file says in which a framework writes what it was built for.
fn written(
    walk: &mut Walk<'_>,
    directory: &str,
    file: &'static str,
) -> Option<(&'static str, (Build, Option<CudaVersion>))> {
    [Some(file), older_place(file)].into_iter().flatten().find_map(|file| {
        let text = walk.text(&format!("{directory}/{file}"))?;
        Some((file, of_version_file(file, &text)?))
    })
}

/// Name and version of a package by what its metadata is called: `torch-2.9.0.dist-info`, `torch-2.1.0-py3.11.egg-info`;
/// what setuptools installed in the past has the version in the file alone.
pub(super) fn of_metadata(entry: &str) -> Option<(&str, &str)> {
    let stem = entry.strip_suffix(".dist-info").or_else(|| entry.strip_suffix(".egg-info"))?;
    let (name, version) = stem.split_once('-').unwrap_or((stem, ""));
    Some((name, version.split_once("-py").map_or(version, |(version, _)| version)))
}

/// An installed package of Python.
struct Package<'a> {
    /// Normalised, with underscores.
    name: String,
    version: &'a str,
    /// Its directory's name.
    entry: &'a str,
}

impl<'a> Package<'a> {
    fn of(entry: &'a str) -> Option<Self> {
        let (name, version) = of_metadata(entry)?;
        Some(Self { name: name.to_ascii_lowercase().replace(['-', '.'], "_"), version, entry })
    }

    fn runtime(&self, directory: &str) -> Option<CudaLibrary> {
        let is_one = self
            .name
            .strip_prefix("nvidia_cuda_runtime")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("_cu"));
        let version = self.version.parse().ok().filter(|_| is_one)?;
        Some(CudaLibrary { version, source: format!("{directory}/{}", self.entry), linked_in: false })
    }

    /// It works with CUDA, by its name alone. Names as on `PyPI`; a local version `+cu124` or `+cpu` tells
    /// builds of the same name apart.
    fn is_for_cuda(&self, beside: &BTreeSet<&str>) -> bool {
        match self.name.as_str() {
            "torch" => self.version.contains("+cu"),
            "vllm" => !self.version.contains("+cpu"),
            "paddlepaddle_gpu" | "onnxruntime_gpu" | "tensorflow_gpu" => true,
            // its CUDA libraries come as packages of their own; `nvidia_ml_py` is for monitors
            "tensorflow" => beside.range("nvidia_cu"..).next().is_some_and(|other| other.starts_with("nvidia_cu")),
            name => ["nvidia_cuda_runtime", "cupy_cuda", "jax_cuda"].iter().any(|start| name.starts_with(start)),
        }
    }
}
