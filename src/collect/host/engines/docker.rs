//! docker: `daemon.json`, and the arguments that unit files add.

use super::{LIMIT, boolean, first, members, parsed, take, text, texts};
use crate::collect::host::look::{names, processes, seems_there};
use crate::collect::tree::Tree;
use crate::model::host::{Engine, EngineKind, Invalid};

const PROGRAMS: [&str; 4] =
    ["/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd", "/run/current-system/sw/bin/dockerd"];
const CONFIG: &str = EngineKind::Docker.configuration();
const SNAP: [&str; 3] = ["/snap/docker", "/snap/bin/docker", "/var/snap/docker"];
const SNAP_CONFIG: &str = "/var/snap/docker/current/config/daemon.json";
const DROP_INS: &str = "/etc/systemd/system/docker.service.d";

/// docker of a package, docker as a snap, or both.
pub(super) fn engines(tree: &Tree) -> Vec<Engine> {
    let packaged = first(tree, &PROGRAMS).or_else(|| first(tree, &[CONFIG])).map(|path| {
        let mut engine = read(tree, path, CONFIG);
        unit_arguments(tree, &mut engine);
        engine.runtime_flags = flags(tree);
        engine
    });
    let snap = first(tree, &SNAP).map(|path| Engine { snap: true, ..read(tree, path, SNAP_CONFIG) });
    packaged.into_iter().chain(snap).collect()
}

fn read(tree: &Tree, path: &str, config: &str) -> Engine {
    let mut engine = Engine::new(EngineKind::Docker, path);
    let Some(value) = parsed(tree, config, &mut engine.broken) else {
        engine.invalid = invalid(tree, config);
        return engine;
    };
    for (name, runtime) in members(&value, &["runtimes"]) {
        // the newer form names a shim by its type, with options
        let program = text(runtime, &["path"])
            .or_else(|| text(runtime, &["options", "BinaryName"]))
            .or_else(|| text(runtime, &["runtimeType"]));
        engine.runtimes.insert(name.clone(), program.unwrap_or_default());
        engine.runtime_args.extend(texts(runtime, &["runtimeArgs"]).map(|args| (name.clone(), args)));
    }
    engine.default_runtime = text(&value, &["default-runtime"]);
    engine.cdi = boolean(&value, &["features", "cdi"]);
    engine.cdi_spec_dirs = texts(&value, &["cdi-spec-dirs"]);
    for option in texts(&value, &["exec-opts"]).unwrap_or_default() {
        take(&mut engine.systemd_cgroup, option.strip_prefix("native.cgroupdriver=").map(|driver| driver == "systemd"));
    }
    engine
}

/// Why dockerd does not start with a file: only what Go's decoder refuses as ours does.
fn invalid(tree: &Tree, file: &str) -> Option<Invalid> {
    let text = tree.read_text(file, LIMIT).ok()??;
    // dockerd takes UTF-16 and a mark at the beginning (from 23 on), and its older releases differ about an empty file
    let is_plain = !text.trim().is_empty() && !text.starts_with(['\u{feff}', '\u{fffd}']) && !text.contains('\0');
    // of what stands behind the first value it takes no notice
    let first = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>().next();
    let (true, Some(Err(error))) = (is_plain, first) else { return None };
    let reason = error.to_string();
    let is_ours_alone =
        ["surrogate", "code point", "recursion", "out of range"].iter().any(|what| reason.contains(what));
    let is_read = !unit_texts(tree).any(|text| text.contains("--config-file"));
    (!is_ours_alone && is_read).then(|| Invalid {
        file: file.to_owned(),
        reason,
        runs: processes(tree, "dockerd").map(|running| !running.is_empty()),
    })
}

/// Flags that name runtimes, wherever the unit takes its command line from: whether they count in the end only systemd
/// knows, and a file that names runtimes beside them keeps docker from starting.
fn flags(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for text in unit_texts(tree) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            for flag in ["--add-runtime", "--default-runtime"].into_iter().filter(|flag| line.contains(flag)) {
                found.push(flag.to_owned());
            }
        }
    }
    found
}

