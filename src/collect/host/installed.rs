//! What is installed of the driver, by packages, its own installer and the module on disk: looked at only where libraries
//! and loaded module differ, to tell an update without a reboot from two installations.

use std::os::unix::fs::FileExt as _;

use super::dkms::installed_for;
use super::look::seems_there;
use super::module_files::file_of;
use crate::collect::image::binary::section;
use crate::collect::image::packages_of_machine;
use crate::collect::tree::Tree;
use crate::knowledge::driver_packages::{brings_libraries, driver_of};
use crate::model::host::{Driver, Installed};
use crate::model::{DriverVersion, Host};

/// NVIDIA's installer leaves it behind; no package has it (driver README, "Uninstalling").
const UNINSTALLER: &str = "/usr/bin/nvidia-uninstall";
/// What a module says of itself is a few kilobytes, most of it the devices that it is for.
const MOST: u64 = 1 << 20;

/// Adds it to a machine whose libraries and modules are known.
pub(super) fn add(tree: &Tree, host: &mut Host) {
    if !differ(&host.driver) {
        return;
    }
    let (packages, unread) = packages_of_machine(tree);
    let mut of_libraries =
        packages.into_iter().filter(|package| brings_libraries(&package.name)).filter_map(|package| {
            let version = driver_of(&package.version)?;
            Some((package.name, version))
        });
    let first = of_libraries.next();
    let agree = of_libraries.all(|(_, version)| first.as_ref().is_some_and(|(_, known)| *known == version));
    host.driver.installed = Some(Box::new(Installed {
        package: first.filter(|_| agree),
        complete: unread.is_empty(),
        uninstaller: seems_there(tree, UNINSTALLER).then(|| UNINSTALLER.to_owned()),
        module: host.kernel.seen().and_then(|kernel| on_disk(tree, &host.driver, kernel)),
    }));
}

/// The loader takes a libnvidia-ml of another version than the loaded module's.
fn differ(driver: &Driver) -> bool {
    let Some(Some(module)) = driver.version.seen() else { return false };
    let libraries = driver.libraries.seen().map(Vec::as_slice).unwrap_or_default();
    let mut taken = libraries.iter().filter(|library| library.name == "libnvidia-ml" && library.current);
    taken.any(|library| library.version.as_ref().is_some_and(|version| version != module))
}

/// The version of the module for a kernel: as the file says, or of a compressed one as DKMS has installed it.
fn on_disk(tree: &Tree, driver: &Driver, kernel: &str) -> Option<DriverVersion> {
    let file = file_of(tree, kernel).and_then(|path| tree.file(&path).ok()?);
    let told = file.and_then(|file| {
        let size = file.metadata().ok()?.len();
        version_of(&section(&mut |at, buffer| file.read_at(buffer, at), size, b".modinfo", MOST)?)
    });
    told.or_else(|| {
        let dkms = &driver.module_files.seen()?.dkms;
        installed_for(dkms, kernel)?.version.parse().ok()
    })
}

/// `version=550.163.01` among strings that end with a zero.
fn version_of(information: &[u8]) -> Option<DriverVersion> {
    let mut strings = information.split(|byte| *byte == 0);
    let version = strings.find_map(|string| string.strip_prefix(b"version="))?;
    std::str::from_utf8(version).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::super::{Options, Scope, read};
    use super::*;

    const OLD: &str = "550.127.05";
    const NEW: &str = "550.163.01";

    /// A machine whose libraries are newer than its loaded module.
    fn updated(more: &[(&str, &str)]) -> Laid {
        let laid = Laid::out(more);
        laid.write("/proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
        laid.write("/proc/sys/kernel/arch", "x86_64\n");
        laid.write("/sys/module/nvidia/version", format!("{OLD}\n"));
        laid.write(&format!("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{NEW}"), "");
        laid.link(&format!("libnvidia-ml.so.{NEW}"), "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
        laid
    }

    fn seen(laid: &Laid) -> Option<Box<Installed>> {
        let options = Options { laid_out: true, driver_root: None, scope: Scope::Full };
        read(&laid.tree(), &options).driver.installed
    }

    fn dpkg(packages: &[(&str, &str)]) -> String {
        let stanza = |(name, version): &(&str, &str)| {
            format!("Package: {name}\nStatus: install ok installed\nVersion: {version}\n\n")
        };
        packages.iter().map(stanza).collect()
    }

    #[test]
    fn packages_installer_and_module_on_disk_are_looked_at_where_versions_differ() {
        let status =
            dpkg(&[("bash", "5.2"), ("libnvidia-compute-550", "550.163.01-0ubuntu1"), ("nvidia-utils-550", "1.2")]);
        let laid = updated(&[("/var/lib/dpkg/status", &status), (UNINSTALLER, "")]);
        let dkms = "/var/lib/dkms/nvidia";
        laid.write(&format!("{dkms}/{NEW}/6.1.0-30-amd64/x86_64/module/nvidia.ko"), "");
        laid.write(&format!("{dkms}/{NEW}/source/dkms.conf"), "");
        laid.link(&format!("{NEW}/6.1.0-30-amd64/x86_64"), &format!("{dkms}/kernel-6.1.0-30-amd64-x86_64"));
        laid.write("/lib/modules/6.1.0-30-amd64/updates/dkms/nvidia.ko.xz", "");
        let installed = seen(&laid).unwrap();
        assert_eq!(installed.package, Some(("libnvidia-compute-550".into(), NEW.parse().unwrap())));
        assert_eq!(installed.module, Some(NEW.parse().unwrap()));
        assert!(installed.complete && installed.uninstaller.is_some());
        laid.write("/sys/module/nvidia/version", NEW);
        assert_eq!(seen(&laid), None, "they agree, and nobody need look");
    }

    #[test]
    fn packages_that_disagree_or_cannot_be_read_prove_nothing() {
        let status = dpkg(&[("libnvidia-ml1", "550.163.01-1"), ("libnvidia-compute-535", "535.1.1-1")]);
        assert_eq!(seen(&updated(&[("/var/lib/dpkg/status", &status)])).unwrap().package, None);
        let berkeley = seen(&updated(&[("/var/lib/rpm/Packages", "x")])).unwrap();
        assert!(berkeley.package.is_none() && !berkeley.complete);
        let none = seen(&updated(&[])).unwrap();
        assert_eq!(*none, Installed { complete: true, ..Installed::default() });
    }

    #[test]
    fn a_module_says_its_version_among_other_words() {
        let said = |text: &[u8]| version_of(text).map(|version| version.to_string());
        assert_eq!(said(b"license=NVIDIA\0version=550.163.01\0srcversion=0A\0").as_deref(), Some(NEW));
        assert_eq!(said(b"srcversion=1.2\0vermagic=6.1.0\0"), None);
    }
}
