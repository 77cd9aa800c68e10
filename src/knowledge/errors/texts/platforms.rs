//! Jetson, WSL, gVisor and images without glibc, by reports to nvidia-docker, nvidia-container-toolkit, WSL, gVisor.

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "WSL: access is blocked",
        tells: &[&["gpu access blocked by the operating system"], &["failed to properly shut down nvml"]],
        causes: &[
            high(
                "wsl-toolkit-too-old-for-driver",
                "Under WSL an engine or toolkit older than the Windows driver hands over the wrong files.",
            ),
            medium("wsl-no-adapter", "Or Windows gives this WSL no GPU."),
            low("node-access-refused", "Elsewhere: a node is refused."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "there is no nvmap",
        tells: &[
            &["nvrmmeminitnvmap", "no such file"],
            &["/dev/nvmap", "no such file"],
            &["/dev/nvhost", "no such file"],
        ],
        causes: &[
            high("jetson-use-runtime", "The nodes of Jetson's GPU were not given: the NVIDIA runtime does that."),
            medium("jetson-l4t-mismatch", "Or the image is for another release of L4T."),
            low("device-gid-lost", "Or they were given, and not with their group."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "WSL shows no adapter",
        tells: &[
            &["wsl environment detected but no adapters were found"],
            &["no adapters were found"],
            &["dxcore", "no adapters"],
            &["dxgk", "no adapter"],
        ],
        causes: &[
            high(
                "wsl-no-adapter",
                "Windows gives this WSL no GPU: WSL 1, a card in TCC mode, or a virtual machine without one.",
            ),
            low("wsl-toolkit-too-old-for-driver", "An old toolkit may misread a new driver."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "CUDA: named symbol not found",
        tells: &[&["named symbol not found"], &["libnvdxgdmal.so"], &["error 500", "symbol not found"]],
        codes: &[crate::knowledge::errors::Code::Cuda(500)],
        causes: &[
            high(
                "wsl-toolkit-too-old-for-driver",
                "Under WSL drivers from 555 on need libnvdxgdmal.so.1, which a toolkit before 1.16 does not hand over.",
            ),
            medium(
                "framework-cuda-major-mix",
                "Elsewhere: parts of the program are built for different CUDA versions.",
            ),
            low("not-a-gpu-problem", "The program may ask for a kernel that it does not have."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "the NVIDIA hook was called directly on a Jetson",
        tells: &[
            &["auto-detected mode as 'csv'", "invoking the nvidia container runtime hook directly"],
            &["mode as 'csv'"],
        ],
        causes: &[
            high("jetson-use-runtime", "The toolkit found a Jetson (mode csv): it needs --runtime nvidia, not --gpus."),
            medium("toolkit-mode-conflict", "The mode may also be set wrongly in the toolkit's configuration."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a Tegra library is absent",
        tells: &[
            &["libnvrm", "cannot open shared object"],
            &["libnvrm_gpu.so", "no such file"],
            &["libnvos.so", "cannot open"],
            &["libnvbuf", "cannot open"],
            &["libnvmedia", "cannot open"],
            &["libnvdla_compiler.so", "cannot open"],
            &["libcudla.so", "cannot open"],
            &["libcudnn.so", "cannot open", "tegra"],
            &["libnvinfer", "cannot open", "tegra"],
        ],
        causes: &[
            high(
                "jetson-l4t-mismatch",
                "Images for Jetson are made for one release of L4T, and the host's libraries are of another.",
            ),
            medium("jetson-use-runtime", "Without --runtime nvidia none of the host's Tegra libraries come in."),
            low("jetson-sbsa-image", "It may be no image for this kind of machine."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvmap may not be opened",
        unless: &["no such file"],
        tells: &[
            &["nvrmmeminitnvmap", "denied"],
            &["nvrmmeminitnvmap failed"],
            &["/dev/nvmap", "denied"],
            &["nvmap", "permission denied"],
            &["/dev/nvhost", "denied"],
        ],
        causes: &[
            high(
                "device-gid-lost",
                "The node belongs to group video on the host, and to root in the container: the group did not reach it.",
            ),
            medium("node-access-refused", "The container's user may not be in the group."),
            low("jetson-use-runtime", "Without the NVIDIA runtime nodes are given by hand, with whatever owner."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "gVisor does not know this driver",
        tells: &[
            &["nvproxy", "unsupported nvidia driver version"],
            &["unsupported nvidia driver version"],
            &["nvproxy: unknown"],
            &["registering nvproxy driver"],
            &["cannot read client sync file"],
        ],
        after: Some("unsupported nvidia driver version: "),
        causes: &[
            high("gvisor-driver-unsupported", "gVisor forwards calls only for the driver versions that it lists."),
            low("gpu-not-requested", "Without --nvproxy no GPU reaches the sandbox at all."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a program that is there is not found, in an image with musl",
        tells: &[
            &["/bin/sh: nvidia-smi: not found"],
            &["sh: nvidia-smi: not found"],
            &["bin/ash: nvidia-smi: not found"],
            &["error loading shared library libcuda"],
            &["error loading shared library libnvidia"],
            &["error relocating", "libnvidia"],
            &["error loading shared library ld-linux"],
            &["__strdup: symbol not found"],
            &["gcompat", "nvidia"],
        ],
        unless: &["sh: 1: nvidia-smi", "bash: nvidia-smi"],
        causes: &[
            high(
                "musl-image",
                "The message is that of busybox or musl, as in Alpine: NVIDIA's programs and libraries need glibc.",
            ),
            medium("gpu-not-requested", "Without a GPU the program is not brought in at all."),
            low("capability-compute-missing", "nvidia-smi comes with the capability utility."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "nvidia-smi is not there",
        tells: &[
            &["exec: \"nvidia-smi\"", "executable file not found"],
            &["nvidia-smi: command not found"],
            &["nvidia-smi: not found"],
            &["nvidia-smi", "no such file or directory"],
            &["executable file `nvidia-smi` not found"],
            &["nvidia-smi", "executable file not found"],
        ],
        unless: &["/bin/sh: nvidia-smi", "bin/ash: nvidia-smi", "file exists"],
        causes: &[
            high("gpu-not-requested", "Nothing of the driver was brought into the container: no GPU was asked for."),
            medium("passthrough-incomplete", "--privileged or --device gives nodes, and no programs or libraries."),
            medium(
                "toolkit-not-installed",
                "On a host: no driver is installed; for a container: nothing that could bring it in.",
            ),
            low("driver-library-missing", "The host may have no driver, or keep it in another place."),
            low("musl-image", "In an image without glibc the program is there and cannot start."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "an NGC container for one kind of arm64 machine",
        tells: &[
            &["detected nvidia tegra"],
            &["this container was built for", "sbsa"],
            &["unsupported", "igpu", "container"],
        ],
        causes: &[
            high(
                "jetson-sbsa-image",
                "For arm64 there are images for servers (SBSA) and for Jetson (iGPU), and each runs on its own kind only.",
            ),
            medium("jetson-l4t-mismatch", "Or the releases differ."),
        ],
        ..Text::PLAIN
    },
];
