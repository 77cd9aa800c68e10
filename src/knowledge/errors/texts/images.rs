//! What the loader, `ldconfig` and the entry points of NVIDIA's images say of an image's libraries, by reports.

use super::ABSENT;
use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "NGC's note on shared memory",
        tells: &[&["the shmem allocation limit is set to the default"]],
        causes: &[
            medium("shm-too-small", "The container has 64 MiB of /dev/shm, which several GPUs or many workers exceed."),
            low("benign", "With one GPU and few workers it is enough."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a driver's file in the image is empty",
        tells: &[
            &["libcuda", "is empty, not checked"],
            &["libnvidia", "is empty, not checked"],
            &["libcuda", "file too short"],
            &["libnvidia", "file too short"],
            &["libnvcuvid", "file too short"],
        ],
        causes: &[
            high(
                "zero-byte-driver-files-in-image",
                "The image was committed from a container with a GPU: the mounted files stayed behind, empty.",
            ),
            medium("driver-libs-in-image", "Or files of a driver are damaged."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "no libcuda",
        tells: &[
            &["libcuda.so.1: cannot open shared object"],
            &["libcuda.so: cannot open shared object"],
            &["could not load dynamic library 'libcuda.so.1'"],
            &["could not load library libcuda"],
            &["unable to load libcuda"],
            &["failed to load cuda driver"],
            &["libcuda.so", "cannot be found"],
            &["unable to find libcuda.so dso"],
            &["unable to find libcuda"],
            &["could not find libcuda"],
            &["no module", "libcuda"],
            &["cuda driver library cannot be found"],
            &["no system cuda driver found"],
        ],
        pairs: &[(
            &["libcuda.so", "\"libcuda\"", "'libcuda'", "cuda driver library", "the \"cuda\" shared library"],
            ABSENT,
        )],
        unless: &[
            "nvidia-container-cli",
            "could not start driver service",
            "file too short",
            "init failure",
            "undefined symbol",
            "wrong elf class",
            "/usr/bin/ld:",
            "-lcuda",
            "error loading shared library",
            "is empty, not checked",
            "file exists",
            "mount",
            "stat'ing",
            "cannot stat",
            "statfs",
        ],
        causes: &[
            medium("gpu-not-requested", "If /dev has no nvidia nodes either: no GPU was asked for."),
            medium(
                "capability-compute-missing",
                "If nvidia-smi works: NVIDIA_DRIVER_CAPABILITIES lacks compute, with which libcuda comes.",
            ),
            medium("passthrough-incomplete", "If the nodes are there: --privileged or --device gives no libraries."),
            medium("build-time-no-gpu", "A build has no GPU and no libcuda."),
            low("jetson-use-runtime", "On a Jetson: the container was started without --runtime nvidia."),
            low("ldcache-not-updated", "Or it is there, and not in the loader's cache."),
            low("driver-library-missing", "Or the host has none."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "no NVENC, NVDEC or CUVID library",
        tells: &[
            &["cannot load libnvidia-encode"],
            &["libnvidia-encode.so.1", "cannot"],
            &["cannot load libnvcuvid"],
            &["libnvcuvid.so.1", "cannot"],
            &["failed loading nvcuvid"],
            &["failed loading libnvidia-encode"],
            &["libnvidia-opticalflow", "cannot"],
            &["no nvenc capable devices"],
            &["openencodesessionex failed"],
            &["nvencodeapigetmaxsupportedversion"],
            &["cuvidcreatevideoparser"],
            &["cuvidgetdecodercaps"],
        ],
        pairs: &[
            (&["libnvidia-encode", "libnvcuvid", "libnvidia-opticalflow"], ABSENT),
            (&["nvh264enc", "nvh265enc", "nvh264dec", "nvav1enc"], &["no element", "no such element", "not found"]),
            (
                &["nvdec", "nvenc", "nvcuvid"],
                &["failed to create", "failed to initialize", "not available", "no capable"],
            ),
        ],
        unless: &["libcuda.so", "file too short", "is empty, not checked"],
        causes: &[
            high(
                "capability-video-missing",
                "NVIDIA_DRIVER_CAPABILITIES lacks video, with which the codec libraries come.",
            ),
            medium("gpu-not-requested", "Or no GPU was asked for at all."),
            low(
                "driver-library-missing",
                "Or the host lacks these libraries, as with a package of the driver for servers.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "no graphics",
        tells: &[
            &["nvidia_icd.json", "no such file"],
            &["vk_error_incompatible_driver"],
            &["vkenumeratephysicaldevices", "failed"],
            &["libglx_nvidia.so", "cannot open"],
            &["libegl_nvidia.so", "cannot open"],
            &["failed to initialize egl"],
            &["eglinitialize failed"],
            &["ggml_vulkan: no devices found"],
            &["could not create egl"],
            &["llvmpipe"],
            &["libnvoptix.so", "cannot"],
            &["optix_error_library_not_found"],
            &["error_incompatible_driver"],
            &["errorincompatibledriver"],
            &["unable to find cuda device", "egl devices"],
            &["failed to open swrast"],
            &["failed to load driver: swrast"],
            &["swiftshader"],
        ],
        pairs: &[
            (&["libglx_nvidia", "libegl_nvidia", "libnvoptix", "libnvidia-glcore", "libglx.so"], ABSENT),
            (
                &["libglx_nvidia", "vulkan", "optix", " egl", "eglinitialize", "egldevice", "glx"],
                &[
                    "could not get",
                    "failed loading library",
                    "initialization failed",
                    "failed to initialize",
                    "not initialized",
                    "no compatible device",
                    "compatible device(s) not found",
                    "no devices",
                    "found no drivers",
                    "failed to create",
                ],
            ),
        ],
        unless: &["cannot stat", "stat'ing", "error mounting", "statfs", "mount error"],
        causes: &[
            high(
                "capability-graphics-missing",
                "NVIDIA_DRIVER_CAPABILITIES lacks graphics, with which GL, Vulkan and OptiX come.",
            ),
            medium("gpu-not-requested", "Or no GPU was asked for at all."),
            low("modeset-node-missing", "Or /dev/nvidia-modeset, which display work needs, is absent."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a library for another major version of CUDA",
        tells: &[
            &["libcublaslt.so.11: cannot open"],
            &["libcublas.so.11: cannot open"],
            &["libcudart.so.11", "cannot open"],
            &["libcufft.so.10: cannot open"],
            &["libcudart.so.12", "cannot open"],
            &["libcublas.so.12: cannot open"],
            &["libcudart.so.13", "cannot open"],
            &["libcublas.so.13: cannot open"],
            &["version `libcudart.so"],
            &["detected cuda version", "mismatches the version that was used to compile"],
            &["cuda version mismatch"],
            &["symbol cublas", "version libcublas"],
            &["undefined symbol: __nvjitlink"],
            &["undefined symbol: cublas"],
            &["libcusparse.so.12: undefined symbol"],
            &["not defined in file libcu"],
            &["undefined symbol", "version libcu"],
        ],
        pairs: &[(
            &["cuda", "cudnn", "cublas", "nccl"],
            &[
                "compiled with different",
                "but linked against",
                "was compiled against",
                "but source was compiled with",
                "version incompatibility",
                "different cuda versions",
                "mismatches the version",
                "versions do not match",
            ],
        )],
        unless: &[
            "could not load dynamic library",
            "libcudnn.so",
            "libcudnn_",
            "driver/library",
            "nvml",
            "kernel version",
        ],
        causes: &[
            high(
                "framework-cuda-major-mix",
                "A part of the program is built for another major version of CUDA than the libraries in the image.",
            ),
            medium("framework-cuda-library-missing", "Or the library is not in the image at all."),
            medium("ld-library-path-foreign-cuda", "Or LD_LIBRARY_PATH puts another one first."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a CUDA library is absent from the image",
        tells: &[
            &["cannot dlopen some gpu libraries"],
            &["could not load dynamic library 'libcu"],
            &["could not load dynamic library 'libnv"],
            &["cupy failed to load"],
            &["libcudnn", "cannot open shared object"],
            &["libcublas", "cannot open shared object"],
            &["libcufft", "cannot open shared object"],
            &["libcurand", "cannot open shared object"],
            &["libcusolver", "cannot open shared object"],
            &["libcusparse", "cannot open shared object"],
            &["libcudart", "cannot open shared object"],
            &["libnvrtc", "cannot open shared object"],
            &["libnccl.so", "cannot open shared object"],
            &["libnvinfer", "cannot open shared object"],
            &["libcupti", "cannot open shared object"],
            &["libnvjitlink", "cannot open shared object"],
            &["could not load library libcudnn"],
            &["unable to load any of {libcudnn"],
            &["failed to open libnvrtc"],
            &["libcudnn", "no such file"],
            &["please check your cudnn installation"],
            &["cannot find libdevice"],
            &["libdevice not found"],
            &["could not locate cudnn"],
            &["libcu", "is not found or cannot be loaded"],
            &["cannot load cudnn shared library"],
            &["failed to create cudaexecutionprovider"],
            &["required library version not found: libbitsandbytes"],
            &["could not find the bitsandbytes cuda binary"],
        ],
        pairs: &[(
            &[
                "libcudnn",
                "libcublas",
                "libcufft",
                "libcurand",
                "libcusolver",
                "libcusparse",
                "libcudart",
                "libcupti",
                "libcudss",
                "libnvrtc",
                "libnvvm",
                "libnvjitlink",
                "libnvtoolsext",
                "libnpp",
                "libnccl",
                "libdevice",
                "cudnn library",
            ],
            ABSENT,
        )],
        unless: &["libcuda.so", "tegra", "file too short", "undefined symbol", "not defined in file"],
        causes: &[
            high(
                "framework-cuda-library-missing",
                "The framework wants a library of CUDA that the image lacks, or has in another version.",
            ),
            medium("framework-cuda-major-mix", "It may be there for another major version."),
            low(
                "jetson-use-runtime",
                "On an older Jetson the libraries of CUDA come from the host, with --runtime nvidia.",
            ),
            low("ld-library-path-foreign-cuda", "Or it is there, and not on the loader's path."),
            low("gpu-not-requested", "If libcuda.so.1 is among the missing: no GPU was asked for."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the PTX compiler library is absent",
        tells: &[
            &["ptx jit compiler library not found"],
            &["libnvidia-ptxjitcompiler", "cannot"],
            &["libnvidia-nvvm", "cannot open"],
        ],
        codes: &[crate::knowledge::errors::Code::Cuda(221)],
        causes: &[
            medium("capability-compute-missing", "The library comes with the capability compute."),
            medium("driver-libs-in-image", "A libcuda of the image without its companions does that too."),
            low("compat-older-than-driver-wins", "As does an incomplete compat directory."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a linker finds no libcuda",
        tells: &[
            &["cannot find -lcuda"],
            &["cannot find -lnvidia-ml"],
            &["/usr/bin/ld", "libcuda.so"],
            &["ld: warning: libcuda.so.1"],
        ],
        causes: &[
            high("build-time-no-gpu", "A build has no driver's libcuda: link against the toolkit's stub of it."),
            low("cuda-stub-loaded", "The stub is for linking only; at run time it must not be found first."),
            low("gpu-not-requested", "In a running container: it has no GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a library that a Jetson's runtime mounts is empty",
        tells: &[
            &["aarch64-linux-gnu", "file too short"],
            &["libnvinfer", "file too short"],
            &["libcudnn", "file too short"],
            &["libcublas", "file too short"],
        ],
        causes: &[
            high(
                "jetson-use-runtime",
                "In older images for Jetson these files are empty until --runtime nvidia mounts the host's.",
            ),
            medium(
                "zero-byte-driver-files-in-image",
                "Or the image was committed from a container, and they stayed behind, empty.",
            ),
            low("jetson-l4t-mismatch", "Or the image is for another release of L4T."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the stub of libcuda is in use",
        tells: &[
            &["driver is a stub library"],
            &["stubs/libcuda.so"],
            &["you are linked against the stub"],
            &["gdk package is a stub library"],
            &["libcuda.so", "stub"],
        ],
        codes: &[crate::knowledge::errors::Code::Cuda(34)],
        causes: &[
            high("cuda-stub-loaded", "The loader takes the toolkit's stub, which is only for linking, for libcuda."),
            medium("gpu-not-requested", "Without a GPU it is the only one that there is."),
            low("ld-library-path-foreign-cuda", "LD_LIBRARY_PATH may name the stubs directory."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NGC's entry point says that there is no driver",
        tells: &[
            &["the nvidia driver was not detected"],
            &["gpu functionality will not be available"],
            &["use the nvidia container toolkit to start this container with gpu support"],
            &["use 'nvidia-docker run' to start this container"],
        ],
        unless: &["driver is present", "cuda failed to initialize"],
        causes: &[
            high(
                "gpu-not-requested",
                "The image's own entry point finds no driver: the container was started without a GPU.",
            ),
            medium("toolkit-not-installed", "Or nothing on the machine could hand one over."),
            low("driver-not-loaded", "Or the host's driver is not loaded."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NGC's entry point: CUDA does not start",
        tells: &[&["the nvidia driver is present, but cuda failed to initialize"]],
        general: true,
        causes: &[
            medium(
                "compat-older-than-driver-wins",
                "The next line has CUDA's own error: 803 is an older libcuda in use.",
            ),
            medium("compat-on-unsupported-gpu", "804 is forward compatibility on a GPU that does not allow it."),
            medium("uvm-node-missing", "Unknown error or no device: /dev/nvidia-uvm may not be there."),
            low("fabric-not-ready", "802 is an NVSwitch machine whose Fabric Manager is not done."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NGC's entry point: the driver is too old, and compat does not help",
        tells: &[
            &["compatibility mode is unavailable"],
            &["cuda driver", "compat", "unavailable"],
            &["cuda compatibility mode", "fail"],
        ],
        causes: &[
            high(
                "framework-cuda-newer-than-driver",
                "The image is built for a newer driver, and runs on this one only by compatibility.",
            ),
            medium("compat-on-unsupported-gpu", "Its compat libraries do not work on this GPU."),
            low("compat-not-enabled-by-toolkit", "Or they were not put first."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NGC's entry point on forward compatibility",
        tells: &[
            &["failed to detect cuda compatibility"],
            &["this container was built for nvidia driver release"],
            &["cuda compatibility mode is enabled"],
            &["forward compatibility mode enabled"],
        ],
        unless: &["is unavailable"],
        causes: &[
            medium(
                "compat-in-use",
                "The image's CUDA is newer than the host's driver, and its compat libraries are to help.",
            ),
            medium(
                "compat-not-enabled-by-toolkit",
                "They do so only where the toolkit or the entry point puts them first.",
            ),
            medium("framework-cuda-newer-than-driver", "Without them the driver is too old for it."),
            low("compat-on-unsupported-gpu", "On a GeForce they do not work."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "RAPIDS, Warp or Numba on the driver's version",
        tells: &[
            &["this cuda toolkit requires driver"],
            &["minimum required driver version"],
            &["cuda driver version", "is older than", "required"],
            &["numba", "cuda driver", "not supported"],
            &["requires cuda driver version"],
            &["driver too old"],
            &["driver version is too old"],
            &["\u{9a71}\u{52a8}\u{7248}\u{672c}\u{8fc7}\u{4f4e}"],
            &["\u{9a71}\u{52a8}\u{7248}\u{672c}\u{592a}\u{4f4e}"],
            &["\u{9a71}\u{52a8}\u{592a}\u{65e7}"],
            &["only supports nvidia drivers"],
            &["libcuda.so", "undefined symbol: cu"],
            &["symbol lookup for cu", "failed"],
        ],
        pairs: &[(
            &["nvidia driver", "cuda driver", "gpu driver", "graphics driver", "\u{9a71}\u{52a8}"],
            &[
                "too old",
                "outdated",
                "older than",
                "upgrade your driver",
                "update your driver",
                "newer driver",
                "\u{8fc7}\u{4f4e}",
                "\u{592a}\u{4f4e}",
                "\u{592a}\u{65e7}",
                "\u{8fc7}\u{65e7}",
                "\u{5347}\u{7ea7}",
            ],
        )],
        unless: &[
            "requirement error",
            "unsatisfied condition",
            "nvenc",
            "fabric",
            "chromedriver",
            "webdriver",
            "the minimum required nvidia driver",
        ],
        causes: &[
            high("framework-cuda-newer-than-driver", "The program says that the driver is too old for its CUDA."),
            medium("cuda-newer-than-driver", "As the image's CUDA as a whole may be."),
            low("compat-older-than-driver-wins", "An old libcuda in the image makes any driver look old."),
        ],
        ..Text::PLAIN
    },
];
