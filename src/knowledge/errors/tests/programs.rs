//! One test for each kind of program: its texts, in several wordings, and near misses.

use super::{check, check_among, ids, read};
use crate::knowledge::errors::Confidence;

#[test]
fn this_one() {
    check(&[
        (
            "OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running createRuntime hook #0: exit status 10, stdout: , stderr: gpu-preflight: start refused [gpu-not-requested]: the container asks for a GPU",
            "gpu-not-requested",
        ),
        (
            "Error: OCI runtime error: crun: error executing hook `/usr/libexec/gpu-preflight/gpu-preflight-hook` (exit code: 10)",
            "preflight-refused",
        ),
        (
            "fork/exec /usr/libexec/gpu-preflight/gpu-preflight-runtime: no such file or directory: unknown",
            "preflight-program-missing",
        ),
        ("Error response from daemon: unknown or invalid runtime name: gpu-preflight", "preflight-overwritten"),
    ]);
    assert!(
        ids("crun: error executing hook `/usr/libexec/gpu-preflight/gpu-preflight-hook` (exit code: 137)").is_empty()
    );
    assert!(ids("crun: error executing hook `/usr/bin/other-hook` (exit code: 10)").is_empty());
}

#[test]
fn engines() {
    check(&[
        (
            r#"docker: Error response from daemon: could not select device driver "nvidia" with capabilities: [[gpu compute]]."#,
            "toolkit-not-installed",
        ),
        (
            r#"Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]]"#,
            "toolkit-not-installed",
        ),
        (
            "unable to configure the Docker daemon with file /etc/docker/daemon.json: invalid character 'o' looking for beginning of object key string",
            "docker-configuration-invalid",
        ),
        ("failed to discover GPU vendor from CDI: no known GPU vendor found", "toolkit-not-installed"),
        ("docker: Error response from daemon: Unknown runtime specified nvidia.", "runtime-not-registered"),
        (
            r#"Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured"#,
            "runtime-not-registered",
        ),
        (r#"pod rejected: RuntimeClass "nvidia" not found"#, "runtime-not-registered"),
        (
            "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown",
            "default-runtime-binary-missing",
        ),
        (
            r#"exec: "nvidia-container-runtime-hook": executable file not found in $PATH"#,
            "nvidia-container-cli-missing",
        ),
        ("Could not initialize NVML: did you set the docker default runtime to `nvidia`?", "runtime-not-registered"),
        (
            "WARNING: The requested image's platform (linux/amd64) does not match the detected host platform (linux/arm64/v8)",
            "image-arch-mismatch",
        ),
        ("standard_init_linux.go:228: exec user process caused: exec format error", "image-arch-mismatch"),
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
            "shm-too-small",
        ),
        ("cannot set both Count and DeviceIDs on device request.", "gpus-flag-is-a-count"),
    ]);
    check_among(&[("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "runtime-not-registered")]);
    assert!(ids("could not select a device to play on").is_empty());
    assert!(ids("unknown runtime error in module 7").is_empty());
}

#[test]
fn the_container_tool() {
    check(&[
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.", "driver-not-loaded"),
        (
            "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
            "driver-library-mismatch",
        ),
        ("nvidia-container-cli: initialization error: driver rpc error: timed out: unknown.", "driver-call-hung"),
        ("nvidia-container-cli: detection error: nvml error: gpu is lost: unknown", "one-gpu-unhealthy"),
        (
            "nvidia-container-cli: device error: GPU-5a4c0000-0000-4000-8000-000000000001: unknown device: unknown.",
            "visible-devices-uuid-unknown",
        ),
        ("nvidia-container-cli: device error: 3: unknown device: unknown.", "visible-devices-index-out-of-range"),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: driver>=535,driver<536: unknown",
            "require-cuda-unsatisfied",
        ),
        (
            r"requirement error: unsatisfied condition: cuda\u003e=12.6, please update your driver",
            "require-cuda-unsatisfied",
        ),
        ("requirements not met: unsatisfied condition: cuda>=11.4 (cuda=10.2)", "require-cuda-unsatisfied"),
        (
            "mount error: file creation failed: /var/lib/docker/overlay2/a/merged/usr/bin/nvidia-debugdump: file exists: unknown",
            "driver-libs-in-image",
        ),
        (
            "mount error: failed to add device rules: write /sys/fs/cgroup/devices/devices.allow: operation not permitted",
            "no-cgroups-needed-in-lxc",
        ),
        (
            "nvidia-container-cli: ldcache error: process /sbin/ldconfig.real terminated with signal 9: unknown",
            "ldcache-not-updated",
        ),
        (
            "nvidia-container-cli: mount error: stat failed: /proc/driver/nvidia/capabilities/gpu0/mig: no such file or directory",
            "mig-caps-nodes-missing",
        ),
        ("failed to initialize nvml: ERROR_DRIVER_NOT_LOADED", "driver-not-loaded"),
    ]);
    let reading = read("unsatisfied condition: cuda>=12.4, please update your driver");
    assert!(reading.causes[0].why.contains("\"cuda>=12.4\""), "{reading:?}");
    assert!(ids("mount error: the disk is full").is_empty());
    assert!(ids("an unknown device was plugged in").is_empty());
}

#[test]
fn cdi() {
    check(&[
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=0", "cdi-spec-missing"),
        ("failed to stat CDI host device \"/dev/nvidia3\": no such file or directory", "cdi-spec-stale"),
        (
            r#"error mounting "/usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03" to rootfs: no such file or directory"#,
            "cdi-spec-stale",
        ),
        (
            "crun: cannot stat `/usr/lib/libnvidia-egl-gbm.so.1.1.0`: No such file or directory: OCI runtime attempted",
            "cdi-spec-stale",
        ),
        (
            r#"conflicting device "nvidia.com/gpu=0" (specs "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml")"#,
            "cdi-spec-conflict",
        ),
    ]);
    assert!(ids("error mounting \"/data\" to rootfs: no such file or directory").is_empty());
}

#[test]
fn numbers_of_cuda_in_many_forms() {
    check(&[
        (
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices()? Error 803: system has unsupported display driver / cuda driver combination",
            "compat-older-than-driver-wins",
        ),
        ("cuInit failed: 803", "compat-older-than-driver-wins"),
        (
            "E failed call to cuInit: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: forward compatibility was attempted on non supported HW",
            "compat-on-unsupported-gpu",
        ),
        ("CUDA error 222", "ptx-newer-than-driver"),
        (
            "[ONNXRuntimeError] CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=0",
            "framework-cuda-newer-than-driver",
        ),
        (
            "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is insufficient",
            "framework-cuda-newer-than-driver",
        ),
        ("cudaErrorSystemNotReady", "fabric-not-ready"),
        ("CUDA_ERROR_NO_BINARY_FOR_GPU", "framework-lacks-gpu-arch"),
        ("RuntimeError: CUDA error: invalid device ordinal", "cuda-visible-devices-out-of-range"),
        ("cudaErrorStubLibrary", "cuda-stub-loaded"),
        ("RuntimeError: CUDA error: device kernel image is invalid", "fatbin-needs-newer-driver"),
        ("CUDA error: an illegal memory access was encountered", "not-a-gpu-problem"),
        ("cudaErrorInvalidValue: invalid argument", "not-a-gpu-problem"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB", "gpu-memory-occupied"),
        ("CUDA error 214: uncorrectable ECC error encountered", "ecc-uncorrectable"),
    ]);
    assert!(ids("error 404: page of CUDA not here").is_empty());
    assert!(ids("the exit code 35 of my program").is_empty());
}

#[test]
fn cuda_that_does_not_start() {
    for text in [
        "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable",
        "cuInit(0) = 999",
        "cudaErrorUnknown",
        "CUDA_ERROR_UNKNOWN: unknown error",
    ] {
        let reading = read(text);
        assert!(reading.causes.len() >= 5, "{text}: {reading:?}");
        assert!(reading.causes.iter().all(|cause| cause.confidence < Confidence::High), "{text}: {reading:?}");
        assert!(
            ids(text).contains(&"uvm-module-not-loaded") && ids(text).contains(&"uvm-broken-after-resume"),
            "{text}"
        );
    }
    check(&[
        ("CUDA unknown error (nvidia-smi works)", "cdi-spec-lacks-uvm"),
        ("Nov 3 PM: suspend exit\nCUDA_ERROR_UNKNOWN: unknown error", "uvm-broken-after-resume"),
        (
            "[WARN] Kernel module nvidia_uvm is not loaded.\nggml_cuda_init: failed to initialize CUDA: unknown error",
            "uvm-module-not-loaded",
        ),
    ]);
    assert!(ids("an unknown error occurred").is_empty());
}

#[test]
fn nvidia_smi_and_nvml() {
    check(&[
        ("Unable to determine the device handle for GPU0000:41:00.0: Unknown Error", "gpu-fallen-off-bus"),
        (
            "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU",
            "gpu-fallen-off-bus",
        ),
        ("Failed to initialize NVML: Unknown Error", "cgroup-lost-after-daemon-reload"),
        ("pynvml.NVMLError_Unknown: Unknown Error", "cgroup-lost-after-daemon-reload"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
            "driver-module-missing-for-kernel",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", "driver-library-mismatch"),
        ("pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found", "gpu-not-requested"),
        ("| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: N/A |", "capability-compute-missing"),
        ("bash: nvidia-smi: command not found", "gpu-not-requested"),
        (r#"exec: "nvidia-smi": executable file not found in $PATH: unknown."#, "gpu-not-requested"),
        ("sh: nvidia-smi: not found", "musl-image"),
        ("/bin/sh: 1: nvidia-smi: not found", "gpu-not-requested"),
    ]);
    check_among(&[
        ("Failed to initialize NVML: Insufficient Permissions", "node-access-refused"),
        (
            "podman run --device nvidia.com/gpu=all: Failed to initialize NVML: Insufficient Permissions",
            "rootless-group-not-kept",
        ),
    ]);
    assert!(ids("failed to initialize the printer: Unknown Error").is_empty());
    let two = ids("Unable to determine the device handle for GPU 0000:09:00.0: Unknown Error");
    assert!(two.len() >= 4 && two[1] == "one-gpu-unhealthy", "{two:?}");
}

#[test]
fn the_kernels_log() {
    check(&[
        (
            "[12.3] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "gpu-fallen-off-bus",
        ),
        (
            "kernel: NVRM: Xid (PCI:0000:c1:00): 119, pid=4242, name=python3, Timeout after 6s of waiting for RPC response from GPU0 GSP!",
            "gpu-reset-required",
        ),
        ("kernel: NVRM: Xid (PCI:0000:c1:00): 31, pid=4242, Ch 00000008, MMU Fault", "not-a-gpu-problem"),
        ("NVRM: Xid (PCI:0000:c1:00): 64, pid=1, Row Remapper Error", "row-remap-failed"),
        ("modprobe: ERROR: could not insert 'nvidia': Required key not available", "secure-boot-module-rejected"),
        (
            "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-90-generic",
            "driver-module-missing-for-kernel",
        ),
        (
            "NVRM: API mismatch: the client has the version 535.216.01, but\nNVRM: this kernel module has the version 535.183.01.",
            "driver-library-mismatch",
        ),
        ("NVRM: GPU 0000:01:00.0 is already bound to nouveau.", "nouveau-loaded"),
        ("NVRM: installed in this system requires use of the NVIDIA open kernel modules.", "gpu-needs-open-module"),
        ("audit: type=1400 avc:  denied  { read write } for  path=\"/dev/nvidiactl\"", "selinux-denies-device"),
        (
            r#"openat(AT_FDCWD, "/dev/nvidia-uvm", O_RDWR|O_CLOEXEC) = -1 EPERM (Operation not permitted)"#,
            "uvm-major-mismatch",
        ),
    ]);
    assert!(read("NVRM: Xid (PCI:0000:41:00): 109, x").causes[0].why.contains("a context switch timed out"));
    assert_eq!(ids("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14"), ["benign"]);
    assert!(ids("usb 1-2: device not accepting address 79").is_empty());
}

#[test]
fn frameworks() {
    check(&[
        (
            "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
            "gpu-not-requested",
        ),
        (
            "#12 [5/9] RUN python setup.py install\n#12 3.1 RuntimeError: Found no NVIDIA driver on your system.\nERROR: failed to solve: executor failed running",
            "build-time-no-gpu",
        ),
        ("The NVIDIA driver on your system is too old (found version 11040).", "framework-cuda-newer-than-driver"),
        ("RuntimeError: No CUDA GPUs are available", "cuda-visible-devices-out-of-range"),
        (
            "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
            "framework-lacks-gpu-arch",
        ),
        ("FlashAttention only supports Ampere GPUs or newer.", "framework-lacks-gpu-arch"),
        (
            "flash_attn_2_cuda.so: CUDA error: no kernel image is available for execution on the device",
            "extension-lacks-gpu-arch",
        ),
        ("AssertionError: Torch not compiled with CUDA enabled", "framework-is-cpu-build"),
        (
            "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider names.",
            "framework-is-cpu-build",
        ),
        (
            "W Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file",
            "gpu-not-requested",
        ),
        (
            "libcublasLt.so.12: cannot open shared object file: No such file or directory",
            "framework-cuda-library-missing",
        ),
        ("failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "gpu-not-requested"),
        ("Could not find cuda drivers on your machine, GPU will not be used.", "gpu-not-requested"),
        ("ValueError: invalid literal for int() with base 10: 'GPU-6f0d0d0a'", "framework-cannot-parse-uuid"),
        ("[AVHWDeviceContext] Cannot load libnvcuvid.so.1", "capability-video-missing"),
        ("WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.", "gpu-not-requested"),
        (
            "\u{9a71}\u{52a8}\u{7248}\u{672c}\u{8fc7}\u{4f4e}, \u{8bf7}\u{5347}\u{7ea7}",
            "framework-cuda-newer-than-driver",
        ),
        ("\u{5bb9}\u{5668}\u{91cc}\u{627e}\u{4e0d}\u{5230}\u{663e}\u{5361}", "gpu-not-requested"),
        ("msg=\"no compatible GPUs were discovered\"", "gpu-not-requested"),
    ]);
    let model = "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.";
    assert_eq!(&ids(model)[..3], ["gpu-not-requested", "framework-is-cpu-build", "torch-load-map-location"]);
    let reading = read("driver on your system is too old (found version 12080)");
    assert!(reading.causes[0].why.contains("12080"), "{reading:?}");
    assert!(ids("torch is a fine library").is_empty());
}

#[test]
fn platforms() {
    check(&[
        (
            "nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown.",
            "wsl-no-adapter",
        ),
        ("CUDA error: named symbol not found", "wsl-toolkit-too-old-for-driver"),
        (
            "Jetson AGX Orin: invoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus flag) is not supported.",
            "jetson-use-runtime",
        ),
        ("ImportError: libnvrm_gpu.so: cannot open shared object file", "jetson-l4t-mismatch"),
        ("panic: registering nvproxy driver: unsupported Nvidia driver version: 570.1", "gvisor-driver-unsupported"),
        (
            "snap.docker.dockerd: nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file",
            "docker-is-snap",
        ),
        (
            "context desktop-linux: load library failed: libnvidia-ml.so.1: cannot open shared object file",
            "docker-desktop-linux",
        ),
        ("Error loading shared library libcuda.so.1: No such file or directory", "musl-image"),
    ]);
    check_among(&[(
        "toolkit mode is cdi: invoking the NVIDIA Container Runtime Hook directly is not supported",
        "toolkit-mode-conflict",
    )]);
}

#[test]
fn further_wordings() {
    check(&[
        (
            r#"error gathering device information while adding custom device "/dev/nvidia0": no such file or directory"#,
            "device-nodes-not-created-yet",
        ),
        (
            r#"error gathering device information while adding custom device "/dev/nvidia-uvm": no such file or directory"#,
            "uvm-module-not-loaded",
        ),
        ("docker: unknown flag: --gpus", "toolkit-not-installed"),
        ("health: GPU 3 has XID error: 48", "ecc-uncorrectable"),
        (
            "kernel version 550.1 does not match DSO version 535.1 -- cannot find working devices in this configuration",
            "driver-library-mismatch",
        ),
        ("CUDA_VISIBLE_DEVICES is set to -1 - this hides all GPUs from CUDA", "cuda-visible-devices-empty"),
        ("Please make sure to set `CUDA_DEVICE_ORDER=PCI_BUS_ID` to avoid unexpected behavior.", "igpu-dgpu-order"),
        (
            "unknown error initializing cuda driver library: cuda driver library init failure: 999",
            "uvm-module-not-loaded",
        ),
        ("Please install paddlepaddle-gpu: Cannot use CUDAPlace in CPU only version", "framework-is-cpu-build"),
        ("CUBLAS_STATUS_ARCH_MISMATCH", "framework-lacks-gpu-arch"),
        ("Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*", "framework-cuda-library-missing"),
        ("Failed to initialize NVML: GPU access blocked by the operating system", "wsl-toolkit-too-old-for-driver"),
        ("NvRmMemInitNvmap failed with No such file or directory", "jetson-use-runtime"),
        ("failed to generate CDI spec: failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND", "driver-library-missing"),
        ("MIG-enabled GPU: No MIG devices found", "mig-enabled-without-instances"),
    ]);
}
