//! Wordings as in `wordings`, of images and frameworks, and those with more than one likely cause.

use super::{check, check_among};

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
