//! Has the image code that these GPUs run?

use super::dropped::{BY_DRIVER, OLDER_DRIVER, by_driver};
use super::gpus::{self, Product};
use super::libcuda;
use super::meant;
use super::needs::{self, Need};
use super::share::{self, Share};
use crate::checks::not_applicable;
use crate::knowledge::architecture::oci_name;
use crate::knowledge::frameworks::{Archs, Coverage, architectures, architectures_of_any, covers, minimum_capability};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::image::Build;
use crate::model::knowledge::Targets;
use crate::model::{ComputeCapability, Facts, Unknown};

const LACKS: &str =
    "{what} has no code that {gpu} (compute capability {capability}) runs: no kernel image is available";
const LACKS_MOST: &str =
    "{what} has hardly any code that {gpu} (compute capability {capability}) runs: most of its kernels are not there";
const EXTENSION: &str = "{path} has no code that {gpu} (compute capability {capability}) runs: calls into it fail";
const SEEMS_TO_LACK: &str = "{what} is not known to have code that {gpu} (compute capability {capability}) runs";
const BY_TOOLKIT: &str = "{what} is built with CUDA {cuda}, which makes no code for {gpu} (compute capability \
                          {capability}): it starts at {least}";

const OTHER_BUILD: Step = Step {
    action: Action::ChangePackages,
    text: "Use a build that has code for compute capability {capability}.",
    command: None,
};
const OLDER_CUDA: Step =
    Step { action: Action::ChangeImage, text: "Use an image or build of CUDA {newest} or older.", command: None };

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "framework-lacks-gpu-arch",
        title: "the framework's build has no code for this GPU",
        why: "No kernel image is available for execution on the device (209), at the first kernel.",
        messages: &[LACKS, LACKS_MOST, SEEMS_TO_LACK],
        remedy: &[OTHER_BUILD],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: lacks_code,
    },
    Check {
        id: "extension-lacks-gpu-arch",
        title: "an extension has no code for this GPU",
        why: "An extension was compiled for other GPUs than the framework, mostly in a build without a GPU.",
        messages: &[EXTENSION],
        remedy: &[Step {
            action: Action::ChangeImage,
            text: "Compile it for this GPU.",
            command: Some("TORCH_CUDA_ARCH_LIST=\"8.6;9.0;12.0\" pip install --no-build-isolation ..."),
        }],
        severities: &[Severity::Note],
        places: &[Place::Image],
        judge: extension_lacks_code,
    },
    Check {
        id: "gpu-generation-dropped",
        title: "the GPU is of a generation that the image's CUDA or the driver has dropped",
        why: "No kernel image is available for execution on the device (209), or the driver leaves the GPU alone.",
        messages: &[BY_TOOLKIT, BY_DRIVER],
        remedy: &[OLDER_CUDA, OLDER_DRIVER],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: generation_dropped,
    },
];

/// The newest toolkit that still makes code for all of them.
fn newest_for(facts: &Facts<'_>, gpus: &[&Known]) -> String {
    let makes = |targets: &&Targets| gpus.iter().all(|(_, of)| targets.min().is_some_and(|least| least <= *of));
    let newest = facts.knowledge.targets.iter().rev().find(makes);
    newest.map_or_else(|| "of its time".to_owned(), |targets| format!("{}.{}", targets.cuda.0, targets.cuda.1))
}

/// A GPU with its compute capability.
type Known = (Product, ComputeCapability);

/// The container's GPUs, those of unknown kind left out; and whether there are such.
fn known_gpus(facts: &Facts<'_>) -> Result<(Vec<Known>, bool), Unknown> {
    let all = gpus::of(facts)?;
    let number = all.len();
    let known: Vec<Known> =
        all.into_iter().filter_map(|gpu| gpu.capability(facts).map(|capability| (gpu, capability))).collect();
    let whole = known.len() == number;
    Ok((known, whole))
}

/// It concerns a container with a GPU for CUDA work; whether that is certain. An image may be judged against a GPU
/// alone.
fn concerned(facts: &Facts<'_>) -> Result<Option<bool>, Unknown> {
    if !libcuda::is_behind_driver(facts)? {
        return Ok(None);
    }
    meant::computes(facts)
}

fn severity(certain: bool) -> Severity {
    if certain { Severity::Error } else { Severity::Warning }
}

