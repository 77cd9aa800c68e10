//! What the frameworks in the image, or of the machine's Python, were built for, beside each other.

use super::meant;
use super::needs::{self, Need};
use super::python;
use crate::checks::cuda;
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::image::{Build, Framework, Manager, Package};
use crate::model::{Facts, Parts};

const CPU: &str = "{what} in the image is a build for the processor: it will not use a GPU";
const COVERED: &str = "{package} is in the image, and {what}'s files are those of the build for the processor, installed \
                       over it: it will not use a GPU";
const MIX: &str = "frameworks in the image are built for several major versions of CUDA: {what}; each needs libraries \
                   of its own";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "framework-is-cpu-build",
        title: "the framework is a build for the processor alone",
        why: "Torch not compiled with CUDA enabled, or no word at all: it runs on the CPU.",
        messages: &[CPU, COVERED, python::CPU],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Install its build for CUDA: {install}.",
            command: None,
        }],
        severities: &[Severity::Warning, Severity::Note],
        places: &[Place::Hook, Place::Image, Place::Host],
        judge: cpu_build,
    },
    Check {
        id: "framework-cuda-major-mix",
        title: "frameworks for several major versions of CUDA lie side by side",
        why: "One of them misses its libraries: libcublasLt.so.11 cannot be opened, or another's are loaded.",
        messages: &[MIX, python::MIX],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Install them for one major version of CUDA, or in environments of their own.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image, Place::Host],
        judge: major_mix,
    },
];

fn name(framework: &Framework) -> String {
    format!("{} {}", framework.name, framework.version).trim_end().to_owned()
}

fn cpu_build(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host {
        return python::cpu_build(facts);
    }
    if !meant::has_gpu(facts)? || cuda::is_for_cpu(facts)? {
        return not_applicable();
    }
    let severity = if facts.place == Place::Image { Severity::Warning } else { Severity::Note };
    let frameworks = facts.image.frameworks.known()?;
    // The files of both lie in one directory, and those that were installed last are there.
    let covered = |f: &&Framework| f.build == Build::Cpu && f.name.strip_suffix("-gpu").is_some();
    if let Some(framework) = frameworks.items.iter().find(covered) {
        return found(severity, COVERED, framework, "image").foreign("package", &framework.name).found();
    }
    let counts = |f: &&Framework| f.sure || (facts.place == Place::Image && f.name == "jaxlib" && !is_of_conda(f));
    let Some(framework) = alone_for_cpu(frameworks, counts) else { return not_applicable() };
    // what does not say it of itself, and is a choice where nobody speaks of a GPU
    if !framework.sure && !meant::is_for_gpu(facts)? {
        return not_applicable();
    }
    found(severity, CPU, framework, "image").found()
}

/// The framework that is for the processor, where none is for a GPU. `OpenVINO` has nothing else, and whoever has it
/// beside another uses that one for the GPU.
pub(super) fn alone_for_cpu(frameworks: &Parts<Framework>, counts: impl Fn(&&Framework) -> bool) -> Option<&Framework> {
    let for_cpu = |f: &&Framework| f.build == Build::Cpu && f.name != "openvino" && counts(f);
    let framework = frameworks.items.iter().find(for_cpu)?;
    let alone = frameworks.items.iter().all(|other| other.build == Build::Cpu) && frameworks.unread.is_empty();
    alone.then_some(framework)
}

pub(super) fn found(severity: Severity, message: &'static str, framework: &Framework, whose: &str) -> Failure {
    let what = name(framework);
    let install = match framework.name.as_str() {
        "torch" => "from https://download.pytorch.org/whl/cu126, say",
        "jaxlib" => "jax[cuda12]",
        "tensorflow" | "tensorflow-cpu" => "tensorflow[and-cuda]",
        "onnxruntime" | "onnxruntime-gpu" => "onnxruntime-gpu, without onnxruntime beside it",
        "paddlepaddle" | "paddlepaddle-gpu" => "paddlepaddle-gpu, without paddlepaddle beside it",
        _ => "as its project says",
    };
    Failure::new(severity, message).foreign("what", &what).arg("install", install).saw(
        format!("{whose}.frameworks"),
        what,
        framework.source.clone(),
    )
}

/// conda's builds for CUDA have the plain name and version as well.
fn is_of_conda(framework: &Framework) -> bool {
    ["conda", "mamba", "miniforge", "/envs/"].iter().any(|word| framework.source.contains(word))
}

fn major_mix(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host {
        return python::major_mix(facts);
    }
    if !meant::has_gpu(facts)? {
        return not_applicable();
    }
    let frameworks = &facts.image.frameworks.known()?.items;
    let packages = facts.image.packages.seen().map_or(&[][..], |packages| &packages.items);
    let mix = match by_packages(packages, frameworks) {
        Some(mix) => Some(mix),
        None => by_needs(&needs::of(facts)?.all),
    };
    mix.map_or(Ok(Outcome::Pass), |mix| mix.said(MIX, "image").found())
}

/// What lies side by side for several majors.
pub(super) struct Mix {
    what: String,
    fact: &'static str,
    source: String,
}

