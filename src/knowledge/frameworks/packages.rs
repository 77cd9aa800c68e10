//! Frameworks by the names of their packages and libraries.

use super::default_cuda::default_cuda;
use super::normalised;
use super::version::{major_minor, of_cuda_suffix, of_digits, of_post};
use crate::knowledge::toolkit::base_name;
use crate::model::image::Build;
use crate::model::{CudaVersion, Release};

/// A framework, as far as names tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// Its package's name.
    pub name: &'static str,
    /// What it was built for.
    pub build: Build,
    /// The CUDA it was built for; the major alone where no more is known.
    pub cuda: Option<CudaVersion>,
    /// The names say it. Else only a table of what is usual does: a plain version on `PyPI` is one build, and
    /// another from conda or for aarch64.
    pub sure: bool,
    /// The file, below the directory that holds the package's metadata, that says it for certain.
    pub version_file: Option<&'static str>,
}

const TORCH: &str = "torch/version.py";
const PADDLE: &str = "paddle/version/__init__.py";
const TENSORFLOW: &str = "tensorflow/python/platform/build_info.py";
const ONNXRUNTIME: &str = "onnxruntime/capi/build_and_package_info.py";
const CUPY: &str = "cupy/.data/_wheel.json";

/// RAPIDS names a package's CUDA behind it (`cudf-cu12`); conda's have the plain name.
const RAPIDS: [&str; 9] = ["cudf", "cuml", "cugraph", "cuvs", "cucim", "cuspatial", "rmm", "pylibraft", "nx_cugraph"];

/// A framework by the name and version of its distribution, as the directory of its metadata has them
/// (`NAME-VERSION.dist-info`). `beside` says whether another distribution lies in the same directory, by its
/// normalised name (`jax_cuda12_plugin`). `None`: it is none that is known, or another package speaks for it.
pub fn of_package(name: &str, version: &str, beside: &dyn Fn(&str) -> bool) -> Option<Recognised> {
    let name = normalised(name);
    let found = |name, build, cuda, sure| Recognised { name, build, cuda, sure, version_file: None };
    let by_version = |name, version_file| built(name, version, version_file);
    Some(match name.as_str() {
        "torch" => by_version("torch", Some(TORCH)),
        "paddlepaddle_gpu" => by_version("paddlepaddle-gpu", Some(PADDLE)),
        "paddlepaddle" => found("paddlepaddle", Build::Cpu, None, true).with(PADDLE),
        "tensorflow" | "tensorflow_gpu" => tensorflow(&name, version),
        "tensorflow_cpu" | "tensorflow_cpu_aws" | "intel_tensorflow" => {
            found("tensorflow-cpu", Build::Cpu, None, true).with(TENSORFLOW)
        }
        "onnxruntime_gpu" => by_version("onnxruntime-gpu", Some(ONNXRUNTIME)),
        // conda's builds for CUDA have this name as well; where another package puts itself into the same
        // directory, the file tells which came last.
        "onnxruntime" => found("onnxruntime", Build::Cpu, None, false).with(ONNXRUNTIME),
        "openvino" => found("openvino", Build::Cpu, None, true),
        "jaxlib" => jaxlib(version, beside)?,
        "vllm" => by_version("vllm", None),
        // One package for several makers' GPUs, used by torch.
        "triton" | "pytorch_triton" => found("triton", Build::Cuda, None, false),
        "bitsandbytes" => found("bitsandbytes", Build::Cuda, None, false),
        "flash_attn" => by_version("flash-attn", None),
        "llama_cpp_python" => match of_cuda_suffix(version) {
            Some((build, cuda)) => found("llama-cpp-python", build, cuda, true),
            None => found("llama-cpp-python", Build::Unknown, None, false),
        },
        "ctranslate2" => by_version("ctranslate2", None),
        "xgboost" => by_version("xgboost", None),
        "xgboost_cpu" => found("xgboost-cpu", Build::Cpu, None, true),
        _ => return jax_plugin(&name, beside).or_else(|| cupy(&name)).or_else(|| rapids(&name)),
    })
}

/// A framework that is no package of Python, by the path of one of its libraries or programs: llama.cpp,
/// Ollama, Triton Inference Server. Places as in their own images and Dockerfiles (read 2026-11).
pub fn of_library(path: &str) -> Option<Recognised> {
    let found = |name, cuda| Recognised { name, build: Build::Cuda, cuda, sure: true, version_file: None };
    let (directory, file) = path.rsplit_once('/')?;
    if file.starts_with("libggml-cuda.so") {
        let backend = base_name(directory);
        return Some(match backend.strip_prefix("cuda_v") {
            Some(digits) => found("ollama", of_digits(digits)),
            None if directory.contains("/ollama") => found("ollama", None),
            None => found("llama.cpp", None),
        });
    }
    (file == "tritonserver").then(|| Recognised { sure: false, ..found("tritonserver", None) })
}

