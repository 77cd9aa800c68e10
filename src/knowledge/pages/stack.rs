//! What only a running engine or the loader's cache shows, by reports until 2026-11.

use super::step;
use crate::model::{Action, Page, Severity};

/// In the catalogue's order.
pub(super) const PAGES: &[Page] = &[
    Page {
        id: "restart-runtime-after-driver-swap",
        title: "the engine is older than the loaded driver",
        why: "The driver was exchanged while the engine ran; what it, or the toolkit, holds of the old one does not fit: mounts below /proc/driver/nvidia fail.",
        severities: &[Severity::Warning],
        tells_apart: "It began after a change of the driver without a reboot, and a restart of the engine cures it.",
        verify: &["gpu-preflight host", "systemctl show -p ActiveEnterTimestamp docker containerd"],
        remedy: &[
            step(Action::StartService, "Restart the engine.", Some("systemctl restart docker")),
            step(Action::Reboot, "Reboot, which is sure.", None),
        ],
    },
    Page {
        id: "ldcache-not-updated",
        title: "the loader's cache in the container lacks the driver's libraries",
        why: "The toolkit mounts the libraries and runs ldconfig for the container; where that fails they are there and not found: \"couldn't find libnvidia-ml.so library in your system\".",
        severities: &[Severity::Warning],
        tells_apart: "The file libnvidia-ml.so.1 is in the container, and ldconfig -p does not list it; it works after ldconfig.",
        verify: &[
            "gpu-preflight container ID",
            "ldconfig -p | grep nvidia; find / -name 'libnvidia-ml.so*'   # in the container",
        ],
        remedy: &[
            step(
                Action::ConfigureEngine,
                "Let the toolkit use the host's real ldconfig.",
                Some(
                    "ldconfig = \"@/sbin/ldconfig.real\"   # /etc/nvidia-container-runtime/config.toml, section nvidia-container-cli",
                ),
            ),
            step(Action::ChangeEnvironment, "For one container run ldconfig in it first.", Some("ldconfig")),
            step(Action::ChangePackages, "Update the toolkit.", None),
        ],
    },
    Page {
        id: "cdi-spec-too-new",
        title: "the CDI specification is too new for the engine",
        why: "An engine's CDI library drops a file whole if it has a version or field that it does not know.",
        severities: &[Severity::Warning],
        tells_apart: "nvidia-ctk cdi list shows the device, the engine's log says that it could not load the file.",
        verify: &[
            "gpu-preflight host",
            "grep -h cdiVersion /etc/cdi/* /var/run/cdi/*; journalctl -u docker -u containerd | grep -i cdi",
        ],
        remedy: &[
            step(Action::ChangePackages, "Update the engine.", None),
            step(Action::RegenerateCdi, "Make the specification with an older toolkit.", None),
        ],
    },
    Page {
        id: "gvisor-driver-unsupported",
        title: "gVisor does not support this driver version",
        why: "gVisor's nvproxy forwards calls only for the driver versions that it lists.",
        severities: &[Severity::Error],
        tells_apart: "The runtime is runsc, and the same container works under runc.",
        verify: &["runsc nvproxy list-supported-drivers"],
        remedy: &[
            step(
                Action::ChangePackages,
                "Update gVisor, or install a driver version that it lists.",
                Some("runsc nvproxy list-supported-drivers"),
            ),
            step(
                Action::ConfigureEngine,
                "Take the nearest version that it knows, at your risk.",
                Some("runsc --nvproxy --nvproxy-driver-version=..."),
            ),
        ],
    },
    Page {
        id: "jetson-sbsa-image",
        title: "the image is for the other kind of arm64 machine",
        why: "For arm64 there are images for servers (SBSA) and for Jetson (iGPU); each carries libraries that the other cannot use.",
        severities: &[Severity::Error],
        tells_apart: "The machine is a Jetson and the image's name says sbsa or nothing, or the reverse.",
        verify: &["gpu-preflight image REF", "cat /etc/nv_tegra_release"],
        remedy: &[step(
            Action::ChangeImage,
            "Take the image for this machine: tags with -igpu or l4t for Jetson before Thor, plain arm64 ones for servers.",
            None,
        )],
    },
];
