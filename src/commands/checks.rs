//! `gpu-preflight checks`: the catalogue, or one page of it.

use std::fmt::Write as _;

use serde_json::json;

use crate::checks;
use crate::cli::{Common, Format};
use crate::commands::output::{Failed, print, styled};
use crate::model::{Check, Family, Place, Severity};
use crate::report::json::SCHEMA_VERSION;

/// Lists all, or shows the one of a name.
pub(crate) fn run(id: Option<&str>, common: &Common) -> Result<u8, Failed> {
    match id {
        None if common.format == Format::Json => {
            let all: Vec<_> = checks::all().map(|(family, check)| as_json(family, check)).collect();
            print(&format!("{:#}", json!({"schema_version": SCHEMA_VERSION, "checks": all})));
        }
        None => styled(&list(), common),
        Some(id) => {
            let (family, check) = checks::find(id)
                .ok_or_else(|| Failed::new(format!("check {id:?}"), "no check has this name", nearest(id)))?;
            if common.format == Format::Json {
                print(&format!("{:#}", as_json(family, check)));
            } else {
                styled(&page(family, check), common);
            }
        }
    }
    Ok(0)
}

fn list() -> String {
    let mut out = String::new();
    let widest = checks::all().map(|(_, check)| check.id.len()).max().unwrap_or(0);
    for (family, files) in checks::FAMILIES {
        let _ = writeln!(out, "{}", family.name());
        for check in files.iter().flat_map(|file| file.iter()) {
            let _ = writeln!(out, "  {:widest$}  {:5}  {}", check.id, letters(check), check.title);
        }
    }
    out.push_str("E error, W warning, N note. `gpu-preflight checks ID` shows one.");
    out
}

fn letters(check: &Check) -> String {
    let letter = |severity: &Severity| match severity {
        Severity::Error => "E",
        Severity::Warning => "W",
        Severity::Note => "N",
    };
    check.severities.iter().map(letter).collect::<Vec<_>>().join(" ")
}

fn page(family: Family, check: &Check) -> String {
    let mut out = format!("{}\n  {}\n\n{}\n\n", check.id, check.title, check.why);
    let _ = writeln!(out, "family      {}", family.name());
    let _ = writeln!(out, "severities  {}", letters(check));
    let _ = writeln!(out, "asked by    {}", check.places.iter().map(|p| place(*p)).collect::<Vec<_>>().join(", "));
    let _ = writeln!(out, "it says");
    for message in check.messages {
        let _ = writeln!(out, "  {message}.");
    }
    for (n, step) in check.remedy.iter().enumerate() {
        let _ = writeln!(out, "{}", if n == 0 { "to do" } else { "or" });
        let _ = writeln!(out, "  {}", step.text);
        if let Some(command) = step.command {
            let _ = writeln!(out, "    {command}");
        }
    }
    out.trim_end().to_owned()
}

const fn place(place: Place) -> &'static str {
    match place {
        Place::Hook => "the hook, container",
        Place::Image => "image",
        Place::Host => "host",
        Place::Healthcheck => "healthcheck",
    }
}

fn as_json(family: Family, check: &Check) -> serde_json::Value {
    json!({
        "id": check.id,
        "family": family,
        "title": check.title,
        "why": check.why,
        "severities": check.severities,
        "messages": check.messages,
        "remedy": check.remedy.iter().map(|s| json!({"action": s.action, "text": s.text, "command": s.command})).collect::<Vec<_>>(),
    })
}

/// Names that share a word with a name that nobody has.
fn nearest(id: &str) -> String {
    let near: Vec<_> = checks::all()
        .map(|(_, check)| check.id)
        .filter(|known| id.split('-').any(|word| word.len() > 2 && known.split('-').any(|k| k == word)))
        .take(5)
        .collect();
    if near.is_empty() { "gpu-preflight checks".to_owned() } else { format!("one of {}", near.join(", ")) }
}
