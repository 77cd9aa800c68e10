//! GPUs on the bus that the driver does not run.

use crate::checks::nodes::expect::{Subject, subject};
use crate::checks::nodes::role::{list, plain};
use crate::checks::not_applicable;
use crate::model::host::{Gpu, PciFunction};
use crate::model::{Action, Check, Facts, Failure, Judgement, Outcome, Place, Severity, Step, Unknown};

use super::kernel_log::since_load;
use super::nvidia_loaded;

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "gpu-needs-open-module",
        title: "a GPU needs the open kernel modules, and the proprietary ones are loaded",
        why: "GPUs of the newest generations do not run with the proprietary kernel module: nvidia-smi says that no devices were found.",
        messages: &[
            "{gpus} runs only with NVIDIA's open kernel modules, and the proprietary module {version} is loaded",
        ],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Install the open flavour of the driver (packages named nvidia-open or -open) and reboot.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook],
        judge: needs_open_module,
    },
    Check {
        id: "gpu-failed-to-initialise",
        title: "the driver does not run one of the GPUs",
        why: "The GPU is on the bus, but the driver could not take it: it is missing from nvidia-smi and from every container. The others work.",
        messages: &["{gpus} on the bus, but not among the {working} that the driver runs{log}"],
        remedy: &[
            Step {
                action: Action::Reboot,
                text: "See what the kernel's log says of it, and power the machine off and on.",
                command: Some("dmesg | grep -i nvrm"),
            },
            Step {
                action: Action::ReplaceHardware,
                text: "Reseat or replace the board if it does not come back or the log names a hardware fault.",
                command: None,
            },
        ],
        severities: &[Severity::Warning],
        places: &[Place::Host],
        judge: failed_to_initialise,
    },
];

/// GPUs on the bus that the driver could have taken, and has not.
fn left_out<'a>(facts: &Facts<'a>) -> Result<Vec<&'a PciFunction>, Unknown> {
    let known = facts.host.gpus.known()?;
    let for_nvidia = |f: &&PciFunction| !f.virtual_function && matches!(f.driver.as_deref(), None | Some("nvidia"));
    Ok(facts
        .host
        .pci
        .known()?
        .iter()
        .filter(for_nvidia)
        .filter(|f| !known.iter().any(|g| g.pci == f.address))
        .collect())
}

fn needs_open_module(facts: &Facts<'_>) -> Judgement {
    let Some(subject) = subject(facts)? else { return not_applicable() };
    if !nvidia_loaded(facts.host)? {
        return not_applicable();
    }
    if facts.host.driver.open_kernel_modules.seen() == Some(&Some(true)) {
        return Ok(Outcome::Pass);
    }
    // Which GPUs there are takes a look at the bus. For a container it is taken only where the driver knows
    // such GPUs, or runs none: 570 is the first with Blackwell.
    let runs_some = facts.host.gpus.seen().is_some_and(|gpus| !gpus.is_empty());
    let too_old = facts.host.driver.version.seen().and_then(Option::as_ref).is_some_and(|v| v.number(0) < 570);
    if subject == Subject::Container && runs_some && too_old {
        return Ok(Outcome::Pass);
    }
    let affected = affected(facts)?;
    if affected.is_empty() {
        return Ok(Outcome::Pass);
    }
    let others = |f: &PciFunction| f.is_for_the_host() && !affected.iter().any(|a| a.address == f.address);
    let works = facts.host.pci.known()?.iter().any(others);
    let version = facts.host.driver.version.seen().and_then(Option::as_ref).map_or("", |v| v.as_str());
    let gpus = list(affected.iter().map(|f| f.address.as_str()));
    Failure::new(
        if works || !is_certain(facts, &affected) { Severity::Warning } else { Severity::Error },
        CHECKS[0].messages[0],
    )
    .arg("gpus", format!("GPU {gpus}"))
    .arg("version", version)
    .saw("host.pci", gpus, "/sys/bus/pci/devices")
    .saw("host.driver.open_kernel_modules", "false", "/proc/driver/nvidia/version")
    .found()
}

