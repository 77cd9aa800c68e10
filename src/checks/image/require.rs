//! What the image requires of driver and GPU (`NVIDIA_REQUIRE_*`, `CUDA_VERSION`), and whether it has it here.
//!
//! Not met and will not start are two things. NVIDIA's legacy hook, where it has still to run, refuses a container
//! for a requirement that is not met, though minor-version compatibility would let its programs run; with CDI nobody
//! looks, and they fail later or not at all. What the hook makes of a `CUDA_VERSION` alone is not the image's word, and
//! the variable is set for many reasons: by itself it is no error, unless the CUDA could not run here anyway.
//!
//! On Jetson CUDA comes with the system and not by the driver's version, and under WSL no file tells the version of
//! Windows' driver.

use crate::checks::not_applicable;
use crate::checks::request::asked::{self, Asked};
use crate::knowledge::gpus::Brand;
use crate::knowledge::require::{
    Evaluation, Expression, Property, Requirement, Subject, declared, evaluate_all, parse, smallest_driver,
};
use crate::knowledge::visible_devices::{Request, select};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, LegacyState};
use crate::model::host::{Gpu, Platform};
use crate::model::wording::{cut, quote};
use crate::model::{Container, CudaVersion, DriverVersion, Facts, Unknown};

#[cfg(test)]
mod tests;
mod told;

use told::Told;

const REFUSED: &str = "the image requires {wanted}; here is {here}, and NVIDIA's hook will refuse the start";
const REFUSED_FOR_SOME: &str = "the image requires {wanted}, which {gpus} of the GPUs given does not meet; here is {here}, and NVIDIA's hook \
                                will refuse the start";
const FOR_SOME: &str = "the image requires {wanted}, which {gpus} of the GPUs given does not meet; here is {here}";
const OF_VERSION: &str = "without NVIDIA_REQUIRE_CUDA NVIDIA's hook takes CUDA_VERSION for {wanted}; here is {here}, \
                          and it may refuse the start";
const TOLERATED: &str =
    "the image requires {wanted}; here is {here}; nobody enforces that here, and {compatibility} may let it run";
const CANNOT: &str = "the image requires {wanted}; here is {here}; nobody enforces that here, but programs of CUDA {major} do not start on it";
const INVALID: &str = "{variable} has {term}, which NVIDIA's hook cannot read: it will refuse the start";
const NO_VERSION: &str =
    "CUDA_VERSION={value} is no version; NVIDIA's hook makes a requirement of it and may refuse the start";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "require-cuda-unsatisfied",
    title: "the image requires another driver or GPU than is here",
    why: "NVIDIA's hook refuses the start, or nobody checks and CUDA may fail in the program.",
    messages: &[REFUSED, REFUSED_FOR_SOME, FOR_SOME, OF_VERSION, TOLERATED, CANNOT, INVALID, NO_VERSION],
    remedy: &[
        Step { action: Action::UpdateDriver, text: "Update the driver to {smallest}.", command: None },
        Step { action: Action::PassGpu, text: "Give it a GPU that meets {unmet}.", command: None },
        Step { action: Action::ChangeImage, text: "Use an image for CUDA {offered} or older.", command: None },
        Step {
            action: Action::ChangeEnvironment,
            text: "Set NVIDIA_DISABLE_REQUIRE=1{spelling}: {then}.",
            command: None,
        },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Hook, Place::Image],
    judge: require_cuda_unsatisfied,
}];

/// Who looks at the requirements.
enum Enforcement {
    /// NVIDIA's hook has still to run and will.
    Hook(Asked),
    /// An image, for a machine whose containers get their GPUs by the hook.
    ByMachine,
    /// Nobody.
    Nobody,
}

