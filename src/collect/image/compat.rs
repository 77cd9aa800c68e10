//! The libraries for forward compatibility that an image brings, and whether its loader is led to them.

use super::driver::is_of_stubs;
use super::places::Hints;
use super::reach::Loader;
use super::walk::Walk;
use crate::collect::loader::{self, Directory};
use crate::collect::paths::clean;
use crate::knowledge::driver_files::DIRECTORIES;
use crate::knowledge::toolkit::base_name;
use crate::model::DriverVersion;
use crate::model::image::{Compat, Reach};

/// NVIDIA's packages have them in `compat` of the toolkit's own directory; its framework images begin with
/// `lib.real`, to which their entrypoint links `lib` where it finds that they are needed.
const LOCAL: &str = "/usr/local";
const LINK: &str = "/usr/local/cuda";
/// More toolkits than an image has side by side, and more directories before a loader's.
const TOOLKITS: usize = 8;
/// Links from `/usr/local/cuda` by way of `/etc/alternatives`.
const HOPS: usize = 4;

/// The directories with a libcuda of their own. `local`: the names in `/usr/local`.
pub(super) fn find(walk: &mut Walk<'_>, local: &[String], hints: &Hints<'_>, loader: &mut Loader) -> Vec<Compat> {
    let toolkits = || local.iter().filter(|name| name.starts_with("cuda-")).take(TOOLKITS);
    let mut directories: Vec<String> = toolkits().map(|name| format!("{LOCAL}/{name}/compat")).collect();
    let link = local.iter().any(|name| name == "cuda").then(|| follow(walk, LINK));
    if let Some(target) = &link {
        add(&mut directories, format!("{target}/compat"));
    }
    for variable in ["VLLM_CUDA_COMPATIBILITY_PATH", "_CUDA_COMPAT_PATH"] {
        if let Some(path) = hints.variable(variable).filter(|path| path.starts_with('/')) {
            add(&mut directories, real(&clean(path), link.as_deref()));
        }
    }
    // conda's package of them, and whatever the environment leads to by such a name
    add(&mut directories, "/opt/conda/cuda-compat".to_owned());
    for directory in hints.everywhere.iter().flat_map(|all| &all.libcuda) {
        if !is_of_drivers(directory) && !is_of_stubs(directory) {
            add(&mut directories, real(directory, link.as_deref()));
        }
    }
    let told = hints.environment.map(loader::of_environment).unwrap_or_default();
    for directory in told.iter().filter(|told| !is_of_drivers(&told.path) && !is_of_stubs(&told.path)) {
        let directory = real(&directory.path, link.as_deref());
        // a driver that is mounted there is no image's
        if directory.contains("compat") || !walk.will_be_covered(&directory) {
            add(&mut directories, directory);
        }
    }
    let mut found = Vec::new();
    for directory in directories {
        let inner = ["", "/lib", "/lib.real"].map(|rest| format!("{directory}{rest}"));
        let Some(Library { directory, version, file, loadable, alone }) =
            inner.into_iter().find_map(|path| library(walk, path))
        else {
            continue;
        };
        if found.iter().any(|other: &Compat| other.directory == directory) {
            continue;
        }
        // `/usr/local/cuda` is not there, yet the image speaks of it: what NVIDIA's packages install as the
        // only toolkit is it, by a link that is made when the image is made.
        let told = loader.order(walk, hints);
        let absent = link.is_none() && toolkits().count() == 1 && is_of_nvidia(told, hints);
        let only = absent.then(|| directory.trim_end_matches("/compat").to_owned());
        let target = link.as_deref().or(only.as_deref());
        let note = walk.rootfs.compat_note(&file);
        // with more than one to choose from NVIDIA's hook does nothing
        let by_link = walk.will_be_covered(&format!("{LINK}/compat"));
        let current = alone && !by_link && target.is_some_and(|target| directory == format!("{target}/compat"));
        let leads = loader.leads(walk, hints, |path| real(path, target) == directory).filter(|_| loadable);
        let cache = loader.cache(walk);
        let reach = leads.map(|(reach, path)| Reach { cached: cache.map(|cache| names(cache, &path)), ..reach });
        found.push(Compat { directory, current, cache: cache.is_some(), version, note, reach });
    }
    found
}

