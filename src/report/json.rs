//! The JSON document, `schema_version` 1. Its schema is published in `packaging/schema`.

use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{Answer, worst};
use super::changes::{Change, Comparison, NotCompared};
use super::image::About;
use crate::model::report::Unjudged;
use crate::model::{Container, Finding, Host, Image, Verdict};

/// The document's version.
pub const SCHEMA_VERSION: u32 = 1;

/// The facts that a report rests on; what was not a subject is an empty object.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subjects<'a> {
    /// The machine.
    pub host: Option<&'a Host>,
    /// The image.
    pub image: Option<&'a Image>,
    /// Where the image was found, and what follows from its files.
    pub about: Option<&'a About>,
    /// The container.
    pub container: Option<&'a Container>,
    /// How the machine differs from a profile of it.
    pub since: Option<&'a Comparison>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    tool: Value,
    command: &'a str,
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<&'a [Change]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_compared: Option<&'a [NotCompared]>,
    findings: &'a [Finding],
    unknown: &'a [Unjudged],
    facts: Value,
}

/// The report on one host as JSON text.
///
/// # Errors
/// None that is known: all of it can be written as JSON.
pub fn report(command: &str, target: &str, answer: &Answer<'_>) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&document(command, target, None, answer)?)
}

/// The reports on several hosts as JSON text: one whole report for each, and the worst verdict above them.
///
/// # Errors
/// As [`report`].
pub fn matrix(command: &str, target: &str, answers: &[Answer<'_>]) -> serde_json::Result<String> {
    let results: Vec<_> =
        answers.iter().map(|answer| document(command, target, Some(answer.host), answer)).collect::<Result<_, _>>()?;
    serde_json::to_string_pretty(&json!({
        "schema_version": SCHEMA_VERSION,
        "tool": tool(),
        "command": command,
        "target": target,
        "verdict": worst(answers),
        "results": results,
    }))
}

fn document<'a>(
    command: &'a str,
    target: &'a str,
    host: Option<&'a str>,
    answer: &Answer<'a>,
) -> serde_json::Result<Document<'a>> {
    let Answer { report, subjects, .. } = answer;
    let facts = json!({
        "host": subjects.host.map_or(Ok(json!({})), of_host)?,
        "image": subjects.image.map_or(Ok(json!({})), |image| of_image(image, subjects.about))?,
        "container": subjects.container.map_or(Ok(json!({})), serde_json::to_value)?,
    });
    Ok(Document {
        schema_version: SCHEMA_VERSION,
        tool: tool(),
        command,
        target,
        host,
        verdict: report.verdict,
        changes: subjects.since.map(|since| since.changes.as_slice()),
        not_compared: subjects.since.map(|since| since.not_compared.as_slice()),
        findings: &report.findings,
        unknown: &report.unknown,
        facts,
    })
}

/// The image's facts, with where it was found and what follows from them.
fn of_image(image: &Image, about: Option<&About>) -> serde_json::Result<Value> {
    let mut facts = serde_json::to_value(image)?;
    if let (Some(facts), Some(Value::Object(about))) =
        (facts.as_object_mut(), about.map(serde_json::to_value).transpose()?)
    {
        facts.extend(about);
    }
    Ok(facts)
}

/// The machine's facts, its modules beside the driver: a machine without the driver has some, too.
fn of_host(host: &Host) -> serde_json::Result<Value> {
    let mut facts = serde_json::to_value(host)?;
    let modules = facts.get_mut("driver").and_then(Value::as_object_mut).and_then(|driver| driver.remove("modules"));
    if let (Some(facts), Some(modules)) = (facts.as_object_mut(), modules) {
        facts.insert("modules".to_owned(), modules);
    }
    Ok(facts)
}

/// The document of a command that could not judge at all.
pub fn error(command: &str, what: &str, reason: &str, way_out: &str) -> String {
    let document = json!({
        "schema_version": SCHEMA_VERSION,
        "tool": tool(),
        "command": command,
        "error": {"what": what, "reason": reason, "try": way_out},
    });
    format!("{document:#}")
}

/// This program and its version.
pub fn tool() -> Value {
    json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")})
}
