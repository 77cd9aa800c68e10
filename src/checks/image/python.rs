//! The Python on the caller's `PATH`, beside the machine's driver. It is none of a container's: a machine whose own
//! Python is bad runs containers as well as any other, so that nothing here is an error.

use super::builds::{alone_for_cpu, by_needs, by_packages, found};
use super::start::{newer_than, older_build};
use crate::checks::not_applicable;
use crate::knowledge::cuda::Start;
use crate::knowledge::cuda_visible_devices::{hides_all, parse};
use crate::knowledge::needs;
use crate::model::check::{Action, Failure, Judgement, Outcome, Severity};
use crate::model::host::{Platform, Python};
use crate::model::{DriverVersion, Facts, Unknown};

pub(super) const TOO_NEW: &str = "{what} of the Python on the PATH ({python}) is built for CUDA {wanted}, and driver \
                                  {driver} offers CUDA {offered}: CUDA does not start in it";
pub(super) const MAY_BE_TOO_NEW: &str = "{what} of the Python on the PATH ({python}) seems to be built for CUDA {wanted}, \
                                         and driver {driver} offers CUDA {offered}: then CUDA does not start in it";
pub(super) const CPU: &str =
    "{what} of the Python on the PATH ({python}) is a build for the processor: it will not use a GPU";
pub(super) const MIX: &str = "packages of the Python on the PATH ({python}) are for several major versions of CUDA: {what}; \
                              each needs libraries of its own";

/// The Python with the driver that it will meet; `None`: there is no such question. Who hides the GPUs computes on the
/// processor.
fn judged<'a>(facts: &Facts<'a>) -> Result<Option<(&'a Python, &'a DriverVersion)>, Unknown> {
    let host = facts.host;
    if host.platform != Platform::Native || host.has_gpu() != Ok(true) {
        return Ok(None);
    }
    let Some(driver) = host.driver.version.seen().and_then(Option::as_ref) else { return Ok(None) };
    let environment = host.environment.known()?;
    let hides = environment.get("CUDA_VISIBLE_DEVICES").is_some_and(|value| hides_all(&parse(value)));
    if hides || environment.get("JAX_PLATFORMS").is_some_and(|value| value.trim() == "cpu") {
        return Ok(None);
    }
    let python = host.python.known()?.as_deref();
    Ok(python.filter(|python| !python.frameworks.items.is_empty()).map(|python| (python, driver)))
}

/// That nobody could look at it the others say, which cannot be errors anywhere on a machine.
pub(super) fn too_new(facts: &Facts<'_>) -> Judgement {
    let Ok(Some((python, driver))) = judged(facts) else { return not_applicable() };
    // a driver newer than the tables offers at least what the newest one known does
    let Some(offered) = facts.knowledge.offered_by(driver).filter(|answer| !answer.by_rule) else {
        return not_applicable();
    };
    // who leads the loader to a libcuda for forward compatibility means it to be newer than the driver
    let compat = |path: &str| path.split('/').any(|part| part == "compat");
    let led = facts.host.library_path.seen().map(Vec::as_slice).unwrap_or_default();
    if led.iter().any(|library| library.name == "libcuda.so.1" && library.by_variable && compat(&library.path)) {
        return not_applicable();
    }
    let needs = needs::of_frameworks(&python.frameworks).all;
    let failing = needs.iter().filter(|need| facts.knowledge.starts(need.cuda, &offered.value) == Start::No);
    let Some(worst) = failing.max_by(|a, b| (a.sure, a.cuda).cmp(&(b.sure, b.cuda))) else {
        return Ok(Outcome::Pass);
    };
    let smallest = facts.knowledge.smallest_driver(worst.cuda);
    Failure::new(Severity::Warning, if worst.sure { TOO_NEW } else { MAY_BE_TOO_NEW })
        .foreign("what", &worst.what)
        .foreign("python", &python.path)
        .arg("wanted", worst.cuda)
        .arg("driver", driver)
        .arg("offered", &offered.value)
        .arg("smallest", smallest.map_or_else(|| "for that CUDA".to_owned(), |answer| newer_than(&answer)))
        .arg("major", older_build(&offered.value))
        .saw("host.python.frameworks", format!("{}: CUDA {}", worst.what, worst.cuda), worst.source)
        .saw("host.driver.version", driver, facts.host.source_of_driver())
        .only(&[Action::ChangeImage, Action::UpdateDriver])
        .found()
}

/// It may be meant, as in a container.
pub(super) fn cpu_build(facts: &Facts<'_>) -> Judgement {
    let Some((python, _)) = judged(facts)? else { return not_applicable() };
    let Some(framework) = alone_for_cpu(&python.frameworks, |framework| framework.sure) else {
        return not_applicable();
    };
    found(Severity::Note, CPU, framework, "host.python").foreign("python", &python.path).found()
}