/// What the proprietary driver writes into the kernel's log of a GPU that it does not serve.
const WORDS: &str = "requires use of the NVIDIA open kernel modules";

/// The GPUs that do not run because the driver is the proprietary one: by its own words in the kernel's
/// log, or by a device id that this flavour does not serve. It may list them nevertheless.
fn affected<'a>(facts: &Facts<'a>) -> Result<Vec<&'a PciFunction>, Unknown> {
    let proprietary = facts.host.driver.open_kernel_modules.seen() == Some(&Some(false));
    let log = facts.host.kernel_log.known().map(|lines| since_load(lines));
    let logged = |f: &PciFunction| {
        log.as_ref().is_ok_and(|lines| lines.iter().any(|l| l.contains(WORDS) && l.contains(&f.address)))
    };
    let affected: Vec<_> = facts
        .host
        .pci
        .known()?
        .iter()
        .filter(|f| f.is_for_the_host() && (logged(f) || (proprietary && is_blackwell(f.device))))
        .collect();
    match log {
        // A GPU that the driver left out could be named in the log that nobody could read.
        Err(unknown) if affected.is_empty() && !left_out(facts)?.is_empty() => Err(unknown),
        _ => Ok(affected),
    }
}

/// The driver's own words say so, or it has left one of them out: a flavour of it that lists them all may run
/// them after all.
fn is_certain(facts: &Facts<'_>, affected: &[&PciFunction]) -> bool {
    let log = facts.host.kernel_log.seen().map(|lines| since_load(lines)).unwrap_or_default();
    let listed = facts.host.gpus.seen().map(Vec::as_slice).unwrap_or_default();
    log.iter().any(|line| line.contains(WORDS)) || affected.iter().any(|f| !listed.iter().any(|g| g.pci == f.address))
}

/// Blackwell, by the first byte of the device id: GB100 0x29, GB202 to GB207 and GB10 0x2b to 0x2f, GB300 0x31.
///
/// Source of the ids: product list of open-gpu-kernel-modules 595.45.04. That Blackwell needs the open
/// flavour: NVIDIA driver installation guide, "Kernel Modules", R610.
fn is_blackwell(device: u16) -> bool {
    matches!(device >> 8, 0x29 | 0x2b..=0x2f | 0x31)
}

