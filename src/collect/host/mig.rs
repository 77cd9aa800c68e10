//! MIG's instances, as the driver's capability files show them.

use std::collections::BTreeMap;

use super::look::{exists, fact, names, short};
use crate::collect::tree::Tree;
use crate::model::host::Driver;
use crate::model::{Observed, Unseen};

/// The first driver branch with MIG. It makes the directory when it is loaded.
const FIRST: u32 = 450;
const CAPABILITIES: &str = "/proc/driver/nvidia/capabilities";
/// A GPU has at most 7 instances of 7 compute instances each.
const LIMIT: usize = 1024;

/// The minor of each instance's capability node, by its path below `/proc/driver/nvidia/capabilities`
/// (`gpu0/mig/gi1`, `gpu0/mig/gi1/ci0`); empty: there are no instances.
pub fn mig_capabilities(tree: &Tree, driver: &Driver) -> Observed<BTreeMap<String, u32>> {
    fact("host.mig_capabilities", read(tree, driver))
}

fn read(tree: &Tree, driver: &Driver) -> Result<BTreeMap<String, u32>, Unseen> {
    let loaded = driver.version.seen().and_then(Option::as_ref);
    if loaded.is_some_and(|version| version.number(0) >= FIRST) && !exists(tree, CAPABILITIES)? {
        return Err(Unseen::new(CAPABILITIES, "absent, though nvidia is loaded"));
    }
    let mut found = BTreeMap::new();
    for gpu in numbered(tree, "", "gpu")? {
        for gpu_instance in numbered(tree, &format!("{gpu}/mig"), "gi")? {
            for compute_instance in numbered(tree, &gpu_instance, "ci")? {
                add(tree, compute_instance, &mut found)?;
            }
            add(tree, gpu_instance, &mut found)?;
        }
    }
    Ok(found)
}

/// The directories with a prefix and a number below one of the capabilities'.
fn numbered(tree: &Tree, below: &str, prefix: &str) -> Result<Vec<String>, Unseen> {
    let is_one = |name: &String| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let names = names(tree, &format!("{CAPABILITIES}/{below}"), LIMIT)?;
    let path = |name: String| if below.is_empty() { name } else { format!("{below}/{name}") };
    Ok(names.into_iter().filter(is_one).map(path).collect())
}

/// `DeviceFileMinor: 21` in a file `access`.
fn add(tree: &Tree, path: String, found: &mut BTreeMap<String, u32>) -> Result<(), Unseen> {
    let text = short(tree, &format!("{CAPABILITIES}/{path}/access"))?.unwrap_or_default();
    let minor = text.lines().find_map(|line| line.strip_prefix("DeviceFileMinor:")?.trim().parse().ok());
    found.extend(minor.map(|minor| (path, minor)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn instances_are_found_with_their_minors() {
        let access = "DeviceFileMinor: 21\nDeviceFileMode: 292\nDeviceFileModify: 1\n";
        let laid = Laid::out(&[
            ("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", access),
            ("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 22\n"),
            ("/proc/driver/nvidia/capabilities/mig/config", "DeviceFileMinor: 1\n"),
            ("/proc/driver/nvidia/capabilities/gpu1/mig/gix/access", access),
        ]);
        let none = Driver::default();
        let driver = Driver { version: Observed::Known(Some("550.163.01".parse().unwrap())), ..Driver::default() };
        let expected = [("gpu0/mig/gi1".to_owned(), 21), ("gpu0/mig/gi1/ci0".to_owned(), 22)];
        assert_eq!(mig_capabilities(&laid.tree(), &driver), Observed::Known(expected.into()));
        let bare = Laid::out(&[]);
        assert_eq!(mig_capabilities(&bare.tree(), &none), Observed::Known(BTreeMap::new()));
        assert!(mig_capabilities(&bare.tree(), &driver).known().is_err());
        bare.directory(CAPABILITIES);
        assert_eq!(mig_capabilities(&bare.tree(), &driver), Observed::Known(BTreeMap::new()));
    }
}
