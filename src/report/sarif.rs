//! SARIF 2.1.0 (OASIS, 2020-03-27), for the services that show findings beside code.
//!
//! An image or a machine is no file of a repository, and GitHub shows only results with a physical location, so the
//! target's name stands for a file, and the logical location says what it really is.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::answer::Answer;
use super::json::tool;
use crate::model::report::Unjudged;
use crate::model::{Check, Family, Finding, Severity};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The log of one run. `checks`: every check there is; those that were asked become rules.
pub fn log<'a>(
    command: &str,
    target: &str,
    answers: &[Answer<'_>],
    checks: impl Iterator<Item = (Family, &'a Check)>,
) -> String {
    let asked: BTreeSet<&str> = answers.iter().flat_map(asked).collect();
    let rules: Vec<(Family, &Check)> = checks.filter(|(_, check)| asked.contains(check.id)).collect();
    let place = |id: &str| rules.iter().position(|(_, check)| check.id == id);
    let mut results = Vec::new();
    let mut notifications = Vec::new();
    for answer in answers {
        let host = (answers.len() > 1).then_some(answer.host);
        results.extend(answer.report.findings.iter().map(|finding| result(target, host, finding, place(finding.id))));
        notifications
            .extend(answer.report.unknown.iter().map(|unknown| notification(host, unknown, place(unknown.check))));
    }
    let tool = tool();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": tool["name"],
                "version": tool["version"],
                "semanticVersion": tool["version"],
                "rules": rules.iter().map(|(family, check)| rule(*family, check)).collect::<Vec<_>>(),
            }},
            "automationDetails": {"id": format!("gpu-preflight/{command}/{}", uri(target))},
            "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": notifications}],
            "results": results,
        }],
    });
    format!("{document:#}")
}

fn asked<'a>(answer: &Answer<'a>) -> impl Iterator<Item = &'static str> + use<'a> {
    let report = answer.report;
    let found = report.findings.iter().map(|finding| finding.id);
    found.chain(report.unknown.iter().map(|u| u.check)).chain(report.settled.iter().map(|s| s.check))
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn rule(family: Family, check: &Check) -> Value {
    let help: String = check.remedy.iter().fold(check.why.to_owned(), |mut help, step| {
        let _ = write!(help, "\n* {}", super::explained::plain(step.text));
        help
    });
    json!({
        "id": check.id,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.why},
        "help": {"text": help},
        "defaultConfiguration": {"level": check.severities.first().map_or("note", |severity| level(*severity))},
        "properties": {"tags": [family.name()]},
    })
}

fn result(target: &str, host: Option<&str>, finding: &Finding, rule: Option<usize>) -> Value {
    let on = host.map(|host| format!(" ({host})")).unwrap_or_default();
    let mut message = format!("{}{on}.", finding.message);
    if let Some(step) = finding.remedy.first() {
        let _ = write!(message, " {}", step.text);
    }
    let fingerprint = format!("{}/{}/{}", finding.id, uri(target), host.map(uri).unwrap_or_default());
    let mut value = json!({
        "ruleId": finding.id,
        "level": level(finding.severity),
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": uri(target)}, "region": {"startLine": 1}},
            "logicalLocations": [{"fullyQualifiedName": target, "kind": "resource"}],
        }],
        "partialFingerprints": {"finding/v1": fingerprint},
        "properties": {
            "subject": finding.subject,
            "host": host,
            "evidence": finding.evidence,
            "remedy": finding.remedy,
        },
    });
    if let Some(rule) = rule {
        value["ruleIndex"] = json!(rule);
    }
    if finding.ignored {
        let why = "it is ignored by an option, the policy or the target itself";
        value["suppressions"] = json!([{"kind": "external", "justification": why}]);
    }
    value
}

