//! Libraries of CUDA that a framework loads and does not bring in its own package.

use super::default_cuda::default_cuda;
use super::normalised;
use super::version::major_minor;
use crate::model::CudaVersion;

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

/// The same, if its build is the one that the table is of: for the CUDA major of the release's plain version, and
/// nobody's own (`2.17.0+nv24.8`).
pub fn needs_libraries_of(name: &str, version: &str, cuda: Option<&CudaVersion>) -> &'static [&'static str] {
    let usual = default_cuda(name, version);
    let is_usual = match (cuda, &usual) {
        (Some(cuda), Some(usual)) => cuda.number(0) == usual.number(0),
        (None, Some(_)) => false,
        (_, None) => true,
    };
    if is_usual && !version.contains('+') { needs_libraries(name, version) } else { &[] }
}

/// Libraries that one of NVIDIA's packages for Python brings, by the package's name and version (files of the wheels on
/// `PyPI`, 2026-11): `nvidia-cudnn-cu12` 9.1.0, from CUDA 13 on `nvidia-cuda-nvrtc` 13.0.48 without the major in its
/// name.
pub fn brings_library(package: &str, version: &str, library: &str) -> bool {
    let name = normalised(package);
    let Some(rest) = name.strip_prefix("nvidia_") else { return false };
    let (base, suffix) = rest.rsplit_once("_cu").unwrap_or((rest, ""));
    let is_number = !suffix.is_empty() && suffix.bytes().all(|b| b.is_ascii_digit());
    let base = if is_number { base } else { rest };
    let stems: &[&str] = match base {
        "cudnn" => &["libcudnn"],
        "cublas" => &["libcublas", "libcublasLt"],
        "cuda_runtime" => &["libcudart"],
        "cuda_nvrtc" => &["libnvrtc"],
        _ => return false,
    };
    let Some((stem, wanted)) = library.split_once(".so.") else { return false };
    let number = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
    // cuDNN counts for itself, the others with CUDA
    let has = if is_number && base != "cudnn" { suffix.to_owned() } else { number(version) };
    stems.contains(&stem) && number(wanted) == has
}

/// Which of NVIDIA's packages for Python brings a library of a CUDA major (names on `PyPI`, and those that torch 2.8 and
/// 2.15 ask for, 2026-11): from CUDA 13 on most have no major in their name.
pub fn package_with(library: &str, major: u32) -> Option<String> {
    const PACKAGES: [(&str, &str); 14] = [
        ("libcudart", "cuda-runtime"),
        ("libnvrtc", "cuda-nvrtc"),
        ("libcupti", "cuda-cupti"),
        ("libnvToolsExt", "nvtx"),
        ("libnvJitLink", "nvjitlink"),
        ("libcublas", "cublas"),
        ("libcudnn", "cudnn"),
        ("libcufft", "cufft"),
        ("libcufile", "cufile"),
        ("libcurand", "curand"),
        ("libcusolver", "cusolver"),
        ("libcusparseLt", "cusparselt"),
        ("libcusparse", "cusparse"),
        ("libnccl", "nccl"),
    ];
    let (_, package) = PACKAGES.iter().find(|(start, _)| library.starts_with(start))?;
    let plain = major >= 13 && !matches!(*package, "cudnn" | "cusparselt" | "nccl");
    Some(if plain { format!("nvidia-{package}") } else { format!("nvidia-{package}-cu{major}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_for_their_major() {
        let of = |library, major| package_with(library, major).unwrap_or_default();
        assert_eq!(of("libcublasLt.so.11", 11), "nvidia-cublas-cu11");
        assert_eq!(of("libcusparseLt.so.0", 12), "nvidia-cusparselt-cu12");
        assert_eq!(of("libcusparse.so.12", 13), "nvidia-cusparse");
        assert_eq!(of("libcudnn.so.9", 13), "nvidia-cudnn-cu13");
        assert_eq!(of("libx.so.1", 12), "");
    }

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

    #[test]
    fn another_build_than_the_usual_needs_others() {
        let of = |name, version, cuda: Option<&str>| {
            needs_libraries_of(name, version, cuda.map(|cuda| cuda.parse().unwrap()).as_ref()).len()
        };
        assert_eq!(of("onnxruntime-gpu", "1.18.1", Some("11.8")), 4);
        assert_eq!(of("onnxruntime-gpu", "1.18.1", Some("12.2")), 0, "of the feed for CUDA 12");
        assert_eq!(of("tensorflow", "2.18.0", Some("12.5")), 3);
        assert_eq!(of("tensorflow", "2.17.0+nv24.8", Some("12.6")), 0);
        assert_eq!(of("cupy-cuda13x", "13.6.0", Some("13")), 1);
    }

    #[test]
    fn packages_bring_libraries_of_their_major() {
        for (package, version, library, brings) in [
            ("nvidia-cudnn-cu12", "9.1.0.70", "libcudnn.so.9", true),
            ("nvidia-cudnn-cu12", "8.9.2.26", "libcudnn.so.9", false),
            ("nvidia_cublas_cu12", "12.4.5.8", "libcublasLt.so.12", true),
            ("nvidia_cublas_cu11", "11.10.3.66", "libcublas.so.12", false),
            ("nvidia-cuda-nvrtc", "13.0.48", "libnvrtc.so.13", true),
            ("nvidia-cuda-nvrtc-cu11", "11.8.89", "libnvrtc.so.11.2", true),
            ("nvidia-cuda-runtime-cu12", "12.8.90", "libcudart.so.12", true),
            ("nvidia-nccl-cu12", "2.27.3", "libcudart.so.12", false),
            ("numpy", "2.0", "libcudart.so.12", false),
        ] {
            assert_eq!(brings_library(package, version, library), brings, "{package} {library}");
        }
    }
}
