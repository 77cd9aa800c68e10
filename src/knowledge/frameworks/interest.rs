//! Packages that bring CUDA, a part of it, or what works with it.

use super::normalised;

/// Beginnings of names, as pip, conda, dpkg and rpm have them, with underscores.
const BEGINNINGS: [&str; 55] = [
    "apex",
    "bitsandbytes",
    "cuda",
    "cudatoolkit",
    "cudf",
    "cudnn",
    "cugraph",
    "cuml",
    "cupy",
    "cutensor",
    "ctranslate2",
    "deepspeed",
    "flash_attn",
    "flashinfer",
    "jax",
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcuda",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libcutensor",
    "libnccl",
    "libnpp",
    "libnvfatbin",
    "libnvinfer",
    "libnvjitlink",
    "libnvjpeg",
    "libnvidia",
    "libnvonnxparsers",
    "libnvvm",
    "libtorch",
    "llama_cpp_python",
    "mxnet",
    "nccl",
    "numba",
    "nvidia",
    "onnxruntime",
    "openvino",
    "paddlepaddle",
    "pytorch",
    "rmm",
    "sglang",
    "tensorflow",
    "tensorrt",
    "torch",
    "transformer_engine",
    "triton",
    "tritonclient",
    "vllm",
    "xformers",
    "xgboost",
    "libcudart",
];

/// A package of interest, by its name.
pub fn is_of_interest(name: &str) -> bool {
    let name = normalised(name);
    BEGINNINGS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_managers_names_are_known() {
        for name in [
            "nvidia-cudnn-cu12",
            "libnccl2",
            "libcublas-12-8",
            "pytorch-cuda",
            "TensorRT",
            "jaxlib",
            "torch",
            "libnvidia-ml1",
        ] {
            assert!(is_of_interest(name), "{name}");
        }
        assert!(["numpy", "libc6", "bash", "", "xtorch"].iter().all(|name| !is_of_interest(name)));
    }
}
