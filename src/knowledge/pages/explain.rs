//! Known to `explain` only.

use super::step;
use crate::model::{Action, Page};

/// In the catalogue's order.
pub(super) const PAGES: &[Page] = &[
    Page {
        id: "benign",
        title: "nothing is wrong: the text is only a note",
        why: "The program says something about its surroundings that looks like an error, and works.",
        severities: &[],
        tells_apart: "No other line says that something failed.",
        verify: &["gpu-preflight host"],
        remedy: &[step(Action::None, "Nothing is to be done.", None)],
    },
    Page {
        id: "not-a-gpu-problem",
        title: "driver, GPU and container are not what failed",
        why: "The text stands beside a GPU, but its cause is elsewhere: the program, its data, another service, or the engine itself.",
        severities: &[],
        tells_apart: "A small CUDA program, or nvidia-smi, works in the same container.",
        verify: &["gpu-preflight host", "gpu-preflight container ID"],
        remedy: &[step(Action::None, "Look at the program's own message, in the lines before this one.", None)],
    },
    Page {
        id: "apparmor-in-lxc",
        title: "AppArmor of a container in LXC refuses",
        why: "An engine inside an LXC container may not load or set AppArmor profiles; no container starts, with or without a GPU.",
        severities: &[],
        tells_apart: "A container without any GPU fails in the same way, and systemd-detect-virt says lxc.",
        verify: &["systemd-detect-virt; docker run --rm hello-world"],
        remedy: &[
            step(
                Action::ConfigureEngine,
                "Allow nesting for the LXC container, on its host.",
                Some("pct set ID --features nesting=1,keyctl=1"),
            ),
            step(
                Action::ChangePackages,
                "Update runc or containerd, or LXC on the host: several releases had this fault.",
                None,
            ),
            step(
                Action::ConfigureEngine,
                "Run without AppArmor in it, if that is acceptable.",
                Some("docker run --security-opt apparmor=unconfined ..."),
            ),
        ],
    },
    Page {
        id: "gpus-flag-is-a-count",
        title: "--gpus takes a number of GPUs, not a GPU's number",
        why: "--gpus 1 means one GPU, the first; --gpus 0 means none. A GPU's number goes behind device=, and a list of them needs quotes in quotes.",
        severities: &[],
        tells_apart: "The container has another GPU than wanted, or none.",
        verify: &["gpu-preflight container ID"],
        remedy: &[
            step(Action::PassGpu, "Name the GPU by device=.", Some("docker run --gpus device=2 IMAGE")),
            step(Action::PassGpu, "Name several in inner quotes.", Some("docker run --gpus '\"device=1,2\"' IMAGE")),
        ],
    },
    Page {
        id: "preflight-refused",
        title: "gpu-preflight refused the start, and the engine shows only a number",
        why: "A hook's words reach the user through runc; crun, podman's usual runtime, shows how it ended and no more.",
        severities: &[],
        tells_apart: "The last lines of /var/log/gpu-preflight/hook.jsonl speak of this container.",
        verify: &["gpu-preflight status --last"],
        remedy: &[
            step(Action::None, "Read what was found and do what it says.", Some("gpu-preflight status --last")),
            step(
                Action::ConfigureEngine,
                "Let podman use runc, so that the words are shown.",
                Some("runtime = \"runc\"   # /etc/containers/containers.conf, section engine"),
            ),
        ],
    },
    Page {
        id: "torch-load-map-location",
        title: "a model saved on a GPU is loaded without map_location",
        why: "torch.load puts tensors where they were when the model was saved: \"Attempting to deserialize object on a CUDA device\". If torch sees no GPU, or fewer, it fails.",
        severities: &[],
        tells_apart: "torch.cuda.is_available() is False and shall be, or the model was saved on a GPU of a higher number.",
        verify: &[
            "gpu-preflight container ID",
            "python3 -c 'import torch; print(torch.__version__, torch.cuda.is_available(), torch.cuda.device_count())'   # in the container",
        ],
        remedy: &[
            step(
                Action::PassGpu,
                "If it is meant to run on a GPU: give the container one, and find out why torch sees none.",
                Some("docker run --gpus all IMAGE"),
            ),
            step(
                Action::ChangeEnvironment,
                "If it is meant to run without: load it so.",
                Some("torch.load(FILE, map_location=\"cpu\")"),
            ),
            step(
                Action::ChangeEnvironment,
                "If the model was saved on another number: map that.",
                Some("torch.load(FILE, map_location=\"cuda:0\")"),
            ),
        ],
    },
];
