//! Libraries of CUDA and of NVIDIA's own beside it, by the names of their files.

/// Beginnings of the names of what programs load: CUDA's toolkit, cuDNN, NCCL, `TensorRT`, cuTENSOR, cuSPARSELt,
/// NVSHMEM (contents of NVIDIA's packages on `PyPI` and in its repositories for Debian, 2026-11).
const OF_CUDA: [&str; 25] = [
    "libcudart",
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcupti",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libcutensor",
    "libcudss",
    "libnccl",
    "libnpp",
    "libnvblas",
    "libnvfatbin",
    "libnvinfer",
    "libnvonnxparser",
    "libnvjitlink",
    "libnvjpeg",
    "libnvrtc",
    "libnvshmem",
    "libnvtoolsext",
    "libnvvm",
    "libcustatevec",
    "libcuquantum",
];

/// A library of CUDA, by its file's name. Those of the driver are none: they come from the host.
pub fn is_of_cuda(name: &str) -> bool {
    let name: String = name.chars().take(32).map(|c| c.to_ascii_lowercase()).collect();
    OF_CUDA.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_brings_is_not_of_cuda() {
        assert!(["libcudart.so.12", "libnvJitLink.so.12", "libcudnn_ops.so.9"].into_iter().all(is_of_cuda));
        assert!(
            ["libcuda.so.1", "libnvidia-ml.so.1", "libc.so.6", "libtorch_cuda.so", ""].iter().all(|n| !is_of_cuda(n))
        );
    }
}
