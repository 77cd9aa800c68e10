//! What `PyTorch` says in its own words: `c10/cuda/CUDAFunctions.cpp`, `torch/cuda/__init__.py` (2026-11), and reports.

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "PyTorch: no driver",
        tells: &[&["found no nvidia driver on your system"]],
        causes: &[
            medium("gpu-not-requested", "PyTorch finds no libcuda: the container was started without a GPU."),
            medium("build-time-no-gpu", "Or a build runs it: no build step has a GPU."),
            medium("capability-compute-missing", "If nvidia-smi works: the capability compute is lacking."),
            medium("driver-not-loaded", "On a host: the driver is not installed or not loaded."),
            low("passthrough-incomplete", "--privileged gives nodes, and no libcuda."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "PyTorch: driver too old",
        tells: &[&["nvidia driver on your system is too old"], &["driver on your system is too old"]],
        after: Some("found version "),
        causes: &[
            high(
                "framework-cuda-newer-than-driver",
                "The driver in use offers CUDA {found} (12080 is 12.8), and this build of PyTorch is for a newer major version.",
            ),
            medium(
                "compat-not-enabled-by-toolkit",
                "On a data centre GPU compat libraries of the image may help, if they were used.",
            ),
            medium(
                "compat-older-than-driver-wins",
                "If the host's nvidia-smi shows more: an older libcuda of the image is in use.",
            ),
            low("cuda-newer-than-driver", "The image's CUDA as a whole may be too new."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "PyTorch: no GPU",
        tells: &[&["no cuda gpus are available"], &["found no cuda device"], &["no gpu found", "torch"]],
        causes: &[
            medium(
                "cuda-visible-devices-out-of-range",
                "libcuda is there and shows no GPU: CUDA_VISIBLE_DEVICES may name one that the container does not have.",
            ),
            medium("gpu-not-requested", "Or the container was started without a GPU, and has a libcuda of its own."),
            medium(
                "cuda-visible-devices-empty",
                "Or CUDA_VISIBLE_DEVICES is empty or -1, as a framework may set it for its workers.",
            ),
            medium(
                "uvm-node-missing",
                "If an earlier line warns of CUDA: it does not start, often for want of /dev/nvidia-uvm.",
            ),
            low("mig-enabled-without-instances", "Or MIG is on and no instance made."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "PyTorch: CUDA is not available",
        tells: &[
            &["torch.cuda.is_available()", "false"],
            &["is_available() false"],
            &["assert torch.cuda.is_available()"],
            &["is_available() returns false"],
            &["cuda is not available"],
            &["cuda not available"],
            &["cuda available: false"],
            &["cuda is available: false"],
            &["torch not able to use gpu"],
            &["torch is not able to use gpu"],
            &["cuda:false"],
            &["cuda \u{4e0d}\u{53ef}\u{7528}"],
        ],
        unless: &["attempting to deserialize"],
        causes: &[
            medium("gpu-not-requested", "The container was started without a GPU."),
            medium(
                "framework-is-cpu-build",
                "Or the installed PyTorch is the build for the processor: torch.version.cuda is None.",
            ),
            medium(
                "framework-cuda-newer-than-driver",
                "Or the driver is too old for the build: a warning says so before.",
            ),
            low("jetson-use-runtime", "On a Jetson: the container was started without --runtime nvidia."),
            low("build-time-no-gpu", "Or a build asks: no build step has a GPU."),
            low("uvm-node-missing", "Or CUDA does not start for want of /dev/nvidia-uvm."),
            low("capability-compute-missing", "Or the capability compute is lacking."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "PyTorch: a model saved on a GPU",
        tells: &[
            &["attempting to deserialize object on a cuda device"],
            &["attempting to deserialize object on cuda device"],
            &["attempting to deserialize"],
            &["attempting todeserialize"],
            &["please use torch.load with map_location"],
        ],
        causes: &[
            high(
                "gpu-not-requested",
                "The model was saved on a GPU, and torch sees none here: mostly the container was started without one.",
            ),
            medium("framework-is-cpu-build", "Or the installed torch is the build for the processor."),
            medium(
                "torch-load-map-location",
                "If it shall run without a GPU, or with fewer: torch.load needs map_location.",
            ),
            medium("framework-cuda-newer-than-driver", "Or CUDA does not start: the driver is too old for this torch."),
            low(
                "cuda-visible-devices-out-of-range",
                "\"on CUDA device 1 but device_count() is 1\": the model was saved on a GPU of a number that is not here.",
            ),
            low("uvm-node-missing", "Or CUDA does not start for want of /dev/nvidia-uvm."),
            low("cuda-visible-devices-empty", "Or CUDA_VISIBLE_DEVICES hides all GPUs."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "PyTorch: an error at the first count",
        tells: &[
            &["unexpected error from cudagetdevicecount"],
            &["can't initialize nvml"],
            &["cuda initialization: unexpected error"],
            &["device_count() returned 0"],
        ],
        causes: &[
            low("uvm-node-missing", "CUDA does not start; the number in the line says more."),
            low("driver-library-mismatch", "Library and module may differ."),
            low("node-access-refused", "Or a node may not be opened."),
            low("gpu-not-requested", "Or there is no GPU in the container."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "vLLM, SGLang or TensorRT-LLM do not start",
        tells: &[&["cuda driver failed to initialize"], &["this may indicate a driver mismatch"]],
        causes: &[
            medium("driver-library-mismatch", "The libcuda in use may not be the driver's."),
            medium("compat-older-than-driver-wins", "As with an older compat libcuda of the image."),
            medium("framework-cuda-newer-than-driver", "Or the driver is too old."),
            low("uvm-node-missing", "Or /dev/nvidia-uvm is not there."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "an extension is compiled where there is no GPU",
        tells: &[&["no cuda runtime is found, using cuda_home"], &["_get_cuda_arch_flags"], &["arch_list[-1] +="]],
        causes: &[
            high("build-time-no-gpu", "A build has no GPU to take the architecture from: set TORCH_CUDA_ARCH_LIST."),
            medium("gpu-not-requested", "Outside a build: the container has no GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "an extension was compiled without a GPU, or for another torch",
        tells: &[&["implementation for device cuda"], &["torchvision::nms"], &["couldn't load custom c++ ops"]],
        causes: &[
            medium(
                "extension-lacks-gpu-arch",
                "The extension was compiled without its GPU part, as happens in builds.",
            ),
            medium("framework-cuda-major-mix", "Or it is for another release of the framework, or of CUDA."),
            medium("framework-is-cpu-build", "Or it is the build for the processor."),
            low("build-time-no-gpu", "A build has no GPU: set FORCE_CUDA=1 and TORCH_CUDA_ARCH_LIST."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "an extension was compiled without a GPU",
        tells: &[
            &["ninja", "torch_cuda_arch_list"],
            &["error in ms_deformable"],
            &["not implemented on the gpu"],
            &["name '_c' is not defined"],
        ],
        causes: &[
            medium(
                "build-time-no-gpu",
                "A build has no GPU: what asks for one there guesses, or leaves its GPU part out. Set TORCH_CUDA_ARCH_LIST.",
            ),
            medium("extension-lacks-gpu-arch", "So the extension has no code for the GPU that it meets."),
            low("framework-is-cpu-build", "Or it was compiled for the processor only."),
        ],
        ..Text::PLAIN
    },
];
