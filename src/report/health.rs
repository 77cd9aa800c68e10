//! What the health check prints: the verdict first, in one line that says it all, and no more than an engine keeps of
//! it. docker keeps 4096 bytes of each of the last five answers (moby `daemon/health.go`, `maxOutputLen`, 2026-08).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::model::wording::{cut, without_forbidden_phrases};
use crate::model::{Finding, Report, Severity, Verdict};

/// All of it has at most this many bytes, the last newline included.
pub const LIMIT: usize = 4096;

/// One line has at most so many.
const LINE: usize = 600;

/// The words. `state`: what can be used; `notes`: what else is to be said; `spared`: it counts as healthy all the same.
pub fn text(report: &Report, state: &str, notes: &[String], verbose: bool, spared: bool) -> String {
    let counted = |severity| report.counted().filter(move |finding| finding.severity == severity);
    let mut lines = vec![first_line(report, state, spared)];
    lines.extend(counted(Severity::Error).skip(1).map(|finding| line("error", finding)));
    lines.extend(counted(Severity::Warning).map(|finding| line("warning", finding)));
    for unknown in report.unknown.iter().filter(|unknown| verbose || unknown.could_be_error) {
        lines.push(format!("unknown [{}]: {} ({}: {})", unknown.check, unknown.fact, unknown.source, unknown.reason));
    }
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    if verbose {
        lines.extend(counted(Severity::Note).map(|finding| line("note", finding)));
    }
    lines.extend(report.findings.iter().filter(|finding| finding.ignored).map(|finding| line("ignored", finding)));
    fitting(&lines)
}

fn first_line(report: &Report, state: &str, spared: bool) -> String {
    if let Some(error) = report.first_error() {
        let remedy = error.remedy.first().map_or("", |remedy| remedy.text.as_str());
        let word = if spared { "healthy by its mode, else unhealthy" } else { "unhealthy" };
        let room = LINE.saturating_sub(word.len() + error.id.len() + remedy.len() + 20);
        return format!("{word} [{}]: {}. {remedy}", error.id, cut(&error.message, room));
    }
    let open = report.unknown.iter().filter(|unknown| unknown.could_be_error).count();
    let warnings = report.counted().filter(|finding| finding.severity == Severity::Warning).count();
    let mut said = match report.verdict {
        Verdict::Skip => "healthy: no GPU is wanted or given".to_owned(),
        _ => format!("healthy: {state}"),
    };
    for (number, what) in [(warnings, "warning"), (open, "unknown")] {
        if number > 0 {
            let s = if what == "warning" && number > 1 { "s" } else { "" };
            let _ = write!(said, ", {number} {what}{s}");
        }
    }
    said
}

fn line(word: &str, finding: &Finding) -> String {
    format!("{word} [{}]: {}", finding.id, finding.message)
}

/// As many lines as there is room for, and how many were left out.
fn fitting(lines: &[String]) -> String {
    const MORE: usize = 16;
    let mut out = String::new();
    for (place, line) in lines.iter().enumerate() {
        let line = without_forbidden_phrases(&cut(&line.replace('\n', " "), LINE));
        let left = lines.len() - place;
        if out.len() + line.len() + 1 + MORE > LIMIT {
            let _ = write!(out, "\n{left} more");
            break;
        }
        if place > 0 {
            out.push('\n');
        }
        out.push_str(&line);
    }
    out
}

