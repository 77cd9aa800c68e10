//! WSL: Windows' driver, and a toolkit that knows its files.

use super::ways;
use crate::checks::not_applicable;
use crate::checks::request::asked::has_legacy_hook;
use crate::knowledge::toolkit::{CDI_HOOK, WSL_DXGDMAL, older, parent};
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::{DriverLibrary, Platform};

const TOO_OLD: &str = "NVIDIA Container Toolkit {toolkit} does not bring {library} into containers, which this Windows \
                       driver's libcuda needs; {since} does";

const NO_ADAPTER: &str = "WSL has Windows' driver ({library}) and no /dev/dxg: Windows hands it no GPU";

/// The library that libcuda of Windows drivers from 555 on loads.
const DXGDMAL: &str = "libnvdxgdmal";
/// Windows' store of drivers, a directory each package.
const STORE: &str = "/usr/lib/wsl/drivers/";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "wsl-toolkit-too-old-for-driver",
        title: "the toolkit in WSL is too old for the Windows driver",
        why: "CUDA fails with error 500, named symbol missing.",
        messages: &[TOO_OLD],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Update the NVIDIA Container Toolkit, or Docker Desktop to 4.31 or later.",
            command: None,
        }],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: toolkit_too_old,
    },
    Check {
        id: "wsl-no-adapter",
        title: "WSL has no GPU",
        why: "WSL hands on what Windows shows as an adapter with WDDM; without one CUDA finds no device.",
        messages: &[NO_ADAPTER],
        remedy: &[
            Step {
                action: Action::ConfigureEngine,
                text: "Use WSL 2, up to date.",
                command: Some("wsl.exe --update; wsl.exe --set-version DISTRIBUTION 2"),
            },
            Step {
                action: Action::ConfigureEngine,
                text: "Put a card that is in TCC or compute mode into WDDM mode, on Windows.",
                command: Some("nvidia-smi -fdm 0"),
            },
            Step {
                action: Action::UpdateDriver,
                text: "Install a driver for Windows that supports WSL; none inside WSL.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host],
        judge: no_adapter,
    },
];

fn toolkit_too_old(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    if host.platform != Platform::Wsl {
        return not_applicable();
    }
    let on_machine = facts.place == Place::Host;
    let concerned = on_machine || (has_legacy_hook(facts.container)? && facts.container.legacy_still_to_run());
    if !concerned {
        return not_applicable();
    }
    // the hook itself does not look into package databases; the command line program does
    if on_machine && ways::is_older(host, WSL_DXGDMAL, CDI_HOOK)? != Some(true) {
        return Ok(Outcome::Pass);
    }
    let Some(release) = host.toolkit.libnvidia_container.as_ref().or(host.toolkit_release()) else {
        return not_applicable();
    };
    if !older(release, WSL_DXGDMAL) {
        return Ok(Outcome::Pass);
    }
    let libraries = host.driver.libraries.known()?;
    let Some(library) = libraries.iter().find(|l| l.name == DXGDMAL) else { return Ok(Outcome::Pass) };
    // Windows keeps packages of other versions: one without the library may be the driver that runs
    let without = |l: &&DriverLibrary| {
        l.path.contains(STORE) && !libraries.iter().any(|d| d.name == DXGDMAL && parent(&d.path) == parent(&l.path))
    };
    let severity = if libraries.iter().any(|l| without(&l)) { Severity::Warning } else { Severity::Error };
    Failure::new(severity, TOO_OLD)
        .foreign("toolkit", release.as_str())
        .arg("library", "libnvdxgdmal.so.1")
        .arg("since", WSL_DXGDMAL)
        .saw("host.toolkit.version", release, "package database")
        .saw("host.driver.libraries", &library.path, &library.path)
        .found()
}

fn no_adapter(facts: &Facts<'_>) -> Judgement {
    let host = facts.host;
    // a container in WSL lacks the node for reasons of its own
    if host.platform != Platform::Wsl || host.inside.is_some() {
        return not_applicable();
    }
    // whether Windows has an adapter behind the node shows only to who opens it
    if host.device_nodes.known()?.contains_key("/dev/dxg") {
        return not_applicable();
    }
    // without NVIDIA's driver on Windows there is nothing to hand on
    let Some(library) = host.driver.libraries.known()?.iter().find(|l| l.name == "libcuda") else {
        return not_applicable();
    };
    Failure::new(Severity::Error, NO_ADAPTER)
        .foreign("library", &library.path)
        .saw("host.device_nodes", "no /dev/dxg", "/dev")
        .saw("host.driver.libraries", &library.path, &library.path)
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{Given, LegacyState};
    use crate::model::host::{DriverLibrary, Platform};
    use crate::model::{Observed, Severity};

    const ID: &str = "wsl-toolkit-too-old-for-driver";

    fn wsl(mut world: World, toolkit: &str) -> World {
        world.host.platform = Platform::Wsl;
        world.container.gpu_given = Observed::Known(Given::Wsl);
        world.host.toolkit.version = Observed::Known(Some(toolkit.parse().unwrap()));
        world.host.driver.libraries = Observed::Known(vec![DriverLibrary {
            name: super::DXGDMAL.into(),
            path: "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0/libnvdxgdmal.so.1".into(),
            version: None,
            current: true,
            size: 1,
        }]);
        world
    }

    fn both(toolkit: &str) -> [World; 2] {
        [wsl(World::machine(0), toolkit), wsl(World::legacy(0, LegacyState::StillToRun), toolkit)]
    }

    #[test]
    fn an_old_toolkit_and_a_driver_with_the_library_is_an_error() {
        for world in both("1.14.3") {
            assert_eq!(world.failure(ID).severity, Severity::Error);
        }
    }

    #[test]
    fn which_of_several_drivers_runs_nobody_can_tell() {
        for mut world in both("1.14.3") {
            let Observed::Known(libraries) = &mut world.host.driver.libraries else { panic!() };
            for package in ["nv_dispi.inf_amd64_0", "nvlti.inf_amd64_1"] {
                let path = format!("/usr/lib/wsl/drivers/{package}/libcuda.so.1.1");
                libraries.push(DriverLibrary { name: "libcuda".into(), path, ..libraries[0].clone() });
            }
            assert_eq!(world.failure(ID).severity, Severity::Warning);
            let Observed::Known(libraries) = &mut world.host.driver.libraries else { panic!() };
            libraries.pop();
            assert_eq!(world.failure(ID).severity, Severity::Error);
        }
    }

    #[test]
    fn a_newer_toolkit_an_older_driver_or_another_platform_is_fine() {
        for world in both("1.14.4") {
            world.silent(ID);
        }
        for mut world in both("1.14.3") {
            world.host.driver.libraries = Observed::Known(vec![]);
            world.silent(ID);
            world.host.platform = Platform::Native;
            world.silent(ID);
        }
        wsl(World::cdi(1), "1.14.3").silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        for mut world in both("1.14.3") {
            world.host.driver.libraries = unseen();
            world.unknown(ID);
        }
        let mut world = wsl(World::machine(0), "1.14.3");
        world.host.toolkit.version = unseen();
        world.silent(ID);
        world.host.toolkit.programs = unseen();
        world.unknown(ID);
    }

    #[test]
    fn windows_libraries_without_its_node_are_an_error() {
        const NONE: &str = "wsl-no-adapter";
        let mut world = wsl(World::machine(0), "1.18.0");
        world.host.device_nodes = Observed::Known([].into());
        world.silent(NONE);
        let Observed::Known(libraries) = &mut world.host.driver.libraries else { panic!() };
        let path = "/usr/lib/wsl/lib/libcuda.so.1".to_owned();
        libraries.push(DriverLibrary { name: "libcuda".into(), path, ..libraries[0].clone() });
        assert_eq!(world.failure(NONE).severity, Severity::Error);
        world.host.inside = Some(crate::model::host::Inside::Container);
        world.silent(NONE);
        world.host.inside = None;
        world.host.device_nodes = unseen();
        world.unknown(NONE);
        let node = crate::model::host::Node {
            major: 10,
            minor: 125,
            ..crate::model::testing::host(1).device_nodes.known().unwrap()["/dev/nvidia0"].clone()
        };
        world.host.device_nodes = Observed::Known([("/dev/dxg".to_owned(), node)].into());
        world.silent(NONE);
    }
}
