//! Signs of CUDA work in a root file system: names at the places where toolkits and frameworks put
//! themselves. No file is read, and few directories are.

use crate::collect::tree::Tree;
use crate::model::{Observed, Unseen};

/// Directories of libraries; those of Python lie below some of them, virtual environments included.
const LIBRARIES: [&str; 9] = [
    "/usr/local/lib",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/opt/conda/lib",
    "/opt/venv/lib",
    "/venv/lib",
    "/app/.venv/lib",
];
/// What an installed CUDA toolkit has below its own directory.
const OF_A_TOOLKIT: [&str; 2] = ["lib64", "version.json"];
/// More than an image has side by side.
const TOOLKITS: usize = 8;
/// What is looked at in all: a root file system may hold any number of names.
const MOST_DIRECTORIES: usize = 64;
const MOST_NAMES: usize = 8192;

/// The path of the first sign that work with CUDA is what an image is for; `None`: there is none.
pub fn cuda(rootfs: &Tree) -> Observed<Option<String>> {
    let mut look = Look { rootfs, directories: MOST_DIRECTORIES, names: MOST_NAMES, unread: None };
    match (look.first_sign(), look.unread) {
        (Some(path), _) => Observed::Known(Some(path)),
        (None, None) => Observed::Known(None),
        (None, Some(unseen)) => Observed::Unknown(unseen.leaves_open("image.cuda")),
    }
}

struct Look<'a> {
    rootfs: &'a Tree,
    directories: usize,
    names: usize,
    /// What could not be looked at, and may hold a sign.
    unread: Option<Unseen>,
}

impl Look<'_> {
    fn first_sign(&mut self) -> Option<String> {
        self.toolkit().or_else(|| {
            let mut pythons = Vec::new();
            for directory in LIBRARIES {
                for name in self.list(directory) {
                    if is_runtime_library(&name) {
                        return Some(format!("{directory}/{name}"));
                    }
                    if name.starts_with("python3") {
                        pythons.push(format!("{directory}/{name}"));
                    }
                }
            }
            pythons.iter().find_map(|python| self.framework(python))
        })
    }

    fn toolkit(&mut self) -> Option<String> {
        let names = self.list("/usr/local");
        let toolkits = names.iter().filter(|name| *name == "cuda" || name.starts_with("cuda-")).take(TOOLKITS);
        for path in toolkits.flat_map(|name| OF_A_TOOLKIT.map(|part| format!("/usr/local/{name}/{part}"))) {
            match self.rootfs.stat(&path) {
                Ok(Some(_)) => return Some(path),
                Ok(None) => {}
                Err(unseen) => self.skip(unseen),
            }
        }
        None
    }

    fn framework(&mut self, python: &str) -> Option<String> {
        ["site-packages", "dist-packages"].into_iter().find_map(|packages| {
            let directory = format!("{python}/{packages}");
            let names = self.list(&directory);
            names.iter().find(|name| is_for_cuda(name, &names)).map(|name| format!("{directory}/{name}"))
        })
    }

    fn list(&mut self, path: &str) -> Vec<String> {
        let Some(left) = self.directories.checked_sub(1) else {
            self.skip(Unseen::new(path, "too many directories before it"));
            return Vec::new();
        };
        self.directories = left;
        match self.rootfs.list(path, self.names) {
            Ok(names) => {
                let names = names.unwrap_or_default();
                self.names -= names.len();
                names.into_iter().filter_map(|name| name.into_string().ok()).collect()
            }
            Err(unseen) => {
                self.skip(unseen);
                Vec::new()
            }
        }
    }

    fn skip(&mut self, unseen: Unseen) {
        self.unread.get_or_insert(unseen);
    }
}

/// `libcudart.so.12`, and the name with a hash in it that wheels give their own copy.
fn is_runtime_library(name: &str) -> bool {
    name.strip_prefix("libcudart").is_some_and(|rest| rest.starts_with(".so") || rest.starts_with('-'))
}

