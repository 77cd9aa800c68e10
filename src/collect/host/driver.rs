//! The kernel's side of the driver: which modules are loaded, and which version.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Instant;

use super::look::{exists, fact, short};
use crate::collect::child;
use crate::collect::tree::Tree;
use crate::model::host::{Driver, KernelModule, Majors};
use crate::model::observed::LEFT_OUT;
use crate::model::{DriverVersion, Observed, Unknown, Unseen};

/// Modules that tell how the GPU is driven: NVIDIA's, Jetson's `nvgpu`, and the kernel's own drivers.
const WATCHED: [&str; 10] = [
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nvidia_fs",
    "nvgpu",
    "nouveau",
    "nova_core",
    "nova_drm",
];

/// The banner of the loaded driver, "NVRM version: …".
const BANNER: &str = "/proc/driver/nvidia/version";
const BANNER_LIMIT: usize = 4096;
/// `/proc/modules` has about 60 bytes a module.
const MODULES_LIMIT: usize = 1 << 20;

/// What was seen of the driver.
pub(super) struct Seen {
    pub(super) facts: Driver,
    /// The processor that the loaded driver was built for, by its banner.
    pub(super) built_for: Option<&'static str>,
}

/// Modules, version and flavour of the driver.
///
/// `brief`: without the banner. To open it takes a lock of the driver's that suspend and resume hold
/// (`nv_system_pm_lock`, open-gpu-kernel-modules `nv-procfs.c`), so it is not for the hook's own process;
/// what only the banner tells is left out then, and [`banner`] adds it.
pub(super) fn driver(tree: &Tree, laid_out: bool, brief: bool, majors: &Observed<Majors>) -> Seen {
    let banner = if brief { Ok(None) } else { short(tree, BANNER) };
    let text = banner.as_ref().ok().and_then(Option::as_deref);
    let modules = fact("host.driver.modules", modules(tree, laid_out, majors.seen(), text.is_some()));
    let loaded = modules.seen().map(|m| m.contains_key("nvidia"));
    let version = version(tree, loaded, text);
    let taint = taint(tree);
    let open = match (loaded, &banner) {
        (Some(false), Ok(None)) => Ok(None),
        // The kernel marks a module whose license is none that it knows as free.
        _ if taint.is_some() => Ok(taint.map(|flags| !flags.contains('P'))),
        (_, Ok(Some(text))) => Ok(Some(text.contains("Open Kernel Module"))),
        (_, Ok(None)) => Err(Unseen::new(BANNER, "absent, so the flavour of the module is not known")),
        (_, Err(unseen)) => Err(unseen.clone()),
    };
    let built_for = text.and_then(architecture);
    // What is not known without the banner is left out, for a check that needs it to say so.
    let unread = |unseen: Unseen| if brief { Unseen::new(unseen.source, LEFT_OUT) } else { unseen };
    let facts = Driver {
        version: fact("host.driver.version", version.map_err(unread)),
        open_kernel_modules: fact("host.driver.open_kernel_modules", open.map_err(unread)),
        modules,
        ..Driver::default()
    };
    Seen { facts, built_for }
}

/// Adds what only the banner tells, to a driver that was looked at without. A child reads it.
pub fn banner(tree: &Tree, driver: &mut Driver, deadline: Instant) {
    let told = child::run(deadline, BANNER_LIMIT, |out| {
        let text = short(tree, BANNER).ok().flatten().unwrap_or_default();
        let _ = out.write_all(text.as_bytes());
    });
    let text = told.map(|answer| String::from_utf8_lossy(&answer.bytes).into_owned()).unwrap_or_default();
    let late = |fact: &str| Unknown::new(fact, BANNER, "it was not told in time");
    if driver.version.known().is_err() {
        driver.version = Observed::from(version_of(&text).map(Some).ok_or_else(|| late("host.driver.version")));
    }
    if driver.open_kernel_modules.known().is_err() {
        driver.open_kernel_modules = if text.is_empty() {
            Observed::Unknown(late("host.driver.open_kernel_modules"))
        } else {
            Observed::Known(Some(text.contains("Open Kernel Module")))
        };
    }
}

/// How the kernel is tainted by the loaded module, `OE` or `POE`.
fn taint(tree: &Tree) -> Option<String> {
    short(tree, "/sys/module/nvidia/taint").ok().flatten().filter(|flags| !flags.is_empty())
}