fn require_cuda_unsatisfied(facts: &Facts<'_>) -> Judgement {
    let Some(enforcement) = enforcement(facts)? else { return not_applicable() };
    let declared = declared(facts.container.environment.known()?);
    if declared.is_empty() {
        return not_applicable();
    }
    let enforced = !matches!(enforcement, Enforcement::Nobody);
    if enforced && has_other_configuration(facts.container) {
        return Err(Unknown::new(
            "host.toolkit.config",
            "the hook's arguments",
            "they name a configuration of its own",
        ));
    }
    let config = match facts.place {
        // nobody need have stated it
        Place::Image => facts.host.toolkit.config.seen().and_then(Option::as_ref),
        _ if enforced => facts.host.toolkit.config.known()?.as_ref(),
        _ => None,
    };
    if enforced && config.is_some_and(|config| config.disable_require == Some(true)) {
        return not_applicable();
    }
    if facts.host.platform == Platform::Wsl {
        return Err(Unknown::new("host.driver.windows", "/dev/dxg", "no file tells the version of Windows' driver"));
    }
    let Some(driver) = facts.host.driver.version.known()? else { return not_applicable() };
    let read = Read::of(&declared);
    let all = Subject { driver: Some(driver.clone()), ..Subject::default() };
    let subject = Subject { cuda: offered(facts, driver, &read), ..all };
    match evaluate_all(&read.expressions, &subject) {
        Evaluation::Satisfied => read.rest(enforced),
        Evaluation::Invalid(_) if !enforced => Ok(Outcome::Pass),
        refused if refused.is_refused() => {
            certain(&enforcement)?;
            // for words alone; no decision waits for it, but to be read if it was left out
            facts.host.pci.looked_at()?;
            let gpus = given(facts, &enforcement).ok().flatten().unwrap_or_default();
            let subject = hardest(facts, &read, &subject, &gpus);
            Told { facts, read: &read, driver, subject: &subject, gpus: &gpus, enforced }.failure(refused, None)
        }
        _ => for_each_gpu(facts, &enforcement, &read, driver, &subject),
    }
}

/// `None`: nothing is to be judged.
fn enforcement(facts: &Facts<'_>) -> Result<Option<Enforcement>, Unknown> {
    if facts.host.platform == Platform::Tegra {
        return Ok(None);
    }
    if facts.place == Place::Image {
        let container = facts.container;
        let is_for_none = *container.gpu_given.known()? == Given::None;
        let by_hook = asked::has_legacy_hook(container)?;
        let way = if by_hook { Enforcement::ByMachine } else { Enforcement::Nobody };
        return Ok((!is_for_none).then_some(way));
    }
    let container = facts.container;
    if matches!(container.gpu_given.known()?, Given::None | Given::Vm | Given::Tegra) {
        return Ok(None);
    }
    // the hook of ctr and nerdctl goes by its arguments and reads no variable
    if !asked::has_legacy_hook(container)? || !asked::reads_variables(container) {
        return Ok(Some(Enforcement::Nobody));
    }
    if container.legacy_hook.as_ref().is_some_and(|hook| hook.state == LegacyState::HasRun) {
        return Ok(None);
    }
    let asked = asked::of_hook(facts)?.filter(|asked| !matches!(asked.request, Request::Void | Request::Unset));
    Ok(asked.map(Enforcement::Hook))
}

/// Another list of devices might count, where the toolkit's configuration was not seen.
fn certain(enforcement: &Enforcement) -> Result<(), Unknown> {
    match enforcement {
        Enforcement::Hook(asked) => asked.certain.clone(),
        Enforcement::ByMachine | Enforcement::Nobody => Ok(()),
    }
}

/// The requirements, read.
struct Read<'a> {
    expressions: Vec<Expression<'a>>,
    /// Of each expression, where it stands.
    of: Vec<&'a Requirement<'a>>,
    too_large: Option<&'a str>,
    no_version: Option<&'a str>,
}

