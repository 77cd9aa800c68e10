//! What NVML, a real `cuInit` or the running processes would show. Causes by reports (pytorch#49081,
//! open-gpu-kernel-modules#1151 and others, until 2026-11); commands as `nvidia-smi` has them.

use super::step;
use crate::model::{Action, Page, Severity};

/// In the catalogue's order.
pub(super) const PAGES: &[Page] = &[
    Page {
        id: "one-gpu-unhealthy",
        title: "one GPU among good ones does not answer",
        why: "nvidia-smi and the container toolkit ask every GPU, stop at the one that does not answer, and print \"Unable to determine the device handle for GPU ...\", so that no container starts although other GPUs work.",
        severities: &[Severity::Error],
        tells_apart: "nvidia-smi fails at one PCI address, and nvidia-smi -i INDEX works for the others.",
        verify: &[
            "gpu-preflight host",
            "nvidia-smi -L; for i in 0 1 2 3; do nvidia-smi -i $i -q -d PERFORMANCE | head -5; done",
            "dmesg | grep -i -E 'nvrm|xid'",
        ],
        remedy: &[
            step(
                Action::ChangeEnvironment,
                "Work with the healthy GPUs for now: name them by UUID.",
                Some("CUDA_VISIBLE_DEVICES=GPU-...,GPU-..."),
            ),
            step(
                Action::PassGpu,
                "Give containers the healthy GPUs only.",
                Some("docker run --gpus '\"device=0,2,3\"' IMAGE"),
            ),
            step(
                Action::ResetGpu,
                "End what uses the GPU and reset it; not possible while a display or a link to others uses it.",
                Some("nvidia-smi --gpu-reset -i INDEX"),
            ),
            step(Action::Reboot, "Power the machine off and on: a warm reboot may leave the board as it is.", None),
            step(
                Action::ReplaceHardware,
                "Look at power cables, seating, riser and temperature; swap slots to see whether the fault follows the board.",
                None,
            ),
            step(
                Action::UpdateDriver,
                "Only if the kernel's log shows faults of the driver's firmware (Xid 119, 120) again and again: install another driver release.",
                None,
            ),
        ],
    },
    Page {
        id: "gpu-reset-required",
        title: "a GPU asks for a reset",
        why: "After a fault the driver keeps a GPU out of use until it is reset; work on it fails with unknown error, or nvidia-smi says that the GPU requires reset.",
        severities: &[Severity::Error],
        tells_apart: "nvidia-smi says GPU requires reset, or the kernel's log has an Xid of the hardware (48, 62, 95, 119) and none of the bus (79).",
        verify: &["gpu-preflight host", "nvidia-smi -q | grep -i -A2 recovery", "dmesg | grep -i xid"],
        remedy: &[
            step(
                Action::FreeGpu,
                "End all programs on the GPU, with the containers that have it.",
                Some("nvidia-smi; fuser -v /dev/nvidia0"),
            ),
            step(
                Action::ResetGpu,
                "Reset the GPU; those that are linked by NVLink together.",
                Some("nvidia-smi --gpu-reset -i INDEX"),
            ),
            step(Action::Reboot, "If the reset is refused, reboot the machine.", None),
            step(Action::ReplaceHardware, "If it comes again on the same GPU, have it looked at.", None),
        ],
    },
    Page {
        id: "ecc-uncorrectable",
        title: "the GPU's memory had errors that could not be corrected",
        why: "A program met a memory error that ECC could not correct: it was ended, and others may be until the GPU is reset.",
        severities: &[Severity::Error],
        tells_apart: "nvidia-smi counts volatile uncorrectable errors; the kernel's log has Xid 48, 94 or 95.",
        verify: &["gpu-preflight host", "nvidia-smi -q -d ECC"],
        remedy: &[
            step(Action::ResetGpu, "End what uses the GPU and reset it.", Some("nvidia-smi --gpu-reset -i INDEX")),
            step(
                Action::ReplaceHardware,
                "Have the GPU replaced if errors come again, or rows can no longer be remapped.",
                None,
            ),
        ],
    },
    Page {
        id: "row-remap-failed",
        title: "a faulty row of GPU memory could not be replaced",
        why: "No spare row is left: the GPU will meet the fault again.",
        severities: &[Severity::Error],
        tells_apart: "nvidia-smi says under Remapped Rows: Remapping Failure Occurred: Yes.",
        verify: &["nvidia-smi -q -d ROW_REMAPPER"],
        remedy: &[step(Action::ReplaceHardware, "Have the GPU replaced.", None)],
    },
    Page {
        id: "row-remap-pending",
        title: "a faulty row of GPU memory waits for a reset",
        why: "The driver will replace the row when the GPU is next reset; until then a program may meet it.",
        severities: &[Severity::Warning],
        tells_apart: "nvidia-smi says under Remapped Rows: Pending: Yes.",
        verify: &["nvidia-smi -q -d ROW_REMAPPER"],
        remedy: &[step(
            Action::ResetGpu,
            "Reset the GPU when nothing uses it.",
            Some("nvidia-smi --gpu-reset -i INDEX"),
        )],
    },
    Page {
        id: "page-retirement-pending",
        title: "a faulty page of GPU memory waits for a reset",
        why: "GPUs before Ampere retire pages; that takes effect when the driver is next loaded.",
        severities: &[Severity::Warning],
        tells_apart: "nvidia-smi says under Retired Pages: Pending Page Blacklist: Yes.",
        verify: &["nvidia-smi -q -d PAGE_RETIREMENT"],
        remedy: &[step(
            Action::ResetGpu,
            "Reset the GPU, or reboot, when nothing uses it.",
            Some("nvidia-smi --gpu-reset -i INDEX"),
        )],
    },
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
        id: "mig-enabled-without-instances",
        title: "MIG is on and no instance is made",
        why: "A GPU with MIG on offers CUDA nothing until instances are made: no device, or busy.",
        severities: &[Severity::Error, Severity::Warning],
        tells_apart: "nvidia-smi -L lists the GPU and no MIG device below it, and mig.mode.current is Enabled.",
        verify: &["gpu-preflight host", "nvidia-smi --query-gpu=index,mig.mode.current --format=csv; nvidia-smi -L"],
        remedy: &[step(
            Action::ResetGpu,
            "Make instances, or switch MIG off.",
            Some("nvidia-smi mig -cgi 19,19 -C   # or: nvidia-smi -i INDEX -mig 0"),
        )],
    },
    Page {
        id: "gpu-memory-occupied",
        title: "others use the GPU's memory",
        why: "A program finds too little free memory on the GPU.",
        severities: &[Severity::Warning],
        tells_apart: "nvidia-smi shows most of the memory in use before the program starts.",
        verify: &["gpu-preflight host", "nvidia-smi"],
        remedy: &[
            step(
                Action::FreeGpu,
                "End what uses it, or choose a GPU with free memory.",
                Some("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"),
            ),
            step(
                Action::ChangeEnvironment,
                "Let the program take less: vLLM --gpu-memory-utilization, TensorFlow memory growth, a smaller batch.",
                None,
            ),
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
        id: "gpu-exclusive-busy",
        title: "the GPU is in exclusive mode and in use",
        why: "In mode Exclusive Process the GPU serves one process; a second one is told that all devices are busy.",
        severities: &[Severity::Warning],
        tells_apart: "nvidia-smi shows E. Process or Prohibited in the column Compute M., and another process is on the GPU.",
        verify: &["gpu-preflight host", "nvidia-smi --query-gpu=index,compute_mode --format=csv"],
        remedy: &[
            step(Action::FreeGpu, "End the process that has it.", Some("nvidia-smi")),
            step(
                Action::ResetGpu,
                "Set the mode to Default, if several may share it.",
                Some("nvidia-smi -i INDEX -c DEFAULT"),
            ),
            step(Action::StartService, "Run MPS, which lets several share it in this mode.", None),
        ],
    },
    Page {
        id: "driver-call-hung",
        title: "a call into the driver does not come back",
        why: "NVML or cuInit does not answer: nvidia-smi hangs, container starts time out.",
        severities: &[Severity::Error],
        tells_apart: "nvidia-smi on the host hangs or takes many seconds.",
        verify: &["gpu-preflight host", "timeout 30 nvidia-smi; dmesg | grep -i -E 'nvrm|xid|blocked'"],
        remedy: &[
            step(
                Action::StartService,
                "If the first call after a pause takes long: switch persistence mode on.",
                Some("systemctl enable --now nvidia-persistenced"),
            ),
            step(
                Action::ResetGpu,
                "If the log shows Xid 119 or 79: reset the GPU.",
                Some("nvidia-smi --gpu-reset -i INDEX"),
            ),
            step(Action::Reboot, "If processes are in state D, only a reboot ends them.", None),
        ],
    },
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
        id: "persistence-off",
        title: "persistence mode is off",
        why: "Without it the driver shuts a GPU down when nobody uses it and starts it at the next use, which takes seconds. It works.",
        severities: &[Severity::Note],
        tells_apart: "The first nvidia-smi after a pause takes seconds, the next one does not.",
        verify: &["nvidia-smi --query-gpu=index,persistence_mode --format=csv"],
        remedy: &[step(
            Action::StartService,
            "Run the persistence daemon.",
            Some("systemctl enable --now nvidia-persistenced"),
        )],
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
