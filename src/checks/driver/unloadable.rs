//! Why the NVIDIA kernel module is not loaded, where the machine shows it.

use crate::checks::nodes::expect::{may_set_up_the_machine, subject};
use crate::checks::nodes::role::list;
use crate::checks::nodes::ways::on_disk;
use crate::checks::not_applicable;
use crate::model::host::Platform;
use crate::model::{Action, Check, Facts, Failure, Host, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::dkms::by_dkms;
use super::{nvidia_loaded, signature};

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "driver-module-missing-for-kernel",
        title: "no NVIDIA kernel module for the running kernel",
        why: "After a kernel update the driver's module was not built for the new kernel, so it cannot be loaded and no GPU can be used.",
        messages: &[
            "the driver is installed, but there is no nvidia module for the running kernel {kernel} ({others}){dkms}",
            "the newest installed kernel {kernel} has no nvidia module: after the next boot no GPU will work{dkms}",
        ],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Build the module for this kernel (its headers must be installed), or boot a kernel that has one.",
            command: Some("{build}"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook],
        judge: module_missing,
    },
    Check {
        id: "nouveau-loaded",
        title: "the nouveau driver holds the GPU",
        why: "While nouveau drives a GPU the NVIDIA driver cannot, and neither CUDA nor NVML finds it.",
        messages: &["nouveau drives {gpus}, and the nvidia module is not loaded: CUDA cannot use the GPU"],
        remedy: &[Step {
            action: Action::Reboot,
            text: "Blacklist nouveau, rebuild the initramfs (update-initramfs -u or dracut --force) and reboot.",
            command: Some("echo 'blacklist nouveau' > /etc/modprobe.d/blacklist-nouveau.conf"),
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook],
        judge: nouveau_loaded,
    },
];

/// One of these checks, or `signature`'s, names why the module is not loaded; the general one then has nothing to add.
pub(super) fn explained(host: &Host) -> bool {
    !held_by_nouveau(host).unwrap_or_default().is_empty()
        || matches!(missing_for_running(host), Ok(Some(_)))
        || signature::is_certain(host)
}

/// The question arises: a GPU is concerned, and its driver is not loaded.
pub(super) fn concerned(facts: &Facts<'_>) -> Result<bool, Unknown> {
    Ok(subject(facts)?.is_some() && !nvidia_loaded(facts.host)? && facts.host.has_gpu()?)
}

/// Certain, but for a container that may be about to set up the machine.
pub(super) fn severity(facts: &Facts<'_>) -> Severity {
    let sets_up = facts.place == Place::Hook && may_set_up_the_machine(facts.container);
    if sets_up { Severity::Warning } else { Severity::Error }
}

fn module_missing(facts: &Facts<'_>) -> Judgement {
    if facts.host.platform != Platform::Native || (facts.place == Place::Hook && subject(facts)?.is_none()) {
        return not_applicable();
    }
    if nvidia_loaded(facts.host)? {
        return module_missing_next(facts);
    }
    let gpu = facts.host.has_gpu();
    if gpu == Ok(false) || !held_by_nouveau(facts.host).unwrap_or_default().is_empty() {
        return not_applicable();
    }
    let Some((kernel, others)) = missing_for_running(facts.host)? else { return gpu.map(|_| Outcome::Pass) };
    // Who cannot see the bus takes a driver that was built for another kernel for proof of a GPU.
    if others.is_empty() {
        gpu?;
    }
    let having = if others.is_empty() {
        "none has one".to_owned()
    } else {
        format!("there is one for {}", list(others.iter().map(String::as_str)))
    };
    by_dkms(facts.host, &kernel, Failure::new(severity(facts), MODULE_MISSING))
        .arg("others", having)
        .saw("host.kernel", kernel, "/proc/sys/kernel/osrelease")
        .saw("host.module_files", "no nvidia", "/lib/modules")
        .found()
}

const MODULE_MISSING: &str = CHECKS[0].messages[0];
const MODULE_MISSING_NEXT: &str = CHECKS[0].messages[1];

/// The running kernel without a module, and the kernels that have one.
///
/// Only where the driver is installed (else that is what is missing) and where modules can be seen at
/// all: in a container `/lib/modules` is empty, and a containerised driver keeps its modules elsewhere.
fn missing_for_running(host: &Host) -> Result<Option<(String, Vec<String>)>, Unknown> {
    let files = host.driver.module_files.known()?;
    let kernel = host.kernel.known()?;
    let having: Vec<String> = files.kernels.iter().filter(|(_, has)| **has).map(|(k, _)| k.clone()).collect();
    let here = on_disk(host, "nvidia")? == Some(true) || files.kernels.get(kernel) == Some(&true);
    let visible = files.kernels.contains_key(kernel) || !having.is_empty();
    let installed = !having.is_empty() || host.driver.libraries.looked_at()?.is_some_and(|l| !l.is_empty());
    let by_container = !matches!(host.driver.root.path.as_str(), "" | "/");
    Ok((!here && visible && installed && !by_container).then(|| (kernel.clone(), having)))
}

