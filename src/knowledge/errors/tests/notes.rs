//! What is harmless, what is another program's, and what stands among much else, in wordings of public reports (read
//! 2026-11).

use super::{ids, read};

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
