//! The text of a configuration file.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use super::{Mode, Policy};
use crate::model::Severity;

/// Something odd in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The file.
    pub file: String,
    /// What is odd.
    pub what: String,
    /// The whole file does not count; else only the odd part.
    pub file_ignored: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    mode: Option<Mode>,
    on_unknown: Option<OnUnknown>,
    ignore: Vec<String>,
    severity: std::collections::BTreeMap<String, Level>,
    exempt: Exemptions,
    runtime: Runtime,
    #[serde(deserialize_with = "duration")]
    wait_for_driver: Option<Duration>,
    allow_override: Option<bool>,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, toml::Value>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum OnUnknown {
    Allow,
    Refuse,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Level {
    Error,
    Warning,
    Note,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Exemptions {
    images: Vec<String>,
    namespaces: Vec<String>,
    annotations: Vec<String>,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, toml::Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Runtime {
    path: Option<Vec<String>>,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, toml::Value>,
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, &["enforce", "warn", "off"]))
    }
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = humantime::parse_duration(&text).map_err(serde::de::Error::custom)?;
    Ok(Some(duration))
}

impl Policy {
    /// Lays one more file over what is there: single values replace, lists and tables add.
    ///
    /// A file that is not TOML does not count at all. A setting of the wrong kind does not count, keys that
    /// nobody knows and names of checks that do not exist are said, and the rest of the file counts: packages
    /// of different ages may share a configuration, and a slip beside `mode = "warn"` must not enforce.
    pub fn lay_over(&mut self, name: &str, text: &str, known: &BTreeSet<&str>) -> Vec<Trouble> {
        let trouble = |what: String, file_ignored| Trouble { file: name.to_owned(), what, file_ignored };
        let (file, odd) = match settings(text) {
            Ok(read) => read,
            Err(error) => return vec![trouble(error.to_string().trim_end().to_owned(), true)],
        };
        let mut troubles: Vec<Trouble> = odd.into_iter().map(|what| trouble(what, false)).collect();
        let unknown_keys = (file.rest.keys().cloned())
            .chain(file.exempt.rest.keys().map(|key| format!("exempt.{key}")))
            .chain(file.runtime.rest.keys().map(|key| format!("runtime.{key}")));
        for key in unknown_keys {
            troubles.push(trouble(format!("{key}: no such setting"), false));
        }
        for id in file.ignore.iter().chain(file.severity.keys()) {
            if !known.contains(id.as_str()) {
                troubles.push(trouble(format!("{id}: no such check"), false));
            }
        }

        self.mode = file.mode.unwrap_or(self.mode);
        self.refuse_unknown = file.on_unknown.map_or(self.refuse_unknown, |o| matches!(o, OnUnknown::Refuse));
        self.ignore.extend(file.ignore);
        self.severity.extend(file.severity.into_iter().map(|(id, level)| (id, level.into())));
        self.exempt.images.extend(file.exempt.images);
        self.exempt.namespaces.extend(file.exempt.namespaces);
        self.exempt.annotations.extend(file.exempt.annotations);
        if let Some(path) = file.runtime.path {
            self.runtime = path;
        }
        self.wait_for_driver = file.wait_for_driver.unwrap_or(self.wait_for_driver);
        self.allow_override = file.allow_override.unwrap_or(self.allow_override);
        troubles
    }
}

/// The settings of a file, and what is wrong with those that do not count. An error: it is not TOML.
fn settings(text: &str) -> Result<(File, Vec<String>), toml::de::Error> {
    let whole = match toml::from_str(text) {
        Ok(file) => return Ok((file, Vec::new())),
        Err(error) => error,
    };
    let table: toml::Table = toml::from_str(text)?;
    let mut odd = Vec::new();
    let mut kept = toml::Table::new();
    for (key, value) in table {
        let alone = toml::Table::from_iter([(key.clone(), value.clone())]);
        match alone.try_into::<File>() {
            Ok(_) => drop(kept.insert(key, value)),
            Err(error) => odd.push(format!("{key}: {}", error.message())),
        }
    }
    kept.try_into().map(|file| (file, odd)).map_err(|_| whole)
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::Error,
            Level::Warning => Self::Warning,
            Level::Note => Self::Note,
        }
    }
}

