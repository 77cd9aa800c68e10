//! Reports of images on drivers and GPUs that they do not suit, each beside a neighbour that must start.

use super::world::Part::{Compat, Env, File, Library, Package, Torch};
use super::world::Way::{Cdi, Docker};
use super::world::{A100, GEFORCE, Gpu, H100, Machine, PACKAGES, Part, Way, findings};
use crate::support::needs;

const V100: Gpu = ("Tesla V100-SXM2-16GB", "0x1db1");
const K80: Gpu = ("Tesla K80", "0x102d");
const GTX_1650: Gpu = ("GeForce GTX 1650", "0x1f82");
const RTX_5090: Gpu = ("NVIDIA GeForce RTX 5090", "0x2b85");
const A2: Gpu = ("NVIDIA A2", "0x25b6");
const L20: Gpu = ("NVIDIA L20", "0x26ba");

/// A container, and what is to be said of it.
struct Case {
    /// Of what it is the shape.
    shape: &'static str,
    way: Way,
    machine: Machine,
    image: &'static [Part],
    /// The first word of a refusal, or a warning that lets it start.
    said: (&'static str, &'static str),
    /// What has it start without that word.
    neighbour: Neighbour,
}

enum Neighbour {
    Driver(&'static str),
    OnGpu(Gpu),
    Toolkit(&'static str),
    Image(&'static [Part]),
}

const fn on(driver: &'static str, gpu: Gpu, toolkit: &'static str) -> Machine {
    Machine { driver, gpu, toolkit }
}

const PADDLE_2: &str = "full_version    = '2.0.0'\ncuda_version    = '10.2'\ncudnn_version   = '7.6.5'\n";
const PADDLE_2_POST100: &str = "full_version    = '2.0.0'\ncuda_version    = '10.0'\ncudnn_version   = '7.6.5'\n";
const PADDLE_VERSION: &str = "usr/local/lib/python3.11/site-packages/paddle/version.py";

const ERROR: &str = "error";
const WARNING: &str = "warning";

const CASES: &[Case] = &[
    Case {
        shape: "054: torch without a version is for CUDA 13",
        way: Docker,
        machine: on("570.86.10", H100, "1.17.8"),
        image: &[Torch("2.11.0", "13.0"), Package("nvidia_cuda_runtime-13.0.96"), Package("funasr-1.3.0")],
        said: ("framework-cuda-newer-than-driver", ERROR),
        neighbour: Neighbour::Image(&[
            Torch("2.11.0+cu128", "12.8"),
            Package("nvidia_cuda_runtime_cu12-12.8.90"),
            Package("funasr-1.3.0"),
        ]),
    },
    Case {
        shape: "054: the same by CDI",
        way: Cdi,
        machine: on("570.86.10", H100, "1.17.8"),
        image: &[Torch("2.11.0", "13.0"), Package("nvidia_cuda_runtime-13.0.96")],
        said: ("framework-cuda-newer-than-driver", ERROR),
        neighbour: Neighbour::Driver("580.65.06"),
    },
    Case {
        shape: "054: by the runtime's package alone",
        way: Cdi,
        machine: on("570.86.10", H100, "1.17.8"),
        image: &[Package("torch-2.11.0"), Package("nvidia_cuda_runtime-13.0.96")],
        said: ("framework-cuda-newer-than-driver", ERROR),
        neighbour: Neighbour::Driver("580.65.06"),
    },
    Case {
        shape: "054: beside one that starts",
        way: Cdi,
        machine: on("570.86.10", H100, "1.17.8"),
        image: &[Torch("2.11.0", "13.0"), Package("onnxruntime_gpu-1.20.1")],
        said: ("framework-cuda-newer-than-driver", WARNING),
        neighbour: Neighbour::Image(&[Torch("2.9.0+cu128", "12.8"), Package("onnxruntime_gpu-1.20.1")]),
    },
    Case {
        shape: "055: Paddle for CUDA 10.2 on a driver of 10.0",
        way: Docker,
        machine: on("410.104", V100, "1.4.0"),
        image: &[Package("paddlepaddle_gpu-2.0.0"), File(PADDLE_VERSION, PADDLE_2)],
        said: ("framework-cuda-newer-than-driver", ERROR),
        neighbour: Neighbour::Driver("440.33.01"),
    },
    Case {
        shape: "055: and its build for 10.0",
        way: Docker,
        machine: on("410.104", V100, "1.4.0"),
        image: &[Package("paddlepaddle_gpu-2.0.0"), File(PADDLE_VERSION, PADDLE_2)],
        said: ("framework-cuda-newer-than-driver", ERROR),
        neighbour: Neighbour::Image(&[
            Package("paddlepaddle_gpu-2.0.0.post100"),
            File(PADDLE_VERSION, PADDLE_2_POST100),
        ]),
    },
    Case {
        shape: "056: toolkit 1.10 mounts the image's libcuda on a GeForce",
        way: Docker,
        machine: on("460.67", GEFORCE, "1.10.0"),
        image: &[Env("CUDA_VERSION=11.3.0"), Torch("1.12.1+cu113", "11.3"), Compat("11.3", "465.19.01")],
        said: ("compat-on-unsupported-gpu", ERROR),
        neighbour: Neighbour::Image(&[Env("CUDA_VERSION=11.3.0"), Torch("1.12.1+cu113", "11.3")]),
    },
    Case {
        shape: "056: and 1.17.4 does not",
        way: Docker,
        machine: on("460.67", GEFORCE, "1.10.0"),
        image: &[Env("CUDA_VERSION=11.3.0"), Torch("1.12.1+cu113", "11.3"), Compat("11.3", "465.19.01")],
        said: ("compat-on-unsupported-gpu", ERROR),
        neighbour: Neighbour::Toolkit("1.17.4"),
    },
    Case {
        shape: "057: a GTX 1650",
        way: Docker,
        machine: on("460.80", GTX_1650, "1.4.0"),
        image: &[Env("CUDA_VERSION=11.3.0"), Compat("11.3", "465.19.01")],
        said: ("compat-on-unsupported-gpu", ERROR),
        neighbour: Neighbour::Driver("465.19.01"),
    },
    Case {
        shape: "058: toolkit 1.18 on a newer branch",
        way: Docker,
        machine: on("580.159.03", GEFORCE, "1.18.1"),
        image: &[Env("CUDA_VERSION=13.2.0"), Compat("13.2", "595.45.04")],
        said: ("compat-on-unsupported-gpu", ERROR),
        neighbour: Neighbour::Driver("595.58.03"),
    },
    Case {
        shape: "058: and a GPU that it is for",
        way: Docker,
        machine: on("580.159.03", GEFORCE, "1.18.1"),
        image: &[Env("CUDA_VERSION=13.2.0"), Compat("13.2", "595.45.04")],
        said: ("compat-on-unsupported-gpu", ERROR),
        neighbour: Neighbour::OnGpu(A100),
    },
    Case {
        shape: "059: an older libcuda by ld.so.conf.d, by CDI",
        way: Cdi,
        machine: on("595.58.03", RTX_5090, "1.18.1"),
        image: &[
            Env("CUDA_VERSION=13.0.1"),
            Env("LD_LIBRARY_PATH=/usr/local/cuda/lib64"),
            Compat("13.0", "580.82.07"),
            File("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
            File("etc/ld.so.conf.d/00-compat-13.conf", "/usr/local/cuda-13.0/compat\n"),
        ],
        said: ("compat-older-than-driver-wins", ERROR),
        neighbour: Neighbour::Image(&[
            Env("CUDA_VERSION=13.0.1"),
            Env("LD_LIBRARY_PATH=/usr/local/cuda/lib64"),
            Compat("13.0", "580.82.07"),
            File("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
        ]),
    },
    Case {
        shape: "060: the same by the directory's other name",
        way: Cdi,
        machine: on("580.105.08", A100, "1.18.1"),
        image: &[
            Env("CUDA_VERSION=12.9.1"),
            Compat("12.9", "575.57.08"),
            File("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
            File("etc/ld.so.conf.d/cuda-compat.conf", "/usr/local/cuda/compat/\n"),
        ],
        said: ("compat-older-than-driver-wins", ERROR),
        neighbour: Neighbour::Image(&[
            Env("CUDA_VERSION=12.9.1"),
            Env("LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu"),
            Compat("12.9", "575.57.08"),
            File("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
            File("etc/ld.so.conf.d/cuda-compat.conf", "/usr/local/cuda/compat/\n"),
        ]),
    },
    Case {
        shape: "061: by LD_LIBRARY_PATH, within a branch",
        way: Docker,
        machine: on("580.95.05", A2, "1.17.8"),
        image: &[
            Env("CUDA_VERSION=13.0.1"),
            Env("LD_LIBRARY_PATH=/usr/local/cuda/compat:/usr/local/nvidia/lib:/usr/local/nvidia/lib64"),
            Package("paddlepaddle_gpu-3.2.2"),
            Package("nvidia_cuda_runtime-13.0.96"),
            Compat("13.0", "580.82.07"),
        ],
        said: ("compat-older-than-driver-wins", ERROR),
        neighbour: Neighbour::Driver("580.65.06"),
    },
    Case {
        shape: "062: by LD_LIBRARY_PATH, three branches older",
        way: Docker,
        machine: on("535.154.05", L20, "1.16.2"),
        image: &[
            Env("CUDA_VERSION=11.8.0"),
            Env("LD_LIBRARY_PATH=/usr/local/cuda/compat:/usr/local/cuda/lib64"),
            Compat("11.8", "520.61.05"),
        ],
        said: ("compat-older-than-driver-wins", ERROR),
        neighbour: Neighbour::Image(&[
            Env("CUDA_VERSION=11.8.0"),
            Env("LD_LIBRARY_PATH=/usr/local/cuda/lib64"),
            Compat("11.8", "520.61.05"),
        ]),
    },
    Case {
        shape: "063: the image's branch has dropped the K80",
        way: Docker,
        machine: on("470.57.02", K80, "1.7.0"),
        image: &[Env("CUDA_VERSION=11.5.0"), Compat("11.5", "495.29.05")],
        said: ("compat-dropped-gpu-generation", ERROR),
        neighbour: Neighbour::Image(&[Env("CUDA_VERSION=11.5.0")]),
    },
    Case {
        shape: "065: PTX that is newer than the driver",
        way: Docker,
        machine: on("550.144.03", H100, "1.17.8"),
        image: &[Env("CUDA_VERSION=12.8.1"), Torch("2.9.0+cu128", "12.8")],
        said: ("ptx-newer-than-driver", WARNING),
        neighbour: Neighbour::Driver("570.124.06"),
    },
    Case {
        shape: "146: forward compatibility would help and is switched off",
        way: Docker,
        machine: on("575.57.08", A100, "1.17.4"),
        image: &[
            Env("CUDA_VERSION=13.0.1"),
            Env("VLLM_ENABLE_CUDA_COMPATIBILITY=0"),
            Torch("2.10.0+cu130", "13.0"),
            Compat("13.0", "580.82.07"),
        ],
        said: ("framework-cuda-newer-than-driver", ERROR),
        neighbour: Neighbour::Image(&[
            Env("CUDA_VERSION=13.0.1"),
            Env("LD_LIBRARY_PATH=/usr/local/cuda/compat"),
            Torch("2.10.0+cu130", "13.0"),
            Compat("13.0", "580.82.07"),
        ]),
    },
    Case {
        shape: "146: and switched on, where the program decides",
        way: Docker,
        machine: on("575.57.08", A100, "1.17.4"),
        image: &[Env("VLLM_ENABLE_CUDA_COMPATIBILITY=1"), Torch("2.10.0+cu130", "13.0"), Compat("13.0", "580.82.07")],
        said: ("framework-cuda-newer-than-driver", WARNING),
        neighbour: Neighbour::Driver("580.65.06"),
    },
    Case {
        shape: "147: toolkit 1.17.4 leaves it alone",
        way: Docker,
        machine: on("550.54.15", A100, "1.17.4"),
        image: &[Env("CUDA_VERSION=12.8.0"), Compat("12.8", "570.86.15")],
        said: ("compat-not-enabled-by-toolkit", WARNING),
        neighbour: Neighbour::Toolkit("1.18.1"),
    },
    Case {
        shape: "148: llama.cpp with the runtime library it was built with",
        way: Docker,
        machine: on("535.161.08", A100, "1.17.8"),
        image: &[Library("opt/app", "libcudart.so.13.1.80"), File("opt/app/libggml-cuda.so", "")],
        said: ("framework-cuda-newer-than-driver", ERROR),
        neighbour: Neighbour::Image(&[
            Library("opt/app", "libcudart.so.12.4.127"),
            File("opt/app/libggml-cuda.so", ""),
        ]),
    },
    Case {
        shape: "148: a runtime library that may be there for a part that nobody runs",
        way: Docker,
        machine: on("535.161.08", A100, "1.17.8"),
        image: &[Library("opt/app", "libcudart.so.13.1.80")],
        said: ("framework-cuda-newer-than-driver", WARNING),
        neighbour: Neighbour::Image(&[Library("opt/app", "libcudart.so.12.4.127")]),
    },
];

#[test]
fn images_that_do_not_suit_are_told_from_their_neighbours_that_do() {
    if !needs::root() {
        return;
    }
    assert!(PADDLE_VERSION.starts_with(PACKAGES));
    let mut wrong = Vec::new();
    for case in CASES {
        let (id, severity) = case.said;
        let wanted = (id.to_owned(), severity.to_owned());
        let refused = severity == ERROR;
        let laid = case.machine.with(case.way, case.image);
        let (code, said) = laid.decided();
        if (code != 0) != refused || !said.contains(&wanted) {
            wrong.push(format!("{}: exit {code}, {said:?}, not {wanted:?}", case.shape));
        }
        let line = laid.judge().stderr.lines().next().unwrap_or_default().to_owned();
        if refused && !line.contains(id) {
            wrong.push(format!("{}: {line}", case.shape));
        }
        let said = findings(&laid.json());
        if !said.contains(&wanted) {
            wrong.push(format!("{}: `container`: {said:?}, not {wanted:?}", case.shape));
        }
        let mut machine = case.machine;
        let mut image = case.image;
        match case.neighbour {
            Neighbour::Driver(driver) => machine.driver = driver,
            Neighbour::OnGpu(gpu) => machine.gpu = gpu,
            Neighbour::Toolkit(toolkit) => machine.toolkit = toolkit,
            Neighbour::Image(parts) => image = parts,
        }
        let (code, said) = machine.with(case.way, image).decided();
        if code != 0 || said.iter().any(|(found, _)| found == id) {
            wrong.push(format!("{}: its neighbour: exit {code}, {said:?}", case.shape));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
