//! Libraries of CUDA that frameworks load and that the image does not have.
//!
//! Only what lies nowhere is missing: where a library lies that the loader would not look at, the framework may load
//! it by its path (torch, `TensorFlow` and JAX take NVIDIA's packages from beside themselves), another one may have
//! loaded it before, or a script sets `LD_LIBRARY_PATH`. A false alarm would be worse than none.

use super::{Found, View};
use crate::collect::files::Files as _;
use crate::knowledge::toolkit::{base_name, parent};
use crate::model::Image;
use crate::model::image::MissingLibrary;

/// More than are worth telling.
const MOST: usize = 64;
/// On Jetson the toolkit mounts the host's CUDA into images of `JetPack` 4.
const OF_JETSON: [&str; 2] = ["/etc/nv_tegra_release", "/usr/lib/aarch64-linux-gnu/tegra"];

/// A library that a framework cannot do without. What it needs by `DT_NEEDED` has to be there when it is loaded;
/// what is optional is loaded by `dlopen`, or has a library of its own that is none of these (ONNX Runtime's for
/// `TensorRT`, `CuPy`'s for cuDNN, cuTENSOR and NCCL).
pub(super) fn may_ask(path: &str) -> bool {
    let name = base_name(path);
    let beside = base_name(parent(path));
    match beside {
        "torch" | "vllm" => name.starts_with("_C."),
        "libs" => {
            path.contains("/cupy_backends/cuda/")
                && ["cublas.", "cusolver.", "cusparse.", "curand."].iter().any(|start| name.starts_with(start))
        }
        _ => {
            ["libtorch_cuda.so", "libtorch_python.so", "libc10_cuda.so", "libonnxruntime_providers_cuda.so"]
                .contains(&name)
                || ["libtensorflow_cc.so", "libggml-cuda.so", "libctranslate2", "libphi.so", "libpaddle.so"]
                    .iter()
                    .any(|start| name.starts_with(start))
        }
    }
}

/// Those that are missing. None can be told of an image that could not be read as a whole.
pub(super) fn find(view: &View, found: &Found<'_>, image: &Image) -> Vec<MissingLibrary> {
    let of_jetson = OF_JETSON.iter().any(|path| view.stat(path).ok().flatten().is_some());
    if of_jetson || !view.all_unread().is_empty() {
        return Vec::new();
    }
    // what releases are known to load by name, unless it lies where the survey did not look
    let by_name = image.missing.seen().map_or(&[][..], |missing| &missing.items);
    let mut all: Vec<MissingLibrary> =
        by_name.iter().filter(|library| !found.loadable.contains(&library.name)).cloned().collect();
    for (path, needed) in &found.asking {
        for name in needed.iter().filter(|name| !found.loadable.contains(*name)) {
            if all.len() < MOST && !all.iter().any(|other| other.name == *name) {
                let needed_by = base_name(path).to_owned();
                all.push(MissingLibrary { name: name.clone(), needed_by, source: (*path).to_owned() });
            }
        }
    }
    all.truncate(MOST);
    all
}
