//! Wordings of public reports (repository and number beside them; read 2026-11) and of programs as they are generally
//! known, none of which the tables were first written for. The cause is that of the thread, or the commonest.

use super::check;

#[test]
fn wordings_of_requests_and_nodes() {
    check(&[
        // PaddleOCR#11945
        (
            "E0416 11:45:15.529166  7591 place.cc:333] Cannot use GPU because there is no GPU detected on your machine",
            "gpu-not-requested",
        ),
        // PaddleOCR#490
        (
            "Error: id must less than GPU count\n  [Hint: Expected id < GetCUDADeviceCount(), but received id:0 >= GetCUDADeviceCount():0.] at (/paddle/paddle/fluid/platform/gpu_info.cc:240)",
            "gpu-not-requested",
        ),
        // PaddleNLP#6707
        (
            "You are using GPU version PaddlePaddle, but there is no GPU detected on your machine. Maybe CUDA devices is not set properly.",
            "gpu-not-requested",
        ),
        // PARL/Paddle#33136
        ("Cannot find available GPU devices, using CPU or other devices now.", "gpu-not-requested"),
        // min-dalle#22
        (
            "WARNING:absl:No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)",
            "framework-is-cpu-build",
        ),
        // maxim#32
        (
            "Unable to initialize backend 'cuda': module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'",
            "framework-is-cpu-build",
        ),
        // Recall2Imagine#1
        (
            "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: interpreter,cpu",
            "framework-is-cpu-build",
        ),
        // ort#16931
        (
            "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider names.Available providers: 'AzureExecutionProvider, CPUExecutionProvider'",
            "framework-is-cpu-build",
        ),
        // crackq#45
        (
            "Error response from daemon: could not select device driver \"nvidia\" with capabilities: [[gpu]]",
            "toolkit-not-installed",
        ),
        // sd-webui-docker#743
        (
            "Error response from daemon: could not select device driver \"nvidia\" with capabilities: [[compute utility]]",
            "toolkit-not-installed",
        ),
        // rapidsai node#324
        ("docker: Error response from daemon: Unknown runtime specified nvidia.", "runtime-not-registered"),
        // docker-snap#180
        ("docker: Error response from daemon: unknown or invalid runtime name: nvidia.", "runtime-not-registered"),
        // k8s-device-plugin#303
        (
            "2022/05/13 23:09:23 Failed to initialize NVML: could not load NVML library.\n2022/05/13 23:09:23 If this is a GPU node, did you set the docker default runtime to 'nvidia'?",
            "runtime-not-registered",
        ),
        // k8s-device-plugin#23
        ("Failed to start nvml with error:  could not load NVML library", "runtime-not-registered"),
        (
            "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime.v2.task/moby/x/log.json: no such file or directory): exec: \"nvidia-container-runtime\": executable file not found in $PATH: unknown.",
            "default-runtime-binary-missing",
        ),
        (
            "OCI runtime create failed: unable to retrieve OCI runtime error: fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown",
            "default-runtime-binary-missing",
        ),
        // pyxis#101
        (
            "slurmstepd: error: pyxis:     [ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container",
            "nvidia-container-cli-missing",
        ),
        (
            "error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: exec: \"nvidia-container-cli\": executable file not found in $PATH",
            "nvidia-container-cli-missing",
        ),
        // docker-snap#148
        (
            "(snap install docker)\nnvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown.",
            "docker-is-snap",
        ),
        // odysseus#5259
        (
            "dockerd --exec-root=/run/snap.docker --data-root=/var/snap/docker\nnvidia-container-cli: initialization error: load library failed: libdxcore.so: cannot open shared object file: no such file or directory",
            "docker-is-snap",
        ),
        ("nvidia-container-cli: device error: unknown device id: gpu0", "visible-devices-not-a-device"),
        ("nvidia-container-cli: device error: true: unknown device: unknown.", "visible-devices-not-a-device"),
        (
            "OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy' nvidia-container-cli: device error: 2: unknown device: unknown",
            "visible-devices-index-out-of-range",
        ),
        ("nvidia-container-cli: device error: 0:1: unknown device", "visible-devices-index-out-of-range"),
        (
            "nvidia-container-cli: device error: unknown device id: GPU-8d0e8a9c-50e6-4a4d-b3d3-04fb9b3e5f26",
            "visible-devices-uuid-unknown",
        ),
        (
            "nvidia-container-cli: device error: GPU-201c0321-0f64-c185-4e78-ded96ed40231: unknown device: unknown.",
            "visible-devices-uuid-unknown",
        ),
        // toolkit#203
        (
            "nvidia-container-cli.real: device error: MIG-GPU-932bfb2c-849a-2a22-1e84-9eff6bc02b39/1/0: unknown device",
            "mig-old-style-name",
        ),
        // toolkit#108
        (
            "nvidia-container-cli: device error: /var/run/nvidia-container-devices: unknown device: unknown",
            "volume-mount-device-list-not-accepted",
        ),
        (
            "k3s[8174]: nvidia-container-cli: device error: unknown device id: /var/run/nvidia-container-devices: unknown",
            "volume-mount-device-list-not-accepted",
        ),
        (
            "level=warning msg=\"Could not read devices: insufficient privileges to read device list from NVIDIA_VISIBLE_DEVICES envvar\"",
            "envvar-request-refused-by-policy",
        ),
        (
            "stderr: insufficient privileges to read device list from NVIDIA_VISIBLE_DEVICES envvar: unknown",
            "envvar-request-refused-by-policy",
        ),
        (
            "nvidia-smi works in the container\nImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
            "capability-compute-missing",
        ),
        ("CUDA Version: N/A\nRuntimeError: Found no NVIDIA driver on your system.", "capability-compute-missing"),
        // docker-plex#340
        (
            "ERROR - [Req#225/Transcode] [FFMPEG] - Cannot load libnvidia-encode.so.1\nERROR - [FFMPEG] - The minimum required Nvidia driver for nvenc is 418.30 or newer",
            "capability-video-missing",
        ),
        // nvidia-docker#531
        ("Cannot load libnvcuvid.so.1\n[h264_cuvid @ 0x3a46360] Failed loading nvcuvid.", "capability-video-missing"),
        // nvidia-docker#1466
        (
            "ImportError: libnvcuvid.so.1: cannot open shared object file: No such file or directory",
            "capability-video-missing",
        ),
        // NvPipe#53
        (
            "Failed to create encoder: Failed to create encoder (LoadNvEncApi : NvEncodeAPIGetMaxSupportedVersion(&version) returned error -315456918",
            "capability-video-missing",
        ),
        // holohub#884
        (
            "ERROR at ./vulkaninfo/vulkaninfo.h:649:vkCreateInstance failed with ERROR_INCOMPATIBLE_DRIVER",
            "capability-graphics-missing",
        ),
        // video2x#628
        (
            "ERROR: [Loader Message] Code 0 : loader_scanned_icd_add: Could not get 'vkCreateInstance' via 'vk_icdGetInstanceProcAddr' for ICD libGLX_nvidia.so.0",
            "capability-graphics-missing",
        ),
        // plotoptix#46
        (
            "OptiX initialization failed.\nUnknown OptixResult code: Compatible device(s) not found / OptiX not initialized.",
            "capability-graphics-missing",
        ),
        // blender#19
        ("OptiX: could not load libnvoptix.so.1", "capability-graphics-missing"),
        // ComfyUI-Nvidia#96
        ("exec /comfyui-nvidia_init.bash: exec format error", "image-arch-mismatch"),
        // nomad#241
        (
            "The requested image's platform (linux/amd64) does not match the detected host platform (linux/arm64/v8) and no specific platform was requested",
            "image-arch-mismatch",
        ),
        (
            "started with --device /dev/nvidia0 only: libcuda.so.1: cannot open shared object file",
            "passthrough-incomplete",
        ),
        ("nvidia-smi works in the lxc container, CUDA says: cuInit failed: unknown error", "uvm-node-missing"),
    ]);
}

