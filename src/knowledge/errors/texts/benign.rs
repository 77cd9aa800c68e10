//! Texts that look like errors, or stand beside them, and need nothing done.

use crate::knowledge::errors::{Cause, Text, high};

const fn benign(name: &'static str, tells: &'static [&'static [&'static str]], causes: &'static [Cause]) -> Text {
    Text { name, tells, causes, ..Text::PLAIN }
}

pub(super) const TEXTS: &[Text] = &[
    benign(
        "TensorFlow: NUMA node",
        &[
            &["successful numa node read from sysfs had negative value (-1)"],
            &["could not open file to read numa node"],
            &["your kernel may have been built without numa support"],
        ],
        &[high("benign", "TensorFlow found no NUMA node for the GPU and takes node 0. It works.")],
    ),
    benign(
        "oneDNN and CPU features",
        &[
            &["onednn custom operations are on"],
            &["this tensorflow binary is optimized"],
            &["your cpu supports instructions"],
            &["to enable the following instructions"],
            &["rebuild tensorflow with the appropriate compiler flags"],
        ],
        &[high("benign", "A note about the processor's instructions. It says nothing of GPUs.")],
    ),
    benign(
        "double registration in TensorFlow",
        &[
            &["unable to register cudnn factory"],
            &["unable to register cufft factory"],
            &["unable to register cublas factory"],
            &["computation placer already registered"],
            &["all log messages before absl::initializelog()"],
        ],
        &[high("benign", "TensorFlow and JAX register these twice. It works.")],
    ),
    benign(
        "TensorRT is optional",
        &[
            &["tf-trt warning: could not find tensorrt"],
            &["could not find tensorrt"],
            &["could not load dynamic library 'libnvinfer"],
        ],
        &[high("benign", "TensorRT is not installed, and is not needed.")],
    ),
    benign(
        "the container's name",
        &[&["failed to detect the name of this container"]],
        &[high("benign", "A note of a program about its own surroundings.")],
    ),
    benign(
        "the banner of NVIDIA's images",
        &[
            &["== cuda =="],
            &["== pytorch =="],
            &["container image copyright (c)"],
            &["this container image and its contents are governed by the nvidia"],
            &["various files include modifications (c) nvidia"],
            &["nvidia deep learning container license"],
            &["== triton inference server =="],
            &["== tensorflow =="],
        ],
        &[high("benign", "The banner of NVIDIA's images. It is no error.")],
    ),
    benign(
        "persistence mode",
        &[&["persistence mode is off"], &["persistence mode is disabled"], &["persistence mode is not enabled"]],
        &[high("benign", "Without persistence mode GPUs take longer to start. They work.")],
    ),
    benign(
        "nvidia-smi's list of processes",
        &[&["no running processes found"]],
        &[high("benign", "nvidia-smi shows no process; in a container it never does.")],
    ),
    benign(
        "sound",
        &[&["alsa lib"], &["cannot connect to server socket", "jack"], &["jack server is not running"]],
        &[high("benign", "A program finds no sound device in the container. It has no part in a GPU's trouble.")],
    ),
    benign(
        "the kernel's remark on a module from outside",
        &[
            &["module verification failed: signature and/or required key missing - tainting kernel"],
            &["module license 'nvidia' taints kernel"],
            &["loading out-of-tree module taints kernel"],
            &["nvrm: loading nvidia unix"],
            &["nvlink core is being initialized"],
            &["[nvidia-drm]", "loading driver"],
            &["nvidia-uvm: loaded the uvm driver"],
        ],
        &[high("benign", "The kernel notes that the driver is not part of it. The module is loaded all the same.")],
    ),
    benign(
        "the toolkit's mode",
        &[&["auto-detected mode as 'legacy'"], &["auto-detected mode as \"legacy\""], &["using requested mode"]],
        &[high(
            "benign",
            "The toolkit says in which mode it works. The error, if there is one, stands in the next line.",
        )],
    ),
    benign(
        "PyTorch's and others' notes",
        &[
            &["nested_tensor from", "prototype stage"],
            &["torch.nn.utils.weight_norm is deprecated"],
            &["does not have profile information", "nvfuser"],
            &["futurewarning: you are using `torch.load` with `weights_only=false`"],
            &["tokenizers", "parallelism has already been used"],
            &["can't find any nvidia gpu for xpu"],
            &["xformers is not available"],
            &["triton is not available"],
            &["pynvml package is deprecated"],
            &["nccl version", "+cuda"],
            &["nccl info"],
            &["torch_cuda_arch_list is not set"],
            &["some nodes were not assigned to the preferred execution providers"],
            &["xnnpack delegate for cpu"],
            &["mixed precision compatibility check"],
            &["cannot use flashattention-2 backend"],
            &["using flash attention backend"],
            &["automatically detected platform cuda"],
            &["please note: device:", "driver api version"],
            &["device:", "cudnn version:"],
            &["unable to initialize backend 'rocm'"],
            &["unable to initialize backend 'tpu"],
            &["unable to initialize backend 'interpreter'"],
            &["unable to initialize backend 'plugin'"],
            &["libtpu.so"],
        ],
        &[high("benign", "A note of the framework. It needs nothing done.")],
    ),
    benign(
        "XLA devices and memory growth",
        &[
            &["created device /job:localhost"],
            &["disabling mlir graph optimization passes"],
            &["xla service", "initialized for platform cuda"],
            &["loaded cudnn version"],
            &["compiled cluster using xla"],
            &["stream executor device"],
            &["successfully opened dynamic library"],
        ],
        &[high("benign", "TensorFlow and XLA say that they found the GPU and its libraries.")],
    ),
    benign(
        "llama.cpp and Ollama found their devices",
        &[
            &["ggml_cuda_init: ggml_cuda_force_mmq"],
            &["ggml_cuda_init: ggml_cuda_force_cublas"],
            &["ggml_cuda_init: found", "cuda devices"],
            &["compute capability", "vmm:"],
            &["msg=\"inference compute\"", "library=cuda"],
            &["wrong elf class: elfclass32"],
        ],
        &[high("benign", "llama.cpp or Ollama says what it found.")],
    ),
];
