//! What other lines of the same log say for or against a cause, and the order of all causes.

use super::Confidence;
use super::reader::{Ranked, Told};

/// The cause that is none.
pub(super) const BENIGN: &str = "benign";

/// At most so many causes are named.
const MOST: usize = 8;

/// Words of the surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// One of them is enough. In lower case.
    pub words: &'static [&'static str],
    /// By how much a cause rises or falls where they stand; 100 is the distance from one confidence to the next.
    pub moves: &'static [(&'static str, i32)],
}

const fn context(words: &'static [&'static str], moves: &'static [(&'static str, i32)]) -> Context {
    Context { words, moves }
}

/// All of them.
pub const CONTEXTS: &[Context] = &[
    // The device works for nvidia-smi: it was given, its driver runs; what only CUDA needs is amiss.
    context(
        &[
            "nvidia-smi ok",
            "nvidia-smi works",
            "nvidia-smi fine",
            "nvidia-smi is fine",
            "nvidia-smi \u{6b63}\u{5e38}",
            "persistence-m",
            "bus-id disp.a",
        ],
        &[
            ("cdi-spec-lacks-uvm", 120),
            ("uvm-node-missing", 60),
            ("uvm-major-mismatch", 60),
            ("gpu-not-requested", -150),
            ("driver-not-loaded", -200),
            ("toolkit-not-installed", -150),
            ("capability-compute-missing", 60),
            ("driver-library-missing", -60),
        ],
    ),
    context(
        &[
            "docker build",
            "] run ",
            "dockerfile:",
            "executor failed running",
            "buildkit",
            "=> error [",
            "docker buildx",
            "podman build",
            "kaniko",
            "\u{6784}\u{5efa}\u{955c}\u{50cf}",
        ],
        &[("build-time-no-gpu", 250)],
    ),
    context(
        &["microsoft", "wsl2", "/usr/lib/wsl", "/dev/dxg", "wsl environment"],
        &[
            ("wsl-toolkit-too-old-for-driver", 150),
            ("wsl-no-adapter", 120),
            ("driver-not-loaded", -60),
            ("uvm-node-missing", -150),
            ("uvm-module-not-loaded", -150),
        ],
    ),
    context(
        &["jetson", "tegra", "l4t", "nvgpu", "jetpack", "orin nano", "agx orin", "orin nx", "xavier", "mode as 'csv'"],
        &[
            ("jetson-use-runtime", 180),
            ("jetson-wrong-toolkit-build", 150),
            ("jetson-l4t-mismatch", 120),
            ("jetson-sbsa-image", 100),
            ("driver-library-missing", -50),
            ("docker-desktop-linux", -150),
            ("docker-is-snap", -100),
            ("toolkit-mode-conflict", -60),
        ],
    ),
    context(
        &["proxmox", "lxc", "incus", "lxd"],
        &[
            ("no-cgroups-needed-in-lxc", 100),
            ("apparmor-in-lxc", 100),
            ("node-access-refused", 60),
            ("driver-library-mismatch", 20),
        ],
    ),
    context(&["/snap/", "/var/snap/", "snap.docker", "snap install docker"], &[("docker-is-snap", 200)]),
    context(&["docker desktop", "desktop-linux", "docker-desktop", "linuxkit"], &[("docker-desktop-linux", 200)]),
    context(
        &[
            "kubelet",
            "kubectl",
            "kubernetes",
            "k8s",
            "pod sandbox",
            "containerd.sock",
            "daemonset",
            "nvidia-device-plugin",
            "gpu-operator",
        ],
        &[
            ("cgroup-lost-cpu-manager", 90),
            ("runtime-not-registered", 60),
            ("volume-mount-device-list-not-accepted", 60),
            ("docker-is-snap", -150),
            ("docker-desktop-linux", -150),
        ],
    ),
    context(
        &["cpumanager", "cpu-manager-policy", "cpu_manager", "guaranteed qos"],
        &[("cgroup-lost-cpu-manager", 200)],
    ),
    context(&["daemon-reload", "daemon-reexec", "systemd[1]: reloading"], &[("cgroup-lost-after-daemon-reload", 150)]),
    context(
        &["rootless", "podman", "userns", "/run/user/", "nobody nogroup"],
        &[
            ("rootless-group-not-kept", 120),
            ("cli-user-not-in-video-group", -60),
            ("cgroup-lost-after-daemon-reload", -60),
        ],
    ),
    context(
        &["selinux", "avc:", "container_t", "fedora", "rhel", "centos", "rocky linux"],
        &[("selinux-denies-device", 150)],
    ),
    context(&["suse", "sles", "tumbleweed"], &[("cli-user-not-in-video-group", 120)]),
    context(
        &[
            "suspend",
            "resume from",
            "after resume",
            "sleep/resume",
            "after sleep",
            "wake from sleep",
            "hibernat",
            "pm: suspend",
            "woke up",
            "\u{4f11}\u{7720}",
            "\u{7761}\u{7720}",
        ],
        &[("uvm-broken-after-resume", 200)],
    ),
    context(&[" hmm", "uvm_disable_hmm", "open kernel module", "nvidia-open"], &[("uvm-hmm-open-module", 120)]),
    context(
        &["--privileged", "--device /dev/nvidia", "--device=/dev/nvidia", "privileged: true"],
        &[("passthrough-incomplete", 100)],
    ),
    context(
        &["capabilities=utility", "cuda version: n/a", "cuda version: err!"],
        &[("capability-compute-missing", 150)],
    ),
    context(&["no-cgroups = true", "no-cgroups=true"], &[("no-cgroups-with-rootful", 200)]),
    context(&["mode 'cdi'", "mode = \"cdi\"", "mode=cdi"], &[("toolkit-mode-conflict", 150)]),
    // It works on the machine itself: what is amiss is in the container, or in the engine.
    context(
        &[
            "works on the host",
            "works on host",
            "host works",
            "fine on the host",
            "on the host it works",
            "\u{5bbf}\u{4e3b}\u{673a}\u{6b63}\u{5e38}",
            "\u{5bbf}\u{4e3b}\u{673a}\u{53ef}\u{4ee5}",
            "\u{5bbf}\u{4e3b}\u{673a}\u{4e0a}\u{6b63}\u{5e38}",
            "\u{4e3b}\u{673a}\u{6b63}\u{5e38}",
        ],
        &[
            ("driver-libs-in-image", 120),
            ("docker-desktop-linux", 30),
            ("driver-not-loaded", -150),
            ("driver-module-missing-for-kernel", -150),
            ("driver-library-missing", -100),
            ("driver-library-mismatch", -20),
        ],
    ),
    context(&["c-w--wx", "--w--wx"], &[("device-file-mode-bad", 220)]),
    context(&["nixos", " /run/cdi"], &[("cdi-spec-dir-not-searched", 60)]),
    context(&["windows server", " tcc"], &[("wsl-no-adapter", 150)]),
    context(
        &["cuda_visible_devices=\"\"", "cuda_visible_devices=''", "cuda_visible_devices=-1"],
        &[("cuda-visible-devices-empty", 150)],
    ),
    context(
        &["module nvidia_uvm is not loaded", "modprobe nvidia_uvm", "modprobe nvidia-uvm"],
        &[("uvm-module-not-loaded", 100)],
    ),
    context(&["nvidia-uvm\", o_rdwr", "eperm", "errno 1"], &[("uvm-major-mismatch", 90), ("node-access-refused", 60)]),
    context(
        &[" cdi ", "cdi device", "nvidia.com/gpu=", "nvidia-ctk cdi", "--device nvidia"],
        &[("cdi-spec-lacks-uvm", 60), ("uvm-major-mismatch", 30)],
    ),
    context(
        &["mig-", "mig enabled", "mig mode", "mig m."],
        &[("mig-caps-nodes-missing", 90), ("mig-enabled-without-instances", 90), ("framework-cannot-parse-uuid", 30)],
    ),
    context(&["vgpu", "nvidia grid", "nvidia-gridd", "grid v", "a16-", "a40-", "l40-"], &[("vgpu-unlicensed", 150)]),
    context(
        &["exclusive_process", "exclusive process", "e. process", "compute mode: excl"],
        &[("gpu-exclusive-busy", 150)],
    ),
    context(
        &["rtx 50", "rtx pro 6000", "blackwell", "sm_120", "sm_100", "5090", "5080", "5070", "b200", "gb200"],
        &[("gpu-needs-open-module", 120), ("framework-lacks-gpu-arch", 30)],
    ),
    context(
        &[
            "cuda extension",
            "c++ extension",
            "cpp_extension",
            "flash_attn",
            "flash-attn",
            "xformers",
            "_c.so",
            "nms_cuda",
            "deformable",
            "/apex/",
            "mmcv",
            "detectron2",
            "pytorch3d",
            "gsplat",
            "torch_cuda_arch_list",
            "causal_conv1d",
            "mamba",
        ],
        &[("extension-lacks-gpu-arch", 160)],
    ),
    context(
        &["a100", "h100", "h200", "b200", "tesla", "datacenter"],
        &[("compat-not-enabled-by-toolkit", 30), ("compat-on-unsupported-gpu", -30)],
    ),
    context(
        &["hgx", "dgx", "nvswitch", "fabricmanager", "fabric manager", "nv-fabricmanager"],
        &[("fabric-not-ready", 120)],
    ),
    context(&["gvisor", "runsc"], &[("gvisor-driver-unsupported", 150)]),
    context(&["alpine", "musl"], &[("musl-image", 150)]),
    context(
        &["nvidia-smi -i", "cuda_visible_devices=1", "cuda_visible_devices=2"],
        &[("program-uses-host-index", 150), ("cuda-visible-devices-out-of-range", 60)],
    ),
    context(&["cuda_visible_devices"], &[("cuda-visible-devices-out-of-range", 20)]),
    context(
        &["/compat/", "cuda-compat", "ld_library_path=/usr/local/cuda"],
        &[
            ("compat-older-than-driver-wins", 60),
            ("compat-on-unsupported-gpu", 30),
            ("compat-dropped-gpu-generation", 30),
        ],
    ),
    context(
        &["tesla k80", "k40", "kepler", "tesla m60"],
        &[("compat-dropped-gpu-generation", 100), ("gpu-generation-dropped", 100)],
    ),
    context(&["dind", "docker-in-docker", "docker:dind", "sysbox"], &[("nested-privileged-device-mismatch", 120)]),
    context(
        &["unattended-upgrade", "apt upgrade", "apt-get upgrade", "dnf upgrade"],
        &[("driver-library-mismatch", 60)],
    ),
    context(&["+cpu"], &[("framework-is-cpu-build", 150)]),
    context(&["unattended-upgr", "new kernel", "linux-image-", "dkms"], &[("driver-module-missing-for-kernel", 100)]),
    context(&["forwardcompat", "forward compatibility"], &[("compat-on-unsupported-gpu", 30)]),
    context(
        &["as root", "sudo works", "works with sudo"],
        &[("node-access-refused", 60), ("device-file-mode-bad", 40)],
    ),
];

