//! Device code that wants more of the driver than its version check shows.

use super::normalised;
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

/// The driver that reads device code compressed with zstd, in builds for CUDA 12 (from 13 on no older driver
/// will do anyway). RAPIDS, "Platform support"; Ollama, `discover/cuda_compat.go`; read 2026-11. Which error an
/// older one gives nobody recorded.
const COMPRESSED: &str = "550.54.14";

/// The driver that a framework's device code needs beyond what its CUDA does; `None`: none is known.
///
/// Ollama asks for it itself. torch compresses its builds for CUDA 12.8 and 12.9 (`-compress-mode=size` in its
/// build scripts), and yet 2.9.1+cu129 was measured to run on a driver of CUDA 12.2 (eullm/eullm#428, 2026-09).
pub fn needs_driver_for_device_code(name: &str, cuda: &CudaVersion) -> Option<&'static str> {
    (normalised(name) == "ollama" && cuda.number(0) == 12).then_some(COMPRESSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_code_needs_a_driver_of_cuda_12_4() {
        let needs = |name, cuda: &str| needs_driver_for_device_code(name, &cuda.parse().unwrap());
        assert_eq!(needs("ollama", "12"), Some(COMPRESSED));
        assert_eq!(needs("ollama", "13"), None);
        assert_eq!(needs("torch", "12.8"), None);
    }

    #[test]
    fn who_compiles() {
        assert_eq!(jit("vllm"), Jit::Driver);
        assert!(["torch", "cupy-cuda12x", "jax-cuda13-plugin"].iter().all(|name| jit(name) == Jit::Own));
        assert!(["onnxruntime-gpu", "flash-attn", "openvino"].iter().all(|name| jit(name) == Jit::Nobody));
    }
}