/// What could not be judged is no result.
fn notification(host: Option<&str>, unknown: &Unjudged, rule: Option<usize>) -> Value {
    let on = host.map(|host| format!(" on {host}")).unwrap_or_default();
    let text =
        format!("{} could not be judged{on}: {}: {} ({})", unknown.check, unknown.fact, unknown.reason, unknown.source);
    let mut rule_of = json!({"id": unknown.check});
    if let Some(rule) = rule {
        rule_of["index"] = json!(rule);
    }
    let level = if unknown.could_be_error { "warning" } else { "note" };
    json!({"level": level, "message": {"text": text}, "associatedRule": rule_of})
}

/// As a relative reference (RFC 3986): a colon would make a scheme of what stands before it.
fn uri(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    for byte in target.trim_start_matches('/').bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    if out.is_empty() { "target".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::super::json::Subjects;
    use super::*;
    use crate::model::{Outcome, Place, Report, Verdict};

    static CHECK: Check = Check {
        id: "uvm-node-missing",
        title: "title",
        why: "why.",
        messages: &["m"],
        remedy: &[],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Host],
        judge: |_| Ok(Outcome::Pass),
    };

    fn report() -> Report {
        let finding = |ignored| Finding {
            id: CHECK.id,
            severity: Severity::Warning,
            subject: Family::Nodes,
            title: CHECK.title,
            message: "a \"b\" \u{1b}".to_owned(),
            evidence: Vec::new(),
            remedy: Vec::new(),
            ignored,
        };
        let unknown = Unjudged {
            check: "other",
            family: Family::Driver,
            could_be_error: true,
            fact: "host.gpus".to_owned(),
            source: "/proc".to_owned(),
            reason: "refused".to_owned(),
        };
        Report {
            verdict: Verdict::Pass,
            findings: vec![finding(false), finding(true)],
            unknown: vec![unknown],
            settled: Vec::new(),
        }
    }

    fn of(hosts: &[&str]) -> Value {
        let report = report();
        let answers: Vec<_> =
            hosts.iter().map(|host| Answer { host, report: &report, subjects: Subjects::default() }).collect();
        serde_json::from_str(&log("image", "oci:a b:1", &answers, [(Family::Nodes, &CHECK)].into_iter())).unwrap()
    }

    #[test]
    fn the_parts_that_the_standard_demands_are_there() {
        let log = of(&["this machine"]);
        assert_eq!(
            (&log["version"], &log["runs"][0]["tool"]["driver"]["name"]),
            (&json!("2.1.0"), &json!("gpu-preflight"))
        );
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(
            (rules.len(), &rules[0]["id"], &rules[0]["defaultConfiguration"]["level"]),
            (1, &json!(CHECK.id), &json!("error"))
        );
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for result in results {
            assert_eq!(rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()]["id"], result["ruleId"]);
            assert_eq!(result["level"], "warning");
            assert!(result["message"]["text"].as_str().unwrap().starts_with("a \"b\""));
            let location = &result["locations"][0];
            assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], "oci%3Aa%20b%3A1");
            assert_eq!(location["logicalLocations"][0]["fullyQualifiedName"], "oci:a b:1");
        }
        assert!(results[0].get("suppressions").is_none());
        assert_eq!(results[1]["suppressions"][0]["kind"], "external");
        let invocation = &run["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], true);
        assert_eq!(invocation["toolExecutionNotifications"][0]["level"], "warning");
    }

    #[test]
    fn of_several_hosts_each_result_says_which() {
        let log = of(&["a", "b"]);
        let hosts: Vec<_> =
            log["runs"][0]["results"].as_array().unwrap().iter().map(|r| &r["properties"]["host"]).collect();
        assert_eq!(hosts, [&json!("a"), &json!("a"), &json!("b"), &json!("b")]);
    }

    #[test]
    fn a_target_is_a_relative_reference() {
        assert_eq!(uri("/a/b:c"), "a/b%3Ac");
        assert_eq!((uri("//"), uri("\u{e9}")), ("target".to_owned(), "%C3%A9".to_owned()));
    }
}
