//! The kernel's log, modprobe and strace, by reports and general knowledge. Xid lines are told by their numbers.

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "the driver's open module is required",
        tells: &[
            &["requires use of the nvidia open kernel modules"],
            &["requires the nvidia open"],
            &["not supported by this", "use the nvidia open"],
            &["installed in this system requires", "open kernel"],
            &["nvrm", "open gpu kernel modules", "required"],
        ],
        causes: &[
            high("gpu-needs-open-module", "The driver says that this GPU works only with the open kernel module."),
            low("gpu-failed-to-initialise", "Until then it is on the bus and in no tool."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the driver no longer, or not yet, knows this GPU",
        tells: &[
            &["nvrm", "is not supported by the", "driver release"],
            &["supported through the nvidia", "legacy drivers"],
            &["nvrm", "legacy drivers"],
            &["is not supported by open nvrm"],
            &["is not supported by the open", "nvidia"],
            &["is not supported by open", "nvrm"],
            &["will ignore this gpu"],
            &["unsupported gpu architecture"],
        ],
        causes: &[
            high("gpu-generation-dropped", "The installed driver does not support this generation of GPU."),
            medium(
                "gpu-needs-open-module",
                "The other flavour of the module may: GPUs before Turing need the closed one, those from Blackwell on the open one.",
            ),
            low("driver-not-loaded", "With no GPU that it supports the module does not load."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a GPU does not initialise",
        tells: &[
            &["rminitadapter failed"],
            &["nvrm", "rm_init_adapter failed"],
            &["nvrm", "failed to copy vbios"],
            &["nvrm", "probe of", "failed with error"],
            &["nvrm: this pci i/o region"],
            &["bar0 is 0m @ 0x0"],
            &["bar1 is 0m @ 0x0"],
            &["gpu initialization failed"],
            &["necessary power cables connected"],
        ],
        causes: &[
            high("gpu-failed-to-initialise", "The driver could not start this GPU; the others work."),
            medium("gpu-needs-open-module", "If it is the only one: the other flavour of the module may be needed."),
            medium("gpu-fallen-off-bus", "If it worked before: it may have fallen off the bus."),
            low("one-gpu-unhealthy", "Tools that ask all GPUs stop at it."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a GPU is gone from the bus",
        tells: &[
            &["fallen off the bus"],
            &["nvrm", "gpu lost from the bus"],
            &["gpu has disappeared from the bus"],
            &["device has fallen off"],
        ],
        causes: &[
            high("gpu-fallen-off-bus", "The driver lost the GPU on PCIe."),
            medium("one-gpu-unhealthy", "The others may still work, but tools that ask all of them stop at this one."),
            low("gpu-reset-required", "Now and then a reset brings it back; mostly only power off and on."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the kernel rejects the module's signature",
        tells: &[
            &["key was rejected by service"],
            &["required key not available", "nvidia"],
            &["loading of unsigned module is rejected"],
            &["loading of module with unavailable key is rejected"],
            &["lockdown", "unsigned module loading"],
            &["pkcs#7 signature", "not signed with a trusted key"],
        ],
        causes: &[
            high(
                "secure-boot-module-rejected",
                "Secure Boot is on, and the module is not signed with a key that this machine trusts.",
            ),
            low(
                "driver-module-missing-for-kernel",
                "A signed module of the distribution may be lacking for this kernel.",
            ),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "there is no module for this kernel",
        tells: &[
            &["module nvidia not found in directory"],
            &["fatal: module nvidia not found"],
            &["could not insert 'nvidia", "exec format error"],
            &["nvidia", "disagrees about version of symbol"],
            &["nvidia", "version magic", "should be"],
            &["bad return status for module build", "nvidia"],
            &["dkms", "nvidia", "build", "fail"],
            &["module not found: 'nvidia"],
            &["could not find module by name='nvidia"],
            &["kernel headers", "cannot be found", "nvidia"],
            &["unable to find the kernel source tree"],
            &["unable to find the development tool", "nvidia"],
            &["unable to build the nvidia kernel module"],
            &["nvidia.ko", "gpl-incompatible"],
            &["nvidia", "gpl-only symbol"],
        ],
        causes: &[
            high(
                "driver-module-missing-for-kernel",
                "For the kernel that runs there is no nvidia module, or it was built for another.",
            ),
            medium("driver-not-loaded", "So the driver is not loaded."),
            low("secure-boot-module-rejected", "Where modules must be signed, building one is not enough."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "another driver has the GPU",
        tells: &[
            &["nouveau", "nvrm"],
            &["already bound to nouveau"],
            &["kernel driver in use: nouveau"],
            &["driver such as", "nouveau"],
            &["nouveau kernel driver is currently in use"],
            &["nvrm: try unloading the conflicting kernel module"],
        ],
        causes: &[
            high("nouveau-loaded", "nouveau, the kernel's own driver, holds the GPU."),
            medium("driver-not-loaded", "So NVIDIA's is not loaded."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "modprobe: no such device",
        tells: &[
            &["could not insert 'nvidia", "no such device"],
            &["insmod", "nvidia", "no such device"],
            &["nvrm: no nvidia gpu found"],
            &["nvrm: none of the nvidia devices"],
            &["nvrm: no nvidia devices probed"],
        ],
        causes: &[
            medium(
                "gpu-needs-open-module",
                "The module finds no GPU that it supports: for Blackwell it must be the open one.",
            ),
            medium("nouveau-loaded", "nouveau or vfio may hold the GPU."),
            medium("gpu-generation-dropped", "Or the GPU is too old for this driver, or too new."),
            low("gpu-fallen-off-bus", "Or it is not on the bus."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVRM: API mismatch",
        tells: &[&["api mismatch", "the client has the version"], &["nvrm: api mismatch"], &["rm version mismatch"]],
        after: Some("the client has the version "),
        causes: &[
            high("driver-library-mismatch", "A program used libraries of driver {found} with another kernel module."),
            medium("driver-libs-in-image", "If only one container does: its image carries libraries of a driver."),
            medium("cdi-spec-stale", "Or its CDI specification brings in the old ones."),
            low("compat-older-than-driver-wins", "Or a compat libcuda of the image is in use."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "/dev/nvidia-uvm exists already",
        tells: &[&["mknod: /dev/nvidia-uvm", "file exists"], &["mknod", "nvidia-uvm", "exists"]],
        causes: &[
            high(
                "uvm-major-mismatch",
                "A rule makes the node though an old one is there; its number may be that of an earlier load of the module.",
            ),
            low("device-nodes-not-created-yet", "The rule may also fail for other nodes."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the kernel refuses /dev/nvidia-uvm",
        tells: &[
            &["/dev/nvidia-uvm", "eperm"],
            &["/dev/nvidia-uvm", "operation not permitted"],
            &["/dev/nvidia-uvm", "enxio"],
            &["/dev/nvidia-uvm", "enodev"],
            &["/dev/nvidia-uvm", "no such device"],
        ],
        unless: &["file exists"],
        causes: &[
            high(
                "uvm-major-mismatch",
                "The node's number is not allowed in the container's device cgroup, or not registered: it is that of an earlier boot.",
            ),
            medium("cgroup-lost-after-daemon-reload", "The cgroup's rules may have been written anew without it."),
            medium("uvm-node-missing", "The rule for nvidia-uvm may never have been there."),
            low("uvm-module-not-loaded", "With ENXIO or ENODEV the module is not loaded."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the kernel refuses a node of the driver",
        tells: &[
            &["/dev/nvidiactl", "eperm"],
            &["/dev/nvidiactl", "operation not permitted"],
            &["/dev/nvidia0", "eperm"],
            &["/dev/nvidia0", "operation not permitted"],
            &["open(\"/dev/nvidia", "eperm"],
            &["openat", "/dev/nvidia", "eperm"],
        ],
        unless: &["/dev/nvidia-uvm"],
        causes: &[
            medium(
                "cgroup-lost-after-daemon-reload",
                "EPERM is the device cgroup's: if it worked before, systemd has written the rules anew, without the GPU.",
            ),
            medium("cgroup-lost-cpu-manager", "Under Kubernetes the CPU manager does the same, every few seconds."),
            medium("no-cgroups-with-rootful", "If it never worked: the toolkit is set to leave the cgroup alone."),
            low("device-rules-missing", "Or nobody made rules at all."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "access to a node is denied by its mode",
        tells: &[
            &["/dev/nvidia", "eacces"],
            &["/dev/nvidia", "permission denied"],
            &["cannot open", "/dev/nvidia", "denied"],
        ],
        causes: &[
            high("node-access-refused", "EACCES is the node's mode or a security module's: this user may not open it."),
            medium("selinux-denies-device", "Where SELinux is on, it may be the one."),
            medium("rootless-group-not-kept", "With a rootless engine the group video does not come along."),
            low("device-file-mode-bad", "The mode may make no sense."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia_uvm does not load",
        tells: &[
            &["could not insert 'nvidia_uvm'"],
            &["nvidia_uvm: unknown symbol"],
            &["nvidia-uvm", "unknown symbol"],
            &["module nvidia-uvm not found"],
            &["module nvidia_uvm not found"],
            &["could not load uvm kernel module"],
        ],
        causes: &[
            high("uvm-module-not-loaded", "The module that CUDA needs did not load."),
            medium("driver-module-missing-for-kernel", "It may be for another kernel or another version of nvidia."),
            low("secure-boot-module-rejected", "Or its signature is refused."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a program hangs in the driver",
        tells: &[
            &["blocked for more than", "nvidia"],
            &["soft lockup", "nvidia"],
            &["hung_task", "nvidia"],
            &["nvidia-modeset: error", "wait"],
            &["nvidia-smi", "hangs"],
            &["nvidia-smi", "hung"],
            &["nvidia-smi \u{5361}\u{4f4f}"],
            &[" ? d", "nvidia-"],
        ],
        pairs: &[(
            &["nvidia-smi", "nvml", "cuinit", "nvidia driver"],
            &[
                "hanging",
                "stuck",
                "does not return",
                "doesn't return",
                "never returns",
                "not responding",
                "freezes",
                "\u{5361}\u{4f4f}",
                "\u{5361}\u{6b7b}",
                "\u{65e0}\u{54cd}\u{5e94}",
            ],
        )],
        causes: &[
            high("driver-call-hung", "A call into the driver does not come back."),
            high("process-stuck-in-driver", "A process in state D inside the driver holds its locks."),
            medium("gpu-reset-required", "The GPU's firmware may have stopped: look for Xid lines."),
            low("gpu-fallen-off-bus", "Or the GPU is gone from the bus."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "an NVSwitch or the Fabric Manager reports an error",
        tells: &[
            &["sxid ("],
            &["nvidia-fabricmanager", "fail"],
            &["fabricmanager", "error"],
            &["fabric manager", "not running"],
            &["fabric manager", "version mismatch"],
            &["nv_warn_nothing_to_do"],
            &["nvlsm", "fail"],
            &["fabric manager", "don't match with driver version"],
            &["fabric manager", "failed"],
        ],
        causes: &[
            high(
                "fabric-not-ready",
                "The Fabric Manager of an NVSwitch machine does not run, or is of another version than the driver.",
            ),
            medium("gpu-reset-required", "After a fault of a link the GPUs and switches need a reset."),
            low("driver-library-mismatch", "Its version must be the driver's, to the last number."),
        ],
        ..Text::PLAIN
    },
];
