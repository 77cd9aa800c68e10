//! What the frameworks in the image were built for, beside each other.

use super::libcuda;
use super::needs;
use crate::checks::nodes::role::list;
use crate::checks::not_applicable;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::image::{Build, Framework};

const CPU: &str = "{what} in the image is a build for the processor: it will not use the GPU that the container has";
const MIX: &str = "frameworks in the image are built for several major versions of CUDA: {what}; each needs libraries \
                   of its own";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "framework-is-cpu-build",
        title: "the framework in the image is a build for the processor alone",
        why: "Torch not compiled with CUDA enabled, or no word at all: it runs on the CPU.",
        messages: &[CPU],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Install its build for CUDA that the driver offers: {install}.",
            command: None,
        }],
        severities: &[Severity::Note],
        places: &[Place::Hook, Place::Image],
        judge: cpu_build,
    },
    Check {
        id: "framework-cuda-major-mix",
        title: "frameworks for several major versions of CUDA lie side by side",
        why: "One of them misses its libraries: libcublasLt.so.11 cannot be opened, or another's are loaded.",
        messages: &[MIX],
        remedy: &[Step {
            action: Action::ChangePackages,
            text: "Install them for one major version of CUDA, or in environments of their own.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Image],
        judge: major_mix,
    },
];

fn name(framework: &Framework) -> String {
    format!("{} {}", framework.name, framework.version).trim_end().to_owned()
}

fn cpu_build(facts: &Facts<'_>) -> Judgement {
    if !libcuda::is_behind_driver(facts)? {
        return not_applicable();
    }
    let frameworks = facts.image.frameworks.known()?;
    // OpenVINO has nothing else, and whoever has it beside another uses that one for the GPU.
    let for_cpu = |f: &&Framework| f.build == Build::Cpu && f.sure && f.name != "openvino";
    let Some(framework) = frameworks.items.iter().find(for_cpu) else { return not_applicable() };
    if frameworks.items.iter().any(|other| other.build != Build::Cpu) || !frameworks.unread.is_empty() {
        return not_applicable();
    }
    let what = name(framework);
    Failure::new(Severity::Note, CPU)
        .foreign("what", &what)
        .saw("image.frameworks", what, framework.source.clone())
        .found()
}

fn major_mix(facts: &Facts<'_>) -> Judgement {
    if !libcuda::is_behind_driver(facts)? {
        return not_applicable();
    }
    let needs = needs::of(facts)?;
    // Those in one directory are meant for one program; environments of their own may differ.
    let mut sets: Vec<(&str, Vec<&needs::Need<'_>>)> = Vec::new();
    let counts = |need: &&needs::Need<'_>| need.framework.is_some_and(|framework| framework.name != "ollama");
    for need in needs.all.iter().filter(counts) {
        let place = environment_of(need.source);
        match sets.iter_mut().find(|(known, _)| *known == place) {
            Some((_, set)) => set.push(need),
            None => sets.push((place, vec![need])),
        }
    }
    let mixed = sets.iter().find(|(_, set)| {
        let first = set.first().map(|need| need.cuda.number(0));
        set.iter().any(|need| Some(need.cuda.number(0)) != first)
    });
    let Some((place, set)) = mixed else { return Ok(Outcome::Pass) };
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
    Failure::new(Severity::Warning, MIX)
        .foreign("what", &what)
        .saw("image.frameworks", what, (*place).to_owned())
        .found()
}

/// The directory of packages that a file of one lies in.
fn environment_of(source: &str) -> &str {
    ["/site-packages/", "/dist-packages/"]
        .into_iter()
        .find_map(|name| source.find(name).and_then(|at| source.get(..at + name.len())))
        .unwrap_or(source)
}