/// The names that a configuration may use, from the catalogue that the caller has.
pub fn known_checks<'a>(ids: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    ids.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(texts: &[&str]) -> (Policy, Vec<Trouble>) {
        let known = known_checks(["gpu-not-requested", "shm-too-small"]);
        let mut policy = Policy::default();
        let troubles = texts.iter().flat_map(|text| policy.lay_over("test.toml", text, &known)).collect();
        (policy, troubles)
    }

    #[test]
    fn every_setting_is_read() {
        let (policy, troubles) = laid(&[r#"
            mode = "warn"
            on_unknown = "refuse"
            ignore = ["shm-too-small"]
            wait_for_driver = "90s"
            allow_override = false
            [severity]
            gpu-not-requested = "warning"
            [exempt]
            images = ["registry.example/tools/*"]
            namespaces = ["kube-system"]
            annotations = ["team=infra"]
            [runtime]
            path = ["/usr/bin/crun"]
        "#]);
        assert!(troubles.is_empty(), "{troubles:?}");
        assert_eq!((policy.mode, policy.refuse_unknown, policy.allow_override), (Mode::Warn, true, false));
        assert_eq!(policy.wait_for_driver, Duration::from_secs(90));
        assert_eq!(policy.severity["gpu-not-requested"], Severity::Warning);
        assert_eq!(policy.runtime, ["/usr/bin/crun"]);
        assert_eq!(policy.exempt.namespaces, ["kube-system"]);
    }

    #[test]
    fn later_files_replace_values_and_add_to_lists() {
        let (policy, _) = laid(&[
            "mode = \"warn\"\nignore = [\"shm-too-small\"]",
            "mode = \"enforce\"\nignore = [\"gpu-not-requested\"]",
        ]);
        assert_eq!(policy.mode, Mode::Enforce);
        assert_eq!(policy.ignore.len(), 2);
    }

    #[test]
    fn a_broken_file_changes_nothing_and_is_said() {
        let settings = ["mode = \"enfroce\"", "ignore = \"x\"", "wait_for_driver = 5", "on_unknown = true"];
        for broken in ["mode = "].into_iter().chain(settings) {
            let (policy, troubles) = laid(&[broken]);
            assert_eq!(policy, Policy::default(), "{broken}");
            assert!(troubles.len() == 1, "{broken}: {troubles:?}");
            assert_eq!(troubles[0].file_ignored, broken == "mode = ", "{broken}");
        }
    }

    #[test]
    fn a_slip_in_one_setting_does_not_enforce() {
        for slip in ["[severity]\nshm-too-small = \"fatal\"", "wait_for_driver = \"soon\"", "[runtime]\npath = 1"] {
            let (policy, troubles) = laid(&[&format!("mode = \"warn\"\n{slip}")]);
            assert_eq!(policy, Policy { mode: Mode::Warn, ..Policy::default() }, "{slip}");
            let key = slip.trim_start_matches('[').split([' ', ']']).next().unwrap();
            assert!(troubles.len() == 1 && troubles[0].what.starts_with(key), "{troubles:?}");
            assert!(!troubles[0].file_ignored && !troubles[0].what.contains('\n'), "{troubles:?}");
        }
    }

    #[test]
    fn what_nobody_knows_is_said_and_the_rest_counts() {
        let (policy, troubles) = laid(&["mode = \"warn\"\nfuture = 1\nignore = [\"no-such\"]\n[exempt]\nusers = []"]);
        assert_eq!(policy.mode, Mode::Warn);
        let said: Vec<_> = troubles.iter().map(|t| t.what.as_str()).collect();
        assert_eq!(said, ["future: no such setting", "exempt.users: no such setting", "no-such: no such check"]);
        assert!(troubles.iter().all(|t| !t.file_ignored));
    }
}
