//! A feature file for the `local` source of Kubernetes' node-feature-discovery: labels of the node.
//!
//! NFD, docs/usage/customization-guide.md and source/local/local.go (read 2026-11): a file in
//! `/etc/kubernetes/node-feature-discovery/features.d` of at most 64 kB, `namespace/name=value` in each line, `#` begins
//! a comment; hidden files are passed over. Names without a namespace get `feature.node.kubernetes.io/` today and will
//! not in future, so it is written out. Kubernetes, "Labels and Selectors" (read 2026-11): a value has at most 63
//! letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit.

use std::fmt::Write as _;

use super::{Watched, word};
use crate::model::Severity;

/// Of our labels; the part before the slash is the one that NFD lets every source use.
const PREFIX: &str = "feature.node.kubernetes.io/gpu-preflight.";

/// The whole file. What is not known has no label: a selector for it then finds no node.
pub fn text(watched: &Watched<'_>) -> String {
    let version = watched.host.driver.version.seen().and_then(Option::as_ref);
    let labels = [
        ("verdict", Some(word(watched.report.verdict).to_owned())),
        ("errors", Some(watched.count(Severity::Error).to_string())),
        ("warnings", Some(watched.count(Severity::Warning).to_string())),
        ("gpus", watched.gpus().map(|n| n.to_string())),
        ("driver-version", version.map(ToString::to_string)),
        // selectors compare whole numbers only
        ("driver-major", version.map(|version| version.number(0).to_string())),
        ("cuda-version", watched.cuda.map(str::to_owned)),
    ];
    let mut out = String::from("# written by gpu-preflight host --format nfd");
    for (name, value) in labels {
        if let Some(value) = value.filter(|value| is_value(value)) {
            let _ = write!(out, "\n{PREFIX}{name}={value}");
        }
    }
    out
}

fn is_value(text: &str) -> bool {
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.len() <= 63 && end(bytes.first()) && end(bytes.last()) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{finding, report};
    use super::*;
    use crate::model::testing::{bare_host, host as machine};
    use crate::model::{Host, Observed, Verdict};

    fn of(host: &Host, cuda: Option<&str>) -> String {
        let report = report(Verdict::Fail, vec![finding("a", Severity::Error, "bad")]);
        text(&Watched { host, report: &report, cuda })
    }

    #[test]
    fn driver_cuda_and_verdict_are_labels() {
        let wanted = "# written by gpu-preflight host --format nfd
feature.node.kubernetes.io/gpu-preflight.verdict=fail
feature.node.kubernetes.io/gpu-preflight.errors=1
feature.node.kubernetes.io/gpu-preflight.warnings=0
feature.node.kubernetes.io/gpu-preflight.gpus=8
feature.node.kubernetes.io/gpu-preflight.driver-version=550.163.01
feature.node.kubernetes.io/gpu-preflight.driver-major=550
feature.node.kubernetes.io/gpu-preflight.cuda-version=12.4";
        assert_eq!(of(&machine(8), Some("12.4")), wanted);
    }

    #[test]
    fn what_is_not_known_or_not_there_has_no_label() {
        let mut host = machine(2);
        host.driver.version = Observed::unknown("host.driver.version", "/sys", "refused");
        host.gpus = Observed::unknown("host.gpus", "/proc", "refused");
        for text in [of(&host, None), of(&bare_host(), None)] {
            assert!(!text.contains("driver-") && !text.contains("cuda-"), "{text}");
        }
        assert!(!of(&host, None).contains(".gpus=") && of(&bare_host(), None).contains(".gpus=0"));
    }

    #[test]
    fn a_value_keeps_to_kubernetes_rules() {
        let long = "1".repeat(63);
        assert!(["1", "550.163.01", "a_b-c", &long].into_iter().all(is_value));
        let longer = "1".repeat(64);
        assert!(!["", ".1", "1.", "a b", "ä", "a=b", &longer].into_iter().any(is_value));
    }
}
