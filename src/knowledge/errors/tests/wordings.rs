//! Wordings of public reports (repository and number beside them; read 2026-11) and of programs as they are generally
//! known, none of which the tables were first written for. The cause is that of the thread, or the commonest.

use super::{check, check_among, ids, read};

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

#[test]
fn wordings_of_images_and_frameworks() {
    check(&[
        // NVSentinel#155
        (
            "NVRM: (PCI ID: 10de:26b5) installed in this system has\nNVRM: fallen off the bus and is not responding to commands.",
            "gpu-fallen-off-bus",
        ),
        (
            "NVRM: Xid (PCI:0000:44:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "gpu-fallen-off-bus",
        ),
        // ogkm#789
        (
            "NVRM: RmInitAdapter: Cannot initialize GSP firmware RM\nNVRM: GPU 0000:98:00.0: RmInitAdapter failed! (0x62:0x65:1792)",
            "gpu-failed-to-initialise",
        ),
        ("NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0", "gpu-failed-to-initialise"),
        // ogkm#446
        (
            "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            "gpu-reset-required",
        ),
        (
            "NVRM: Xid (PCI:0000:41:00): 119, pid=1234, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)",
            "gpu-reset-required",
        ),
        ("NVRM: Xid (PCI:0000:89:00): 48, pid=1, DBE (double bit error) ECC Error", "ecc-uncorrectable"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "ecc-uncorrectable"),
        (
            "NVRM: Xid (PCI:0000:07:00): 64, pid='<unknown>', name=<unknown>, Row Remapper: Error recording",
            "row-remap-failed",
        ),
        (
            "NVRM: Xid (PCI:0000:07:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.",
            "row-remap-pending",
        ),
        // pytorch#35710
        (
            "RuntimeError: cuda runtime error (802) : system not yet initialized at /opt/conda/conda-bld/pytorch/work/aten/src/THC/THCGeneral.cpp:50",
            "fabric-not-ready",
        ),
        // gpu-burn#133
        ("Couldn't init CUDA: Error (gpu_burn-drv.cpp:304): system not yet initialized", "fabric-not-ready"),
        // gpu-operator#356
        (
            "Job for nvidia-fabricmanager.service failed because the control process exited with error code.",
            "fabric-not-ready",
        ),
        // gfd#11
        (
            "nvidia-container-cli: detection error: cuda error: invalid device ordinal: unknown",
            "mig-enabled-without-instances",
        ),
        (
            "error: at least one device with MIG enabled has no MIG devices configured: all devices on node must be configured with the same migEnabled value",
            "mig-enabled-without-instances",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 216.00 MiB (GPU 0; 7.92 GiB total capacity; 69.17 MiB already allocated; 24.56 MiB free)",
            "gpu-memory-occupied",
        ),
        (
            "ValueError: Free memory on device (3.97/23.64 GiB) on startup is less than desired GPU memory utilization (0.9, 21.28 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
            "gpu-memory-occupied",
        ),
        // VisEdit#5
        (
            "nvidia-smi shows no running processes found, but GPU memory is still used: CUDA out of memory",
            "gpu-memory-without-process",
        ),
        // CrossE#2
        ("GPU memory 12799MiB / 16280MiB but No processes seem to be using it", "gpu-memory-without-process"),
        // DIGITS#2005
        (
            "Check failed: error == cudaSuccess (46 vs. 0)  all CUDA-capable devices are busy or unavailable",
            "gpu-exclusive-busy",
        ),
        // AKS#4870 old
        ("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", "gpu-exclusive-busy"),
        // AKS#4870
        (
            "NVIDIA A10 vGPU: RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            "vgpu-unlicensed",
        ),
        // operator#628
        ("vGPU Software Licensed Product\n License Status : Unlicensed (Restricted)", "vgpu-unlicensed"),
        // nvidia-docker#377
        ("root 935 0.0 0.0 16488 4056 ? D May04 0:00 /usr/bin/nvidia-smi", "driver-call-hung"),
        ("INFO: task nvidia-smi:1234 blocked for more than 120 seconds.", "driver-call-hung"),
        // mumax#167
        (
            "Once I suspend the Ubuntu and then wake it from suspend: panic: CUDA_ERROR_UNKNOWN",
            "uvm-broken-after-resume",
        ),
        // jaxsim#50
        (
            "after resuming from suspend: failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error",
            "uvm-broken-after-resume",
        ),
        // ollama#2934
        ("Unable to init GPU: unknown error (laptop sleep/resume)", "uvm-broken-after-resume"),
        // CUDA.jl#605
        (
            "CUDA initialisation fails after suspending Ubuntu: CUDA error: unknown error (code 999, ERROR_UNKNOWN)",
            "uvm-broken-after-resume",
        ),
        // ogkm#797
        ("cu->cuInit(0) failed -> CUDA_ERROR_NOT_INITIALIZED: initialization error", "uvm-hmm-open-module"),
        // ollama#11593
        (
            "msg=\"Unable to load cudart library /usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08: cuda driver library init failure: 3\"",
            "uvm-hmm-open-module",
        ),
        // Dasharo#1135
        ("RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.", "uvm-hmm-open-module"),
        // nemotron#6393
        ("cudaGetDeviceCount err=3 with NVIDIA open kernel modules, nvidia-smi works", "uvm-hmm-open-module"),
        (
            "WARNING: detected different devices in the system: NVIDIA GeForce RTX 3090, NVIDIA T1000. Please make sure to set `CUDA_DEVICE_ORDER=PCI_BUS_ID` to avoid unexpected behavior.",
            "igpu-dgpu-order",
        ),
        // dstack#2306
        (
            "stderr: Using requested mode 'cdi'\ninvoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus flag) is not supported. Please use the NVIDIA Container Runtime (e.g. specify the --runtime=nvidia flag) instead.: unknown",
            "toolkit-mode-conflict",
        ),
        // nvidia-docker#1660
        (
            "nvidia-container-cli: container error: cgroup subsystem devices not found: unknown",
            "toolkit-too-old-for-cgroup-v2",
        ),
        // toolkit#1482
        (
            "nvidia-container-cli: mount error: failed to add device rules: unable to generate new device filter program from existing programs: unable to create new device filters program: load program: invalid argument",
            "toolkit-too-old-for-cgroup-v2",
        ),
        (
            "nvidia-container-cli: mount error: mount operation failed: /proc/driver/nvidia/params/version/registry: no such file or directory",
            "restart-runtime-after-driver-swap",
        ),
        (
            "nvidia-container-cli: mount error: open failed: /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.470.57.02: no such file or directory",
            "restart-runtime-after-driver-swap",
        ),
        (
            "nvidia-container-cli: initialization error: nvml error: insufficient permissions",
            "cli-user-not-in-video-group",
        ),
        // nvidia-docker#1616
        (
            "nvidia-container-cli: ldcache error: process /sbin/ldconfig.real failed with error code: 1: unknown",
            "ldcache-not-updated",
        ),
        // Conf-net#5
        (
            "nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory: unknown",
            "ldcache-not-updated",
        ),
        // lxd#9964
        ("in the container: NVIDIA-SMI couldn't find libnvidia-ml.so library in your system", "ldcache-not-updated"),
        // enroot#128
        (
            "E0711 07:13:39.552177 1 nvc_ldcache.c:403] could not start /usr/sbin/ldconfig: mount operation failed: /dev: operation not permitted",
            "ldcache-not-updated",
        ),
    ]);
}

