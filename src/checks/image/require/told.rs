//! Putting a requirement that is not met into words, with what would have to change.

use std::fmt::Write as _;

use super::{CANNOT, FOR_SOME, INVALID, OF_VERSION, REFUSED, REFUSED_FOR_SOME, Read, TOLERATED, device};
use crate::checks::cuda;
use crate::knowledge::cuda::Start;
use crate::knowledge::driver_capabilities::Capabilities;
use crate::knowledge::gpus::Brand;
use crate::knowledge::require::{
    Change, Evaluation, Explanation, Expression, Operator, Property, Requirement, Subject, Term, evaluate_all, explain,
    is_near,
};
use crate::model::check::{Action, Failure, Judgement, Severity};
use crate::model::host::Gpu;
use crate::model::wording::{cut, quote};
use crate::model::{CudaVersion, DriverVersion, Facts};

/// What a failure is put into words from.
pub(super) struct Told<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) read: &'a Read<'a>,
    pub(super) driver: &'a DriverVersion,
    pub(super) subject: &'a Subject<'a>,
    pub(super) gpus: &'a [&'a Gpu],
    pub(super) enforced: bool,
}

impl Told<'_> {
    pub(super) fn failure(&self, evaluation: Evaluation<'_>, some: Option<String>) -> Judgement {
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
            // The hook asks for every GPU, and ends with the first that does not meet it (libnvidia-container,
            // `src/cli/configure.c` at 09df17a2, read 2026-11).
            (Some(_), true) if !by_version => (Severity::Error, REFUSED_FOR_SOME),
            (Some(_), _) => (Severity::Warning, FOR_SOME),
            (None, true) if by_version && !cannot => (Severity::Warning, OF_VERSION),
            (None, true) => (Severity::Error, REFUSED),
            // What the image is made from says nothing of what runs in it: other checks look at that.
            (None, false) if cannot => (Severity::Warning, CANNOT),
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
