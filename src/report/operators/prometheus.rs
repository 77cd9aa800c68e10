//! Metrics in Prometheus' text format, for the textfile collector of its node exporter.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats> (read 2026-11): `\`, `"` and newline are escaped in
//! label values, and no series stands there twice. No time of the run is told: the collector gives the file's own as
//! `node_textfile_mtime_seconds`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Watched, name, word};
use crate::model::{Severity, Verdict};

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// All metrics.
pub fn text(watched: &Watched<'_>) -> String {
    let (host, report) = (watched.host, watched.report);
    let mut out = String::new();
    let (driver, kernel) = (watched.driver(), host.kernel.seen().map_or("unknown", String::as_str));
    let cuda = watched.cuda.unwrap_or(if driver == "none" { "none" } else { "unknown" });
    let about = vec![("version", env!("CARGO_PKG_VERSION")), ("driver", &driver), ("cuda", cuda), ("kernel", kernel)];
    metric(
        &mut out,
        "info",
        "Version of gpu-preflight, of the loaded driver, the CUDA it offers, and of the kernel.",
        [(about, 1)],
    );

    let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Unknown, Verdict::Skip];
    metric(
        &mut out,
        "verdict",
        "1 for the verdict on this machine, 0 for the others.",
        verdicts.map(|verdict| (vec![("verdict", word(verdict))], usize::from(verdict == report.verdict))),
    );

    let severities = [Severity::Error, Severity::Warning, Severity::Note];
    metric(
        &mut out,
        "findings",
        "How many findings count, by severity.",
        severities.map(|severity| (vec![("severity", name(severity))], watched.count(severity))),
    );
    let mut found: BTreeMap<_, usize> = BTreeMap::new();
    for finding in &report.findings {
        *found.entry((finding.id, finding.subject.name(), finding.severity, finding.ignored)).or_default() += 1;
    }
    metric(
        &mut out,
        "finding",
        "How often a defect was found; ignored ones do not count for the verdict.",
        found.into_iter().map(|((id, subject, severity, ignored), times)| {
            let ignored = if ignored { "true" } else { "false" };
            (vec![("id", id), ("severity", name(severity)), ("subject", subject), ("ignored", ignored)], times)
        }),
    );
    metric(&mut out, "unknown_checks", "How many checks could not be judged.", [(Vec::new(), report.unknown.len())]);

    let by = [("driver", watched.gpus()), ("bus", host.pci.seen().map(Vec::len))];
    metric(
        &mut out,
        "gpus",
        "How many GPUs the driver uses, and how many are on the bus.",
        by.into_iter().filter_map(|(by, n)| Some((vec![("seen_by", by)], n?))),
    );
    let listed = host.gpus.seen().map(Vec::as_slice).unwrap_or_default();
    let indices: Vec<String> = listed.iter().map(|gpu| gpu.index.to_string()).collect();
    let each = listed.iter().zip(&indices).map(|(gpu, index)| {
        let [uuid, name] = [&gpu.uuid, &gpu.name].map(|value| value.as_deref().unwrap_or_default());
        (vec![("index", index.as_str()), ("uuid", uuid), ("pci", &gpu.pci), ("name", name)], 1)
    });
    metric(&mut out, "gpu_info", "Each GPU that the driver knows.", each);
    out.truncate(out.trim_end().len());
    out
}

