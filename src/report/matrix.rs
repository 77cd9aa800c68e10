//! Several hosts for people: a table, then each finding once with the hosts it is true of.

use std::fmt::Write as _;

use super::answer::{Answer, worst};
use super::machine;
use super::text::{BOLD, DIM, Detail, finding, first_line, is_shown, shown, word};
use crate::model::{Finding, Severity};

/// A longer column is cut: a table that wraps is none.
const WIDEST: usize = 40;

/// The table and the findings, with escape sequences for colour that the caller may strip; `facts`: lines about the
/// image, which is the same for all.
pub fn report(headline: &str, facts: &str, answers: &[Answer<'_>], detail: Detail) -> String {
    let mut out = first_line(worst(answers), headline);
    if detail > Detail::Quiet {
        out.push_str(facts);
        out.push('\n');
    }
    table(&mut out, answers);
    for (one, hosts) in grouped(answers, detail) {
        finding(&mut out, &one, detail);
        if hosts.len() < answers.len() {
            let gap = if detail == Detail::Quiet { "    " } else { "    on    " };
            let _ = writeln!(out, "{DIM}{gap}{DIM:#}{}", hosts.join(", "));
        }
    }
    unknown(&mut out, answers, detail);
    out
}

fn table(out: &mut String, answers: &[Answer<'_>]) {
    let rows: Vec<[String; 5]> = answers.iter().map(row).collect();
    let heads = ["host", "driver", "GPUs", "verdict", "first finding"].map(str::to_owned);
    let wide = |column: usize| {
        rows.iter().chain([&heads]).map(|row| row[column].chars().count()).max().unwrap_or(0).min(WIDEST)
    };
    let widths: Vec<usize> = (0..4).map(wide).collect();
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{:<width$}", cut(cell, *width)));
        format!("{}  {}", cells.collect::<Vec<_>>().join("  "), row[4]).trim_end().to_owned()
    };
    let _ = writeln!(out, "{DIM}{}{DIM:#}", line(&heads));
    for (answer, row) in answers.iter().zip(&rows) {
        let (_, style) = word(answer.report.verdict);
        let _ = writeln!(out, "{style}{}{style:#}", line(row));
    }
}

fn row(answer: &Answer<'_>) -> [String; 5] {
    let (driver, gpus) =
        answer.subjects.host.map_or_else(Default::default, |host| (machine::driver(host), machine::gpus(host)));
    let first =
        answer.report.counted().max_by_key(|finding| (finding.severity, std::cmp::Reverse(place(answer, finding))));
    let first = first.filter(|finding| finding.severity > Severity::Note).map(|finding| finding.id.to_owned());
    let (word, _) = word(answer.report.verdict);
    [shown(answer.host), driver, gpus, word.to_owned(), first.unwrap_or_default()]
}

/// Where a finding stands: the first of several that are as bad.
fn place(answer: &Answer<'_>, finding: &Finding) -> usize {
    answer.report.findings.iter().position(|other| std::ptr::eq(other, finding)).unwrap_or(0)
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(3)).chain("...".chars()).collect()
}

