//! What the image requires of driver and GPU (`NVIDIA_REQUIRE_*`, `CUDA_VERSION`), and whether it has it here.
//!
//! Not met and will not start are two things. NVIDIA's legacy hook, where it has still to run, refuses a container
//! for a requirement that is not met, though minor-version compatibility would let its programs run; with CDI nobody
//! looks, and they fail later or not at all. What the hook makes of a `CUDA_VERSION` alone is not the image's word, and
//! the variable is set for many reasons: by itself it is no error, unless the CUDA could not run here anyway. On Jetson CUDA comes with the system and not by the driver's version,
//! and under WSL no file tells the version of Windows' driver.

use std::fmt::Write as _;

use crate::checks::request::asked::{self, Asked};
use crate::checks::{cuda, not_applicable};
use crate::knowledge::cuda::Start;
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::gpus::Brand;
use crate::knowledge::require::{
    Change, Evaluation, Explanation, Expression, Operator, Property, Requirement, Subject, Term, declared,
    evaluate_all, explain, is_near, parse, smallest_driver,
};
use crate::knowledge::visible_devices::{Request, select};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::container::{Given, LegacyState};
use crate::model::host::{EngineKind, Gpu, Platform};
use crate::model::wording::{cut, quote};
use crate::model::{CudaVersion, DriverVersion, Facts, Unknown};

const REFUSED: &str = "the image requires {wanted}; here is {here}, and NVIDIA's hook will refuse the start";
const FOR_SOME: &str = "the image requires {wanted}, which {gpus} of the GPUs given does not meet; here is {here}";
const OF_VERSION: &str = "without NVIDIA_REQUIRE_CUDA NVIDIA's hook takes CUDA_VERSION for {wanted}; here is {here}, \
                          and it may refuse the start";
const TOLERATED: &str =
    "the image requires {wanted}; here is {here}; nobody enforces that here, and {compatibility} may let it run";
const CANNOT: &str =
    "the image requires {wanted}; here is {here}; nobody enforces that here, but CUDA {major} does not start on it";
const INVALID: &str = "{variable} has {term}, which NVIDIA's hook cannot read: it will refuse the start";
const NO_VERSION: &str =
    "CUDA_VERSION={value} is no version; NVIDIA's hook makes a requirement of it and may refuse the start";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "require-cuda-unsatisfied",
    title: "the image requires another driver or GPU than is here",
    why: "NVIDIA's hook refuses the start, or nobody checks and CUDA may fail in the program.",
    messages: &[REFUSED, FOR_SOME, OF_VERSION, TOLERATED, CANNOT, INVALID, NO_VERSION],
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
    if enforced && facts.host.toolkit.config.known()?.as_ref().is_some_and(|c| c.disable_require == Some(true)) {
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
        return Ok(Some(if only_cdi(facts) { Enforcement::Nobody } else { Enforcement::ByMachine }));
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

/// This machine's containers get their GPUs by CDI and by nothing else, as far as its configuration says.
fn only_cdi(facts: &Facts<'_>) -> bool {
    let host = facts.host;
    let mode = host.toolkit.config.seen().and_then(Option::as_ref).and_then(|config| config.mode.as_deref());
    let engines = &host.engines;
    mode == Some("cdi") || (!engines.is_empty() && engines.iter().all(|engine| engine.kind == EngineKind::Podman))
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
    let Enforcement::Hook(asked) = enforcement else { return Ok(Some(usable())) };
    if asked.request == Request::None {
        return Ok(None);
    }
    let selection = select(&asked.request, gpus);
    if !selection.open.is_empty() || selection.gpus.is_empty() {
        return Ok(Some(usable()));
    }
    Ok(Some(gpus.iter().filter(|gpu| selection.gpus.contains(&gpu.index)).collect()))
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

/// What a failure is put into words from.
struct Told<'a> {
    facts: &'a Facts<'a>,
    read: &'a Read<'a>,
    driver: &'a DriverVersion,
    subject: &'a Subject<'a>,
    gpus: &'a [&'a Gpu],
    enforced: bool,
}

