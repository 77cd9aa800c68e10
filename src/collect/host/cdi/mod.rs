//! CDI specifications: what engines inject when a device is asked for by its CDI name.

use std::collections::BTreeSet;

use super::look::{ending, fact, names_if_there};
use crate::collect::tree::Tree;
use crate::model::host::{CdiSpec, Engine};
use crate::model::{Observed, Unseen};

mod parse;

/// Later directories stand over earlier ones. `/var/run` is a link to `/run` nearly everywhere.
const DIRECTORIES: [&str; 3] = ["/etc/cdi", "/var/run/cdi", "/run/cdi"];
const FILES: usize = 64;
/// A specification of a machine with eight GPUs has about 60 kB.
const FILE: usize = 4 << 20;
const PATHS: usize = 4096;

/// The specifications in the usual directories and in those that engines are configured with, each
/// directory once. Only `.json` and `.yaml` count: the engines' library passes over anything else
/// (container-device-interface 05ae4b5b, 2026-08-21).
pub fn cdi(tree: &Tree, engines: &[Engine]) -> Observed<Vec<CdiSpec>> {
    fact("host.cdi", read(tree, engines))
}

fn read(tree: &Tree, engines: &[Engine]) -> Result<Vec<CdiSpec>, Unseen> {
    let configured = engines.iter().filter_map(|engine| engine.cdi_spec_dirs.as_ref()).flatten().map(String::as_str);
    let mut seen = BTreeSet::new();
    let mut specs = Vec::new();
    for directory in DIRECTORIES.into_iter().chain(configured) {
        let Some(stat) = tree.stat(directory)? else { continue };
        if !seen.insert(stat.identity) {
            continue;
        }
        for name in names_if_there(tree, directory, 1 << 12)?.unwrap_or_default() {
            if !matches!(ending(&name), "json" | "yaml") {
                continue;
            }
            if specs.len() == FILES {
                return Err(Unseen::new(directory, format!("more than {FILES} specifications")));
            }
            specs.extend(spec(tree, &format!("{directory}/{name}"))?);
        }
    }
    Ok(specs)
}

/// `None`: a link to nothing, or removed since.
fn spec(tree: &Tree, path: &str) -> Result<Option<CdiSpec>, Unseen> {
    let text = match tree.read_text(path, FILE) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(unseen) => return Ok(Some(broken(path, unseen.reason))),
    };
    let value = if ending(path) == "json" {
        serde_json::from_str(&text).map_err(|_| "no valid JSON")
    } else {
        serde_saphyr::from_str(&text).map_err(|_| "no valid YAML")
    };
    let parsed: Result<CdiSpec, &str> = value.and_then(|value| parse::spec(path, &value));
    let mut spec = match parsed {
        Ok(spec) => spec,
        Err(reason) => return Ok(Some(broken(path, reason))),
    };
    for host_path in host_paths(&spec) {
        if tree.stat(&host_path)?.is_none() {
            spec.gone.push(host_path);
        }
    }
    Ok(Some(spec))
}

fn broken(path: &str, reason: impl Into<String>) -> CdiSpec {
    CdiSpec { path: path.to_owned(), broken: Some(reason.into()), ..CdiSpec::default() }
}

/// Every path of the host that a specification names, each once.
fn host_paths(spec: &CdiSpec) -> BTreeSet<String> {
    let nodes = spec.nodes.iter().chain(spec.devices.iter().flat_map(|device| &device.nodes));
    let nodes = nodes.map(|node| node.host_path.as_ref().unwrap_or(&node.path));
    let hooks = spec.hooks.iter().map(|hook| &hook.path);
    nodes.chain(&spec.mounts).chain(hooks).filter(|path| path.starts_with('/')).take(PATHS).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    const SPEC: &str = r#"
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      major: 195
      fileMode: 438
      permissions: rwm
- name: all
  containerEdits:
    deviceNodes:
    - {path: /dev/nvidia0}
    mounts:
    - {hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01, containerPath: /x, options: [ro]}
containerEdits:
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  deviceNodes:
  - path: /dev/nvidia-uvm
    hostPath: /run/nvidia/driver/dev/nvidia-uvm
    major: 0
    gid: 44
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib/x86_64-linux-gnu]
  mounts:
  - containerPath: /usr/bin/nvidia-smi
    hostPath: /usr/bin/nvidia-smi
  - containerPath: /usr/lib/x86_64-linux-gnu/libGLX_nvidia.so.550.163.01
    hostPath: /usr/lib/x86_64-linux-gnu/libGLX_nvidia.so.550.163.01
"#;

    fn specs(laid: &Laid, engines: &[Engine]) -> Vec<CdiSpec> {
        cdi(&laid.tree(), engines).known().unwrap().clone()
    }

    #[test]
    fn a_specification_is_read_with_what_is_gone_of_it() {
        let laid = Laid::out(&[
            ("/etc/cdi/nvidia.yaml", SPEC),
            ("/dev/nvidia0", ""),
            ("/usr/bin/nvidia-cdi-hook", ""),
            ("/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01", ""),
        ]);
        let spec = specs(&laid, &[]).remove(0);
        assert_eq!(
            (spec.version.as_str(), spec.kind.as_str(), spec.broken.as_deref()),
            ("0.5.0", "nvidia.com/gpu", None)
        );
        assert_eq!(spec.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["0", "all"]);
        let node = &spec.devices[0].nodes[0];
        assert_eq!(
            (node.path.as_str(), node.major, node.minor, node.mode),
            ("/dev/nvidia0", Some(195), None, Some(0o666))
        );
        assert_eq!((spec.nodes[0].major, spec.nodes[0].gid), (None, Some(44)), "a major of 0 means the node's own");
        assert_eq!(spec.mounts.len(), 3);
        assert_eq!(spec.hooks[0].args[1], "update-ldcache");
        assert_eq!(spec.driver.unwrap().as_str(), "550.163.01");
        let gone = [
            "/run/nvidia/driver/dev/nvidia-uvm",
            "/usr/bin/nvidia-smi",
            "/usr/lib/x86_64-linux-gnu/libGLX_nvidia.so.550.163.01",
        ];
        assert_eq!(spec.gone, gone);
    }

    #[test]
    fn each_directory_is_read_once_and_only_files_that_engines_read() {
        let json = r#"{"cdiVersion": "0.3.0", "kind": "vendor.com/net", "devices": []}"#;
        let laid = Laid::out(&[
            ("/run/cdi/a.json", json),
            ("/run/cdi/b.yml", SPEC),
            ("/opt/cdi/c.json", json),
            ("/run/cdi/d.yaml", "a: ["),
        ]);
        laid.link("/run", "/var/run");
        let mut docker = super::super::engines(&Laid::out(&[("/usr/bin/dockerd", "")]).tree()).remove(0);
        docker.cdi_spec_dirs = Some(vec!["/opt/cdi".into(), "/run/cdi".into()]);
        let found = specs(&laid, &[docker]);
        let told: Vec<_> = found.iter().map(|s| (s.path.as_str(), s.broken.as_deref())).collect();
        let expected =
            [("/var/run/cdi/a.json", None), ("/var/run/cdi/d.yaml", Some("no valid YAML")), ("/opt/cdi/c.json", None)];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_machine_without_cdi_has_no_specifications() {
        assert!(specs(&Laid::out(&[]), &[]).is_empty());
    }
}
