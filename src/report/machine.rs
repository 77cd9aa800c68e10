//! A machine in a few words.

use std::collections::BTreeMap;

use super::text::shown;
use crate::model::observed::NOT_STATED;
use crate::model::{Host, Observed};

/// `550.163.01`, `not loaded`, `not stated`.
pub fn driver(host: &Host) -> String {
    match &host.driver.version {
        Observed::Known(Some(version)) => version.to_string(),
        Observed::Known(None) => "not loaded".to_owned(),
        Observed::Unknown(unknown) => unseen(&unknown.reason),
    }
}

/// `2 x NVIDIA H100 80GB HBM3`, `none`, `not stated`.
pub fn gpus(host: &Host) -> String {
    let gpus = match &host.gpus {
        Observed::Known(gpus) => gpus,
        Observed::Unknown(unknown) => return unseen(&unknown.reason),
    };
    if gpus.is_empty() {
        // a GPU on the bus that no driver knows is one
        return match host.pci.seen().map(Vec::len) {
            None | Some(0) => "none".to_owned(),
            Some(n) => format!("{n} on the bus"),
        };
    }
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for gpu in gpus {
        let kind = match (&gpu.name, gpu.compute_capability) {
            (Some(name), _) => shown(name),
            (None, Some(capability)) => format!("sm_{}{}", capability.major, capability.minor),
            (None, None) => "GPU".to_owned(),
        };
        *kinds.entry(kind).or_default() += 1;
    }
    let said = kinds.into_iter().map(|(kind, n)| if n == 1 { kind } else { format!("{n} x {kind}") });
    said.collect::<Vec<_>>().join(", ")
}

fn unseen(reason: &str) -> String {
    if reason == NOT_STATED { NOT_STATED.to_owned() } else { "unknown".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ComputeCapability;
    use crate::model::host::{Gpu, PciFunction};

    #[test]
    fn gpus_are_counted_by_kind() {
        let gpu = |name: Option<&str>, capability| Gpu {
            name: name.map(str::to_owned),
            compute_capability: capability,
            ..Gpu::default()
        };
        let mut host = Host::default();
        assert_eq!(gpus(&host), "none");
        host.pci = Observed::Known(vec![PciFunction {
            address: "0000:01:00.0".into(),
            device: 0x2330,
            driver: None,
            virtual_function: false,
        }]);
        assert_eq!(gpus(&host), "1 on the bus");
        host.gpus = Observed::Known(vec![gpu(Some("H100"), None), gpu(Some("A\u{1b}"), None), gpu(Some("H100"), None)]);
        assert_eq!(gpus(&host), "\"A\\u{1b}\", 2 x H100");
        host.gpus = Observed::Known(vec![gpu(None, Some(ComputeCapability::new(9, 0)))]);
        assert_eq!(gpus(&host), "sm_90");
        let stated = Host::unseen("the command line", NOT_STATED);
        assert_eq!((gpus(&stated), driver(&stated)), (NOT_STATED.to_owned(), NOT_STATED.to_owned()));
        let read = Host::unseen("a.json", "the profile does not tell it");
        assert_eq!((gpus(&read), driver(&read)), ("unknown".to_owned(), "unknown".to_owned()));
        assert_eq!(driver(&Host::default()), "not loaded");
    }
}