/// The GPUs, for messages, and the capability of the first.
fn named(failure: Failure, lacking: &[&Known]) -> Failure {
    let capability = lacking.first().map_or_else(String::new, |(_, capability)| capability.to_string());
    failure
        .foreign("gpu", gpus::names(lacking.iter().map(|(gpu, _)| gpu)))
        .saw("host.gpus.compute_capability", &capability, "the tables of GPUs")
        .arg("capability", capability)
}

fn lacks_code(facts: &Facts<'_>) -> Judgement {
    let Some(certain) = concerned(facts)? else { return not_applicable() };
    let needs = needs::of(facts)?;
    let frameworks = needs.all.iter().filter(|need| need.framework.is_some());
    let known = frameworks.map(|need| (need, carries(facts, need), least(need)));
    let is_known = |need: &Need<'_>| share::own(facts, need).is_some();
    let known: Vec<_> =
        known.filter(|(need, archs, least)| archs.is_some() || least.is_some() || is_known(need)).collect();
    if known.is_empty() {
        return of_no_build(facts, certain)?.map_or_else(not_applicable, Failure::found);
    }
    let (gpus, whole) = known_gpus(facts)?;
    for (need, carried, least) in known {
        // what was read counts before what is known of published builds
        if let Some((code, read)) = share::own(facts, need) {
            let of = |wanted| gpus.iter().filter(|(_, of)| share::share(&code, *of) == wanted).collect::<Vec<_>>();
            let (nothing, few) = (of(Share::Nothing), of(Share::Few));
            let all = nothing.len() == gpus.len() && whole && read && needs.complete && needs.all.len() == 1;
            let (severity, message, lacking) = match (nothing.is_empty(), few.is_empty()) {
                (false, _) => (severity(all && certain), LACKS, nothing),
                (true, false) => (Severity::Warning, LACKS_MOST, few),
                (true, true) => continue,
            };
            let source = code.first().map_or_else(String::new, |code| code.source.clone());
            let failure =
                Failure::new(severity, message).foreign("what", &need.what).saw("image.gpu_archs", &need.what, source);
            return named(failure, &lacking).found();
        }
        let published = need.sure && carried.as_ref().is_some_and(|(archs, published)| archs.confirmed && *published);
        // what its CUDA cannot make is said by a check of its own, with more certainty
        let makes = facts.knowledge.targets_of(need.cuda).and_then(|targets| targets.value.min());
        let dropped = |capability: ComputeCapability| !published && makes.is_some_and(|least| capability < least);
        let lacks = |(_, capability): &&Known| match &carried {
            Some((archs, _)) => covers(archs, *capability) == Coverage::No && !dropped(*capability),
            None => least.is_some_and(|least| *capability < least) && !dropped(*capability),
        };
        let lacking: Vec<&Known> = gpus.iter().filter(lacks).collect();
        if lacking.is_empty() {
            continue;
        }
        // Somebody's own build of the same version may have code for it; only a published one is known.
        let all = lacking.len() == gpus.len() && whole && needs.complete && needs.all.len() == 1;
        let message = if published { LACKS } else { SEEMS_TO_LACK };
        let failure = Failure::new(severity(published && all && certain), message).foreign("what", &need.what).saw(
            "image.frameworks",
            &need.what,
            need.source,
        );
        return named(failure, &lacking).found();
    }
    Ok(Outcome::Pass)
}

/// What its published build carries, and whether it is one: it says so in its version.
fn carries(facts: &Facts<'_>, need: &Need<'_>) -> Option<(Archs, bool)> {
    // what is known is known of builds for x86
    let framework = need.framework.filter(|_| is_of_x86(facts))?;
    let local = framework.version.split_once('+').map(|(_, local)| local);
    if !local.is_none_or(|local| local.strip_prefix("cu").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit())))
    {
        return None;
    }
    architectures(&framework.name, &framework.version, need.cuda).map(|archs| (archs, local.is_some()))
}

/// By the image, or where nobody looked at it by the machine that it runs on.
fn is_of_x86(facts: &Facts<'_>) -> bool {
    match facts.image.architecture.seen() {
        Some(Some(architecture)) => oci_name(architecture) == "amd64",
        _ => facts.host.architecture.seen().is_some_and(|architecture| oci_name(architecture) == "amd64"),
    }
}

