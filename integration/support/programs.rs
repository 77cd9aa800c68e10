//! The programs under test.

use std::path::PathBuf;

use super::process::Run;

fn directory() -> Option<PathBuf> {
    std::env::var_os("GPU_PREFLIGHT_BIN")
        .map(|dir| std::fs::canonicalize(dir).expect("GPU_PREFLIGHT_BIN names a directory"))
}

/// They are those that `packaging/build.sh` has built.
pub(crate) fn released() -> bool {
    directory().is_some()
}

/// The command line program.
pub(crate) fn cli() -> PathBuf {
    directory().map_or_else(|| env!("CARGO_BIN_EXE_gpu-preflight").into(), |dir| dir.join("gpu-preflight"))
}

/// The static program under its name as hook.
pub(crate) fn hook() -> PathBuf {
    directory().map_or_else(|| env!("CARGO_BIN_EXE_gpu-preflight-hook").into(), |dir| dir.join("gpu-preflight-hook"))
}

/// The static program under its name as health check; before it is installed it has only the hook's.
pub(crate) fn healthcheck() -> PathBuf {
    hook().with_file_name("gpu-preflight-healthcheck")
}

/// A run of the command line program, without the caller's environment.
pub(crate) fn gpu_preflight(args: &[&str]) -> Run {
    Run::new(cli()).args(args)
}
