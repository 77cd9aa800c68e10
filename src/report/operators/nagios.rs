//! The output of a plugin for Nagios and what descends from it (Icinga, Checkmk, Naemon), and its exit code.
//!
//! <https://www.monitoring-plugins.org/doc/guidelines.html> (read 2026-11): the first line is `SERVICE STATUS - text | performance data`, the codes are 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN, all of it fits
//! one screen, and a value that is not known is `U`. What stands behind a `|` is performance data in whatever line, and
//! Nagios 3 reads 4 kB.

use std::fmt::Write as _;

use super::{Watched, name};
use crate::model::wording::cut;
use crate::model::{Finding, Report, Severity, Verdict};
use crate::report::text::Detail;

/// Lines behind the first, so that a screen of 24 lines holds it all.
const LINES: usize = 20;
/// Bytes of one line.
const LINE: usize = 400;
/// Bytes of all.
const ALL: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl State {
    /// A known trouble goes before what is not known, as the plugins' own `max_state` has it.
    fn of(report: &Report) -> Self {
        match report.counted().map(|finding| finding.severity).max() {
            Some(Severity::Error) => Self::Critical,
            Some(Severity::Warning) => Self::Warning,
            _ if report.verdict == Verdict::Unknown => Self::Unknown,
            _ => Self::Ok,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }
}

/// The exit code; how bad a finding must be is Nagios' affair, so `--fail-on` has no part in it.
pub fn code(report: &Report) -> u8 {
    State::of(report).code()
}

/// The exit code where nothing could be judged at all.
pub const UNJUDGED: u8 = State::Unknown.code();

/// What is printed; `headline` says in one line what was judged and found.
pub fn text(headline: &str, watched: &Watched<'_>, detail: Detail) -> String {
    let report = watched.report;
    let state = State::of(report);
    let mut first = format!("GPU {} - {headline}", state.word());
    match deciding(report, state) {
        Some((finding, 0)) => drop(write!(first, ": {} [{}]", finding.title, finding.id)),
        Some((finding, more)) => drop(write!(first, ": {} [{}], and {more} more", finding.title, finding.id)),
        None => {}
    }
    let gpus = watched.gpus().map_or_else(|| "U".to_owned(), |n| n.to_string());
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| watched.count(severity));
    let unknown = report.unknown.len();
    let mut out = format!("{} | gpus={gpus} errors={errors} warnings={warnings} unknown={unknown}", plain(&first));
    let lines = lines(report, detail);
    for (place, line) in lines.iter().enumerate() {
        let line = plain(line);
        if place == LINES - 1 && lines.len() > LINES || out.len() + line.len() > ALL {
            let _ = write!(out, "\nand {} more lines: gpu-preflight host", lines.len() - place);
            break;
        }
        let _ = write!(out, "\n{line}");
    }
    out
}

/// What is printed where nothing could be judged at all.
pub fn unjudged(what: &str, reason: &str, way_out: &str) -> String {
    format!("{}\n{}", plain(&format!("GPU UNKNOWN - {what}: {reason}")), plain(&format!("try: {way_out}")))
}

/// The first finding that makes the state what it is, and how many more do.
fn deciding(report: &Report, state: State) -> Option<(&Finding, usize)> {
    let severity = match state {
        State::Critical => Severity::Error,
        State::Warning => Severity::Warning,
        State::Ok | State::Unknown => return None,
    };
    let mut all = report.counted().filter(|finding| finding.severity == severity);
    Some((all.next()?, all.count()))
}

fn lines(report: &Report, detail: Detail) -> Vec<String> {
    let least = match detail {
        Detail::Quiet => Severity::Error,
        Detail::Usual => Severity::Warning,
        Detail::Verbose => Severity::Note,
    };
    let mut lines = Vec::new();
    let mut shown: Vec<&Finding> = report.counted().filter(|finding| finding.severity >= least).collect();
    shown.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    for finding in shown {
        lines.push(format!("{} [{}] {}", name(finding.severity), finding.id, finding.message));
        lines.extend(finding.remedy.first().map(|way| match &way.command {
            Some(command) => format!("  do: {} {command}", way.text),
            None => format!("  do: {}", way.text),
        }));
    }
    if detail == Detail::Verbose {
        let open = report.unknown.iter();
        lines.extend(open.map(|one| format!("unknown [{}] {}: {} ({})", one.check, one.fact, one.reason, one.source)));
    } else if detail == Detail::Usual && !report.unknown.is_empty() {
        let n = report.unknown.len();
        let s = if n == 1 { "" } else { "s" };
        lines.push(format!("{n} check{s} could not be judged; gpu-preflight host --verbose says which and why"));
    }
    lines
}

