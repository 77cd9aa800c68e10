//! The container's environment, and which value of `NVIDIA_VISIBLE_DEVICES` counts.

use std::collections::BTreeMap;

use crate::knowledge::visible_devices::{Request, parse};

pub(super) const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// Variables, the last value of each, and what CDI did to them taken back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Environment {
    pub(super) variables: BTreeMap<String, String>,
    /// The value of `NVIDIA_VISIBLE_DEVICES` that counts.
    pub(super) visible: Option<String>,
    /// CDI's own `void` was seen.
    pub(super) cdi_marked: bool,
}

impl Environment {
    /// `injected`: the spec bears marks of a CDI injection, so that a last `void` is CDI's: docker 26 and
    /// podman 5 append it, newer libraries put it in place (measured). Without such marks it is a choice.
    pub(super) fn new(entries: &[(String, String)], injected: bool) -> Self {
        let mut variables: BTreeMap<String, String> = entries.iter().cloned().collect();
        let mut values = entries.iter().filter(|(name, _)| name == VISIBLE_DEVICES).map(|(_, value)| value).rev();
        let last = values.next();
        let cdi_marked = injected && last.is_some_and(|value| is_void(value));
        let visible = if cdi_marked { values.find(|value| !is_void(value)) } else { last }.cloned();
        match &visible {
            Some(value) => variables.insert(VISIBLE_DEVICES.to_owned(), value.clone()),
            None => variables.remove(VISIBLE_DEVICES),
        };
        Self { variables, visible: visible.filter(|value| !is_volume_mounts(value)), cdi_marked }
    }
}

/// A value that asks for something: neither empty nor `none` nor `void`.
pub(super) fn asks(value: &str) -> bool {
    names_devices(value) && parse(value) != Request::None
}

/// A value on which NVIDIA's hook acts: `none` too, for which it injects the driver without a GPU.
pub(super) fn names_devices(value: &str) -> bool {
    !matches!(parse(value), Request::Void | Request::Unset)
}

fn is_void(value: &str) -> bool {
    parse(value) == Request::Void
}

/// The value says that the devices are named by mounts.
pub(super) fn is_volume_mounts(value: &str) -> bool {
    parse(value) == Request::VolumeMounts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str], injected: bool) -> (Option<String>, bool) {
        let entries: Vec<_> = values.iter().map(|v| (VISIBLE_DEVICES.to_owned(), (*v).to_owned())).collect();
        let environment = Environment::new(&entries, injected);
        assert_eq!(environment.variables.get(VISIBLE_DEVICES), environment.visible.as_ref());
        (environment.visible, environment.cdi_marked)
    }

    #[test]
    fn the_last_value_counts_unless_it_is_cdis_own_void() {
        assert_eq!(read(&["all", "0"], false), (Some("0".into()), false));
        assert_eq!(read(&["all", "void"], true), (Some("all".into()), true));
        assert_eq!(read(&["all", "void"], false), (Some("void".into()), false));
        assert_eq!(read(&["void"], true), (None, true));
        assert_eq!(read(&["void"], false), (Some("void".into()), false));
        assert_eq!(read(&["all"], true), (Some("all".into()), false));
        assert_eq!(read(&["0", "1", "void", "void"], true), (Some("1".into()), true));
        assert_eq!(read(&[], true), (None, false));
    }

    #[test]
    fn a_place_of_volume_mounts_is_no_device_list() {
        let entries = [(VISIBLE_DEVICES.to_owned(), "/var/run/nvidia-container-devices".to_owned())];
        assert_eq!(Environment::new(&entries, false).visible, None);
    }

    #[test]
    fn values_that_ask_for_nothing() {
        for value in ["", " ", "void", "none", "0,void", ",", " none ", "none,0"] {
            assert!(!asks(value), "{value:?}");
        }
        for value in ["all", "0", "nonsense", "GPU-1"] {
            assert!(asks(value), "{value:?}");
        }
        assert!(names_devices("none") && !names_devices("void") && !names_devices(" , "));
    }
}