/// Each finding once, with the hosts it is true of. What rests on a host's own facts is left out where several agree
/// in the rest.
fn grouped(answers: &[Answer<'_>], detail: Detail) -> Vec<(Finding, Vec<String>)> {
    let mut groups: Vec<(Finding, Vec<String>)> = Vec::new();
    for answer in answers {
        for one in answer.report.findings.iter().filter(|finding| is_shown(finding, detail)) {
            let same = |known: &Finding| {
                (known.id, known.severity, known.ignored, &known.message)
                    == (one.id, one.severity, one.ignored, &one.message)
            };
            match groups.iter_mut().find(|(known, _)| same(known)) {
                Some((known, hosts)) => {
                    known.evidence.retain(|seen| one.evidence.contains(seen));
                    known.remedy.retain(|step| one.remedy.contains(step));
                    hosts.push(shown(answer.host));
                }
                None => groups.push((one.clone(), vec![shown(answer.host)])),
            }
        }
    }
    groups.sort_by_key(|(finding, _)| (finding.ignored, std::cmp::Reverse(finding.severity)));
    groups
}

fn unknown(out: &mut String, answers: &[Answer<'_>], detail: Detail) {
    let all: Vec<_> =
        answers.iter().flat_map(|answer| answer.report.unknown.iter().map(move |u| (answer, u))).collect();
    if all.is_empty() || detail == Detail::Quiet {
        return;
    }
    if detail < Detail::Verbose {
        let hosts = answers.iter().filter(|answer| !answer.report.unknown.is_empty()).count();
        let _ = writeln!(
            out,
            "\n{DIM}on {hosts} of {} hosts something could not be judged; --verbose says what and why{DIM:#}",
            answers.len()
        );
        return;
    }
    out.push('\n');
    for (answer, one) in all {
        let _ = writeln!(
            out,
            "{BOLD}unknown{BOLD:#} {DIM}[{}]{DIM:#} on {}: {}: {} {DIM}({}){DIM:#}",
            one.check,
            shown(answer.host),
            one.fact,
            shown(&one.reason),
            shown(&one.source)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::Subjects;
    use super::*;
    use crate::model::check::{Evidence, Family};
    use crate::model::{Report, Verdict};

    fn found(message: &str, severity: Severity, seen: &str) -> Finding {
        Finding {
            id: "framework-lacks-gpu-arch",
            severity,
            subject: Family::Image,
            title: "title",
            message: message.to_owned(),
            evidence: vec![Evidence { fact: "f".to_owned(), value: seen.to_owned(), source: "s".to_owned() }],
            remedy: Vec::new(),
            ignored: false,
        }
    }

    fn report_with(verdict: Verdict, findings: Vec<Finding>) -> Report {
        Report { verdict, findings, unknown: Vec::new(), settled: Vec::new() }
    }

    fn text(reports: &[(&str, Report)], detail: Detail) -> String {
        let answers: Vec<_> =
            reports.iter().map(|(host, report)| Answer { host, report, subjects: Subjects::default() }).collect();
        anstream::adapter::strip_str(&report("headline", "    facts\n", &answers, detail)).to_string()
    }

    #[test]
    fn the_same_finding_is_said_once_with_its_hosts() {
        let same = |seen: &str| found("no code for it", Severity::Error, seen);
        let reports = [
            ("a", report_with(Verdict::Fail, vec![same("1")])),
            ("b", report_with(Verdict::Fail, vec![found("other", Severity::Warning, "1"), same("2")])),
            ("c", report_with(Verdict::Pass, Vec::new())),
        ];
        let said = text(&reports, Detail::Usual);
        assert!(
            said.starts_with("FAIL  headline\n    facts\n\nhost  driver  GPUs  verdict  first finding\n"),
            "{said}"
        );
        assert_eq!(said.matches("no code for it.").count(), 1, "{said}");
        assert!(said.contains("no code for it.\n    on    a, b\n"), "evidence that differs is left out: {said}");
        assert!(said.find("no code").unwrap() < said.find("other").unwrap(), "errors come first: {said}");
        assert!(said.contains("\nb                   FAIL     framework-lacks-gpu-arch\n"), "{said}");
        let quiet = text(&reports, Detail::Quiet);
        assert!(!quiet.contains("facts") && !quiet.contains("other") && quiet.contains("    a, b"), "{quiet}");
    }

    #[test]
    fn what_is_true_of_all_names_none() {
        let reports = ["a", "b"].map(|host| (host, report_with(Verdict::Fail, vec![found("m", Severity::Error, "1")])));
        let said = text(&reports, Detail::Usual);
        assert!(!said.contains("    on    ") && said.contains("seen"), "{said}");
    }

    #[test]
    fn a_long_cell_is_cut() {
        assert_eq!((cut("abc", 3), cut("abcdefgh", 6)), ("abc".to_owned(), "abc...".to_owned()));
    }
}
