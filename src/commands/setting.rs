//! What every command that judges needs first: the machine's tree, and the policy.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::checks;
use crate::cli::Common;
use crate::collect::host::{self, Options, Scope};
use crate::collect::knowledge;
use crate::collect::tree::{Kind, Tree};
use crate::commands::hook::configuration;
use crate::commands::output::{Failed, complain};
use crate::knowledge::catalogue::IDS;
use crate::model::{Finding, Host, Knowledge, Observed, Report, Severity};
use crate::policy::{Policy, known_checks};

/// The machine's files: `/`, or those below `--host-root`.
pub(crate) fn host_tree(common: &Common) -> Result<Tree, Failed> {
    let root = common.host_root.as_deref().unwrap_or(Path::new("/"));
    Tree::open(root, Kind::Host).map_err(|error| {
        Failed::new(
            root.display().to_string(),
            format!("the host's root cannot be entered ({error})"),
            "name a directory that is there with --host-root",
        )
    })
}

/// The machine's policy, with every trouble in its files said on standard error.
pub(crate) fn policy(common: &Common, host: &Tree) -> Result<Policy, Failed> {
    let told = common.config.as_deref().map(|path| readable(path, "--config")).transpose()?;
    let (policy, remarks) = configuration::read(told.as_deref(), host);
    for remark in remarks {
        complain(&format!("gpu-preflight: {remark}"));
    }
    let known = known_checks(checks::all().map(|(_, check)| check.id));
    for id in common.ignore.iter().map(|id| id.trim()).filter(|id| !id.is_empty()) {
        // a cause that no check judges yet may be in a list that was made from the catalogue
        if !known.contains(id) && !IDS.contains(&id) {
            return Err(Failed::new(format!("--ignore {id}"), "no check has this name", "gpu-preflight checks"));
        }
    }
    Ok(policy)
}

/// The tables with the machine's additions, with every trouble in those said on standard error.
pub(crate) fn knowledge(host: &Tree) -> Knowledge {
    let (knowledge, remarks) = knowledge::read(host, nix::unistd::geteuid().as_raw());
    for remark in remarks {
        complain(&format!("gpu-preflight: {remark}"));
    }
    knowledge
}

/// This machine, or the one below `--host-root`, with what the tables tell of its GPUs.
pub(crate) fn machine(common: &Common, files: &Tree, knowledge: &Knowledge) -> Host {
    let options =
        Options { laid_out: common.host_root.is_some(), driver_root: common.driver_root.clone(), scope: Scope::Full };
    let mut host = host::read(files, &options);
    if let Observed::Known(gpus) = &mut host.gpus {
        for gpu in gpus {
            let function = host.pci.seen().and_then(|all| all.iter().find(|function| function.address == gpu.pci));
            let device = function.map(|function| function.device).filter(|device| *device != 0);
            gpu.compute_capability = knowledge.capability_of(gpu.name.as_deref(), device);
        }
    }
    host
}

/// What the machine is called that [`machine`] looks at.
pub(crate) fn name_of_machine(common: &Common) -> String {
    common.host_root.as_ref().map_or_else(|| "this machine".to_owned(), |root| root.display().to_string())
}

/// The caller's environment, as far as it is text.
#[expect(
    clippy::disallowed_methods,
    reason = "engines are found by the caller's own settings, as the engines' own clients do"
)]
pub(crate) fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}

/// What a headline must not hide: warnings, and what was ignored.
pub(crate) fn besides(report: &Report) -> String {
    let numbers = numbers(report, false);
    if numbers.is_empty() { String::new() } else { format!(", {}", numbers.join(", ")) }
}

/// All of it by number, errors first.
pub(crate) fn counts(report: &Report) -> String {
    numbers(report, true).join(", ")
}

fn numbers(report: &Report, with_errors: bool) -> Vec<String> {
    let count = |what: &dyn Fn(&Finding) -> bool| report.findings.iter().filter(|finding| what(finding)).count();
    let counted = |severity| count(&|finding: &Finding| !finding.ignored && finding.severity == severity);
    let errors = if with_errors { counted(Severity::Error) } else { 0 };
    let ignored = count(&|finding| finding.ignored);
    let all = [(errors, "error", "s"), (counted(Severity::Warning), "warning", "s"), (ignored, "ignored", "")];
    let some = all.into_iter().filter(|(number, ..)| *number > 0);
    some.map(|(number, word, s)| format!("{number} {word}{}", if number > 1 { s } else { "" })).collect()
}

/// The file of an option, by its whole path: one that was named and is not there is an error.
pub(crate) fn readable(path: &Path, option: &str) -> Result<PathBuf, Failed> {
    let way_out = format!("name a file that is there with {option}");
    let failed = |reason: String| Failed::new(path.display().to_string(), reason, way_out.clone());
    let absolute = std::path::absolute(path).map_err(|error| failed(error.to_string()))?;
    let here = Tree::open(Path::new("/"), Kind::Host).map_err(|error| failed(error.to_string()))?;
    match here.stat(&absolute.to_string_lossy()) {
        Ok(Some(_)) => Ok(absolute),
        Ok(None) => Err(failed("it is absent".to_owned())),
        Err(unseen) => Err(failed(unseen.reason)),
    }
}
