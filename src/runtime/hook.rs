//! The entry by which the real runtime calls our hook.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::readlink;

use super::Settings;
use super::arguments::Invocation;
use super::find;
use super::spec::{HOOK_NAME, Hook};

/// What the kernel appends to the name of a program whose file was replaced while it runs.
const DELETED: &[u8] = b" (deleted)";

/// The entry; `None`: there is no program to call, or its path cannot be written in JSON.
pub(super) fn entry(invocation: &Invocation, settings: &Settings) -> Option<Hook> {
    let own = readlink("/proc/self/exe").ok().map(PathBuf::from);
    let path = program(invocation.hook.as_deref(), own.as_deref())?;
    let mut args = vec![HOOK_NAME.to_owned(), "--stage".to_owned(), "createRuntime".to_owned()];
    if let Some(config) = &invocation.config {
        // the hook has another working directory
        args.extend(["--config".to_owned(), std::path::absolute(config).ok()?.to_str()?.to_owned()]);
    }
    args.extend(settings.hook_args.iter().cloned());
    for argument in &invocation.hook_args {
        args.push(argument.to_str()?.to_owned());
    }
    Some(Hook {
        path: path.to_str()?.to_owned(),
        args,
        env: vec!["PATH=/usr/bin:/bin".to_owned()],
        timeout: settings.hook_timeout,
    })
}

/// The program asked for if there is one, else this file under the hook's name, else under its own: what
/// it is called with makes it the hook. A program that is absent would stop every container, so each is
/// looked at.
fn program(asked: Option<&Path>, own: Option<&Path>) -> Option<PathBuf> {
    if let Some(asked) = asked {
        if asked.is_absolute() && find::is_executable(asked) {
            return Some(asked.to_owned());
        }
        log::warn!("{} is no program with an absolute path; this program is the hook instead", asked.display());
    }
    let own = own?;
    let ourselves = find::ourselves();
    let same = |path: &PathBuf| ourselves.is_some() && find::identity(path) == ourselves;
    let replaced = || {
        let path = own.as_os_str().as_bytes().strip_suffix(DELETED)?;
        Some(PathBuf::from(OsStr::from_bytes(path))).filter(|path| find::is_executable(path))
    };
    [own.with_file_name(HOOK_NAME), own.to_owned()].into_iter().find(same).or_else(replaced)
}
