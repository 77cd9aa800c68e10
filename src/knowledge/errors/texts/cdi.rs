//! What the CDI library, its users and `nvidia-ctk cdi` say. container-device-interface `pkg/cdi`,
//! nvidia-container-toolkit (both as of 2026-08); podman, crun and runc by reports.

use crate::knowledge::errors::{Cause, Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "a CDI specification cannot be made: no NVML",
        tells: &[
            &["failed to generate cdi spec", "library_not_found"],
            &["failed to create device cdi specs", "library_not_found"],
            &["failed to generate cdi spec", "libnvidia-ml"],
            &["failed to generate cdi spec", "no such file"],
        ],
        causes: &[
            high("driver-library-missing", "nvidia-ctk finds no libnvidia-ml: no driver, or under another root."),
            medium("driver-not-loaded", "The driver may not be installed at all."),
            low("jetson-wrong-toolkit-build", "On an older Jetson there is no NVML: use --mode csv."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a CDI device that nobody knows",
        tells: &[&["unresolvable cdi device"], &["cdi", "unresolvable devices"]],
        after: Some("unresolvable cdi devices"),
        refine: Some(by_device),
        ..Text::PLAIN
    },
    Text {
        name: "a file or node of a CDI specification is gone",
        tells: &[
            &["failed to stat cdi host device"],
            &["error stat'ing file", "nvidia"],
            &["error stat'ing file", "libcuda"],
            &["cannot stat", "libcuda.so"],
            &["cannot stat", "nvidia"],
            &["error mounting", "libcuda.so", "no such file"],
            &["error mounting", "libnvidia", "no such file"],
            &["error mounting", "nvidia", "to rootfs", "no such file"],
            &["failed to fulfil mount request", "nvidia"],
            &["statfs", "nvidia", "no such file"],
            &["bind source path does not exist", "nvidia"],
            &["hook", "nvidia-ctk", "no such file"],
            &["hook", "nvidia-cdi-hook", "no such file"],
            &["error executing hook", "nvidia-ctk"],
            &["error executing hook", "nvidia-cdi-hook"],
        ],
        causes: &[
            high("cdi-spec-stale", "The specification was made for another driver version, or for other nodes."),
            medium("device-nodes-not-created-yet", "A node may not have been made since boot."),
            medium("uvm-module-not-loaded", "If it is /dev/nvidia-uvm: its module is not loaded."),
            low("restart-runtime-after-driver-swap", "The engine may hold an older specification in memory."),
            low("nvidia-container-cli-missing", "If it is a hook's program: the toolkit was removed."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "two CDI specifications name one device",
        tells: &[&["conflicting device", "nvidia.com"], &["cdi", "conflict", "nvidia.com/gpu"]],
        causes: &[
            high("cdi-spec-conflict", "Two files of the same priority name the same device."),
            low("cdi-spec-stale", "One of the two is usually an old one."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a CDI specification that the engine cannot read",
        tells: &[
            &["failed to load cdi spec"],
            &["cdi", "unknown field"],
            &["cdi", "invalid version"],
            &["cdi", "unsupported version"],
            &["cdi spec", "failed to parse"],
            &["unknown field \"hostpath\""],
            &["unknown field \"additionalgids\""],
            &["unknown field \"intelrdt\""],
            &["cdi", "version must be at least"],
            &["cdi", "spec version", "not supported"],
        ],
        causes: &[
            high(
                "cdi-spec-too-new",
                "The engine's CDI library is older than the specification: a field or version that it does not know drops the whole file.",
            ),
            medium("cdi-spec-missing", "A dropped file is as none."),
            low("cdi-spec-stale", "It may also be damaged; make it anew."),
        ],
        ..Text::PLAIN
    },
    Text {
        name: "a CDI specification cannot be made now",
        tells: &[
            &["failed to generate cdi spec", "driver not loaded"],
            &["failed to create device cdi specs", "driver not loaded"],
            &["nvidia-cdi-refresh", "fail"],
            &["failed to generate cdi spec", "failed to initialize nvml"],
        ],
        causes: &[
            high("cdi-spec-not-generated-at-boot", "It was tried before the driver was loaded; nothing tries again."),
            medium("driver-not-loaded", "The driver may not be loaded now either."),
            low("driver-library-mismatch", "Library and module may differ."),
        ],
        ..Text::PLAIN
    },
];

const UNKNOWN: &[Cause] = &[
    medium("cdi-spec-missing", "No specification names {found}: perhaps none was ever made."),
    medium(
        "cdi-spec-dir-not-searched",
        "There may be one in a directory that this engine does not read, such as /run/cdi.",
    ),
    medium("cdi-spec-stale", "One made before a change of MIG or of the driver lacks devices of today."),
    low("cdi-spec-not-generated-at-boot", "/var/run/cdi is empty after boot until the specification is made again."),
    low("cdi-spec-conflict", "A device that two files name equally counts as none."),
];
const NUMBER: &[Cause] = &[
    medium("cdi-spec-missing", "No specification names {found}: perhaps none was ever made."),
    medium("visible-devices-index-out-of-range", "If gpu=all works: the machine has no GPU of this number."),
    medium("cdi-spec-stale", "One made before a change of GPUs, of MIG or of the driver lacks devices of today."),
    low("cdi-spec-dir-not-searched", "Or it lies in a directory that this engine does not read."),
];
const NAME: &[Cause] = &[
    medium(
        "cdi-spec-missing",
        "No specification names {found}: perhaps none was ever made, or it names GPUs by number only.",
    ),
    medium("cdi-spec-stale", "One made before a change of GPUs or of MIG lacks devices of today."),
    medium("visible-devices-uuid-unknown", "If gpu=all works: the machine has no GPU of this UUID."),
    low("cdi-spec-dir-not-searched", "Or it lies in a directory that this engine does not read."),
];

/// `gpu=all` and `gpu=0` are there with every specification; of other names it may be the name.
fn by_device(line: &str) -> Option<&'static [Cause]> {
    let name = line.split_once("nvidia.com/gpu=").map_or("", |(_, name)| name);
    let causes = match name.as_bytes() {
        [b'1'..=b'9', ..] => NUMBER,
        [b'g', b'p', b'u', b'-', ..] | [b'm', b'i', b'g', b'-', ..] => NAME,
        _ => UNKNOWN,
    };
    line.contains("unresolvable").then_some(causes)
}
