//! Will CUDA start: what the image's programs were built for, against what the driver offers.

use super::gpus;
use super::libcuda::{self, Loaded, Winner, is_barred};
use super::meant;
use super::needs::{self, Need};
use super::python;
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::knowledge::cuda::{Answer, Start};
use crate::knowledge::frameworks::{Jit, jit, needs_driver_for_device_code};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::{CudaVersion, DriverVersion, Facts, Unknown};

const TOO_NEW: &str = "{what} is built for CUDA {wanted}, and {offer}: CUDA does not start in it";
const TOO_NEW_ALONE: &str =
    "{what} is built for CUDA {wanted}, and {offer}: it does not start, other parts of the image do";
const MAY_BE_TOO_NEW: &str = "{what} seems to be built for CUDA {wanted}, and {offer}: then it does not start";
const IMAGE_TOO_NEW: &str = "the image is of CUDA {wanted} ({source}), and {offer}: programs of that CUDA do not start";
const IMAGE_NEWER: &str = "the image is of CUDA {wanted} ({source}), and {offer}; what it has installed needs less, or \
                           may not need it";
const BY_MINOR: &str = "{what} is of CUDA {wanted}, and {offer}: it starts by minor-version compatibility";
const PTX: &str = "{what} is of CUDA {wanted}, and {offer}: it starts, but PTX that it compiles at run time is refused \
                   (222)";
const PTX_PERHAPS: &str = "{what} is of CUDA {wanted}, and {offer}: it starts, but PTX that kernels or extensions compile \
                           at run time may be refused (222)";
const COMPRESSED: &str = "{what} has device code compressed in a way that driver {driver} may not read; {needed} does";

const INSTALL: Step =
    Step { action: Action::UpdateDriver, text: "Install driver {smallest} on the host.", command: None };
const OLDER_BUILD: Step =
    Step { action: Action::ChangeImage, text: "Use an image or build for CUDA {major}.", command: None };
const COMPAT: Step = Step {
    action: Action::ChangePackages,
    text: "On a data-centre GPU, add forward compatibility to the image: package {package}.",
    command: None,
};
const NEWER_DRIVER: Step =
    Step { action: Action::UpdateDriver, text: "Install driver {full} on the host.", command: None };

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "framework-cuda-newer-than-driver",
        title: "a framework was built for a newer CUDA than the driver runs",
        why: "CUDA driver version is insufficient for CUDA runtime version (35), or a silent fall to the CPU.",
        messages: &[TOO_NEW, TOO_NEW_ALONE, MAY_BE_TOO_NEW, python::TOO_NEW, python::MAY_BE_TOO_NEW],
        remedy: &[INSTALL, OLDER_BUILD, COMPAT],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image, Place::Healthcheck, Place::Host],
        judge: framework,
    },
    Check {
        id: "cuda-newer-than-driver",
        title: "the image's CUDA is newer than the driver runs",
        why: "CUDA driver version is insufficient for CUDA runtime version (35).",
        messages: &[IMAGE_TOO_NEW, IMAGE_NEWER],
        remedy: &[INSTALL, OLDER_BUILD, COMPAT],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image, Place::Healthcheck],
        judge: image,
    },
    Check {
        id: "fatbin-needs-newer-driver",
        title: "device code in the image is compressed as older drivers cannot read it",
        why: "Device kernel image is invalid (200), or no kernel image is available (209).",
        messages: &[COMPRESSED],
        remedy: &[Step {
            action: Action::UpdateDriver,
            text: "Install driver {needed} or newer on the host.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: compressed,
    },
    Check {
        id: "minor-version-compat",
        title: "the image's CUDA is newer than the driver's, of the same major version",
        why: "It runs; what only newer drivers have is refused: new PTX (222), new calls (36).",
        messages: &[BY_MINOR],
        remedy: &[],
        severities: &[Severity::Note],
        places: &[Place::Hook, Place::Image],
        judge: by_minor_version,
    },
    Check {
        id: "ptx-newer-than-driver",
        title: "PTX that the image compiles at run time is newer than the driver",
        why: "The provided PTX was compiled with an unsupported toolchain (222); code built ahead runs.",
        messages: &[PTX, PTX_PERHAPS],
        remedy: &[NEWER_DRIVER, COMPAT],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: ptx,
    },
];

/// The container with what its driver, or the image's libcuda, offers.
struct Judged<'a> {
    loaded: Loaded<'a>,
    offered: Answer<CudaVersion>,
    /// CUDA work is what it is for.
    certain: bool,
}

/// `None`: the question does not arise.
fn judged<'a>(facts: &Facts<'a>) -> Result<Option<Judged<'a>>, Unknown> {
    let Some(loaded) = libcuda::of(facts)? else { return Ok(None) };
    let Some(certain) = meant::computes(facts)? else { return Ok(None) };
    let Some(offered) = loaded.offers(facts) else { return Ok(None) };
    Ok(Some(Judged { loaded, offered, certain }))
}

