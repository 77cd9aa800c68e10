//! What NVML, a real `cuInit` or the running processes would show. Causes by reports (pytorch#49081,
//! open-gpu-kernel-modules#1151 and others, until 2026-11); commands as `nvidia-smi` has them.

use super::step;
use crate::model::{Action, Page, Severity};

/// In the catalogue's order.
pub(super) const PAGES: &[Page] = &[
    Page {
        id: "fabric-not-ready",
        title: "the NVSwitch fabric is not ready",
        why: "On machines whose GPUs are linked by NVSwitches CUDA does not start until the Fabric Manager has set the links up: error 802.",
        severities: &[Severity::Error],
        tells_apart: "The machine is an HGX or DGX; nvidia-smi works, CUDA fails on the host too, and nvidia-fabricmanager is not running or not of the driver's exact version.",
        verify: &["gpu-preflight host", "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric"],
        remedy: &[
            step(
                Action::StartService,
                "Start the Fabric Manager.",
                Some("systemctl enable --now nvidia-fabricmanager"),
            ),
            step(
                Action::ChangePackages,
                "Install the Fabric Manager of the driver's exact version; from Blackwell (NVLink 5) on also NVLSM and the InfiniBand modules.",
                Some("cat /proc/driver/nvidia/version; dpkg -l | grep fabricmanager"),
            ),
            step(Action::Reboot, "If it reports a fault of a link, reset all GPUs and switches by a reboot.", None),
        ],
    },
    Page {
        id: "gpu-memory-without-process",
        title: "GPU memory is held by a process that cannot be seen",
        why: "nvidia-smi shows memory in use and no process: one that is gone and left it, or one in another container or namespace.",
        severities: &[Severity::Warning],
        tells_apart: "The memory in use does not fall to nearly nothing when all known programs have ended.",
        verify: &["gpu-preflight host", "fuser -v /dev/nvidia*"],
        remedy: &[
            step(
                Action::FreeGpu,
                "Find who holds the nodes, in all containers, and end it.",
                Some("fuser -v /dev/nvidia*"),
            ),
            step(Action::ResetGpu, "If nobody does, reset the GPU.", Some("nvidia-smi --gpu-reset -i INDEX")),
        ],
    },
    Page {
        id: "vgpu-unlicensed",
        title: "the vGPU has no licence",
        why: "Without a licence a vGPU is slowed down after a while and refuses CUDA contexts.",
        severities: &[Severity::Warning],
        tells_apart: "The machine is virtual, the GPU's name has a profile (A40-8Q), and nvidia-smi -q says License Status: Unlicensed.",
        verify: &["nvidia-smi -q | grep -i -A2 license"],
        remedy: &[
            step(
                Action::StartService,
                "Set the licence server up and restart the client.",
                Some("systemctl restart nvidia-gridd"),
            ),
            step(
                Action::ChangeEnvironment,
                "Check that the client's token lies in /etc/nvidia/ClientConfigToken and that the server can be reached.",
                None,
            ),
        ],
    },
];