/// Adds what `/sys/module/NAME/version` says of each module.
pub(super) fn add_versions(tree: &Tree, modules: &mut Observed<BTreeMap<String, KernelModule>>) {
    let Observed::Known(modules) = modules else { return };
    for (name, module) in modules {
        module.version = short(tree, &format!("/sys/module/{name}/version")).ok().flatten().filter(|v| !v.is_empty());
    }
}

/// Looks at `/sys/module`, which also knows what is built in; where that is absent at `/proc/modules`,
/// which a kernel without loadable modules lacks; and else at what they registered. A laid-out
/// directory may hold part of each, and there every sign counts.
fn modules(
    tree: &Tree,
    laid_out: bool,
    majors: Option<&Majors>,
    banner: bool,
) -> Result<BTreeMap<String, KernelModule>, Unseen> {
    let mut found = Vec::new();
    let mut looked = exists(tree, "/sys/module")?;
    if looked {
        for name in WATCHED {
            if exists(tree, &format!("/sys/module/{name}"))? {
                found.push(name);
            }
        }
    }
    if (laid_out || !looked)
        && let Some(text) = tree.read_text("/proc/modules", MODULES_LIMIT)?
    {
        looked = true;
        found.extend(WATCHED.iter().filter(|name| text.lines().any(|line| line.split(' ').next() == Some(**name))));
    }
    if laid_out || !looked {
        if let Some(majors) = majors {
            // its name stands beside those of `nvidia`, all with one number: a list of modules knows better
            let modeset = majors.0.get("nvidia-modeset").filter(|_| !looked);
            looked = true;
            found.extend(majors.gpu().map(|_| "nvidia"));
            found.extend(majors.uvm().map(|_| "nvidia_uvm"));
            found.extend(modeset.map(|_| "nvidia_modeset"));
        }
        found.extend(banner.then_some("nvidia"));
    }
    if !looked {
        return Err(Unseen::new("/sys/module", "neither it nor /proc/modules nor /proc/devices is there"));
    }
    Ok(found.into_iter().map(|name| (name.to_owned(), KernelModule::default())).collect())
}

fn version(tree: &Tree, loaded: Option<bool>, banner: Option<&str>) -> Result<Option<DriverVersion>, Unseen> {
    let attribute = short(tree, "/sys/module/nvidia/version")?.and_then(|text| text.parse().ok());
    match attribute.or_else(|| banner.and_then(version_of)) {
        Some(version) => Ok(Some(version)),
        None if loaded == Some(false) => Ok(None),
        None => Err(Unseen::new(BANNER, "neither it nor /sys/module/nvidia/version tells a version")),
    }
}

/// The version in a banner: `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue …` or
/// `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (…)`.
fn version_of(banner: &str) -> Option<DriverVersion> {
    let line = banner.lines().find(|line| line.starts_with("NVRM version:"))?;
    line.split_whitespace().filter(|word| word.contains('.')).find_map(|word| word.parse().ok())
}

fn architecture(banner: &str) -> Option<&'static str> {
    let line = banner.lines().find(|line| line.starts_with("NVRM version:"))?;
    ["x86_64", "aarch64", "ppc64le"].into_iter().find(|name| line.split_whitespace().any(|word| word == *name))
}

#[cfg(test)]
mod tests {
    use super::super::devices;
    use super::super::look::testing::Laid;
    use super::*;

    const PROPRIETARY: &str = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
    const OPEN: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build  (dvs-builder@U22-I3-AE18-09-6)  Tue Sep 23 10:11:16 UTC 2025\nGCC version:\n";

    fn seen(laid: &Laid, laid_out: bool) -> Seen {
        let tree = laid.tree();
        driver(&tree, laid_out, false, &devices::majors(&tree))
    }