impl<'a> Read<'a> {
    fn of(declared: &'a [Requirement<'a>]) -> Self {
        let mut read = Self { expressions: Vec::new(), of: Vec::new(), too_large: None, no_version: None };
        for requirement in declared {
            match requirement.text.as_deref().map(parse) {
                Some(Ok(expression)) => {
                    read.expressions.push(expression);
                    read.of.push(requirement);
                }
                Some(Err(_)) => read.too_large = Some(requirement.variable),
                None => read.no_version = Some(requirement.value),
            }
        }
        read
    }

    /// What is to be said where all that could be read holds.
    fn rest(&self, enforced: bool) -> Judgement {
        if let Some(variable) = self.too_large {
            let reason = format!("{} is too large to be a requirement", quote(variable));
            return Err(Unknown::new("container.environment", "config.json", reason));
        }
        match self.no_version {
            Some(value) if enforced => Failure::new(Severity::Warning, NO_VERSION)
                .foreign("value", value)
                .arg("offered", "the driver's version")
                .arg("spelling", "")
                .arg("then", "no requirement is made of it then")
                .only(&[Action::ChangeEnvironment])
                .found(),
            _ => Ok(Outcome::Pass),
        }
    }
}

/// The CUDA that the driver offers, if it is known, or if the least it can be is enough.
fn offered(facts: &Facts<'_>, driver: &DriverVersion, read: &Read<'_>) -> Option<CudaVersion> {
    let answer = facts.knowledge.offered_by(driver)?;
    let subject = Subject { cuda: Some(answer.value.clone()), driver: Some(driver.clone()), ..Subject::default() };
    let enough = !answer.by_rule || !evaluate_all(&read.expressions, &subject).is_refused();
    enough.then_some(answer.value)
}

/// Holds where it depends on the GPU.
fn for_each_gpu(
    facts: &Facts<'_>,
    enforcement: &Enforcement,
    read: &Read<'_>,
    driver: &DriverVersion,
    subject: &Subject<'_>,
) -> Judgement {
    let enforced = !matches!(enforcement, Enforcement::Nobody);
    let Some(given) = given(facts, enforcement)? else {
        // without a GPU NVIDIA's tool asks once, and what it does not know counts as true
        return read.rest(enforced);
    };
    // the name tells all, but it wakes a GPU to read it; its place on the bus tells most
    facts.host.pci.looked_at()?;
    let mut refused = Vec::new();
    let mut open = None;
    for gpu in &given {
        let subject = with_gpu(facts, subject, gpu);
        match evaluate_all(&read.expressions, &subject) {
            Evaluation::Satisfied => {}
            Evaluation::SatisfiedUnlessUnknown(property) => open = open.or(Some((*gpu, property))),
            Evaluation::Invalid(_) if !enforced => {}
            evaluation => refused.push((*gpu, subject, evaluation)),
        }
    }
    if let Some((_, _, evaluation)) = refused.first() {
        certain(enforcement)?;
        let gpus: Vec<&Gpu> = refused.iter().map(|(gpu, ..)| *gpu).collect();
        let some = (refused.len() < given.len()).then(|| names(&gpus));
        if some.is_some() && !is_resolved(facts, enforcement) {
            // a part of a GPU, say: it may be of one that does
            return Err(Unknown::new("host.gpus", "NVIDIA_VISIBLE_DEVICES", "which GPUs are asked for is open"));
        }
        let subject = hardest(facts, read, subject, &gpus);
        return Told { facts, read, driver, subject: &subject, gpus: &gpus, enforced }.failure(*evaluation, some);
    }
    if given.is_empty() {
        return Err(Unknown::new("host.gpus", "/proc/driver/nvidia/gpus", "no GPU is known"));
    }
    match open {
        Some((gpu, property)) => Err(unread(gpu, property)),
        None => read.rest(enforced),
    }
}