/// One line without what Nagios takes for something else.
fn plain(text: &str) -> String {
    let harmless = |c: char| match c {
        '|' => '/',
        c if c.is_control() => ' ',
        c => c,
    };
    cut(&text.chars().map(harmless).collect::<String>(), LINE)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{finding, report, unjudged as open};
    use super::*;
    use crate::model::testing::host as machine;
    use crate::model::{Host, Observed};

    fn of(host: &Host, report: &Report, detail: Detail) -> (String, u8) {
        (text("a headline", &Watched { host, report, cuda: None }, detail), code(report))
    }

    #[test]
    fn each_state_has_its_word_and_code() {
        let host = machine(2);
        let error = || finding("a", Severity::Error, "bad");
        let warning = || finding("b", Severity::Warning, "odd");
        let mut undecided = report(Verdict::Unknown, Vec::new());
        undecided.unknown.push(open("c"));
        let mut odd_and_undecided = undecided.clone();
        odd_and_undecided.findings.push(warning());
        let mut ignored = error();
        ignored.ignored = true;
        for (report, first, wanted) in [
            (
                report(Verdict::Pass, vec![finding("n", Severity::Note, "x")]),
                "GPU OK - a headline | gpus=2 errors=0",
                0,
            ),
            (report(Verdict::Skip, Vec::new()), "GPU OK - a headline | ", 0),
            (report(Verdict::Pass, vec![warning()]), "GPU WARNING - a headline: a title [b] | ", 1),
            (
                report(Verdict::Fail, vec![warning(), error(), error()]),
                "GPU CRITICAL - a headline: a title [a], and 1 more | gpus=2 errors=2 warnings=1 unknown=0\nerror [a] bad",
                2,
            ),
            (undecided, "GPU UNKNOWN - a headline | gpus=2 errors=0 warnings=0 unknown=1\n1 check could", 3),
            (odd_and_undecided, "GPU WARNING - a headline: a title [b] | ", 1),
            (report(Verdict::Pass, vec![ignored]), "GPU OK - ", 0),
        ] {
            let (text, code) = of(&host, &report, Detail::Usual);
            assert!(text.starts_with(first) && code == wanted, "{code}: {text}");
        }
    }

    #[test]
    fn what_is_quoted_is_no_performance_data() {
        let all = report(Verdict::Fail, vec![finding("a", Severity::Error, "x | y=1\nz")]);
        let (text, _) = of(&machine(1), &all, Detail::Usual);
        assert_eq!((text.matches('|').count(), text.lines().count()), (1, 2), "{text}");
        assert_eq!(unjudged("a|b", "c\nd", "e").lines().next(), Some("GPU UNKNOWN - a/b: c d"));
    }

    #[test]
    fn it_fits_a_screen_whatever_was_found() {
        for (n, long) in [(100, 10), (30, 1000), (21, 1), (20, 1)] {
            let findings = (0..n).map(|_| finding("a", Severity::Error, &"é".repeat(long))).collect();
            let (text, _) = of(&machine(1), &report(Verdict::Fail, findings), Detail::Verbose);
            assert!(text.lines().count() <= LINES + 1 && text.len() < 4096, "{n}: {} bytes: {text}", text.len());
            assert_eq!(text.contains("more lines"), n > 20, "{n}: {text}");
        }
    }

    #[test]
    fn gpus_that_nobody_could_count_are_not_none() {
        let mut host = machine(1);
        host.gpus = Observed::unknown("host.gpus", "/proc", "refused");
        assert!(of(&host, &report(Verdict::Pass, Vec::new()), Detail::Quiet).0.contains("| gpus=U "));
    }
}