/// A libcuda and its directory.
struct Library {
    directory: String,
    /// By the file's name.
    version: Option<DriverVersion>,
    file: String,
    /// It has the name that programs ask for.
    loadable: bool,
    /// There is one alone.
    alone: bool,
}

fn library(walk: &mut Walk<'_>, directory: String) -> Option<Library> {
    let names = walk.list(&directory);
    let version = |name: &str| name.strip_prefix("libcuda.so.")?.parse::<DriverVersion>().ok();
    // `libcuda.so.1` is the name that programs ask for; Jetson's `libcuda.so.1.1` tells no driver
    let full = |name: &str| version(name).filter(|version| version.number(0) > 1);
    let loadable = names.iter().any(|name| name == "libcuda.so.1");
    let link = format!("{directory}/libcuda.so.1");
    let target = if loadable { walk.link(&link) } else { None };
    let by_link = target.as_deref().and_then(|target| full(base_name(target)));
    let first = names.iter().find_map(|name| full(name).map(|version| (name, version)));
    // as NVIDIA's hook looks for it: `libcuda.so.*.*`
    let alone =
        names.iter().filter_map(|name| name.strip_prefix("libcuda.so.")).filter(|rest| rest.contains('.')).count() < 2;
    match (by_link, first) {
        (Some(version), _) => {
            let file = format!("{directory}/libcuda.so.{version}");
            Some(Library { directory, version: Some(version), file, loadable, alone })
        }
        (None, Some((name, version))) if !loadable => {
            let file = format!("{directory}/{name}");
            Some(Library { directory, version: Some(version), file, loadable, alone })
        }
        // a plain file of the name that programs ask for tells no version, whatever lies beside it
        _ if loadable => Some(Library { directory, version: None, file: link, loadable, alone }),
        _ => None,
    }
}

/// The image's own cache has the libcuda of a directory, as the configuration writes it.
fn names(cache: &[u8], directory: &str) -> bool {
    let entry = format!("{directory}/libcuda.so.1");
    cache.windows(entry.len()).any(|part| part == entry.as_bytes())
}

/// Where drivers are put, by the toolkit or by a scheduler's mounts.
fn is_of_drivers(path: &str) -> bool {
    DIRECTORIES.contains(&path) || path.starts_with("/usr/local/nvidia")
}

/// A path below `/usr/local/cuda` by the toolkit's own name.
fn real(path: &str, toolkit: Option<&str>) -> String {
    match (path.strip_prefix(LINK), toolkit) {
        (Some(rest), Some(toolkit)) if rest.is_empty() || rest.starts_with('/') => format!("{toolkit}{rest}"),
        _ => path.to_owned(),
    }
}

/// The image is made from NVIDIA's own, or says itself where the toolkit lies.
fn is_of_nvidia(told: &[Directory], hints: &Hints<'_>) -> bool {
    told.iter().any(|told| told.path.starts_with("/usr/local/cuda/"))
        || ["CUDA_VERSION", "NVIDIA_REQUIRE_CUDA"].into_iter().any(|name| hints.variable(name).is_some())
}

/// Where a chain of links ends.
fn follow(walk: &mut Walk<'_>, path: &str) -> String {
    let mut path = path.to_owned();
    for _ in 0..HOPS {
        match walk.link(&path) {
            Some(target) => path = clean(&target),
            None => break,
        }
    }
    path
}

fn add(directories: &mut Vec<String>, path: String) {
    if !directories.contains(&path) && directories.len() < 2 * TOOLKITS {
        directories.push(path);
    }
}
