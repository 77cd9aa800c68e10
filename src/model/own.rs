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

/// A larger file is none of our programs. Bytes.
pub const LARGEST_PROGRAM: usize = 64 << 20;

/// The name under which our static program is a hook.
pub const HOOK_NAME: &str = "gpu-preflight-hook";
/// The arguments with which engines call the hook.
pub const HOOK_ARGUMENTS: [&str; 3] = [HOOK_NAME, "--stage", "createRuntime"];
/// The hook's whole environment.
pub const HOOK_ENVIRONMENT: &str = "PATH=/usr/bin:/bin";

/// The seconds that the hook is given besides those that it may wait for the driver.
pub const HOOK_SECONDS: u32 = 5;

/// After how many seconds the engine ends the hook. `wait`: seconds of the policy's `wait_for_driver`.
pub fn hook_seconds(wait: u64) -> u64 {
    wait.saturating_add(HOOK_SECONDS.into())
}

/// A plugin of NRI that reads a hooks directory (containerd's `hook-injector`, behind its number).
pub fn is_hook_injector(plugin: &str) -> bool {
    plugin.ends_with("hook-injector")
}

/// Our runtime, whatever directory or wrapper it is in.
pub fn is_our_runtime(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    name == "gpu-preflight-runtime" || name.starts_with(WRAPPER)
}