/// The GPUs that count; `None`: the container gets none. Where it cannot be told which, all of the machine's.
fn given<'a>(facts: &Facts<'a>, enforcement: &Enforcement) -> Result<Option<Vec<&'a Gpu>>, Unknown> {
    let gpus = facts.host.gpus.known()?;
    let usable = || gpus.iter().filter(|gpu| !gpu.excluded).collect();
    let asked = match enforcement {
        Enforcement::Hook(asked) => asked,
        Enforcement::ByMachine => return Ok(Some(usable())),
        Enforcement::Nobody => {
            // by their nodes, as far as the driver was asked for the numbers
            let by_nodes = super::gpus::given(facts, gpus).unwrap_or_default();
            return Ok(Some(if by_nodes.is_empty() { usable() } else { by_nodes }));
        }
    };
    if asked.request == Request::None {
        return Ok(None);
    }
    let selection = select(&asked.request, gpus);
    if !selection.open.is_empty() || selection.gpus.is_empty() {
        return Ok(Some(usable()));
    }
    Ok(Some(gpus.iter().filter(|gpu| selection.gpus.contains(&gpu.index)).collect()))
}

/// Every device that is asked for is known.
fn is_resolved(facts: &Facts<'_>, enforcement: &Enforcement) -> bool {
    let Enforcement::Hook(asked) = enforcement else { return true };
    let gpus = facts.host.gpus.seen().map_or(&[][..], Vec::as_slice);
    let selection = select(&asked.request, gpus);
    selection.open.is_empty() && !selection.gpus.is_empty()
}

/// NVIDIA's hook reads a configuration that its arguments name.
fn has_other_configuration(container: &Container) -> bool {
    let Some(hook) = &container.legacy_hook else { return false };
    let hooks = container.hooks.seen().map_or(&[][..], |hooks| &hooks.items);
    let own = hooks.iter().filter(|other| other.path == hook.path);
    own.flat_map(|hook| &hook.args).any(|arg| arg.trim_start_matches('-').starts_with("config") && arg.starts_with('-'))
}

/// The GPU for which most would have to change: a driver that is enough for it is enough for the others.
fn hardest(facts: &Facts<'_>, read: &Read<'_>, subject: &Subject<'_>, gpus: &[&Gpu]) -> Subject<'static> {
    let mut all: Vec<Subject<'static>> = Vec::new();
    for gpu in gpus {
        let subject = with_gpu(facts, subject, gpu);
        if !all.contains(&subject) {
            all.push(subject);
        }
    }
    let smallest = |subject: &Subject<'_>| smallest_driver(&read.expressions, subject, facts.knowledge);
    let none = || Subject { cuda: subject.cuda.clone(), driver: subject.driver.clone(), ..Subject::default() };
    if all.len() > 1 {
        all.sort_by_cached_key(|subject| smallest(subject).map_or((true, None), |found| (false, Some(found.version))));
    }
    all.pop().unwrap_or_else(none)
}

fn with_gpu(facts: &Facts<'_>, subject: &Subject<'_>, gpu: &Gpu) -> Subject<'static> {
    let (name, device) = (gpu.name.as_deref(), device(facts, gpu));
    Subject {
        cuda: subject.cuda.clone(),
        driver: subject.driver.clone(),
        arch: facts.knowledge.capability_of(name, device),
        brand: Brand::of(name, device).map(Brand::for_requirements),
    }
}

/// Its PCI device id, as far as the bus was looked at.
fn device(facts: &Facts<'_>, gpu: &Gpu) -> Option<u16> {
    facts.host.pci.seen()?.iter().find(|function| function.address == gpu.pci).map(|function| function.device)
}

fn unread(gpu: &Gpu, property: Property) -> Unknown {
    let reason = match &gpu.name {
        Some(name) => format!("{} of {} is not known", property.name(), quote(name)),
        None => "the name of a GPU was not read".to_owned(),
    };
    Unknown::new("host.gpus", "/proc/driver/nvidia/gpus", reason)
}

fn names(gpus: &[&Gpu]) -> String {
    let name = |gpu: &&Gpu| match &gpu.name {
        Some(name) => format!("{} ({})", gpu.index, cut(name, 40)),
        None => gpu.index.to_string(),
    };
    let mut all: Vec<String> = gpus.iter().take(3).map(name).collect();
    if gpus.len() > 3 {
        all.push(format!("{} more", gpus.len() - 3));
    }
    format!("GPU {}", all.join(", "))
}
