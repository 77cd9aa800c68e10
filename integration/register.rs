//! `install`, `uninstall` and `status` on laid-out machines: what is written, and that it is taken back to the byte.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::process::{Ended, Run};
use crate::support::{Scratch, link, needs, programs, scratch, write};

const DAEMON: &str = "{\n    \"default-runtime\": \"nvidia\",\n    \"runtimes\": {\n        \"nvidia\": {\"path\": \
    \"nvidia-container-runtime\", \"args\": []}\n    },\n    \"log-level\": \"warn\"\n}";
const CONTAINERD: &str = "version = 2\n\n[plugins]\n  [plugins.\"io.containerd.grpc.v1.cri\"]\n    \
    sandbox_image = \"registry.k8s.io/pause:3.9\" # kubeadm\n    [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\n      \
    runtime_type = \"io.containerd.runc.v2\"\n      [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\n        \
    SystemdCgroup = true\n";
const NVIDIA: &str = "#debug = \"x\"\n[nvidia-container-runtime]\nmode = \"auto\"\nruntimes = [\"runc\", \"crun\"]\n";
const FILES: [(&str, &str); 3] = [
    ("etc/docker/daemon.json", DAEMON),
    ("etc/containerd/config.toml", CONTAINERD),
    ("etc/nvidia-container-runtime/config.toml", NVIDIA),
];
const HOOK: &str = "usr/share/containers/oci/hooks.d/zz-gpu-preflight.json";
const PROGRAMS: &str = "usr/libexec/gpu-preflight";

/// A machine with engines, and with the programs beside the command line program.
struct Machine(Scratch);

impl Machine {
    /// `None`: said and skipped.
    fn new() -> Option<Self> {
        if !needs::released() {
            return None;
        }
        let machine = Self(scratch());
        for program in ["dockerd", "podman", "containerd", "crio", "nvidia-container-runtime", "runc", "crun"] {
            let path = machine.at(&format!("usr/bin/{program}"));
            write(&path, "#!/bin/sh\n");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        for (path, text) in FILES {
            write(&machine.at(path), text);
        }
        for directory in ["proc", "usr/share/containers", "usr/libexec", "var/lib"] {
            std::fs::create_dir_all(machine.at(directory)).expect("a directory");
        }
        Some(machine)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.at("root").join(path)
    }

    fn run(&self, args: &[&str]) -> Ended {
        programs::gpu_preflight(args).args([Path::new("--host-root"), &self.at("")]).end()
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).expect("JSON")
    }

    /// Everything on the machine but our programs: path, mode, contents.
    fn everything(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.at("")];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(&directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                let status = std::fs::symlink_metadata(&path).expect("a file");
                if path.ends_with(PROGRAMS) {
                    continue;
                }
                let content = if status.is_file() { std::fs::read(&path).expect("a file") } else { Vec::new() };
                if status.is_dir() {
                    left.push(path.clone());
                }
                found.insert(path, (status.mode(), content));
            }
        }
        found
    }
}

fn done(ended: &Ended) -> &str {
    assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
    &ended.stdout
}

#[test]
fn what_is_installed_twice_and_taken_out_leaves_no_trace() {
    let Some(machine) = Machine::new() else { return };
    std::fs::set_permissions(machine.at(FILES[0].0), std::fs::Permissions::from_mode(0o640)).expect("its mode");
    let before = machine.everything();
    done(&machine.run(&["install"]));
    let installed = machine.everything();
    assert_ne!(installed, before);
    let again = machine.run(&["install"]);
    assert!(done(&again).lines().all(|line| line.ends_with("nothing to change")), "{again:?}");
    assert_eq!(machine.everything(), installed, "a second run changes nothing");

    let daemon = machine.json(FILES[0].0);
    assert_eq!(daemon["default-runtime"], "gpu-preflight");
    assert_eq!(daemon["runtimes"]["gpu-preflight"]["runtimeArgs"], json!(["--runtime", "nvidia-container-runtime"]));
    assert!(machine.text(FILES[1].0).contains("# kubeadm"));
    assert!(machine.text(FILES[2].0).starts_with("#debug = \"x\"\n"));
    let program = |name: &str| std::fs::metadata(machine.at(PROGRAMS).join(name)).expect(name);
    let (hook, runtime) = (program("gpu-preflight-hook"), program("gpu-preflight-runtime"));
    assert_eq!((hook.ino(), hook.mode() & 0o7777), (runtime.ino(), 0o755));

    done(&machine.run(&["uninstall"]));
    assert_eq!(machine.everything(), before);
    assert!(done(&machine.run(&["uninstall"])).contains("no engine has it"));
}

