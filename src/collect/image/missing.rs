//! CUDA libraries that a framework loads and does not bring, and that are nowhere: as far as names tell.

use std::collections::BTreeSet;

use super::places::Hints;
use super::reach::Loader;
use super::walk::Walk;
use crate::knowledge::frameworks::{brings_library, needs_libraries_of};
use crate::model::image::{Build, Framework, MissingLibrary};

/// What libraries of CUDA's that frameworks look for begin with.
const STARTS: [&str; 4] = ["libcudart.so.", "libcublas", "libcudnn", "libnvrtc.so."];
/// Of the names of one kind: more than an image has.
const MOST: usize = 256;
/// Directories of a loader's configuration that are looked into besides.
const MOST_DIRECTORIES: usize = 16;

/// Libraries of CUDA that were seen, and packages that bring some.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    names: BTreeSet<String>,
    listed: BTreeSet<String>,
    packages: Vec<(String, String)>,
}

impl Libraries {
    /// Keeps those among the names of a directory of libraries.
    pub(super) fn keep(&mut self, directory: &str, names: &[String]) {
        self.listed.insert(directory.to_owned());
        let found = names.iter().filter(|name| STARTS.iter().any(|start| name.starts_with(start)));
        for name in found {
            if self.names.len() < MOST {
                self.names.insert(name.clone());
            }
        }
    }

    /// Keeps NVIDIA's among the packages of a directory of Python's.
    pub(super) fn keep_packages(&mut self, names: &[String]) {
        let packages = names.iter().filter_map(|name| name.strip_suffix(".dist-info")?.split_once('-'));
        for (name, version) in packages.filter(|(name, _)| name.starts_with("nvidia")) {
            if self.packages.len() < MOST {
                self.packages.push((name.to_owned(), version.to_owned()));
            }
        }
    }

    fn has(&self, library: &str) -> bool {
        let is_it = |name: &String| name == library || name.strip_prefix(library).is_some_and(|r| r.starts_with('.'));
        self.names.iter().any(is_it)
            || self.packages.iter().any(|(name, version)| brings_library(name, version, library))
    }
}

/// Of each framework what it needs and is not there. Where torch lies beside it, its own libraries may serve.
pub(super) fn find(
    walk: &mut Walk<'_>,
    seen: &mut Libraries,
    frameworks: &[Framework],
    hints: &Hints<'_>,
    loader: &mut Loader,
) -> Vec<MissingLibrary> {
    let mut missing = Vec::new();
    let brings = |framework: &&Framework| framework.name == "torch" && framework.build == Build::Cuda;
    if frameworks.iter().any(|framework| brings(&framework)) {
        return missing;
    }
    for framework in frameworks.iter().filter(|framework| framework.build == Build::Cuda) {
        let needed = needs_libraries_of(&framework.name, &framework.version, framework.cuda.as_ref());
        let lacks = |seen: &Libraries| needed.iter().copied().filter(|name| !seen.has(name)).collect::<Vec<_>>();
        if lacks(seen).is_empty() {
            continue;
        }
        // the loader may know more places
        for directory in loader.order(walk, hints).iter().map(|told| &told.path).take(MOST_DIRECTORIES) {
            if !seen.listed.contains(directory) {
                let names = walk.list(directory);
                seen.keep(directory, &names);
            }
        }
        if walk.unread().is_some() {
            return Vec::new();
        }
        for name in lacks(seen) {
            if walk.rootfs.has_library(name) != Some(true) {
                missing.push(MissingLibrary {
                    name: name.to_owned(),
                    needed_by: format!("{} {}", framework.name, framework.version),
                    source: framework.source.clone(),
                });
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::survey::survey;
    use super::*;
    use crate::collect::tree::{Kind, Tree};

    fn missing(files: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = if file.contains(".conf.d/") { "/opt/cuda-libraries\n" } else { "" };
            fs::write(path, text).unwrap();
        }
        let found = survey(&Tree::open(dir.path(), Kind::Image).unwrap(), &Hints::default());
        found.missing.into_iter().map(|library| library.name).collect()
    }

    const CUPY: &str = "usr/lib/python3/dist-packages/cupy_cuda13x-13.6.0.dist-info/METADATA";

    #[test]
    fn a_library_of_another_major_does_not_serve() {
        assert_eq!(missing(&[CUPY, "usr/local/cuda-12.9/lib64/libnvrtc.so.12"]), ["libnvrtc.so.13"]);
        assert_eq!(missing(&[CUPY]), ["libnvrtc.so.13"]);
        let tensorflow = "usr/lib/python3/dist-packages/tensorflow-2.18.0.dist-info/METADATA";
        let here = ["usr/local/cuda-12.5/lib64/libcudart.so.12", "usr/local/cuda-12.5/lib64/libcublas.so.12.5.3.2"];
        let older = "usr/lib/x86_64-linux-gnu/libcudnn.so.8";
        assert_eq!(missing(&[tensorflow, here[0], here[1], older]), ["libcudnn.so.9"]);
        assert_eq!(missing(&[tensorflow, here[0], here[1], "usr/lib64/libcudnn.so.9"]), [""; 0]);
    }

    #[test]
    fn wherever_it_lies_it_is_there() {
        for other in [
            "usr/local/cuda-13.0/lib64/libnvrtc.so.13.0.48",
            "usr/local/cuda/lib64/libnvrtc.so.13",
            "usr/lib/x86_64-linux-gnu/libnvrtc.so.13",
            "opt/conda/lib/libnvrtc.so.13",
            "usr/lib/python3/dist-packages/nvidia_cuda_nvrtc-13.0.48.dist-info/METADATA",
            // torch brings its own and is imported first as a rule
            "usr/lib/python3/dist-packages/torch-2.9.0+cu130.dist-info/METADATA",
        ] {
            assert_eq!(missing(&[CUPY, other]), [""; 0], "{other}");
        }
        let told = ["etc/ld.so.conf.d/x.conf", "opt/cuda-libraries/libnvrtc.so.13"];
        assert_eq!(missing(&[CUPY, told[0], told[1]]), [""; 0]);
    }
}