/// One line of JSON. What does not fit is left out: evidence first, then further steps, then the last findings.
pub fn json(report: &Report) -> String {
    let full = document(report, usize::MAX, Detail::Full);
    if full.len() < LIMIT {
        return full;
    }
    let brief = document(report, usize::MAX, Detail::Brief);
    if brief.len() < LIMIT {
        return brief;
    }
    let mut most = report.findings.len().max(report.unknown.len());
    loop {
        most /= 2;
        let cut = document(report, most, Detail::Brief);
        if cut.len() < LIMIT || most == 0 {
            return cut;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Full,
    Brief,
}

fn document(report: &Report, most: usize, detail: Detail) -> String {
    // Errors before all else: what is left out at the end is what matters least.
    let mut findings: Vec<&Finding> = report.findings.iter().collect();
    findings.sort_by_key(|finding| (finding.ignored, std::cmp::Reverse(finding.severity)));
    let findings: Vec<Value> = findings.iter().take(most).map(|finding| shown(finding, detail)).collect();
    let unknown: Vec<_> = report.unknown.iter().take(most).collect();
    let body = json!({"command": "healthcheck", "target": "this container", "findings": findings, "unknown": unknown,
        "schema_version": 1, "tool": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")}});
    headed(report.verdict, &body)
}

/// The verdict stands first, whatever the order of the rest.
fn headed(verdict: Verdict, body: &Value) -> String {
    let verdict = serde_json::to_string(&verdict).unwrap_or_default();
    let body = body.to_string();
    format!("{{\"verdict\":{verdict},{}", body.trim_start_matches('{'))
}

fn shown(finding: &Finding, detail: Detail) -> Value {
    let mut value = serde_json::to_value(finding).unwrap_or_default();
    if let (Detail::Brief, Some(map)) = (detail, value.as_object_mut()) {
        map.insert("evidence".to_owned(), json!([]));
        map.insert("message".to_owned(), json!(cut(&finding.message, LINE)));
        if let Some(remedy) = map.get_mut("remedy").and_then(Value::as_array_mut) {
            remedy.truncate(1);
        }
    }
    value
}

/// Whoever started the container wants no check of it.
pub fn switched_off(as_json: bool) -> String {
    if !as_json {
        return "healthy: its mode is off, and nothing was judged".to_owned();
    }
    headed(Verdict::Skip, &empty(&json!([])))
}

fn empty(unknown: &Value) -> Value {
    json!({"command": "healthcheck", "target": "this container", "findings": [], "unknown": unknown,
        "schema_version": 1, "tool": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")}})
}

/// Nothing could be looked at, which makes nobody unhealthy.
pub fn unjudged(reason: &str, as_json: bool) -> String {
    let reason = without_forbidden_phrases(&cut(reason, LINE));
    if !as_json {
        return format!("healthy: nothing could be judged: {reason}");
    }
    let unknown =
        json!([{"check": "driver-call-hung", "fact": "container", "source": "the container", "reason": reason}]);
    headed(Verdict::Unknown, &empty(&unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::check::Evidence;
    use crate::model::report::{Remedy, Unjudged};
    use crate::model::{Action, Family};

    fn finding(id: &'static str, severity: Severity, message: &str) -> Finding {
        Finding {
            id,
            severity,
            subject: Family::Nodes,
            title: "title",
            message: message.to_owned(),
            evidence: vec![Evidence { fact: "f".into(), value: "v".repeat(300), source: "s".into() }],
            remedy: vec![Remedy { action: Action::LoadModule, text: "Load it.".to_owned(), command: None }; 3],
            ignored: false,
        }
    }

    fn report(findings: Vec<Finding>) -> Report {
        let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
        let verdict = if failed { Verdict::Fail } else { Verdict::Pass };
        Report { verdict, findings, unknown: Vec::new(), settled: Vec::new() }
    }

    #[test]
    fn the_first_line_says_it_all() {
        let all = vec![
            finding("gpu-node-missing", Severity::Warning, "one is gone"),
            finding("uvm-node-missing", Severity::Error, "/dev/nvidia-uvm is absent"),
        ];
        let said = text(&report(all.clone()), "2 GPUs, driver 1", &[], false, false);
        let expected = "unhealthy [uvm-node-missing]: /dev/nvidia-uvm is absent. Load it.\nwarning [gpu-node-missing]: one is gone";
        assert_eq!(said, expected);
        let well = text(&report(all[..1].to_vec()), "2 GPUs, driver 1", &["a".into()], false, false);
        assert_eq!(well, "healthy: 2 GPUs, driver 1, 1 warning\nwarning [gpu-node-missing]: one is gone\nnote: a");
        let spared = text(&report(all.clone()), "2 GPUs, driver 1", &[], false, true);
        assert!(spared.starts_with("healthy by its mode, else unhealthy [uvm-node-missing]: "), "{spared}");
        let mut nothing = report(Vec::new());
        nothing.verdict = Verdict::Skip;
        assert_eq!(text(&nothing, "", &[], false, false), "healthy: no GPU is wanted or given");
    }

    #[test]
    fn what_could_not_be_judged_is_said() {
        let mut open = report(Vec::new());
        open.verdict = Verdict::Unknown;
        open.unknown = vec![Unjudged {
            check: "gpu-memory-occupied",
            family: Family::Driver,
            could_be_error: true,
            fact: "host.nvml.gpus".into(),
            source: "NVML".into(),
            reason: "it was not asked".into(),
        }];
        let said = text(&open, "1 GPU, driver 1", &[], false, false);
        let expected = "healthy: 1 GPU, driver 1, 1 unknown\nunknown [gpu-memory-occupied]: host.nvml.gpus (NVML: it was not asked)";
        assert_eq!(said, expected);
    }

    #[test]
    fn it_is_never_longer_than_an_engine_keeps() {
        let many = |length: usize| {
            let all = (0..40).map(|n| {
                let severity = if n == 30 { Severity::Error } else { Severity::Warning };
                finding(if n == 30 { "the-error" } else { "a-warning" }, severity, &"not found\u{e9} ".repeat(length))
            });
            report(all.collect())
        };
        for length in [1, 20, 1000] {
            let report = many(length);
            let said = text(&report, "", &[], true, false);
            assert!(said.len() < LIMIT, "{}", said.len());
            assert!(said.starts_with("unhealthy [the-error]"), "{said}");
            assert_eq!(said.ends_with(" more"), length > 1, "{said}");
            assert!(!said.contains("not found"));
            let document = json(&report);
            assert!(document.len() < LIMIT, "{}", document.len());
            assert!(document.starts_with("{\"verdict\":\"fail\","), "{document}");
            let read: Value = serde_json::from_str(&document).unwrap();
            assert_eq!(read["findings"][0]["id"], "the-error");
            assert!(read.get("facts").is_none());
        }
    }
}
