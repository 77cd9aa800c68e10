//! What the entry points of NVIDIA's images say before their program starts, and RAPIDS, Warp and Numba of the
//! driver's version, by reports.

use crate::knowledge::errors::{Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "NGC's entry point says that there is no driver",
        tells: &[
            &["the nvidia driver was not detected"],
            &["gpu functionality will not be available"],
            &["use the nvidia container toolkit to start this container with gpu support"],
            &["use 'nvidia-docker run' to start this container"],
        ],
        unless: &["driver is present", "cuda failed to initialize"],
        causes: &[
            high(
                "gpu-not-requested",
                "The image's own entry point finds no driver: the container was started without a GPU.",
            ),
            medium("toolkit-not-installed", "Or nothing on the machine could hand one over."),
            low("driver-not-loaded", "Or the host's driver is not loaded."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NGC's entry point: CUDA does not start",
        tells: &[&["the nvidia driver is present, but cuda failed to initialize"]],
        general: true,
        causes: &[
            medium(
                "compat-older-than-driver-wins",
                "The next line has CUDA's own error: 803 is an older libcuda in use.",
            ),
            medium("compat-on-unsupported-gpu", "804 is forward compatibility on a GPU that does not allow it."),
            medium("uvm-node-missing", "Unknown error or no device: /dev/nvidia-uvm may not be there."),
            low("fabric-not-ready", "802 is an NVSwitch machine whose Fabric Manager is not done."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NGC's entry point: the driver is too old, and compat does not help",
        tells: &[
            &["compatibility mode is unavailable"],
            &["cuda driver", "compat", "unavailable"],
            &["cuda compatibility mode", "fail"],
        ],
        causes: &[
            high(
                "framework-cuda-newer-than-driver",
                "The image is built for a newer driver, and runs on this one only by compatibility.",
            ),
            medium("compat-on-unsupported-gpu", "Its compat libraries do not work on this GPU."),
            low("compat-not-enabled-by-toolkit", "Or they were not put first."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "NGC's entry point on forward compatibility",
        tells: &[
            &["failed to detect cuda compatibility"],
            &["this container was built for nvidia driver release"],
            &["cuda compatibility mode is enabled"],
            &["forward compatibility mode enabled"],
        ],
        unless: &["is unavailable"],
        causes: &[
            medium(
                "compat-in-use",
                "The image's CUDA is newer than the host's driver, and its compat libraries are to help.",
            ),
            medium(
                "compat-not-enabled-by-toolkit",
                "They do so only where the toolkit or the entry point puts them first.",
            ),
            medium("framework-cuda-newer-than-driver", "Without them the driver is too old for it."),
            low("compat-on-unsupported-gpu", "On a GeForce they do not work."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "RAPIDS, Warp or Numba on the driver's version",
        tells: &[
            &["this cuda toolkit requires driver"],
            &["minimum required driver version"],
            &["cuda driver version", "is older than", "required"],
            &["numba", "cuda driver", "not supported"],
            &["requires cuda driver version"],
            &["driver too old"],
            &["driver version is too old"],
            &["\u{9a71}\u{52a8}\u{7248}\u{672c}\u{8fc7}\u{4f4e}"],
            &["\u{9a71}\u{52a8}\u{7248}\u{672c}\u{592a}\u{4f4e}"],
            &["\u{9a71}\u{52a8}\u{592a}\u{65e7}"],
            &["only supports nvidia drivers"],
            &["libcuda.so", "undefined symbol: cu"],
            &["symbol lookup for cu", "failed"],
        ],
        pairs: &[(
            &["nvidia driver", "cuda driver", "gpu driver", "graphics driver", "\u{9a71}\u{52a8}"],
            &[
                "too old",
                "outdated",
                "older than",
                "upgrade your driver",
                "update your driver",
                "newer driver",
                "\u{8fc7}\u{4f4e}",
                "\u{592a}\u{4f4e}",
                "\u{592a}\u{65e7}",
                "\u{8fc7}\u{65e7}",
                "\u{5347}\u{7ea7}",
            ],
        )],
        unless: &[
            "requirement error",
            "unsatisfied condition",
            "nvenc",
            "fabric",
            "chromedriver",
            "webdriver",
            "the minimum required nvidia driver",
        ],
        causes: &[
            high("framework-cuda-newer-than-driver", "The program says that the driver is too old for its CUDA."),
            medium("cuda-newer-than-driver", "As the image's CUDA as a whole may be."),
            low("compat-older-than-driver-wins", "An old libcuda in the image makes any driver look old."),
        ],
        ..Text::PLAIN
    },
];
