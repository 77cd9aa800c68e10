//! The driver's module files on disk, kernel by kernel.

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};

use super::dkms::dkms;
use super::look::{each_line, ending, fact, names, names_if_there, seems_there};
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
/// The end of a module that was signed (Linux, `include/linux/module_signature.h`).
const SIGNATURE: &[u8; 28] = b"~Module signature appended~\n";

/// Modules by name and file.
type Found = BTreeSet<(&'static str, String)>;

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
        if kernel == *running {
            files.running = found.iter().map(|(module, _)| (*module).to_owned()).collect();
            files.running.dedup();
            files.signed = signed(tree, &found);
        }
        if seems_there(tree, &format!("{root}/build/Makefile")) {
            files.headers.insert(kernel.clone());
        }
        files.kernels.insert(kernel, has_nvidia(&found));
    }
    // it only explains, and where it cannot be read nothing is in doubt
    files.dkms = dkms(tree).unwrap_or_default();
    Ok(files)
}

/// The one file that is `nvidia` for a kernel; `None`: there is none, or several.
#[cfg(feature = "cli")]
pub(super) fn file_of(tree: &Tree, kernel: &str) -> Option<String> {
    let found = of_kernel(tree, &format!("/lib/modules/{kernel}")).ok()?;
    let mut files = found.into_iter().filter(|(module, _)| *module == "nvidia");
    let (_, path) = files.next()?;
    files.next().is_none().then_some(path)
}

/// Files first: `modules.dep` may be older than they are. It names those in places nobody thought of.
fn of_kernel(tree: &Tree, root: &str) -> Result<Found, Unseen> {
    let mut found = Found::new();
    for place in PLACES {
        gather(tree, &format!("{root}/{place}"), DEPTH, &mut found)?;
    }
    for name in names(tree, &format!("{root}/kernel"), NAMES)? {
        if name.starts_with("nvidia") {
            gather(tree, &format!("{root}/kernel/{name}"), DEPTH, &mut found)?;
        }
    }
    if !has_nvidia(&found) {
        each_line(tree, &format!("{root}/modules.dep"), INDEX, |line| {
            let path = line.split(':').next().unwrap_or_default();
            let module = path.rsplit('/').next().and_then(module_of);
            found.extend(module.map(|module| (module, format!("{root}/{path}"))));
        })?;
    }
    Ok(found)
}

fn has_nvidia(found: &Found) -> bool {
    found.iter().any(|(module, _)| *module == "nvidia")
}

/// Where several files are `nvidia`, modprobe's configuration chooses: only what all of them say counts.
fn signed(tree: &Tree, found: &Found) -> Option<bool> {
    let mut all = found.iter().filter(|(module, _)| *module == "nvidia").map(|(_, path)| ends_signed(tree, path));
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

fn ends_signed(tree: &Tree, path: &str) -> Option<bool> {
    let mut file = tree.file(path).ok()?.filter(|_| ending(path) == "ko")?;
    let size = file.seek(SeekFrom::End(0)).ok()?;
    let mut end = [0; SIGNATURE.len()];
    let Some(start) = size.checked_sub(end.len() as u64) else { return Some(false) };
    file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut end)).ok()?;
    Some(end == *SIGNATURE)
}

fn gather(tree: &Tree, directory: &str, depth: u32, found: &mut Found) -> Result<(), Unseen> {
    for name in names(tree, directory, NAMES)? {
        let path = format!("{directory}/{name}");
        if let Some(module) = module_of(&name) {
            // weak-updates are links to another kernel's files, which may be gone
            if tree.stat(&path)?.is_some() {
                found.insert((module, path));
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
    fn the_end_of_the_running_kernels_module_tells_whether_it_is_signed() {
        let of = |files: &[(&str, &str)]| {
            let laid = Laid::out(&[]);
            for (path, text) in files {
                laid.write(&format!("/lib/modules/6.1/{path}"), text);
            }
            module_files(&laid.tree(), &Observed::Known("6.1".into())).seen().unwrap().signed
        };
        let (signed, unsigned) = ("\u{7f}ELF...~Module signature appended~\n", "\u{7f}ELF and then some more of it");
        assert_eq!(of(&[("updates/dkms/nvidia.ko", signed)]), Some(true));
        assert_eq!(of(&[("updates/dkms/nvidia.ko", unsigned)]), Some(false));
        assert_eq!(of(&[("updates/dkms/nvidia.ko", "")]), Some(false));
        assert_eq!(of(&[("updates/dkms/nvidia.ko.zst", unsigned)]), None);
        assert_eq!(of(&[("updates/dkms/nvidia-uvm.ko", unsigned)]), None);
        assert_eq!(of(&[("modules.dep", "misc/nvidia.ko:\n"), ("misc/nvidia.ko", signed)]), Some(true));
        assert_eq!(of(&[("updates/nvidia.ko", unsigned), ("kernel/nvidia-550/nvidia.ko", signed)]), None);
        assert_eq!(of(&[("updates/nvidia.ko", unsigned), ("kernel/nvidia-550/nvidia.ko", unsigned)]), Some(false));
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