/// On the machine: the driver runs now, but the kernel that boots next, as far as versions tell, has no module.
fn module_missing_next(facts: &Facts<'_>) -> Judgement {
    if facts.place != Place::Host || subject(facts)?.is_none() {
        return not_applicable();
    }
    // The driver runs, so that nothing but a warning is left to find: no reason to doubt the machine.
    let (Some(files), Some(running)) = (facts.host.driver.module_files.seen(), facts.host.kernel.seen()) else {
        return not_applicable();
    };
    let newer = |k: &&String| flavour(k) == flavour(running) && numbers(k) > numbers(running);
    let newest = files.kernels.keys().filter(newer).max_by_key(|k| numbers(k));
    match newest.filter(|k| files.kernels.get(running) == Some(&true) && files.kernels.get(*k) == Some(&false)) {
        None => Ok(Outcome::Pass),
        Some(kernel) => by_dkms(facts.host, kernel, Failure::new(Severity::Warning, MODULE_MISSING_NEXT))
            .saw("host.kernel", running, "/proc/sys/kernel/osrelease")
            .saw("host.module_files", "no nvidia", format!("/lib/modules/{kernel}"))
            .found(),
    }
}

/// The numbers in a kernel's release, `6.1.0-30-amd64`: 6, 1, 0, 30. `amd64` is no number of it.
pub(super) fn numbers(kernel: &str) -> Vec<u32> {
    kernel.split(['.', '-', '_', '+']).map_while(|part| part.parse().ok()).collect()
}

/// What is left of it: kernels of another flavour are not the next one to boot.
fn flavour(kernel: &str) -> String {
    kernel.split(['.', '-', '_', '+']).skip_while(|part| part.parse::<u32>().is_ok()).collect::<Vec<_>>().join("-")
}

fn nouveau_loaded(facts: &Facts<'_>) -> Judgement {
    if !concerned(facts)? {
        return not_applicable();
    }
    let held = held_by_nouveau(facts.host)?;
    if held.is_empty() {
        return Ok(Outcome::Pass);
    }
    Failure::new(severity(facts), CHECKS[1].messages[0])
        .arg("gpus", list(held.iter().map(String::as_str)))
        .saw("host.pci", "driver nouveau", "/sys/bus/pci/devices")
        .saw("host.modules", "no nvidia", "/sys/module")
        .found()
}

/// The GPUs behind nouveau, if that is all of them.
pub(super) fn held_by_nouveau(host: &Host) -> Result<Vec<String>, Unknown> {
    let functions = host.pci.known()?.iter().filter(|f| f.is_for_the_host());
    let (held, others): (Vec<_>, Vec<_>) = functions.partition(|f| f.driver.as_deref() == Some("nouveau"));
    Ok(if others.is_empty() { held.iter().map(|f| f.address.clone()).collect() } else { Vec::new() })
}

/// Machines whose module is not loaded, for the tests of this family.
#[cfg(test)]
pub(super) mod testing {
    use crate::checks::testing::World;
    use crate::model::container::LegacyState;
    use crate::model::host::ModuleFiles;
    use crate::model::{Observed, Severity};

    pub(in crate::checks::driver) const IDS: [&str; 3] =
        ["driver-module-missing-for-kernel", "nouveau-loaded", "secure-boot-module-rejected"];
    pub(in crate::checks::driver) const SECURE_BOOT: &str = IDS[2];
    pub(in crate::checks::driver) const RUNNING: &str = "6.1.0-30-amd64";

    /// No module is loaded, nobody drives the GPU, and `kernels` have nvidia on disk or not.
    pub(in crate::checks::driver) fn unloaded(mut world: World, kernels: &[(&str, bool)]) -> World {
        world.host.driver.version = Observed::Known(None);
        world.host.driver.modules = Observed::Known([].into());
        world.host.gpus = Observed::default();
        world.host.device_nodes = Observed::default();
        world = on_disk(world, kernels);
        driven_by(world, None)
    }

    pub(in crate::checks::driver) fn on_disk(mut world: World, kernels: &[(&str, bool)]) -> World {
        let running = if kernels.contains(&(RUNNING, true)) { vec!["nvidia".to_owned()] } else { Vec::new() };
        let kernels = kernels.iter().map(|(k, has)| ((*k).to_owned(), *has)).collect();
        world.host.driver.module_files = Observed::Known(ModuleFiles { running, kernels, ..ModuleFiles::default() });
        world
    }

    pub(in crate::checks::driver) fn signed(mut world: World, signed: Option<bool>) -> World {
        let Observed::Known(files) = &mut world.host.driver.module_files else { panic!() };
        files.signed = signed;
        world
    }

    pub(in crate::checks::driver) fn driven_by(mut world: World, driver: Option<&str>) -> World {
        let Observed::Known(pci) = &mut world.host.pci else { panic!() };
        for f in pci.iter_mut() {
            f.driver = driver.map(str::to_owned);
        }
        world
    }

    pub(in crate::checks::driver) fn everywhere(kernels: &[(&str, bool)]) -> [World; 3] {
        [World::machine(1), World::cdi(1), World::legacy(1, LegacyState::StillToRun)].map(|w| unloaded(w, kernels))
    }