#[test]
fn the_policy_for_build_hosts_leaves_no_directory_behind() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.everything();
    done(&machine.run(&["install", "podman", "--build-host"]));
    assert!(machine.text("etc/gpu-preflight/conf.d/50-build-host.toml").contains("gpu-not-requested"));
    done(&machine.run(&["uninstall"]));
    assert_eq!(machine.everything(), before);
    // what somebody else has there stays
    done(&machine.run(&["install", "podman", "--build-host"]));
    write(&machine.at("etc/gpu-preflight/config.toml"), "");
    done(&machine.run(&["uninstall"]));
    assert!(machine.at("etc/gpu-preflight/config.toml").exists());
}

#[test]
fn a_file_that_several_engines_need_stays_until_the_last() {
    let Some(machine) = Machine::new() else { return };
    let there = "{\"version\": \"1.0.0\"}";
    write(&machine.at(HOOK), there);
    write(&machine.at("opt/nri/plugins/10-hook-injector"), "");
    let before = machine.everything();
    done(&machine.run(&["install"]));
    for engine in ["podman", "crio"] {
        let ended = machine.run(&["uninstall", engine]);
        assert!(done(&ended).contains("stays"), "{ended:?}");
        assert!(machine.text(HOOK).contains("gpu-preflight-hook"), "after {engine}");
    }
    done(&machine.run(&["uninstall", "containerd"]));
    assert_eq!(machine.text(HOOK), there, "what stood there stands there again");
    done(&machine.run(&["uninstall"]));
    assert_eq!(machine.everything(), before);
}

#[test]
fn where_others_have_the_last_word_the_file_is_left() {
    let Some(machine) = Machine::new() else { return };
    write(&machine.at("etc/default/docker"), "DOCKER_OPTS=\"--default-runtime=crun\"\n");
    let drop_in = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"x\"\n";
    write(&machine.at("etc/containerd/conf.d/1.toml"), drop_in);
    let before = machine.everything();
    for (engine, why) in [("docker", "--default-runtime"), ("containerd", "/etc/containerd/conf.d/1.toml")] {
        let ended = machine.run(&["install", engine]);
        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.stdout.contains(why), "{ended:?}");
    }
    assert_eq!(machine.everything(), before);
}

#[test]
fn an_end_in_the_middle_of_uninstall_costs_no_file() {
    let Some(machine) = Machine::new() else { return };
    if !needs::root() || !needs::tools(&["strace"]) {
        return;
    }
    let before = machine.everything();
    for calls in ["unlink", "rmdir", "rename", "fsync"] {
        for when in 1..12 {
            done(&machine.run(&["install"]));
            let inject = format!("inject={calls}:signal=KILL:when={when}");
            let command = ["-f", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e", &inject];
            let run = Run::new(needs::find("strace").expect("strace")).args(command).args([programs::cli()]);
            let _ = run.args(["uninstall", "--host-root"]).args([machine.at("")]).end();
            done(&machine.run(&["uninstall"]));
            for (path, text) in FILES {
                assert_eq!(machine.text(path), text, "{path}, {calls} {when}");
            }
        }
    }
    // what a killed run leaves behind is no engine's: its record, what it was writing, and empty directories
    let everything = machine.everything();
    let records = machine.at("var/lib/gpu-preflight");
    let of_engines =
        |path: &&PathBuf| !before.contains_key(*path) && !path.starts_with(&records) && !is_temporary(path);
    let left: Vec<_> = everything.keys().filter(of_engines).filter(|path| path.is_file()).collect();
    assert_eq!(left, [""; 0].map(PathBuf::from).iter().collect::<Vec<_>>());
}

/// A file that was being written when its writer was killed.
fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

#[test]
fn two_runs_at_once_are_one_after_the_other() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.everything();
    for _ in 0..5 {
        std::thread::scope(|scope| {
            for args in [&["install", "docker", "--no-default"][..], &["install", "docker"], &["install"]] {
                scope.spawn(|| machine.run(args));
            }
        });
        done(&machine.run(&["uninstall"]));
        assert_eq!(machine.everything(), before);
    }
}

