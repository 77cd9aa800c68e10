//! The entry by which the real runtime calls our hook.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::readlink;

use super::Settings;
use super::arguments::Invocation;
use super::find;
use super::spec::Hook;
use crate::model::own::{HOOK_ARGUMENTS, HOOK_ENVIRONMENT, HOOK_NAME};

/// What the kernel appends to the name of a program whose file was replaced while it runs.
const DELETED: &[u8] = b" (deleted)";

/// The entry; `None`: there is no program to call, or its path cannot be written in JSON.
pub(super) fn entry(invocation: &Invocation, settings: &Settings) -> Option<Hook> {
    let own = readlink("/proc/self/exe").ok().map(PathBuf::from);
    let path = program(invocation.hook.as_deref(), own.as_deref())?;
    let mut args = HOOK_ARGUMENTS.map(str::to_owned).to_vec();
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
        env: vec![HOOK_ENVIRONMENT.to_owned()],
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::arguments;
    use super::*;

    fn own_program() -> PathBuf {
        std::env::current_exe().unwrap()
    }

    #[test]
    fn the_entry_carries_all_that_the_hook_has_to_know() {
        let line = "--gpu-preflight-config etc/c.toml --gpu-preflight-hook /bin/sh --gpu-preflight-hook-arg --driver-root=/d run";
        let invocation = arguments::parse(line.split(' ').map(OsString::from));
        let settings = Settings { hook_args: vec!["--wait".into()], hook_timeout: 35, ..Settings::default() };
        let entry = entry(&invocation, &settings).unwrap();
        let config = std::env::current_dir().unwrap().join("etc/c.toml");
        assert_eq!((entry.path.as_str(), entry.timeout), ("/bin/sh", 35));
        let expected = [
            "gpu-preflight-hook",
            "--stage",
            "createRuntime",
            "--config",
            config.to_str().unwrap(),
            "--wait",
            "--driver-root=/d",
        ];
        assert_eq!(entry.args, expected);
        assert_eq!(entry.env, ["PATH=/usr/bin:/bin"]);
    }

    #[test]
    fn a_program_that_cannot_be_called_is_not_written_into_a_container() {
        let own = own_program();
        for asked in ["/absent/hook", "relative/hook", "bin/sh", "/dev/null", "/"] {
            assert_eq!(program(Some(Path::new(asked)), Some(&own)).as_ref(), Some(&own), "{asked}");
            assert_eq!(program(Some(Path::new(asked)), None), None, "{asked}");
        }
        assert_eq!(program(None, Some(Path::new("/absent/gpu-preflight-runtime"))), None);
    }

    #[test]
    fn it_is_this_file_under_the_name_of_the_hook_if_it_has_one() {
        let directory = tempfile::tempdir_in(own_program().parent().unwrap()).unwrap();
        let [hook, runtime] = [HOOK_NAME, "gpu-preflight-runtime"].map(|name| directory.path().join(name));
        std::fs::hard_link(own_program(), &runtime).unwrap();
        assert_eq!(program(None, Some(&runtime)), Some(runtime.clone()));
        // another file of that name is another version's
        std::fs::copy("/bin/true", &hook).unwrap();
        assert_eq!(program(None, Some(&runtime)), Some(runtime.clone()));
        std::fs::remove_file(&hook).unwrap();
        std::fs::hard_link(own_program(), &hook).unwrap();
        assert_eq!(program(None, Some(&runtime)), Some(hook));
    }

    #[test]
    fn after_an_upgrade_it_is_the_new_file_of_the_same_name() {
        assert_eq!(program(None, Some(Path::new("/bin/sh (deleted)"))), Some("/bin/sh".into()));
        assert_eq!(program(None, Some(Path::new("/absent (deleted)"))), None);
    }
}
