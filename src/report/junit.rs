//! `JUnit`'s XML, as Jenkins and GitLab read it: a suite for each host, a case for each check that was asked.

use std::fmt::Write as _;

use super::answer::Answer;
use crate::model::report::Unjudged;
use crate::model::{Finding, Severity};

/// What counts as a failure, as `--fail-on` says.
#[derive(Debug, Clone, Copy)]
pub struct Failing {
    /// Findings from this severity on; `None`: none.
    pub from: Option<Severity>,
    /// What could have been an error and could not be judged.
    pub unknown: bool,
}

/// What became of one check.
enum Case<'a> {
    Passed,
    NotApplicable,
    Found(Vec<&'a Finding>),
    Unknown(&'a Unjudged),
}

/// The whole document.
pub fn document(command: &str, target: &str, answers: &[Answer<'_>], failing: Failing) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let suites: Vec<(Counts, String)> = answers.iter().map(|answer| suite(command, target, answer, failing)).collect();
    let all = suites.iter().fold(Counts::default(), |all, (counts, _)| all.plus(counts));
    let _ = writeln!(out, "<testsuites name=\"gpu-preflight {}\" {}>", escaped(command), all.attributes());
    for (_, suite) in &suites {
        out.push_str(suite);
    }
    out.push_str("</testsuites>");
    out
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    skipped: usize,
}

impl Counts {
    fn plus(self, other: &Self) -> Self {
        Self {
            tests: self.tests + other.tests,
            failures: self.failures + other.failures,
            skipped: self.skipped + other.skipped,
        }
    }

    fn attributes(&self) -> String {
        format!("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"", self.tests, self.failures, self.skipped)
    }
}

fn suite(command: &str, target: &str, answer: &Answer<'_>, failing: Failing) -> (Counts, String) {
    let mut counts = Counts::default();
    let mut cases = String::new();
    for (id, family, case) in cases_of(answer) {
        counts.tests += 1;
        let name = format!("{}.{family}", escaped(command));
        let body = match case {
            Case::Passed => None,
            Case::NotApplicable => Some(skipped(&mut counts, "the question does not arise here")),
            Case::Unknown(unknown) => Some(undecided(&mut counts, unknown, failing)),
            Case::Found(findings) => Some(found(&mut counts, &findings, failing)),
        };
        let _ = match body {
            None => writeln!(cases, "    <testcase classname=\"{name}\" name=\"{id}\"/>"),
            Some(body) => writeln!(cases, "    <testcase classname=\"{name}\" name=\"{id}\">{body}</testcase>"),
        };
    }
    let name = if answer.host == target { target.to_owned() } else { format!("{target} on {}", answer.host) };
    let head = format!("  <testsuite name=\"{}\" {}>\n", escaped(&name), counts.attributes());
    (counts, format!("{head}{cases}  </testsuite>\n"))
}

/// In the order of the report: findings, what could not be judged, the rest.
fn cases_of<'a>(answer: &Answer<'a>) -> Vec<(&'static str, &'static str, Case<'a>)> {
    let report = answer.report;
    let mut cases: Vec<(&'static str, &'static str, Case<'a>)> = Vec::new();
    for finding in &report.findings {
        match cases.iter_mut().find(|(id, _, _)| *id == finding.id) {
            Some((_, _, Case::Found(findings))) => findings.push(finding),
            _ => cases.push((finding.id, finding.subject.name(), Case::Found(vec![finding]))),
        }
    }
    cases.extend(report.unknown.iter().map(|u| (u.check, u.family.name(), Case::Unknown(u))));
    let settled = |passed| if passed { Case::Passed } else { Case::NotApplicable };
    cases.extend(report.settled.iter().map(|s| (s.check, s.family.name(), settled(s.passed))));
    cases
}

fn skipped(counts: &mut Counts, why: &str) -> String {
    counts.skipped += 1;
    format!("<skipped message=\"{}\"/>", escaped(why))
}

fn undecided(counts: &mut Counts, unknown: &Unjudged, failing: Failing) -> String {
    let why = format!("could not be judged: {}: {} ({})", unknown.fact, unknown.reason, unknown.source);
    if failing.unknown && unknown.could_be_error {
        counts.failures += 1;
        return format!("<failure type=\"unknown\" message=\"{}\"/>", escaped(&why));
    }
    skipped(counts, &why)
}

/// A finding below the threshold is no failure, but what it says stands in the case's output.
fn found(counts: &mut Counts, findings: &[&Finding], failing: Failing) -> String {
    let fails = |finding: &&&Finding| !finding.ignored && failing.from.is_some_and(|from| finding.severity >= from);
    let text: Vec<String> = findings.iter().map(|finding| words(finding)).collect();
    let text = escaped_text(&text.join("\n"));
    match findings.iter().find(fails) {
        Some(first) => {
            counts.failures += 1;
            let severity = severity(first.severity);
            format!("<failure type=\"{severity}\" message=\"{}\">{text}</failure>", escaped(&first.message))
        }
        None if findings.iter().all(|finding| finding.ignored) => {
            skipped(counts, "ignored") + &format!("<system-out>{text}</system-out>")
        }
        None => format!("<system-out>{text}</system-out>"),
    }
}

fn words(finding: &Finding) -> String {
    let mut out = format!("{}: {}.", severity(finding.severity), finding.message);
    for seen in &finding.evidence {
        let _ = write!(out, "\nseen  {} = {}  ({})", seen.fact, seen.value, seen.source);
    }
    for step in &finding.remedy {
        let _ = write!(out, "\ndo    {}", step.text);
        if let Some(command) = &step.command {
            let _ = write!(out, "\n        {command}");
        }
    }
    out
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// For an attribute: on one line.
fn escaped(text: &str) -> String {
    escaped_text(&text.replace(['\n', '\t', '\r'], " "))
}

/// What XML 1.0 has no way to write is left out.
fn escaped_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::json::Subjects;
    use super::*;
    use crate::model::report::Settled;
    use crate::model::{Family, Report, Verdict};

    fn finding(id: &'static str, severity: Severity, ignored: bool) -> Finding {
        Finding {
            id,
            severity,
            subject: Family::Nodes,
            title: "title",
            message: "a <b> & \"c\"\u{1b}[2J\n]]>".to_owned(),
            evidence: Vec::new(),
            remedy: Vec::new(),
            ignored,
        }
    }

    fn report() -> Report {
        let unknown = |check, could_be_error| Unjudged {
            check,
            family: Family::Driver,
            could_be_error,
            fact: "host.gpus".to_owned(),
            source: "/proc".to_owned(),
            reason: "refused".to_owned(),
        };
        let settled = |check, passed| Settled { check, family: Family::Stack, passed };
        Report {
            verdict: Verdict::Fail,
            findings: vec![
                finding("an-error", Severity::Error, false),
                finding("a-warning", Severity::Warning, false),
                finding("let-pass", Severity::Error, true),
            ],
            unknown: vec![unknown("open", true), unknown("open-note", false)],
            settled: vec![settled("well", true), settled("elsewhere", false)],
        }
    }

    fn of(failing: Failing) -> String {
        let report = report();
        let answer = Answer { host: "this <machine>", report: &report, subjects: Subjects::default() };
        document("image", "a & b", &[answer], failing)
    }

    #[test]
    fn every_check_that_was_asked_is_a_case() {
        let text = of(Failing { from: Some(Severity::Error), unknown: false });
        assert!(text.contains("<testsuite name=\"a &amp; b on this &lt;machine&gt;\" tests=\"7\" failures=\"1\" errors=\"0\" skipped=\"4\">"), "{text}");
        assert!(text.contains("<testcase classname=\"image.stack\" name=\"well\"/>"), "{text}");
        assert_eq!(text.matches("<failure type=\"error\"").count(), 1);
        assert!(text.contains("<system-out>warning: a &lt;b&gt;"), "below the threshold: {text}");
        assert!(text.contains("message=\"a &lt;b&gt; &amp; &quot;c&quot;[2J ]]&gt;\""), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn the_threshold_decides_what_fails() {
        let failures = |from, unknown| of(Failing { from, unknown }).matches("<failure ").count();
        assert_eq!(failures(Some(Severity::Error), false), 1);
        assert_eq!(failures(Some(Severity::Warning), false), 2);
        assert_eq!(failures(Some(Severity::Error), true), 2);
        assert_eq!(failures(None, false), 0);
    }

    proptest::proptest! {
        #[test]
        fn whatever_it_says_is_xml(text in "\\PC{0,40}|[\\x00-\\x20<>&'\"\u{fffe}\u{ffff}]{0,40}") {
            let escaped = escaped_text(&text);
            let allowed = |c: char| !matches!(c, '<' | '>' | '"' | '\'' | '\u{fffe}' | '\u{ffff}')
                && (c == '\n' || c == '\t' || !c.is_control());
            proptest::prop_assert!(escaped.chars().all(allowed));
        }
    }
}
