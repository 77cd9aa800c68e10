//! NVIDIA's display and 3D functions on the PCI bus, as sysfs shows them: no GPU is woken.

use super::look::{exists, fact, names_if_there, short};
use crate::collect::tree::Tree;
use crate::model::host::PciFunction;
use crate::model::{Observed, Unseen};

const DEVICES: &str = "/sys/bus/pci/devices";
const LIMIT: usize = 1 << 14;
const NVIDIA: u32 = 0x10de;
/// Base class and subclass: VGA controller, 3D controller. (Audio and USB of the same card are others.)
const CLASSES: [u32; 2] = [0x0300, 0x0302];

/// NVIDIA's GPUs on the bus, in the order of their addresses.
pub fn pci(tree: &Tree) -> Observed<Vec<PciFunction>> {
    fact("host.pci", read(tree))
}

fn read(tree: &Tree) -> Result<Vec<PciFunction>, Unseen> {
    let Some(addresses) = names_if_there(tree, DEVICES, LIMIT)? else {
        // a kernel that knows other buses and no PCI has none; without sysfs nobody knows
        let other_buses = exists(tree, "/sys/bus/platform")?;
        return if other_buses { Ok(Vec::new()) } else { Err(Unseen::new(DEVICES, "absent")) };
    };
    let mut found = Vec::new();
    for address in addresses {
        let number =
            |file: &str| Ok::<_, Unseen>(short(tree, &format!("{DEVICES}/{address}/{file}"))?.as_deref().and_then(hex));
        if number("vendor")? != Some(NVIDIA) || !number("class")?.is_some_and(|class| CLASSES.contains(&(class >> 8))) {
            continue;
        }
        let device = number("device")?.and_then(|n| u16::try_from(n).ok()).unwrap_or(0);
        let driver = tree.link(&format!("{DEVICES}/{address}/driver"))?;
        let driver = driver.and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned()));
        let virtual_function = tree.link(&format!("{DEVICES}/{address}/physfn"))?.is_some();
        found.push(PciFunction { address: address.to_ascii_lowercase(), device, driver, virtual_function });
    }
    found.sort_by_key(|function| order(&function.address));
    Ok(found)
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Domain, bus, device and function of `0000:65:00.0`: domains may have five digits. What is no address
/// comes last.
pub(super) fn order(address: &str) -> (bool, u32, u32, u32, u32) {
    let mut numbers = address.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok());
    match [numbers.next(), numbers.next(), numbers.next(), numbers.next()].map(Option::flatten) {
        [Some(domain), Some(bus), Some(device), Some(function)] => (false, domain, bus, device, function),
        _ => (true, 0, 0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    fn function(laid: &Laid, address: &str, vendor: &str, class: &str) {
        for (file, value) in [("vendor", vendor), ("class", class), ("device", "0x2330")] {
            laid.write(&format!("{DEVICES}/{address}/{file}"), format!("{value}\n"));
        }
    }

    #[test]
    fn only_nvidias_gpus_are_found_with_their_drivers() {
        let laid = Laid::out(&[]);
        function(&laid, "10000:01:00.0", "0x10de", "0x030200");
        function(&laid, "0000:65:00.0", "0x10de", "0x030200");
        function(&laid, "0000:65:00.1", "0x10de", "0x040300");
        function(&laid, "0000:05:00.0", "0x10de", "0x030000");
        function(&laid, "0000:06:00.0", "0x8086", "0x030000");
        function(&laid, "0000:07:00.0", "0x10de", "0x068000");
        laid.link("../../../bus/pci/drivers/vfio-pci", "/sys/bus/pci/devices/0000:05:00.0/driver");
        laid.link("../0000:64:00.0", "/sys/bus/pci/devices/0000:65:00.0/physfn");
        let seen = pci(&laid.tree());
        let seen = seen.seen().unwrap();
        let addresses: Vec<&str> = seen.iter().map(|f| f.address.as_str()).collect();
        assert_eq!(addresses, ["0000:05:00.0", "0000:65:00.0", "10000:01:00.0"]);
        assert_eq!((seen[0].driver.as_deref(), seen[0].is_for_the_host()), (Some("vfio-pci"), false));
        assert_eq!((seen[1].driver.as_deref(), seen[1].virtual_function, seen[1].device), (None, true, 0x2330));
    }

    #[test]
    fn no_bus_is_not_the_same_as_nobody_looked() {
        let laid = Laid::out(&[]);
        assert!(pci(&laid.tree()).known().is_err());
        laid.directory("/sys/bus/platform");
        assert_eq!(pci(&laid.tree()), Observed::Known(Vec::new()));
        laid.directory(DEVICES);
        assert_eq!(pci(&laid.tree()), Observed::Known(Vec::new()));
    }
}
