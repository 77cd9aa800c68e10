//! Files of the driver that an image brings: they belong to the host, whose own are put into each container.

use super::libcuda::{by_file, comes_after_driver, keeps_environment, of_driver};
use super::meant;
use crate::checks::not_applicable;
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::driver_files::{SMI, is_libcuda};
use crate::knowledge::toolkit::parent;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, LegacyState};
use crate::model::host::Platform;
use crate::model::image::{DriverFile, DriverFileKind};
use crate::model::{DriverVersion, Facts, Unknown};

const COLLIDES: &str = "{path} in the image is a link, and NVIDIA's hook cannot put the host's own in its place: it \
                        refuses the start, file exists";
const COLLIDES_PERHAPS: &str = "{path} in the image is a link to a program of the image: NVIDIA's hook puts the host's \
                                over that, or refuses the start, file exists";
const WINS: &str = "the image has {path} of its own, newer than driver {driver} and in the directory that NVIDIA's \
                    tools bring the host's to: the loader takes the image's, which does not fit the kernel module";
const LIES: &str = "the image has {path}, a library of a driver: these belong to the host, whose own are brought in";
const EMPTY: &str = "the image has empty files of {what}, such as {path}, left from a container with GPUs: the loader \
                     may come to them";
const STUB: &str = "{by} leads the loader to {path}, the stub for linking, before the driver's libcuda: CUDA does not \
                    start, error 34";
const STUB_PERHAPS: &str = "{by} leads the loader to {path}, the stub for linking, and it may come before the driver's \
                            libcuda: then error 34";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "driver-libs-in-image",
        title: "libraries of a driver are baked into the image",
        why: "They collide with those that the toolkit brings in, or the loader takes them: file exists, or a version \
              mismatch in this image only.",
        messages: &[COLLIDES, COLLIDES_PERHAPS, WINS, LIES],
        remedy: &[
            Step {
                action: Action::ChangeImage,
                text: "Remove the driver's packages from the image.",
                command: Some("apt-get purge 'libnvidia-*' 'nvidia-utils-*'"),
            },
            Step {
                action: Action::ChangeImage,
                text: "Install cuda-toolkit, not cuda, and with --no-install-recommends.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: baked_in,
    },
    Check {
        id: "zero-byte-driver-files-in-image",
        title: "empty files of a driver are left in the image",
        why: "An image committed from a container with a GPU keeps the mount points: empty libcuda.so.*, which the \
              loader comes to.",
        messages: &[EMPTY],
        remedy: &[Step {
            action: Action::ChangeImage,
            text: "Delete them from the image, and build it from a Dockerfile rather than by commit.",
            command: Some("find / -xdev -name 'lib*.so.[0-9]*' -size 0 -delete && ldconfig"),
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: empty,
    },
    Check {
        id: "cuda-stub-loaded",
        title: "the loader takes the toolkit's stub for libcuda",
        why: "The stub is only for linking: CUDA says error 34, or -1.",
        messages: &[STUB, STUB_PERHAPS],
        remedy: &[
            Step {
                action: Action::ChangeEnvironment,
                text: "Take the stubs directory out of LD_LIBRARY_PATH.",
                command: None,
            },
            Step {
                action: Action::ChangeImage,
                text: "Remove the directory from /etc/ld.so.conf.d, and links to it.",
                command: None,
            },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image, Place::Healthcheck],
        judge: stub,
    },
];

/// Files of one kind; `None`: the question does not arise. Jetson's images have files of its driver by design.
fn of_kind<'a>(facts: &Facts<'a>, kinds: &[DriverFileKind]) -> Result<Option<Vec<&'a DriverFile>>, Unknown> {
    if facts.host.platform == Platform::Tegra || !meant::has_gpu(facts)? {
        return Ok(None);
    }
    let files = &facts.image.driver_files.known()?.items;
    let found: Vec<&DriverFile> = files.iter().filter(|file| kinds.contains(&file.kind)).collect();
    Ok((!found.is_empty()).then_some(found))
}

/// The host's driver, as far as it tells its version by a file's name.
fn driver<'a>(facts: &Facts<'a>) -> Result<Option<&'a DriverVersion>, Unknown> {
    if facts.place == Place::Image {
        return Ok(facts.host.driver.version.seen().and_then(Option::as_ref));
    }
    Ok(facts.host.driver.version.known()?.as_ref())
}

fn baked_in(facts: &Facts<'_>) -> Judgement {
    use DriverFileKind::{Library, Program};
    let Some(found) = of_kind(facts, &[Library, Program])? else { return not_applicable() };
    let collision = collision(facts, &found)?;
    if let Some(Collision { path, sure: true }) = &collision {
        return lies(Severity::Error, COLLIDES, path).found();
    }
    let driver = driver(facts)?;
    // of the host's own version it is the host's, or as good
    let foreign = |file: &&&DriverFile| {
        file.kind == Library && (file.version.is_none() || driver.is_none() || file.version.as_ref() != driver)
    };
    let foreign: Vec<&DriverFile> = found.iter().filter(foreign).copied().collect();
    let Some(first) = foreign.first() else {
        return match collision {
            Some(Collision { path, .. }) => lies(Severity::Warning, COLLIDES_PERHAPS, &path).found(),
            None => Ok(Outcome::Pass),
        };
    };
    if let Some(driver) = driver
        && (facts.place == Place::Hook || meant::is_for_gpu(facts)?)
        && let Some(file) = newer(facts, &foreign, driver)?
    {
        return lies(Severity::Error, WINS, &file.path)
            .arg("driver", driver)
            .saw("host.driver.version", driver, facts.host.source_of_driver())
            .found();
    }
    lies(Severity::Warning, LIES, &first.path).found()
}

