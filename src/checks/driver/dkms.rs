//! How far DKMS has come with the driver's module for a kernel.

use super::unloadable::numbers;
use crate::model::{Failure, Host};

/// How far DKMS has come for this kernel, and the command that goes on from there.
pub(super) fn by_dkms(host: &Host, kernel: &str, failure: Failure) -> Failure {
    let files = host.driver.module_files.seen();
    let has_headers = files.is_some_and(|files| files.headers.contains(kernel));
    // the newest that it was given
    let module = files.and_then(|files| files.dkms.iter().max_by_key(|module| numbers(&module.version)));
    let Some(module) = module else {
        return failure.arg("kernel", kernel).arg("dkms", "").arg("build", format!("dkms autoinstall -k {kernel}"));
    };
    let name = format!("{}/{}", module.name, module.version);
    let is_built = module.kernels.contains_key(kernel);
    let state = match (is_built, has_headers) {
        (true, _) => format!(": DKMS has built {name} for it, and not installed it"),
        (false, true) => format!(": DKMS has {name}, and not built it for this kernel"),
        (false, false) => format!(": DKMS has {name}, and the headers of this kernel are not installed"),
    };
    let install = format!("dkms install {name} -k {kernel}");
    let build = match headers(host, kernel).filter(|_| !is_built && !has_headers) {
        Some(headers) => format!("{headers} && {install}"),
        None => install,
    };
    let seen = format!("{name}: {}", if is_built { "built" } else { "added" });
    failure.arg("kernel", kernel).arg("dkms", state).arg("build", build).saw("host.dkms", seen, "/var/lib/dkms")
}

/// What installs a kernel's headers, on distributions whose package for that has the kernel's name.
fn headers(host: &Host, kernel: &str) -> Option<String> {
    let os = host.os.seen()?;
    let is = |names: &[&str]| os.iter().any(|id| names.contains(&id.as_str()));
    if is(&["debian", "ubuntu"]) {
        return Some(format!("apt install linux-headers-{kernel}"));
    }
    is(&["rhel", "fedora", "centos"]).then(|| format!("dnf install kernel-devel-{kernel}"))
}

#[cfg(test)]
mod tests {
    use super::super::unloadable::testing::{RUNNING, on_disk, unloaded};
    use crate::checks::testing::World;
    use crate::model::Observed;
    use crate::model::host::DkmsModule;

    const ID: &str = "driver-module-missing-for-kernel";

    #[test]
    fn how_far_dkms_came_is_said_with_the_command_that_goes_on() {
        const NEXT: &str = "6.1.0-31-amd64";
        let with = |built: bool, headers: bool, os: &str| {
            let mut world = on_disk(World::machine(1), &[(RUNNING, true), (NEXT, false)]);
            let Observed::Known(files) = &mut world.host.driver.module_files else { panic!() };
            let module =
                |version: &str, kernels| DkmsModule { name: "nvidia".into(), version: version.into(), kernels };
            let built = built.then(|| (NEXT.to_owned(), false)).into_iter().collect();
            files.dkms = vec![module("550.163.01", built), module("470.42.01", [(NEXT.to_owned(), false)].into())];
            files.headers.extend(headers.then(|| NEXT.to_owned()));
            world.host.os = Observed::Known(vec![os.to_owned()]);
            let failure = world.short(ID);
            let fill = |text| crate::model::wording::fill(text, &failure.args);
            (fill(failure.message), fill("{build}"))
        };
        let install = format!("dkms install nvidia/550.163.01 -k {NEXT}");
        let (said, command) = with(false, true, "debian");
        assert!(said.ends_with("DKMS has nvidia/550.163.01, and not built it for this kernel") && command == install);
        let (said, command) = with(true, true, "debian");
        assert!(said.ends_with("DKMS has built nvidia/550.163.01 for it, and not installed it") && command == install);
        let (said, command) = with(false, false, "ubuntu");
        assert!(said.contains("headers of this kernel are not installed"), "{said}");
        assert_eq!(command, format!("apt install linux-headers-{NEXT} && {install}"));
        assert_eq!(with(false, false, "fedora").1, format!("dnf install kernel-devel-{NEXT} && {install}"));
        assert_eq!(with(false, false, "arch").1, install);
        let missing = unloaded(World::machine(1), &[(RUNNING, false), ("6.1.0-29-amd64", true)]);
        let command = crate::model::wording::fill("{build}", &missing.failure(ID).args);
        assert_eq!(command, format!("dkms autoinstall -k {RUNNING}"));
    }
}
