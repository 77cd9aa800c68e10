//! One walk over the places where CUDA libraries and frameworks lie: their names, and of files only the
//! small ones that tell a version. What the walk had to leave out leaves open what is not there.

use serde::{Deserialize, Serialize};

use super::compat;
use super::places::Hints;
use super::runtime;
use super::walk::Walk;
use crate::collect::tree::Tree;
use crate::knowledge::frameworks::{of_library, of_package, of_version_file, older_place};
use crate::knowledge::programs::{chooses_environment, says_choice};
use crate::model::image::{Build, Compat, CudaLibrary, Framework};
use crate::model::{CudaVersion, Image, Observed, Parts, Unseen};

/// What an installed CUDA toolkit has below its own directory.
const OF_A_TOOLKIT: [&str; 2] = ["lib64", "version.json"];
/// More than an image has side by side.
const TOOLKITS: usize = 8;
const MOST_FRAMEWORKS: usize = 64;
/// Directories below `/opt`, and environments of a conda.
const MOST_IN_OPT: usize = 16;
const MOST_ENVIRONMENTS: usize = 8;
const MOST_CONDAS: usize = 4;
/// Words of a command that are looked at as scripts.
const MOST_SCRIPTS: usize = 3;

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
    /// What could not be looked at.
    pub unread: Option<Unseen>,
    /// Why the frameworks that were found may not be those that run.
    pub open: Option<Unseen>,
}

/// Walks.
pub fn survey(rootfs: &Tree, hints: &Hints<'_>) -> Survey {
    let mut walk = Walk::new(rootfs, hints);
    let mut found = Survey::default();
    let local = walk.list_parent("/usr/local");
    let toolkit = toolkits(&mut walk, &local, &mut found);
    let opt = walk.list_parent("/opt");
    let (mut libraries, whole) = hints.libraries();
    if !whole {
        found.open = Some(Unseen::new("PATH", "it has more directories than are looked into"));
    }
    libraries.extend(environments(&mut walk, &opt, &mut found));
    let mut own = None;
    let mut pythons = Vec::new();
    for directory in &libraries {
        // the libraries of each processor lie below it
        let names = if directory == "/usr/lib" { walk.list_parent(directory) } else { walk.list(directory) };
        own = own.or_else(|| names.iter().find(|name| runtime::is_one(name)).map(|name| format!("{directory}/{name}")));
        runtime::add(&mut walk, directory, &names, &mut found.runtimes);
        let here = names.iter().filter(|name| name.starts_with("python3"));
        pythons.extend(here.map(|name| format!("{directory}/{name}")));
        if names.iter().any(|name| name == "ollama") {
            ollama(&mut walk, &format!("{directory}/ollama"), &mut found);
        }
    }
    let mut framework = None;
    let of_path = hints.packages().into_iter().map(|directory| (directory, ""));
    let of_pythons =
        pythons.into_iter().flat_map(|python| [(python.clone(), "/site-packages"), (python, "/dist-packages")]);
    for (python, packages) in of_path.chain(of_pythons) {
        let directory = format!("{python}{packages}");
        let names = walk.list(&directory);
        let sign = python_packages(&mut walk, &directory, &names, &mut found);
        framework = framework.or(sign);
    }
    let mut programs = hints.programs();
    programs.extend(of_opt(&opt, &mut found));
    choices(&mut walk, hints, &mut found);
    for directory in programs {
        if !directory.starts_with("/usr/local/cuda")
            && !directory.contains("/ollama")
            && !libraries.contains(&directory)
        {
            program(&mut walk, &directory, &mut found);
        }
    }
    found.compat = compat::find(&mut walk, &local, hints);
    found.cuda = toolkit.or(own).or(framework);
    found.unread = walk.unread().cloned();
    found
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
    for script in hints.args.iter().filter(|word| word.starts_with('/')).take(MOST_SCRIPTS) {
        if walk.script(script).is_some_and(|text| says_choice(&text)) {
            found.open = Some(Unseen::new(script, "it chooses an environment of its own"));
        }
    }
}