fn lies(severity: Severity, message: &'static str, path: &str) -> Failure {
    Failure::new(severity, message).foreign("path", path).saw("image.driver_files", path, "the image's files")
}

/// A link where NVIDIA's hook would have to put the host's own.
struct Collision {
    path: String,
    /// The hook refuses it.
    sure: bool,
}

/// The hook makes a file in such a place and does not follow a link, unless one is there with the mode of the host's:
/// that it asks with stat(2), which follows links, absolute ones to the host's own files (libnvidia-container
/// `src/utils.c`, `file_create` and `file_mode`, 077f498c; earlier releases do not ask; nvidia-docker#825 and reports
/// until 2023). On WSL the host's libraries have the names of links, and are 0555; elsewhere nvidia-smi is the one file
/// without a version in its name.
fn collision(facts: &Facts<'_>, found: &[&DriverFile]) -> Result<Option<Collision>, Unknown> {
    let container = facts.container;
    let still_to_run = container.legacy_hook.as_ref().is_some_and(|hook| hook.state == LegacyState::StillToRun);
    if !still_to_run {
        return Ok(None);
    }
    let capabilities = Capabilities::of(container.environment.known()?);
    let brings = |word: &str| capabilities == Capabilities::Default || capabilities.names(word);
    let links = || found.iter().filter_map(|file| Some((*file, file.link.as_ref()?)));
    let link = match (facts.host.platform, *container.gpu_given.known()?) {
        (Platform::Wsl, Given::Wsl | Given::LegacyHook) => {
            links().find(|(file, _)| file.path != SMI && file.in_drivers_place)
        }
        (_, Given::LegacyHook) => links().find(|(file, _)| file.path == SMI),
        _ => None,
    };
    let collision = |(file, path): (&DriverFile, &String)| Collision { path: path.clone(), sure: !file.link_passes };
    Ok(link.filter(|_| brings("utility")).map(collision))
}

/// A libcuda that comes before the driver's: of two libraries with one name for the loader in one directory ldconfig
/// takes the one with the greater version (glibc `elf/ldconfig.c`, `search_dir`). Other libraries of a driver serve
/// encoders, say, are not always brought in, and CUDA works without them.
fn newer<'a>(
    facts: &Facts<'_>,
    foreign: &[&'a DriverFile],
    driver: &DriverVersion,
) -> Result<Option<&'a DriverFile>, Unknown> {
    let given = *facts.container.gpu_given.known()?;
    let drivers = if given == Given::Cdi { of_cdi(facts)? } else { Vec::new() };
    let together = |file: &DriverFile| match given {
        Given::LegacyHook => file.in_drivers_place,
        Given::Cdi => drivers.iter().any(|directory| directory == parent(&file.path)),
        _ => false,
    };
    let is_newer = |file: &DriverFile| file.version.as_ref().is_some_and(|version| version > driver);
    let wins = |file: &&&DriverFile| is_libcuda(&file.path) && is_newer(file) && together(file);
    Ok(foreign.iter().find(wins).copied())
}

/// Where CDI brings the driver's libraries; where nobody looked it is not guessed.
fn of_cdi(facts: &Facts<'_>) -> Result<Vec<String>, Unknown> {
    if facts.place == Place::Image {
        let own = facts.container.libcuda.seen().map_or(&[][..], Vec::as_slice);
        return Ok(own.iter().map(|path| parent(path).to_owned()).collect());
    }
    of_driver(facts)
}

fn empty(facts: &Facts<'_>) -> Judgement {
    let Some(found) = of_kind(facts, &[DriverFileKind::Empty])? else { return not_applicable() };
    // what a hook mounts over has the host's own version
    let driver = driver(facts)?;
    let is_left = |file: &&&DriverFile| file.version.is_some() && (driver.is_none() || file.version.as_ref() != driver);
    let Some(file) = found.iter().find(is_left) else { return Ok(Outcome::Pass) };
    let what = file.version.as_ref().map_or_else(|| "a driver".to_owned(), |version| format!("driver {version}"));
    lies(Severity::Warning, EMPTY, &file.path).arg("what", what).found()
}

fn stub(facts: &Facts<'_>) -> Judgement {
    let Some(found) = of_kind(facts, &[DriverFileKind::Stub])? else { return not_applicable() };
    for file in found {
        let Some(reach) = &file.reach else { continue };
        if comes_after_driver(facts, reach)? {
            continue;
        }
        let is_variable = reach.source == "LD_LIBRARY_PATH";
        let sure = if is_variable { Some(keeps_environment(facts)) } else { by_file(facts, reach)?.map(|_| false) };
        let Some(sure) = sure else { continue };
        let Some(certain) = meant::computes(facts)? else { return not_applicable() };
        let (severity, message) =
            if sure && certain { (Severity::Error, STUB) } else { (Severity::Warning, STUB_PERHAPS) };
        let only: &'static [Action] = if is_variable { &[Action::ChangeEnvironment] } else { &[Action::ChangeImage] };
        return lies(severity, message, &file.path).foreign("by", &reach.source).only(only).found();
    }
    Ok(Outcome::Pass)
}

#[cfg(test)]
mod tests;
