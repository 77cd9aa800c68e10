//! A libcuda that `LD_LIBRARY_PATH` puts before the driver's; on the machine also an older libcudart before a newer one.

use crate::checks::not_applicable;
use crate::knowledge::driver_files::{DIRECTORIES as OF_DRIVERS, is_libcuda};
use crate::knowledge::toolkit::parent;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::PathLibrary;
use crate::model::image::{DriverFile, DriverFileKind};
use crate::model::{Container, Facts, Host, Unknown};

const SHADOWED: &str = "LD_LIBRARY_PATH names {directory}, so programs load {library} before the driver's own libcuda";
const OLDER_FIRST: &str = "LD_LIBRARY_PATH names {directory}, so programs load {library} ({version}), and never {other}, \
                           which is newer ({newer})";

/// What programs ask for.
const LIBCUDA: &str = "libcuda.so.1";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "ld-library-path-foreign-cuda",
    title: "LD_LIBRARY_PATH puts another libcuda before the driver's, or an older libcudart first",
    why: "A libcuda that does not belong to the loaded driver fails with errors such as 34, 803 or 35; an older libcudart lacks what programs for a newer one call.",
    messages: &[SHADOWED, OLDER_FIRST],
    remedy: &[Step {
        action: Action::ChangeEnvironment,
        text: "Take {directory} out of LD_LIBRARY_PATH.",
        command: None,
    }],
    severities: &[Severity::Warning],
    places: &[Place::Hook, Place::Image, Place::Host],
    judge: foreign_cuda,
}];

fn foreign_cuda(facts: &Facts<'_>) -> Judgement {
    let container = facts.container;
    let Some(environment) = super::judged(facts)? else { return not_applicable() };
    let Some(path) = environment.get("LD_LIBRARY_PATH").filter(|p| !p.is_empty()) else { return not_applicable() };
    match facts.place {
        Place::Image => return of_image(facts, path),
        Place::Host => return of_caller(facts, path),
        _ => {}
    }
    let libraries = container.libcuda.known()?;
    let directories = path.split([':', ';']).map(trim).filter(|d| d.starts_with('/'));
    let found = directories
        .filter_map(|directory| libraries.iter().find(|library| trim(parent(library)) == directory))
        // libraries of forward compatibility have checks of their own
        .find(|library| !is_compat(library));
    let Some(library) = found else { return Ok(Outcome::Pass) };
    let elsewhere = libraries.iter().any(|other| parent(other) != parent(library));
    if is_injected(container, library)? || !(elsewhere || container.legacy_still_to_run()) {
        return Ok(Outcome::Pass);
    }
    shadowed(facts, library, path, "config.json").saw("container.libcuda", libraries.join(", "), "container").found()
}

fn shadowed(facts: &Facts<'_>, library: &str, path: &str, source: &str) -> Failure {
    wins(facts, SHADOWED, library, path, source)
}

/// The library that comes first, and what leads to it.
fn wins(facts: &Facts<'_>, message: &'static str, library: &str, path: &str, source: &str) -> Failure {
    Failure::new(Severity::Warning, message).foreign("directory", parent(library)).foreign("library", library).saw(
        format!("{}.environment.LD_LIBRARY_PATH", super::subject(facts)),
        path,
        source,
    )
}

fn is_compat(library: &str) -> bool {
    library.split('/').any(|part| part == "compat")
}

/// What the caller's programs load on this machine.
fn of_caller(facts: &Facts<'_>, path: &str) -> Judgement {
    let found = facts.host.library_path.known()?;
    let libcuda = found.iter().find(|library| library.by_variable && library.name == LIBCUDA);
    // one for forward compatibility is meant, where it comes first
    if let Some(first) = libcuda.filter(|first| !is_compat(&first.path) && !is_the_drivers(facts.host, first)) {
        let failure = shadowed(facts, &first.path, path, "the caller's environment");
        return failure.saw("host.library_path", said(first), "the loader's order").found();
    }
    // programs ask for one name, and take the first that has it
    for first in found.iter().filter(|library| library.by_variable && library.name != LIBCUDA) {
        let same = || found.iter().filter(|other| other.name == first.name);
        let newest = same().filter_map(|other| Some((other, other.version.as_ref()?))).max_by(|a, b| a.1.cmp(b.1));
        if let (Some(version), Some((other, newer))) = (&first.version, newest)
            && same().next() == Some(first)
            && version < newer
        {
            return wins(facts, OLDER_FIRST, &first.path, path, "the caller's environment")
                .arg("version", version)
                .foreign("other", &other.path)
                .arg("newer", newer)
                .saw("host.library_path", format!("{}, {}", said(first), said(other)), "the loader's order")
                .found();
        }
    }
    Ok(Outcome::Pass)
}

