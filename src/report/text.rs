//! The report for people. Colour is never the only carrier of a meaning.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::line::labelled;
use crate::model::report::Unjudged;
use crate::model::wording::quote;
use crate::model::{Finding, Report, Severity, Verdict};

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const BLUE: Style = AnsiColor::Blue.on_default();
const GREEN: Style = AnsiColor::Green.on_default().bold();

/// Where commands begin.
const COMMAND_INDENT: usize = 12;

/// Reasons why checks could not be judged, of which one mostly leaves many open.
const MOST_REASONS: usize = 3;

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The verdict line and the errors' lines.
    Quiet,
    /// Findings with evidence and remedies.
    Usual,
    /// Also what could not be judged, one by one.
    Verbose,
}

/// A report in words, with escape sequences for colour that the caller may strip. `headline` says
/// what was judged and found, in one line.
pub fn report(headline: &str, report: &Report, detail: Detail) -> String {
    report_with(headline, "", report, detail)
}

/// The same with lines about what was judged behind the headline.
pub fn report_with(headline: &str, facts: &str, report: &Report, detail: Detail) -> String {
    let mut out = first_line(report.verdict, headline);
    if detail > Detail::Quiet {
        out.push_str(facts);
    }
    findings(&mut out, report, detail);
    out
}

/// The verdict with a headline.
pub(super) fn first_line(verdict: Verdict, headline: &str) -> String {
    let (word, style) = word(verdict);
    format!("{style}{word}{style:#}  {BOLD}{headline}{BOLD:#}\n")
}

/// A verdict's word, and how it looks.
pub(super) const fn word(verdict: Verdict) -> (&'static str, Style) {
    match verdict {
        Verdict::Fail => ("FAIL", RED),
        Verdict::Unknown => ("UNKNOWN", YELLOW),
        Verdict::Pass => ("PASS", GREEN),
        Verdict::Skip => ("SKIP", DIM),
    }
}

/// A report's findings, and what could not be judged.
pub(super) fn findings(out: &mut String, report: &Report, detail: Detail) {
    for one in report.findings.iter().filter(|finding| is_shown(finding, detail)) {
        finding(out, one, detail);
    }
    unknown(out, report, detail);
}

pub(super) fn is_shown(finding: &Finding, detail: Detail) -> bool {
    detail > Detail::Quiet || (finding.severity == Severity::Error && !finding.ignored)
}

pub(super) fn finding(out: &mut String, finding: &Finding, detail: Detail) {
    let (word, style) = match (finding.ignored, finding.severity) {
        (true, _) => ("ignored", DIM),
        (false, Severity::Error) => ("error", RED),
        (false, Severity::Warning) => ("warning", YELLOW),
        (false, Severity::Note) => ("note", BLUE),
    };
    let gap = if detail > Detail::Quiet { "\n" } else { "" };
    let _ = writeln!(out, "{gap}{style}{word}{style:#} {DIM}[{}]{DIM:#} {}.", finding.id, finding.message);
    if detail == Detail::Quiet {
        return;
    }
    for seen in &finding.evidence {
        let _ = writeln!(
            out,
            "    {DIM}seen{DIM:#}  {} = {}  {DIM}({}){DIM:#}",
            seen.fact,
            shown(&seen.value),
            shown(&seen.source)
        );
    }
    for (place, step) in finding.remedy.iter().enumerate() {
        let (label, text) = labelled(place, &step.text);
        let _ = writeln!(out, "    {GREEN}{label:<4}{GREEN:#}  {text}");
        if let Some(command) = &step.command {
            let _ = writeln!(out, "            {BOLD}{command}{BOLD:#}");
        }
    }
}

