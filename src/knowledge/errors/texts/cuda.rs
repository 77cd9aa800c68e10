//! CUDA's own errors, by number, name or text, whoever prints them. Strings of libcudart 13.5 (2026-11); causes by
//! reports, among others pytorch#49081, nvidia-docker#1515, vllm, ollama and llama.cpp.

use crate::knowledge::errors::Code::Cuda;
use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "CUDA unknown error, as PyTorch has it",
        tells: &[
            &["cuda unknown error - this may be due to"],
            &["cuda unknown error"],
            &["incorrectly set up environment"],
        ],
        causes: &[
            medium(
                "uvm-broken-after-resume",
                "If it worked before the machine slept: nvidia_uvm is broken since. On the host it fails as well, and nvidia-smi works.",
            ),
            medium(
                "uvm-module-not-loaded",
                "If it fails since a boot: the module nvidia_uvm is not loaded, and CUDA cannot start.",
            ),
            medium(
                "uvm-major-mismatch",
                "If it fails in containers only: /dev/nvidia-uvm in it has the number of an earlier boot.",
            ),
            medium("uvm-node-missing", "Or the container was not given /dev/nvidia-uvm."),
            medium(
                "cdi-spec-lacks-uvm",
                "Or its CDI specification was made before the module was loaded, and does not name the node.",
            ),
            low("uvm-hmm-open-module", "The open module's HMM fails on some kernels of Enterprise Linux."),
            low("node-access-refused", "Or the container's user may not open the node."),
            low(
                "cuda-visible-devices-bad-form",
                "What the message itself suggests is rare: CUDA_VISIBLE_DEVICES with a value that CUDA cannot read.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 999: unknown error",
        tells: &[
            &["failed to initialize cuda: unknown error"],
            &["cuda error: unknown error"],
            &["cuda_init", "unknown error"],
            &["cuinit", "unknown error"],
            &["cudagetdevicecount", "unknown error"],
            &["unable to init gpu: unknown error"],
            &["error 999"],
        ],
        codes: &[Cuda(999)],
        unless: &["cuda unknown error", "nvidia-container-cli", "unknown error (-", "unknown error (3"],
        causes: &[
            medium("uvm-module-not-loaded", "CUDA cannot start; most often nvidia_uvm is not loaded on the host."),
            medium("uvm-node-missing", "Or the container was not given /dev/nvidia-uvm."),
            medium("uvm-major-mismatch", "Or that node has the number of an earlier boot."),
            medium("uvm-broken-after-resume", "Or nvidia_uvm is broken since the machine slept."),
            low("cdi-spec-lacks-uvm", "Or the CDI specification does not name the node."),
            low("uvm-hmm-open-module", "Or the open module's HMM fails on this kernel."),
            low("node-access-refused", "Or the container's user may not open a node."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 100: no device",
        tells: &[&["no cuda-capable device is detected"], &["no cuda-capable device"], &["no cuda capable device"]],
        codes: &[Cuda(100)],
        unless: &["failed call to cuinit"],
        causes: &[
            medium(
                "cuda-visible-devices-out-of-range",
                "libcuda is there and sees no GPU: CUDA_VISIBLE_DEVICES may name a number that the container does not have.",
            ),
            medium(
                "gpu-not-requested",
                "A libcuda of the image may be the one that answers, in a container without a GPU.",
            ),
            medium("compat-dropped-gpu-generation", "A compat libcuda in use may no longer know this old GPU."),
            low("cuda-visible-devices-empty", "CUDA_VISIBLE_DEVICES may be empty or -1, which hides all GPUs."),
            low("gpu-node-missing", "Or no GPU's node was given."),
            low("mig-enabled-without-instances", "Or MIG is on and no instance made."),
            low("cdi-spec-lacks-uvm", "Or nvidia-uvm is lacking in the CDI specification."),
            low("gpu-generation-dropped", "Or the driver does not support this GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 101: invalid device",
        tells: &[
            &["invalid device ordinal"],
            &["invalid device id"],
            &["invalid cuda 'device="],
            &["device_id", "out of range"],
        ],
        codes: &[Cuda(101)],
        unless: &["nvidia-container-cli", "mig-"],
        causes: &[
            high(
                "cuda-visible-devices-out-of-range",
                "The program asks for a GPU by a number that this container does not have; in it they count from 0.",
            ),
            medium("program-uses-host-index", "A script may use the host's numbers."),
            medium("visible-devices-index-out-of-range", "Or fewer GPUs were given than the program expects."),
            medium("gpu-not-requested", "Or none at all: the container was started without a GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 35: insufficient driver",
        tells: &[
            &["driver version is insufficient for cuda runtime"],
            &["cuda driver version is insufficient"],
            &["insufficient driver:"],
        ],
        codes: &[Cuda(35)],
        causes: &[
            high(
                "framework-cuda-newer-than-driver",
                "The program's CUDA is of a newer major version than the driver offers.",
            ),
            medium(
                "gpu-not-requested",
                "CUDA says the same where there is no libcuda at all: a container without a GPU.",
            ),
            medium("capability-compute-missing", "Or with a GPU, and without the capability compute."),
            medium("cuda-newer-than-driver", "The image's CUDA as a whole may be too new."),
            low("compat-older-than-driver-wins", "Or an old libcuda of the image is the one in use."),
            low("compat-not-enabled-by-toolkit", "Or the compat libraries that would help are not used."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 804: forward compatibility",
        tells: &[
            &["forward compatibility was attempted on non supported hw"],
            &["forward compatibility", "non supported"],
        ],
        codes: &[Cuda(804)],
        causes: &[
            high(
                "compat-on-unsupported-gpu",
                "A compat libcuda of the image is in use, and this GPU (GeForce, or an old or consumer card) does not allow it.",
            ),
            medium(
                "driver-library-mismatch",
                "After an update without a reboot the libcuda of the new driver looks like one.",
            ),
            medium("driver-libs-in-image", "So does a libcuda that is baked into the image."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 803: driver combination",
        tells: &[&["unsupported display driver / cuda driver combination"], &["unsupported display driver"]],
        codes: &[Cuda(803)],
        causes: &[
            high(
                "compat-older-than-driver-wins",
                "The libcuda in use is older than the kernel's driver: mostly the image's compat directory comes first.",
            ),
            medium("driver-library-mismatch", "If it fails on the host too: an update without a reboot."),
            medium("driver-libs-in-image", "Or a libcuda is baked into the image."),
            low("cdi-spec-stale", "Or a CDI specification brings in an earlier driver's."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 802: system not ready",
        tells: &[&["system not yet initialized"], &["system not ready"]],
        codes: &[Cuda(802), Cuda(919)],
        causes: &[
            high(
                "fabric-not-ready",
                "On a machine with NVSwitches the Fabric Manager is not done: not running, of another version, or in an error.",
            ),
            low("mig-enabled-without-instances", "Rarely: the GPU's partitioning is not done."),
            low("gpu-reset-required", "Or the GPUs need a reset after a fault of a link."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 46: busy",
        tells: &[&["cuda-capable device(s) is/are busy"], &["cuda-capable devices are busy"], &["busy or unavailable"]],
        codes: &[Cuda(46), Cuda(216)],
        causes: &[
            medium(
                "gpu-exclusive-busy",
                "The GPU is in exclusive mode and another process has it, or in prohibited mode.",
            ),
            medium("vgpu-unlicensed", "On a vGPU: it has no licence, and refuses contexts."),
            medium("mig-enabled-without-instances", "With MIG on and no instance there is nothing to use."),
            low("gpu-reset-required", "After a fault the GPU may refuse until it is reset."),
            low("gpu-memory-without-process", "A process that is gone may still hold it."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 102: licence",
        tells: &[
            &["valid grid license"],
            &["vgpu", "unlicensed"],
            &["vgpu", "license", "fail"],
            &["nvidia-gridd", "failed to acquire"],
        ],
        codes: &[Cuda(102)],
        causes: &[
            high("vgpu-unlicensed", "The vGPU has no licence."),
            low("gpu-failed-to-initialise", "Or it did not start for another reason."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 209: no kernel image",
        tells: &[&["no kernel image is available"], &["no binary for gpu"]],
        codes: &[Cuda(209)],
        causes: &[
            high("framework-lacks-gpu-arch", "The build has no code for this GPU: it is too new for it, or too old."),
            medium(
                "extension-lacks-gpu-arch",
                "If the framework itself works: an extension was compiled for other GPUs, as happens in builds without one.",
            ),
            low("ptx-newer-than-driver", "Or it has only PTX, which this driver is too old for."),
            low("gpu-generation-dropped", "Or this CUDA no longer supports the GPU's generation."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 222: PTX toolchain",
        tells: &[
            &["compiled with an unsupported toolchain"],
            &["unsupported ptx version"],
            &["unsupported .version"],
            &["ptxas", "unsupported .version"],
        ],
        codes: &[Cuda(222)],
        causes: &[
            high(
                "ptx-newer-than-driver",
                "Code of a newer CUDA starts on this driver, but PTX in it needs a driver as new as itself.",
            ),
            medium(
                "compat-not-enabled-by-toolkit",
                "If it worked with an older toolkit: since 1.17.4 the image's compat libraries are no longer used by default.",
            ),
            medium("framework-lacks-gpu-arch", "PTX is only used because there is no ready code for this GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 218: PTX does not compile",
        tells: &[&["ptx jit compilation failed"], &["ptx jit compilation was disabled"]],
        codes: &[Cuda(218), Cuda(223)],
        causes: &[
            medium("ptx-newer-than-driver", "The driver cannot compile this PTX."),
            medium("framework-lacks-gpu-arch", "It is only tried because there is no ready code for this GPU."),
            low("injection-variables-set", "CUDA_DISABLE_PTX_JIT may forbid it."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 200 and 227: device code that the driver cannot read",
        tells: &[
            &["device kernel image is invalid"],
            &["loader version is insufficient for fatbin"],
            &["failed to load fatbin"],
        ],
        codes: &[Cuda(200), Cuda(227)],
        causes: &[
            high(
                "fatbin-needs-newer-driver",
                "The device code is packed in a way that this driver is too old for (zstd: before 550.54.14).",
            ),
            medium("framework-lacks-gpu-arch", "Or it is for other GPUs."),
            low("framework-cuda-newer-than-driver", "Or the driver is too old altogether."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 36: call needs a newer driver",
        tells: &[&["api call is not supported in the installed cuda driver"]],
        codes: &[Cuda(36)],
        causes: &[
            high(
                "minor-version-compat",
                "The program runs by minor-version compatibility, and uses something that only a newer driver has.",
            ),
            medium("cuda-newer-than-driver", "A driver as new as its CUDA has it."),
            low("compat-not-enabled-by-toolkit", "So would the compat libraries, on data centre GPUs."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 3: not initialised",
        tells: &[
            &["cuda driver initialization failed"],
            &["cuda error: initialization error"],
            &["cannot re-initialize cuda in forked subprocess"],
        ],
        codes: &[Cuda(3)],
        causes: &[
            medium(
                "uvm-hmm-open-module",
                "If cuInit itself fails with 3 on the host: the open module's HMM, on some kernels of Enterprise Linux.",
            ),
            medium("not-a-gpu-problem", "If a child process says it: CUDA does not survive fork; use spawn."),
            medium("uvm-node-missing", "Or /dev/nvidia-uvm is not there."),
            low("uvm-broken-after-resume", "Or nvidia_uvm is broken since the machine slept."),
            low("node-access-refused", "Or a node may not be opened."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 304: operating system",
        tells: &[&["os call failed or operation not supported on this os"], &["os call failed"]],
        codes: &[Cuda(304)],
        causes: &[
            medium("node-access-refused", "The system refuses a node: mode, cgroup or security module."),
            medium("selinux-denies-device", "Perhaps SELinux."),
            medium("uvm-major-mismatch", "Or a node has a number that nobody answers to."),
            low("fabric-not-ready", "On machines with NVSwitches: the IMEX or fabric service."),
        ],
        ..Text::PLAIN
    },
];