#[test]
fn what_was_kept_and_is_gone_costs_no_file() {
    let Some(machine) = Machine::new() else { return };
    done(&machine.run(&["install", "docker"]));
    std::fs::remove_dir_all(machine.at("var/lib/gpu-preflight/registered/files")).expect("what was kept");
    let ended = machine.run(&["uninstall", "docker"]);
    assert_eq!(ended.code(), 2, "{ended:?}");
    assert_eq!(machine.json(FILES[0].0)["default-runtime"], "gpu-preflight");
}

#[test]
fn directories_are_for_all_whatever_the_callers_umask() {
    let Some(machine) = Machine::new() else { return };
    let program = programs::cli().display().to_string();
    let script = format!("umask 077; exec {program} install --host-root {}", machine.at("").display());
    done(&Run::new("/bin/sh").args(["-c", &script]).end());
    for directory in ["usr/libexec/gpu-preflight", "usr/share/containers/oci/hooks.d"] {
        let mode = std::fs::metadata(machine.at(directory)).expect(directory).mode() & 0o7777;
        assert_eq!(mode, 0o755, "{directory}");
    }
}

#[test]
fn a_program_that_others_may_write_is_made_anew() {
    let Some(machine) = Machine::new() else { return };
    done(&machine.run(&["install", "podman"]));
    let program = machine.at(PROGRAMS).join("gpu-preflight-hook");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o777)).expect("its mode");
    done(&machine.run(&["install", "podman"]));
    assert_eq!(std::fs::metadata(&program).expect("the program").mode() & 0o7777, 0o755);
}

#[test]
fn what_would_be_done_is_shown_and_not_done() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.everything();
    let shown = machine.run(&["install", "docker", "--dry-run"]);
    for line in [
        "-    \"default-runtime\": \"nvidia\",",
        "+    \"default-runtime\": \"gpu-preflight\",",
        "+++ /etc/docker/daemon.json",
    ] {
        assert!(done(&shown).lines().any(|shown| shown == line), "{line}: {shown:?}");
    }
    assert_eq!(machine.everything(), before);
    assert!(!machine.at(PROGRAMS).join("gpu-preflight-hook").exists());
}

#[test]
fn what_others_wrote_meanwhile_outlives_it() {
    let Some(machine) = Machine::new() else { return };
    done(&machine.run(&["install"]));
    for ((path, _), (from, to)) in
        FILES.iter().zip([("\"warn\"", "\"info\""), ("pause:3.9", "pause:3.10"), ("auto", "cdi")])
    {
        write(&machine.at(path), machine.text(path).replace(from, to));
    }
    done(&machine.run(&["install"]));
    done(&machine.run(&["uninstall"]));
    let daemon: Value = serde_json::from_str(&DAEMON.replace("warn", "info")).expect("JSON");
    assert_eq!(machine.json(FILES[0].0), daemon);
    assert_eq!(machine.text(FILES[1].0), CONTAINERD.replace("3.9", "3.10"));
    assert_eq!(machine.text(FILES[2].0), NVIDIA.replace("auto", "cdi"));
}