impl Told<'_> {
    fn failure(&self, evaluation: Evaluation<'_>, some: Option<String>) -> Judgement {
        let requirement = self.requirement();
        let failure = match (evaluation, requirement) {
            (Evaluation::Invalid(term), Some(requirement)) => self.invalid(&term, requirement),
            _ => self.unsatisfied(some),
        };
        let variable = requirement.map(|r| format!("{}={}", r.variable, cut(r.value, 200))).unwrap_or_default();
        failure
            .saw("container.environment", quote(&variable), "config.json")
            .saw("host.driver.version", self.driver, "/proc/driver/nvidia/version")
            .found()
    }

    /// The first that does not hold.
    fn requirement(&self) -> Option<&Requirement<'_>> {
        let refused = |e: &&Expression<'_>| evaluate_all([*e], self.subject).is_refused();
        let place = self.read.expressions.iter().position(|e| refused(&e))?;
        self.read.of.get(place).copied()
    }

    fn invalid(&self, term: &Term<'_>, requirement: &Requirement<'_>) -> Failure {
        Failure::new(Severity::Error, INVALID)
            .foreign("variable", requirement.variable)
            .foreign("term", term.to_string())
            .arg("spelling", self.spelling())
            .arg("then", "nobody reads it then")
            .only(&[Action::ChangeEnvironment])
    }

    fn unsatisfied(&self, some: Option<String>) -> Failure {
        let knowledge = self.facts.knowledge;
        let explained = explain(&self.read.expressions, self.subject, knowledge);
        let needed = self.required_cuda();
        let starts = needed.as_ref().zip(self.subject.cuda.as_ref()).map(|(needed, has)| knowledge.starts(needed, has));
        let major = needed.as_ref().map_or_else(String::new, |cuda| cuda.number(0).to_string());
        let cannot = starts == Some(Start::No) && !self.forward_may_help() && self.computes();
        let by_version = self.requirement().is_some_and(Requirement::is_of_version);
        let (severity, message) = match (&some, self.enforced) {
            (Some(_), _) => (Severity::Warning, FOR_SOME),
            (None, true) if by_version && !cannot => (Severity::Warning, OF_VERSION),
            (None, true) => (Severity::Error, REFUSED),
            (None, false) if cannot => (Severity::Error, CANNOT),
            (None, false) => (Severity::Warning, TOLERATED),
        };
        let by = if starts == Some(Start::No) { "forward compatibility" } else { "minor-version compatibility" };
        let change = explained.as_ref().map(|e| &e.change);
        let disable = self.enforced && starts != Some(Start::No);
        Failure::new(severity, message)
            .arg("wanted", explained.as_ref().map_or_else(String::new, wanted))
            .arg("here", self.here(explained.as_ref()))
            .arg("gpus", some.unwrap_or_default())
            .arg("compatibility", by)
            .arg("smallest", change.map_or_else(String::new, |change| self.smallest(change)))
            .arg("unmet", explained.as_ref().map_or_else(String::new, unmet))
            .arg("offered", self.subject.cuda.as_ref().map_or("", |cuda| cuda.as_str()))
            .arg("spelling", self.spelling())
            .arg("then", format!("CUDA {major} starts on this driver by minor-version compatibility"))
            .arg("major", major)
            .only(ways_out(change, disable))
    }

    /// The driver, and the GPU where it is one of its properties that fails.
    fn here(&self, explained: Option<&Explanation<'_>>) -> String {
        let mut here = format!("driver {}", self.driver);
        if let Some(cuda) = &self.subject.cuda {
            let _ = write!(here, ", which offers CUDA {cuda}");
        }
        let failing = explained.map(|e| e.failing.as_slice()).unwrap_or_default();
        let fails =
            |wanted| failing.iter().any(|t| matches!(t, Term::Comparison { property, .. } if *property == wanted));
        if let Some(arch) = self.subject.arch.filter(|_| fails(Property::Arch)) {
            let _ = write!(here, ", and compute capability {arch}");
        }
        if let Some(brand) = self.subject.brand.filter(|_| fails(Property::Brand)) {
            let _ = write!(here, ", and a GPU of brand {brand}");
        }
        here
    }

    fn smallest(&self, change: &Change) -> String {
        match change {
            Change::Driver(smallest) => {
                let branch = if smallest.version.as_str().contains('.') { "" } else { "branch " };
                match &smallest.onwards {
                    Some(onwards) if *onwards == smallest.version => format!("{onwards} or newer"),
                    Some(onwards) => format!("{branch}{}, or to {onwards} or newer", smallest.version),
                    None => format!("{branch}{}", smallest.version),
                }
            }
            _ => format!("a branch newer than {}", self.driver),
        }
    }

    /// The CUDA that the first alternative asks for at least.
    fn required_cuda(&self) -> Option<CudaVersion> {
        let bounds = self.read.expressions.iter().filter_map(|e| e.alternatives.first()).flat_map(|a| &a.terms);
        bounds
            .filter_map(|term| match term {
                Term::Comparison {
                    property: Property::Cuda,
                    operator: Operator::GreaterOrEqual | Operator::Greater | Operator::Equal,
                    value,
                } => value.parse().ok(),
                _ => None,
            })
            .max()
    }

    /// The image may have a libcuda of its own, on GPUs that are allowed one. Whether it has is for other checks: an
    /// image's files are not always looked through.
    fn forward_may_help(&self) -> bool {
        let allowed = |gpu: &&Gpu| {
            let brand = Brand::of(gpu.name.as_deref(), device(self.facts, gpu));
            brand.is_none_or(Brand::allows_forward_compatibility)
        };
        self.gpus.is_empty() || self.gpus.iter().any(allowed)
    }

    /// Its program is one that may need CUDA.
    fn computes(&self) -> bool {
        let environment = self.facts.container.environment.seen();
        let allowed = environment.is_none_or(|environment| Capabilities::of(environment).allow_compute());
        allowed && !cuda::only_monitors(self.facts.container)
    }

    fn spelling(&self) -> String {
        let environment = self.facts.container.environment.seen();
        let near =
            environment.and_then(|e| e.keys().find(|name| is_near(name) && !name.starts_with("NVIDIA_REQUIRE_")));
        near.map_or_else(String::new, |name| format!(" (nothing reads {})", quote(&cut(name, 40))))
    }
}