/// A directory of a program with libraries of its own; llama.cpp is known by one of them.
fn program(walk: &mut Walk<'_>, directory: &str, found: &mut Survey) {
    let names = walk.list(directory);
    let before = found.runtimes.len();
    runtime::add(walk, directory, &names, &mut found.runtimes);
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
    };
    if found.frameworks.len() < MOST_FRAMEWORKS {
        found.frameworks.push(framework);
    }
}

/// Installed toolkits: their runtimes, and the first sign of one.
fn toolkits(walk: &mut Walk<'_>, local: &[String], found: &mut Survey) -> Option<String> {
    let mut sign = None;
    for name in local.iter().filter(|name| *name == "cuda" || name.starts_with("cuda-")).take(TOOLKITS) {
        let toolkit = format!("/usr/local/{name}");
        let part = OF_A_TOOLKIT.map(|part| format!("{toolkit}/{part}")).into_iter().find(|path| walk.has(path));
        if let Some(path) = part {
            let libraries = format!("{toolkit}/lib64");
            let names = walk.list(&libraries);
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
    for name in walk.list(directory) {
        let Some(major) = name.strip_prefix("cuda_v").and_then(|major| major.parse().ok()) else { continue };
        found.frameworks.push(Framework {
            name: "ollama".to_owned(),
            version: String::new(),
            build: Build::Cuda,
            cuda: Some(major),
            source: format!("{directory}/{name}"),
            sure: true,
        });
    }
}

/// Packages of Python in one directory, by their metadata's directories (`NAME-VERSION.dist-info`). The first
/// of them that is a sign of work with CUDA.
fn python_packages(walk: &mut Walk<'_>, directory: &str, names: &[String], found: &mut Survey) -> Option<String> {
    let packages: Vec<Package<'_>> = names.iter().filter_map(|name| Package::of(name)).collect();
    let beside = |wanted: &str| packages.iter().any(|package| package.name == wanted);
    let runtimes: Vec<CudaLibrary> = packages.iter().filter_map(|package| package.runtime(directory)).collect();
    for package in &packages {
        let Some(recognised) = of_package(&package.name, package.version, &beside) else { continue };
        let mut framework = Framework {
            name: recognised.name.to_owned(),
            version: package.version.to_owned(),
            build: recognised.build,
            cuda: recognised.cuda,
            source: format!("{directory}/{}", package.entry),
            sure: recognised.sure,
        };
        if let Some((file, (build, cuda))) = recognised.version_file.and_then(|file| written(walk, directory, file)) {
            let cuda = cuda.or(framework.cuda.filter(|_| build == Build::Cuda));
            framework = Framework { build, cuda, source: format!("{directory}/{file}"), sure: true, ..framework };
        }
        // What is usual for a release is no guess where the only runtime beside it is of that major.
        let major = framework.cuda.as_ref().map(|cuda| cuda.number(0));
        let borne_out = runtimes.iter().all(|runtime| Some(runtime.version.number(0)) == major) && !runtimes.is_empty();
        framework.sure |= framework.build == Build::Cuda && borne_out;
        if found.frameworks.len() < MOST_FRAMEWORKS {
            found.frameworks.push(framework);
        } else {
            found.open = Some(Unseen::new(directory, "there are more frameworks than are kept"));
        }
    }
    found.runtimes.extend(runtimes);
    packages
        .iter()
        .find(|package| package.is_for_cuda(&packages))
        .map(|package| format!("{directory}/{}", package.entry))
}

/// What the file says in which a framework writes what it was built for.
fn written(
    walk: &mut Walk<'_>,
    directory: &str,
    file: &'static str,
) -> Option<(&'static str, (Build, Option<CudaVersion>))> {
    [Some(file), older_place(file)].into_iter().flatten().find_map(|file| {
        let text = walk.text(&format!("{directory}/{file}"))?;
        Some((file, of_version_file(file, &text)?))
    })
}

/// An installed package of Python.
struct Package<'a> {
    /// Normalised, with underscores.
    name: String,
    version: &'a str,
    /// Its directory's name.
    entry: &'a str,
}

impl<'a> Package<'a> {
    fn of(entry: &'a str) -> Option<Self> {
        let stem = entry.strip_suffix(".dist-info").or_else(|| entry.strip_suffix(".egg-info"))?;
        let (name, version) = stem.split_once('-').unwrap_or((stem, ""));
        Some(Self { name: name.to_ascii_lowercase().replace(['-', '.'], "_"), version, entry })
    }

    fn runtime(&self, directory: &str) -> Option<CudaLibrary> {
        let is_one = self
            .name
            .strip_prefix("nvidia_cuda_runtime")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("_cu"));
        let version = self.version.parse().ok().filter(|_| is_one)?;
        Some(CudaLibrary { version, source: format!("{directory}/{}", self.entry) })
    }

    /// It works with CUDA, by its name alone. Names as on `PyPI`; a local version `+cu124` or `+cpu` tells
    /// builds of the same name apart.
    fn is_for_cuda(&self, beside: &[Self]) -> bool {
        match self.name.as_str() {
            "torch" => self.version.contains("+cu"),
            "vllm" => !self.version.contains("+cpu"),
            "paddlepaddle_gpu" | "onnxruntime_gpu" | "tensorflow_gpu" => true,
            // its CUDA libraries come as packages of their own; `nvidia_ml_py` is for monitors
            "tensorflow" => beside.iter().any(|other| other.name.starts_with("nvidia_cu")),
            name => ["nvidia_cuda_runtime", "cupy_cuda", "jax_cuda"].iter().any(|start| name.starts_with(start)),
        }
    }
}

