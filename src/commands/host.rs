//! `gpu-preflight host`: judges this machine.

use std::path::Path;

use crate::checks;
use crate::cli::{self, Common};
use crate::commands::output::{Failed, finish};
use crate::commands::{saved, setting};
use crate::model::{Container, Facts, Host, Image, Judged, Place, Report, Verdict};
use crate::policy::{self, Policy};
use crate::report::answer::Answer;
use crate::report::json::Subjects;
use crate::report::profile;

/// What this machine came to, before policy.
pub(crate) struct Asked {
    pub(crate) host: Host,
    pub(crate) policy: Policy,
    pub(crate) judged: Vec<Judged>,
}

/// Reads and judges.
pub(crate) fn ask(common: &Common) -> Result<Asked, Failed> {
    let tree = setting::host_tree(common)?;
    let policy = setting::policy(common, &tree)?;
    let knowledge = setting::knowledge(&tree);
    let host = setting::machine(common, &tree, &knowledge);
    let (image, container) = (Image::default(), Container::default());
    let facts = Facts { host: &host, image: &image, container: &container, knowledge: &knowledge, place: Place::Host };
    let judged = checks::judge(&facts);
    Ok(Asked { host, policy, judged })
}

/// Reads, judges, saves, prints.
pub(crate) fn run(asked: &cli::Host, common: &Common) -> Result<u8, Failed> {
    let Asked { host, policy, judged } = ask(common)?;
    let mut report = policy::report(&policy, None, &common.ignore, judged);
    let nothing = nothing_of_nvidia(&host);
    if nothing && report.verdict == Verdict::Pass {
        report.verdict = Verdict::Skip;
    }
    let headline = if nothing { "this machine has no NVIDIA part".to_owned() } else { headline(&host, &report) };
    if let Some(file) = &asked.save {
        save(&host, file)?;
    }
    let target = setting::name_of_machine(common);
    let answer =
        Answer { host: &target, report: &report, subjects: Subjects { host: Some(&host), ..Subjects::default() } };
    finish("host", &target, &headline, answer, common)
}

fn save(host: &Host, file: &Path) -> Result<(), Failed> {
    let failed = |reason: String| {
        Failed::new(file.display().to_string(), reason, "name a file in a directory that can be written to with --save")
    };
    let text = profile::text(host).map_err(|error| failed(error.to_string()))?;
    saved::replace(file, text.as_bytes()).map_err(|error| failed(format!("it could not be written ({error})")))
}

/// No GPU, no driver, no toolkit: nothing to judge.
fn nothing_of_nvidia(host: &Host) -> bool {
    host.has_gpu() == Ok(false)
        && host.driver.version.seen().is_some_and(Option::is_none)
        && host.driver.modules.seen().is_some_and(|modules| !modules.contains_key("nvidia"))
        && host.device_nodes.seen().is_some_and(std::collections::BTreeMap::is_empty)
}

fn headline(host: &Host, report: &Report) -> String {
    let driver = match host.driver.version.seen() {
        Some(Some(version)) => format!("driver {version}"),
        Some(None) => "driver not loaded".to_owned(),
        None => "driver unknown".to_owned(),
    };
    let gpus = host.gpus.seen().map(Vec::as_slice).unwrap_or_default();
    let on_bus = host.pci.seen().map_or(0, Vec::len);
    let count = if gpus.is_empty() { on_bus } else { gpus.len() };
    let name = gpus.first().and_then(|g| g.name.as_deref()).unwrap_or("GPU");
    let state = match report.verdict {
        Verdict::Fail => "GPU containers will not work",
        Verdict::Unknown => "some of it could not be judged",
        Verdict::Pass | Verdict::Skip => "ready for GPU containers",
    };
    format!("{state} ({driver}, {count} x {name}){}", setting::besides(report))
}