    /// This check alone fails, and the general one leaves it the word.
    pub(in crate::checks::driver) fn only(world: &World, id: &str) {
        assert_eq!(world.short(id).severity, Severity::Error);
        for other in IDS.iter().chain(&["driver-not-loaded"]).filter(|other| **other != id) {
            world.silent(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{RUNNING, driven_by, everywhere, on_disk, only, signed, unloaded};
    use super::{flavour, numbers};
    use crate::checks::testing::{World, unseen};
    use crate::model::{Observed, Severity};

    #[test]
    fn a_kernel_for_which_no_module_was_built() {
        for world in everywhere(&[("6.1.0-29-amd64", true)]) {
            only(&world, "driver-module-missing-for-kernel");
        }
        for world in everywhere(&[(RUNNING, false)]) {
            only(&world, "driver-module-missing-for-kernel");
        }
    }

    #[test]
    fn a_bus_that_nobody_saw_does_not_hide_it() {
        for mut world in everywhere(&[("6.1.0-29-amd64", true)]) {
            world.host.pci = unseen();
            assert_eq!(world.short("driver-module-missing-for-kernel").severity, Severity::Error);
            world.host.pci = Observed::default();
            world.silent("driver-module-missing-for-kernel");
        }
        for mut world in everywhere(&[(RUNNING, false)]) {
            world.host.pci = unseen();
            world.unknown("driver-module-missing-for-kernel");
        }
    }

    #[test]
    fn no_module_is_missed_where_none_can_be_seen() {
        let mut world = unloaded(World::machine(1), &[]);
        world.silent("driver-module-missing-for-kernel");
        assert_eq!(world.short("driver-not-loaded").severity, Severity::Error);
        world = on_disk(world, &[(RUNNING, false)]);
        world.host.driver.root.path = "/run/nvidia/driver".into();
        world.silent("driver-module-missing-for-kernel");
        world.host.driver.root.path = "/".into();
        world.host.driver.libraries = Observed::default();
        world.silent("driver-module-missing-for-kernel");
        world.host.driver.module_files = unseen();
        world.unknown("driver-module-missing-for-kernel");
    }

    #[test]
    fn the_next_kernel_is_a_warning_of_the_machine() {
        let with = |kernels: &[(&str, bool)]| on_disk(World::machine(1), kernels);
        let world = with(&[(RUNNING, true), ("6.1.0-9-amd64", false), ("6.1.0-31-amd64", false)]);
        assert_eq!(world.short("driver-module-missing-for-kernel").severity, Severity::Warning);
        for kernels in [
            &[(RUNNING, true), ("6.1.0-31-amd64", true)][..],
            &[(RUNNING, true), ("6.1.0-29-amd64", false)],
            &[(RUNNING, true), ("6.1.0-31-rt-amd64", false)],
            &[(RUNNING, false), ("6.1.0-31-amd64", false)],
        ] {
            with(kernels).silent("driver-module-missing-for-kernel");
        }
        on_disk(World::cdi(1), &[(RUNNING, true), ("6.1.0-31-amd64", false)])
            .silent("driver-module-missing-for-kernel");
    }

    #[test]
    fn nouveau_on_the_gpu() {
        for world in everywhere(&[(RUNNING, true)]) {
            only(&driven_by(world, Some("nouveau")), "nouveau-loaded");
        }
        // One card for the screen behind nouveau, one for CUDA: nouveau is not what keeps nvidia out.
        let mut two = driven_by(unloaded(World::machine(2), &[(RUNNING, true)]), Some("nouveau"));
        let Observed::Known(pci) = &mut two.host.pci else { panic!() };
        pci[1].driver = None;
        two.silent("nouveau-loaded");
        driven_by(World::machine(1), Some("nouveau")).silent("nouveau-loaded");
        let mut unseen_bus = unloaded(World::cdi(1), &[(RUNNING, true)]);
        unseen_bus.host.pci = unseen();
        unseen_bus.unknown("nouveau-loaded");
    }

    #[test]
    fn a_container_that_may_set_up_the_machine_is_only_warned() {
        for driver in [None, Some("nouveau")] {
            let mut world = signed(driven_by(unloaded(World::cdi(1), &[(RUNNING, true)]), driver), Some(false));
            world.host.secure_boot = Observed::Known(Some(true));
            let Observed::Known(user) = &mut world.container.user else { panic!() };
            user.capabilities.as_mut().unwrap().bounding |= 1 << 16;
            let id = if driver.is_some() { "nouveau-loaded" } else { "secure-boot-module-rejected" };
            assert_eq!(world.short(id).severity, Severity::Warning);
        }
    }

    #[test]
    fn kernels_are_ordered_by_number_within_a_flavour() {
        assert!(numbers("6.8.0-31-generic") > numbers("6.8.0-9-generic"));
        assert_eq!(flavour("6.8.0-31-generic"), "generic");
        assert_eq!(flavour("4.18.0-372.el8.x86_64"), "el8-x86-64");
        assert_eq!(numbers(""), Vec::<u32>::new());
    }
}
