//! A comparison in words: by what matters most to a GPU, each change in a line.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Change, Comparison, NONE, NotCompared, Side, Step};
use crate::report::text::{DIM, shown};

/// So many names of a list are told.
const NAMES: usize = 6;

/// Fields of a profile under their heading, what breaks GPUs most often first, and the fields that tell what a new or
/// lost thing is.
const GROUPS: [(&str, &[&str], &[&str]); 8] = [
    ("driver", &["driver"], &["version"]),
    ("system", &["kernel", "architecture", "platform", "l4t", "os"], &[]),
    ("GPUs", &["gpus", "pci"], &["name", "pci", "driver"]),
    ("modules", &["modules"], &["version"]),
    ("nodes", &["device_nodes"], &["driver", "minor", "mode"]),
    ("toolkit", &["toolkit"], &["path"]),
    ("CDI", &["cdi"], &["kind", "driver"]),
    ("engines", &["engines"], &["path"]),
];

/// The end of a report's headline; `name` is the profile's.
pub fn headline(name: &str, comparison: &Comparison) -> String {
    let changes = match comparison.changes.len() {
        0 => "nothing changed".to_owned(),
        1 => "1 change".to_owned(),
        n => format!("{n} changes"),
    };
    format!("; {changes} since {}", shown(name))
}

/// The lines behind it.
pub fn lines(comparison: &Comparison) -> String {
    let mut out = String::new();
    let mut changes: Vec<&Change> = comparison.changes.iter().collect();
    changes.sort_by_key(|change| (group(&change.path), change.path.len()));
    for change in changes {
        let heading = GROUPS.get(group(&change.path)).map_or("other", |(heading, ..)| heading);
        let _ = writeln!(out, "    {DIM}{heading:7}{DIM:#}  {}", line(change));
    }
    for (side, words) in [(Side::Then, "not known then"), (Side::Now, "not known now")] {
        let lacking = comparison.not_compared.iter().filter(|one| one.not_known == side);
        let names: Vec<String> = lacking.map(|NotCompared { path, .. }| label(path, true)).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "    {DIM}{words}: {}{DIM:#}", few(&names));
        }
    }
    out
}

fn group(path: &[Step]) -> usize {
    let Some(Step::Field(first)) = path.first() else { return GROUPS.len() };
    GROUPS.iter().position(|(_, fields, _)| fields.contains(&first.as_str())).unwrap_or(GROUPS.len())
}

fn line(change: &Change) -> String {
    let Change { before, after, path, .. } = change;
    let what = label(path, false);
    let (gone, new) = (*after == NONE, *before == NONE);
    match (before, after) {
        _ if matches!(path.last(), Some(Step::Thing(_))) && gone => format!("{what}: gone{}", telling(path, before)),
        _ if matches!(path.last(), Some(Step::Thing(_))) && new => format!("{what}: new{}", telling(path, after)),
        (Value::Array(old), Value::Array(new)) => format!("{what}: {}", lists(old, new)),
        _ => format!("{what}: {}, now {}", of(path, before), of(path, after)),
    }
}

/// What has no driver has none; an option is not set.
fn of(path: &[Step], one: &Value) -> String {
    let is_option =
        matches!(path.first(), Some(Step::Field(first)) if ["toolkit", "engines"].contains(&first.as_str()));
    if one.is_null() && !is_option { NONE.to_owned() } else { value(one) }
}

/// `library /usr/lib/libcuda.so.1 size`: what it is called under its heading, or (`whole`) without one.
fn label(path: &[Step], whole: bool) -> String {
    let headed = path.len() > 1 && !whole;
    let words = path.iter().enumerate().filter_map(|(place, step)| match step {
        Step::Field(name) if place == 0 && name == "pci" => Some("PCI".to_owned()),
        Step::Field(_) if place == 0 && headed => None,
        Step::Field(name) if name == "libraries" => Some("library".to_owned()),
        Step::Field(name) => Some(name.replace('_', " ")),
        Step::Thing(name) => Some(shown(name)),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn telling(path: &[Step], thing: &Value) -> String {
    let fields = GROUPS.get(group(path)).map_or(&[][..], |(_, _, fields)| fields);
    let of = |field: &&str| match thing.get(field)? {
        Value::Null => None,
        Value::Number(number) => Some(format!("{field} {number}")),
        other => Some(value(other)),
    };
    let told: Vec<String> = fields.iter().filter_map(of).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) }
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => shown(text),
        Value::Array(all) => {
            let names: Vec<String> = all.iter().map(self::value).collect();
            if names.is_empty() { "empty".to_owned() } else { few(&names) }
        }
        // a configuration as a whole: its fields are told where both sides have one
        Value::Object(fields) => fields.get("path").and_then(Value::as_str).map_or_else(|| "there".to_owned(), shown),
    }
}

