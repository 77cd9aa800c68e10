//! The thin OCI runtime in front of real ones: nobody may notice it, but for the hook.

mod added;
mod before;
mod chain;
mod containers;
mod faults;
mod process;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::support::bundle::Bundle;
use super::support::process::{Ended, Run, compile_c};
use super::support::{link, needs, programs, repository, scratch, write};

/// The program under its name as runtime.
fn shim() -> &'static Path {
    static NAMED: OnceLock<PathBuf> = OnceLock::new();
    NAMED.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime");
        let (new, path) = (directory.join(id()), directory.join("gpu-preflight-runtime"));
        link(programs::hook(), &new);
        std::fs::rename(&new, &path).expect("the link");
        path
    })
}

/// A real runtime on PATH; says no aloud if it is absent.
fn real(name: &str) -> Option<PathBuf> {
    if needs::tools(&[name]) { needs::find(name) } else { None }
}

/// A name for a container, unique on this machine.
fn id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("gpu-preflight-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn run(program: &Path, args: &[&str]) -> Ended {
    Run::new(program).args(args.iter().map(OsString::from)).end()
}

/// A bundle whose program is `tool.c` with these arguments.
fn bundle(dir: &Path, args: &[&str]) -> Bundle {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let tool = BUILT.get_or_init(|| compile_c(&repository().join("integration/runtime/tool.c"), "tool", &["-static"]));
    let mut bundle = Bundle::plain(dir);
    std::fs::copy(tool, bundle.rootfs().join("tool")).expect("the program");
    bundle.spec["process"]["args"] = json!(std::iter::once("/tool").chain(args.iter().copied()).collect::<Vec<_>>());
    bundle
}

/// A program that stands for the real runtime, by a name of its releases, and tells what it was started with.
fn look() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compile_c(&repository().join("integration/runtime/look.c"), "runc.look", &["-static"]))
}

/// What a program sees when a shell starts it so: `setting` may change the shell, `$@` is the command.
fn seen(setting: &str, command: &[OsString]) -> (Ended, String) {
    let scratch = scratch();
    let file = scratch.at("seen");
    let ended =
        Run::new("/bin/sh").args(["-c", setting, "sh"]).args(command.to_vec()).env("LOOK", &file).env("_", "").end();
    let seen = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let seen = String::from_utf8_lossy(&seen).replace(scratch.path().to_str().expect("UTF-8"), "SCRATCH");
    (ended, seen)
}

/// A script that can be executed.
fn script(path: &Path, text: &str) {
    write(path, format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    names
}