/// The text for a terminal of so many columns. Commands stay whole, to be copied.
pub fn wrapped(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        if indent >= COMMAND_INDENT {
            return line.to_owned();
        }
        let behind = if indent == 0 { "    " } else { "          " };
        textwrap::fill(line, textwrap::Options::new(columns).subsequent_indent(behind).break_words(false))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// As it is if it is plain, else quoted: a value may be the attacker's, and a terminal obeys.
pub fn shown(value: &str) -> String {
    if value.bytes().all(|b| (0x20..0x7f).contains(&b)) && value.len() <= 160 { value.to_owned() } else { quote(value) }
}

fn unknown(out: &mut String, report: &Report, detail: Detail) {
    if report.unknown.is_empty() || detail == Detail::Quiet {
        return;
    }
    if detail == Detail::Verbose {
        out.push('\n');
        for one in &report.unknown {
            let _ = writeln!(
                out,
                "{YELLOW}unknown{YELLOW:#} {DIM}[{}]{DIM:#} {}: {} {DIM}({}){DIM:#}",
                one.check,
                one.fact,
                shown(&one.reason),
                shown(&one.source)
            );
        }
    } else {
        let n = report.unknown.len();
        let s = if n == 1 { "" } else { "s" };
        let _ = writeln!(out, "\n{DIM}{n} check{s} could not be judged; --verbose says which:{DIM:#}");
        let reasons = reasons(report);
        for one in reasons.iter().take(MOST_REASONS) {
            let _ = writeln!(out, "    {DIM}{}: {} ({}){DIM:#}", one.fact, shown(&one.reason), shown(&one.source));
        }
        if let Some(more) = reasons.len().checked_sub(MOST_REASONS).filter(|more| *more > 0) {
            let _ = writeln!(out, "    {DIM}and {more} more{DIM:#}");
        }
    }
}

/// Why checks could not be judged, each reason once: first what keeps the verdict open.
fn reasons(report: &Report) -> Vec<&Unjudged> {
    let mut found: Vec<&Unjudged> = Vec::new();
    let (open, other): (Vec<_>, Vec<_>) = report.unknown.iter().partition(|one| one.could_be_error);
    for one in open.into_iter().chain(other) {
        let same = |seen: &Unjudged| (&seen.fact, &seen.reason, &seen.source) == (&one.fact, &one.reason, &one.source);
        if !found.iter().any(|seen| same(seen)) {
            found.push(one);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::check::Family;

    fn unjudged(check: &'static str, fact: &str, could_be_error: bool) -> Unjudged {
        let family = Family::Driver;
        let (fact, source, reason) = (fact.to_owned(), "/sys".to_owned(), "refused".to_owned());
        Unjudged { check, family, could_be_error, fact, source, reason }
    }

    #[test]
    fn a_reason_is_said_once_and_what_keeps_the_verdict_open_first() {
        let facts = [("a", "w", false), ("b", "x", true), ("c", "x", true), ("d", "y", false), ("e", "z", false)];
        let unknown = facts.map(|(check, fact, open)| unjudged(check, fact, open)).to_vec();
        let judged = Report { verdict: Verdict::Unknown, findings: Vec::new(), unknown, settled: Vec::new() };
        let text = anstream::adapter::strip_str(&report("x", &judged, Detail::Usual)).to_string();
        let behind: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
        let [count, reasons @ ..] = behind.as_slice() else { panic!("{text}") };
        assert_eq!(*count, "5 checks could not be judged; --verbose says which:");
        assert_eq!(reasons, ["x: refused (/sys)", "w: refused (/sys)", "y: refused (/sys)", "and 1 more"]);
    }

    #[test]
    fn a_terminal_gets_whole_words_and_whole_commands() {
        let command = format!("            {}", "nvidia-ctk ".repeat(10));
        let text = format!(
            "error [x] one two three four five six seven eight nine ten.\n    do    Make it anew, as it was before the machine went down.\n{command}"
        );
        let wrapped = wrapped(&text, Some(40));
        assert!(wrapped.lines().filter(|line| line.trim() != command.trim()).all(|line| line.len() <= 40), "{wrapped}");
        assert!(wrapped.contains(command.trim_end()));
        assert_eq!(super::wrapped(&text, None), text);
    }
}