#[test]
fn a_broken_file_is_named_and_not_touched() {
    let Some(machine) = Machine::new() else { return };
    for ((path, _), (engine, text)) in
        FILES.iter().zip([("docker", "{\"a\":1,}"), ("containerd", "version = "), ("nvidia", "[x")])
    {
        write(&machine.at(path), text);
        let ended = machine.run(&["install", engine]);
        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.stdout.contains(path) && ended.stdout.contains("left as it is"), "{ended:?}");
        assert_eq!(machine.text(path), text);
    }
    let ended = machine.run(&["install", "--format", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let engines = document["engines"].as_array().expect("engines");
    let states: Vec<_> = engines.iter().map(|engine| (engine["engine"].as_str(), engine["state"].as_str())).collect();
    let expected = [
        ("docker", "failed"),
        ("podman", "changed"),
        ("crio", "unchanged"),
        ("containerd", "failed"),
        ("nvidia", "failed"),
    ];
    assert_eq!((ended.code(), states), (2, expected.map(|(engine, state)| (Some(engine), Some(state))).to_vec()));
}

#[test]
fn a_link_stays_one_and_its_file_is_changed() {
    let Some(machine) = Machine::new() else { return };
    let path = machine.at(FILES[0].0);
    std::fs::rename(&path, machine.at("etc/real.json")).expect("a file");
    link("/etc/real.json", &path);
    done(&machine.run(&["install", "docker"]));
    assert_eq!(std::fs::read_link(&path).expect("a link"), Path::new("/etc/real.json"));
    assert!(machine.text("etc/real.json").contains("gpu-preflight"), "inside the root, not outside");
    done(&machine.run(&["uninstall", "docker"]));
    assert_eq!(machine.text("etc/real.json"), DAEMON);
}

#[test]
fn an_interrupted_change_is_made_whole_by_the_next() {
    let Some(machine) = Machine::new() else { return };
    done(&machine.run(&["install", "docker"]));
    // the file as it was, the record already there
    write(&machine.at(FILES[0].0), DAEMON);
    assert_eq!(machine.run(&["status", "--quiet"]).code(), 1, "status sees it");
    done(&machine.run(&["install", "docker"]));
    assert_eq!(machine.json(FILES[0].0)["default-runtime"], "gpu-preflight");
    done(&machine.run(&["uninstall", "docker"]));
    assert_eq!(machine.text(FILES[0].0), DAEMON);
}

#[test]
fn a_runtime_that_containers_remember_stays_as_a_name() {
    let Some(machine) = Machine::new() else { return };
    done(&machine.run(&["install", "docker"]));
    let container = "var/lib/docker/containers/0123456789abcdef";
    write(&machine.at(&format!("{container}/hostconfig.json")), "{\"Runtime\":\"gpu-preflight\"}");
    write(&machine.at(&format!("{container}/config.v2.json")), "{\"Name\":\"/train\"}");
    let ended = machine.run(&["uninstall", "docker"]);
    assert!(done(&ended).contains("train"), "{ended:?}");
    let daemon = machine.json(FILES[0].0);
    assert_eq!(daemon["default-runtime"], "nvidia");
    assert_eq!(daemon["runtimes"]["gpu-preflight"], json!({"path": "nvidia-container-runtime"}));

    std::fs::remove_dir_all(machine.at(container)).expect("a directory");
    done(&machine.run(&["uninstall", "docker"]));
    assert_eq!(machine.text(FILES[0].0), DAEMON);
}

#[test]
fn status_finds_the_gaps_that_nobody_speaks_of() {
    let Some(machine) = Machine::new() else { return };
    let ids = || {
        let ended = machine.run(&["status", "--format", "json"]);
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let findings = document["findings"].as_array().expect("findings").clone();
        let mut ids: Vec<String> = findings.iter().filter_map(|f| f["id"].as_str().map(str::to_owned)).collect();
        ids.retain(|id| id.starts_with("preflight-"));
        ids
    };
    assert_eq!(ids(), ["preflight-not-registered"]);
    let bare = machine.run(&["status"]);
    assert!(bare.stdout.contains("containers of docker, podman, containerd and crio are not checked"), "{bare:?}");
    done(&machine.run(&["install"]));
    assert_eq!(ids(), [""; 0]);

    let program = machine.at(PROGRAMS).join("gpu-preflight-hook");
    let kept = std::fs::read(&program).expect("the program");
    std::fs::remove_file(&program).expect("the program");
    assert_eq!(ids(), ["preflight-program-missing"]);
    std::fs::write(&program, &kept).expect("the program");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o777)).expect("its mode");
    assert_eq!(ids(), ["preflight-program-unsound"]);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("its mode");

    write(&machine.at("etc/containers/containers.conf"), "[engine]\nhooks_dir = [\"/etc/hooks\"]\n");
    assert_eq!(ids(), ["preflight-not-searched"]);
    std::fs::remove_file(machine.at("etc/containers/containers.conf")).expect("a file");

    write(&machine.at("etc/passwd"), "ada:x:1000:1000::/home/ada:/bin/sh\n");
    write(&machine.at("run/user/1000/docker.sock"), "");
    assert_eq!(ids(), ["preflight-rootless-apart"]);
    write(&machine.at("home/ada/.config/docker/daemon.json"), "{\"default-runtime\": \"gpu-preflight\"}");
    assert_eq!(ids(), [""; 0]);

    write(&machine.at("etc/gpu-preflight/config.toml"), "wait_for_driver = \"60s\"\n");
    std::fs::set_permissions(machine.at("etc/gpu-preflight/config.toml"), std::fs::Permissions::from_mode(0o644))
        .expect("its mode");
    assert_eq!(ids(), ["preflight-timeout-too-short"]);
    done(&machine.run(&["install"]));
    assert_eq!((ids(), machine.json(HOOK)["hook"]["timeout"].as_u64()), (vec![], Some(65)));

    // as an operator's rollout does
    write(&machine.at(FILES[2].0), NVIDIA);
    assert_eq!(ids(), ["preflight-overwritten", "preflight-passed-by"]);
}
