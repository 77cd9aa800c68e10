//! An update that waits for a reboot, told from two drivers on one machine.

use super::libraries::{MISMATCH, mismatched};
use crate::model::host::Installed;
use crate::model::{Action, DriverVersion, Facts, Judgement, Severity};

pub(super) const UPDATED: &str = "the loaded nvidia module is {module}, and {by} has put libnvidia-ml {library} in place: the driver \
                       was updated, and the machine not rebooted since";
pub(super) const NOT_BUILT: &str = "the loaded nvidia module is {module}, {by} has put libnvidia-ml {library} in place, and the module \
                         on disk for this kernel is {disk}: it was not built anew";
pub(super) const TWO: &str =
    "the loaded nvidia module is {module} and libnvidia-ml is {library}, {by}: two drivers are installed";

/// What packages, NVIDIA's installer and the module on disk say of it: an update that waits for a reboot, one whose module
/// was not built, or two drivers. Where they prove none of these it may be either.
pub(super) fn of_machine(
    facts: &Facts<'_>,
    installed: &Installed,
    module: &DriverVersion,
    library: &DriverVersion,
    path: &str,
) -> Judgement {
    let by_package = installed.package.as_ref().map(|(name, version)| (format!("package {name}"), version));
    let by_installer = installed.uninstaller.as_ref().map(|file| (format!("NVIDIA's installer ({file})"), library));
    let loadable: &[Action] = &[Action::LoadModule, Action::Reboot];
    let said = |message| mismatched(Severity::Error, message, module, library, path);
    let two = |by: String| {
        let repair =
            "remove one of the two (nvidia-uninstall for what NVIDIA's installer put there, else the packages)";
        said(TWO).arg("by", by).arg("repair", repair).only(&[Action::ChangePackages])
    };
    let failure = match (by_package, by_installer) {
        (Some((one, _)), Some((other, _))) => two(format!("{one} and {other} have put theirs there")),
        (Some((package, version)), None) if version != library => two(format!("not {version} as {package} has it")),
        (Some((by, _)), None) | (None, Some((by, _))) if installed.complete || installed.package.is_some() => {
            match &installed.module {
                Some(disk) if disk != library => {
                    let kernel = facts.host.kernel.seen().map_or("this kernel", String::as_str);
                    let repair = format!("build the module of {library} (dkms autoinstall -k {kernel})");
                    let failure = said(NOT_BUILT).arg("by", by).arg("disk", disk).arg("repair", repair);
                    failure.only(&[Action::ChangePackages])
                }
                _ => said(UPDATED).arg("by", by).only(loadable),
            }
        }
        _ => said(MISMATCH).only(loadable),
    };
    let failure = match &installed.package {
        Some((name, version)) => failure.saw("host.packages", format!("{name} {version}"), "the package database"),
        None => failure,
    };
    match &installed.module {
        Some(disk) => failure.saw("host.module_files", format!("nvidia {disk}"), "/lib/modules"),
        None => failure,
    }
    .found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::World;
    use crate::model::Observed;

    fn installed(package: Option<&str>, uninstaller: bool, module: Option<&str>) -> World {
        let mut world = World::machine(1);
        world.host.driver.version = Observed::Known(Some("550.127.05".parse().unwrap()));
        world.host.driver.installed = Some(Box::new(Installed {
            package: package.map(|version| ("libnvidia-compute-550".to_owned(), version.parse().unwrap())),
            complete: true,
            uninstaller: uninstaller.then(|| "/usr/bin/nvidia-uninstall".to_owned()),
            module: module.map(|version| version.parse().unwrap()),
        }));
        world
    }

    #[test]
    fn packages_and_the_module_on_disk_tell_a_reboot_pending_from_two_installations() {
        const NEW: Option<&str> = Some("550.163.01");
        const OLD: Option<&str> = Some("550.127.05");
        for ((package, uninstaller, module), message, first) in [
            ((NEW, false, NEW), UPDATED, Action::LoadModule),
            ((NEW, false, None), UPDATED, Action::LoadModule),
            ((None, true, NEW), UPDATED, Action::LoadModule),
            ((NEW, false, OLD), NOT_BUILT, Action::ChangePackages),
            ((OLD, false, None), TWO, Action::ChangePackages),
            ((NEW, true, NEW), TWO, Action::ChangePackages),
            ((None, false, NEW), MISMATCH, Action::LoadModule),
        ] {
            let world = installed(package, uninstaller, module);
            let failure = world.failure("driver-library-mismatch");
            assert_eq!((failure.message, failure.only[0]), (message, first), "{:?}", world.host.driver.installed);
            assert_eq!(failure.severity, Severity::Error);
        }
        let mut half_read = installed(None, true, NEW);
        half_read.host.driver.installed.as_mut().unwrap().complete = false;
        assert_eq!(half_read.failure("driver-library-mismatch").message, MISMATCH, "a package may have put them there");
    }
}
