//! What NVML, a real `cuInit` or the running processes would show. Causes by reports (pytorch#49081,
//! open-gpu-kernel-modules#1151 and others, until 2026-11); commands as `nvidia-smi` has them.

use super::step;
use crate::model::{Action, Page, Severity};

/// In the catalogue's order.
pub(super) const PAGES: &[Page] = &[
    Page {
        id: "process-stuck-in-driver",
        title: "a process is stuck inside the driver",
        why: "A process in uninterruptible sleep inside the driver holds locks that others wait for.",
        severities: &[Severity::Warning],
        tells_apart: "ps shows a process in state D with a kernel stack in nvidia.",
        verify: &["ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /D/'"],
        remedy: &[step(Action::Reboot, "Reboot the machine; such a process cannot be ended.", None)],
    },
    Page {
        id: "uvm-broken-after-resume",
        title: "nvidia_uvm is broken since the machine slept",
        why: "After suspend and resume cuInit fails with 999 although nvidia-smi works: \"CUDA unknown error - this may be due to an incorrectly set up environment\".",
        severities: &[Severity::Error],
        tells_apart: "It fails on the host too, worked before the machine slept, and works again after nvidia_uvm was reloaded.",
        verify: &["gpu-preflight host --cuda", "journalctl -b | grep -i -E 'suspend|resume|PM:'"],
        remedy: &[
            step(Action::FreeGpu, "End the programs that use CUDA.", Some("fuser -v /dev/nvidia-uvm")),
            step(Action::LoadModule, "Load the module anew.", Some("rmmod nvidia_uvm && modprobe nvidia_uvm")),
            step(
                Action::ChangeEnvironment,
                "Let the driver keep its memory over a sleep, and enable its services.",
                Some(
                    "echo 'options nvidia NVreg_PreserveVideoMemoryAllocations=1' > /etc/modprobe.d/nvidia-sleep.conf; systemctl enable nvidia-suspend nvidia-resume",
                ),
            ),
            step(Action::Reboot, "If the module cannot be unloaded, reboot.", None),
            step(
                Action::UpdateDriver,
                "Install another driver only if it fails after each sleep with these services on.",
                None,
            ),
        ],
    },
    Page {
        id: "uvm-hmm-open-module",
        title: "HMM of the open module does not work on this kernel",
        why: "With the open kernel module on some kernels of Enterprise Linux cuInit fails with 3 or 999 because of heterogeneous memory management.",
        severities: &[Severity::Error],
        tells_apart: "It fails on the host too, the module is the open one, and works with uvm_disable_hmm=1.",
        verify: &["gpu-preflight host --cuda", "cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm"],
        remedy: &[
            step(
                Action::LoadModule,
                "Switch HMM off and load the module anew.",
                Some(
                    "echo 'options nvidia_uvm uvm_disable_hmm=1' > /etc/modprobe.d/nvidia-uvm-hmm.conf; rmmod nvidia_uvm && modprobe nvidia_uvm",
                ),
            ),
            step(Action::UpdateDriver, "Update kernel and driver.", None),
        ],
    },
    Page {
        id: "igpu-dgpu-order",
        title: "CUDA may number the GPUs in another order than nvidia-smi",
        why: "Without CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA puts the fastest GPU first, so index 0 may be another one than nvidia-smi's.",
        severities: &[Severity::Note],
        tells_apart: "The GPUs differ, and the wrong one is used.",
        verify: &["nvidia-smi -L"],
        remedy: &[step(
            Action::ChangeEnvironment,
            "Number them by PCI address, or use UUIDs.",
            Some("CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        )],
    },
];