#[test]
fn wordings_with_more_than_one_likely_cause() {
    check_among(&[
        // singularity panda#150
        (
            "If you get this error while working in the singularity container: CUDA driver version is insufficient for CUDA runtime version (no --nv)",
            "gpu-not-requested",
        ),
        // genai-stack#95
        (
            "Docker Desktop 4.26.1 on Ubuntu 23.10: could not select device driver \"nvidia\" with capabilities: [[gpu]]",
            "docker-desktop-linux",
        ),
        (
            "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=3",
            "visible-devices-index-out-of-range",
        ),
        ("docker run --privileged: nvidia-smi: command not found, /dev/nvidia0 exists", "passthrough-incomplete"),
        // pytorch#49081
        (
            "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.\n(ls /dev/nvidia-uvm: No such file or directory)",
            "uvm-node-missing",
        ),
        ("ggml_cuda_init: failed to initialize CUDA: unknown error", "uvm-node-missing"),
        (
            "runc create failed: unable to start container process: error during container init: unable to apply apparmor profile: apparmor failed to apply profile: write fsmount:fscontext:proc/thread-self/attr/apparmor/exec: no such file or directory",
            "apparmor-in-lxc",
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
            "driver-not-loaded",
        ),
        (
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed and present in your system.",
            "driver-library-missing",
        ),
        ("pynvml.nvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found", "driver-library-missing"),
        // ogkm#259
        ("Unable to determine the device handle for GPU 0000:D8:00.0: Not Found", "one-gpu-unhealthy"),
        ("Unable to determine the device handle for GPU0000:65:00.0: Unknown Error", "one-gpu-unhealthy"),
        // libnvidia#204
        ("nvidia-container-cli: initialization error: cuda error: unknown error", "one-gpu-unhealthy"),
        // jetson-containers#72
        (
            "jetson nano: Could not load dynamic library 'libcudart.so.10.2'; dlerror: libcudart.so.10.2: cannot open shared object file: No such file or directory; LD_LIBRARY_PATH: /usr/local/cuda-10.2/targets/aarch64-linux/lib:",
            "jetson-use-runtime",
        ),
        ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "extension-lacks-gpu-arch"),
        // tf#684
        (
            "E tensorflow/stream_executor/cuda/cuda_driver.cc:481] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
            "cuda-visible-devices-out-of-range",
        ),
    ]);
}