    fn modules_of(seen: &Seen) -> Vec<&str> {
        seen.facts.modules.seen().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn both_flavours_of_the_banner_are_read() {
        for (text, version, open, processor) in
            [(PROPRIETARY, "550.163.01", false, "x86_64"), (OPEN, "580.95.05", true, "aarch64")]
        {
            let seen = seen(&Laid::out(&[(BANNER, text)]), true);
            assert_eq!(seen.facts.version, Observed::Known(Some(version.parse().unwrap())));
            assert_eq!(seen.facts.open_kernel_modules, Observed::Known(Some(open)));
            assert_eq!(seen.built_for, Some(processor));
        }
    }

    #[test]
    fn without_the_banner_the_kernel_tells_version_and_flavour() {
        for (taint, open) in [("POE\n", false), ("OE\n", true)] {
            let laid =
                Laid::out(&[("/sys/module/nvidia/version", "550.163.01\n"), ("/sys/module/nvidia/taint", taint)]);
            let tree = laid.tree();
            let facts = driver(&tree, false, true, &devices::majors(&tree)).facts;
            assert_eq!(facts.version, Observed::Known(Some("550.163.01".parse().unwrap())));
            assert_eq!(facts.open_kernel_modules, Observed::Known(Some(open)));
        }
    }

    #[test]
    fn what_only_the_banner_tells_is_left_out_and_added_by_a_child() {
        let laid = Laid::out(&[("/sys/module/nvidia/initstate", "live\n"), (BANNER, OPEN)]);
        let tree = laid.tree();
        let mut facts = driver(&tree, false, true, &devices::majors(&tree)).facts;
        assert_eq!(facts.version.known().unwrap_err().reason, LEFT_OUT);
        assert_eq!(facts.open_kernel_modules.known().unwrap_err().reason, LEFT_OUT);
        banner(&tree, &mut facts, Instant::now() + std::time::Duration::from_secs(20));
        assert_eq!(facts.version, Observed::Known(Some("580.95.05".parse().unwrap())));
        assert_eq!(facts.open_kernel_modules, Observed::Known(Some(true)));
    }

    #[test]
    fn a_list_of_modules_knows_better_than_the_number_that_modeset_shares() {
        let devices = "Character devices:\n195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n";
        let laid = Laid::out(&[("/proc/devices", devices)]);
        assert_eq!(modules_of(&seen(&laid, true)), ["nvidia", "nvidia_modeset"]);
        laid.write("/proc/modules", "nvidia 1048576 0 - Live 0x0000000000000000 (POE)\n");
        assert_eq!(modules_of(&seen(&laid, true)), ["nvidia"]);
    }

    #[test]
    fn a_machine_without_the_driver_is_known_to_be_without() {
        let laid = Laid::out(&[("/proc/devices", "Character devices:\n  1 mem\n")]);
        laid.directory("/sys/module/ext4");
        for laid_out in [true, false] {
            let seen = seen(&laid, laid_out);
            assert!(modules_of(&seen).is_empty());
            assert_eq!(seen.facts.version, Observed::Known(None));
            assert_eq!(seen.facts.open_kernel_modules, Observed::Known(None));
        }
    }

    #[test]
    fn where_nobody_could_look_nothing_is_claimed() {
        let seen = seen(&Laid::out(&[]), true);
        assert!(seen.facts.modules.known().is_err() && seen.facts.version.known().is_err());
    }

    #[test]
    fn either_list_of_modules_will_do() {
        let listed = "nvidia_uvm 4956160 0 - Live 0x0000000000000000 (POE)\nnvidia 60710912 1 nvidia_uvm, Live 0x0 (POE)\nnvidiafb 1 0 - Live 0x0\n";
        let seen_in_proc = seen(&Laid::out(&[("/proc/modules", listed), (BANNER, PROPRIETARY)]), false);
        assert_eq!(modules_of(&seen_in_proc), ["nvidia", "nvidia_uvm"]);
        let laid = Laid::out(&[("/sys/module/nvidia/version", "570.86.15\n"), ("/sys/module/nouveau/refcnt", "0\n")]);
        let seen_in_sys = seen(&laid, false);
        assert_eq!(modules_of(&seen_in_sys), ["nouveau", "nvidia"]);
        assert_eq!(seen_in_sys.facts.version.seen().unwrap().as_ref().unwrap().as_str(), "570.86.15");
        assert!(seen_in_sys.facts.open_kernel_modules.known().is_err(), "no banner, no flavour");
    }

    #[test]
    fn registered_devices_prove_loaded_modules() {
        let devices = "Character devices:\n195 nvidia\n195 nvidiactl\n510 nvidia-uvm\n\nBlock devices:\n  8 sd\n";
        let seen = seen(&Laid::out(&[("/proc/devices", devices), (BANNER, PROPRIETARY)]), true);
        assert_eq!(modules_of(&seen), ["nvidia", "nvidia_uvm"]);
    }
}
