//! What NVML says through `nvidia-smi`, pynvml, go-nvml and others, by reports (nvidia-docker#1671 and #1730,
//! nvidia-container-toolkit#48, paddle and torch) and general knowledge.

use crate::knowledge::BUILT_IN;
use crate::knowledge::errors::{Cause, Code, Text, high, low, medium};
use crate::model::{CudaVersion, DriverVersion};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "MIG without instances",
        tells: &[
            &["no mig devices found"],
            &["no mig devices associated"],
            &["no mig instances"],
            &["mig mode is enabled but no"],
            &["no mig devices configured"],
            &["mig enabled has no mig devices"],
        ],
        causes: &[
            high("mig-enabled-without-instances", "MIG is on and no instance is made."),
            medium("mig-caps-nodes-missing", "Or the nodes of the instances did not come into the container."),
            low("cdi-spec-stale", "Or a CDI specification was made before them."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a GPU's handle cannot be had: unknown error",
        tells: &[&["unable to determine the device handle for gpu"], &["unable to determine the device handle"]],
        after: Some("device handle for gpu"),
        causes: &[
            high(
                "gpu-fallen-off-bus",
                "The driver lists GPU {found} and gets no answer: mostly it fell off the bus since it was started (Xid 79).",
            ),
            high(
                "one-gpu-unhealthy",
                "nvidia-smi stops at the first GPU that does not answer; the others may work, and CUDA_VISIBLE_DEVICES can name them.",
            ),
            medium(
                "gpu-reset-required",
                "Its firmware may have stopped (Xid 119, 62 and others): a reset brings it back.",
            ),
            medium("gpu-failed-to-initialise", "If it never worked since boot: it did not start."),
            low("node-access-refused", "In a container only: its node may be listed and not usable."),
            low("driver-library-mismatch", "After an update without a reboot the library may not fit the module."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVML: GPU is lost",
        tells: &[&["gpu is lost"], &["reboot the system to recover this gpu"]],
        codes: &[Code::Nvml(15)],
        causes: &[
            high("gpu-fallen-off-bus", "NVML says that the GPU is lost: it does not answer on the bus."),
            medium("one-gpu-unhealthy", "The others may work."),
            low("gpu-reset-required", "Now and then a reset brings it back."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVML: the GPU asks for a reset",
        tells: &[
            &["gpu requires reset"],
            &["gpu requires restart"],
            &["nvml", "reset required"],
            &["gpu recovery action", "reset"],
            &["pending page blacklist", "yes"],
            &["remapping failure occurred", "yes"],
            &["nv_err_reset_required"],
            &["nvrm", "reset required"],
        ],
        codes: &[Code::Nvml(16)],
        causes: &[
            high("gpu-reset-required", "The driver asks for a reset of this GPU."),
            medium("row-remap-pending", "A row of memory is to be replaced at the reset."),
            medium("ecc-uncorrectable", "Mostly after a memory error that could not be corrected."),
            low("row-remap-failed", "If it comes again: no spare row is left."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVML: unknown error",
        tells: &[&["failed to initialize nvml: unknown error"], &["nvml", "unknown error"]],
        codes: &[Code::Nvml(999)],
        unless: &["detection error", "device handle"],
        causes: &[
            high(
                "cgroup-lost-after-daemon-reload",
                "If it worked before: systemd has written the container's device rules anew, without the GPU's.",
            ),
            medium("cgroup-lost-cpu-manager", "Under Kubernetes the CPU manager does the same."),
            medium(
                "no-cgroups-with-rootful",
                "If it never worked: no-cgroups = true in the toolkit's configuration, with a rootful engine.",
            ),
            low("node-access-refused", "Or something else refuses the nodes."),
            low("node-number-mismatch", "Or a node has the number of an earlier load."),
            low("one-gpu-unhealthy", "On the host itself: one GPU does not answer."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVML: insufficient permissions",
        tells: &[
            &["failed to initialize nvml: insufficient permissions"],
            &["nvml", "insufficient permissions"],
            &["nvml", "no permission"],
        ],
        codes: &[Code::Nvml(4)],
        unless: &["nvidia-container-cli"],
        causes: &[
            medium(
                "selinux-denies-device",
                "Where SELinux is on, a container may not use the nodes unless container_use_devices is set or label=disable.",
            ),
            medium(
                "rootless-group-not-kept",
                "With a rootless engine the group that owns the nodes (0660 root:video) is not carried over.",
            ),
            medium("node-access-refused", "The container's user may not open the nodes."),
            low("no-cgroups-with-rootful", "no-cgroups = true with a rootful engine."),
            low("cli-user-not-in-video-group", "On SUSE users must be in the group video."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVML: driver not loaded",
        tells: &[&["failed to initialize the nvidia kernel module"]],
        pairs: &[(&["nvml", "nvidia", "gpu"], &["driver not loaded", "driver is not loaded", "driver_not_loaded"])],
        codes: &[Code::Nvml(9)],
        unless: &["nvidia-container-cli", "cdi spec", "vbox", "virtualbox"],
        causes: &[
            high("driver-not-loaded", "NVML says that the kernel module is not loaded."),
            medium("driver-module-missing-for-kernel", "After an update of the kernel it may have none."),
            medium("nouveau-loaded", "nouveau may hold the GPU."),
            medium("secure-boot-module-rejected", "Secure Boot may refuse the module."),
            low("control-node-missing", "In a container: /dev/nvidiactl was not given."),
            low("gpu-needs-open-module", "A new GPU may need the open module."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi does not reach the driver",
        tells: &[
            &["couldn't communicate with the nvidia driver"],
            &["could not communicate with the nvidia driver"],
            &["unable to communicate with the nvidia driver"],
        ],
        unless: &["nvidia-container-cli", "cdi spec"],
        causes: &[
            medium("driver-module-missing-for-kernel", "After an update of the kernel: it has no module."),
            medium("driver-not-loaded", "The module is there, and not loaded."),
            medium("nouveau-loaded", "nouveau may hold the GPU."),
            medium("secure-boot-module-rejected", "Secure Boot may refuse the module."),
            low("control-node-missing", "In a container: /dev/nvidiactl was not given."),
            low("gpu-needs-open-module", "A new GPU may need the open module."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "driver and library differ",
        tells: &[
            &["driver/library version mismatch"],
            &["driver / library version mismatch"],
            &["nvml/rm version mismatch"],
            &["rm has detected an nvml"],
        ],
        codes: &[Code::Nvml(18)],
        causes: &[
            high(
                "driver-library-mismatch",
                "The loaded module and the library are of different versions; on a host mostly an update without a reboot.",
            ),
            medium(
                "driver-libs-in-image",
                "If the host's own nvidia-smi works: the image carries a driver's libraries.",
            ),
            medium("cdi-spec-stale", "Or a CDI specification brings in those of an earlier driver."),
            low("restart-runtime-after-driver-swap", "Or the engine has not noticed a new driver."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi finds no libnvidia-ml",
        tells: &[&["couldn't find libnvidia-ml.so"], &["could not find libnvidia-ml.so"]],
        causes: &[
            medium(
                "ldcache-not-updated",
                "nvidia-smi came in and the library is not found: the loader's cache was not written for this container.",
            ),
            medium("driver-library-missing", "On a host: the library is not installed, or not where the loader looks."),
            medium("passthrough-incomplete", "nvidia-smi may be the image's own, and nothing was brought in."),
            low("zero-byte-driver-files-in-image", "An empty file of that name may lie in the image."),
            low("driver-libs-in-image", "Or one of another driver."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "no NVML library",
        tells: &[&["nvml shared library not found"], &["libnvidia-ml.so.1: cannot open shared object"]],
        codes: &[Code::Nvml(12)],
        unless: &["nvidia-container-cli", "load library failed", "nvml init failed", "docker default runtime"],
        causes: &[
            medium("gpu-not-requested", "Nothing of the driver was brought into the container."),
            medium("driver-library-missing", "On a host: the driver's libraries are not installed."),
            medium("capability-compute-missing", "NVIDIA_DRIVER_CAPABILITIES may lack utility, with which NVML comes."),
            low("passthrough-incomplete", "--privileged gives nodes, and no libraries."),
            low("ldcache-not-updated", "Or it is there, and not in the loader's cache."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi: no devices were found",
        tells: &[&["no devices were found"]],
        codes: &[Code::Nvml(28)],
        unless: &["nvidia-container-cli"],
        causes: &[
            medium(
                "gpu-needs-open-module",
                "The driver runs and takes no GPU: new ones (Blackwell) work only with the open module.",
            ),
            medium(
                "device-nodes-not-created-yet",
                "Just after boot nothing may have made the nodes yet; nvidia-smi as root makes them.",
            ),
            medium("mig-caps-nodes-missing", "With MIG: the nodes of the instances did not come into the container."),
            low("gpu-failed-to-initialise", "Or the only GPU does not start."),
            low(
                "program-uses-host-index",
                "Or a script asks for a GPU by the host's number, which a container does not have.",
            ),
            low("gpu-fallen-off-bus", "Or it fell off the bus."),
            low("gpu-node-missing", "Or no GPU's node was given."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi -i with a GPU that is not there",
        tells: &[
            &["no devices were found", "nvidia-smi -i"],
            &["unable to query", "nvidia-smi -i"],
            &["invalid combination of input arguments"],
        ],
        causes: &[
            medium(
                "program-uses-host-index",
                "A script asks for a GPU by the host's number; in a container they count from 0.",
            ),
            low("cuda-visible-devices-out-of-range", "The same goes for CUDA_VISIBLE_DEVICES."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVML: a function is not there",
        tells: &[&["nvml", "function not found"], &["nvidia-smi", "function not found"], &["undefined symbol: nvml"]],
        codes: &[Code::Nvml(13)],
        causes: &[
            medium("driver-libs-in-image", "The libnvidia-ml in use is older than its caller: it may be the image's."),
            medium("driver-library-mismatch", "On a host: two drivers' files are mixed."),
            low("zero-byte-driver-files-in-image", "Leftovers of a driver may lie in the image."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NVML: the operating system blocked it",
        tells: &[&["operating system has blocked the request"]],
        codes: &[Code::Nvml(17)],
        causes: &[
            medium(
                "node-access-refused",
                "Something of the system refuses the nodes: mode, cgroup or security module.",
            ),
            medium("cgroup-lost-after-daemon-reload", "If it worked before: the device cgroup."),
            low("selinux-denies-device", "Or SELinux."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi shows ERR!",
        tells: &[&["err!"]],
        unless: &["cuda version: err!", "npm err!"],
        causes: &[
            medium("one-gpu-unhealthy", "A GPU does not answer some questions: its sensors or its firmware fail."),
            medium("gpu-reset-required", "A reset may cure it."),
            low("gpu-fallen-off-bus", "It may be about to be lost."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi shows no CUDA version",
        tells: &[&["cuda version: n/a"], &["cuda version: err!"], &["cuda version: not found"]],
        causes: &[
            high("capability-compute-missing", "nvidia-smi finds no libcuda: only the part utility was brought in."),
            medium(
                "driver-library-missing",
                "On a host: libcuda is not installed, as with a package of the driver without compute.",
            ),
            low("cuda-stub-loaded", "Or the one it finds is not usable."),
            low("driver-libs-in-image", "Or it is the image's, of another version."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi's banner",
        tells: &[&["driver version:", "cuda version:"]],
        refine: Some(banner),
        ..Text::PLAIN
    },
    Text {
        name: "the persistence daemon",
        tells: &[
            &["nvidia-persistenced", "failed to initialize"],
            &["nvidia-persistenced", "failed to query nvidia devices"],
            &["nvidia-persistenced.service", "fail"],
        ],
        causes: &[
            medium("driver-not-loaded", "The persistence daemon does not reach the driver."),
            medium("driver-library-mismatch", "Or it is of another version."),
            low("persistence-off", "Without it GPUs start at each first use."),
        ],
        ..Text::PLAIN
    },
];

const OLDER: &[Cause] = &[
    high(
        "compat-older-than-driver-wins",
        "nvidia-smi shows a CUDA older than its driver offers: the libcuda in use is an older one, mostly from the image's compat directory.",
    ),
    medium("driver-libs-in-image", "Or one that is baked into the image."),
    low("ld-library-path-foreign-cuda", "LD_LIBRARY_PATH may put it first."),
];
const NEWER: &[Cause] = &[
    medium(
        "compat-in-use",
        "nvidia-smi shows a CUDA newer than its driver offers: a compat libcuda is in use. That is right on data centre GPUs.",
    ),
    low("compat-on-unsupported-gpu", "On a GeForce it ends in error 804."),
];
const FITS: &[Cause] =
    &[high("benign", "nvidia-smi's banner: the driver runs, and its CUDA version is the one that it offers.")];

/// A banner whose CUDA is not the one that its driver offers.
fn banner(line: &str) -> Option<&'static [Cause]> {
    let word = |label: &str| line.split_once(label)?.1.split_whitespace().next();
    let driver: DriverVersion = word("driver version:")?.parse().ok()?;
    let shown: CudaVersion = word("cuda version:")?.trim_end_matches('|').parse().ok()?;
    let offered = BUILT_IN.offered_by(&driver)?;
    match shown.cmp(&offered.value) {
        std::cmp::Ordering::Less => Some(OLDER),
        std::cmp::Ordering::Greater if !offered.by_rule => Some(NEWER),
        _ => Some(FITS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_tells_by_its_two_versions() {
        let id = |line| banner(line).map(|causes: &[Cause]| causes[0].id);
        assert_eq!(
            id("nvidia-smi: driver version: 535.154.05 cuda version: 11.8"),
            Some("compat-older-than-driver-wins")
        );
        assert_eq!(id("| nvidia-smi 535.154.05 driver version: 535.154.05 cuda version: 12.2 |"), Some("benign"));
        assert_eq!(id("driver version: 535.154.05 cuda version: 12.9 |"), Some("compat-in-use"));
        assert_eq!(id("driver version: x cuda version: 12.9 |"), None);
    }
}