impl Judged<'_> {
    /// Whether it starts. Of a driver newer than the tables only the least is known.
    fn starts(&self, facts: &Facts<'_>, cuda: &CudaVersion) -> Result<Start, Unknown> {
        match facts.knowledge.starts(cuda, &self.offered.value) {
            Start::No if self.offered.by_rule => {
                let reason = "the driver is newer than the tables of this program";
                Err(Unknown::new("host.driver.cuda", "the tables of drivers", reason))
            }
            start => Ok(start),
        }
    }

    fn says(&self, failure: Failure, facts: &Facts<'_>, cuda: &CudaVersion) -> Failure {
        let at_least = if self.offered.by_rule { "at least " } else { "" };
        let offer = match &self.loaded.winner {
            Winner::Image { compat, sure: true, .. } => {
                format!("the image's libcuda offers {at_least}{}", said(compat.version.as_ref(), &self.offered.value))
            }
            _ => format!("driver {} offers {at_least}CUDA {}", self.loaded.driver, self.offered.value),
        };
        let smallest = facts.knowledge.smallest_driver(cuda);
        let smallest = smallest.map_or_else(|| "for that CUDA".to_owned(), |answer| newer_than(&answer));
        let full =
            facts.knowledge.full_driver(cuda).map_or_else(|| "for that CUDA".to_owned(), |answer| newer_than(&answer));
        failure
            .arg("wanted", cuda)
            .arg("offer", offer)
            .arg("smallest", smallest)
            .arg("full", full)
            .arg("major", older_build(&self.offered.value))
            .arg("package", format!("cuda-compat-{}-{}", cuda.number(0), cuda.number(1)))
            .saw("host.driver.version", self.loaded.driver, facts.host.source_of_driver())
    }
}

fn said(version: Option<&DriverVersion>, cuda: &CudaVersion) -> String {
    version.map_or_else(|| format!("CUDA {cuda}"), |version| format!("CUDA {cuda} (it is {version})"))
}

/// A driver that no table has is at least newer than this.
pub(super) fn newer_than(answer: &Answer<DriverVersion>) -> String {
    if answer.by_rule { format!("newer than {}", answer.value) } else { format!("{} or newer", answer.value) }
}

/// What builds run here: the major from 11 on, by minor-version compatibility, else up to the version itself.
pub(super) fn older_build(offered: &CudaVersion) -> String {
    if offered.number(0) >= 11 { format!("{} or older", offered.number(0)) } else { format!("{offered} or older") }
}

/// The steps that fit: a driver that still runs the GPUs, and forward compatibility where there is a package of it that
/// works with this driver and these GPUs, and the image does not have it.
fn fitting(facts: &Facts<'_>, loaded: &Loaded<'_>, cuda: &CudaVersion) -> &'static [Action] {
    let gpus = gpus::of(facts).unwrap_or_default();
    let capabilities = || gpus.iter().filter_map(|gpu| gpu.capability(facts));
    let runs =
        |driver: &DriverVersion| capabilities().all(|of| facts.knowledge.driver_supports(of, driver) != Some(false));
    let newer = facts.knowledge.smallest_driver(cuda).is_none_or(|smallest| runs(&smallest.value));
    let has = facts.image.compat.seen().is_some_and(|compat| !compat.items.is_empty());
    let branch = loaded.driver.number(0);
    let listed = facts.knowledge.compat_branches(cuda).is_some_and(|branches| branches.contains(&branch));
    let package = facts.knowledge.compat_package(cuda).is_some_and(|driver| runs(&driver));
    let compat = !has && listed && package && !is_barred(facts);
    match (newer, compat) {
        (true, true) => &[],
        (true, false) => &[Action::UpdateDriver, Action::ChangeImage],
        (false, true) => &[Action::ChangeImage, Action::ChangePackages],
        (false, false) => &[Action::ChangeImage],
    }
}

fn framework(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Host {
        return python::too_new(facts);
    }
    let Some(judged) = judged(facts)? else { return not_applicable() };
    let needs = needs::of(facts)?;
    if needs.all.is_empty() {
        return if needs.complete { not_applicable() } else { Err(incomplete(facts)) };
    }
    let mut failing: Vec<&Need<'_>> = Vec::new();
    for need in &needs.all {
        if judged.starts(facts, need.cuda)? == Start::No {
            failing.push(need);
        }
    }
    let Some(worst) = failing.iter().copied().max_by(|a, b| (a.sure, a.cuda).cmp(&(b.sure, b.cuda))) else {
        return Ok(Outcome::Pass);
    };
    let all = failing.len() == needs.all.len() && needs.complete;
    // which ways out there are depends on the GPU
    facts.host.pci.looked_at()?;
    let sure = failing.iter().all(|need| need.sure) && judged.certain && !judged.loaded.may_be_helped(facts)?;
    let others = failing.len() < needs.all.len();
    let (severity, message) = match (worst.sure, all) {
        (false, _) => (Severity::Warning, MAY_BE_TOO_NEW),
        (true, true) if sure => (Severity::Error, TOO_NEW),
        (true, false) if others => (Severity::Warning, TOO_NEW_ALONE),
        (true, _) => (Severity::Warning, TOO_NEW),
    };
    let of_same: Vec<&str> =
        failing.iter().filter(|need| need.sure == worst.sure).map(|need| need.what.as_str()).collect();
    let failure = Failure::new(severity, message)
        .foreign("what", if of_same.len() == 1 { worst.what.clone() } else { list(of_same) })
        .saw("image.frameworks", format!("{}: CUDA {}", worst.what, worst.cuda), worst.source);
    judged.says(failure, facts, worst.cuda).only(fitting(facts, &judged.loaded, worst.cuda)).found()
}

