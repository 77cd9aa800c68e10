//! Devices that `nvidia-container-cli` does not know: which kind of name it was decides.

use crate::knowledge::errors::{Cause, Text, high, low, medium};

pub(super) const TEXTS: &[Text] = &[Text {
    name: "nvidia-container-cli: unknown device",
    tells: &[&["device error", "unknown device"], &["unknown device id"]],
    refine: Some(by_name),
    ..Text::PLAIN
}];

const INDEX: &[Cause] = &[
    high(
        "visible-devices-index-out-of-range",
        "An index was asked for that this machine, or this job's share of it, does not have.",
    ),
    medium(
        "cuda-visible-devices-out-of-range",
        "Schedulers number the GPUs of a job anew, and a list of the machine's numbers is left.",
    ),
    low("gpu-failed-to-initialise", "The GPU may be there and not run by the driver."),
];
const UUID: &[Cause] = &[
    high(
        "visible-devices-uuid-unknown",
        "A UUID was asked for that is not here: another machine's, or a MIG instance made anew since.",
    ),
    medium("gpu-fallen-off-bus", "The GPU may be gone from the bus."),
    low("mig-old-style-name", "Drivers from 470 on name MIG devices by a UUID of their own."),
];
const OLD_MIG: &[Cause] = &[
    high("mig-old-style-name", "MIG-GPU-.../gi/ci is the name that drivers before 470 used; now it is MIG-<uuid>."),
    medium("visible-devices-uuid-unknown", "The instance may also be gone."),
];
const MOUNTS: &[Cause] = &[
    high(
        "volume-mount-device-list-not-accepted",
        "The device plugin hands GPUs over as mounts, and the toolkit is not set to accept that.",
    ),
    medium("visible-devices-not-a-device", "For the toolkit the value is a path, no device."),
];
const WORD: &[Cause] = &[
    high("visible-devices-not-a-device", "NVIDIA_VISIBLE_DEVICES has a word that is no index, UUID or PCI address."),
    low("visible-devices-index-out-of-range", "It may be an index in an unusual form."),
];

/// `device error: false: unknown device`, and before 1.0.6 `device error: unknown device id: false`.
fn by_name(line: &str) -> Option<&'static [Cause]> {
    let (_, rest) = line.split_once("device error: ")?;
    let name = match rest.split_once("unknown device id: ") {
        Some((_, name)) => name,
        None => rest.split_once(": unknown device").map_or(rest, |(name, _)| name),
    };
    let name = name.split([' ', '"']).next().unwrap_or_default();
    let name = name.strip_suffix(": unknown").unwrap_or(name).trim_end_matches([':', '.', ',']);
    Some(if name.starts_with("mig-gpu-") {
        OLD_MIG
    } else if name.starts_with("gpu-") || name.starts_with("mig-") {
        UUID
    } else if name.contains("nvidia-container-devices") {
        MOUNTS
    } else if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit() || b == b':' || b == b',') {
        INDEX
    } else {
        WORD
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_name_decides() {
        for (name, id) in [
            ("7", "visible-devices-index-out-of-range"),
            ("gpu-6f0d0d0a-0000-4000-8000-000000000001", "visible-devices-uuid-unknown"),
            ("mig-gpu-6f0d0d0a-0000-4000-8000-000000000001/3/0", "mig-old-style-name"),
            ("/var/run/nvidia-container-devices", "volume-mount-device-list-not-accepted"),
            ("no-gpu", "visible-devices-not-a-device"),
        ] {
            for line in [
                format!("nvidia-container-cli: device error: {name}: unknown device: unknown."),
                format!("device error: unknown device id: {name} "),
            ] {
                assert_eq!(by_name(&line).map(|causes| causes[0].id), Some(id), "{line}");
            }
        }
        assert!(by_name("another unknown device").is_none());
    }
}
