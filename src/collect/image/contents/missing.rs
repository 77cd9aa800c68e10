//! Libraries of CUDA that frameworks load and that the image does not have.
//!
//! Only what lies nowhere is missing: where a library lies that the loader would not look at, the framework may load
//! it by its path (torch, `TensorFlow` and JAX take NVIDIA's packages from beside themselves), another one may have
//! loaded it before, or a script sets `LD_LIBRARY_PATH`. A false alarm would be worse than none.

use std::collections::BTreeSet;

use super::{Found, View};
use crate::collect::files::Files as _;
use crate::knowledge::frameworks::needs_libraries;
use crate::knowledge::toolkit::{base_name, parent};
use crate::model::Image;
use crate::model::image::{Build, MissingLibrary};

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
    let mut all = BTreeSet::new();
    for (path, needed) in &found.asking {
        let absent = needed.iter().filter(|name| !found.loadable.contains(*name));
        all.extend(absent.map(|name| (name.as_str(), base_name(path), *path)));
    }
    let frameworks = image.frameworks.seen().map_or(&[][..], |frameworks| &frameworks.items);
    for framework in frameworks.iter().filter(|framework| framework.sure && framework.build == Build::Cuda) {
        let libraries = needs_libraries(&framework.name, &framework.version);
        // the table is of the builds on PyPI; another build of the same release needs others
        let major = framework.cuda.as_ref().map(|cuda| format!(".so.{}", cuda.number(0)));
        let is_of_table = major.is_some_and(|major| libraries.iter().any(|name| of_major(name, &major)));
        for name in libraries.iter().filter(|name| is_of_table && !found.loadable.contains(**name)) {
            if !all.iter().any(|(known, _, path)| known == name && path.starts_with(parent(&framework.source))) {
                all.insert((name, &framework.name, &framework.source));
            }
        }
    }
    let told = |(name, needed_by, source): (&str, &str, &str)| MissingLibrary {
        name: name.to_owned(),
        needed_by: needed_by.to_owned(),
        source: source.to_owned(),
    };
    all.into_iter().take(MOST).map(told).collect()
}

/// A library whose name has CUDA's own major.
fn of_major(name: &str, major: &str) -> bool {
    ["libcudart", "libcublas", "libnvrtc"].iter().any(|start| {
        name.strip_prefix(start)
            .and_then(|rest| rest.strip_prefix(major))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}
