//! Do the driver's libraries fit its kernel module?

use crate::checks::nodes::expect::{Subject, subject};
use crate::checks::not_applicable;
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::nvml::{VERSION_MISMATCH, said};
use crate::knowledge::toolkit::base_name;
use crate::model::container::{Given, LegacyState};
use crate::model::host::{DriverLibrary, Nvml};
use crate::model::{
    Action, Check, Container, DriverVersion, Facts, Failure, Judgement, Outcome, Place, Severity, Step, Unknown,
};

use super::{installed, nvidia_loaded};

pub(super) const MISMATCH: &str = "the loaded nvidia module is {module}, but libnvidia-ml is {library}: the driver was updated \
                        without a reboot, or two are installed";
const REFUSED: &str = "the loaded nvidia module is {module}, and the libnvidia-ml that is loaded here is another one and \
                       refuses it, though the right one is installed";
/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "driver-library-mismatch",
        title: "the NVIDIA libraries and the loaded kernel module are of different versions",
        why: "NVML refuses to talk to a kernel module of another version (\"driver/library version mismatch\"), and with it nvidia-smi and the container toolkit.",
        messages: &[MISMATCH, installed::UPDATED, installed::NOT_BUILT, installed::TWO, REFUSED],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Take the other library out of the loader's way: LD_LIBRARY_PATH, /etc/ld.so.conf.d.",
                command: Some("ldconfig -p | grep libnvidia-ml; echo $LD_LIBRARY_PATH"),
            },
            Step {
                action: Action::LoadModule,
                text: "If nothing uses a GPU and no screen hangs on one: load the module of the installed version.",
                command: Some("rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia"),
            },
            Step {
                action: Action::Reboot,
                text: "Reboot, so that the module of the installed version is loaded.",
                command: Some("reboot"),
            },
            Step { action: Action::ChangePackages, text: "First {repair}, then reboot.", command: None },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Hook, Place::Healthcheck],
        judge: mismatch,
    },
    Check {
        id: "driver-library-missing",
        title: "the driver's user-space libraries are missing",
        why: "Containers get libcuda and libnvidia-ml from the machine; where it has none, the toolkit and every CUDA program fail.",
        messages: &[
            "driver {version} is loaded, but there is no {libraries} below {root} ({source})",
            "the loader finds no libnvidia-ml in the container: nvidia-smi and what asks NVML do not work, CUDA may",
        ],
        remedy: &[
            Step {
                action: Action::ChangePackages,
                text: "Install the driver's libraries ({version}), or name the right root with --driver-root.",
                command: None,
            },
            Step {
                action: Action::ChangeEnvironment,
                text: "Ask for them with the GPU: NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host, Place::Healthcheck],
        judge: missing,
    },
];

fn mismatch(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Healthcheck {
        return mismatch_inside(facts);
    }
    let Some(subject) = subject(facts)? else { return not_applicable() };
    if subject == Subject::Container && !matches!(facts.container.gpu_given.known()?, Given::LegacyHook | Given::Cdi) {
        // Its libraries are no business of this machine's.
        return not_applicable();
    }
    let Some(module) = facts.host.driver.version.known()? else { return not_applicable() };
    if subject == Subject::Container && fits_already(facts.container, module)? {
        return Ok(Outcome::Pass);
    }
    // CDI mounts what its specification names, wherever that lies: the machine's own are a guess then.
    let by_cdi = subject == Subject::Container && *facts.container.gpu_given.known()? == Given::Cdi;
    if by_cdi && let Some(other) = version_mounted(facts.container)? {
        return failure(Severity::Error, module, &other, "the container's mounts");
    }
    let taken: Vec<&DriverLibrary> = facts
        .host
        .driver
        .libraries
        .known()?
        .iter()
        .filter(|library| library.name == "libnvidia-ml" && library.current)
        .collect();
    let versions: Vec<&DriverVersion> = taken.iter().filter_map(|library| library.version.as_ref()).collect();
    let refuses = facts.host.nvml.as_ref().and_then(Nvml::code) == Some(VERSION_MISMATCH);
    if subject == Subject::Machine && refuses && (versions.is_empty() || versions.contains(&module)) {
        return refused(module, versions.is_empty());
    }
    let Some(other) = versions.first() else { return not_applicable() };
    // Several directories may hold one each (32 and 64 bit); only all of them prove what the loader takes.
    if versions.len() < taken.len() || versions.contains(&module) {
        return Ok(Outcome::Pass);
    }
    let path = taken.first().map_or("", |library| library.path.as_str());
    if let (Subject::Machine, Some(installed)) = (subject, &facts.host.driver.installed) {
        return installed::of_machine(facts, installed, module, other, path);
    }
    failure(if by_cdi { Severity::Warning } else { Severity::Error }, module, other, path)
}

/// What the container's own programs load: NVML knows best, then the files' names. Where several could be taken, only
/// all of them prove it.
fn mismatch_inside(facts: &Facts<'_>) -> Judgement {
    if subject(facts)?.is_none() {
        return not_applicable();
    }
    let Some(module) = facts.host.driver.version.known()? else { return not_applicable() };
    let nvml = facts.host.nvml.as_ref();
    if nvml.is_some_and(|nvml| nvml.driver.is_some()) {
        return Ok(Outcome::Pass);
    }
    let all = facts.host.driver.libraries.known()?;
    let taken: Vec<&DriverLibrary> =
        all.iter().filter(|library| library.name == "libnvidia-ml" && library.current).collect();
    let others: Vec<(&DriverLibrary, &DriverVersion)> = taken
        .iter()
        .filter_map(|library| Some((*library, library.version.as_ref()?)))
        .filter(|(_, version)| *version != module)
        .collect();
    let refuses = nvml.and_then(Nvml::code) == Some(VERSION_MISMATCH);
    let severity = inside(facts, all, module)?;
    match others.first() {
        Some((library, version)) if refuses || others.len() == taken.len() => {
            failure(severity, module, version, &library.path)
        }
        None if refuses => Failure::new(severity, MISMATCH)
            .arg("module", module)
            .arg("library", "of another version")
            .only(&[Action::Reboot])
            .saw("host.nvml.trouble", said(VERSION_MISMATCH), "NVML")
            .found(),
        _ => Ok(Outcome::Pass),
    }
}

/// NVML says so, whatever files are called. Where the right library is installed it is this caller's loader that takes
/// another one; containers get the right one.
fn refused(module: &DriverVersion, is_certain: bool) -> Judgement {
    let failure = if is_certain {
        Failure::new(Severity::Error, MISMATCH).arg("library", "of another version").only(&[Action::Reboot])
    } else {
        Failure::new(Severity::Warning, REFUSED).only(&[Action::ChangeEnvironment])
    };
    failure.arg("module", module).saw("host.nvml.trouble", said(VERSION_MISMATCH), "NVML").found()
}

/// CUDA does without NVML. An image may bring a libnvidia-ml of its own, which hides the driver's or stands where a
/// container that asked for compute alone has none: an error only where NVML worked since the container's start, or where
/// libcuda is not the module's either. The right libnvidia-ml in another directory may be what a program is led to by
/// a script.
fn inside(facts: &Facts<'_>, all: &[DriverLibrary], module: &DriverVersion) -> Result<Severity, Unknown> {
    let container = facts.container;
    if container.inside.as_ref().is_some_and(|inside| inside.nvml_worked) {
        return Ok(Severity::Error);
    }
    let words = Capabilities::of(container.environment.known()?);
    let unasked = matches!(&words, Capabilities::Words(_)) && !words.names("utility");
    let is_right = |library: &&DriverLibrary| library.version.as_ref() == Some(module);
    let has_right = |name| all.iter().filter(is_right).any(|library: &DriverLibrary| library.name == name);
    let mild = unasked || has_right("libcuda") || has_right("libnvidia-ml");
    Ok(if mild { Severity::Warning } else { Severity::Error })
}

/// What a container shows, whose user does not load modules.
fn failure(severity: Severity, module: &DriverVersion, library: &DriverVersion, source: &str) -> Judgement {
    mismatched(severity, MISMATCH, module, library, source).only(&[Action::Reboot]).found()
}

pub(super) fn mismatched(
    severity: Severity,
    message: &'static str,
    module: &DriverVersion,
    library: &DriverVersion,
    source: &str,
) -> Failure {
    Failure::new(severity, message)
        .arg("module", module)
        .arg("library", library)
        .saw("host.driver.version", module, "/proc/driver/nvidia/version")
        .saw("host.driver.libraries", library, source)
}

/// The version of the libnvidia-ml that is mounted into the container under its full name.
fn version_mounted(container: &Container) -> Result<Option<DriverVersion>, Unknown> {
    let mut mounts = container.mounts.known()?.items.iter();
    Ok(mounts.find_map(|m| {
        let version = base_name(&m.destination).strip_prefix("libnvidia-ml.so.")?;
        version.contains('.').then(|| version.parse().ok())?
    }))
}

/// What the container gets fits, whatever the machine has by now: NVIDIA's tool has run, and stops at a
/// mismatch; or a CDI specification mounts the libraries of the module's version.
fn fits_already(container: &Container, module: &DriverVersion) -> Result<bool, Unknown> {
    if container.legacy_hook.as_ref().is_some_and(|hook| hook.state == LegacyState::HasRun) {
        return Ok(true);
    }
    if container.legacy_still_to_run() {
        return Ok(false);
    }
    let wanted = format!("libnvidia-ml.so.{module}");
    let mounts = &container.mounts.known()?.items;
    Ok(mounts.iter().any(|m| base_name(&m.destination) == wanted))
}

fn missing(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Healthcheck {
        return missing_inside(facts);
    }
    if subject(facts)? != Some(Subject::Machine) || !nvidia_loaded(facts.host)? {
        return not_applicable();
    }
    let driver = &facts.host.driver;
    let present = driver.libraries.known()?;
    let lacking: Vec<&str> =
        ["libcuda", "libnvidia-ml"].into_iter().filter(|name| !present.iter().any(|l| l.name == *name)).collect();
    if lacking.is_empty() {
        return Ok(Outcome::Pass);
    }
    // A specification names its libraries itself, wherever they lie.
    let listed = facts.host.cdi.seen().is_some_and(|all| all.iter().any(|s| s.driver.is_some() && s.gone.is_empty()));
    let version = driver.version.seen().and_then(Option::as_ref).map_or("of unknown version", |v| v.as_str());
    Failure::new(if listed { Severity::Warning } else { Severity::Error }, CHECKS[1].messages[0])
        .arg("version", version)
        .arg("libraries", lacking.join(" and no "))
        .arg("root", &driver.root.path)
        .arg("source", &driver.root.source)
        .saw("host.driver.libraries", format!("no {}", lacking.join(", ")), &driver.root.path)
        .found()
}

/// Without NVML CUDA works all the same, and whoever asks for compute alone gets none; that libcuda is missing is
/// said of the container's way of giving (`passthrough-incomplete`).
fn missing_inside(facts: &Facts<'_>) -> Judgement {
    if subject(facts)?.is_none() || !nvidia_loaded(facts.host)? {
        return not_applicable();
    }
    let present = facts.host.driver.libraries.known()?.iter().any(|library| library.name == "libnvidia-ml");
    let words = Capabilities::of(facts.container.environment.known()?);
    if present || matches!(&words, Capabilities::Words(_)) && !words.names("utility") {
        return Ok(Outcome::Pass);
    }
    let version =
        facts.host.driver.version.seen().and_then(Option::as_ref).map_or("of unknown version", |v| v.as_str());
    Failure::new(Severity::Warning, CHECKS[1].messages[1])
        .arg("version", version)
        .only(&[Action::ChangeEnvironment])
        .saw("host.driver.libraries", "no libnvidia-ml", &facts.host.driver.root.path)
        .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{World, unseen};
    use crate::model::container::Mount;
    use crate::model::host::CdiSpec;
    use crate::model::{Observed, Parts};

    fn with_module(mut world: World, version: &str) -> World {
        world.host.driver.version = Observed::Known(Some(version.parse().unwrap()));
        world
    }

    #[test]
    fn an_update_without_reboot_is_found() {
        for world in [World::machine(1), World::legacy(1, LegacyState::StillToRun)] {
            let failure = with_module(world, "550.127.05").short("driver-library-mismatch");
            assert_eq!(failure.severity, Severity::Error);
        }
        let mut by_cdi = with_module(World::cdi(1), "550.127.05");
        assert_eq!(by_cdi.short("driver-library-mismatch").severity, Severity::Warning, "its own may lie elsewhere");
        let destination = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.163.01".into();
        by_cdi.container.mounts = Observed::Known(Parts::whole(vec![Mount { destination, ..Mount::default() }]));
        assert_eq!(by_cdi.short("driver-library-mismatch").severity, Severity::Error);
        World::machine(1).silent("driver-library-mismatch");
        World::cdi(1).silent("driver-library-mismatch");
        with_module(World::legacy(1, LegacyState::HasRun), "550.127.05").silent("driver-library-mismatch");
    }

    #[test]
    fn on_the_machine_nvml_knows_better_than_the_names_of_files() {
        let mut world = World::machine(1);
        let trouble = Some(crate::model::host::NvmlTrouble::Failed("nvmlInit_v2".into(), VERSION_MISMATCH));
        world.host.nvml = Some(Nvml { trouble, ..Nvml::default() });
        let failure = world.failure("driver-library-mismatch");
        assert_eq!((failure.severity, failure.only), (Severity::Warning, &[Action::ChangeEnvironment][..]));
        let mut nameless = world.clone();
        let Observed::Known(libraries) = &mut nameless.host.driver.libraries else { panic!() };
        for library in libraries.iter_mut() {
            library.version = None;
        }
        let failure = nameless.failure("driver-library-mismatch");
        assert_eq!((failure.severity, failure.only), (Severity::Error, &[Action::Reboot][..]));
        let updated = with_module(world, "550.127.05");
        assert_eq!(updated.short("driver-library-mismatch").severity, Severity::Error);
    }

    #[test]
    fn libraries_that_are_not_the_loaders_do_not_count() {
        let mut world = with_module(World::machine(1), "550.127.05");
        let Observed::Known(libraries) = &mut world.host.driver.libraries else { panic!() };
        let mut right = libraries[1].clone();
        right.version = Some("550.127.05".parse().unwrap());
        libraries.push(right);
        world.silent("driver-library-mismatch");
        let Observed::Known(libraries) = &mut world.host.driver.libraries else { panic!() };
        for l in libraries.iter_mut() {
            l.current = false;
        }
        world.silent("driver-library-mismatch");
    }

    #[test]
    fn a_specification_that_mounts_the_old_libraries_still_fits() {
        let mut world = with_module(World::cdi(1), "550.127.05");
        let destination = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.127.05".into();
        world.container.mounts = Observed::Known(Parts::whole(vec![Mount { destination, ..Mount::default() }]));
        world.silent("driver-library-mismatch");
        let mut raw = with_module(World::cdi(1), "550.127.05");
        raw.container.gpu_given = Observed::Known(Given::RawDevices);
        raw.silent("driver-library-mismatch");
    }

    #[test]
    fn versions_that_nobody_saw_are_unknown() {
        let mut world = World::machine(1);
        world.host.driver.version = unseen();
        world.unknown("driver-library-mismatch");
        let mut world = World::machine(1);
        world.host.driver.libraries = unseen();
        world.unknown("driver-library-mismatch");
        world.unknown("driver-library-missing");
    }

    #[test]
    fn libraries_that_are_not_there_are_missed() {
        let mut world = World::machine(1);
        world.silent("driver-library-missing");
        let Observed::Known(libraries) = &mut world.host.driver.libraries else { panic!() };
        libraries.retain(|l| l.name != "libcuda");
        assert_eq!(world.short("driver-library-missing").severity, Severity::Error);
        let spec = CdiSpec { driver: Some("550.163.01".parse().unwrap()), ..CdiSpec::default() };
        world.host.cdi = Observed::Known(vec![spec]);
        assert_eq!(world.short("driver-library-missing").severity, Severity::Warning);
        world.host.driver.version = Observed::Known(None);
        world.host.driver.modules = Observed::Known([].into());
        world.silent("driver-library-missing");
    }
}
