//! How causes that a check judges are told apart, and shown. Those with a page have this on it.

use crate::model::Sign;

const HOST: &str = "gpu-preflight host";
const CONTAINER: &str = "gpu-preflight container ID";

const fn sign(id: &'static str, tells_apart: &'static str, verify: &'static [&'static str]) -> Sign {
    Sign { id, tells_apart, verify }
}

/// The sign of a name.
pub fn of(id: &str) -> Option<&'static Sign> {
    SIGNS.iter().find(|sign| sign.id == id)
}

/// In the catalogue's order.
#[rustfmt::skip]
pub const SIGNS: &[Sign] = &[
    // request
    sign("gpu-not-requested", "In the container there is no /dev/nvidiactl and no libcuda; the same image works with --gpus all.", &[CONTAINER, "ls /dev/nvidia*   # in the container"]),
    sign("passthrough-incomplete", "In the container there are nodes and no libcuda, or the reverse.", &[CONTAINER, "ls /dev/nvidia*; ldconfig -p | grep libcuda   # in the container"]),
    sign("visible-devices-not-a-device", "NVIDIA_VISIBLE_DEVICES has a word that nvidia-smi -L does not list.", &[CONTAINER, "nvidia-smi -L"]),
    sign("visible-devices-index-out-of-range", "The number is as large as the number of GPUs, or larger; they count from 0.", &[CONTAINER, "nvidia-smi -L"]),
    sign("visible-devices-uuid-unknown", "The UUID is not among those of nvidia-smi -L.", &[CONTAINER, "nvidia-smi -L"]),
    sign("mig-old-style-name", "The name has slashes, MIG-GPU-.../1/0, and nvidia-smi -L shows MIG-<uuid>.", &[CONTAINER, "nvidia-smi -L"]),
    sign("volume-mount-device-list-not-accepted", "NVIDIA_VISIBLE_DEVICES is /var/run/nvidia-container-devices, and the toolkit's configuration does not accept volume mounts.", &[HOST, CONTAINER, "grep accept-nvidia-visible-devices /etc/nvidia-container-runtime/config.toml"]),
    sign("envvar-request-refused-by-policy", "The toolkit's configuration says accept-nvidia-visible-devices-envvar-when-unprivileged = false.", &[CONTAINER, "grep accept-nvidia-visible-devices /etc/nvidia-container-runtime/config.toml"]),
    sign("capability-compute-missing", "nvidia-smi works in the container and shows CUDA Version N/A; there is no libcuda.so.1.", &[CONTAINER, "docker inspect ID | grep NVIDIA_DRIVER_CAPABILITIES"]),
    sign("capability-video-missing", "CUDA works, and libnvidia-encode.so.1 and libnvcuvid.so.1 are not in the container.", &[CONTAINER, "ldconfig -p | grep -E 'nvcuvid|nvidia-encode'   # in the container"]),
    sign("capability-graphics-missing", "CUDA works, and libGLX_nvidia.so.0 is not in the container.", &[CONTAINER, "ldconfig -p | grep GLX_nvidia   # in the container"]),
    sign("image-arch-mismatch", "uname -m on the machine and the image's architecture differ.", &["gpu-preflight image REF", "docker image inspect -f '{{.Architecture}}' REF; uname -m"]),
    sign("require-disable-misspelt", "The container has a variable that is nearly NVIDIA_DISABLE_REQUIRE.", &[CONTAINER]),
    // nodes
    sign("control-node-missing", "/dev/nvidiactl is not there: every tool fails, not CUDA alone.", &[HOST, CONTAINER, "ls -l /dev/nvidia*"]),
    sign("gpu-node-missing", "/dev/nvidiactl is there and no /dev/nvidiaN.", &[HOST, CONTAINER, "ls -l /dev/nvidia*"]),
    sign("uvm-node-missing", "nvidia-smi works in the container and /dev/nvidia-uvm is not there, though the host has it.", &[CONTAINER, "ls -l /dev/nvidia-uvm   # in the container"]),
    sign("modeset-node-missing", "Only containers with the capability display, graphics or all fail.", &[HOST, "ls -l /dev/nvidia-modeset"]),
    sign("mig-caps-nodes-missing", "MIG is on, and /dev/nvidia-caps in the container lacks the nodes of the instance.", &[CONTAINER, "ls -l /dev/nvidia-caps; nvidia-smi -L"]),
    sign("uvm-major-mismatch", "The first number of /dev/nvidia-uvm in the container is not the one that /proc/devices has for nvidia-uvm.", &[HOST, CONTAINER, "ls -l /dev/nvidia-uvm; grep nvidia-uvm /proc/devices"]),
    sign("node-number-mismatch", "A node's first number is not the one that /proc/devices has for its driver.", &[HOST, CONTAINER, "ls -l /dev/nvidia*; grep nvidia /proc/devices"]),
    sign("node-access-refused", "Root in the container can use the GPU, the container's user cannot.", &[CONTAINER, "id; ls -ln /dev/nvidia*   # in the container"]),
    sign("device-rules-missing", "Opening a node fails with EPERM even for root, from the start.", &[CONTAINER]),
    sign("rootless-group-not-kept", "The engine is rootless, and the node shows nobody:nogroup in the container.", &[CONTAINER, "ls -l /dev/nvidia*; id   # in the container"]),
    sign("device-file-mode-bad", "ls -l shows a mode such as --w--wx-w- on the host's nodes.", &[HOST, "ls -l /dev/nvidia*; grep DeviceFileMode /proc/driver/nvidia/params"]),
    sign("device-gid-lost", "The node belongs to group video on the host and to root in the container.", &[CONTAINER, "ls -ln /dev/nvidia* /dev/nvmap   # on the host, and in the container"]),
    sign("selinux-denies-device", "getenforce says Enforcing, it works with --security-opt label=disable, and the audit log has a line avc: denied.", &[HOST, CONTAINER, "ausearch -m avc -ts recent | grep nvidia"]),
    sign("cgroup-lost-after-daemon-reload", "It worked when the container started, works again in a new one, and systemctl daemon-reload breaks it.", &[CONTAINER, HOST]),
    sign("cgroup-lost-cpu-manager", "The node runs the kubelet with the static CPU manager policy, and pods lose the GPU within seconds.", &[HOST, "grep -i cpuManagerPolicy /var/lib/kubelet/config.yaml"]),
    sign("no-cgroups-with-rootful", "It never worked, and the toolkit's configuration says no-cgroups = true.", &[HOST, "grep no-cgroups /etc/nvidia-container-runtime/config.toml"]),
    sign("no-cgroups-needed-in-lxc", "The engine runs inside LXC or rootless, and the toolkit's configuration says no-cgroups = false or nothing.", &[HOST, "systemd-detect-virt; grep no-cgroups /etc/nvidia-container-runtime/config.toml"]),
    sign("shm-too-small", "df -h /dev/shm in the container shows 64M.", &[CONTAINER, "df -h /dev/shm   # in the container"]),
    sign("user-mount-covers-run", "It starts without your mount of /run or /var/run.", &[CONTAINER]),
    // driver
    sign("driver-not-loaded", "nvidia-smi fails on the host as well, and lsmod shows no nvidia.", &[HOST, "lsmod | grep nvidia; nvidia-smi"]),
    sign("uvm-module-not-loaded", "nvidia-smi works on the host, and lsmod shows nvidia without nvidia_uvm.", &[HOST, "lsmod | grep nvidia_uvm"]),
    sign("device-nodes-not-created-yet", "It works after nvidia-smi was run as root on the host once.", &[HOST, "ls -l /dev/nvidia*"]),
    sign("driver-library-mismatch", "The host's own nvidia-smi fails in the same way; the module's version is not the library's.", &[HOST, "cat /proc/driver/nvidia/version; ldconfig -p | grep libnvidia-ml"]),
    sign("driver-library-missing", "nvidia-smi is not on the host or fails there, and ldconfig -p knows no libnvidia-ml.", &[HOST, "ldconfig -p | grep -E 'libnvidia-ml|libcuda'"]),
    sign("driver-module-missing-for-kernel", "modinfo nvidia fails for the kernel that runs; an older kernel works.", &[HOST, "modinfo -k $(uname -r) nvidia; dkms status"]),
    sign("nouveau-loaded", "lsmod shows nouveau and no nvidia.", &[HOST, "lsmod | grep -E 'nouveau|nvidia'"]),
    sign("secure-boot-module-rejected", "mokutil says that Secure Boot is enabled, and modprobe nvidia says that the key was rejected.", &[HOST, "mokutil --sb-state; modprobe nvidia"]),
    sign("gpu-needs-open-module", "The kernel's log has a line NVRM that asks for the open kernel modules; the GPU is Blackwell or newer.", &[HOST, "dmesg | grep -i nvrm; modinfo -F license nvidia"]),
    sign("gpu-fallen-off-bus", "The kernel's log has Xid 79 or the words fallen off the bus; lspci shows the GPU with rev ff, or not at all.", &[HOST, "dmesg | grep -i -E 'xid|fallen'; lspci -d 10de:"]),
    sign("gpu-failed-to-initialise", "lspci lists more GPUs than nvidia-smi, and the kernel's log has RmInitAdapter failed.", &[HOST, "lspci -d 10de: ; nvidia-smi -L; dmesg | grep -i nvrm"]),
    sign("xid-recent", "The kernel's log has lines NVRM: Xid.", &[HOST, "dmesg | grep -i xid"]),
    sign("driver-call-hung", "nvidia-smi on the host hangs or takes many seconds.", &[HOST, "timeout 30 nvidia-smi; dmesg | grep -i -E 'nvrm|xid|blocked'"]),
    sign("cuda-does-not-start", "nvidia-smi works, and every CUDA program fails at its first call.", &["gpu-preflight healthcheck --cuda   # in the container"]),
    sign("one-gpu-unhealthy", "nvidia-smi fails at one PCI address, and nvidia-smi -i INDEX works for the others.", &[ HOST, "nvidia-smi -L; for i in 0 1 2 3; do nvidia-smi -i $i -q -d PERFORMANCE | head -5; done", "dmesg | grep -i -E 'nvrm|xid'", ]),
    sign("gpu-reset-required", "nvidia-smi says GPU requires reset, or the kernel's log has an Xid of the hardware (48, 62, 95, 119) and none of the bus (79).", &[HOST, "nvidia-smi -q | grep -i -A2 recovery", "dmesg | grep -i xid"]),
    sign("ecc-uncorrectable", "nvidia-smi counts volatile uncorrectable errors; the kernel's log has Xid 48, 94 or 95.", &[HOST, "nvidia-smi -q -d ECC"]),
    sign("row-remap-failed", "nvidia-smi says under Remapped Rows: Remapping Failure Occurred: Yes.", &["nvidia-smi -q -d ROW_REMAPPER"]),
    sign("row-remap-pending", "nvidia-smi says under Remapped Rows: Pending: Yes.", &["nvidia-smi -q -d ROW_REMAPPER"]),
    sign("page-retirement-pending", "nvidia-smi says under Retired Pages: Pending Page Blacklist: Yes.", &["nvidia-smi -q -d PAGE_RETIREMENT"]),
    sign("fabric-not-ready", "The machine is an HGX or DGX; nvidia-smi works, CUDA fails on the host too, and nvidia-fabricmanager is not running or not of the driver's exact version.", &[HOST, "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric"]),
    sign("mig-enabled-without-instances", "nvidia-smi -L lists the GPU and no MIG device below it, and mig.mode.current is Enabled.", &[HOST, "nvidia-smi --query-gpu=index,mig.mode.current --format=csv; nvidia-smi -L"]),
    sign("gpu-memory-occupied", "nvidia-smi shows most of the memory in use before the program starts.", &[HOST, "nvidia-smi"]),
    sign("gpu-memory-without-process", "The memory in use does not fall to nearly nothing when all known programs have ended.", &[HOST, "fuser -v /dev/nvidia*"]),
    sign("gpu-exclusive-busy", "nvidia-smi shows E. Process or Prohibited in the column Compute M., and another process is on the GPU.", &[HOST, "nvidia-smi --query-gpu=index,compute_mode --format=csv"]),
    sign("persistence-off", "The first nvidia-smi after a pause takes seconds, the next one does not.", &["nvidia-smi --query-gpu=index,persistence_mode --format=csv"]),
    sign("vgpu-unlicensed", "The machine is virtual, the GPU's name has a profile (A40-8Q), and nvidia-smi -q says License Status: Unlicensed.", &[HOST, "nvidia-smi -q | grep -i -A2 license"]),
    sign("uvm-broken-after-resume", "It fails on the host too, worked before the machine slept, and works again after nvidia_uvm was reloaded.", &["gpu-preflight host --cuda", "journalctl -b | grep -i -E 'suspend|resume|PM:'"]),
    sign("uvm-hmm-open-module", "It fails on the host too, the module is the open one, and works with uvm_disable_hmm=1.", &["gpu-preflight host --cuda", "cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm"]),
    sign("process-stuck-in-driver", "ps shows a process in state D with a kernel stack in nvidia.", &[HOST, "ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /D/'"]),
    sign("igpu-dgpu-order", "The GPUs differ, and the wrong one is used.", &[HOST, "nvidia-smi -L"]),
    // stack
    sign("toolkit-not-installed", "nvidia-ctk is not on the machine.", &[HOST, "nvidia-ctk --version"]),
    sign("nvidia-container-cli-missing", "nvidia-ctk may be there; nvidia-container-cli is not.", &[HOST, "nvidia-container-cli --version"]),
    sign("runtime-not-registered", "docker info lists no runtime nvidia, although the toolkit is installed; for Kubernetes: containerd's configuration has none.", &[HOST, "docker info | grep -i runtimes"]),
    sign("default-runtime-binary-missing", "Every container fails, also those without a GPU.", &[HOST, "docker info | grep -i runtime; command -v nvidia-container-runtime"]),
    sign("toolkit-mode-conflict", "The toolkit's configuration says mode = \"cdi\", and the container was started with --gpus.", &[HOST, CONTAINER, "grep mode /etc/nvidia-container-runtime/config.toml"]),
    sign("toolkit-too-old-for-cgroup-v2", "The host has cgroup v2, and nvidia-container-cli --version says less than 1.8.", &[HOST, "nvidia-container-cli --version; stat -fc %T /sys/fs/cgroup"]),
    sign("cli-user-not-in-video-group", "The nodes are 0660 root:video, and the toolkit's configuration names a user who is not in that group.", &[HOST, "ls -l /dev/nvidia*; grep user /etc/nvidia-container-runtime/config.toml"]),
    sign("cdi-spec-missing", "nvidia-ctk cdi list shows nothing.", &[HOST, "nvidia-ctk cdi list"]),
    sign("cdi-not-enabled-in-daemon", "docker info shows no CDI spec directories.", &[HOST, "docker info | grep -A3 -i cdi"]),
    sign("cdi-spec-dir-not-searched", "nvidia-ctk cdi list shows the device, and the engine does not know it.", &[HOST, "nvidia-ctk cdi list; grep -r cdi_spec_dirs /etc/containers"]),
    sign("cdi-spec-not-generated-at-boot", "It works after nvidia-cdi-refresh was started again.", &[HOST, "systemctl status nvidia-cdi-refresh; ls -l /var/run/cdi"]),
    sign("cdi-spec-stale", "The specification names a version or a path that the host no longer has.", &[HOST, "grep -h -o 'libcuda.so.[0-9.]*' /etc/cdi/*.yaml /var/run/cdi/*.yaml; cat /proc/driver/nvidia/version"]),
    sign("cdi-spec-lacks-uvm", "The specification has no line with /dev/nvidia-uvm.", &[HOST, "grep -l nvidia-uvm /etc/cdi/* /var/run/cdi/*"]),
    sign("cdi-spec-conflict", "Two files in the CDI directories have the same kind and device.", &[HOST, "nvidia-ctk cdi list"]),
    sign("docker-is-snap", "nvidia-smi works on the host, and command -v docker says /snap/bin/docker.", &[HOST, "command -v docker; snap list docker"]),
    sign("docker-desktop-linux", "nvidia-smi works on the host, docker context ls shows desktop-linux as the current one, and sudo docker reaches another engine.", &[HOST, "docker context ls; docker info | grep -i 'operating system'"]),
    sign("build-time-no-gpu", "The line was printed by a RUN step of docker build; docker run --gpus all works.", &[]),
    sign("nested-privileged-device-mismatch", "The engine runs in a privileged container, with more nodes in /dev than directories in /proc/driver/nvidia/gpus.", &[HOST, "ls /dev/nvidia[0-9]* /proc/driver/nvidia/gpus"]),
    sign("wsl-toolkit-too-old-for-driver", "It is WSL, nvidia-smi shows a driver of 555 or newer, and the toolkit is older than 1.14.4.", &[HOST, "nvidia-ctk --version; ls /usr/lib/wsl/lib"]),
    sign("wsl-no-adapter", "nvidia-smi fails in WSL itself, and /dev/dxg is absent or useless.", &[HOST, "ls -l /dev/dxg; /usr/lib/wsl/lib/nvidia-smi", "wsl.exe --status"]),
    sign("jetson-use-runtime", "The machine is a Jetson, and it works with --runtime nvidia.", &[CONTAINER, "cat /etc/nv_tegra_release"]),
    sign("docker-configuration-invalid", "dockerd --validate says what is wrong in it.", &[HOST, "dockerd --validate --config-file /etc/docker/daemon.json"]),
    sign("preflight-program-missing", "ls /usr/libexec/gpu-preflight shows no such file.", &["gpu-preflight status", "ls -l /usr/libexec/gpu-preflight"]),
    sign("preflight-program-unsound", "ldd names libraries of it; the one that install puts there has none.", &["gpu-preflight status", "ldd /usr/libexec/gpu-preflight/gpu-preflight-hook"]),
    sign("preflight-not-loaded", "The engine was reloaded or restarted last before the file was changed.", &["gpu-preflight status", "docker info -f '{{.DefaultRuntime}}'"]),
    sign("preflight-overwritten", "/etc/docker/daemon.json has no runtime gpu-preflight.", &["gpu-preflight status", "grep gpu-preflight /etc/docker/daemon.json"]),
    sign("jetson-l4t-mismatch", "The image's tag has another release of L4T (r32, r35, r36) than /etc/nv_tegra_release.", &["gpu-preflight image REF", "cat /etc/nv_tegra_release"]),
    sign("jetson-wrong-toolkit-build", "The machine is a Jetson with JetPack 4 or 5, and the toolkit did not come from JetPack's own packages.", &[HOST, "cat /etc/nv_tegra_release; dpkg -l | grep nvidia-container"]),
    // image
    sign("require-cuda-unsatisfied", "The text says unsatisfied condition; the container never started.", &[CONTAINER, "docker inspect REF | grep NVIDIA_REQUIRE"]),
    sign("framework-cuda-newer-than-driver", "The driver's CUDA (nvidia-smi, top right) has a lower major version than the framework's (torch.version.cuda).", &[CONTAINER, "nvidia-smi; python3 -c 'import torch; print(torch.version.cuda)'"]),
    sign("cuda-newer-than-driver", "The driver's CUDA has a lower major version than the image's.", &[CONTAINER, "nvidia-smi; nvcc --version"]),
    sign("fatbin-needs-newer-driver", "Some kernels or libraries fail with invalid image, others work; the driver is older than 550.54.14.", &[CONTAINER]),
    sign("minor-version-compat", "Most of it works; single calls fail with not supported in the installed driver.", &[CONTAINER]),
    sign("ptx-newer-than-driver", "CUDA starts, and the first kernel fails with unsupported toolchain.", &[CONTAINER, "nvidia-smi; nvcc --version"]),
    sign("compat-in-use", "nvidia-smi in the container shows a newer CUDA than on the host.", &[CONTAINER]),
    sign("compat-on-unsupported-gpu", "The GPU is a GeForce or another consumer card, and the image has /usr/local/cuda/compat.", &[CONTAINER, "ls /usr/local/cuda*/compat; ldconfig -p | grep libcuda # in the container"]),
    sign("compat-older-than-driver-wins", "It fails in this image only; nvidia-smi in the container shows an older CUDA than on the host.", &[CONTAINER, "ldconfig -p | grep libcuda.so.1; nvidia-smi # in the container"]),
    sign("compat-not-enabled-by-toolkit", "It worked with an older toolkit, or on another host with a newer driver.", &[CONTAINER, "gpu-preflight host", "nvidia-ctk --version"]),
    sign("compat-dropped-gpu-generation", "The GPU is old (K80, M60), and the image has compat libraries of a branch that dropped it.", &[CONTAINER, "nvidia-smi -L; ls /usr/local/cuda*/compat"]),
    sign("framework-lacks-gpu-arch", "torch.cuda.get_arch_list() does not name the GPU's sm_XX.", &[CONTAINER, "python3 -c 'import torch; print(torch.cuda.get_arch_list(), torch.cuda.get_device_capability())'"]),
    sign("gpu-generation-dropped", "The kernel's log says that the GPU is supported through legacy drivers, or the toolkit's notes name the generation as removed.", &[CONTAINER, "gpu-preflight host", "dmesg | grep -i nvrm"]),
    sign("framework-is-cpu-build", "torch.version.cuda is None, or the package's version ends in +cpu.", &[CONTAINER, "python3 -c 'import torch; print(torch.__version__, torch.version.cuda)'"]),
    sign("framework-cuda-major-mix", "The missing library's number (libcublasLt.so.11) is not the installed CUDA's.", &[CONTAINER, "pip list | grep -i -E 'nvidia|torch|onnx|cupy'"]),
    sign("framework-cuda-library-missing", "The library that the text names is nowhere in the image.", &["gpu-preflight image REF", "find / -name 'libcudnn*' -o -name 'libnvrtc*' -o -name 'libcublas*'"]),
    sign("framework-cannot-parse-uuid", "The entry in the message is a UUID, and it works with a number.", &["gpu-preflight container ID", "echo $CUDA_VISIBLE_DEVICES"]),
    sign("program-uses-host-index", "Container 0 works, others say that no devices were found.", &["gpu-preflight container ID", "nvidia-smi -L   # in the container"]),
    sign("driver-libs-in-image", "The host's own nvidia-smi works; the image has packages such as libnvidia-compute or nvidia-utils.", &["gpu-preflight image REF", "dpkg -l | grep -E 'nvidia-(utils|driver)|libnvidia'   # in the image"]),
    sign("zero-byte-driver-files-in-image", "ls -l shows libraries of the driver with 0 bytes in the image.", &["gpu-preflight image REF", "find / -name 'libcuda.so*' -size 0 -o -name 'libnvidia*' -size 0   # in the image"]),
    sign("cuda-stub-loaded", "The loader's path has a directory named stubs.", &["gpu-preflight image REF", "gpu-preflight container ID", "echo $LD_LIBRARY_PATH; ldconfig -p | grep libcuda   # in the container"]),
    sign("musl-image", "The image has /lib/ld-musl-x86_64.so.1, and ls shows the program that the shell says is absent.", &["gpu-preflight image REF", "cat /etc/os-release; ls -l $(command -v nvidia-smi)   # in the container"]),
    sign("no-minimum-declared", "The image has none of these variables.", &["gpu-preflight image REF"]),
    sign("healthcheck-blind-to-gpu", "The image has a HEALTHCHECK that asks only the network or a process.", &["gpu-preflight image REF"]),
    sign("extension-lacks-gpu-arch", "The framework itself works on the GPU; only calls into the extension fail.", &["gpu-preflight image REF", "cuobjdump --list-elf EXTENSION.so"]),
    // environment
    sign("cuda-visible-devices-out-of-range", "It works with CUDA_VISIBLE_DEVICES unset, or set to 0.", &[CONTAINER, "echo $CUDA_VISIBLE_DEVICES; nvidia-smi -L   # in the container"]),
    sign("cuda-visible-devices-empty", "CUDA_VISIBLE_DEVICES is set, and empty or -1.", &[CONTAINER, "env | grep CUDA_VISIBLE_DEVICES   # in the container"]),
    sign("cuda-visible-devices-bad-form", "CUDA_VISIBLE_DEVICES has something that is no number and no UUID of nvidia-smi -L.", &[CONTAINER, "env | grep CUDA_VISIBLE_DEVICES   # in the container"]),
    sign("ld-library-path-foreign-cuda", "It works with LD_LIBRARY_PATH unset.", &[CONTAINER, "env -u LD_LIBRARY_PATH nvidia-smi   # in the container"]),
    sign("injection-variables-set", "It works with the variables unset.", &[CONTAINER, "env | grep -E '^(CUDA|NVIDIA)_'   # in the container"]),
    sign("uvm-limit-set", "The container has a variable of a platform that limits GPU memory.", &[CONTAINER]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_cause_has_one_sign_in_whole_sentences() {
        let mut seen = BTreeSet::new();
        for sign in SIGNS {
            assert!(seen.insert(sign.id), "{} twice", sign.id);
            assert!(sign.tells_apart.ends_with('.') && sign.tells_apart.is_ascii(), "{}", sign.id);
        }
    }
}