#[test]
fn wordings_of_drivers_and_stacks() {
    check(&[
        // nvidia-docker#291
        ("nvidia-docker | 2017/01/16 16:55:02 Error: Could not load UVM kernel module", "uvm-module-not-loaded"),
        (
            "modprobe: FATAL: Module nvidia-uvm not found in directory /lib/modules/6.8.0-45-generic",
            "uvm-module-not-loaded",
        ),
        // ollama#5453
        (
            "cuInit err: 999\nlevel=DEBUG source=gpu.go:517 msg=\"Unable to load nvcuda\" library=/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01 error=\"nvcuda init failure: 999\"",
            "uvm-module-not-loaded",
        ),
        (
            "nvidia-container-cli: mount error: stat failed: /dev/nvidia-modeset: no such file or directory: unknown",
            "modeset-node-missing",
        ),
        (
            "nvidia-container-cli: mount error: stat failed: /proc/driver/nvidia/capabilities/gpu0/mig/gi3/access: no such file or directory",
            "mig-caps-nodes-missing",
        ),
        // singularity#523
        ("MIG enabled A100, singularity run --nv\nNo devices were found", "mig-caps-nodes-missing"),
        (
            "openat(AT_FDCWD, \"/dev/nvidia-uvm\", O_RDWR|O_CLOEXEC) = -1 ENXIO (No such device or address)",
            "uvm-major-mismatch",
        ),
        ("open(\"/dev/nvidia-uvm\", O_RDWR) = -1 EPERM (Operation not permitted)", "uvm-major-mismatch"),
        ("open(\"/dev/nvidiactl\", O_RDWR) = -1 EACCES (Permission denied)", "node-access-refused"),
        (
            "NvRmPrivGetChipIdLimited: Could not read Tegra chip id / cudaErrorOperatingSystem permission denied /dev/nvidia0",
            "node-access-refused",
        ),
        // nvidia-docker#1608
        (
            "Rootless podman 'Failed to initialize NVML: Insufficient Permissions' on OpenSUSE Tumbleweed, crw-rw---- 1 root video",
            "rootless-group-not-kept",
        ),
        ("rootless docker: Failed to initialize NVML: Insufficient Permissions", "rootless-group-not-kept"),
        // toolkit#33
        ("docker run on Fedora 36: Failed to initialize NVML: Insufficient Permissions", "selinux-denies-device"),
        // selinux-policy#1695
        (
            "Source Context system_u:system_r:container_t:s0:c380,c597\nTarget Context system_u:object_r:xserver_misc_device_t:s0\nTarget Objects /dev/nvidia0 [ chr_file ]",
            "selinux-denies-device",
        ),
        // nvidia_gpu_exporter#110
        ("Failed to initialize NVML: Unknown Error", "cgroup-lost-after-daemon-reload"),
        // BladeDISC#1248
        (
            "After few hours nvidia-smi in the container gives: failed to initialize NVML: Unknown Error",
            "cgroup-lost-after-daemon-reload",
        ),
        // toolkit#48
        ("NVML: Unknown Error after systemctl daemon-reload", "cgroup-lost-after-daemon-reload"),
        (
            "kubectl exec gpu-pod -- nvidia-smi\nFailed to initialize NVML: Unknown Error (cpu-manager-policy=static)",
            "cgroup-lost-cpu-manager",
        ),
        // toolkit#580
        (
            "no-cgroups = true in /etc/nvidia-container-runtime/config.toml\nFailed to initialize NVML: Unknown Error",
            "no-cgroups-with-rootful",
        ),
        // runtime#78
        (
            "nvidia-container-cli: mount error: write error: /sys/fs/cgroup/devices/docker/7f736858f0eb/devices.allow: operation not permitted",
            "no-cgroups-needed-in-lxc",
        ),
        // libnvidia#313
        (
            "nvidia-container-cli: mount error: failed to add device rules: open /sys/fs/cgroup/devices/slurm/uid_28788/job_85/step_0/task_0/devices.allow: permission denied",
            "no-cgroups-needed-in-lxc",
        ),
        // frigate#8652
        (
            "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted: unknown",
            "no-cgroups-needed-in-lxc",
        ),
        // nccl#342
        ("include/shm.h:28 NCCL WARN Call to posix_fallocate failed: No space left on device", "shm-too-small"),
        (
            "misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-WU88OE to 9637892 bytes, error: No space left on device (28)",
            "shm-too-small",
        ),
        // slurm-operator#99
        (
            "nvidia-container-cli: mount error: mount operation failed: /run/enroot/overlay/run/nvidia-persistenced/socket: operation not permitted",
            "user-mount-covers-run",
        ),
        // dockwater#10
        (
            "stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
            "driver-not-loaded",
        ),
        ("Failed to initialize NVML: Driver Not Loaded", "driver-not-loaded"),
        // nvidia-docker#288
        (
            "Error response from daemon: linux runtime spec devices: error gathering device information while adding custom device \"/dev/nvidia0\": no such file or directory",
            "device-nodes-not-created-yet",
        ),
        (
            "nvidia-container-cli: detection error: open failed: /dev/nvidiactl: no such file or directory",
            "device-nodes-not-created-yet",
        ),
        // nvidia-docker#584
        ("nvidia-docker | 2017/12/21 05:04:46 Error: nvml: Driver/library version mismatch", "driver-library-mismatch"),
        (
            "NVRM: API mismatch: the client has the version 535.183.01, but\nNVRM: this kernel module has the version 535.171.04.  Please",
            "driver-library-mismatch",
        ),
        (
            "ERRO[0000] failed to generate CDI spec: failed to create device CDI specs: failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND",
            "driver-library-missing",
        ),
        // singularity#4783
        ("INFO:    Could not find any nv files on this host!", "driver-library-missing"),
        // nvidia-docker#365
        (
            "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.0-91-generic",
            "driver-module-missing-for-kernel",
        ),
        (
            "Error! Bad return status for module build on kernel: 6.14.4-arch1-2 (x86_64)\nConsult /var/lib/dkms/nvidia/470.256.02/build/make.log for more information.",
            "driver-module-missing-for-kernel",
        ),
        // mattshma#133
        (
            "NVRM: The NVIDIA probe routine was not called for 3 device(s).\nNVRM: This can occur when a driver such as: \nNVRM: nouveau, rivafb, nvidiafb or rivatv \nNVRM: was loaded and obtained ownership of the NVIDIA device(s).",
            "nouveau-loaded",
        ),
        (
            "ERROR: The Nouveau kernel driver is currently in use by your system. This driver is incompatible with the NVIDIA driver",
            "nouveau-loaded",
        ),
        ("Loading of unsigned module is rejected", "secure-boot-module-rejected"),
        (
            "PKCS#7 signature not signed with a trusted key\nmodprobe: ERROR: could not insert 'nvidia': Required key not available",
            "secure-boot-module-rejected",
        ),
        (
            "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)\nNVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            "gpu-needs-open-module",
        ),
        // ogkm#872
        ("RTX 5090, nvidia-smi: No devices were found", "gpu-needs-open-module"),
        // nixos-hardware#1880
        (
            "NVRM: The NVIDIA NVIDIA GeForce GTX 1050 GPU installed in this system is\nNVRM:  supported through the NVIDIA 580.xx Legacy drivers.",
            "gpu-generation-dropped",
        ),
        // ogkm#393
        (
            "NVRM: installed in this system is not supported by the\nNVRM: NVIDIA 520.56.06 driver release.",
            "gpu-generation-dropped",
        ),
        // ogkm#322
        (
            "NVRM: installed in this system is not supported by open\nNVRM: nvidia.ko because it does not include the required GPU\nNVRM: System Processor (GSP).",
            "gpu-generation-dropped",
        ),
        ("nvidia-container-cli: detection error: nvml error: gpu is lost: unknown", "one-gpu-unhealthy"),
    ]);
}
