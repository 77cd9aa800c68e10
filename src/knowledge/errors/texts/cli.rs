//! What `nvidia-container-cli` and the NVIDIA runtime say. libnvidia-container `src/` (single files of several
//! releases), nvidia-container-toolkit (2026-08), and reports.

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "the driver service of an old nvidia-container-cli finds no libnvidia-ml",
        tells: &[&["could not start driver service", "load library failed"]],
        causes: &[
            high(
                "jetson-wrong-toolkit-build",
                "On a Jetson there was no NVML, and only JetPack's own build of this tool does without it.",
            ),
            medium(
                "driver-library-missing",
                "On any other machine no libnvidia-ml lies where the loader looks: no driver, or in another place.",
            ),
            low("docker-is-snap", "An engine from a snap does not see the host's libraries."),
            low("docker-desktop-linux", "An engine in a virtual machine does not see the host's libraries."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli finds no libnvidia-ml",
        tells: &[
            &["load library failed", "libnvidia-ml.so.1"],
            &["nvidia-container-cli", "libnvidia-ml.so.1", "cannot open shared object"],
            &["load library failed", "libcuda.so.1"],
            &["load library failed", "libdxcore.so"],
        ],
        unless: &["could not start driver service"],
        causes: &[
            medium(
                "docker-desktop-linux",
                "If nvidia-smi works on the host, the engine may run in Docker Desktop's virtual machine, where there is no driver.",
            ),
            medium(
                "docker-is-snap",
                "If nvidia-smi works on the host, the engine may be the snap, which does not see the host's libraries.",
            ),
            medium(
                "driver-library-missing",
                "If nvidia-smi fails on the host too, the driver's libraries are not installed, or not where the loader looks.",
            ),
            low(
                "jetson-wrong-toolkit-build",
                "On an older Jetson there is no NVML, and NVIDIA's general build of the tool wants it.",
            ),
            low(
                "wsl-toolkit-too-old-for-driver",
                "Under WSL the libraries lie in /usr/lib/wsl, which an old toolkit does not look at.",
            ),
            low("runtime-not-registered", "nvidia-container-runtime may point at another driver root than the host's."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: driver not loaded",
        tells: &[&["nvml error", "driver not loaded"], &["initialization error", "driver not loaded"]],
        causes: &[
            high("driver-not-loaded", "The kernel module is not loaded, says NVML."),
            medium(
                "driver-module-missing-for-kernel",
                "After an update of the kernel there may be no module for the one that runs.",
            ),
            low("secure-boot-module-rejected", "Secure Boot may refuse the module."),
            low("nouveau-loaded", "nouveau may hold the GPU."),
            low("device-nodes-not-created-yet", "The module may be there and its nodes not, so early after boot."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: failed to process request",
        tells: &[&["driver error: failed to process request"], &["initialization error", "failed to process request"]],
        causes: &[
            medium(
                "driver-module-missing-for-kernel",
                "The driver does not answer; most often a new kernel has no module for it.",
            ),
            medium("driver-not-loaded", "The module may be there and not loaded."),
            low("driver-library-mismatch", "Module and libraries may differ since an update."),
            low("jetson-wrong-toolkit-build", "On a Jetson only JetPack's own build of this tool works."),
            low("wsl-toolkit-too-old-for-driver", "Under WSL an old tool does not find the driver's files."),
            low("nouveau-loaded", "nouveau may hold the GPU."),
            low("gpu-fallen-off-bus", "A GPU may be gone from the bus."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: timed out",
        tells: &[
            &["driver rpc error", "timed out"],
            &["nvidia-container-cli", "driver error: timed out"],
            &["nvidia-container-cli", "rpc error: timed out"],
            &["nvidia-container-cli", "context deadline exceeded"],
        ],
        causes: &[
            high("driver-call-hung", "The driver did not answer in time."),
            medium("persistence-off", "Without persistence mode many GPUs take long to start at the first call."),
            low("gpu-fallen-off-bus", "A GPU that is gone lets calls hang."),
            low("process-stuck-in-driver", "A process stuck in the driver holds its locks."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: cuda error",
        tells: &[&["nvidia-container-cli", "cuda error: unknown error"], &["initialization error: cuda error"]],
        unless: &["invalid device ordinal"],
        causes: &[
            medium("uvm-module-not-loaded", "CUDA does not start on the host; most often nvidia_uvm is not loaded."),
            medium("one-gpu-unhealthy", "Or one GPU does not answer: the tool asks all of them."),
            medium("uvm-broken-after-resume", "After a suspend nvidia_uvm is loaded and broken."),
            low("uvm-hmm-open-module", "The open module's HMM fails on some kernels."),
            low("driver-call-hung", "The GPU may hang."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: invalid device ordinal",
        tells: &[&["nvidia-container-cli", "invalid device ordinal"], &["detection error: cuda error"]],
        causes: &[
            medium(
                "mig-enabled-without-instances",
                "An old tool counts GPUs by CUDA, which does not count one with MIG on and no instance.",
            ),
            medium("one-gpu-unhealthy", "Or a GPU is listed and does not start."),
            low("visible-devices-index-out-of-range", "Or a number was asked for that is not here."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: a file of the driver is gone",
        tells: &[
            &["mount error: open failed: /usr/lib", "no such file"],
            &["mount error: stat failed: /usr/lib", "no such file"],
            &["mount error: open failed: /lib", "no such file"],
            &["mount error: stat failed: /lib", "no such file"],
        ],
        causes: &[
            medium(
                "restart-runtime-after-driver-swap",
                "The driver was exchanged, and the tool still goes by the old files.",
            ),
            medium(
                "ldcache-not-updated",
                "The host's loader cache names files that are gone: run ldconfig on the host.",
            ),
            low("driver-library-missing", "The driver may be half removed."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: insufficient permissions",
        tells: &[&["nvml error", "insufficient permissions"]],
        causes: &[
            medium(
                "cli-user-not-in-video-group",
                "Where the nodes are 0660 root:video, as on SUSE, the tool's user must be in that group.",
            ),
            medium("selinux-denies-device", "SELinux may keep the tool from the nodes."),
            low("device-file-mode-bad", "The nodes may have a mode that makes no sense."),
            low("rootless-group-not-kept", "A rootless engine does not carry the group over."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli stops at a GPU",
        tells: &[
            &["detection error", "nvml error", "unknown error"],
            &["detection error", "nvml error", "gpu is lost"],
            &["detection error", "nvml error", "not found"],
            &["nvidia-container-cli", "nvml error: gpu is lost"],
        ],
        causes: &[
            high("one-gpu-unhealthy", "The tool asks all GPUs before it picks one, and one of them does not answer."),
            medium("gpu-fallen-off-bus", "That one may be gone from the bus."),
            medium("gpu-reset-required", "That one may ask for a reset."),
            low("no-cgroups-needed-in-lxc", "In LXC a GPU's node may be listed and not usable."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: unsatisfied condition",
        tells: &[&["unsatisfied condition"], &["requirements not met"]],
        after: Some("unsatisfied condition: "),
        causes: &[
            high(
                "require-cuda-unsatisfied",
                "The image's NVIDIA_REQUIRE_* does not hold for this driver; \"{found}\" is only one of the alternatives, and usually not the nearest.",
            ),
            medium(
                "framework-cuda-newer-than-driver",
                "Whether what the image runs needs that much is another question: look at the image.",
            ),
            low(
                "require-disable-misspelt",
                "NVIDIA_DISABLE_REQUIRE=true switches the test off; a misspelt one does nothing.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: a requirement that is no expression",
        tells: &[
            &["requirement error", "invalid expression"],
            &["failed to get version: invalid cuda version"],
            &["too many requirements"],
        ],
        causes: &[
            high("require-cuda-unsatisfied", "An NVIDIA_REQUIRE_* or CUDA_VERSION of the image cannot be read."),
            low("require-disable-misspelt", "NVIDIA_DISABLE_REQUIRE=true would switch the test off."),
        ],
        ..Text::PLAIN
    },
];
