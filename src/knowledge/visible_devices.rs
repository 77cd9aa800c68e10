//! `NVIDIA_VISIBLE_DEVICES`: which GPUs a container asks for, as NVIDIA's legacy tools read it.
//!
//! The words come from the NVIDIA Container Toolkit (`internal/config/image`, d34b3046, 2026-08-21):
//! a comma list, blanks trimmed, empty items dropped, `void` before `none` before `all`. The items are
//! matched by `nvidia-container-cli` (libnvidia-container `src/cli/common.c`, 1aea9873): whole UUIDs in
//! any case, PCI addresses with a domain of any length, indices, `GPU:MIG`, MIG names.

use std::fmt;

use crate::model::host::Gpu;

/// The value of the device plugin's volume-mount strategy: the list is in mounts below this directory.
pub const VOLUME_MOUNTS: &str = "/var/run/nvidia-container-devices";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// `all`
    All,
    /// `none`: the driver's files and control nodes, no GPU.
    None,
    /// `void`: nothing at all.
    Void,
    /// Empty: nothing at all.
    Unset,
    /// The directory of the volume-mount strategy: the list is elsewhere.
    VolumeMounts,
    /// Single devices.
    List(Vec<Item>),
}

/// One device of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Place in the order of PCI addresses. What is too large for any machine is `u32::MAX`.
    Index(u32),
    /// `GPU-…`
    Uuid(String),
    /// `0000:65:00.0`, domain of any length.
    Pci(String),
    /// `GPU:MIG`, both counted from 0.
    Mig {
        /// Index of the GPU.
        gpu: u32,
        /// Index of the MIG device on it.
        instance: u32,
    },
    /// `MIG-<uuid>`
    MigUuid(String),
    /// `MIG-GPU-<uuid>/<GPU instance>/<compute instance>`, the name before driver 470.
    MigOldName(String),
    /// `vendor/class=name`
    Cdi(String),
    /// Nothing that the tools would take.
    Other(String),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Mig { gpu, instance } => write!(f, "{gpu}:{instance}"),
            Self::Uuid(text)
            | Self::Pci(text)
            | Self::MigUuid(text)
            | Self::MigOldName(text)
            | Self::Cdi(text)
            | Self::Other(text) => f.write_str(text),
        }
    }
}

/// What a request comes to on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Indices of the GPUs, in the machine's order, each once.
    pub gpus: Vec<u32>,
    /// Items that match no GPU, for certain.
    pub unmatched: Vec<Item>,
    /// Items of which these facts do not tell: MIG devices, CDI names, UUIDs where one was not read.
    pub open: Vec<Item>,
}

/// Reads a value.
pub fn parse(value: &str) -> Request {
    let words: Vec<&str> = value.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
    if words.is_empty() {
        Request::Unset
    } else if words.contains(&"void") {
        Request::Void
    } else if words.contains(&"none") {
        Request::None
    } else if words.iter().any(|w| w.eq_ignore_ascii_case("all")) {
        Request::All
    } else if words.iter().all(|w| w.trim_end_matches('/') == VOLUME_MOUNTS) {
        Request::VolumeMounts
    } else {
        Request::List(words.into_iter().map(item).collect())
    }
}

/// Reads one word of the list.
pub fn item(word: &str) -> Item {
    let starts = |prefix: &str| word.get(..prefix.len()).is_some_and(|s| s.eq_ignore_ascii_case(prefix));
    let text = || word.to_owned();
    if starts("MIG-GPU-") && word.len() > "MIG-GPU-".len() {
        Item::MigOldName(text())
    } else if starts("MIG-") && word.len() > "MIG-".len() {
        Item::MigUuid(text())
    } else if starts("GPU-") && word.len() > "GPU-".len() {
        Item::Uuid(text())
    } else if pci(word).is_some() {
        Item::Pci(text())
    } else if let Some(index) = index(word) {
        Item::Index(index)
    } else if let Some((Some(gpu), Some(instance))) = word.split_once(':').map(|(g, i)| (index(g), index(i))) {
        Item::Mig { gpu, instance }
    } else if is_cdi_name(word) {
        Item::Cdi(text())
    } else {
        Item::Other(text())
    }
}

/// What the request comes to on a machine with these GPUs, in the order of their PCI addresses.
/// GPUs that the driver was told to leave alone do not count.
pub fn select(request: &Request, gpus: &[Gpu]) -> Selection {
    let usable: Vec<&Gpu> = gpus.iter().filter(|g| !g.excluded).collect();
    let mut selection = Selection::default();
    let list = match request {
        Request::All => {
            selection.gpus = usable.iter().map(|g| g.index).collect();
            return selection;
        }
        Request::List(list) => list,
        Request::None | Request::Void | Request::Unset | Request::VolumeMounts => return selection,
    };
    for item in list {
        let at = |place: u32| usable.get(usize::try_from(place).unwrap_or(usize::MAX)).copied();
        let found = match item {
            Item::Index(place) => at(*place),
            Item::Uuid(uuid) => {
                usable.iter().copied().find(|g| g.uuid.as_deref().is_some_and(|u| u.eq_ignore_ascii_case(uuid)))
            }
            Item::Pci(address) => usable.iter().copied().find(|g| pci(&g.pci) == pci(address)),
            Item::Mig { gpu, .. } if at(*gpu).is_none() => None,
            Item::Mig { .. } | Item::MigUuid(_) | Item::MigOldName(_) | Item::Cdi(_) => {
                selection.open.push(item.clone());
                continue;
            }
            Item::Other(_) => None,
        };
        match found {
            Some(gpu) if selection.gpus.contains(&gpu.index) => {}
            Some(gpu) => selection.gpus.push(gpu.index),
            None if matches!(item, Item::Uuid(_)) && usable.iter().any(|g| g.uuid.is_none()) => {
                selection.open.push(item.clone());
            }
            None => selection.unmatched.push(item.clone()),
        }
    }
    selection.gpus.sort_unstable();
    selection
}