impl Mix {
    /// `whose`: what has them among the facts.
    pub(super) fn said(self, message: &'static str, whose: &str) -> Failure {
        let fact = format!("{whose}.{}", self.fact);
        Failure::new(Severity::Warning, message).foreign("what", &self.what).saw(fact, self.what, self.source)
    }
}

/// Frameworks for several majors. Those in one directory are meant for one program; environments of their own may
/// differ.
pub(super) fn by_needs(needs: &[Need<'_>]) -> Option<Mix> {
    let mut sets: Vec<(&str, Vec<&Need<'_>>)> = Vec::new();
    let counts = |need: &&Need<'_>| need.framework.is_some_and(|framework| framework.name != "ollama");
    for need in needs.iter().filter(counts) {
        let place = environment_of(need.source);
        match sets.iter_mut().find(|(known, _)| *known == place) {
            Some((_, set)) => set.push(need),
            None => sets.push((place, vec![need])),
        }
    }
    let (place, set) = sets.iter().find(|(_, set)| {
        let first = set.first().map(|need| need.cuda.number(0));
        set.iter().any(|need| Some(need.cuda.number(0)) != first)
    })?;
    let mut majors: Vec<u32> = Vec::new();
    let firsts = set.iter().filter(|need| {
        let is_first = !majors.contains(&need.cuda.number(0));
        majors.push(need.cuda.number(0));
        is_first
    });
    let as_a_rule = |sure| if sure { "" } else { " as a rule" };
    let what = firsts.map(|need| format!("{} for CUDA {}{}", need.what, need.cuda, as_a_rule(need.sure)));
    let what: Vec<String> = what.collect();
    let what = list(what.iter().map(String::as_str));
    Some(Mix { what, fact: "frameworks", source: (*place).to_owned() })
}

/// Packages of one environment that cannot be used together: the same library for two majors, and what works inside
/// torch for another major than torch.
pub(super) fn by_packages(packages: &[Package], frameworks: &[Framework]) -> Option<Mix> {
    let of_pip = || packages.iter().filter(|package| package.manager == Manager::Pip);
    let beside = |one: &Package, other: &Package| environment_of(&one.source) == environment_of(&other.source);
    let mix = |what, source: &str| Mix { what, fact: "packages", source: source.to_owned() };
    for package in of_pip() {
        let Some((base, major)) = library_of(package) else { continue };
        let other = of_pip().find(|other| {
            beside(package, other) && library_of(other).is_some_and(|(same, of)| same == base && of != major)
        });
        if let Some(other) = other {
            let both = [package, other].map(|package| format!("{} {}", package.name, package.version));
            return Some(mix(list(both.iter().map(String::as_str)), &package.source));
        }
    }
    for torch in frameworks.iter().filter(|framework| framework.name == "torch") {
        let Some(cuda) = &torch.cuda else { continue };
        let inside = of_pip().find(|package| {
            OF_TORCH.contains(&package.name.as_str())
                && environment_of(&package.source) == environment_of(&torch.source)
                && local_major(&package.version).is_some_and(|major| major != cuda.number(0))
        });
        if let Some(package) = inside {
            let what = format!("{} and {} {}", name(torch), package.name, package.version);
            return Some(mix(what, &package.source));
        }
    }
    None
}

/// Packages that are compiled against torch and its CUDA, and say for which.
const OF_TORCH: [&str; 9] = [
    "torchvision",
    "torchaudio",
    "torchtext",
    "xformers",
    "torch-scatter",
    "torch-sparse",
    "torch-cluster",
    "pyg-lib",
    "auto-gptq",
];

/// One of NVIDIA's libraries with the CUDA major it is for: `nvidia-cublas-cu12`; from 13 on the name has none.
fn library_of(package: &Package) -> Option<(&str, u32)> {
    let rest = package.name.strip_prefix("nvidia-")?;
    if let Some((base, major)) = rest.rsplit_once("-cu") {
        return Some((base, major.parse().ok()?));
    }
    let major = package.version.split('.').next()?.parse().ok()?;
    (rest == "cublas" && major >= 13).then_some((rest, major))
}

/// Of `0.18.0+cu118`, `2.1.2+pt21cu121`: 11, 12.
fn local_major(version: &str) -> Option<u32> {
    let (_, local) = version.split_once('+')?;
    let digits = local.get(local.rfind("cu")? + 2..)?;
    digits.get(..2).filter(|_| digits.len() >= 3 && digits.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// The directory of packages that a file of one lies in.
pub(super) fn environment_of(source: &str) -> &str {
    ["/site-packages/", "/dist-packages/"]
        .into_iter()
        .find_map(|name| source.find(name).and_then(|at| source.get(..at + name.len())))
        .unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::World;
    use crate::model::image::{Build, Manager, Package};
    use crate::model::{Observed, Parts, Place, Severity};

    const CPU: &str = "framework-is-cpu-build";
    const MIX: &str = "framework-cuda-major-mix";

    fn image() -> World {
        World { place: Place::Image, ..World::cdi(1) }
    }

    fn for_cpu(world: World, name: &str, version: &str, sure: bool) -> World {
        let mut world = world.framework(name, version, "12");
        let Observed::Known(frameworks) = &mut world.image.frameworks else { panic!() };
        let framework = frameworks.items.last_mut().unwrap();
        (framework.build, framework.cuda, framework.sure) = (Build::Cpu, None, sure);
        world
    }

    #[test]
    fn a_build_for_the_processor_is_a_warning_of_the_image_and_a_note_of_the_container() {
        assert_eq!(for_cpu(image(), "torch", "2.9.0+cpu", true).short(CPU).severity, Severity::Warning);
        assert_eq!(for_cpu(World::cdi(1), "torch", "2.9.0+cpu", true).failure(CPU).severity, Severity::Note);
        for_cpu(image(), "jaxlib", "0.4.30", false).failure(CPU);
        for_cpu(World::cdi(1), "jaxlib", "0.4.30", false).silent(CPU);
        for_cpu(image(), "openvino", "2025.1.0", true).silent(CPU);
    }

    #[test]
    fn a_choice_is_no_mistake() {
        for_cpu(image(), "torch", "2.9.0+cpu", true).framework("onnxruntime-gpu", "1.20.0", "12").silent(CPU);
        for_cpu(image(), "torch", "2.9.0+cpu", true).in_part().silent(CPU);
        let mut chosen = for_cpu(image(), "jaxlib", "0.4.30", false);
        chosen.set("JAX_PLATFORMS", "cpu");
        chosen.silent(CPU);
        // no word of a GPU: somebody may want the processor, and the package does not say that it is for it alone
        let mut plain = for_cpu(World { place: Place::Image, ..World::plain() }, "jaxlib", "0.4.30", false);
        plain.container.gpu_given = Observed::Known(crate::model::container::Given::LegacyHook);
        plain.silent(CPU);
    }

    #[test]
    fn the_build_that_was_installed_last_counts() {
        let both = for_cpu(for_cpu(image(), "onnxruntime", "1.20.0", true), "onnxruntime-gpu", "1.20.0", true);
        let text = crate::model::wording::fill(both.short(CPU).message, &both.failure(CPU).args);
        assert!(text.contains("onnxruntime-gpu") && text.contains("installed over it"), "{text}");
        // in environments of their own each is what it is
        let apart = for_cpu(image(), "onnxruntime", "1.20.0", true).framework("onnxruntime-gpu", "1.20.0", "12");
        apart.silent(CPU);
    }

    fn packages(world: World, all: &[(&str, &str, &str)]) -> World {
        let package = |(directory, name, version): &(&str, &str, &str)| Package {
            name: (*name).to_owned(),
            version: (*version).to_owned(),
            build: None,
            manager: Manager::Pip,
            source: format!("{directory}/site-packages/{name}-{version}.dist-info"),
        };
        let mut world = world;
        world.image.packages = Observed::Known(Parts::whole(all.iter().map(package).collect()));
        world
    }

    #[test]
    fn libraries_for_two_majors_in_one_environment_are_a_warning() {
        let (a, b) = ("/a", "/b");
        let cudnn = |one, other| [(one, "nvidia-cudnn-cu11", "8.6.0.163"), (other, "nvidia-cudnn-cu12", "9.1.0.70")];
        packages(image(), &cudnn(a, a)).short(MIX);
        packages(World::cdi(1), &cudnn(a, a)).failure(MIX);
        packages(image(), &cudnn(a, b)).silent(MIX);
        packages(image(), &[(a, "nvidia-cublas-cu12", "12.4.5.8"), (a, "nvidia-cublas", "13.0.0.19")]).failure(MIX);
        packages(image(), &[(a, "nvidia-cublas-cu12", "12.4.5.8"), (a, "nvidia-nccl-cu12", "2.27.3")]).silent(MIX);
        packages(image(), &[(a, "nvidia-ml-py", "12.560.30"), (a, "nvidia-cuda-nvrtc-cu12", "12.4.5")]).silent(MIX);
    }

    #[test]
    fn what_works_inside_torch_is_for_its_cuda() {
        let directory = "/usr/lib/python3/dist-packages/x";
        let with = |version: &str| {
            let mut world = image().framework("torch", "2.3.0+cu121", "12.1");
            let package = Package {
                name: "torchvision".to_owned(),
                version: version.to_owned(),
                build: None,
                manager: Manager::Pip,
                source: format!("{directory}-{version}.dist-info"),
            };
            world.image.packages = Observed::Known(Parts::whole(vec![package]));
            world
        };
        with("0.18.0+cu118").short(MIX);
        for same in ["0.18.0+cu121", "0.18.0", "0.18.0+cpu", "0.18.0+pt23cu124"] {
            with(same).silent(MIX);
        }
    }

    #[test]
    fn frameworks_for_two_majors_in_one_environment_are_a_warning_and_ollama_chooses() {
        image().framework("torch", "2.3.0+cu121", "12.1").framework("onnxruntime-gpu", "1.17.1", "11.8").short(MIX);
        image().framework("ollama", "", "12").framework("ollama", "", "13").silent(MIX);
        image().framework("torch", "2.3.0+cu121", "12.1").framework("cupy-cuda12x", "13.6.0", "12").silent(MIX);
    }
}