fn incomplete(facts: &Facts<'_>) -> Unknown {
    let unread = facts.image.frameworks.seen().and_then(|list| list.unread.first().cloned());
    unread.unwrap_or_else(|| Unknown::new("image.frameworks", "the image's files", "not all was looked at"))
}

fn image(facts: &Facts<'_>) -> Judgement {
    let Some(judged) = judged(facts)? else { return not_applicable() };
    let Some((cuda, source)) = needs::of_image(facts)? else { return not_applicable() };
    if judged.starts(facts, &cuda)? != Start::No {
        return Ok(Outcome::Pass);
    }
    let needs = needs::of(facts)?;
    let mut starting = 0;
    for need in &needs.all {
        starting += usize::from(judged.starts(facts, need.cuda)? != Start::No);
    }
    if !needs.all.is_empty() && starting == 0 {
        // what really runs does not start, and says so itself
        return not_applicable();
    }
    // What an image is made from is not what runs in it: monitors, encoders and shells are made from CUDA's images
    // too, and programs bring their own. So this alone refuses nothing.
    let message = if needs.all.is_empty() { IMAGE_TOO_NEW } else { IMAGE_NEWER };
    let failure =
        Failure::new(Severity::Warning, message).foreign("source", &source).saw("image.cuda_runtime", &cuda, source);
    judged.says(failure, facts, &cuda).only(fitting(facts, &judged.loaded, &cuda)).found()
}

/// What starts by minor-version compatibility alone, the newest first.
fn by_minor<'a>(facts: &Facts<'a>, judged: &Judged<'_>) -> Result<Vec<Need<'a>>, Unknown> {
    let mut found: Vec<Need<'a>> = Vec::new();
    for need in needs::of(facts)?.all {
        if judged.starts(facts, need.cuda)? == Start::ByMinorVersion {
            found.push(need);
        }
    }
    found.sort_by(|a, b| b.cuda.cmp(a.cuda));
    Ok(found)
}

fn by_minor_version(facts: &Facts<'_>) -> Judgement {
    let Some(judged) = judged(facts)? else { return not_applicable() };
    let found = by_minor(facts, &judged)?;
    let (what, cuda, source) = match (found.first(), needs::of_image(facts)?) {
        (Some(need), _) => (need.what.clone(), need.cuda.clone(), need.source.to_owned()),
        (None, Some((cuda, source))) if judged.starts(facts, &cuda)? == Start::ByMinorVersion => {
            ("the image".to_owned(), cuda, source)
        }
        _ => return not_applicable(),
    };
    let failure = Failure::new(Severity::Note, BY_MINOR).foreign("what", what).saw("image.cuda_runtime", &cuda, source);
    judged.says(failure, facts, &cuda).found()
}

fn ptx(facts: &Facts<'_>) -> Judgement {
    let Some(judged) = judged(facts)? else { return not_applicable() };
    let found = by_minor(facts, &judged)?;
    let how = |need: &Need<'_>| need.framework.map_or(Jit::Nobody, |framework| jit(&framework.name));
    let by = |wanted| found.iter().find(|need| how(need) == wanted);
    let Some((need, message)) =
        by(Jit::Driver).map(|need| (need, PTX)).or(by(Jit::Own).map(|need| (need, PTX_PERHAPS)))
    else {
        return not_applicable();
    };
    let failure = Failure::new(Severity::Warning, message).foreign("what", &need.what).saw(
        "image.frameworks",
        need.cuda,
        need.source,
    );
    judged.says(failure, facts, need.cuda).only(fitting(facts, &judged.loaded, need.cuda)).found()
}

fn compressed(facts: &Facts<'_>) -> Judgement {
    let Some(judged) = judged(facts)? else { return not_applicable() };
    if judged.loaded.winner != Winner::Driver {
        return not_applicable();
    }
    for need in &needs::of(facts)?.all {
        let Some(framework) = need.framework else { continue };
        let needed = needs_driver_for_device_code(&framework.name, need.cuda);
        let Some(needed) = needed.and_then(|needed| needed.parse::<DriverVersion>().ok()) else { continue };
        // where it does not start at all, another check says so
        if *judged.loaded.driver < needed && judged.starts(facts, need.cuda)? != Start::No {
            return Failure::new(Severity::Warning, COMPRESSED)
                .foreign("what", &need.what)
                .arg("driver", judged.loaded.driver)
                .arg("needed", &needed)
                .saw("image.frameworks", &need.what, need.source)
                .found();
        }
    }
    Ok(Outcome::Pass)
}

#[cfg(test)]
mod tests;
