//! From the text of a CDI specification to its facts. Unknown fields are passed over.

use serde_json::Value;

use crate::model::Release;
use crate::model::host::{CdiDevice, CdiHook, CdiNode, CdiSpec};

/// The facts of a specification; `Err`: it is none.
pub(super) fn spec(path: &str, value: &Value) -> Result<CdiSpec, &'static str> {
    let kind = text(value, "kind").ok_or("no kind, so no CDI specification")?;
    let mut spec = CdiSpec {
        path: path.to_owned(),
        version: text(value, "cdiVersion").unwrap_or_default(),
        kind,
        ..CdiSpec::default()
    };
    if let Some(edits) = value.get("containerEdits") {
        spec.nodes = nodes(edits);
        add_edits(edits, &mut spec);
    }
    for device in list(value, "devices") {
        let edits = device.get("containerEdits").unwrap_or(&Value::Null);
        spec.devices.push(CdiDevice { name: text(device, "name").unwrap_or_default(), nodes: nodes(edits) });
        add_edits(edits, &mut spec);
    }
    spec.driver = driver(&spec.mounts);
    Ok(spec)
}

fn add_edits(edits: &Value, spec: &mut CdiSpec) {
    for mount in list(edits, "mounts").filter_map(|mount| text(mount, "hostPath")) {
        if !spec.mounts.contains(&mount) {
            spec.mounts.push(mount);
        }
    }
    for hook in list(edits, "hooks") {
        let args = list(hook, "args").filter_map(plain).collect();
        let hook = CdiHook { path: text(hook, "path").unwrap_or_default(), args };
        if !spec.hooks.contains(&hook) {
            spec.hooks.push(hook);
        }
    }
}

fn nodes(edits: &Value) -> Vec<CdiNode> {
    let node = |node: &Value| {
        let path = text(node, "path")?;
        Some(CdiNode {
            host_path: text(node, "hostPath").filter(|host| *host != path),
            path,
            major: number(node, "major").filter(|major| *major != 0),
            minor: number(node, "minor"),
            gid: number(node, "gid"),
            mode: number(node, "fileMode"),
        })
    };
    list(edits, "deviceNodes").filter_map(node).collect()
}

/// The version in the names of mounted libraries. libcuda and libnvidia-ml are the driver's for certain;
/// others (`libnvidia-egl-wayland.so.1.1.13`) count only if their version looks like a driver's.
fn driver(mounts: &[String]) -> Option<Release> {
    let version = |mount: &String| {
        let (name, version) = mount.rsplit_once('/')?.1.split_once(".so.")?;
        let release: Release = version.parse().ok()?;
        let looks_so = release.number(0) >= 100 && version.contains('.');
        (looks_so && name.starts_with("lib")).then_some((matches!(name, "libcuda" | "libnvidia-ml"), release))
    };
    let versions: Vec<_> = mounts.iter().filter_map(version).collect();
    versions.iter().find(|(certain, _)| *certain).or(versions.first()).map(|(_, release)| release.clone())
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value, key: &str) -> Option<String> {
    plain(value.get(key)?)
}

/// A word that YAML takes for a number, such as an unquoted `0`, is meant as it is written.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(value: &Value, key: &str) -> Option<u32> {
    value.get(key)?.as_u64().and_then(|n| u32::try_from(n).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_version_is_told_by_its_own_libraries() {
        let of = |mounts: &[&str]| {
            driver(&mounts.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>()).map(|release| release.to_string())
        };
        assert_eq!(of(&["/l/libnvidia-egl-gbm.so.1.1.2", "/l/libGL.so.1", "/l/libcuda.so"]), None);
        assert_eq!(of(&["/l/libfoo.so.470.1", "/l/libcuda.so.580.95.05", "/usr/bin/x"]).as_deref(), Some("580.95.05"));
        assert_eq!(
            of(&["/l/libnvidia-egl-gbm.so.1.1.2", "/l/libEGL_nvidia.so.535.161.07"]).as_deref(),
            Some("535.161.07")
        );
    }

    #[test]
    fn senseless_parts_are_passed_over() {
        let value = serde_json::json!({"kind": "a/b", "devices": [{"name": 0, "containerEdits": {"deviceNodes": [{"major": 1}, 7]}}, 3]});
        let spec = spec("/p", &value).unwrap();
        assert_eq!((spec.devices[0].name.as_str(), spec.devices[0].nodes.len(), spec.devices.len()), ("0", 0, 2));
        assert!(super::spec("/p", &Value::Null).is_err());
    }
}
