//! A libcuda of the image's own that `LD_LIBRARY_PATH` puts before the driver's.

use crate::checks::not_applicable;
use crate::knowledge::driver_files::{DIRECTORIES as OF_DRIVERS, is_libcuda};
use crate::knowledge::toolkit::parent;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::image::{DriverFile, DriverFileKind};
use crate::model::{Container, Facts, Unknown};

const SHADOWED: &str = "LD_LIBRARY_PATH names {directory}, so programs load {library} before the driver's own libcuda";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "ld-library-path-foreign-cuda",
    title: "LD_LIBRARY_PATH puts another libcuda before the driver's",
    why: "A libcuda that does not belong to the loaded driver fails with errors such as 34, 803 or 35.",
    messages: &[SHADOWED],
    remedy: &[Step {
        action: Action::ChangeEnvironment,
        text: "Take {directory} out of LD_LIBRARY_PATH.",
        command: None,
    }],
    severities: &[Severity::Warning],
    places: &[Place::Hook, Place::Image],
    judge: foreign_cuda,
}];

fn foreign_cuda(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let Some(environment) = super::judged(facts)? else { return not_applicable() };
    let Some(path) = environment.get("LD_LIBRARY_PATH").filter(|p| !p.is_empty()) else { return not_applicable() };
    if facts.place == Place::Image {
        return of_image(facts, path);
    }
    let libraries = container.libcuda.known()?;
    let directories = path.split([':', ';']).map(trim).filter(|d| d.starts_with('/'));
    let found = directories
        .filter_map(|directory| libraries.iter().find(|library| trim(parent(library)) == directory))
        // libraries of forward compatibility have checks of their own
        .find(|library| !library.split('/').any(|part| part == "compat"));
    let Some(library) = found else { return Ok(Outcome::Pass) };
    let elsewhere = libraries.iter().any(|other| parent(other) != parent(library));
    if is_injected(container, library)? || !(elsewhere || container.legacy_still_to_run()) {
        return Ok(Outcome::Pass);
    }
    shadowed(library, path, "config.json").saw("container.libcuda", libraries.join(", "), "container").found()
}

fn shadowed(library: &str, path: &str, source: &str) -> Failure {
    Failure::new(Severity::Warning, SHADOWED).foreign("directory", parent(library)).foreign("library", library).saw(
        "container.environment.LD_LIBRARY_PATH",
        path,
        source,
    )
}

/// Of an image: a real libcuda in a directory that is none of a driver's.
fn of_image(facts: &Facts<'_>, path: &str) -> Judgement {
    let files = &facts.image.driver_files.known()?.items;
    let by_variable = |file: &&DriverFile| {
        file.kind == DriverFileKind::Library
            && is_libcuda(&file.path)
            && !OF_DRIVERS.contains(&parent(&file.path))
            && file.reach.as_ref().is_some_and(|reach| reach.source == "LD_LIBRARY_PATH")
    };
    match files.iter().find(by_variable) {
        Some(file) => shadowed(&file.path, path, "the image's configuration").found(),
        None => Ok(Outcome::Pass),
    }
}

/// The library was mounted, itself or with its directory: it is what was given to the container.
fn is_injected(container: &Container, library: &str) -> Result<bool, Unknown> {
    let mounts = container.mounts.known()?;
    Ok(mounts.items.iter().any(|mount| {
        let place = trim(&mount.destination);
        place != "/" && library.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }))
}

fn trim(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { path } else { trimmed }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::container::{LegacyState, Mount};
    use crate::model::{Observed, Parts};

    const ID: &str = "ld-library-path-foreign-cuda";
    const DRIVER: &str = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01";

    fn with(path: &str, libraries: &[&str]) -> World {
        let mut world = World::cdi(1);
        world.set("LD_LIBRARY_PATH", path);
        world.container.libcuda = Observed::Known(libraries.iter().map(|l| (*l).to_owned()).collect());
        world
    }

    #[test]
    fn a_library_of_the_images_own_on_the_path_is_a_warning() {
        with("/opt/old/", &["/opt/old/libcuda.so.1", DRIVER]).failure(ID);
        with("/x:/usr/local/cuda/lib64/stubs", &[DRIVER, "/usr/local/cuda/lib64/stubs/libcuda.so.1"]).failure(ID);
        let mut world = World::legacy(1, LegacyState::StillToRun);
        world.set("LD_LIBRARY_PATH", "/opt/old");
        world.container.libcuda = Observed::Known(vec!["/opt/old/libcuda.so.1".into()]);
        world.failure(ID);
    }

    #[test]
    fn a_path_without_one_compat_and_the_injected_one_are_fine() {
        with("/usr/local/nvidia/lib:/usr/local/nvidia/lib64", &[DRIVER]).silent(ID);
        with("/usr/local/cuda/compat", &["/usr/local/cuda/compat/libcuda.so.1", DRIVER]).silent(ID);
        with("/usr/lib/x86_64-linux-gnu", &[DRIVER]).silent(ID);
        with("", &["/opt/old/libcuda.so.1", DRIVER]).silent(ID);
        World::cdi(1).silent(ID);
        let mut mounted = with("/usr/local/nvidia/lib64", &["/usr/local/nvidia/lib64/libcuda.so.1", DRIVER]);
        let mount = Mount { destination: "/usr/local/nvidia".into(), ..Mount::default() };
        mounted.container.mounts = Observed::Known(Parts::whole(vec![mount]));
        mounted.silent(ID);
    }

    #[test]
    fn what_nobody_saw_is_unknown() {
        let mut world = with("/opt/old", &[]);
        world.container.libcuda = unseen();
        world.unknown(ID);
        let mut world = with("/opt/old", &[]);
        world.container.environment = unseen();
        world.unknown(ID);
    }
}