#[test]
fn notes_of_frameworks_and_drivers_are_benign() {
    for text in [
        "2024-04-01 I tensorflow/core/common_runtime/gpu/gpu_device.cc:1929] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 22301 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 3090, pci bus id: 0000:01:00.0, compute capability: 8.6",
        "I tensorflow/stream_executor/platform/default/dso_loader.cc:53] Successfully opened dynamic library libcuda.so.1",
        "W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
        "E tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:9342] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
        "W0526 17:14:31.400776 21148 device_context.cc:404] Please NOTE: device: 0, GPU Compute Capability: 8.6, Driver API Version: 11.2, Runtime API Version: 11.2",
        "W0526 17:14:31.417778 21148 device_context.cc:422] device: 0, cuDNN Version: 8.1.",
        "ggml_cuda_init: found 1 CUDA devices:",
        "ggml_cuda_init: found 3 CUDA devices:",
        "  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes",
        "time=2024-07-04T17:13:20 level=INFO source=types.go:105 msg=\"inference compute\" id=GPU-1 library=cuda compute=8.6 driver=12.4 name=\"NVIDIA RTX A4000\" total=\"16.0 GiB\" available=\"15.7 GiB\"",
        "level=DEBUG source=gpu.go:385 msg=\"Unable to load nvcuda\" library=/usr/lib/i386-linux-gnu/libcuda.so.418.74 error=\"/usr/lib/i386-linux-gnu/libcuda.so.418.74: wrong ELF class: ELFCLASS32\"",
        "NCCL INFO NCCL version 2.21.5+cuda12.4",
        "node1:12:34 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so), using internal implementation",
        "node1:12:34 [0] NCCL INFO NET/IB : No device found.",
        "INFO 09-17 06:19:22 [cuda.py:290] Using Flash Attention backend on V1 engine.",
        "WARNING 02-03 vllm: Cannot use FlashAttention-2 backend for Volta and Turing GPUs.",
        "INFO:     Automatically detected platform cuda.",
        "/usr/local/lib/python3.10/site-packages/torch/utils/cpp_extension.py:1965: UserWarning: TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards are included for compilation.",
        "[W:onnxruntime:, session_state.cc:1166] Some nodes were not assigned to the preferred execution providers which may or may not have an negative impact on performance. e.g. ORT explicitly assigns shape related ops to CPU to improve perf.",
        "I0000 00:00:1717000000.000000 1 cuda_executor.cc:1015] successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node, so returning NUMA node zero.",
        "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.",
        "INFO:2024-05-01 jax._src.xla_bridge:945: Unable to initialize backend 'rocm': module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'",
        "INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file: No such file or directory",
        "[    3.5] nvidia: loading out-of-tree module taints kernel.",
        "[    3.9] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 234",
        "[drm] [nvidia-drm] [GPU ID 0x00000100] Loading driver",
        "| No running processes found                                                 |",
        "time=\"2025-01-01\" level=info msg=\"Auto-detected mode as \\\"legacy\\\"\"",
        "Mixed precision compatibility check (mixed_float16): OK",
    ] {
        assert_eq!(ids(text), ["benign"], "{text}");
    }
}

