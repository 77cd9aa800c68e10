//! What programs that watch machines read of a report on one: Nagios, Prometheus, Kubernetes' node labels.

use crate::model::host::Platform;
use crate::model::{Host, Observed, Report, Severity, Verdict};

pub mod nagios;
pub mod nfd;
pub mod prometheus;

/// A machine and what came out for it.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// The machine.
    pub host: &'a Host,
    /// What came out.
    pub report: &'a Report,
    /// The CUDA that its driver offers, where that is known.
    pub cuda: Option<&'a str>,
}

impl Watched<'_> {
    /// Findings of this severity that count.
    fn count(&self, severity: Severity) -> usize {
        self.report.counted().filter(|finding| finding.severity == severity).count()
    }

    /// GPUs that the driver knows and uses. Behind WSL and on Jetson it keeps no list of them.
    fn gpus(&self) -> Option<usize> {
        let listed = self.host.gpus.seen().filter(|_| self.host.platform == Platform::Native)?;
        Some(listed.iter().filter(|gpu| !gpu.excluded).count())
    }

    /// The driver's version in a word that is no version where there is none.
    fn driver(&self) -> String {
        match &self.host.driver.version {
            Observed::Known(Some(version)) => version.to_string(),
            Observed::Known(None) => "none".to_owned(),
            Observed::Unknown(_) => "unknown".to_owned(),
        }
    }
}

/// As in the JSON report.
const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Unknown => "unknown",
        Verdict::Skip => "skip",
    }
}

/// As in the JSON report.
const fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

#[cfg(test)]
mod testing {
    use crate::model::report::Unjudged;
    use crate::model::{Family, Finding, Report, Severity, Verdict};

    pub(super) fn finding(id: &'static str, severity: Severity, message: &str) -> Finding {
        Finding {
            id,
            severity,
            subject: Family::Driver,
            title: "a title",
            message: message.to_owned(),
            evidence: Vec::new(),
            remedy: Vec::new(),
            ignored: false,
        }
    }

    pub(super) fn unjudged(check: &'static str) -> Unjudged {
        Unjudged {
            check,
            family: Family::Nodes,
            could_be_error: true,
            fact: "host.device_nodes".into(),
            source: "/dev".into(),
            reason: "refused".into(),
        }
    }

    pub(super) fn report(verdict: Verdict, findings: Vec<Finding>) -> Report {
        Report { verdict, findings, unknown: Vec::new(), settled: Vec::new() }
    }
}
