//! `status --last`: what the hook's log says of the last containers that it refused.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::{Common, Format};
use crate::collect::tree::Tree;
use crate::commands::hook::journal;
use crate::commands::output::{Failed, has_no_report, print, styled};
use crate::commands::setting;
use crate::model::wording::quote;
use crate::report::json::{SCHEMA_VERSION, tool};

/// The log is renamed at 8 MiB, and the file before it kept.
const LIMIT: usize = 16 << 20;
/// A refusal's line is shorter, and it has fewer.
const WORDS: usize = 1000;
const LINES: usize = 16;

/// Shows the last refusals, the newest first.
pub(super) fn run(count: usize, common: &Common) -> Result<u8, Failed> {
    has_no_report("status --last", common)?;
    let files = setting::host_tree(common)?;
    let logs = journal::files(&files);
    let mut found = Vec::new();
    let mut read = Vec::new();
    let mut unread = Vec::new();
    for log in &logs {
        for path in [log.clone(), format!("{log}.1")] {
            match refusals(&files, &path, count) {
                Ok(None) => {}
                Ok(Some(refusals)) => {
                    read.push(path);
                    found.extend(refusals);
                }
                Err(reason) => unread.push(format!("{path}: {reason}")),
            }
        }
    }
    if let (true, Some(reason)) = (read.is_empty(), unread.first()) {
        return Err(Failed::new("the hook's log", reason, "read it as root"));
    }
    found.sort_by(|a, b| text(b, "time").cmp(text(a, "time")));
    found.truncate(count);
    if common.format == Format::Json {
        let document =
            json!({"schema_version": SCHEMA_VERSION, "tool": tool(), "command": "status", "refusals": found});
        print(&format!("{document:#}"));
    } else if found.is_empty() {
        let places = if read.is_empty() { format!("there is no {}", logs.join(" and no ")) } else { read.join(", ") };
        print(&format!("no refusal is logged ({places})"));
    } else {
        styled(found.iter().map(entry).collect::<String>().trim_end(), common);
    }
    Ok(0)
}

/// The last refusals of a file, the newest first; `None`: it is absent.
fn refusals(files: &Tree, path: &str, count: usize) -> Result<Option<Vec<Value>>, String> {
    let Some(text) = files.read_text(path, LIMIT).map_err(|unseen| unseen.reason)? else { return Ok(None) };
    let lines = text.lines().rev().filter(|line| line.contains("\"refuse\""));
    let entries = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(Some(entries.filter(|entry| entry["decision"] == "refuse").take(count).collect()))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What is logged came from a container: every word of it is quoted or of known form.
fn entry(entry: &Value) -> String {
    let plain = |key| text(entry, key).chars().filter(char::is_ascii_graphic).take(64).collect::<String>();
    let id: String = plain("id").chars().take(12).collect();
    let mut out = format!("{}  {}  {}\n", plain("time"), plain("engine"), id);
    let said = text(entry, "said");
    for line in said.lines().take(LINES) {
        let _ = writeln!(out, "    {}", printable(line));
    }
    let findings = entry.get("findings").and_then(Value::as_array);
    for finding in findings.into_iter().flatten() {
        let severity = text(finding, "severity");
        let id: String = text(finding, "id").chars().filter(|c| c.is_ascii_lowercase() || *c == '-').take(64).collect();
        let words = printable(text(finding, "message"));
        match severity {
            // lines of an older hook have nothing else
            "error" if said.is_empty() => {
                let _ = writeln!(out, "    [{id}] {words}");
            }
            "warning" => {
                let _ = writeln!(out, "    warning [{id}]: {words}");
            }
            _ => {}
        }
    }
    if said.is_empty() && findings.is_none_or(Vec::is_empty) {
        let _ = writeln!(out, "    refused for what could not be seen (verdict {})", quote(text(entry, "verdict")));
    }
    out
}

fn printable(words: &str) -> String {
    words.chars().filter(|c| matches!(c, ' '..='~')).take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_shown_as_the_hook_said_it_with_its_warnings() {
        let said = "gpu-preflight: start refused [a]: it has none. Give it one. To start anyway: -e X.\nor: Do b.";
        let logged = json!({
            "time": "2026-12-01T05:00:00.000Z", "engine": "podman", "id": "0123456789abcdef", "verdict": "fail", "said": said,
            "findings": [
                {"id": "a", "severity": "error", "message": "it has none"},
                {"id": "b", "severity": "warning", "message": "small\u{1b}[2J"},
            ],
        });
        assert_eq!(
            entry(&logged),
            "2026-12-01T05:00:00.000Z  podman  0123456789ab\n    \
             gpu-preflight: start refused [a]: it has none. Give it one. To start anyway: -e X.\n    or: Do b.\n    \
             warning [b]: small[2J\n"
        );
    }

    #[test]
    fn a_line_of_an_older_hook_is_shown_as_far_as_it_goes() {
        let finding = json!({"id": "a", "severity": "error", "message": "it has none"});
        let old = json!({"time": "t", "engine": "docker", "id": "c", "verdict": "fail", "findings": [finding]});
        assert_eq!(entry(&old), "t  docker  c\n    [a] it has none\n");
        let unknown = json!({"time": "t", "engine": "docker", "id": "c", "verdict": "unknown", "findings": []});
        assert!(entry(&unknown).contains("could not be seen (verdict \"unknown\")"));
    }
}
