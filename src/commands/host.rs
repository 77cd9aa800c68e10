//! `gpu-preflight host`: judges this machine.

use crate::checks;
use crate::cli::Common;
use crate::collect::host::{self, Options, Scope};
use crate::commands::output::{Failed, finish};
use crate::commands::setting;
use crate::model::{Container, Facts, Host, Image, Judged, Place, Report, Verdict};
use crate::policy::{self, Policy};
use crate::report::json::Subjects;

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
    let options =
        Options { laid_out: common.host_root.is_some(), driver_root: common.driver_root.clone(), scope: Scope::Full };
    let host = host::read(&tree, &options);
    let (image, container) = (Image::default(), Container::default());
    let facts = Facts { host: &host, image: &image, container: &container, knowledge: &knowledge, place: Place::Host };
    let judged = checks::judge(&facts);
    Ok(Asked { host, policy, judged })
}

/// Reads, judges, prints.
pub(crate) fn run(common: &Common) -> Result<u8, Failed> {
    let Asked { host, policy, judged } = ask(common)?;
    let mut report = policy::report(&policy, None, &common.ignore, judged);
    let nothing = nothing_of_nvidia(&host);
    if nothing && report.verdict == Verdict::Pass {
        report.verdict = Verdict::Skip;
    }
    let headline = if nothing { "this machine has no NVIDIA part".to_owned() } else { headline(&host, &report) };
    let target = common.host_root.as_ref().map_or_else(|| "this machine".to_owned(), |root| root.display().to_string());
    finish("host", &target, &headline, &report, Subjects { host: Some(&host), ..Subjects::default() }, common)
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
