//! What this program is called where engines name it.

/// The name that our runtime has in every engine's configuration.
pub const RUNTIME_NAME: &str = "gpu-preflight";

/// Where the static program lies; every registration names it.
pub const DIRECTORY: &str = "/usr/libexec/gpu-preflight";
/// The program under its name as hook.
pub const HOOK: &str = "/usr/libexec/gpu-preflight/gpu-preflight-hook";
/// The program under its name as runtime.
pub const RUNTIME: &str = "/usr/libexec/gpu-preflight/gpu-preflight-runtime";

/// What the names of programs begin with that call ours with arguments.
pub const WRAPPER: &str = "gpu-preflight-runtime-for-";
/// The file of a hooks directory. Hooks run in the order of their names: behind NVIDIA's.
pub const HOOK_FILE: &str = "zz-gpu-preflight.json";
/// Where podman and CRI-O take hooks from, if their configuration names no other directory.
pub const HOOKS_DIRECTORY: &str = "/usr/share/containers/oci/hooks.d";
/// Where NRI's plugins lie that containerd starts by itself (its `nri` plugin's `plugin_path`).
pub const NRI_PLUGINS: &str = "/opt/nri/plugins";
/// Where `install` keeps what it changed.
pub const RECORDS: &str = "/var/lib/gpu-preflight/registered";

/// Our runtime, whatever directory or wrapper it is in.
pub fn is_our_runtime(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    name == "gpu-preflight-runtime" || name.starts_with(WRAPPER)
}