/// Domain, bus and device: the function is always 0, and the tool reads no further.
fn pci(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.splitn(3, ':');
    let domain = parts.next().filter(|p| (1..=8).contains(&p.len()))?;
    let bus = parts.next().filter(|p| (1..=2).contains(&p.len()))?;
    let device = parts.next()?.split('.').next().filter(|p| (1..=2).contains(&p.len()))?;
    let hex = |digits: &str| {
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    Some((hex(domain)?, hex(bus)?, hex(device)?))
}

/// A number as C's `strtoumax` reads it, as far as anybody writes it: digits.
fn index(word: &str) -> Option<u32> {
    (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.parse().unwrap_or(u32::MAX))
}

/// `vendor/class=name` of the Container Device Interface (SPEC.md 1.1.0, 2026-08-21).
fn is_cdi_name(word: &str) -> bool {
    let part = |text: &str, more: &str| {
        text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || more.bytes().any(|m| m == b))
    };
    word.split_once('=').is_some_and(|(kind, name)| {
        part(name, "_-.:")
            && kind.split_once('/').is_some_and(|(vendor, class)| part(vendor, "_-.") && part(class, "_-."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn machine(gpus: u32) -> Vec<Gpu> {
        (0..gpus)
            .map(|n| Gpu {
                index: n,
                pci: format!("0000:{:02x}:00.0", 0x65 + n),
                uuid: Some(format!("GPU-0000000{n}-0000-4000-8000-000000000001")),
                ..Gpu::default()
            })
            .collect()
    }

    #[test]
    fn the_words_that_are_no_devices() {
        for (value, request) in [
            ("", Request::Unset),
            (" , ,", Request::Unset),
            ("all", Request::All),
            ("0,ALL", Request::All),
            ("none", Request::None),
            ("0,void", Request::Void),
            ("/var/run/nvidia-container-devices", Request::VolumeMounts),
        ] {
            assert_eq!(parse(value), request, "{value:?}");
        }
    }

    #[test]
    fn every_form_of_a_device_is_recognised() {
        let old = "MIG-GPU-0000000a-0000-4000-8000-000000000001/1/0";
        for (word, expected) in [
            ("0", Item::Index(0)),
            ("99999999999", Item::Index(u32::MAX)),
            ("gpu-0A", Item::Uuid("gpu-0A".into())),
            ("0000:65:00.0", Item::Pci("0000:65:00.0".into())),
            ("00000000:65:00.0", Item::Pci("00000000:65:00.0".into())),
            ("0:1", Item::Mig { gpu: 0, instance: 1 }),
            ("MIG-0000000b-0000", Item::MigUuid("MIG-0000000b-0000".into())),
            (old, Item::MigOldName(old.into())),
            ("nvidia.com/gpu=all", Item::Cdi("nvidia.com/gpu=all".into())),
            ("nvidia.com/gpu=0:1", Item::Cdi("nvidia.com/gpu=0:1".into())),
            ("false", Item::Other("false".into())),
            ("no-gpu-has-10MiB-to-run", Item::Other("no-gpu-has-10MiB-to-run".into())),
            ("None", Item::Other("None".into())),
            ("0-3", Item::Other("0-3".into())),
            ("GPU-", Item::Other("GPU-".into())),
            ("-1", Item::Other("-1".into())),
        ] {
            assert_eq!(item(word), expected, "{word:?}");
        }
    }

    #[test]
    fn a_list_selects_by_index_uuid_and_address_each_once() {
        let gpus = machine(3);
        let request = parse(" 2, gpu-00000000-0000-4000-8000-000000000001 ,,0000:65:00.0,00000000:66:00.0");
        assert_eq!(select(&request, &gpus), Selection { gpus: vec![0, 1, 2], ..Selection::default() });
        assert_eq!(select(&Request::All, &gpus).gpus, [0, 1, 2]);
        assert_eq!(select(&Request::Void, &gpus), Selection::default());
    }

    #[test]
    fn what_matches_nothing_is_named_and_what_nobody_can_tell_stays_open() {
        let mut gpus = machine(1);
        let request = parse("1,GPU-ff,3:0,MIG-0a,0:1");
        let selection = select(&request, &gpus);
        assert_eq!(
            selection.unmatched,
            [Item::Index(1), Item::Uuid("GPU-ff".into()), Item::Mig { gpu: 3, instance: 0 }]
        );
        assert_eq!(selection.open, [Item::MigUuid("MIG-0a".into()), Item::Mig { gpu: 0, instance: 1 }]);
        gpus[0].uuid = None;
        assert_eq!(select(&parse("GPU-ff"), &gpus).open, [Item::Uuid("GPU-ff".into())]);
    }

    #[test]
    fn excluded_gpus_have_no_index() {
        let mut gpus = machine(2);
        gpus[0].excluded = true;
        assert_eq!(select(&parse("0,1"), &gpus).gpus, [1]);
        assert_eq!(select(&parse("0,1"), &gpus).unmatched, [Item::Index(1)]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(value in "\\PC{0,60}") {
            let request = parse(&value);
            let _ = select(&request, &machine(2));
        }

        #[test]
        fn an_index_is_found_exactly_where_a_gpu_has_it(index in 0u32..20, gpus in 0u32..10) {
            let selection = select(&parse(&index.to_string()), &machine(gpus));
            prop_assert_eq!(selection.gpus.contains(&index), index < gpus);
            prop_assert_eq!(selection.unmatched.is_empty(), index < gpus);
        }
    }
}