/// A framework of which nobody knows for which CUDA it is built, and whose release has no code for these GPUs in any
/// build. Certain where the image's own toolkit could not have made it, either.
fn of_no_build(facts: &Facts<'_>, certain: bool) -> Result<Option<Failure>, Unknown> {
    let frameworks = facts.image.frameworks.known()?;
    let mut open = frameworks.items.iter().filter(|of| of.build == Build::Cuda && of.cuda.is_none());
    let found = open.find_map(|of| Some((of, architectures_of_any(&of.name, &of.version)?)));
    let Some((framework, archs)) = found.filter(|_| is_of_x86(facts)) else { return Ok(None) };
    let (gpus, whole) = known_gpus(facts)?;
    let lacking: Vec<&Known> = gpus.iter().filter(|(_, of)| covers(&archs, *of) == Coverage::No).collect();
    if lacking.is_empty() {
        return Ok(None);
    }
    let toolkit = needs::of_image(facts)?;
    let targets = toolkit.as_ref().and_then(|(cuda, _)| facts.knowledge.targets_of(cuda));
    let newest = targets.filter(|targets| !targets.by_rule).and_then(|targets| targets.value.max());
    let cannot_make = newest.is_some_and(|newest| lacking.iter().all(|(_, of)| newest < *of));
    let alone =
        frameworks.unread.is_empty() && frameworks.items.iter().filter(|of| of.build != Build::Cpu).count() == 1;
    let all = lacking.len() == gpus.len() && whole;
    let what = format!("{} {}", framework.name, framework.version);
    let message = if cannot_make { LACKS } else { SEEMS_TO_LACK };
    let failure = Failure::new(severity(certain && cannot_make && alone && all), message).foreign("what", &what).saw(
        "image.frameworks",
        what,
        framework.source.clone(),
    );
    Ok(Some(named(failure, &lacking)))
}

fn least(need: &Need<'_>) -> Option<ComputeCapability> {
    let framework = need.framework?;
    minimum_capability(&framework.name, &framework.version)
}

fn extension_lacks_code(facts: &Facts<'_>) -> Judgement {
    if concerned(facts)?.is_none() {
        return not_applicable();
    }
    let (gpus, _) = known_gpus(facts)?;
    let capabilities: Vec<ComputeCapability> = gpus.iter().map(|(_, capability)| *capability).collect();
    let Some(code) = share::extension(facts, &capabilities) else { return Ok(Outcome::Pass) };
    let failure = Failure::new(Severity::Note, EXTENSION).foreign("path", &code.source).saw(
        "image.gpu_archs",
        "of other GPUs",
        code.source.clone(),
    );
    named(failure, &gpus.iter().collect::<Vec<_>>()).found()
}

fn generation_dropped(facts: &Facts<'_>) -> Judgement {
    let Some(certain) = concerned(facts)? else { return not_applicable() };
    if let Some(failure) = by_driver(facts, certain)? {
        return failure.found();
    }
    let needs = needs::of(facts)?;
    let newest = needs.all.iter().filter_map(|need| Some((need, facts.knowledge.targets_of(need.cuda)?.value.min()?)));
    let Some((need, least)) = newest.max_by_key(|(need, least)| (*least, need.sure)) else { return not_applicable() };
    let (gpus, whole) = known_gpus(facts)?;
    let dropped: Vec<&Known> = gpus.iter().filter(|(_, capability)| *capability < least).collect();
    if dropped.is_empty() {
        return Ok(Outcome::Pass);
    }
    let of_all = |need: &Need<'_>| {
        let targets = facts.knowledge.targets_of(need.cuda);
        need.sure && targets.and_then(|targets| targets.value.min()) == Some(least)
    };
    let all = dropped.len() == gpus.len() && whole && needs.complete && needs.all.iter().all(of_all);
    let failure = Failure::new(severity(all && certain), BY_TOOLKIT)
        .foreign("what", &need.what)
        .arg("cuda", need.cuda)
        .arg("least", least)
        .arg("newest", newest_for(facts, &dropped))
        .saw("image.frameworks", &need.what, need.source)
        .only(&[Action::ChangeImage]);
    named(failure, &dropped).found()
}

#[cfg(test)]
mod tests;