/// A package of Python that works with CUDA, by the directory of its metadata (`NAME-VERSION.dist-info`).
/// Names as on `PyPI`; a local version `+cu124` or `+cpu` tells builds of the same name apart.
fn is_for_cuda(name: &str, beside: &[String]) -> bool {
    let Some(stem) = name.strip_suffix(".dist-info").or_else(|| name.strip_suffix(".egg-info")) else { return false };
    let (package, version) = stem.split_once('-').unwrap_or((stem, ""));
    match package {
        "torch" => version.contains("+cu"),
        "vllm" => !version.contains("+cpu"),
        "paddlepaddle_gpu" | "onnxruntime_gpu" | "tensorflow_gpu" => true,
        // its CUDA libraries come as packages of their own; `nvidia_ml_py` is for monitors
        "tensorflow" => beside.iter().any(|other| other.starts_with("nvidia_cu")),
        _ => ["nvidia_cuda_runtime", "cupy_cuda", "jax_cuda"].iter().any(|start| package.starts_with(start)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::collect::tree::Kind;

    fn of(root: &Path) -> Observed<Option<String>> {
        cuda(&Tree::open(root, Kind::Image).unwrap())
    }

    fn with(paths: &[&str]) -> Observed<Option<String>> {
        let dir = tempfile::tempdir().unwrap();
        for path in paths {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        of(dir.path())
    }

    fn sign(path: &str) -> Observed<Option<String>> {
        Observed::Known(Some(format!("/{path}")))
    }

    #[test]
    fn toolkits_and_their_libraries_are_signs() {
        for path in [
            "usr/local/cuda-12.4/lib64",
            "usr/local/cuda/version.json",
            "usr/lib/x86_64-linux-gnu/libcudart.so.11.0",
            "usr/lib64/libcudart.so",
            "opt/conda/lib/libcudart-d0da41ae.so.11.0",
        ] {
            assert_eq!(with(&[path]), sign(path));
        }
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("usr/local/cuda-13.0/lib64")).unwrap();
        fs::create_dir_all(dir.path().join("etc/alternatives")).unwrap();
        symlink("/usr/local/cuda-13.0", dir.path().join("etc/alternatives/cuda")).unwrap();
        symlink("/etc/alternatives/cuda", dir.path().join("usr/local/cuda")).unwrap();
        assert_eq!(of(dir.path()), sign("usr/local/cuda/lib64"));
    }

    #[test]
    fn frameworks_that_carry_cuda_are_signs_wherever_python_lies() {
        for path in [
            "usr/local/lib/python3.10/site-packages/torch-2.10.0+cu130.dist-info",
            "usr/local/lib/python3.12/dist-packages/vllm-0.17.0.dist-info",
            "usr/lib/python3/dist-packages/cupy_cuda12x-13.3.0.dist-info",
            "opt/conda/lib/python3.11/site-packages/nvidia_cuda_runtime_cu12-12.4.127.dist-info",
            "opt/venv/lib/python3.12/site-packages/onnxruntime_gpu-1.20.1.dist-info",
            "venv/lib/python3.9/site-packages/paddlepaddle_gpu-2.1.0.post101.dist-info",
            "app/.venv/lib/python3.13/site-packages/jax_cuda12_plugin-0.5.0.dist-info",
            "usr/local/lib/python3.8/site-packages/tensorflow_gpu-2.4.0.egg-info",
        ] {
            assert_eq!(with(&[path]), sign(path));
        }
        let packages = "usr/local/lib/python3.11/site-packages";
        let tensorflow = format!("{packages}/tensorflow-2.18.0.dist-info");
        let cudnn = format!("{packages}/nvidia_cudnn_cu12-9.3.0.75.dist-info");
        assert_eq!(with(&[&tensorflow]), Observed::Known(None));
        assert_eq!(with(&[&tensorflow, &cudnn]), sign(&tensorflow));
    }

    #[test]
    fn monitors_and_work_on_the_cpu_show_none() {
        let packages = "usr/local/lib/python3.11/site-packages";
        let others = [
            "torch-2.6.0+cpu.dist-info",
            "torch-2.6.0.dist-info",
            "vllm-0.8.0+cpu.dist-info",
            "tensorflow-2.18.0.dist-info",
            "nvidia_ml_py-12.560.30.dist-info",
            "onnxruntime-1.20.1.dist-info",
            "jaxlib-0.5.0.dist-info",
            "torch",
        ];
        let mut paths: Vec<String> = others.map(|name| format!("{packages}/{name}")).to_vec();
        paths.extend(["usr/local/cuda-12.4".to_owned(), "usr/lib/x86_64-linux-gnu/libcuda.so.1".to_owned()]);
        assert_eq!(with(&paths.iter().map(String::as_str).collect::<Vec<_>>()), Observed::Known(None));
        assert_eq!(with(&[]), Observed::Known(None));
    }

    #[test]
    fn what_could_not_be_looked_at_leaves_it_open_unless_there_is_a_sign() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("usr/lib/python3/dist-packages");
        fs::create_dir_all(&packages).unwrap();
        for n in 0..=MOST_NAMES {
            fs::write(packages.join(format!("{n}.py")), "").unwrap();
        }
        assert_eq!(of(dir.path()).known().unwrap_err().fact, "image.cuda");
        fs::create_dir_all(dir.path().join("usr/local/cuda/lib64")).unwrap();
        assert_eq!(of(dir.path()), sign("usr/local/cuda/lib64"));

        let many: Vec<String> = (0..MOST_DIRECTORIES).map(|n| format!("usr/lib/python3.{n}")).collect();
        assert!(with(&many.iter().map(String::as_str).collect::<Vec<_>>()).known().is_err());
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("usr")).unwrap();
        symlink("lib64", dir.path().join("usr/lib64")).unwrap();
        assert!(of(dir.path()).known().is_err(), "a link to itself");
    }
}