fn points(confidence: Confidence) -> i32 {
    match confidence {
        Confidence::High => 300,
        Confidence::Medium => 200,
        Confidence::Low => 100,
    }
}

fn confidence(points: i32) -> Confidence {
    match points {
        260.. => Confidence::High,
        150..260 => Confidence::Medium,
        _ => Confidence::Low,
    }
}

/// The causes of all recognised texts, best first. `seen` has a flag for each of [`CONTEXTS`].
pub(super) fn ranked(told: &[Told], seen: &[bool]) -> Vec<Ranked> {
    let mut all: Vec<(i32, Ranked)> = Vec::new();
    for (number, one) in told.iter().enumerate() {
        for (place, cause) in (0..).zip(one.causes) {
            let score = points(cause.confidence) - 10 * place;
            let why = cause.why.replace("{found}", one.found.as_deref().unwrap_or("it"));
            match all.iter_mut().find(|(_, known)| known.id == cause.id) {
                // Two different texts of one log that have a cause in common make it likelier.
                Some((best, known)) => {
                    if score > *best {
                        known.why = why;
                        known.told = number;
                    }
                    *best = score.max(*best) + 15;
                }
                None => {
                    all.push((score, Ranked { id: cause.id, confidence: cause.confidence, why, told: number }));
                }
            }
        }
    }
    let applies = CONTEXTS.iter().zip(seen).filter(|(_, seen)| **seen).flat_map(|(context, _)| context.moves);
    for (id, by) in applies {
        for (score, _) in all.iter_mut().filter(|(_, known)| known.id == *id) {
            *score += by;
        }
    }
    all.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    all.truncate(MOST);
    all.into_iter().map(|(score, cause)| Ranked { confidence: confidence(score), ..cause }).collect()
}
