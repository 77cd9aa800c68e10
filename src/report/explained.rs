//! The answer of `explain`: what was recognised, and its causes.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use super::json::SCHEMA_VERSION;
use super::line::labelled;
use super::sheet::Sheet;
use super::text::Detail;
use crate::model::wording::is_argument;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const RED: Style = AnsiColor::Red.on_default().bold();

/// A line that was recognised.
#[derive(Debug, Clone)]
pub struct Line {
    /// What it is.
    pub name: &'static str,
    /// As it was read.
    pub text: String,
    /// Its number, from 1.
    pub number: u64,
    /// How many lines say the same.
    pub times: u64,
}

/// What checks say of a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// It is here; in the check's words.
    Confirmed(String),
    /// It could not be judged, or no check does; why.
    Undecided(String),
    /// Its check looked, and all is well.
    RuledOut,
}

impl Verified {
    /// Its name in the report.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Confirmed(_) => "confirmed",
            Self::Undecided(_) => "undecided",
            Self::RuledOut => "ruled-out",
        }
    }

    /// In the check's words.
    fn words(&self) -> Option<&str> {
        match self {
            Self::Confirmed(words) | Self::Undecided(words) => Some(words),
            Self::RuledOut => None,
        }
    }
}

/// A cause, with all that is to be said of it.
#[derive(Debug, Clone)]
pub struct Explained {
    /// Its page.
    pub sheet: Sheet,
    /// `high`, `medium` or `low`.
    pub confidence: &'static str,
    /// Why it fits the text.
    pub why: String,
    /// Which of the lines says so: its place among them.
    pub line: usize,
    /// What the checks say, if they were asked.
    pub verified: Option<Verified>,
}

/// For programs, as the contract has it: best first.
pub fn json(lines: &[Line], causes: &[Explained]) -> String {
    let causes: Vec<Value> = causes.iter().map(|cause| as_json(lines, cause)).collect();
    format!("{:#}", json!({"schema_version": SCHEMA_VERSION, "causes": causes}))
}

fn as_json(lines: &[Line], cause: &Explained) -> Value {
    let sheet = &cause.sheet;
    let remedy: Vec<Value> = sheet
        .remedy
        .iter()
        .map(|step| match step.command {
            Some(command) => {
                json!({"action": step.action, "text": plain(step.text), "command": plain_command(command)})
            }
            None => json!({"action": step.action, "text": plain(step.text)}),
        })
        .collect();
    let mut value = json!({
        "id": sheet.id,
        "confidence": cause.confidence,
        "title": sheet.title,
        "why": cause.why,
        "tells_apart": sheet.tells_apart,
        "verify": sheet.verify,
        "remedy": remedy,
    });
    if let Some(line) = lines.get(cause.line) {
        value["line"] = json!({"number": line.number, "text": line.text, "times": line.times});
    }
    if let Some(verified) = &cause.verified {
        value["verified"] = json!({"result": verified.name(), "message": verified.words()});
    }
    value
}

/// For people, with escape sequences for colour that the caller may strip.
pub fn text(lines: &[Line], causes: &[Explained], detail: Detail) -> String {
    let mut out = String::new();
    let most = if detail == Detail::Verbose { usize::MAX } else { 3 };
    for line in lines.iter().take(most) {
        let times = if line.times > 1 { format!(", {} times", line.times) } else { String::new() };
        let _ = writeln!(
            out,
            "{DIM}line {}{times}{DIM:#}  {BOLD}{}{BOLD:#}  {DIM}({}){DIM:#}",
            line.number,
            harmless(&line.text),
            line.name
        );
    }
    if lines.len() > most {
        let _ = writeln!(out, "{DIM}and {} more; --verbose shows them{DIM:#}", lines.len() - most);
    }
    for (number, cause) in (1..).zip(causes) {
        one(&mut out, number, cause, causes.len(), detail);
    }
    out
}

fn one(out: &mut String, number: usize, cause: &Explained, of: usize, detail: Detail) {
    let sheet = &cause.sheet;
    let gap = if detail > Detail::Quiet { "\n" } else { "" };
    let place = if of > 1 { format!("{number}. ") } else { String::new() };
    let _ =
        writeln!(out, "{gap}{place}{YELLOW}{}{YELLOW:#} {DIM}[{}]{DIM:#} {}.", cause.confidence, sheet.id, sheet.title);
    match &cause.verified {
        Some(Verified::Confirmed(words)) => {
            let _ = writeln!(out, "    {RED}confirmed{RED:#}  {words}.");
        }
        Some(Verified::RuledOut) => {
            let _ = writeln!(out, "    {GREEN}ruled out{GREEN:#}  the check looked, and this is in order.");
        }
        Some(Verified::Undecided(words)) => {
            let _ = writeln!(out, "    {DIM}undecided{DIM:#}  {words}.");
        }
        None => {}
    }
    if detail == Detail::Quiet {
        return;
    }
    let _ = writeln!(out, "    why     {}", harmless(&cause.why));
    if let Some(apart) = sheet.tells_apart {
        let _ = writeln!(out, "    told by {apart}");
    }
    if !sheet.verify.is_empty() {
        let _ = writeln!(out, "    verify");
    }
    for command in &sheet.verify {
        let _ = writeln!(out, "            {BOLD}{command}{BOLD:#}");
    }
    for (place, step) in sheet.remedy.iter().enumerate() {
        let (label, text) = labelled(place, &plain(step.text));
        let _ = writeln!(out, "    {GREEN}{label:<4}{GREEN:#}    {text}");
        if let Some(command) = step.command {
            let _ = writeln!(out, "            {BOLD}{}{BOLD:#}", plain_command(command));
        }
    }
}