impl Recognised {
    fn with(self, file: &'static str) -> Self {
        Self { version_file: Some(file), ..self }
    }
}

/// By what the version says, and else by what is usual on `PyPI`.
fn built(name: &'static str, version: &str, version_file: Option<&'static str>) -> Recognised {
    let post = || of_post(version).filter(|_| name.starts_with("paddle")).map(|cuda| (Build::Cuda, Some(cuda)));
    let said = of_cuda_suffix(version).or_else(post);
    let sure = said.is_some();
    let (build, cuda) = said.unwrap_or_else(|| (Build::Cuda, default_cuda(name, version)));
    Recognised { name, build, cuda, sure, version_file }
}

/// One package for both since 1.15, and again since 2.1 (release notes); before, and with 2.0, the plain one
/// was for the processor. Wheels for aarch64 are.
fn tensorflow(name: &str, version: &str) -> Recognised {
    if name == "tensorflow_gpu" {
        return built("tensorflow-gpu", version, Some(TENSORFLOW));
    }
    match major_minor(version) {
        Some((1, 0..=14) | (2, 0)) => Recognised {
            name: "tensorflow",
            build: Build::Cpu,
            cuda: None,
            sure: false,
            version_file: Some(TENSORFLOW),
        },
        _ => built("tensorflow", version, Some(TENSORFLOW)),
    }
}

/// The plugin is where JAX's CUDA is (since 0.4.22); older builds say it in jaxlib's version. Without either
/// it computes on the processor, unless it is conda's.
fn jaxlib(version: &str, beside: &dyn Fn(&str) -> bool) -> Option<Recognised> {
    if ["jax_cuda13_plugin", "jax_cuda12_plugin", "jax_cuda11_plugin"].into_iter().any(beside) {
        return None;
    }
    let (build, cuda, sure) = match of_cuda_suffix(version) {
        Some((build, cuda)) => (build, cuda, true),
        None => (Build::Cpu, None, false),
    };
    Some(Recognised { name: "jaxlib", build, cuda, sure, version_file: None })
}

/// `jax_cuda12_plugin`, and its lower half `jax_cuda12_pjrt` where that is alone.
fn jax_plugin(name: &str, beside: &dyn Fn(&str) -> bool) -> Option<Recognised> {
    let (digits, part) = name.strip_prefix("jax_cuda")?.split_once('_')?;
    if part != "plugin" && (part != "pjrt" || beside(&format!("jax_cuda{digits}_plugin"))) {
        return None;
    }
    let name = match digits {
        "11" => "jax-cuda11-plugin",
        "12" => "jax-cuda12-plugin",
        "13" => "jax-cuda13-plugin",
        _ => "jax-cuda-plugin",
    };
    Some(Recognised { name, build: Build::Cuda, cuda: of_digits(digits), sure: true, version_file: None })
}

/// `cupy-cuda12x` for all of a major, `cupy-cuda102` for one release, `cupy` built on the spot.
fn cupy(name: &str) -> Option<Recognised> {
    let rest = name.strip_prefix("cupy")?;
    let found = |name, build, cuda| Recognised { name, build, cuda, sure: true, version_file: Some(CUPY) };
    if rest.is_empty() {
        return Some(found("cupy", Build::Cuda, None));
    }
    if rest.starts_with("_rocm") {
        return Some(found("cupy", Build::Unknown, None));
    }
    let name = match rest {
        "_cuda13x" => "cupy-cuda13x",
        "_cuda12x" => "cupy-cuda12x",
        "_cuda11x" => "cupy-cuda11x",
        _ => "cupy",
    };
    Some(found(name, Build::Cuda, Some(of_digits(rest.strip_prefix("_cuda")?)?)))
}

