//! What `install` and `uninstall` say: each file that changes, by its own lines, and what its user has to do then.

use std::fmt::Write as _;

use serde_json::{Value, json};
use similar::TextDiff;

use super::plan::{Change, Plan, RESTART_DOCKER};
use super::record::{kept, name};
use crate::cli::{Common, EngineName, Format};
use crate::commands::output::{print, styled};
use crate::report::json::SCHEMA_VERSION;

/// What came of one engine.
pub(super) enum Done {
    /// It was changed, or would be, or nothing had to be.
    Planned(Plan),
    /// Nothing was to be done, and why.
    Nothing(String),
    /// It could not be done.
    Failed { path: Option<String>, reason: String, way_out: String },
}

/// All of it.
pub(super) struct Shown {
    command: &'static str,
    dry_run: bool,
    program: Option<String>,
    files: Vec<Change>,
    engines: Vec<(EngineName, Done)>,
}

impl Shown {
    pub(super) fn new(command: &'static str, dry_run: bool) -> Self {
        Self { command, dry_run, program: None, files: Vec::new(), engines: Vec::new() }
    }

    /// The programs that are put in their place.
    pub(super) fn program(&mut self, words: String) {
        self.program = Some(words);
    }

    /// A file of no engine.
    pub(super) fn file(&mut self, change: Change) {
        self.files.push(change);
    }

    pub(super) fn add(&mut self, engine: EngineName, done: Done) {
        self.engines.push((engine, done));
    }

    /// Prints it; the exit code is 2 if anything that was asked for could not be done.
    pub(super) fn print(&self, common: &Common) -> u8 {
        match common.format {
            Format::Json => print(&format!("{:#}", self.json())),
            _ => styled(self.text().trim_end(), common),
        }
        let failed = self.engines.iter().any(|(_, done)| matches!(done, Done::Failed { .. }));
        if failed { 2 } else { 0 }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        if let Some(words) = &self.program {
            let _ = writeln!(out, "program     {} {words}", if self.dry_run { "would put" } else { "put" });
        }
        for change in &self.files {
            let _ = writeln!(out, "policy      {}", self.words(change));
            self.difference(&mut out, change);
        }
        if self.engines.is_empty() {
            let _ =
                writeln!(out, "no engine {}", if self.command == "install" { "is on this machine" } else { "has it" });
        }
        for (engine, done) in &self.engines {
            let _ = write!(out, "{:<12}", name(*engine));
            match done {
                Done::Nothing(why) => {
                    let _ = writeln!(out, "left as it is: {why}");
                }
                Done::Failed { path, reason, way_out } => {
                    let path = path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
                    let _ = writeln!(out, "not changed: {path}{reason}\n{:12}try: {way_out}", "");
                }
                Done::Planned(plan) => self.plan(&mut out, plan),
            }
        }
        out
    }

    fn plan(&self, out: &mut String, plan: &Plan) {
        if plan.changes.is_empty() {
            let _ = writeln!(out, "nothing to change");
        }
        for (place, change) in plan.changes.iter().enumerate() {
            let indent = if place == 0 { 0 } else { 12 };
            let _ = write!(out, "{:indent$}{}", "", self.words(change));
            if self.command == "install" && !self.dry_run && change.now.is_some() {
                let _ = write!(out, " (kept as it was: {})", kept(&change.path));
            }
            out.push('\n');
            self.difference(out, change);
        }
        for next in &plan.next {
            let run = if next == RESTART_DOCKER {
                "containers that run stop, unless live-restore is set"
            } else {
                "containers that run stay as they are"
            };
            let _ = writeln!(out, "{:12}then: {next}    ({run})", "");
        }
        for note in &plan.notes {
            let _ = writeln!(out, "{:12}note: {note}", "");
        }
    }

    fn words(&self, change: &Change) -> String {
        let act = match (&change.now, &change.after, self.dry_run) {
            (None, _, false) => "made",
            (None, _, true) => "would make",
            (Some(_), Some(_), false) => "changed",
            (Some(_), Some(_), true) => "would change",
            (Some(_), None, false) => "removed",
            (Some(_), None, true) => "would remove",
        };
        format!("{act} {}", change.path)
    }

    fn difference(&self, out: &mut String, change: &Change) {
        if !self.dry_run {
            return;
        }
        let (now, after) = (change.now.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
        let from = if change.now.is_some() { change.path.as_str() } else { "/dev/null" };
        let to = if change.after.is_some() { change.path.as_str() } else { "/dev/null" };
        let _ = write!(out, "{}", TextDiff::from_lines(now, after).unified_diff().header(from, to));
    }

    fn json(&self) -> Value {
        let change = |change: &Change| json!({"path": change.path, "before": change.now, "after": change.after});
        let engines: Vec<Value> = self
            .engines
            .iter()
            .map(|(engine, done)| match done {
                Done::Planned(plan) => json!({
                    "engine": name(*engine),
                    "state": if plan.changes.is_empty() { "unchanged" } else { "changed" },
                    "files": plan.changes.iter().map(change).collect::<Vec<_>>(),
                    "next": plan.next,
                    "notes": plan.notes,
                }),
                Done::Nothing(why) => {
                    json!({"engine": name(*engine), "state": "unchanged", "files": [], "next": [], "notes": [why]})
                }
                Done::Failed { path, reason, way_out } => json!({
                    "engine": name(*engine), "state": "failed", "files": [], "next": [], "notes": [],
                    "error": {"what": path, "reason": reason, "try": way_out},
                }),
            })
            .collect();
        json!({
            "schema_version": SCHEMA_VERSION,
            "tool": crate::report::json::tool(),
            "command": self.command,
            "dry_run": self.dry_run,
            "files": self.files.iter().map(change).collect::<Vec<_>>(),
            "engines": engines,
        })
    }
}
