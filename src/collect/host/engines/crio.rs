//! CRI-O: `crio.conf` and its drop-ins.

use super::{first, members, parsed, take, text, texts, with_drop_ins};
use crate::collect::tree::Tree;
use crate::model::host::{Engine, EngineKind};

const PROGRAMS: [&str; 2] = ["/usr/bin/crio", "/usr/local/bin/crio"];
const CONFIG: &str = "/etc/crio/crio.conf";
const DROP_INS: &str = "/etc/crio/crio.conf.d";

pub(super) fn engine(tree: &Tree) -> Option<Engine> {
    let mut engine =
        Engine::new(EngineKind::Crio, first(tree, &PROGRAMS).or_else(|| first(tree, &[CONFIG, DROP_INS]))?);
    // every file of the directory counts, whatever its ending
    for path in with_drop_ins(tree, CONFIG, DROP_INS, "") {
        let Some(value) = parsed(tree, &path, &mut engine.broken) else { continue };
        for (name, runtime) in members(&value, &["crio", "runtime", "runtimes"]) {
            // without a path CRI-O looks for a program of the runtime's name
            let program = text(runtime, &["runtime_path"]).unwrap_or_else(|| name.clone());
            engine.runtimes.insert(name.clone(), program);
        }
        take(&mut engine.default_runtime, text(&value, &["crio", "runtime", "default_runtime"]));
        let manager = text(&value, &["crio", "runtime", "cgroup_manager"]);
        take(&mut engine.systemd_cgroup, manager.map(|manager| manager == "systemd"));
        take(&mut engine.hooks_dirs, texts(&value, &["crio", "runtime", "hooks_dir"]));
        take(&mut engine.cdi_spec_dirs, texts(&value, &["crio", "runtime", "cdi_spec_dirs"]));
    }
    Some(engine)
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn runtimes_of_all_files_count() {
        let laid = Laid::out(&[
            (
                CONFIG,
                "[crio.runtime]\ndefault_runtime = \"crun\"\ncgroup_manager = \"systemd\"\ncdi_spec_dirs = [\"/etc/cdi\"]\n",
            ),
            (
                "/etc/crio/crio.conf.d/99-nvidia.conf",
                "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/usr/bin/nvidia-container-runtime\"\n[crio.runtime.runtimes.crun]\n",
            ),
        ]);
        let engine = engine(&laid.tree()).unwrap();
        assert_eq!((engine.path.as_str(), engine.systemd_cgroup), (CONFIG, Some(true)));
        assert_eq!(engine.runtimes["nvidia"], "/usr/bin/nvidia-container-runtime");
        assert_eq!((engine.runtimes["crun"].as_str(), engine.default_runtime.as_deref()), ("crun", Some("crun")));
        assert_eq!(engine.cdi_spec_dirs.as_deref(), Some(&["/etc/cdi".to_owned()][..]));
    }
}