fn failed_to_initialise(facts: &Facts<'_>) -> Judgement {
    if subject(facts)? != Some(Subject::Machine) || !nvidia_loaded(facts.host)? {
        return not_applicable();
    }
    let working = facts.host.gpus.known()?.iter().filter(|gpu: &&Gpu| !gpu.excluded).count();
    if working == 0 {
        return not_applicable();
    }
    let explained = affected(facts).unwrap_or_default();
    let failed: Vec<&str> = left_out(facts)?
        .into_iter()
        .filter(|f| !explained.iter().any(|e| e.address == f.address))
        .map(|f| f.address.as_str())
        .collect();
    if failed.is_empty() {
        return Ok(Outcome::Pass);
    }
    let lines = facts.host.kernel_log.seen().map(|lines| since_load(lines)).unwrap_or_default();
    let said = lines.iter().rev().find(|line| line.contains("RmInitAdapter failed"));
    let gpus = list(failed.iter().copied());
    let failure = Failure::new(Severity::Warning, CHECKS[1].messages[0])
        .arg("gpus", if failed.len() == 1 { format!("GPU {gpus} is") } else { format!("GPUs {gpus} are") })
        .arg("working", working)
        .arg("log", if said.is_some() { "; its log says RmInitAdapter failed" } else { "" })
        .saw("host.pci", gpus, "/sys/bus/pci/devices")
        .saw("host.gpus", working, "/proc/driver/nvidia/gpus");
    match said {
        Some(line) => failure.saw("host.kernel_log", plain(line), "the kernel's log"),
        None => failure,
    }
    .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::Observed;
    use crate::model::container::LegacyState;

    const NEEDS_OPEN: &str = "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85) installed in this system requires use of the NVIDIA open kernel modules.";

    /// The first GPU is on the bus, and not in the driver's list.
    fn first_left_out(mut world: World) -> World {
        let Observed::Known(gpus) = &mut world.host.gpus else { panic!() };
        gpus.remove(0);
        world.host.driver.open_kernel_modules = Observed::Known(Some(false));
        world
    }

    fn logging(mut world: World, line: &str) -> World {
        world.host.kernel_log = Observed::Known(vec![line.to_owned()]);
        world
    }

    #[test]
    fn the_drivers_own_words_name_the_gpu() {
        for world in [World::machine(1), World::legacy(1, LegacyState::StillToRun)] {
            let world = logging(first_left_out(world), NEEDS_OPEN);
            assert_eq!(world.short("gpu-needs-open-module").severity, Severity::Error);
        }
        let world = logging(first_left_out(World::machine(2)), NEEDS_OPEN);
        assert_eq!(world.short("gpu-needs-open-module").severity, Severity::Warning);
        world.silent("gpu-failed-to-initialise");
    }

    #[test]
    fn the_device_id_tells_it_without_a_log() {
        let mut world = first_left_out(World::machine(1));
        world.host.kernel_log = unseen();
        world.unknown("gpu-needs-open-module");
        let Observed::Known(pci) = &mut world.host.pci else { panic!() };
        pci[0].device = 0x2b85;
        assert_eq!(world.short("gpu-needs-open-module").severity, Severity::Error);
        world.host.gpus = crate::model::testing::host(1).gpus;
        assert_eq!(world.short("gpu-needs-open-module").severity, Severity::Warning, "the driver has it in its list");
        world.host.driver.open_kernel_modules = Observed::Known(Some(true));
        world.silent("gpu-needs-open-module");
    }

    #[test]
    fn what_the_driver_runs_needs_nothing() {
        let mut world = logging(World::machine(1), &NEEDS_OPEN.replace("01:00", "09:00"));
        world.host.driver.open_kernel_modules = Observed::Known(Some(false));
        world.silent("gpu-needs-open-module");
        let reloaded = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.163.01".to_owned();
        world.host.kernel_log = Observed::Known(vec![NEEDS_OPEN.to_owned(), reloaded]);
        world.silent("gpu-needs-open-module");
        world.host.kernel_log = unseen();
        world.silent("gpu-needs-open-module");
        world.host.gpus = unseen();
        world.unknown("gpu-needs-open-module");
        // Whatever the driver lists, its own words are enough.
        let mut said = logging(World::machine(1), NEEDS_OPEN);
        said.host.gpus = unseen();
        said.host.driver.open_kernel_modules = Observed::Known(Some(false));
        assert_eq!(said.short("gpu-needs-open-module").severity, Severity::Error);
    }

    #[test]
    fn the_proprietary_driver_lists_what_it_cannot_run() {
        let mut world = logging(World::machine(1), NEEDS_OPEN);
        world.host.driver.open_kernel_modules = Observed::Known(Some(false));
        assert_eq!(world.short("gpu-needs-open-module").severity, Severity::Error);
    }

    #[test]
    fn one_board_of_several_that_did_not_come_up() {
        let world = first_left_out(World::machine(4));
        assert_eq!(world.short("gpu-failed-to-initialise").severity, Severity::Warning);
        let said = logging(world, "NVRM: RmInitAdapter failed! (0x26:0xffff:1127)").short("gpu-failed-to-initialise");
        assert_eq!(said.evidence.len(), 3);
        World::machine(4).silent("gpu-failed-to-initialise");
    }

    #[test]
    fn functions_that_are_not_the_drivers_are_not_missed() {
        let mut world = first_left_out(World::machine(2));
        let Observed::Known(pci) = &mut world.host.pci else { panic!() };
        pci[0].driver = Some("vfio-pci".into());
        world.silent("gpu-failed-to-initialise");
        let Observed::Known(pci) = &mut world.host.pci else { panic!() };
        pci[0].driver = None;
        pci[0].virtual_function = true;
        world.silent("gpu-failed-to-initialise");
        world.host.gpus = unseen();
        world.unknown("gpu-failed-to-initialise");
    }
}