/// Two lists of names: what left and what came; the same in another order is said so.
fn lists(old: &[Value], new: &[Value]) -> String {
    let only = |these: &[Value], those: &[Value]| -> Vec<String> {
        these.iter().filter(|one| !those.contains(one)).map(value).collect()
    };
    let parts = [("without", only(old, new)), ("with", only(new, old))];
    let told: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(word, names)| format!("{word} {}", few(names)))
        .collect();
    if told.is_empty() { "in another order".to_owned() } else { format!("now {}", told.join(", ")) }
}

fn few(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES);
    let told = names[..names.len() - more].join(", ");
    if more == 0 { told } else { format!("{told} and {more} more") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::changes::between;

    fn said(before: &Value, after: &Value) -> Vec<String> {
        let of = |host: &Value| json!({"facts": {"host": host}});
        let comparison = between(&of(before), &of(after));
        let text = format!("{}\n{}", headline("a.json", &comparison), lines(&comparison));
        anstream::adapter::strip_str(&text).to_string().lines().map(|line| line.trim_start().to_owned()).collect()
    }

    #[test]
    fn what_matters_most_comes_first_each_in_a_line() {
        let before = json!({
            "engines": [{"kind": "docker", "path": "/usr/bin/dockerd", "cdi": null}],
            "cdi": [{"path": "/etc/cdi/n.yaml", "kind": "nvidia.com/gpu", "mounts": ["/a", "/b"]}],
            "gpus": [{"uuid": "GPU-a", "name": "H100", "pci": "0000:01:00.0"}],
            "driver": {"version": "535.183.01", "libraries": [{"path": "/l/libcuda.so.535.183.01", "version": "535.183.01"}]},
            "toolkit": {"config": "none"}, "kernel": "6.1.0-30-amd64", "os": null,
            "pci": [{"address": "0000:01:00.0", "driver": "nvidia"}],
        });
        let after = json!({
            "engines": [{"kind": "docker", "path": "/usr/bin/dockerd", "cdi": true}],
            "cdi": [{"path": "/etc/cdi/n.yaml", "kind": "nvidia.com/gpu", "mounts": ["/b", "/c"]}],
            "gpus": [], "driver": {"version": "550.163.01", "libraries": []},
            "toolkit": {"config": {"path": "/etc/x.toml", "mode": "cdi"}}, "kernel": "6.1.0-31-amd64", "os": ["debian"],
            "pci": [{"address": "0000:01:00.0", "driver": null}],
        });
        assert_eq!(
            said(&before, &after),
            [
                "; 8 changes since a.json",
                "driver   version: 535.183.01, now 550.163.01",
                "driver   library /l/libcuda.so.535.183.01: gone (535.183.01)",
                "system   kernel: 6.1.0-30-amd64, now 6.1.0-31-amd64",
                "GPUs     GPU-a: gone (H100, 0000:01:00.0)",
                "GPUs     PCI 0000:01:00.0 driver: nvidia, now none",
                "toolkit  config: none, now /etc/x.toml",
                "CDI      /etc/cdi/n.yaml mounts: now without /a, with /c",
                "engines  docker cdi: not set, now yes",
                "not known then: os",
            ]
        );
        assert_eq!(said(&after, &after), ["; nothing changed since a.json"]);
        assert_eq!(said(&after, &before).last().unwrap(), "not known now: os");
    }

    #[test]
    fn a_profile_of_somebody_else_gets_nothing_onto_the_terminal() {
        let evil = json!({"modules": {"\u{1b}[2J": {"version": "\u{1b}[31m"}}, "kernel": "\u{7}"});
        let lines = said(&evil, &json!({"modules": {}, "kernel": "6.1"})).join("\n");
        assert!(lines.contains(r#""\u{1b}[2J": gone ("\u{1b}[31m")"#), "{lines}");
        assert!(!lines.contains(['\u{1b}', '\u{7}']), "{lines}");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..40).map(|n| format!("/lib{n}")).collect();
        let cdi = |mounts: &[String]| json!({"cdi": [{"path": "/c", "mounts": mounts}]});
        assert_eq!(
            said(&cdi(&names), &cdi(&[]))[1],
            "CDI      /c mounts: now without /lib0, /lib1, /lib2, /lib3, /lib4, /lib5 and 34 more"
        );
        let reversed: Vec<String> = names.iter().rev().cloned().collect();
        assert_eq!(said(&cdi(&names), &cdi(&reversed))[1], "CDI      /c mounts: in another order");
    }
}
