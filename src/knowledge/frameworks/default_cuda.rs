//! The CUDA of a release that does not say it: what `PyPI` has under the plain version, for `x86_64`.

use super::normalised;
use super::version::{major_minor, of_text};
use crate::model::CudaVersion;

/// Releases from one up to the next entry of the same framework; an empty CUDA ends what is known.
struct From {
    name: &'static str,
    version: (u32, u32),
    cuda: &'static str,
}

const fn from(name: &'static str, version: (u32, u32), cuda: &'static str) -> From {
    From { name, version, cuda }
}

/// Oldest first within a framework.
///
/// * torch: METADATA of each release from 1.13 on; 1.12.1's wheel, 1.8 to 1.11 by analogy (2026-11). Wheels for
///   aarch64 were CPU builds up to 2.10.
/// * `TensorFlow`: tensorflow.org, "Tested build configurations"; 2.12 to 2.21 by METADATA (2026-11).
/// * Paddle: wheel of 2.6.2; 2.0 to 2.5 by its installation pages. 3.x comes from an index of its own, for
///   several CUDAs under one version (2026-11).
/// * ONNX Runtime: its page "CUDA Execution Provider"; METADATA of 1.15 to 1.31 (2026-11).
/// * vLLM: the torch it pins (METADATA of 0.5 to 0.33), the major alone, for it is built for another minor
///   now and then; libcudart.so.13 in 0.33's own library (2026-11).
/// * `CTranslate2` 4 is for CUDA 12 (its release notes; 12.8 in the wheel of 4.8.5), `XGBoost` 3.2.0 for 12.9
///   (wheel, 2026-11).
const DEFAULTS: &[From] = &[
    from("torch", (1, 8), "10.2"),
    from("torch", (1, 13), "11.7"),
    from("torch", (2, 1), "12.1"),
    from("torch", (2, 5), "12.4"),
    from("torch", (2, 7), "12.6"),
    from("torch", (2, 8), "12.8"),
    from("torch", (2, 11), "13.0"),
    from("torch", (2, 15), "13.2"),
    from("torch", (2, 16), ""),
    from("tensorflow", (1, 13), "10.0"),
    from("tensorflow", (2, 1), "10.1"),
    from("tensorflow", (2, 4), "11.0"),
    from("tensorflow", (2, 5), "11.2"),
    from("tensorflow", (2, 12), "11.8"),
    from("tensorflow", (2, 15), "12.2"),
    from("tensorflow", (2, 16), "12.3"),
    from("tensorflow", (2, 18), "12.5"),
    from("tensorflow", (2, 22), ""),
    from("paddlepaddle_gpu", (2, 0), "10.2"),
    from("paddlepaddle_gpu", (2, 6), "11.8"),
    from("paddlepaddle_gpu", (2, 7), ""),
    from("onnxruntime_gpu", (1, 5), "10.2"),
    from("onnxruntime_gpu", (1, 7), "11.0"),
    from("onnxruntime_gpu", (1, 9), "11.4"),
    from("onnxruntime_gpu", (1, 13), "11.6"),
    from("onnxruntime_gpu", (1, 15), "11.8"),
    from("onnxruntime_gpu", (1, 19), "12"),
    from("onnxruntime_gpu", (1, 27), "13"),
    from("onnxruntime_gpu", (1, 32), ""),
    from("vllm", (0, 5), "12"),
    from("vllm", (0, 20), "13"),
    from("vllm", (0, 34), ""),
    from("ctranslate2", (4, 0), "12"),
    from("ctranslate2", (5, 0), ""),
    from("xgboost", (3, 2), "12.9"),
    from("xgboost", (3, 3), ""),
];

/// The CUDA of a framework's plain version on `PyPI`. `None`: not known, or newer than the table.
pub(super) fn default_cuda(name: &str, version: &str) -> Option<CudaVersion> {
    let name = normalised(name);
    let name = if name == "tensorflow_gpu" { "tensorflow" } else { &name };
    let version = major_minor(version)?;
    let entry = DEFAULTS.iter().rfind(|entry| entry.name == name && entry.version <= version)?;
    of_text(entry.cuda)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        for pair in DEFAULTS.windows(2).filter(|pair| pair[0].name == pair[1].name) {
            assert!(pair[0].version < pair[1].version, "{:?}", pair[1].version);
            if let (Some(older), Some(newer)) = (of_text(pair[0].cuda), of_text(pair[1].cuda)) {
                assert!(older < newer, "{} {:?}", pair[1].name, pair[1].version);
            }
        }
        for name in ["torch", "tensorflow", "paddlepaddle_gpu", "onnxruntime_gpu", "vllm", "ctranslate2", "xgboost"] {
            assert_eq!(DEFAULTS.iter().rfind(|e| e.name == name).map(|e| e.cuda), Some(""), "{name} has an end");
        }
    }

    #[test]
    fn plain_versions_have_their_cuda() {
        for (name, version, cuda) in [
            ("torch", "2.15.0", Some("13.2")),
            ("torch", "2.10.0", Some("12.8")),
            ("torch", "2.4.1", Some("12.1")),
            ("torch", "1.13.1", Some("11.7")),
            ("torch", "2.99.0", None),
            ("torch", "1.4.0", None),
            ("tensorflow", "2.18.0", Some("12.5")),
            ("tensorflow-gpu", "2.5.0", Some("11.2")),
            ("paddlepaddle-gpu", "2.0.0", Some("10.2")),
            ("paddlepaddle_gpu", "3.2.2", None),
            ("onnxruntime-gpu", "1.18.1", Some("11.8")),
            ("onnxruntime-gpu", "1.31.1", Some("13")),
            ("numpy", "2.0", None),
        ] {
            assert_eq!(default_cuda(name, version).map(|c| c.to_string()).as_deref(), cuda, "{name} {version}");
        }
    }
}
