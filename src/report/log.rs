//! A line of the decision log. crun discards what a hook prints, so this is where it can be read.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::model::wording::cut;
use crate::model::{Container, Report, Severity, Verdict};

/// A line has at most this many bytes, with its end: so one write of it is whole among others.
pub const LINE: usize = 4096;

/// What a line is made of besides the report.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// When it was decided.
    pub time: SystemTime,
    /// The stage that the hook was called at.
    pub stage: &'a str,
    /// `enforce` or `warn`, after what the container asked.
    pub mode: &'a str,
    /// The container starts.
    pub start: bool,
    /// How long it took.
    pub took: Duration,
    /// What the hook says, whoever shows it: the refusal, or what would have been one.
    pub said: &'a str,
    /// What was lowered and by whom, files that were ignored, facts that came too late.
    pub remarks: &'a [String],
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    id: String,
    stage: &'a str,
    engine: &'a str,
    mode: &'a str,
    decision: &'a str,
    verdict: Verdict,
    wants_gpu: crate::model::container::Strength,
    gpu_given: Option<crate::model::container::Given>,
    findings: Vec<Found<'a>>,
    unknown: usize,
    ms: f64,
    #[serde(skip_serializing_if = "String::is_empty")]
    said: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct Found<'a> {
    id: &'a str,
    severity: Severity,
    message: String,
}

/// How much of each goes into a line, in numbers and bytes.
struct Size {
    findings: usize,
    message: usize,
    remarks: usize,
    said: usize,
}

/// The line, with its end. Messages are shortened, then left out, until it fits; of what was said, the end.
pub fn line(entry: &Entry<'_>, report: &Report, container: &Container) -> Vec<u8> {
    // JSON may write a byte as six, so the last try must fit even then.
    let sizes = [
        Size { findings: 16, message: 1000, remarks: 8, said: LINE },
        Size { findings: 16, message: 160, remarks: 4, said: LINE },
        Size { findings: 8, message: 80, remarks: 1, said: 1000 },
        Size { findings: 0, message: 0, remarks: 0, said: 400 },
    ];
    for Size { findings, message, remarks, said } in sizes {
        let line = Line {
            time: humantime::format_rfc3339_millis(entry.time).to_string(),
            id: cut(&container.id, 128),
            stage: entry.stage,
            engine: container.engine.name(),
            mode: entry.mode,
            decision: if entry.start { "start" } else { "refuse" },
            verdict: report.verdict,
            wants_gpu: container.wants_gpu.strength,
            gpu_given: container.gpu_given.seen().copied(),
            findings: report
                .counted()
                .take(findings)
                .map(|f| Found { id: f.id, severity: f.severity, message: cut(&f.message, message) })
                .collect(),
            unknown: report.unknown.len(),
            ms: (entry.took.as_secs_f64() * 100_000.0).round() / 100.0,
            said: cut(entry.said.trim_end(), said),
            remarks: entry.remarks.iter().take(remarks).map(|r| cut(r, 200)).collect(),
        };
        if let Ok(mut bytes) = serde_json::to_vec(&line)
            && bytes.len() < LINE
        {
            bytes.push(b'\n');
            return bytes;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Family, Finding};

    fn report(message: &str, findings: usize) -> Report {
        let finding = Finding {
            id: "uvm-node-missing",
            severity: Severity::Error,
            subject: Family::Nodes,
            title: "",
            message: message.to_owned(),
            evidence: Vec::new(),
            remedy: Vec::new(),
            ignored: false,
        };
        Report { verdict: Verdict::Fail, findings: vec![finding; findings], unknown: Vec::new(), settled: Vec::new() }
    }

    fn entry(remarks: &[String]) -> Entry<'_> {
        Entry {
            time: SystemTime::UNIX_EPOCH,
            stage: "createRuntime",
            mode: "enforce",
            start: false,
            took: Duration::from_micros(1234),
            said: "",
            remarks,
        }
    }

    #[test]
    fn a_line_has_the_fields_of_the_contract() {
        let bytes = line(&entry(&[]), &report("absent", 1), &Container { id: "c1".into(), ..Container::default() });
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "time": "1970-01-01T00:00:00.000Z", "id": "c1", "stage": "createRuntime", "engine": "unknown", "mode": "enforce",
                "decision": "refuse", "verdict": "fail", "wants_gpu": "none", "gpu_given": "none",
                "findings": [{"id": "uvm-node-missing", "severity": "error", "message": "absent"}], "unknown": 0, "ms": 1.23,
            })
        );
        assert_eq!(bytes.last(), Some(&b'\n'));
    }

    #[test]
    fn what_was_said_stands_whole_where_it_fits() {
        let said = format!("{}.\nor: Use another.\n", "x".repeat(380));
        let entry = Entry { said: &said, ..entry(&[]) };
        for (message, findings) in [("absent", 1), (&"m".repeat(1000), 12)] {
            let bytes = line(&entry, &report(message, findings), &Container::default());
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(value["said"], said.trim_end());
            assert!(bytes.len() <= LINE);
        }
        let long = "\u{1}\"\\".repeat(4000);
        let entry = Entry { said: &long, ..entry };
        assert!(!line(&entry, &report(&long, 50), &Container::default()).is_empty());
    }

    #[test]
    fn it_fits_whatever_is_in_it() {
        let long = "\u{1}\"\\".repeat(2000);
        let bytes =
            line(&entry(&vec![long.clone(); 20]), &report(&long, 50), &Container { id: long, ..Container::default() });
        assert!(!bytes.is_empty() && bytes.len() <= LINE, "{}", bytes.len());
        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
    }
}
