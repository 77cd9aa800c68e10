//! containerd's CRI plugin, in the three versions of its configuration.

use serde_json::Value;

use super::{boolean, first, members, parsed, take, text, texts, with_drop_ins};
use crate::collect::tree::Tree;
use crate::model::host::{Engine, EngineKind};

const PROGRAMS: [&str; 4] = [
    "/usr/bin/containerd",
    "/usr/local/bin/containerd",
    "/usr/sbin/containerd",
    "/run/current-system/sw/bin/containerd",
];
/// What carries a containerd of its own, each with its own configuration.
const BUNDLED: [(&str, &str); 2] = [
    ("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "/var/lib/rancher/k3s/agent/etc/containerd/conf.d"),
    ("/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "/var/lib/rancher/rke2/agent/etc/containerd/conf.d"),
];
const CONFIG: &str = EngineKind::Containerd.configuration();
const DROP_INS: &str = "/etc/containerd/conf.d";

/// The table of the CRI plugin: version 3, version 2, version 1.
const PLUGINS: [&str; 3] = ["io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri"];

/// containerd where it serves Kubernetes or could: one with its CRI plugin switched off, as docker's
/// packages install it, belongs to docker.
pub(super) fn engines(tree: &Tree) -> Vec<Engine> {
    let packaged = first(tree, &PROGRAMS).or_else(|| first(tree, &[CONFIG]));
    let bundled =
        BUNDLED.into_iter().filter_map(|(config, drop_ins)| read(tree, first(tree, &[config])?, config, drop_ins));
    packaged.and_then(|path| read(tree, path, CONFIG, DROP_INS)).into_iter().chain(bundled).collect()
}

fn read(tree: &Tree, path: &str, config: &str, drop_ins: &str) -> Option<Engine> {
    let mut engine = Engine::new(EngineKind::Containerd, path);
    for file in with_drop_ins(tree, config, drop_ins, ".toml") {
        let Some(value) = parsed(tree, &file, &mut engine.broken) else { continue };
        let disabled = texts(&value, &["disabled_plugins"]).unwrap_or_default();
        if disabled.iter().any(|name| PLUGINS.contains(&name.as_str())) {
            return None;
        }
        for plugin in PLUGINS {
            if let Some(table) = super::at(&value, &["plugins", plugin]) {
                if file != config {
                    // up to 1.7 a section of an imported file takes the place of the whole one (measured, 1.6 and 1.7.24)
                    let replaces = value.get("version").and_then(Value::as_u64).is_none_or(|version| version < 3);
                    if replaces {
                        engine = Engine { broken: engine.broken, ..Engine::new(EngineKind::Containerd, path) };
                    }
                    if replaces || text(table, &["containerd", "default_runtime_name"]).is_some() {
                        engine.overridden_by = Some(file.clone());
                    }
                }
                add(table, &mut engine);
            }
        }
    }
    Some(engine)
}

fn add(plugin: &Value, engine: &mut Engine) {
    let mut systemd = Vec::new();
    for (name, runtime) in members(plugin, &["containerd", "runtimes"]) {
        // `Runtime` in version 1; without either the shim takes runc
        let program = text(runtime, &["options", "BinaryName"])
            .or_else(|| text(runtime, &["options", "Runtime"]))
            .or_else(|| text(runtime, &["runtime_engine"]))
            .or_else(|| text(runtime, &["runtime_type"]));
        engine.runtimes.insert(name.clone(), program.unwrap_or_default());
        systemd.extend(boolean(runtime, &["options", "SystemdCgroup"]));
    }
    systemd.extend(boolean(plugin, &["systemd_cgroup"]).filter(|on| *on));
    take(&mut engine.systemd_cgroup, (!systemd.is_empty()).then(|| systemd.contains(&true)));
    take(&mut engine.default_runtime, text(plugin, &["containerd", "default_runtime_name"]));
    take(&mut engine.cdi, boolean(plugin, &["enable_cdi"]));
    take(&mut engine.cdi_spec_dirs, texts(plugin, &["cdi_spec_dirs"]));
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;

    fn with(plugin: &str) -> String {
        format!(
            "[plugins.{plugin}]\nenable_cdi = true\ncdi_spec_dirs = [\"/etc/cdi\"]\n[plugins.{plugin}.containerd]\ndefault_runtime_name = \"nvidia\"\n[plugins.{plugin}.containerd.runtimes.nvidia]\nruntime_type = \"io.containerd.runc.v2\"\n[plugins.{plugin}.containerd.runtimes.nvidia.options]\nBinaryName = \"/usr/bin/nvidia-container-runtime\"\nSystemdCgroup = true\n[plugins.{plugin}.containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n"
        )
    }

    #[test]
    fn all_three_versions_of_the_format_are_read() {
        for plugin in ["\"io.containerd.cri.v1.runtime\"", "\"io.containerd.grpc.v1.cri\"", "cri"] {
            let laid = Laid::out(&[(PROGRAMS[0], ""), (CONFIG, &with(plugin))]);
            let engine = engines(&laid.tree()).remove(0);
            assert_eq!(engine.runtimes["nvidia"], "/usr/bin/nvidia-container-runtime", "{plugin}");
            assert_eq!(engine.runtimes["runc"], "io.containerd.runc.v2");
            assert_eq!(
                (engine.default_runtime.as_deref(), engine.cdi, engine.systemd_cgroup),
                (Some("nvidia"), Some(true), Some(true))
            );
            assert_eq!(engine.cdi_spec_dirs.as_deref(), Some(&["/etc/cdi".to_owned()][..]));
        }
    }

    #[test]
    fn drop_ins_add_runtimes_and_dockers_own_containerd_is_none() {
        let drop_in =
            "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.nvidia.options]\nBinaryName = \"/opt/n\"\n";
        let laid = Laid::out(&[(CONFIG, "version = 3\n"), ("/etc/containerd/conf.d/99-nvidia.toml", drop_in)]);
        assert_eq!(engines(&laid.tree()).remove(0).runtimes["nvidia"], "/opt/n");
        let laid = Laid::out(&[(PROGRAMS[0], ""), (CONFIG, "disabled_plugins = [\"cri\"]\n")]);
        assert!(engines(&laid.tree()).is_empty());
        let laid = Laid::out(&[(BUNDLED[0].0, "version = 2\n")]);
        assert_eq!(engines(&laid.tree()).remove(0).path, BUNDLED[0].0);
    }
}