/// What stands in a step's text for an argument that only a finding has.
const GENERAL: [(&str, &str); 23] = [
    ("branch", "the last branch that runs it"),
    ("capability", "X.Y (the GPU's)"),
    ("directory", "the directory"),
    ("engine", "the engine"),
    ("full", "VERSION (the one that the image's CUDA was released with)"),
    ("host", "VERSION (the machine's)"),
    ("install", "as its project says"),
    ("major", "VERSION (what the driver offers)"),
    ("name", "the variable"),
    ("needed", "VERSION (the first that reads it)"),
    ("newest", "VERSION (the last that has the GPU)"),
    ("offered", "VERSION (what the driver offers)"),
    ("package", "cuda-compat-MAJOR-MINOR"),
    ("packages", "the packages with them"),
    ("platform", "the machine's platform"),
    ("repair", "remove one of two installations, or build the module that is missing for this kernel"),
    ("smallest", "VERSION (the first that offers the image's CUDA)"),
    ("spec", "the specification"),
    ("then", "nobody reads the requirements then"),
    ("unmet", "the image's requirements"),
    ("version", "of the driver's version"),
    ("whose", "the container's own"),
    ("way", "--gpus all (docker, nerdctl) or --device nvidia.com/gpu=all (podman)"),
];

/// The same in a step's command.
const IN_COMMANDS: [(&str, &str); 3] = [
    ("build", "dkms autoinstall -k KERNEL"),
    ("end", "kill PID   # or docker stop CONTAINER, systemctl stop UNIT"),
    ("register", "nvidia-ctk runtime configure --runtime=ENGINE"),
];

/// What is left out without a finding.
const LEFT_OUT: [&str; 1] = ["spelling"];

/// A step's text without a finding to fill it.
pub(super) fn plain(text: &str) -> String {
    in_general(text, &GENERAL)
}

/// A step's command without a finding to fill it: `{node}` is said as `NODE`.
pub(super) fn plain_command(command: &str) -> String {
    in_general(command, &IN_COMMANDS)
}

fn in_general(template: &str, words: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        if !is_argument(name) {
            out.push('{');
            out.push_str(name);
            out.push('}');
        } else if let Some((_, words)) = words.iter().find(|(known, _)| *known == name) {
            out.push_str(words);
        } else if !LEFT_OUT.contains(&name) {
            out.push_str(&name.to_ascii_uppercase());
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Text that was read, for a terminal, which obeys control characters.
fn harmless(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if hidden(c) { ' ' } else { c }).collect()
}

/// Names of arguments that people put something for by themselves, as they do in manuals.
#[cfg(test)]
const SAID_BY_NAME: [&str; 9] =
    ["channel", "engine", "healthy", "index", "indices", "instance", "kernel", "node", "spec"];

/// The arguments of a step that would be said by their names alone, where there is no finding to fill them.
#[cfg(test)]
pub(crate) fn without_words(step: &crate::model::Step) -> Vec<&'static str> {
    let names = |template: &'static str| {
        let parts = template.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0));
        parts.filter(|name| is_argument(name)).collect::<Vec<_>>()
    };
    let said =
        |name: &str, words: &[(&str, &str)]| words.iter().any(|(known, _)| *known == name) || LEFT_OUT.contains(&name);
    let of_text = names(step.text).into_iter().filter(|name| !said(name, &GENERAL) && *name != "node");
    let of_command = step.command.map(names).unwrap_or_default().into_iter();
    of_text.chain(of_command.filter(|name| !said(name, &IN_COMMANDS) && !SAID_BY_NAME.contains(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_show_what_would_stand_there() {
        assert_eq!(plain("--device {node} of {engine} {"), "--device NODE of the engine {");
        assert_eq!(plain_command("chmod 666 {node} of {a} {"), "chmod 666 NODE of A {");
        assert_eq!(plain_command("docker inspect -f '{{.Id}}' {Name}"), "docker inspect -f '{{.Id}}' {Name}");
    }

    #[test]
    fn what_was_read_obeys_no_more() {
        assert_eq!(harmless("a\u{1b}[2Jb\u{202e}c\n"), "a [2Jb c ");
        assert_eq!(harmless("\u{663e}\u{5361}"), "\u{663e}\u{5361}");
    }
}
