//! Specs for the tests, shortened from what real engines wrote.

use serde_json::{Value, json};

use super::Spec;

/// docker 26 and podman 5 without any GPU: what every container has.
pub(crate) fn plain(env: &[&str]) -> Value {
    json!({
        "ociVersion": "1.2.0",
        "process": {
            "user": {"uid": 0, "gid": 0, "additionalGids": [0]}, "args": ["true"], "cwd": "/", "env": env,
            "capabilities": {"bounding": ["CAP_CHOWN", "CAP_DAC_OVERRIDE"], "effective": ["CAP_CHOWN"], "permitted": ["CAP_CHOWN"]},
            "oomScoreAdj": 0
        },
        "root": {"path": "/var/lib/docker/overlay2/c0ffee/merged"},
        "hostname": "c0ffee000001",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "size=67108864"]},
        ],
        "linux": {
            "resources": {"devices": [
                {"allow": false, "access": "rwm"},
                {"allow": true, "type": "c", "major": 1, "minor": 5, "access": "rwm"},
                {"allow": false, "type": "c", "major": 10, "minor": 229, "access": "rwm"},
            ]},
            "cgroupsPath": "/docker/c0ffee",
            "namespaces": [{"type": "mount"}, {"type": "pid"}]
        }
    })
}

/// Puts nodes into a spec, with a rule for each.
pub(crate) fn with_nodes(mut spec: Value, nodes: &[(&str, i64, i64)]) -> Value {
    let linux = &mut spec["linux"];
    if linux["devices"].is_null() {
        linux["devices"] = json!([]);
    }
    for (path, major, minor) in nodes {
        push(
            &mut linux["devices"],
            json!({"path": path, "type": "c", "major": major, "minor": minor, "fileMode": 438}),
        );
        let rule = json!({"allow": true, "type": "c", "major": major, "minor": minor, "access": "rwm"});
        push(&mut linux["resources"]["devices"], rule);
    }
    spec
}

/// Adds a mount.
pub(crate) fn with_mount(mut spec: Value, destination: &str, source: &str) -> Value {
    let mount = json!({"destination": destination, "source": source, "options": ["ro", "nosuid", "nodev", "rbind"]});
    push(&mut spec["mounts"], mount);
    spec
}

/// Adds a hook.
pub(crate) fn with_hook(mut spec: Value, stage: &str, path: &str, args: &[&str]) -> Value {
    if spec["hooks"][stage].is_null() {
        spec["hooks"][stage] = json!([]);
    }
    push(&mut spec["hooks"][stage], json!({"path": path, "args": args, "env": ["PATH=/usr/bin"]}));
    spec
}

/// All that an engine's CDI injection of one GPU adds (docker 26, podman 5).
pub(crate) fn with_cdi(spec: Value) -> Value {
    let mut spec = with_nodes(
        spec,
        &[
            ("/dev/nvidia-uvm", 511, 0),
            ("/dev/nvidia-uvm-tools", 511, 1),
            ("/dev/nvidiactl", 195, 255),
            ("/dev/nvidia0", 195, 0),
        ],
    );
    push(&mut spec["process"]["env"], json!("NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu"));
    push(&mut spec["process"]["env"], json!("NVIDIA_VISIBLE_DEVICES=void"));
    let lib = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01";
    let spec = with_mount(with_mount(spec, "/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"), lib, lib);
    let args = ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib/x86_64-linux-gnu"];
    with_hook(spec, "createContainer", "/usr/bin/nvidia-cdi-hook", &args)
}

/// All nodes of the host and a rule that allows all, as engines do it for `--privileged`.
pub(crate) fn with_privileges(spec: Value, gpus: bool) -> Value {
    let mut spec =
        with_nodes(spec, &[("/dev/full", 1, 7), ("/dev/fuse", 10, 229), ("/dev/null", 1, 3), ("/dev/zero", 1, 5)]);
    if gpus {
        spec = with_nodes(spec, &[("/dev/nvidia0", 195, 0), ("/dev/nvidiactl", 195, 255), ("/dev/nvidia-uvm", 511, 0)]);
    }
    push(&mut spec["linux"]["resources"]["devices"], json!({"allow": true, "access": "rwm"}));
    spec
}

/// The spec of a value.
pub(crate) fn parse(spec: &Value) -> Spec {
    Spec::parse(spec.to_string().into_bytes(), "config.json")
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().unwrap().push(item);
}
