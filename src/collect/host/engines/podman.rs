//! podman: `containers.conf` in its three places, the later ones over the earlier.

use serde_json::Value;

use super::{first, members, parsed, take, text, texts, with_drop_ins};
use crate::collect::host::look::seems_there;
use crate::collect::tree::Tree;
use crate::model::host::{Engine, EngineKind};

const PROGRAMS: [&str; 3] = ["/usr/bin/podman", "/usr/local/bin/podman", "/run/current-system/sw/bin/podman"];

/// By its program, or by a configuration that somebody wrote on this machine: the program may lie in a
/// store of packages. What a vendor ships comes with buildah and skopeo as well.
pub(super) fn engine(tree: &Tree) -> Option<Engine> {
    let vendor = "/usr/share/containers/containers.conf";
    let local = "/etc/containers/containers.conf";
    let mut engine = Engine::new(EngineKind::Podman, first(tree, &PROGRAMS).or_else(|| first(tree, &[local]))?);
    for (main, drop_ins) in
        [(vendor, "/usr/share/containers/containers.conf.d"), (local, "/etc/containers/containers.conf.d")]
    {
        for path in with_drop_ins(tree, main, drop_ins, ".conf") {
            if let Some(value) = parsed(tree, &path, &mut engine.broken) {
                read(tree, &value, &mut engine);
            }
        }
    }
    Some(engine)
}

fn read(tree: &Tree, value: &Value, engine: &mut Engine) {
    for (name, paths) in members(value, &["engine", "runtimes"]) {
        // podman takes the first that is there
        let paths: Vec<&str> = paths.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let program = paths.iter().find(|path| seems_there(tree, path)).or(paths.first());
        engine.runtimes.extend(program.map(|path| (name.clone(), (*path).to_owned())));
    }
    take(&mut engine.default_runtime, text(value, &["engine", "runtime"]));
    take(&mut engine.systemd_cgroup, text(value, &["engine", "cgroup_manager"]).map(|manager| manager == "systemd"));
    take(&mut engine.hooks_dirs, texts(value, &["engine", "hooks_dir"]));
    take(&mut engine.cdi_spec_dirs, texts(value, &["engine", "cdi_spec_dirs"]));
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn a_configuration_of_this_machine_is_enough_and_a_vendors_is_not() {
        let of = |path: &str| engine(&Laid::out(&[(path, "[engine]\ncdi_spec_dirs = [\"/etc/cdi\"]\n")]).tree());
        let found = of("/etc/containers/containers.conf").unwrap();
        assert_eq!(found.path, "/etc/containers/containers.conf");
        assert_eq!(found.cdi_spec_dirs, Some(vec!["/etc/cdi".into()]));
        assert_eq!(of("/usr/share/containers/containers.conf"), None);
    }

    #[test]
    fn later_files_stand_over_earlier_ones() {
        let laid = Laid::out(&[
            (PROGRAMS[0], ""),
            ("/usr/bin/crun", ""),
            (
                "/usr/share/containers/containers.conf",
                "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\n[engine.runtimes]\ncrun = [\"/opt/crun\", \"/usr/bin/crun\"]\n",
            ),
            ("/etc/containers/containers.conf", "[engine]\nruntime = \"crun\"\n"),
            ("/etc/containers/containers.conf.d/10.conf", "[engine]\ncdi_spec_dirs = [\"/etc/cdi\", \"/opt/cdi\"]\n"),
        ]);
        let engine = engine(&laid.tree()).unwrap();
        assert_eq!(engine.runtimes["crun"], "/usr/bin/crun");
        assert_eq!((engine.default_runtime.as_deref(), engine.systemd_cgroup), (Some("crun"), Some(false)));
        assert_eq!(engine.cdi_spec_dirs, Some(vec!["/etc/cdi".into(), "/opt/cdi".into()]));
    }
}