/// A metric with its series; without any it is not there.
fn metric<'a>(out: &mut String, name: &str, help: &str, series: impl IntoIterator<Item = (Labels<'a>, usize)>) {
    let mut head = Some(format!("# HELP gpu_preflight_{name} {help}\n# TYPE gpu_preflight_{name} gauge\n"));
    for (labels, value) in series {
        out.push_str(&head.take().unwrap_or_default());
        let labels: Vec<String> = labels.iter().map(|(key, text)| format!("{key}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(out, "gpu_preflight_{name}{labels} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::testing::{finding, report};
    use super::*;
    use crate::model::testing::{bare_host, host as machine};
    use crate::model::{Host, Observed, Report};

    fn of(host: &Host, report: &Report, cuda: Option<&str>) -> String {
        text(&Watched { host, report, cuda })
    }

    /// Name, labels, value.
    type Series = (String, Vec<(String, String)>, u64);

    /// A line by the grammar of the format.
    fn series(line: &str) -> Series {
        let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
        let (name, mut rest) = line.split_at(end);
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            loop {
                let (key, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
                assert!(key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') && !key.is_empty(), "{line}");
                let mut text = String::new();
                let mut chars = value.char_indices();
                let close = loop {
                    match chars.next().unwrap_or_else(|| panic!("{line} has no end")) {
                        (at, '"') => break at,
                        (_, '\\') => match chars.next() {
                            Some((_, 'n')) => text.push('\n'),
                            Some((_, c @ ('\\' | '"'))) => text.push(c),
                            other => panic!("{line}: {other:?} is escaped"),
                        },
                        (_, c) => text.push(c),
                    }
                };
                labels.push((key.to_owned(), text));
                rest = &value[close + 1..];
                match rest.strip_prefix(',') {
                    Some(more) => rest = more,
                    None => break,
                }
            }
            rest = rest.strip_prefix('}').unwrap_or_else(|| panic!("{line}"));
        }
        let value = rest.strip_prefix(' ').and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        (name.to_owned(), labels, value)
    }

    /// Every line, each metric together behind its HELP and TYPE, and no series twice.
    fn read(text: &str) -> Vec<Series> {
        let (mut all, mut heads, mut seen) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut lines = text.lines();
        let mut current = String::new();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                current = help.split(' ').next().unwrap_or_default().to_owned();
                assert_eq!(lines.next(), Some(format!("# TYPE {current} gauge").as_str()));
                assert!(heads.insert(current.clone()), "{current} stands there twice");
                continue;
            }
            let one = series(line);
            assert_eq!(one.0, current, "{line}");
            assert!(seen.insert((one.0.clone(), one.1.clone())), "{line} stands there twice");
            all.push(one);
        }
        all
    }

    #[test]
    fn it_keeps_to_the_format_whatever_the_machine_is_called() {
        let mut host = machine(2);
        let odd = "a \"b\" \\ {c=\"d\"} 1\n# x é";
        if let Observed::Known(gpus) = &mut host.gpus {
            gpus[0].name = Some(odd.to_owned());
            gpus[1].uuid = None;
        }
        let twice = || finding("a", Severity::Error, "bad");
        let mut ignored = finding("a", Severity::Error, "bad");
        ignored.ignored = true;
        let all = read(&of(&host, &report(Verdict::Fail, vec![twice(), twice(), ignored]), Some("12.4")));
        let of = |name: &str| all.iter().filter(|(of, ..)| of == name).collect::<Vec<_>>();
        assert_eq!(of("gpu_preflight_finding").iter().map(|(.., n)| *n).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(of("gpu_preflight_findings")[0].2, 2, "an ignored finding counts");
        assert!(of("gpu_preflight_gpu_info")[0].1.contains(&("name".to_owned(), odd.to_owned())));
        let verdicts: Vec<_> =
            of("gpu_preflight_verdict").iter().map(|(_, labels, n)| (labels[0].1.clone(), *n)).collect();
        assert_eq!(verdicts, [("pass", 0), ("fail", 1), ("unknown", 0), ("skip", 0)].map(|(v, n)| (v.to_owned(), n)));
    }

    #[test]
    fn what_is_unknown_is_told_from_what_is_not_there() {
        let mut host = machine(2);
        host.driver.version = Observed::unknown("host.driver.version", "/sys", "refused");
        host.gpus = Observed::unknown("host.gpus", "/proc", "refused");
        let passed = report(Verdict::Pass, Vec::new());
        let text = of(&host, &passed, None);
        assert!(text.contains("driver=\"unknown\",cuda=\"unknown\"") && !text.contains("seen_by=\"driver\""), "{text}");
        assert!(!text.contains("gpu_info") && !text.contains("preflight_finding "), "a head without series: {text}");
        let text = of(&bare_host(), &passed, None);
        assert!(text.contains("driver=\"none\",cuda=\"none\"") && text.contains("seen_by=\"driver\"} 0"), "{text}");
        read(&text);
    }
}
