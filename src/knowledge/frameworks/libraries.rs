//! Libraries of CUDA that a framework loads and does not bring in its own package.

use super::normalised;
use super::version::major_minor;

/// What a release's libraries need by `DT_NEEDED` or `dlopen`, as far as it decides between majors.
struct From {
    name: &'static str,
    version: (u32, u32),
    libraries: &'static [&'static str],
}

const fn from(name: &'static str, version: (u32, u32), libraries: &'static [&'static str]) -> From {
    From { name, version, libraries }
}

/// Oldest first within a framework; a release has the last entry that is not newer.
///
/// * ONNX Runtime: `DT_NEEDED` of `libonnxruntime_providers_cuda.so` in the wheels of 1.18.1 and 1.31.1; its page
///   "CUDA Execution Provider" for the rest (read 2026-11).
/// * `TensorFlow`: its tested build configurations; loaded by name (2026-11).
/// * Paddle: wheel of 2.6.2, cudart inside (2026-11). 3.x has one version for several CUDAs: not known.
/// * `CuPy`: it compiles with NVRTC; cudart is inside (wheel of 13.6.0, 2026-11).
/// * `CTranslate2`: its release notes, cuDNN 9 from 4.5 on; cudart is inside.
const NEEDED: &[From] = &[
    from("onnxruntime_gpu", (1, 7), &["libcudart.so.11.0", "libcublasLt.so.11", "libcublas.so.11", "libcudnn.so.8"]),
    from("onnxruntime_gpu", (1, 19), &["libcudart.so.12", "libcublasLt.so.12", "libcublas.so.12", "libcudnn.so.9"]),
    from("onnxruntime_gpu", (1, 27), &["libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9"]),
    from("onnxruntime_gpu", (1, 32), &[]),
    from("tensorflow", (2, 1), &["libcudart.so.10.1", "libcublas.so.10", "libcudnn.so.7"]),
    from("tensorflow", (2, 4), &["libcudart.so.11.0", "libcublas.so.11", "libcudnn.so.8"]),
    from("tensorflow", (2, 15), &["libcudart.so.12", "libcublas.so.12", "libcudnn.so.8"]),
    from("tensorflow", (2, 18), &["libcudart.so.12", "libcublas.so.12", "libcudnn.so.9"]),
    from("tensorflow", (2, 22), &[]),
    from("paddlepaddle_gpu", (2, 6), &["libcublas.so.11", "libcudnn.so.8"]),
    from("paddlepaddle_gpu", (2, 7), &[]),
    from("cupy_cuda11x", (0, 0), &["libnvrtc.so.11.2"]),
    from("cupy_cuda12x", (0, 0), &["libnvrtc.so.12"]),
    from("cupy_cuda13x", (0, 0), &["libnvrtc.so.13"]),
    from("ctranslate2", (4, 0), &["libcublas.so.12", "libcudnn.so.8"]),
    from("ctranslate2", (4, 5), &["libcublas.so.12", "libcudnn.so.9"]),
    from("ctranslate2", (5, 0), &[]),
];

/// The libraries, by soname. Empty: none is known, or it brings what it needs. A release of another build
/// than the default on `PyPI` needs others: ask only where its CUDA is the default's.
pub fn needs_libraries(name: &str, version: &str) -> &'static [&'static str] {
    let name = normalised(name);
    let name = if name == "tensorflow_gpu" { "tensorflow" } else { &name };
    let Some(version) = major_minor(version) else { return &[] };
    NEEDED.iter().rfind(|entry| entry.name == name && entry.version <= version).map_or(&[], |entry| entry.libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        for pair in NEEDED.windows(2).filter(|pair| pair[0].name == pair[1].name) {
            assert!(pair[0].version < pair[1].version, "{} {:?}", pair[1].name, pair[1].version);
        }
    }

    #[test]
    fn releases_need_the_libraries_of_their_major() {
        assert!(needs_libraries("onnxruntime-gpu", "1.18.1").contains(&"libcudnn.so.8"));
        assert!(needs_libraries("onnxruntime_gpu", "1.26.0").contains(&"libcublasLt.so.12"));
        assert!(needs_libraries("onnxruntime_gpu", "1.31.1").contains(&"libcudart.so.13"));
        assert_eq!(needs_libraries("cupy-cuda13x", "13.6.0"), ["libnvrtc.so.13"]);
        assert!(needs_libraries("tensorflow", "2.21.0").contains(&"libcudnn.so.9"));
        assert!(needs_libraries("torch", "2.9.0").is_empty() && needs_libraries("tensorflow", "x").is_empty());
    }
}