/// The files that docker's command line is made of, where systemd or a script starts it.
fn unit_texts(tree: &Tree) -> impl Iterator<Item = String> {
    let unit = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
    let unit =
        unit.map(|directory| format!("{directory}/docker.service")).into_iter().find(|path| seems_there(tree, path));
    let drop_ins = names(tree, DROP_INS, 64).unwrap_or_default().into_iter().map(|name| format!("{DROP_INS}/{name}"));
    let variables = ["/etc/default/docker", "/etc/sysconfig/docker"].map(str::to_owned);
    unit.into_iter().chain(drop_ins).chain(variables).filter_map(|path| tree.read_text(&path, LIMIT).ok().flatten())
}

/// nvidia-docker's old instructions register the runtime in a drop-in of docker's unit.
fn unit_arguments(tree: &Tree, engine: &mut Engine) {
    for name in names(tree, DROP_INS, 64).unwrap_or_default() {
        let Ok(Some(content)) = tree.read_text(&format!("{DROP_INS}/{name}"), LIMIT) else { continue };
        let content = content.replace("\\\n", " ");
        for line in content.lines().filter(|line| line.trim_start().starts_with("ExecStart=")) {
            let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
            while let Some(word) = words.next() {
                let (flag, value) = match word.split_once('=') {
                    Some((flag, value)) => (flag, Some(value)),
                    None => (word, None),
                };
                if !matches!(flag, "--add-runtime" | "--default-runtime") {
                    continue;
                }
                let Some(value) = value.or_else(|| words.next()).map(|value| value.trim_matches(['"', '\''])) else {
                    break;
                };
                match value.split_once('=') {
                    Some((name, program)) if flag == "--add-runtime" => {
                        engine.runtimes.entry(name.to_owned()).or_insert_with(|| program.to_owned());
                    }
                    _ => engine.default_runtime = Some(value.to_owned()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;

    const SAMPLE: &str = r#"{
      "default-runtime": "nvidia", "data-root": "/srv/docker", "features": {"cdi": true, "buildkit": true},
      "cdi-spec-dirs": ["/etc/cdi"], "exec-opts": ["native.cgroupdriver=cgroupfs"],
      "runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": ["--debug"]},
                   "kata": {"runtimeType": "io.containerd.kata.v2"}}}"#;

    #[test]
    fn the_daemons_configuration_is_read() {
        let laid = Laid::out(&[(PROGRAMS[0], ""), (CONFIG, SAMPLE)]);
        let found = engines(&laid.tree());
        let [engine] = found.as_slice() else { panic!("{found:?}") };
        let runtimes = [("nvidia", "nvidia-container-runtime"), ("kata", "io.containerd.kata.v2")];
        assert_eq!(engine.runtimes, runtimes.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
        assert_eq!(engine.runtime_args["nvidia"], ["--debug"]);
        assert_eq!(
            (engine.default_runtime.as_deref(), engine.cdi, engine.systemd_cgroup),
            (Some("nvidia"), Some(true), Some(false))
        );
        assert_eq!(
            (engine.cdi_spec_dirs.as_deref(), engine.broken.as_deref()),
            (Some(&["/etc/cdi".to_owned()][..]), None)
        );
    }

    #[test]
    fn arguments_of_the_unit_count() {
        let unit = "[Service]\nExecStart=\nExecStart=/usr/bin/dockerd --host=fd:// \\\n --add-runtime=nvidia=/usr/bin/nvidia-container-runtime --default-runtime nvidia\n";
        let laid = Laid::out(&[(PROGRAMS[0], ""), ("/etc/systemd/system/docker.service.d/override.conf", unit)]);
        let engine = engines(&laid.tree()).remove(0);
        assert_eq!(engine.runtimes["nvidia"], "/usr/bin/nvidia-container-runtime");
        assert_eq!(engine.default_runtime.as_deref(), Some("nvidia"));
    }

    #[test]
    fn a_snap_has_its_own_configuration_and_a_broken_one_is_named() {
        let laid = Laid::out(&[("/snap/bin/docker", ""), (SNAP_CONFIG, "{\"runtimes\": }")]);
        let engine = engines(&laid.tree()).remove(0);
        assert!(engine.snap && engine.runtimes.is_empty());
        assert_eq!(engine.broken, Some(format!("{SNAP_CONFIG}: no valid JSON")));
    }
}
