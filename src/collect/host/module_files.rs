//! The driver's module files on disk, kernel by kernel.

use std::collections::BTreeSet;

use super::look::{each_line, fact, names, names_if_there};
use crate::collect::tree::Tree;
use crate::model::host::{ModuleFiles, NodeKind};
use crate::model::{Observed, Unseen};

/// Directories of a kernel where distributions and DKMS put the driver; Ubuntu's signed modules lie in
/// `kernel/nvidia-NNN`.
const PLACES: [&str; 6] =
    ["updates", "extra", "weak-updates", "kernel/drivers/video", "kernel/drivers/gpu", "kernel/drivers/char"];
const MODULES: [&str; 5] = ["nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem"];
const KERNELS: usize = 256;
const NAMES: usize = 4096;
/// `updates/dkms/nvidia/580/…` is the deepest that occurs.
const DEPTH: u32 = 3;
/// `modules.dep` of a distribution kernel has about 600 kB.
const INDEX: u64 = 16 << 20;

/// Module files of the driver for the running kernel, and which other kernels have them.
pub fn module_files(tree: &Tree, running: &Observed<String>) -> Observed<ModuleFiles> {
    fact("host.driver.module_files", read(tree, running))
}

fn read(tree: &Tree, running: &Observed<String>) -> Result<ModuleFiles, Unseen> {
    let kernels = names_if_there(tree, "/lib/modules", KERNELS)?;
    let kernels = kernels.ok_or_else(|| Unseen::new("/lib/modules", "absent"))?;
    let running = running.known().map_err(|unknown| Unseen::new(unknown.source, unknown.reason))?;
    let mut files = ModuleFiles::default();
    for kernel in kernels {
        let root = format!("/lib/modules/{kernel}");
        if !is_directory(tree, &root)? {
            continue;
        }
        let found = of_kernel(tree, &root)?;
        let has_nvidia = found.contains("nvidia");
        if kernel == *running {
            files.running = found.into_iter().collect();
        }
        files.kernels.insert(kernel, has_nvidia);
    }
    Ok(files)
}

/// Files first: `modules.dep` may be older than they are. It names those in places nobody thought of.
fn of_kernel(tree: &Tree, root: &str) -> Result<BTreeSet<String>, Unseen> {
    let mut found = BTreeSet::new();
    for place in PLACES {
        gather(tree, &format!("{root}/{place}"), DEPTH, &mut found)?;
    }
    for name in names(tree, &format!("{root}/kernel"), NAMES)? {
        if name.starts_with("nvidia") {
            gather(tree, &format!("{root}/kernel/{name}"), DEPTH, &mut found)?;
        }
    }
    if !found.contains("nvidia") {
        each_line(tree, &format!("{root}/modules.dep"), INDEX, |line| {
            let file = line.split(':').next().and_then(|path| path.rsplit('/').next());
            found.extend(file.and_then(module_of).map(str::to_owned));
        })?;
    }
    Ok(found)
}

fn gather(tree: &Tree, directory: &str, depth: u32, found: &mut BTreeSet<String>) -> Result<(), Unseen> {
    for name in names(tree, directory, NAMES)? {
        let path = format!("{directory}/{name}");
        if let Some(module) = module_of(&name) {
            // weak-updates are links to another kernel's files, which may be gone
            if tree.stat(&path)?.is_some() {
                found.insert(module.to_owned());
            }
        } else if depth > 0 && !name.contains(".ko") && is_directory(tree, &path)? {
            gather(tree, &path, depth - 1, found)?;
        }
    }
    Ok(())
}

fn is_directory(tree: &Tree, path: &str) -> Result<bool, Unseen> {
    Ok(tree.stat(path)?.is_some_and(|stat| stat.kind == NodeKind::Directory))
}

/// `nvidia_uvm` of `nvidia-uvm.ko.zst`, and of Debian's `nvidia-current-uvm.ko`.
fn module_of(file: &str) -> Option<&'static str> {
    let (stem, ending) = file.split_once(".ko")?;
    if !matches!(ending, "" | ".xz" | ".zst" | ".gz") {
        return None;
    }
    let stem = stem.replace('-', "_");
    let rest = stem.strip_prefix("nvidia")?;
    let flavours = ["_current", "_tesla", "_legacy", "_open"];
    let rest = flavours.iter().find_map(|flavour| rest.strip_prefix(flavour)).unwrap_or(rest);
    let part = rest.trim_start_matches(|c: char| c == '_' || c.is_ascii_digit()).trim_start_matches("xx_");
    MODULES.into_iter().find(|module| module.strip_prefix("nvidia").is_some_and(|m| m.trim_start_matches('_') == part))
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn modules_are_told_by_their_files_under_every_name() {
        for (file, module) in [
            ("nvidia.ko", Some("nvidia")),
            ("nvidia-uvm.ko.zst", Some("nvidia_uvm")),
            ("nvidia-current-drm.ko", Some("nvidia_drm")),
            ("nvidia-current.ko.xz", Some("nvidia")),
            ("nvidia-tesla-470-uvm.ko", Some("nvidia_uvm")),
            ("nvidia-legacy-390xx-modeset.ko", Some("nvidia_modeset")),
            ("nvidiafb.ko", None),
            ("nvidia-wmi-ec-backlight.ko", None),
            ("nvidia.ko.old", None),
            ("nouveau.ko", None),
        ] {
            assert_eq!(module_of(file), module, "{file}");
        }
    }

    #[test]
    fn each_kernel_says_whether_it_has_the_driver() {
        let laid = Laid::out(&[
            ("/lib/modules/6.1.0-30-amd64/updates/dkms/nvidia-current.ko", ""),
            ("/lib/modules/6.1.0-30-amd64/updates/dkms/nvidia-current-uvm.ko", ""),
            ("/lib/modules/6.8.0-1/kernel/nvidia-550/nvidia.ko.zst", ""),
            ("/lib/modules/6.9.0-1/kernel/drivers/video/fbdev/nvidia/nvidiafb.ko", ""),
            (
                "/lib/modules/6.10.0-1/modules.dep",
                "misc/nvidia.ko: a\nmisc/nvidia-uvm.ko: misc/nvidia.ko\nkernel/x.ko:\n",
            ),
            ("/lib/modules/README", ""),
        ]);
        laid.link("/lib/modules/gone/nvidia.ko", "/lib/modules/6.9.0-1/weak-updates/nvidia.ko");
        let seen = module_files(&laid.tree(), &Observed::Known("6.1.0-30-amd64".into()));
        let seen = seen.seen().unwrap();
        assert_eq!(seen.running, ["nvidia", "nvidia_uvm"]);
        let kernels: Vec<_> = seen.kernels.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(kernels, [("6.1.0-30-amd64", true), ("6.10.0-1", true), ("6.8.0-1", true), ("6.9.0-1", false)]);
        assert!(module_files(&Laid::out(&[]).tree(), &Observed::Known("6.1".into())).known().is_err());
    }
}
