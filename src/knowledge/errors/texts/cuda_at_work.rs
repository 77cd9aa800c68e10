//! CUDA's errors of GPUs that were in use already: memory, faults, licences, and the program's own.

use crate::knowledge::errors::Code::Cuda;
use crate::knowledge::errors::{Text, high, low, medium};

/// Numbers that say nothing of driver or container.
pub(super) const PROGRAM: &str = "an error of the program that uses CUDA";

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "CUDA 2: out of memory",
        tells: &[
            &["cuda out of memory"],
            &["cuda error: out of memory"],
            &["cuda_error_out_of_memory"],
            &["cudamalloc failed"],
            &["outofmemoryerror"],
            &["failed to allocate", "gpu memory"],
            &["free memory on device", "less than desired gpu memory utilization"],
            &["no available memory for the cache blocks"],
        ],
        pairs: &[
            (
                &[" gpu", "cuda", "vram"],
                &["out of memory", "not enough memory", "insufficient memory", "resource_exhausted"],
            ),
            (
                &["\u{663e}\u{5b58}", "gpu\u{5185}\u{5b58}"],
                &["\u{4e0d}\u{8db3}", "\u{6ea2}\u{51fa}", "\u{4e0d}\u{591f}", "\u{5360}\u{7528}", "\u{5360}\u{6ee1}"],
            ),
        ],
        unless: &["killed process", "oom-kill", "java.lang", "no process", "no running process"],
        codes: &[Cuda(2)],
        causes: &[
            medium("gpu-memory-occupied", "Others use the GPU's memory: other containers, or a desktop."),
            medium("not-a-gpu-problem", "Or the work is too large for this GPU: model, batch or context."),
            medium("gpu-memory-without-process", "Or it is held by a process that is gone, or in another container."),
            low("uvm-limit-set", "Or a platform limits what a container may take."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 214: ECC",
        tells: &[&["uncorrectable ecc error"], &["double bit ecc"]],
        codes: &[Cuda(214)],
        causes: &[
            high("ecc-uncorrectable", "The GPU's memory had an error that could not be corrected."),
            medium("row-remap-pending", "A row is to be replaced at the next reset."),
            medium("gpu-reset-required", "The GPU must be reset."),
            low("row-remap-failed", "If it comes again: no spare row is left."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 220 and 226: a link or the GPU failed",
        tells: &[&["uncorrectable nvlink error"]],
        codes: &[Cuda(220), Cuda(226)],
        causes: &[
            medium("gpu-reset-required", "The GPUs that are linked need a reset."),
            medium("fabric-not-ready", "And the Fabric Manager must be up again."),
            low("xid-recent", "The kernel's log has the number."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA 805 to 810: MPS",
        tells: &[&["mps client failed to connect"], &["mps server is not ready"], &["mps control daemon"]],
        codes: &[Cuda(805), Cuda(806), Cuda(807), Cuda(808), Cuda(809), Cuda(810)],
        causes: &[
            medium(
                "not-a-gpu-problem",
                "The MPS service is not reached: its pipe directory is not mounted, or it does not run for this user.",
            ),
            medium("injection-variables-set", "CUDA_MPS_PIPE_DIRECTORY may point at nothing here."),
            low("gpu-exclusive-busy", "In exclusive mode only MPS may use the GPU."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: PROGRAM,
        tells: &[
            &["an illegal memory access was encountered"],
            &["device-side assert triggered"],
            &["unspecified launch failure"],
            &["misaligned address", "cuda"],
            &["an illegal instruction was encountered"],
            &["too many resources requested for launch"],
            &["out of resource: shared memory"],
            &["out of resources: shared memory"],
            &["cublas_status_"],
            &["cudnn_status_"],
        ],
        causes: &[
            medium(
                "not-a-gpu-problem",
                "The GPU works and was used: the fault is in the program, its data, or its libraries.",
            ),
            low("xid-recent", "If it comes with every program: look for Xid lines in the kernel's log."),
            low("gpu-memory-occupied", "cuBLAS and cuDNN also fail like this when the GPU's memory is full."),
            low("framework-cuda-major-mix", "Or their versions do not fit each other."),
        ],
        ..Text::PLAIN
    },
];