#[test]
fn errors_of_other_programs_are_unknown() {
    for text in [
        "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
        "FATAL:  password authentication failed for user \"postgres\"",
        "ERROR:  out of shared memory HINT:  You might need to increase max_locks_per_transaction.",
        "npm ERR! code ERESOLVE npm ERR! ERESOLVE unable to resolve dependency tree",
        "Traceback (most recent call last): KeyError: 'name'",
        "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
        "Out of memory: Killed process 1234 (python3) total-vm:12345kB",
        "kernel: BUG: unable to handle page fault for address: 0000000000000010",
        "curl: (6) Could not resolve host: github.com",
        "error: failed to push some refs to 'origin'",
        "ModuleNotFoundError: No module named 'flask'",
        "java.lang.OutOfMemoryError: Java heap space",
        "docker: Error response from daemon: manifest for tensorflow/tensorflow:9.9-gpu not found: manifest unknown: manifest unknown.",
        "ERROR: Could not find a version that satisfies the requirement onnxruntime-gpu==9.9 (from versions: none)",
        "E: Unable to locate package nginx-extras",
        "Permission denied (publickey).",
        "fatal error: stdio.h: No such file or directory",
        "make: *** [Makefile:12: all] Error 2",
        "x509: certificate signed by unknown authority",
        "django.db.utils.OperationalError: could not connect to server: Connection refused",
        "thread 'main' panicked at 'index out of bounds: the len is 3 but the index is 5'",
        "error while loading shared libraries: libssl.so.1.1: cannot open shared object file: No such file or directory",
        "Redis: MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
        "Job failed: exit code 1",
        "bash: python: command not found",
        "OSError: [Errno 28] No space left on device",
        "AssertionError: shape mismatch",
        "docker: Error response from daemon: driver failed programming external connectivity on endpoint web",
        "The chromedriver version is too old, please update your driver",
        "ERR_CONNECTION_TIMED_OUT hangs waiting for response",
    ] {
        assert!(ids(text).is_empty(), "{text}: {:?}", read(text));
    }
}

#[test]
fn one_line_among_two_thousand_and_two_errors_of_one_log() {
    let noise = "2026-11-03T10:00:00Z INFO GET /health 200, gpu worker 3 alive\n".repeat(1000);
    let log = format!("{noise}RuntimeError: Found no GPU, but a GPU is required: no CUDA GPU detected\n{noise}");
    let reading = read(&log);
    assert_eq!((reading.told.len(), reading.told[0].number, reading.causes[0].id), (1, 1001, "gpu-not-requested"));
    let log = format!(
        "{noise}kernel: NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus.\n{noise}nvidia-container-cli: device error: 7: unknown device: unknown.\n"
    );
    let got = ids(&log);
    assert!(
        got[..2].contains(&"gpu-fallen-off-bus") && got[..3].contains(&"visible-devices-index-out-of-range"),
        "{got:?}"
    );
}

#[test]
fn what_stands_far_apart_is_no_pair() {
    assert_eq!(ids("the GPU was not found")[0], "gpu-not-requested");
    assert!(ids("the GPU is busy\nthe file was not found").is_empty());
    assert!(ids(&format!("a GPU {} not found", "x ".repeat(150))).is_empty());
    // A general text gives way to one that says more.
    let got = ids("no CUDA GPU detected, using CPU\nCUDA error 804");
    assert_eq!(got[0], "compat-on-unsupported-gpu");
    assert!(!got.contains(&"framework-is-cpu-build"), "{got:?}");
}
