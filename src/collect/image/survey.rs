//! One walk over the places where CUDA libraries and frameworks lie: their names, and of files only the
//! small ones that tell a version. What the walk had to leave out leaves open what is not there.

use serde::{Deserialize, Serialize};

use super::compat;
use super::driver;
use super::missing::{self, Libraries};
use super::places::Hints;
use super::python::python_packages;
use super::reach::Loader;
use super::runtime;
use super::walk::Walk;
use crate::collect::files::Files;
use crate::knowledge::frameworks::of_library;
use crate::knowledge::programs::{chooses_environment, says_choice};
use crate::model::image::{Build, Compat, CudaLibrary, DriverFile, Framework, MissingLibrary};
use crate::model::{Image, Observed, Parts, Unseen};

/// What an installed CUDA toolkit has below its own directory.
const OF_A_TOOLKIT: [&str; 2] = ["lib64", "version.json"];
/// More than an image has side by side.
const TOOLKITS: usize = 8;
pub(super) const MOST_FRAMEWORKS: usize = 64;
/// Directories below `/opt`, and environments of a conda.
const MOST_IN_OPT: usize = 16;
const MOST_ENVIRONMENTS: usize = 8;
const MOST_CONDAS: usize = 4;
/// Drivers side by side.
const MOST_DRIVERS: usize = 4;
/// Places of a command's words that are looked at as scripts.
const MOST_SCRIPTS: usize = 16;

/// What a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The first sign that work with CUDA is what the image is for.
    pub cuda: Option<String>,
    /// Frameworks.
    pub frameworks: Vec<Framework>,
    /// Runtime libraries.
    pub runtimes: Vec<CudaLibrary>,
    /// Libraries for forward compatibility.
    pub compat: Vec<Compat>,
    /// Files of the driver.
    pub driver_files: Vec<DriverFile>,
    /// Libraries of CUDA that frameworks look for and that are not there.
    pub missing: Vec<MissingLibrary>,
    /// What could not be looked at.
    pub unread: Option<Unseen>,
    /// Why the frameworks that were found may not be those that run.
    pub open: Option<Unseen>,
}

/// Walks.
pub fn survey(rootfs: &dyn Files, hints: &Hints<'_>) -> Survey {
    let mut walk = Walk::new(rootfs, hints);
    let mut found = Survey::default();
    let local = walk.list_parent("/usr/local");
    let mut of_cuda = Libraries::default();
    let toolkit = toolkits(&mut walk, &local, &mut found, &mut of_cuda);
    let opt = walk.list_parent("/opt");
    let (mut libraries, whole) = hints.libraries();
    if hints.everywhere.is_none() {
        if !whole {
            found.open = Some(Unseen::new("PATH", "it has more directories than are looked into"));
        }
        libraries.extend(environments(&mut walk, &opt, &mut found));
    }
    let mut own = None;
    let mut pythons = Vec::new();
    let mut of_drivers = driver::Names::default();
    let mut has_multiarch = false;
    for directory in &libraries {
        // the libraries of each processor lie below it
        let names = if directory == "/usr/lib" { walk.list_parent(directory) } else { walk.list(directory) };
        own = own.or_else(|| names.iter().find(|name| runtime::is_one(name)).map(|name| format!("{directory}/{name}")));
        runtime::add(&mut walk, directory, &names, &mut found.runtimes);
        of_drivers.keep(directory, &names);
        of_cuda.keep(directory, &names);
        has_multiarch |= directory.ends_with("-linux-gnu") && !names.is_empty();
        if directory == "/usr/lib" {
            // Ubuntu's way up to 16.04
            for name in names.iter().filter(|name| is_of_driver(name)).take(MOST_DRIVERS) {
                let directory = format!("{directory}/{name}");
                let names = walk.list(&directory);
                of_drivers.keep(&directory, &names);
            }
        }
        let here = names.iter().filter(|name| name.starts_with("python3"));
        pythons.extend(here.map(|name| format!("{directory}/{name}")));
        if hints.everywhere.is_none() && names.iter().any(|name| name == "ollama") {
            ollama(&mut walk, &format!("{directory}/ollama"), &mut found);
        }
    }
    let mut framework = None;
    let of_path = hints.packages().into_iter().map(|directory| (directory, ""));
    let of_pythons =
        pythons.into_iter().flat_map(|python| [(python.clone(), "/site-packages"), (python, "/dist-packages")]);
    let usual = of_path.chain(of_pythons).map(|(python, packages)| format!("{python}{packages}"));
    let packages = hints.everywhere.map_or_else(|| usual.collect(), |all| all.packages.clone());
    for directory in packages {
        let names = walk.list(&directory);
        of_cuda.keep_packages(&names);
        let sign = python_packages(&mut walk, &directory, &names, &mut found);
        framework = framework.or(sign);
    }
    let usual = |found: &mut Survey| [hints.programs(), of_opt(&opt, found)].concat();
    let programs = hints.everywhere.map_or_else(|| usual(&mut found), |all| all.programs.clone());
    choices(&mut walk, hints, &mut found);
    for directory in programs {
        let is_looked_at =
            directory.starts_with("/usr/local/cuda") || directory.contains("/ollama") || libraries.contains(&directory);
        if hints.everywhere.is_some() || !is_looked_at {
            let names = walk.list(&directory);
            of_cuda.keep(&directory, &names);
            program(&mut walk, &directory, &names, &mut found);
        }
    }
    let mut loader = Loader::default();
    found.compat = compat::find(&mut walk, &local, hints, &mut loader);
    found.driver_files = driver::find(&mut walk, &of_drivers, hints, &mut loader, has_multiarch);
    found.missing = missing::find(&mut walk, &mut of_cuda, &found.frameworks, hints, &mut loader);
    found.cuda = toolkit.or(own).or(framework);
    found.unread = rootfs.unread().or(walk.unread()).cloned();
    found
}

