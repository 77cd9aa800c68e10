//! What TensorFlow, Paddle, JAX, ONNX Runtime, llama.cpp, Ollama, vLLM, `CuPy` and others say in their own words, by
//! reports; TensorFlow also by the strings of its 2.21 (2026-11).

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "a CUDA sample finds too few devices",
        tells: &[
            &["devices available", "requested. exiting"],
            &["there is no device supporting cuda"],
            &["there are no available device(s) that support cuda"],
        ],
        causes: &[
            medium("gpu-not-requested", "The container was started without a GPU."),
            medium("uvm-node-missing", "Or CUDA does not start for want of /dev/nvidia-uvm."),
            medium("cuda-visible-devices-out-of-range", "Or CUDA_VISIBLE_DEVICES names a GPU that is not here."),
            low("mig-enabled-without-instances", "Or MIG is on and no instance made."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "GPUs that differ",
        tells: &[
            &["detected different devices in the system"],
            &["set `cuda_device_order=pci_bus_id`"],
            &["set cuda_device_order=pci_bus_id"],
        ],
        causes: &[
            high("igpu-dgpu-order", "The GPUs differ, and CUDA numbers them in another order than nvidia-smi."),
            low("program-uses-host-index", "A number may then mean another GPU than the one wanted."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a value of CUDA_VISIBLE_DEVICES",
        tells: &[
            &["invalid", "cuda_visible_devices"],
            &["cuda_visible_devices", "out of range"],
            &["cuda_visible_devices", "not a valid"],
        ],
        causes: &[
            medium("cuda-visible-devices-bad-form", "The value is not one that CUDA, or this program, can read."),
            medium("cuda-visible-devices-out-of-range", "Or it names a GPU that the container does not have."),
            low("framework-cannot-parse-uuid", "Or it is a UUID where the program wants numbers."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA_VISIBLE_DEVICES hides all",
        tells: &[
            &["this hides all gpus from cuda"],
            &["cuda_visible_devices is set to an empty string"],
            &["cuda_visible_devices", "is empty"],
            &["cuda_visible_devices=-1"],
            &["cuda_visible_devices=\"-1\""],
        ],
        causes: &[
            high("cuda-visible-devices-empty", "CUDA_VISIBLE_DEVICES is empty or -1, which hides all GPUs."),
            low("cuda-visible-devices-out-of-range", "A number that is not here does the same."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "TensorFlow: library and kernel differ",
        tells: &[&["does not match dso version"], &["cannot find working devices in this configuration"]],
        causes: &[
            high("driver-library-mismatch", "The libcuda in use is not of the version of the loaded module."),
            medium("compat-older-than-driver-wins", "It may be the compat libcuda of the image."),
            medium("driver-libs-in-image", "Or one that is baked into it."),
            low("cdi-spec-stale", "Or that of an earlier driver, by an old CDI specification."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "Paddle: the device is not set properly",
        tells: &[
            &["your cuda device is not set properly"],
            &["cpu device will be used by default"],
            &["gpu version paddle", "not set properly"],
            &["device count is zero"],
        ],
        causes: &[
            medium("gpu-not-requested", "Paddle sees no GPU: the container was started without one."),
            medium(
                "compat-older-than-driver-wins",
                "Or CUDA does not start: an older compat libcuda of the image is in use.",
            ),
            medium("framework-cuda-newer-than-driver", "Or the driver is too old for this build of Paddle."),
            low("cuda-visible-devices-out-of-range", "Or CUDA_VISIBLE_DEVICES names a number that is not here."),
            low("uvm-node-missing", "Or /dev/nvidia-uvm is not there."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "TensorFlow: no node",
        tells: &[
            &["no nvidia gpu device is present: /dev/nvidia0"],
            &["unknown error (-1)"],
            &["/dev/nvidia0 does not exist"],
            &["kernel driver does not appear to be running on this host"],
            &["/proc/driver/nvidia/version does not exist"],
            &["unknown error (303)"],
            &["[-1] call to cuinit"],
            &["less than gpu count"],
            &["getcudadevicecount():0"],
        ],
        causes: &[
            high("gpu-not-requested", "The container has no node of a GPU: it was started without one."),
            medium("cuda-stub-loaded", "The libcuda that answered may be a stub of the image."),
            medium("driver-not-loaded", "On a host: the driver is not loaded."),
            low("device-nodes-not-created-yet", "Or nothing has made the nodes since boot."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "TensorFlow: no device",
        tells: &[&["failed call to cuinit", "no_device"], &["failed call to cuinit", "no cuda-capable device"]],
        causes: &[
            medium(
                "gpu-not-requested",
                "TensorFlow's images carry a libcuda of their own, which answers so in a container without a GPU.",
            ),
            medium(
                "cuda-visible-devices-out-of-range",
                "CUDA_VISIBLE_DEVICES may name a number that the container does not have.",
            ),
            medium("cuda-visible-devices-empty", "Or hide all GPUs, with -1 or nothing."),
            low("gpu-node-missing", "Or no GPU's node was given."),
            low("compat-dropped-gpu-generation", "Or a compat libcuda no longer knows this old GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "TensorFlow: no driver",
        tells: &[
            &["could not find cuda drivers on your machine"],
            &["gpu will not be used"],
            &["could not find tensorrt", "cuda drivers"],
        ],
        causes: &[
            medium("gpu-not-requested", "TensorFlow finds no libcuda: the container was started without a GPU."),
            medium("capability-compute-missing", "If nvidia-smi works in it: the capability compute is lacking."),
            medium("driver-library-missing", "On a host: no driver is installed."),
            low(
                "framework-is-cpu-build",
                "The processor's build of TensorFlow says nothing of the kind, but often stands beside.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a build for the processor",
        tells: &[
            &["not compiled with cuda enabled"],
            &["a cuda-enabled jaxlib is not installed"],
            &["no gpu/tpu found, falling back to cpu"],
            &["paddle is not compiled with cuda"],
            &["cannot use cudaplace in cpu only version"],
            &["please install paddlepaddle-gpu"],
            &["not compiled with cuda"],
            &["this tensorflow binary is not built with cuda"],
            &["cudaexecutionprovider", "is not in available provider names"],
            &["compiled without cuda support"],
            &["no gpu support in this build"],
            &["the installed version of bitsandbytes was compiled without gpu support"],
            &["not compiled with gpu offload support"],
            &["was not built with cuda"],
            &["compiled without gpu support"],
            &["unknown backend: 'cuda'"],
            &["ctranslate2", "not compiled with cuda"],
            &["libtorch", "not linked with support for cuda"],
            &["gpu tree learner was not enabled"],
            &["compile with use_cuda"],
            &["is_built_with_cuda", "false"],
            &["is_compiled_with_cuda", "false"],
            &["torch.version.cuda", "none"],
            &["backend 'cuda'", "no attribute 'gpuallocatorconfig'"],
            &["unknown backend: 'gpu'"],
            &["unknown backend gpu"],
            &["'azureexecutionprovider', 'cpuexecutionprovider'"],
        ],
        pairs: &[(
            &["compiled", "built", "build ", "binary", "library", "package", "version"],
            &[
                "without cuda support",
                "without gpu support",
                "with cuda support disabled",
                "not compiled with gpu",
                "not built with gpu",
                "not built with cuda",
                "no cuda support",
                "no gpu support",
                "cpu-only build",
                "cpu only version",
            ],
        )],
        unless: &["kernel binaries", "aware support"],
        causes: &[
            high("framework-is-cpu-build", "The installed build is the one for the processor; no GPU could help it."),
            medium(
                "framework-cuda-library-missing",
                "Or its CUDA part is installed and does not load: look for an earlier line.",
            ),
            low("gpu-not-requested", "Whether the container has a GPU is another question."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "llama.cpp or Ollama finds no device",
        tells: &[
            &["ggml_cuda_init: found 0 cuda devices"],
            &["no compatible gpus were discovered"],
            &["no usable gpu found"],
            &["no gpu detected"],
            &["--gpu-layers option will be ignored"],
            &["gpu discovery failed"],
            &["unable to load cuda driver library"],
            &["looking for compatible gpus", "no compatible"],
            &["no cuda devices found"],
            &["failed to infer device type"],
            &["no supported gpu"],
            &["\u{672a}\u{68c0}\u{6d4b}\u{5230}", "gpu"],
            &["\u{65e0}\u{6cd5}\u{4f7f}\u{7528}gpu"],
            &["\u{6ca1}\u{6709}\u{53ef}\u{7528}", "gpu"],
            &["\u{627e}\u{4e0d}\u{5230}gpu"],
            &["\u{6ca1}\u{6709}\u{68c0}\u{6d4b}\u{5230}", "gpu"],
            &["\u{627e}\u{4e0d}\u{5230}\u{663e}\u{5361}"],
            &["\u{672a}\u{68c0}\u{6d4b}\u{5230}\u{663e}\u{5361}"],
        ],
        causes: &[
            medium("gpu-not-requested", "The container was started without a GPU."),
            medium("uvm-node-missing", "Or with one and without /dev/nvidia-uvm, so that CUDA does not start."),
            medium("capability-compute-missing", "Or without the capability compute, so that there is no libcuda."),
            low("framework-cuda-newer-than-driver", "Or the driver is too old for the build."),
            low("cgroup-lost-after-daemon-reload", "If it worked before: the device cgroup lost the GPU."),
            low("framework-is-cpu-build", "Or the build is for the processor."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "MIG or UUIDs where a number is expected",
        tells: &[
            &["invalid literal for int()", "mig-"],
            &["invalid literal for int()", "gpu-"],
            &["could not convert", "mig-"],
            &["invalid device id", "mig-"],
        ],
        causes: &[
            high(
                "framework-cannot-parse-uuid",
                "The program takes the entries of CUDA_VISIBLE_DEVICES for numbers, and they are UUIDs.",
            ),
            medium("cuda-visible-devices-bad-form", "For such a program they must be numbers."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the GPU is not one that the build knows",
        tells: &[
            &["is not compatible with the current pytorch installation"],
            &["with cuda capability sm_", "not compatible"],
            &["current pytorch install supports cuda capabilities"],
            &["tensorflow was not built with cuda kernel binaries compatible with compute capability"],
            &["mismatch gpu architecture"],
            &["compute capability", "not supported"],
            &["only supports ampere gpus or newer"],
            &["requires device with capability"],
            &["is not defined for option 'gpu-name'"],
            &["bfloat16 is only supported on gpus with compute capability"],
            &["no longer supports this gpu"],
            &["not compiled with any cuda arch"],
            &["ignoring visible gpu device"],
            &["status_arch_mismatch"],
            &["arch_mismatch", "cublas"],
            &["gpu is too old"],
        ],
        pairs: &[
            (
                &[
                    "gpu architecture",
                    "compute capability",
                    "cuda capability",
                    "cuda arch",
                    "sm_1",
                    "sm_3",
                    "sm_5",
                    "sm_6",
                    "sm_7",
                    "sm_8",
                    "sm_9",
                ],
                &[
                    "not supported",
                    "unsupported",
                    "too old",
                    "too low",
                    "mismatch",
                    "no device code",
                    "not compiled",
                    "incompatible",
                    "not compatible",
                    "minimum required",
                    "no longer support",
                    "is not defined",
                    "is required",
                ],
            ),
            (&["compiled for", "compiled with"], &["but your current gpu", "but the current gpu"]),
        ],
        unless: &["nvcc fatal"],
        after: Some("cuda capability "),
        causes: &[
            high("framework-lacks-gpu-arch", "The build says that it has no code for this GPU."),
            medium("extension-lacks-gpu-arch", "Or a part of it, such as an extension, has none."),
            low("gpu-generation-dropped", "Builds for newer CUDA leave out old generations."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NCCL",
        tells: &[
            &["nccl", "unhandled system error"],
            &["nccl error", "system error"],
            &["nccl warn", "call to posix_fallocate failed"],
            &["ncclsystemerror"],
        ],
        causes: &[
            medium("shm-too-small", "In a container NCCL mostly lacks shared memory: /dev/shm has 64 MiB."),
            medium("not-a-gpu-problem", "Or the network between the processes fails: NCCL_DEBUG=INFO says which."),
            low("fabric-not-ready", "Or, on machines with NVSwitches, the fabric."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NCCL: CUDA error",
        tells: &[&["nccl", "unhandled cuda error"], &["ncclunhandledcudaerror"]],
        causes: &[
            medium("not-a-gpu-problem", "NCCL passes on an error of CUDA; NCCL_DEBUG=INFO names it."),
            medium("framework-cuda-newer-than-driver", "It may be that the driver is too old for this NCCL."),
            low("shm-too-small", "Or shared memory is short."),
            low("fabric-not-ready", "Or, on machines with NVSwitches, the fabric is not ready."),
        ],
        ..Text::PLAIN
    },
];
