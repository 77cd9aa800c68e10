//! What a test needs of the machine. Each function says no aloud: the test returns then, and nobody takes its
//! silence for a pass.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Says that a test was skipped, past the harness, which would swallow it. Always false.
pub(crate) fn skip(what: &str, why: &str) -> bool {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        std::env::var_os("GPU_PREFLIGHT_TEST_SKIPS").is_none_or(|rule| rule != "forbidden"),
        "{name} needs {what}: {why}"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {name} needs {what}: {why}");
    false
}

/// Device nodes, mounts, containers.
pub(crate) fn root() -> bool {
    nix::unistd::geteuid().is_root() || skip("root", "this user may not make device nodes or mounts")
}

/// Time: only `integration/test.sh --long` runs what takes minutes. No failure where skips are forbidden.
pub(crate) fn long() -> bool {
    std::env::var_os("GPU_PREFLIGHT_TEST_LONG").is_some()
}

/// Programs on PATH.
pub(crate) fn tools(names: &[&str]) -> bool {
    names.iter().all(|name| find(name).is_some() || skip(name, "it is not on PATH"))
}

/// The programs as released: static, without the CLI's parts.
pub(crate) fn released() -> bool {
    super::programs::released() || skip("the released programs", "GPU_PREFLIGHT_BIN is not set")
}

/// Where NVIDIA's own libraries are.
pub(crate) fn driver() -> Option<OsString> {
    let place = std::env::var_os("GPU_PREFLIGHT_TEST_DRIVER");
    if place.is_none() {
        skip("NVIDIA's libraries", "GPU_PREFLIGHT_TEST_DRIVER is not set");
    }
    place
}

/// A program on PATH.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Runtimes live in sbin, which a user's PATH need not have.
    std::env::split_paths(&path)
        .chain([Path::new("/usr/sbin").to_owned()])
        .map(|dir| dir.join(name))
        .find(|p| p.is_file())
}
