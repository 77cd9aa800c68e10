//! What docker, containerd, podman, the kubelet, enroot and Singularity say of the stack. moby `daemon/` (2026-08);
//! the others by reports.

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "an engine that does not know --gpus",
        tells: &[&["unknown flag: --gpus"], &["unknown option", "--gpus"], &["nvidia-docker: command not found"]],
        causes: &[
            medium(
                "toolkit-not-installed",
                "The engine is too old for --gpus (docker before 19.03), or nvidia-docker is not installed.",
            ),
            medium("cdi-spec-missing", "podman takes --device nvidia.com/gpu=all in place of it."),
            low("not-a-gpu-problem", "The command may be another program."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVIDIA's hook failed, and crun says no more",
        tells: &[
            &["error executing hook", "nvidia"],
            &["error running hook", "nvidia"],
            &["98-nvidia.sh exited"],
            &["running prestart hook", "nvidia"],
        ],
        unless: &["nvidia-ctk", "nvidia-cdi-hook", "nvidia-container-cli:"],
        causes: &[
            low("nvidia-container-cli-missing", "The hook failed; its own words, if there are any, stand beside it."),
            low("driver-not-loaded", "The driver may not be loaded."),
            low("no-cgroups-needed-in-lxc", "A rootless engine needs no-cgroups = true."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a node that --device names is not there",
        tells: &[
            &["error gathering device information", "/dev/nvidia"],
            &["/dev/nvidiactl", "no such file"],
            &["/dev/nvidia0", "no such file"],
            &["stat /dev/nvidia", "no such file"],
        ],
        unless: &["/dev/nvidia-uvm", "/dev/nvidia-modeset", "cdi host device", "does not exist"],
        causes: &[
            high("device-nodes-not-created-yet", "The host has no such node: nothing has made it since boot."),
            high("driver-not-loaded", "Without the driver there are no nodes."),
            medium("gpu-not-requested", "In a container: it was started without a GPU."),
            low("passthrough-incomplete", "Nodes alone would not do: the libraries are needed too."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "docker knows no CDI driver",
        tells: &[
            &["could not select device driver \"cdi\""],
            &["could not select device driver cdi"],
            &["nvidia.com/gpu", "is not an absolute path"],
            &["error gathering device information", "nvidia.com/gpu"],
            &["stat nvidia.com/gpu"],
            &["invalid device mode", "nvidia.com/gpu"],
            &["cdi device injection failed", "not enabled"],
            &["cdi", "feature is not enabled"],
        ],
        causes: &[
            high(
                "cdi-not-enabled-in-daemon",
                "The daemon does not have CDI switched on; a rootless one has a daemon.json of its own.",
            ),
            medium("cdi-spec-missing", "It may be on, and no specification there."),
            low("toolkit-not-installed", "Without the toolkit nothing makes a specification."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "docker does not start with its configuration",
        tells: &[&["unable to configure the docker daemon with file"]],
        causes: &[
            high(
                "docker-configuration-invalid",
                "dockerd does not read its file; the rest of the line says where it stops.",
            ),
            low(
                "not-a-gpu-problem",
                "Or an option stands in the file that dockerd does not know, or is given on its command line too.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "docker has no driver for GPUs",
        tells: &[
            &["could not select device driver", "[[gpu"],
            &["could not select device driver \"\""],
            &["could not select device driver \"nvidia\""],
            &["failed to discover gpu vendor"],
            &["no known gpu vendor found"],
            &["amd cdi spec not found"],
        ],
        causes: &[
            high("toolkit-not-installed", "The daemon found no NVIDIA container toolkit when it started."),
            medium("runtime-not-registered", "It may be installed since: the daemon looks only when it starts."),
            medium("cdi-spec-missing", "From docker 29.2 on a CDI specification does as well."),
            low("docker-is-snap", "The snap of docker does not see the host's toolkit."),
            low("docker-desktop-linux", "Docker Desktop for Linux has no GPUs."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "an engine does not know the runtime nvidia",
        tells: &[
            &["unknown or invalid runtime name", "nvidia"],
            &["unknown runtime specified nvidia"],
            &["no runtime for \"nvidia\" is configured"],
            &["runtimeclass", "nvidia", "not found"],
            &["runtime handler \"nvidia\""],
            &["runtimehandler \"nvidia\""],
            &["default oci runtime \"nvidia\" not found"],
            &["requested oci runtime nvidia"],
            &["failed to find runtime handler nvidia"],
        ],
        causes: &[
            high("runtime-not-registered", "The engine's running configuration has no runtime of this name."),
            medium("toolkit-not-installed", "Perhaps because the toolkit is not installed."),
            low(
                "docker-desktop-linux",
                "The command may have reached Docker Desktop's engine, which has its own configuration.",
            ),
            low("docker-is-snap", "The snap of docker reads another daemon.json."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the runtime nvidia is configured and gone",
        tells: &[
            &["exec: \"nvidia-container-runtime\"", "not found"],
            &["nvidia-container-runtime", "executable file not found"],
            &["fork/exec", "nvidia-container-runtime", "no such file"],
            &["nvidia-container-runtime", "no such file or directory"],
            &["nvidia-container-runtime did not terminate"],
        ],
        unless: &[
            "nvidia-container-runtime-hook",
            "/var/run/nvidia-container-devices",
            "nvidia-container-runtime/config.toml",
        ],
        causes: &[
            high(
                "default-runtime-binary-missing",
                "The engine is set to use nvidia-container-runtime, and there is no such program: every container fails.",
            ),
            medium("toolkit-not-installed", "The toolkit was removed, or never installed."),
            low("docker-is-snap", "A snap does not see the host's programs."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-container-cli or the hook is not installed",
        tells: &[
            &["command not found: nvidia-container-cli"],
            &["exec: \"nvidia-container-cli\""],
            &["nvidia-container-cli: not found"],
            &["nvidia-container-cli: command not found"],
            &["nvidia-container-cli", "executable file not found"],
            &["nvidia-container-runtime-hook", "no such file"],
            &["nvidia-container-runtime-hook", "executable file not found"],
            &["nvidia-container-toolkit", "executable file not found"],
        ],
        causes: &[
            high(
                "nvidia-container-cli-missing",
                "The program that hands GPUs over is not installed, or not on the caller's PATH.",
            ),
            medium("toolkit-not-installed", "Perhaps the whole toolkit is absent."),
            low("default-runtime-binary-missing", "Or its runtime is gone with it."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the device plugin finds no NVML",
        tells: &[
            &["nvml init failed"],
            &["could not load nvml library"],
            &["did you set the docker default runtime"],
            &["error_library_not_found"],
            &["incompatible strategy detected auto"],
            &["no devices found. waiting indefinitely"],
            &["if this is a gpu node, did you configure the nvidia container toolkit"],
            &["waiting for nvidia container stack to be setup"],
            &["toolkit-validation", "fail"],
        ],
        unless: &["cdi spec"],
        causes: &[
            high(
                "runtime-not-registered",
                "The plugin's pod runs without the NVIDIA runtime, so it has no driver library: the kubelet's engine knows no such runtime, or the pod names no runtimeClassName.",
            ),
            medium("driver-library-missing", "The node may have no driver."),
            medium("toolkit-not-installed", "The toolkit may not be installed on the node."),
            low("driver-not-loaded", "The driver may not be loaded."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the scheduler finds no free GPU",
        tells: &[
            &["insufficient nvidia.com/gpu"],
            &["unexpectedadmissionerror", "nvidia.com"],
            &["no healthy devices present", "nvidia"],
            &["allocate failed due to", "nvidia.com/gpu"],
            &["unhealthy devices nvidia.com/gpu"],
        ],
        causes: &[
            medium(
                "runtime-not-registered",
                "If kubectl describe node shows no nvidia.com/gpu, the device plugin does not see the GPUs.",
            ),
            medium("not-a-gpu-problem", "If it does, all are taken, or a taint or a selector keeps the pod away."),
            medium("driver-not-loaded", "The node's driver may not be loaded."),
            low("one-gpu-unhealthy", "The plugin takes a GPU with an Xid out of service."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a module is not loaded, says enroot",
        tells: &[
            &["kernel module nvidia_uvm is not loaded"],
            &["nvidia_uvm is not loaded"],
            &["nvidia-uvm module is not loaded"],
        ],
        causes: &[
            high("uvm-module-not-loaded", "nvidia_uvm is not loaded, and nothing without root can load it."),
            medium("device-nodes-not-created-yet", "Since boot nothing has loaded modules and made nodes."),
            low("uvm-node-missing", "The node comes with the module."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "enroot's or Singularity's NVIDIA part found nothing",
        tells: &[
            &["could not find any nv files on this host"],
            &["could not find any nv libraries"],
            &["could not find any nv binaries"],
        ],
        causes: &[
            high("driver-library-missing", "No libraries of a driver lie where --nv looks."),
            medium("driver-not-loaded", "The machine may have no driver at all."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "--gpus takes a number or names, not both",
        tells: &[
            &["cannot set both count and deviceids"],
            &["invalid argument", "for \"--gpus\""],
            &["conflicting options", "--gpus"],
        ],
        causes: &[
            high(
                "gpus-flag-is-a-count",
                "--gpus 2 means two GPUs, --gpus device=2 the one of that number, and lists need inner quotes.",
            ),
            low("visible-devices-index-out-of-range", "The number may also be one that the machine does not have."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a container in LXC and AppArmor",
        tells: &[
            &["unable to apply apparmor profile"],
            &["apparmor failed to apply profile"],
            &["/proc/self/attr/apparmor/exec"],
            &["apparmor_parser", "access denied"],
        ],
        causes: &[
            high("not-a-gpu-problem", "AppArmor refuses to start any container here; no GPU has a part in it."),
            high(
                "apparmor-in-lxc",
                "It is known of containers inside LXC, whose AppArmor the inner engine may not use.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a program for another processor",
        tells: &[
            &["exec format error"],
            &["image's platform", "does not match the detected host platform"],
            &["no matching manifest for linux/"],
        ],
        unless: &["could not insert", "insmod", "modprobe"],
        causes: &[
            high("image-arch-mismatch", "The image's programs are for another processor (amd64 or arm64)."),
            medium("not-a-gpu-problem", "An entry script without its first line #! says the same."),
            low("jetson-sbsa-image", "On arm64 there are two kinds of images, for servers and for Jetson."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "AVC denial",
        tells: &[
            &["avc: denied", "nvidia"],
            &["xserver_misc_device_t"],
            &["container_t", "chr_file"],
            &["container_use_devices"],
            &["selinux is preventing", "nvidia"],
        ],
        causes: &[
            high("selinux-denies-device", "SELinux says itself that it refused."),
            low("node-access-refused", "The node's mode may refuse as well."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "programs work as root only",
        tells: &[
            &["work as root", "normal user"],
            &["works as root", "fails as"],
            &["works with sudo"],
            &["works only as root"],
            &["only works as root"],
        ],
        causes: &[
            high(
                "node-access-refused",
                "As root the driver's helper makes missing nodes and every mode is good enough; a user is refused.",
            ),
            high(
                "uvm-major-mismatch",
                "As root the helper makes /dev/nvidia-uvm anew with the right number; a user meets the stale one.",
            ),
            medium("device-file-mode-bad", "The nodes may have a mode that makes no sense."),
            low("device-nodes-not-created-yet", "A user may not make nodes."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "shared memory is full",
        tells: &[
            &["creating shared memory segment", "/dev/shm/nccl"],
            &["error while creating shared memory segment"],
            &["insufficient shared memory (shm)"],
            &["unable to write to file </torch_"],
            &["dataloader worker", "bus error"],
            &["/dev/shm", "no space left on device"],
            &["unexpected bus error encountered in worker"],
            &["shared memory", "increase", "--shm-size"],
            &["raise your shared memory limit"],
        ],
        pairs: &[(
            &["/dev/shm", "shared memory", "\u{5171}\u{4eab}\u{5185}\u{5b58}", " shm"],
            &[
                "no space left on device",
                "too small",
                "insufficient",
                "--shm-size",
                "not enough",
                "\u{4e0d}\u{8db3}",
                "\u{8fc7}\u{5c0f}",
                "\u{592a}\u{5c0f}",
            ],
        )],
        unless: &["postgres", "shared memory segment \"/", "out of resource", "gpu memory"],
        causes: &[
            high("shm-too-small", "The container has docker's usual 64 MiB of /dev/shm."),
            low("gpu-memory-occupied", "A full GPU ends workers too, with another message before."),
        ],
        ..Text::PLAIN
    },
];