/// The alternative that NVIDIA's tool names, and the one that is nearest.
fn wanted(explained: &Explanation<'_>) -> String {
    let first = quote(&cut(&explained.first.to_string(), 60));
    if explained.nearest != explained.first {
        return format!("{first} or, nearest here, {}", quote(&cut(&explained.nearest.to_string(), 60)));
    }
    match explained.alternatives {
        0 | 1 => first,
        2 => format!("{first} or its alternative"),
        more => format!("{first} or one of {} alternatives", more - 1),
    }
}

fn unmet(explained: &Explanation<'_>) -> String {
    let of_gpu = |term: &&Term<'_>| matches!(term, Term::Comparison { property, .. } if property.is_of_gpu());
    let terms: Vec<String> = explained.failing.iter().filter(of_gpu).map(ToString::to_string).collect();
    if terms.is_empty() { "it".to_owned() } else { quote(&cut(&terms.join(","), 60)) }
}

fn ways_out(change: Option<&Change>, disable: bool) -> &'static [Action] {
    use Action::{ChangeEnvironment, ChangeImage, PassGpu, UpdateDriver};
    match (change, disable) {
        (Some(Change::Driver(_) | Change::UnknownDriver), true) => &[UpdateDriver, ChangeImage, ChangeEnvironment],
        (Some(Change::Driver(_) | Change::UnknownDriver), false) => &[UpdateDriver, ChangeImage],
        (Some(Change::Gpu), true) => &[PassGpu, ChangeImage, ChangeEnvironment],
        (Some(Change::Gpu), false) => &[PassGpu, ChangeImage],
        (_, true) => &[ChangeImage, ChangeEnvironment],
        (_, false) => &[ChangeImage],
    }
}

#[cfg(test)]
mod tests;