/// `nvidia-384`.
fn is_of_driver(name: &str) -> bool {
    name.strip_prefix("nvidia-").is_some_and(|rest| rest.len() == 3 && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// conda's environments besides its own, wherever one is installed as a rule.
fn environments(walk: &mut Walk<'_>, opt: &[String], found: &mut Survey) -> Vec<String> {
    let is_one = |name: &&String| {
        ["conda", "miniconda", "miniforge", "mamba", "anaconda"].iter().any(|start| name.starts_with(start))
    };
    let mut condas: Vec<String> = opt.iter().filter(is_one).map(|name| format!("/opt/{name}")).collect();
    let at_home = walk.list_parent("/root");
    condas.extend(at_home.iter().filter(is_one).map(|name| format!("/root/{name}")));
    let mut libraries = Vec::new();
    for conda in condas.iter().take(MOST_CONDAS) {
        if conda != "/opt/conda" {
            libraries.push(format!("{conda}/lib"));
        }
        let names = walk.list(&format!("{conda}/envs"));
        if names.len() > MOST_ENVIRONMENTS {
            found.open = Some(Unseen::new(conda, "it has more environments than are looked into"));
        }
        libraries.extend(names.iter().take(MOST_ENVIRONMENTS).map(|name| format!("{conda}/envs/{name}/lib")));
    }
    if at_home.iter().any(|name| name == ".pyenv") {
        found.open = Some(Unseen::new("/root/.pyenv", "it chooses among Pythons of its own"));
    }
    libraries
}

/// Directories that software of others is put into, one each.
fn of_opt(opt: &[String], found: &mut Survey) -> Vec<String> {
    let others = opt.iter().filter(|name| *name != "conda" && *name != "nvidia" && !name.starts_with("cuda"));
    let others: Vec<&String> = others.collect();
    if others.len() > MOST_IN_OPT {
        found.open = Some(Unseen::new("/opt", "it has more directories than are looked into"));
    }
    others.iter().take(MOST_IN_OPT).flat_map(|name| ["", "/lib"].map(|rest| format!("/opt/{name}{rest}"))).collect()
}

/// What runs may choose an environment of its own: its command says so, or the script that it is.
fn choices(walk: &mut Walk<'_>, hints: &Hints<'_>, found: &mut Survey) {
    if chooses_environment(hints.args) {
        found.open = Some(Unseen::new("the command", "it chooses an environment of its own"));
        return;
    }
    for script in hints.scripts().iter().take(MOST_SCRIPTS) {
        if walk.script(script).is_some_and(|text| says_choice(&text)) {
            found.open = Some(Unseen::new(script, "it chooses an environment of its own"));
        }
    }
}

/// A directory of a program with libraries of its own; llama.cpp is known by one of them.
fn program(walk: &mut Walk<'_>, directory: &str, names: &[String], found: &mut Survey) {
    let before = found.runtimes.len();
    runtime::add(walk, directory, names, &mut found.runtimes);
    let library =
        names.iter().map(|name| format!("{directory}/{name}")).find_map(|path| Some((of_library(&path)?, path)));
    let Some((recognised, source)) = library else { return };
    // what lies beside it is what it was built with
    let runtime = found.runtimes.get(before..).and_then(<[_]>::last).map(|runtime| runtime.version.clone());
    let framework = Framework {
        name: recognised.name.to_owned(),
        version: String::new(),
        build: recognised.build,
        cuda: recognised.cuda.or(runtime),
        source,
        sure: recognised.sure,
        min_driver: None,
    };
    if found.frameworks.len() < MOST_FRAMEWORKS {
        found.frameworks.push(framework);
    }
}

/// Installed toolkits: their runtimes, and the first sign of one.
fn toolkits(walk: &mut Walk<'_>, local: &[String], found: &mut Survey, of_cuda: &mut Libraries) -> Option<String> {
    let mut sign = None;
    for name in local.iter().filter(|name| *name == "cuda" || name.starts_with("cuda-")).take(TOOLKITS) {
        let toolkit = format!("/usr/local/{name}");
        let part = OF_A_TOOLKIT.map(|part| format!("{toolkit}/{part}")).into_iter().find(|path| walk.has(path));
        if let Some(path) = part {
            let libraries = format!("{toolkit}/lib64");
            let names = walk.list(&libraries);
            of_cuda.keep(&libraries, &names);
            // `cuda` is a link to one of the others, as a rule
            if name != "cuda" || !local.iter().any(|name| name.starts_with("cuda-")) {
                runtime::add(walk, &libraries, &names, &mut found.runtimes);
            }
            sign.get_or_insert(path);
        }
    }
    sign
}

/// Ollama brings a backend for each major, and takes one that the driver can run.
fn ollama(walk: &mut Walk<'_>, directory: &str, found: &mut Survey) {
    for name in walk.list(directory).iter().take(MOST_FRAMEWORKS) {
        let Some(major) = name.strip_prefix("cuda_v").and_then(|major| major.parse().ok()) else { continue };
        found.frameworks.push(Framework {
            name: "ollama".to_owned(),
            version: String::new(),
            build: Build::Cuda,
            cuda: Some(major),
            source: format!("{directory}/{name}"),
            sure: true,
            min_driver: None,
        });
    }
}

impl Survey {
    /// As facts: what was found counts, and that nothing else is there is known only where all was looked at.
    pub fn into_image(self) -> Image {
        let Self { cuda, frameworks, runtimes, compat, driver_files, missing, unread, open } = self;
        let whole = unread.as_ref().or(open.as_ref());
        let cuda = match (cuda, &unread) {
            (None, Some(unseen)) => Observed::Unknown(unseen.clone().leaves_open("image.cuda")),
            (sign, _) => Observed::Known(sign),
        };
        Image {
            cuda,
            frameworks: part("image.frameworks", frameworks, whole),
            runtimes: part("image.cuda_versions", runtimes, whole),
            compat: part("image.compat", compat, unread.as_ref()),
            missing: part("image.missing", missing, whole),
            driver_files: part("image.driver_files", driver_files, unread.as_ref()),
            ..Image::default()
        }
    }
}

fn part<T>(fact: &str, items: Vec<T>, unread: Option<&Unseen>) -> Observed<Parts<T>> {
    let unread = unread.map(|unseen| unseen.clone().leaves_open(fact));
    Observed::Known(Parts { items, unread: unread.into_iter().collect() })
}

#[cfg(test)]
mod tests;
