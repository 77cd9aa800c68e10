//! Device code that wants more of the driver than its version check shows.

use super::normalised;
use super::version::major_minor;
use crate::model::CudaVersion;

/// Who turns PTX into machine code while a framework runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jit {
    /// The driver: PTX of a toolkit newer than the driver's CUDA is error 222.
    Driver,
    /// An assembler that the framework brings (ptxas, NVRTC, nvJitLink); the driver only where that does not
    /// know the GPU or is missing.
    Own,
    /// Nobody: it was compiled when it was built.
    Nobody,
}

/// Who compiles for a framework at run time (projects' own sources and documentation, 2026-11):
///
/// * Numba and RAPIDS, whose user functions go through Numba, hand PTX to the driver's linker unless
///   `pynvjitlink` is there. vLLM's quantised kernels are built with PTX of one generation for all later ones.
/// * torch from 2.0 on brings Triton for `torch.compile`, and NVRTC; Triton calls its own ptxas, `CuPy` and torch
///   have NVRTC write machine code, JAX and `TensorFlow` have XLA call ptxas or nvPTXCompiler, and ask the driver
///   if they find none.
/// * Paddle's compiler (CINN), ONNX Runtime, `CTranslate2`, `XGBoost`, bitsandbytes, flash-attn, llama.cpp and
///   Ollama do not, as they are delivered.
pub fn jit(name: &str) -> Jit {
    match normalised(name).as_str() {
        "numba" | "vllm" | "cudf" | "cuml" | "cugraph" | "cuspatial" => Jit::Driver,
        "torch" | "triton" | "tensorflow" | "tensorflow_gpu" => Jit::Own,
        name if name.starts_with("cupy") || name.starts_with("jax") => Jit::Own,
        _ => Jit::Nobody,
    }
}

/// It compiles PTX at run time, by whomever: with a driver that offers an older CUDA of the same major that may
/// end in error 222.
pub fn compiles_ptx(name: &str) -> bool {
    jit(name) != Jit::Nobody
}

/// The driver that reads device code compressed with zstd, in builds for CUDA 12 (from 13 on no older driver
/// will do anyway). RAPIDS, "Platform support"; Ollama, `discover/cuda_compat.go`; read 2026-11. Which error an
/// older one gives nobody recorded.
pub const COMPRESSED: &str = "550.54.14";

/// The driver that a framework's device code needs beyond what its CUDA does; `None`: none is known.
///
/// torch compresses in its builds for CUDA 12.8 and 12.9, which began with 2.7 (`-compress-mode=size`, its build scripts); Ollama asks
/// for the same driver itself.
pub fn needs_driver_for_device_code(name: &str, version: &str, cuda: Option<&CudaVersion>) -> Option<&'static str> {
    let cuda = cuda?;
    let (major, minor) = (cuda.number(0), cuda.number(1));
    let compressed = match normalised(name).as_str() {
        "torch" => major == 12 && minor >= 8 && major_minor(version).is_some_and(|torch| torch >= (2, 7)),
        "ollama" => major == 12,
        _ => false,
    };
    compressed.then_some(COMPRESSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_code_needs_a_driver_of_cuda_12_4() {
        let needs = |name, cuda: &str| needs_driver_for_device_code(name, "2.9.0", Some(&cuda.parse().unwrap()));
        assert_eq!(needs("torch", "12.8"), Some(COMPRESSED));
        assert_eq!(needs("torch", "12.6"), None);
        assert_eq!(needs("torch", "13.0"), None);
        assert_eq!(needs("ollama", "12"), Some(COMPRESSED));
        assert_eq!(needs_driver_for_device_code("torch", "2.9.0", None), None);
    }

    #[test]
    fn who_compiles() {
        assert_eq!(jit("vllm"), Jit::Driver);
        assert!(compiles_ptx("torch") && compiles_ptx("cupy-cuda12x") && compiles_ptx("jax-cuda13-plugin"));
        assert!(!compiles_ptx("onnxruntime-gpu") && !compiles_ptx("flash-attn") && !compiles_ptx("openvino"));
    }
}
