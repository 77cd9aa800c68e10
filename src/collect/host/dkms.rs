//! What DKMS has of the driver, by its own directories.
//!
//! `/var/lib/dkms/NAME/VERSION/source` was added; `VERSION/KERNEL/ARCH/module` built; a link `kernel-KERNEL-ARCH`
//! beside the versions leads to what is installed (dkms(8) 3.2, "THE DKMS TREE").

use super::look::{names, seems_there};
use crate::collect::tree::Tree;
use crate::model::Unseen;
use crate::model::host::DkmsModule;

const DIRECTORY: &str = "/var/lib/dkms";
/// Modules, their versions, and kernels of each.
const NAMES: usize = 1024;
const INSTALLED: &str = "kernel-";

/// Each version of the driver's modules.
pub(super) fn dkms(tree: &Tree) -> Result<Vec<DkmsModule>, Unseen> {
    let mut found = Vec::new();
    for name in names(tree, DIRECTORY, NAMES)?.into_iter().filter(|name| is_of_driver(name)) {
        let root = format!("{DIRECTORY}/{name}");
        let all = names(tree, &root, NAMES)?;
        let installed: Vec<String> = all
            .iter()
            .filter(|entry| entry.starts_with(INSTALLED))
            .filter_map(|entry| Some(tree.link(&format!("{root}/{entry}")).ok()??.to_string_lossy().into_owned()))
            .collect();
        for version in all.iter().filter(|entry| seems_there(tree, &format!("{root}/{entry}/source"))) {
            let kernels = kernels(tree, &format!("{root}/{version}"))?.into_iter();
            let is_installed = |kernel: &String| {
                let place = format!("{version}/{kernel}/");
                installed.iter().any(|target| target.trim_start_matches("./").starts_with(&place))
            };
            let kernels = kernels.map(|kernel| (kernel.clone(), is_installed(&kernel))).collect();
            found.push(DkmsModule { name: name.clone(), version: version.clone(), kernels });
        }
    }
    Ok(found)
}

/// The kernels that a version was built for.
fn kernels(tree: &Tree, version: &str) -> Result<Vec<String>, Unseen> {
    let mut built = Vec::new();
    for kernel in names(tree, version, NAMES)? {
        let processors = names(tree, &format!("{version}/{kernel}"), NAMES)?;
        if processors.iter().any(|processor| seems_there(tree, &format!("{version}/{kernel}/{processor}/module"))) {
            built.push(kernel);
        }
    }
    Ok(built)
}

/// `nvidia`, `nvidia-open`, Debian's `nvidia-current` and `nvidia-tesla-535`; not `nvidia-fs`, which is another module.
fn is_of_driver(name: &str) -> bool {
    name == "nvidia"
        || name.strip_prefix("nvidia-").is_some_and(|rest| {
            let first = rest.split('-').next().unwrap_or_default();
            matches!(first, "open" | "current" | "tesla" | "legacy" | "srv")
                || first.bytes().all(|b| b.is_ascii_digit())
        })
}

/// The version that is installed for a kernel.
#[cfg(feature = "cli")]
pub(super) fn installed_for<'a>(all: &'a [DkmsModule], kernel: &str) -> Option<&'a DkmsModule> {
    all.iter().find(|module| module.kernels.get(kernel) == Some(&true))
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn what_was_added_built_and_installed_is_told_apart() {
        let laid = Laid::out(&[
            ("/var/lib/dkms/nvidia-current/550.163.01/6.1.0-30-amd64/x86_64/module/nvidia-current.ko", ""),
            ("/var/lib/dkms/nvidia-current/550.163.01/6.1.0-31-amd64/x86_64/module/nvidia-current.ko", ""),
            ("/var/lib/dkms/nvidia-current/550.163.01/6.1.0-32-amd64/x86_64/log/make.log", ""),
            ("/var/lib/dkms/nvidia-fs/2.19/source/a", ""),
            ("/var/lib/dkms/nvidia-current/535.1.1/source/dkms.conf", ""),
            ("/usr/src/nvidia-current-550.163.01/dkms.conf", ""),
        ]);
        laid.link("/usr/src/nvidia-current-550.163.01", "/var/lib/dkms/nvidia-current/550.163.01/source");
        let target = "550.163.01/6.1.0-30-amd64/x86_64";
        laid.link(target, "/var/lib/dkms/nvidia-current/kernel-6.1.0-30-amd64-x86_64");
        let all = dkms(&laid.tree()).unwrap();
        let versions: Vec<_> = all.iter().map(|module| (module.name.as_str(), module.version.as_str())).collect();
        assert_eq!(versions, [("nvidia-current", "535.1.1"), ("nvidia-current", "550.163.01")]);
        let kernels: Vec<_> = all[1].kernels.iter().map(|(kernel, installed)| (kernel.as_str(), *installed)).collect();
        assert_eq!(kernels, [("6.1.0-30-amd64", true), ("6.1.0-31-amd64", false)]);
        assert!(installed_for(&all, "6.1.0-31-amd64").is_none());
        assert_eq!(installed_for(&all, "6.1.0-30-amd64").unwrap().version, "550.163.01");
        assert_eq!(dkms(&Laid::out(&[]).tree()).unwrap(), []);
    }
}
