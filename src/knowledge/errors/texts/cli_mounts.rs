//! What `nvidia-container-cli` and the NVIDIA runtime say while they put files, nodes and the loader's cache into a
//! container. Sources as for `cli`.

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
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
