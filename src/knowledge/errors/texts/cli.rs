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
    Text {
        name: "nvidia-container-cli: a driver's file is in the image already",
        tells: &[&["file creation failed", "file exists"], &["mount error", "file exists"]],
        unless: &["/run/"],
        after: Some("/merged/"),
        causes: &[
            high("driver-libs-in-image", "The image has a file of the driver where the toolkit puts the host's."),
            medium(
                "zero-byte-driver-files-in-image",
                "The image may have been committed from a container with a GPU: empty files stay.",
            ),
            low("user-mount-covers-run", "A mount of yours may have brought it."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli cannot create its files below /run",
        tells: &[
            &["file creation failed", "/run/"],
            &["file creation failed", "no such device or address"],
            &["file creation failed", "read-only file system"],
            &["mount operation failed", "/run/nvidia-persistenced"],
        ],
        causes: &[
            high(
                "user-mount-covers-run",
                "A mount of yours covers the place where the toolkit puts sockets of the driver.",
            ),
            low("driver-libs-in-image", "The image may have something else at that path."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: no nvidia-modeset",
        tells: &[&["stat failed: /dev/nvidia-modeset"], &["/dev/nvidia-modeset", "no such file"]],
        causes: &[
            high(
                "modeset-node-missing",
                "The capability display (or all) wants /dev/nvidia-modeset, and the host has none.",
            ),
            low("device-nodes-not-created-yet", "Nothing may have made the nodes since boot."),
            low("driver-not-loaded", "Without the driver there are no nodes at all."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a tool finds no nvidia-uvm node",
        tells: &[
            &["stat failed: /dev/nvidia-uvm"],
            &["/dev/nvidia-uvm", "no such file"],
            &["failed to open", "/dev/nvidia-uvm"],
            &["/dev/nvidia-uvm: no such"],
        ],
        causes: &[
            high("uvm-module-not-loaded", "Without the module nvidia_uvm there is no such node."),
            high("uvm-node-missing", "The node was not given to the container."),
            medium("device-nodes-not-created-yet", "The module may be loaded and its node not made yet."),
            low("cdi-spec-lacks-uvm", "A CDI specification made before nvidia_uvm was loaded does not name it."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a GPU's directory in /proc is not there",
        tells: &[&["/proc/driver/nvidia/gpus/", "no such file"], &["stat failed: /proc/driver/nvidia/gpus/"]],
        causes: &[
            high(
                "nested-privileged-device-mismatch",
                "In a container in a container /dev shows more GPUs than /proc/driver/nvidia/gpus.",
            ),
            medium(
                "restart-runtime-after-driver-swap",
                "After the driver was exchanged old paths may still be in use.",
            ),
            low("gpu-fallen-off-bus", "The GPU may be gone from the bus."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli: MIG capabilities",
        tells: &[
            &["/proc/driver/nvidia/capabilities", "no such file"],
            &["mig-config error"],
            &["mig-monitor error"],
            &["/dev/nvidia-caps", "no such file"],
            &["nvidia-cap", "stat failed"],
        ],
        causes: &[
            high(
                "mig-caps-nodes-missing",
                "The nodes below /dev/nvidia-caps, which stand for MIG instances, are absent.",
            ),
            medium("mig-enabled-without-instances", "MIG may be on and no instance made."),
            low("device-nodes-not-created-yet", "Nothing may have made them since boot."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli cannot cover /proc/driver/nvidia",
        tells: &[
            &["mount operation failed: /proc/driver/nvidia"],
            &["mount error", "/proc/driver/nvidia/params"],
            &["mount error", "/proc/driver/nvidia/version"],
        ],
        causes: &[
            high("restart-runtime-after-driver-swap", "The driver was exchanged or reloaded while the engine ran."),
            medium("driver-not-loaded", "The driver may be unloaded right now."),
            low("nested-privileged-device-mismatch", "In a container in a container this place may not be mounted on."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli cannot change the device cgroup",
        tells: &[
            &["failed to add device rules"],
            &["bpf_prog_query"],
            &["bpf_prog_attach"],
            &["bpf_cgroup_device"],
            &["devices.allow: operation not permitted"],
            &["devices.allow: permission denied"],
        ],
        unless: &["device filter program"],
        causes: &[
            high(
                "no-cgroups-needed-in-lxc",
                "In an unprivileged LXC container, or with a rootless engine, nobody may change device rules: the toolkit must be told not to.",
            ),
            medium("toolkit-too-old-for-cgroup-v2", "Old versions of the toolkit do this wrongly with cgroup v2."),
            low("selinux-denies-device", "A security module may refuse BPF."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli knows only cgroup v1",
        tells: &[
            &["cgroup subsystem devices not found"],
            &["failed to get device cgroup"],
            &["no cgroup filesystem mounted"],
            &["failed to add device rules", "device filter program"],
            &["unable to create new device filters program"],
        ],
        causes: &[
            high(
                "toolkit-too-old-for-cgroup-v2",
                "The host has cgroup v2, and libnvidia-container before 1.8 knows only v1.",
            ),
            medium("no-cgroups-needed-in-lxc", "In LXC the devices controller may be absent: no-cgroups = true."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the loader's cache could not be written",
        tells: &[
            &["ldcache error"],
            &["/sbin/ldconfig", "failed with error code"],
            &["/sbin/ldconfig", "terminated with signal"],
            &["update-ldcache", "error"],
            &["ldconfig.real", "failed"],
            &["nvc_ldcache.c", "could not start"],
            &["could not start /sbin/ldconfig"],
            &["could not start /usr/sbin/ldconfig"],
        ],
        causes: &[
            high("ldcache-not-updated", "The toolkit runs ldconfig for the container, and it failed."),
            medium("driver-libs-in-image", "Files of a driver in the image may break it."),
            low("musl-image", "An image with musl has no ldconfig of this kind."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the NVIDIA hook was called directly",
        tells: &[&["invoking the nvidia container runtime hook directly"]],
        causes: &[
            medium(
                "jetson-use-runtime",
                "On a Jetson the toolkit works by CSV files, which need --runtime nvidia, not --gpus.",
            ),
            medium(
                "toolkit-mode-conflict",
                "With mode = \"cdi\" in the toolkit's configuration docker --gpus does not work.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a variable's request is refused",
        tells: &[
            &["insufficient privileges to read device list from nvidia_visible_devices"],
            &["ignoring devices requested by environment variable"],
            &["ignoring devices specified in nvidia_visible_devices"],
        ],
        causes: &[
            high(
                "envvar-request-refused-by-policy",
                "The toolkit is set to let only privileged containers ask for GPUs by variable.",
            ),
            medium("gpu-not-requested", "The image's variable asks; the container itself did not ask for a GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a word in NVIDIA_DRIVER_CAPABILITIES that nobody knows",
        tells: &[&["unsupported capabilities found in"], &["unsupported driver capabilities"]],
        causes: &[
            medium(
                "capability-compute-missing",
                "NVIDIA_DRIVER_CAPABILITIES has a word that the toolkit does not know, so none of it counts.",
            ),
            low("require-disable-misspelt", "Look for misspelt NVIDIA_ variables."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a node's number is not the driver's",
        tells: &[&["nvidia-container-cli", "invalid device node"], &["device error: invalid device node"]],
        causes: &[
            high("node-number-mismatch", "A node in /dev has not the number that the driver registered."),
            medium("uvm-major-mismatch", "nvidia-uvm's number changes from boot to boot."),
        ],
        ..Text::PLAIN
    },
];