pub(super) fn major_mix(facts: &Facts<'_>) -> Judgement {
    let Some((python, _)) = judged(facts)? else { return not_applicable() };
    let by_packages = by_packages(&python.packages, &python.frameworks.items);
    let mix = by_packages.or_else(|| by_needs(&needs::of_frameworks(&python.frameworks).all));
    mix.map_or(Ok(Outcome::Pass), |mix| mix.said(MIX, "host.python").foreign("python", &python.path).found())
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::host::{PathLibrary, Python};
    use crate::model::image::{Build, Framework, Manager, Package};
    use crate::model::{Observed, Parts, Severity};

    const NEW: &str = "framework-cuda-newer-than-driver";
    const CPU: &str = "framework-is-cpu-build";
    const MIX: &str = "framework-cuda-major-mix";
    const PYTHON: &str = "/opt/venv/bin/python3";

    fn framework(name: &str, version: &str, cuda: Option<&str>) -> Framework {
        Framework {
            name: name.to_owned(),
            version: version.to_owned(),
            build: if cuda.is_some() { Build::Cuda } else { Build::Cpu },
            cuda: cuda.map(|cuda| cuda.parse().unwrap()),
            source: format!("/opt/venv/lib/python3.11/site-packages/{name}/version.py"),
            sure: true,
            min_driver: None,
        }
    }

    /// A machine with driver 550 (CUDA 12.4) whose Python has these.
    fn with(frameworks: &[(&str, &str, Option<&str>)]) -> World {
        let mut world = World::machine(2);
        let items = frameworks.iter().map(|(name, version, cuda)| framework(name, version, *cuda)).collect();
        let python = Python { path: PYTHON.into(), frameworks: Parts::whole(items), packages: Vec::new() };
        world.host.python = Observed::Known(Some(Box::new(python)));
        world
    }

    fn python(world: &mut World) -> &mut Python {
        let Observed::Known(Some(python)) = &mut world.host.python else { panic!() };
        python
    }

    #[test]
    fn a_framework_for_a_newer_major_than_the_drivers_is_a_warning_that_names_the_python() {
        let mut world = with(&[("torch", "2.11.0", Some("13.0"))]);
        let failure = world.failure(NEW);
        let words = crate::model::wording::fill(failure.message, &failure.args);
        assert!(failure.severity == Severity::Warning && words.contains(PYTHON), "{words}");
        python(&mut world).frameworks.items[0].sure = false;
        let guess = world.failure(NEW);
        assert!(guess.message.contains("seems to be built") && guess.severity == Severity::Warning);
        for fine in ["12.4", "12.8", "11.8"] {
            with(&[("torch", "2.8.0", Some(fine))]).silent(NEW);
        }
    }

    #[test]
    fn a_build_for_the_processor_is_a_note_unless_another_is_there_or_it_is_meant() {
        let cpu = with(&[("torch", "2.9.0+cpu", None)]);
        assert_eq!(cpu.failure(CPU).severity, Severity::Note);
        with(&[("torch", "2.9.0+cpu", None), ("cupy-cuda12x", "13.6.0", Some("12"))]).silent(CPU);
        for (name, value) in [("CUDA_VISIBLE_DEVICES", ""), ("JAX_PLATFORMS", "cpu")] {
            let set = Observed::Known([(name.to_owned(), value.to_owned())].into());
            cpu.silent_with(|world| world.host.environment = set, CPU);
        }
    }

    #[test]
    fn packages_for_several_majors_are_a_warning() {
        let mut world = with(&[("torch", "2.3.0+cu121", Some("12.1"))]);
        world.silent(MIX);
        for (name, version) in [("nvidia-cudnn-cu11", "8.6.0.163"), ("nvidia-cudnn-cu12", "9.1.0.70")] {
            python(&mut world).packages.push(Package {
                name: name.to_owned(),
                version: version.to_owned(),
                build: None,
                manager: Manager::Pip,
                source: format!("/opt/venv/lib/python3.11/site-packages/{name}-{version}.dist-info"),
            });
        }
        assert_eq!(world.failure(MIX).severity, Severity::Warning);
        with(&[("torch", "2.3.0", Some("12.1")), ("onnxruntime-gpu", "1.17.1", Some("11.8"))]).failure(MIX);
    }

    #[test]
    fn a_machine_without_gpu_or_driver_and_a_python_without_a_framework_are_not_asked() {
        let spoilt = with(&[("torch", "2.11.0", Some("13.0")), ("onnxruntime-gpu", "1.17.1", Some("11.8"))]);
        for id in [NEW, CPU, MIX] {
            spoilt.silent_with(|world| world.host.driver.version = Observed::Known(None), id);
            spoilt.silent_with(|world| (world.host.gpus, world.host.pci) = Default::default(), id);
            with(&[]).silent(id);
            World::machine(1).silent(id);
        }
    }

    #[test]
    fn forward_compatibility_that_the_caller_chose_may_start_it() {
        let mut world = with(&[("torch", "2.11.0", Some("13.0"))]);
        world.host.library_path = Observed::Known(vec![PathLibrary {
            name: "libcuda.so.1".into(),
            path: "/usr/local/cuda/compat/libcuda.so.1".into(),
            version: None,
            by_variable: true,
            of_driver: false,
        }]);
        world.silent(NEW);
    }

    #[test]
    fn a_driver_newer_than_the_tables_is_never_too_old() {
        let world = with(&[("torch", "9.0", Some("99.0"))]).driver("9999.1");
        world.silent(NEW);
    }

    #[test]
    fn a_python_that_nobody_could_look_at_leaves_no_error_open() {
        let mut world = with(&[]);
        world.host.python = unseen();
        world.silent(NEW);
        world.unknown(CPU);
        world.unknown(MIX);
    }
}