/// It is the driver's own file, or of the same version; and where no other is known of it may be.
fn is_the_drivers(host: &Host, library: &PathLibrary) -> bool {
    let own = host.driver.libraries.seen().map(Vec::as_slice).unwrap_or_default();
    let own: Vec<_> = own.iter().filter(|other| other.name == "libcuda" && other.current).collect();
    let module = host.driver.version.seen().and_then(Option::as_ref);
    let same = library.version.as_ref().is_some_and(|version| {
        module == Some(version) || own.iter().any(|other| other.version.as_ref() == Some(version))
    });
    library.of_driver || same || own.is_empty()
}

fn said(library: &PathLibrary) -> String {
    library.version.as_ref().map_or_else(|| library.path.clone(), |version| format!("{} {version}", library.path))
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
        Some(file) => shadowed(facts, &file.path, path, "the image's configuration").found(),
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
    use crate::model::host::PathLibrary;
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

    /// A machine whose caller has a `LD_LIBRARY_PATH` that leads to these: path, version, by the variable.
    fn caller(libraries: &[(&str, Option<&str>, bool)]) -> World {
        let mut world = World::machine(1);
        world.host.environment = Observed::Known([("LD_LIBRARY_PATH".to_owned(), "/opt/a:/opt/b".to_owned())].into());
        let library = |(path, version, by_variable): &(&str, Option<&str>, bool)| PathLibrary {
            name: path.rsplit('/').next().unwrap().to_owned(),
            path: (*path).to_owned(),
            version: version.map(|version| version.parse().unwrap()),
            by_variable: *by_variable,
            of_driver: false,
        };
        world.host.library_path = Observed::Known(libraries.iter().map(library).collect());
        world
    }

    #[test]
    fn the_callers_programs_load_another_libcuda_than_the_drivers() {
        let found = caller(&[("/opt/a/libcuda.so.1", Some("470.42.01"), true)]).failure(ID);
        let words = crate::model::wording::fill(found.message, &found.args);
        assert!(words.contains("programs load \"/opt/a/libcuda.so.1\""), "{words}");
        assert_eq!(found.evidence[0].fact, "host.environment.LD_LIBRARY_PATH");
        caller(&[("/opt/a/libcuda.so.1", None, true)]).failure(ID);
        caller(&[("/opt/a/stubs/libcuda.so.1", None, true)]).failure(ID);
        caller(&[("/opt/a/libcuda.so.1", Some("550.163.01"), true)]).silent(ID);
        caller(&[("/opt/cuda/compat/libcuda.so.1", Some("580.65.06"), true)]).silent(ID);
        let mut own = caller(&[("/opt/a/libcuda.so.1", None, true), ("/opt/b/libcuda.so.1", Some("1.2"), true)]);
        let Observed::Known(libraries) = &mut own.host.library_path else { panic!() };
        libraries[0].of_driver = true;
        own.silent(ID);
        // whose driver's libraries lie where nobody looked may have them there
        let mut elsewhere = caller(&[("/opt/a/libcuda.so.1", None, true)]);
        elsewhere.host.driver.libraries = Observed::Known(Vec::new());
        elsewhere.silent(ID);
    }

    #[test]
    fn an_older_libcudart_before_a_newer_one_is_a_warning() {
        let (old, new) = (("/opt/a/libcudart.so.12", Some("12.1.105")), ("/opt/b/libcudart.so.12", Some("12.4.127")));
        let at = |(path, version), by_variable| (path, version, by_variable);
        let found = caller(&[at(old, true), at(new, true)]).failure(ID);
        let words = crate::model::wording::fill(found.message, &found.args);
        assert!(words.contains("load \"/opt/a/libcudart.so.12\" (12.1.105), and never"), "{words}");
        caller(&[at(old, true), at(new, false)]).failure(ID);
        caller(&[at(new, true), at(old, true)]).silent(ID);
        caller(&[at(new, true), at(old, true), at(new, false)]).silent(ID);
        caller(&[at(old, true), ("/opt/b/libcudart.so.13", Some("13.0.48"), true)]).silent(ID);
        caller(&[("/opt/a/libcudart.so.12", None, true), at(new, true)]).silent(ID);
    }

    #[test]
    fn a_machine_without_a_gpu_or_without_the_variable_is_not_asked() {
        let mut world = caller(&[("/opt/a/libcuda.so.1", Some("470.42.01"), true)]);
        world.host = crate::model::Host { environment: world.host.environment, ..crate::model::testing::bare_host() };
        world.silent(ID);
        let mut world = World::machine(1);
        world.host.library_path = unseen();
        world.silent(ID);
        world.host.environment = caller(&[]).host.environment;
        world.unknown(ID);
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
