//! The JSON document, `schema_version` 1. Its schema is published in `packaging/schema`.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::report::{Report, Unjudged};
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
    /// The container.
    pub container: Option<&'a Container>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    tool: Value,
    command: &'a str,
    target: &'a str,
    verdict: Verdict,
    findings: &'a [Finding],
    unknown: &'a [Unjudged],
    facts: Value,
}

/// A report as JSON text.
///
/// # Errors
/// None that is known: all of it can be written as JSON.
pub fn report(command: &str, target: &str, report: &Report, subjects: Subjects<'_>) -> serde_json::Result<String> {
    let facts = json!({
        "host": subjects.host.map_or(Ok(json!({})), host)?,
        "image": subjects.image.map_or(Ok(json!({})), serde_json::to_value)?,
        "container": subjects.container.map_or(Ok(json!({})), serde_json::to_value)?,
    });
    serde_json::to_string_pretty(&Document {
        schema_version: SCHEMA_VERSION,
        tool: tool(),
        command,
        target,
        verdict: report.verdict,
        findings: &report.findings,
        unknown: &report.unknown,
        facts,
    })
}

/// The machine's facts, its modules beside the driver: a machine without the driver has some, too.
fn host(host: &Host) -> serde_json::Result<Value> {
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

fn tool() -> Value {
    json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")})
}