fn rapids(name: &str) -> Option<Recognised> {
    RAPIDS.into_iter().find_map(|known| {
        let cuda = match name.strip_prefix(known)? {
            "" => None,
            rest => Some(Release::of(&[rest
                .strip_prefix("_cu")?
                .parse()
                .ok()
                .filter(|major| (10..100).contains(major))?])),
        };
        let sure = cuda.is_some();
        Some(Recognised { name: known, build: Build::Cuda, cuda, sure, version_file: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(name: &str, version: &str) -> (&'static str, Build, Option<String>, bool) {
        let found = of_package(name, version, &|_| false).unwrap();
        (found.name, found.build, found.cuda.map(|c| c.to_string()), found.sure)
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is what the answers hold")]
    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn versions_say_it_and_tables_guess_it() {
        use Build::{Cpu, Cuda};
        assert_eq!(of("torch", "2.9.0+cu128"), ("torch", Cuda, some("12.8"), true));
        assert_eq!(of("torch", "2.9.0+cpu"), ("torch", Cpu, None, true));
        assert_eq!(of("torch", "2.11.0"), ("torch", Cuda, some("13.0"), false));
        assert_eq!(of("torch", "2.6.0a0+ecf3bae40a.nv25.01"), ("torch", Cuda, None, true));
        assert_eq!(of("paddlepaddle_gpu", "3.2.2"), ("paddlepaddle-gpu", Cuda, None, false));
        assert_eq!(of("paddlepaddle-gpu", "2.4.2.post112"), ("paddlepaddle-gpu", Cuda, some("11.2"), true));
        assert_eq!(of("onnxruntime_gpu", "1.17.1"), ("onnxruntime-gpu", Cuda, some("11.8"), false));
        assert_eq!(of("onnxruntime", "1.20.0"), ("onnxruntime", Cpu, None, false));
        assert_eq!(of("tensorflow", "2.18.0"), ("tensorflow", Cuda, some("12.5"), false));
        assert_eq!(of("tensorflow", "2.0.0"), ("tensorflow", Cpu, None, false));
        assert_eq!(of("tensorflow_cpu", "2.18.0"), ("tensorflow-cpu", Cpu, None, true));
        assert_eq!(of("cupy_cuda13x", "13.6.0"), ("cupy-cuda13x", Cuda, some("13"), true));
        assert_eq!(of("cupy_cuda102", "9.0.0"), ("cupy", Cuda, some("10.2"), true));
        assert_eq!(of("jax_cuda12_plugin", "0.10.2"), ("jax-cuda12-plugin", Cuda, some("12"), true));
        assert_eq!(of("jaxlib", "0.4.13+cuda12.cudnn89"), ("jaxlib", Cuda, some("12"), true));
        assert_eq!(of("flash_attn", "2.7.4.post1"), ("flash-attn", Cuda, None, false));
        assert_eq!(of("cudf_cu12", "25.10.0"), ("cudf", Cuda, some("12"), true));
        assert_eq!(of("nx_cugraph_cu13", "25.10.0"), ("nx_cugraph", Cuda, some("13"), true));
        assert_eq!(of("openvino", "2025.1.0"), ("openvino", Cpu, None, true));
        assert_eq!(of("vllm", "0.33.0"), ("vllm", Cuda, some("13"), false));
        assert_eq!(of("vllm", "0.11.0+cpu"), ("vllm", Cpu, None, true));
    }

    #[test]
    fn a_package_beside_another_is_silent() {
        let plugin = |name: &str| name == "jax_cuda13_plugin";
        assert_eq!(of_package("jaxlib", "0.9.0", &plugin), None);
        assert_eq!(of_package("jax_cuda13_pjrt", "0.9.0", &plugin), None);
        let alone = of_package("jaxlib", "0.9.0", &|_| false).unwrap();
        assert_eq!((alone.build, alone.sure), (Build::Cpu, false));
    }

    #[test]
    fn what_is_no_framework_is_none() {
        for name in ["numpy", "cupy_xarray", "torchvision", "jax", "cudf_polars_x", "rmm_cux", "nvidia_cudnn_cu12", ""]
        {
            assert_eq!(of_package(name, "1.0", &|_| true), None, "{name}");
        }
    }

    #[test]
    fn programs_are_known_by_their_libraries() {
        let of = |path| of_library(path).map(|found| (found.name, found.cuda.map(|c| c.to_string())));
        assert_eq!(of("/usr/lib/ollama/cuda_v13/libggml-cuda.so"), Some(("ollama", some("13"))));
        assert_eq!(of("/usr/lib/ollama/cuda_jetpack6/libggml-cuda.so"), Some(("ollama", None)));
        assert_eq!(of("/app/libggml-cuda.so"), Some(("llama.cpp", None)));
        assert_eq!(of("/opt/tritonserver/bin/tritonserver"), Some(("tritonserver", None)));
        assert_eq!(of("/usr/lib/libcudart.so.12"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(name in "\\PC{0,120}", version in "\\PC{0,200}", digits in "[0-9]{0,12}") {
            let _ = of_package(&name, &version, &|_| false);
            for start in ["cupy_cuda", "jax_cuda", "cudf_cu", "torch"] {
                let _ = of_package(&format!("{start}{digits}{name}"), &version, &|_| false);
            }
            let _ = of_library(&format!("/{name}/cuda_v{digits}/libggml-cuda.so"));
        }
    }
}