impl Survey {
    /// As facts: what was found counts, and that nothing else is there is known only where all was looked at.
    pub fn into_image(self) -> Image {
        let Self { cuda, frameworks, runtimes, compat, unread, open } = self;
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
            ..Image::default()
        }
    }
}

fn part<T>(fact: &str, items: Vec<T>, unread: Option<&Unseen>) -> Observed<Parts<T>> {
    let unread = unread.map(|unseen| unseen.clone().leaves_open(fact));
    Observed::Known(Parts { items, unread: unread.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::super::walk::{MOST_DIRECTORIES, MOST_NAMES};
    use super::*;
    use crate::collect::tree::Kind;

    fn of(root: &Path) -> Observed<Option<String>> {
        survey(&Tree::open(root, Kind::Image).unwrap(), &Hints::default()).into_image().cuda
    }

    fn with(paths: &[&str]) -> Observed<Option<String>> {
        let dir = tempfile::tempdir().unwrap();
        for path in paths {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        of(dir.path())
    }

    fn sign(path: &str) -> Observed<Option<String>> {
        Observed::Known(Some(format!("/{path}")))
    }

    #[test]
    fn toolkits_and_their_libraries_are_signs() {
        for path in [
            "usr/local/cuda-12.4/lib64",
            "usr/local/cuda/version.json",
            "usr/lib/x86_64-linux-gnu/libcudart.so.11.0",
            "usr/lib64/libcudart.so",
            "opt/conda/lib/libcudart-d0da41ae.so.11.0",
        ] {
            assert_eq!(with(&[path]), sign(path));
        }
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("usr/local/cuda-13.0/lib64")).unwrap();
        fs::create_dir_all(dir.path().join("etc/alternatives")).unwrap();
        symlink("/usr/local/cuda-13.0", dir.path().join("etc/alternatives/cuda")).unwrap();
        symlink("/etc/alternatives/cuda", dir.path().join("usr/local/cuda")).unwrap();
        assert_eq!(of(dir.path()), sign("usr/local/cuda/lib64"));
    }

    #[test]
    fn frameworks_that_carry_cuda_are_signs_wherever_python_lies() {
        for path in [
            "usr/local/lib/python3.10/site-packages/torch-2.10.0+cu130.dist-info",
            "usr/local/lib/python3.12/dist-packages/vllm-0.17.0.dist-info",
            "usr/lib/python3/dist-packages/cupy_cuda12x-13.3.0.dist-info",
            "opt/conda/lib/python3.11/site-packages/nvidia_cuda_runtime_cu12-12.4.127.dist-info",
            "opt/venv/lib/python3.12/site-packages/onnxruntime_gpu-1.20.1.dist-info",
            "venv/lib/python3.9/site-packages/paddlepaddle_gpu-2.1.0.post101.dist-info",
            "app/.venv/lib/python3.13/site-packages/jax_cuda12_plugin-0.5.0.dist-info",
            "usr/local/lib/python3.8/site-packages/tensorflow_gpu-2.4.0.egg-info",
        ] {
            assert_eq!(with(&[path]), sign(path));
        }
        let packages = "usr/local/lib/python3.11/site-packages";
        let tensorflow = format!("{packages}/tensorflow-2.18.0.dist-info");
        let cudnn = format!("{packages}/nvidia_cudnn_cu12-9.3.0.75.dist-info");
        assert_eq!(with(&[&tensorflow]), Observed::Known(None));
        assert_eq!(with(&[&tensorflow, &cudnn]), sign(&tensorflow));
    }

    #[test]
    fn monitors_and_work_on_the_cpu_show_none() {
        let packages = "usr/local/lib/python3.11/site-packages";
        let others = [
            "torch-2.6.0+cpu.dist-info",
            "torch-2.6.0.dist-info",
            "vllm-0.8.0+cpu.dist-info",
            "tensorflow-2.18.0.dist-info",
            "nvidia_ml_py-12.560.30.dist-info",
            "onnxruntime-1.20.1.dist-info",
            "jaxlib-0.5.0.dist-info",
            "torch",
        ];
        let mut paths: Vec<String> = others.map(|name| format!("{packages}/{name}")).to_vec();
        paths.extend(["usr/local/cuda-12.4".to_owned(), "usr/lib/x86_64-linux-gnu/libcuda.so.1".to_owned()]);
        assert_eq!(with(&paths.iter().map(String::as_str).collect::<Vec<_>>()), Observed::Known(None));
        assert_eq!(with(&[]), Observed::Known(None));
    }

    #[test]
    fn what_could_not_be_looked_at_leaves_it_open_unless_there_is_a_sign() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("usr/lib/python3/dist-packages");
        fs::create_dir_all(&packages).unwrap();
        for n in 0..=MOST_NAMES {
            fs::write(packages.join(format!("{n}.py")), "").unwrap();
        }
        assert_eq!(of(dir.path()).known().unwrap_err().fact, "image.cuda");
        fs::create_dir_all(dir.path().join("usr/local/cuda/lib64")).unwrap();
        assert_eq!(of(dir.path()), sign("usr/local/cuda/lib64"));

        let many: Vec<String> = (0..MOST_DIRECTORIES).map(|n| format!("usr/lib/python3.{n}")).collect();
        assert!(with(&many.iter().map(String::as_str).collect::<Vec<_>>()).known().is_err());
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("usr")).unwrap();
        symlink("lib64", dir.path().join("usr/lib64")).unwrap();
        assert!(of(dir.path()).known().is_err(), "a link to itself");
    }

    fn frameworks(root: &Path, hints: &Hints<'_>) -> (Vec<(String, Option<String>, bool)>, bool) {
        let found = survey(&Tree::open(root, Kind::Image).unwrap(), hints);
        let told = found.frameworks.into_iter().map(|f| (f.name, f.cuda.map(|cuda| cuda.to_string()), f.sure));
        (told.collect(), found.unread.is_none() && found.open.is_none())
    }

    fn package(root: &Path, prefix: &str, name: &str, file: Option<(&str, &str)>) {
        let packages = root.join(prefix).join("lib/python3.12/site-packages");
        fs::create_dir_all(packages.join(format!("{name}.dist-info"))).unwrap();
        if let Some((path, text)) = file {
            fs::create_dir_all(packages.join(path).parent().unwrap()).unwrap();
            fs::write(packages.join(path), text).unwrap();
        }
    }

    #[test]
    fn environments_are_found_where_the_container_says() {
        let dir = tempfile::tempdir().unwrap();
        package(dir.path(), "srv/app/.venv", "torch-2.9.0+cu128", None);
        package(dir.path(), "opt/conda/envs/x", "torch-2.11.0", Some(("torch/version.py", "cuda = '13.0'\n")));
        let by_directory = Hints { working_directory: Some("/srv/app/"), ..Hints::default() };
        let (found, whole) = frameworks(dir.path(), &by_directory);
        let torch = |cuda: &str| ("torch".to_owned(), Some(cuda.to_owned()), true);
        assert_eq!((found, whole), (vec![torch("12.8"), torch("13.0")], true));
        let args = ["/srv/app/.venv/bin/python".to_owned()];
        let by_program = Hints { args: &args, ..Hints::default() };
        assert_eq!(frameworks(dir.path(), &by_program).0.len(), 2);
        assert_eq!(frameworks(dir.path(), &Hints::default()).0, [torch("13.0")]);
    }

    #[test]
    fn a_script_that_chooses_an_environment_leaves_open_which_is_used() {
        let dir = tempfile::tempdir().unwrap();
        package(dir.path(), "usr", "torch-2.11.0+cu130", None);
        let args = ["/start.sh".to_owned()];
        let hints = Hints { args: &args, ..Hints::default() };
        let whole = |text: &str| {
            fs::write(dir.path().join("start.sh"), text).unwrap();
            frameworks(dir.path(), &hints).1
        };
        assert!(whole("#!/bin/sh\nexec python /app/main.py\n"));
        assert!(!whole("#!/bin/sh\n. /srv/venv/bin/activate\nexec python\n"));
        assert!(whole("\u{7f}ELF activate"), "no script");
    }

    #[test]
    fn what_a_mount_covers_is_not_what_the_container_has() {
        let dir = tempfile::tempdir().unwrap();
        package(dir.path(), "opt/venv", "torch-2.11.0+cu130", None);
        let mount = |destination: &str| crate::model::container::Mount {
            destination: destination.to_owned(),
            ..crate::model::container::Mount::default()
        };
        for covering in ["/opt/venv", "/opt/", "/opt/venv/lib/python3.12/site-packages"] {
            let mounts = [mount(covering)];
            let hints = Hints { mounts: &mounts, ..Hints::default() };
            assert_eq!(frameworks(dir.path(), &hints), (Vec::new(), false), "{covering}");
        }
        let mounts = [mount("/opt/venv/bin/tool"), mount("/etc/hosts")];
        assert_eq!(frameworks(dir.path(), &Hints { mounts: &mounts, ..Hints::default() }).0.len(), 1);
    }

    #[test]
    fn programs_that_are_no_packages_are_known_by_their_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        write("app/libggml-cuda.so");
        write("app/libcudart.so.12.8.90");
        for major in ["12", "13"] {
            write(&format!("usr/lib/ollama/cuda_v{major}/libggml-cuda.so"));
        }
        let mut found = frameworks(dir.path(), &Hints::default()).0;
        found.sort();
        let own = |name: &str, cuda: &str| (name.to_owned(), Some(cuda.to_owned()), true);
        assert_eq!(found, [own("llama.cpp", "12.8.90"), own("ollama", "12"), own("ollama", "13")]);
    }
}
