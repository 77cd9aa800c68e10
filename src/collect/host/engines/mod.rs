//! The engines that are installed, and what their configuration files say. What a daemon really runs
//! with may be older than its files.

use serde_json::Value;

use super::look::{ending, names, seems_there};
use crate::collect::tree::Tree;
use crate::model::host::Engine;

mod containerd;
mod crio;
mod docker;
mod podman;

/// A configuration has a few kilobytes.
const LIMIT: usize = 1 << 20;
const FILES: usize = 256;

/// Engines of which a program or a configuration is there.
pub fn engines(tree: &Tree) -> Vec<Engine> {
    let mut found = docker::engines(tree);
    found.extend(podman::engine(tree));
    found.extend(containerd::engines(tree));
    found.extend(crio::engine(tree));
    found
}

/// The first of these that is there.
fn first<'a>(tree: &Tree, paths: &[&'a str]) -> Option<&'a str> {
    paths.iter().copied().find(|path| seems_there(tree, path))
}

/// A configuration file as a value, `None` if it is absent; one that cannot be read as what it is, is
/// noted as broken. TOML and JSON come to the same here.
fn parsed(tree: &Tree, path: &str, broken: &mut Option<String>) -> Option<Value> {
    let text = match tree.read_text(path, LIMIT) {
        Ok(text) => text?,
        Err(unseen) => {
            *broken = Some(format!("{path}: {}", unseen.reason));
            return None;
        }
    };
    let json = ending(path) == "json";
    let value = if json { serde_json::from_str(&text).ok() } else { toml::from_str(&text).ok() };
    if value.is_none() {
        *broken = Some(format!("{path}: no valid {}", if json { "JSON" } else { "TOML" }));
    }
    value
}

/// A file and, in the order in which they are read, those of its drop-in directory.
fn with_drop_ins(tree: &Tree, main: &str, directory: &str, ending: &str) -> Vec<String> {
    let drop_ins = names(tree, directory, FILES).unwrap_or_default();
    let drop_ins = drop_ins.into_iter().filter(|name| name.ends_with(ending)).map(|name| format!("{directory}/{name}"));
    std::iter::once(main.to_owned()).chain(drop_ins).collect()
}

fn at<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

fn text(value: &Value, keys: &[&str]) -> Option<String> {
    at(value, keys)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn boolean(value: &Value, keys: &[&str]) -> Option<bool> {
    at(value, keys)?.as_bool()
}

fn texts(value: &Value, keys: &[&str]) -> Option<Vec<String>> {
    Some(at(value, keys)?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The members of a table, each with its name.
fn members<'v>(value: &'v Value, keys: &[&str]) -> impl Iterator<Item = (&'v String, &'v Value)> {
    at(value, keys).and_then(Value::as_object).into_iter().flatten()
}

/// Takes what a later file says in place of what stood there.
fn take<T>(place: &mut Option<T>, said: Option<T>) {
    if said.is_some() {
        *place = said;
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;
    use crate::model::host::EngineKind;

    #[test]
    fn a_machine_without_engines_has_none() {
        assert!(
            engines(&Laid::out(&[("/usr/bin/docker", "")]).tree()).is_empty(),
            "docker's client alone is no engine"
        );
    }

    #[test]
    fn every_engine_is_found_by_its_program() {
        let programs = ["/usr/bin/dockerd", "/usr/bin/podman", "/usr/local/bin/containerd", "/usr/bin/crio"];
        let laid = Laid::out(&programs.map(|path| (path, "")));
        let found: Vec<_> = engines(&laid.tree()).into_iter().map(|e| (e.kind, e.path)).collect();
        let kinds = [EngineKind::Docker, EngineKind::Podman, EngineKind::Containerd, EngineKind::Crio];
        assert_eq!(found, kinds.into_iter().zip(programs.map(str::to_owned)).collect::<Vec<_>>());
    }
}
