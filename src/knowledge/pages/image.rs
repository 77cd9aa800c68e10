//! What an image's files show against driver and GPU. NVIDIA, CUDA Compatibility and the release notes of CUDA 13.x
//! (2026-11); reports, among others nvidia-docker#1515 and vllm#6551.

use super::step;
use crate::model::{Action, Page, Severity};

/// In the catalogue's order.
pub(super) const PAGES: &[Page] = &[
    Page {
        id: "extension-lacks-gpu-arch",
        title: "an extension has no code for this GPU",
        why: "An extension was compiled for other GPUs than the framework, mostly in a build without a GPU.",
        severities: &[Severity::Note],
        tells_apart: "The framework itself works on the GPU; only calls into the extension fail.",
        verify: &["gpu-preflight image REF", "cuobjdump --list-elf EXTENSION.so"],
        remedy: &[step(
            Action::ChangeImage,
            "Compile it for this GPU.",
            Some("TORCH_CUDA_ARCH_LIST=\"8.6;9.0;12.0\" pip install --no-build-isolation ..."),
        )],
    },
    Page {
        id: "framework-cuda-library-missing",
        title: "a CUDA library that the framework needs is not in the image",
        why: "The framework cannot load cuDNN, cuBLAS, NVRTC or another library, and fails or goes on with the processor.",
        severities: &[Severity::Warning],
        tells_apart: "The library that the text names is nowhere in the image.",
        verify: &["gpu-preflight image REF", "find / -name 'libcudnn*' -o -name 'libnvrtc*' -o -name 'libcublas*'"],
        remedy: &[
            step(
                Action::ChangeImage,
                "Install it, in the version that the framework asks for.",
                Some("pip install nvidia-cudnn-cu12"),
            ),
            step(
                Action::ChangeImage,
                "Or take a base image that has it: runtime in place of base, cudnn in the tag.",
                None,
            ),
        ],
    },
    Page {
        id: "framework-cannot-parse-uuid",
        title: "the program takes UUIDs for numbers",
        why: "CUDA takes UUIDs and MIG names in CUDA_VISIBLE_DEVICES; some programs convert each entry to a number, and fail.",
        severities: &[Severity::Warning],
        tells_apart: "The entry in the message is a UUID, and it works with a number.",
        verify: &["gpu-preflight container ID", "echo $CUDA_VISIBLE_DEVICES"],
        remedy: &[
            step(
                Action::ChangeEnvironment,
                "Give numbers, which in a container count from 0.",
                Some("CUDA_VISIBLE_DEVICES=0"),
            ),
            step(Action::ChangeImage, "Or update the program.", None),
        ],
    },
    Page {
        id: "program-uses-host-index",
        title: "a program in the container uses the host's GPU numbers",
        why: "A script asks for a GPU by its number on the host; in the container the GPUs count from 0.",
        severities: &[Severity::Note],
        tells_apart: "Container 0 works, others say that no devices were found.",
        verify: &["gpu-preflight container ID", "nvidia-smi -L   # in the container"],
        remedy: &[step(Action::ChangeImage, "Use 0 in the container, or UUIDs.", None)],
    },
    Page {
        id: "driver-libs-in-image",
        title: "libraries of a driver are baked into the image",
        why: "They collide with those that the toolkit brings in, or the loader takes them: file exists, or a version mismatch in this image only.",
        severities: &[Severity::Error, Severity::Warning],
        tells_apart: "The host's own nvidia-smi works; the image has packages such as libnvidia-compute or nvidia-utils.",
        verify: &["gpu-preflight image REF", "dpkg -l | grep -E 'nvidia-(utils|driver)|libnvidia'   # in the image"],
        remedy: &[
            step(
                Action::ChangeImage,
                "Remove the driver's packages from the image.",
                Some("apt-get purge 'libnvidia-*' 'nvidia-utils-*'"),
            ),
            step(Action::ChangeImage, "Install cuda-toolkit, not cuda, and with --no-install-recommends.", None),
        ],
    },
    Page {
        id: "zero-byte-driver-files-in-image",
        title: "empty files of a driver are left in the image",
        why: "An image committed from a container with a GPU keeps the mount points: empty libcuda.so.*, which the loader finds.",
        severities: &[Severity::Warning],
        tells_apart: "ls -l shows libraries of the driver with 0 bytes in the image.",
        verify: &[
            "gpu-preflight image REF",
            "find / -name 'libcuda.so*' -size 0 -o -name 'libnvidia*' -size 0   # in the image",
        ],
        remedy: &[step(
            Action::ChangeImage,
            "Delete them from the image, and build it from a Dockerfile rather than by commit.",
            Some("find / -xdev -name 'lib*.so.[0-9]*' -size 0 -delete && ldconfig"),
        )],
    },
    Page {
        id: "cuda-stub-loaded",
        title: "the loader takes the toolkit's stub for libcuda",
        why: "The stub is only for linking: CUDA says error 34, or -1.",
        severities: &[Severity::Error, Severity::Warning],
        tells_apart: "The loader's path has a directory named stubs.",
        verify: &[
            "gpu-preflight image REF",
            "gpu-preflight container ID",
            "echo $LD_LIBRARY_PATH; ldconfig -p | grep libcuda   # in the container",
        ],
        remedy: &[
            step(Action::ChangeEnvironment, "Take the stubs directory out of LD_LIBRARY_PATH.", None),
            step(
                Action::PassGpu,
                "If the stub is the only libcuda: give the container a GPU.",
                Some("docker run --gpus all IMAGE"),
            ),
            step(Action::ChangeImage, "Remove the directory from /etc/ld.so.conf.d, and links to it.", None),
        ],
    },
    Page {
        id: "musl-image",
        title: "the image has no glibc",
        why: "NVIDIA's programs and libraries need glibc; in Alpine and others with musl they are there and do not start.",
        severities: &[Severity::Warning],
        tells_apart: "The image has /lib/ld-musl-x86_64.so.1, and ls shows the program that the shell says is absent.",
        verify: &[
            "gpu-preflight image REF",
            "cat /etc/os-release; ls -l $(command -v nvidia-smi)   # in the container",
        ],
        remedy: &[step(
            Action::ChangeImage,
            "Take a base image with glibc, such as debian, ubuntu or nvidia/cuda.",
            None,
        )],
    },
    Page {
        id: "no-minimum-declared",
        title: "nothing in the image says what driver it needs",
        why: "No NVIDIA_REQUIRE_CUDA, no CUDA_VERSION, no known framework: whether a driver suits shows only at run time.",
        severities: &[Severity::Note],
        tells_apart: "The image has none of these variables.",
        verify: &["gpu-preflight image REF"],
        remedy: &[step(
            Action::ChangeImage,
            "Declare it in the image.",
            Some("ENV NVIDIA_REQUIRE_CUDA=\"cuda>=12.4\""),
        )],
    },
    Page {
        id: "healthcheck-blind-to-gpu",
        title: "the image's health check does not look at the GPU",
        why: "A container that has lost its GPU stays healthy for the engine.",
        severities: &[Severity::Note],
        tells_apart: "The image has a HEALTHCHECK that asks only the network or a process.",
        verify: &["gpu-preflight image REF"],
        remedy: &[step(
            Action::ChangeImage,
            "Use gpu-preflight healthcheck in it.",
            Some("HEALTHCHECK CMD [\"gpu-preflight\", \"healthcheck\"]"),
        )],
    },
];
