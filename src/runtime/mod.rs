//! The thin OCI runtime: puts the hook into the specification of a container that wants or has a GPU,
//! and becomes the real runtime.
//!
//! It becomes it by `execve`, so process id, descriptors, signals, terminal and exit code are the real
//! runtime's by construction. Whatever goes wrong with the specification, the container is handed on as
//! it is. Only two things end here: there is no real runtime, or the container is one that its hook is
//! certain to refuse and the real runtime would not tell anybody why.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Pid;

use crate::model::own::HOOK_SECONDS;
use crate::model::wording;

mod arguments;
mod bundle;
mod chain;
mod find;
mod grammar;
mod hook;
mod inherited;
mod refusal;
mod spec;

use arguments::{Creates, Invocation};
use bundle::SpecFile;
use chain::{Note, Passed};
use find::Excluded;
pub use grammar::is_subcommand;
use spec::Edit;

pub use chain::VARIABLE;

/// What the runtime does not find out by itself.
pub struct Caller<'a> {
    /// The cheap look: does the container of this `config.json` want a GPU, or was it given one?
    pub wants_or_has_gpu: &'a dyn Fn(&[u8]) -> bool,
    /// Reads the configuration: the file of `--gpu-preflight-config`, or the usual one. Called at most
    /// once, and only if something of it is needed.
    pub settings: &'a dyn Fn(Option<&Path>) -> Settings,
    /// The `PATH` of our own environment.
    pub search_path: Option<&'a OsStr>,
    /// [`VARIABLE`] of our own environment.
    pub variable: Option<&'a OsStr>,
    /// Judges a container before its start. What is to be said of it if its hook is certain to refuse it.
    pub refuses: &'a dyn Fn(&Start<'_>) -> Option<String>,
}

/// A container that is about to be handed on.
#[derive(Debug)]
pub struct Start<'a> {
    /// What it will be called.
    pub id: &'a str,
    /// Its bundle, an absolute path.
    pub bundle: &'a Path,
    /// The arguments of its hook.
    pub hook_args: &'a [String],
    /// How long it may wait for the driver.
    pub wait: Duration,
}

/// What the configuration says about the runtime and its hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names or paths of real runtimes, the preferred first; used without `--runtime`.
    pub runtimes: Vec<String>,
    /// Further arguments of the hook.
    pub hook_args: Vec<String>,
    /// After how many seconds the real runtime kills the hook.
    pub hook_timeout: u32,
    /// How long a start may wait for the driver.
    pub wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runtimes: USUAL.map(str::to_owned).into(),
            hook_args: Vec::new(),
            hook_timeout: HOOK_SECONDS,
            wait: Duration::ZERO,
        }
    }
}

/// The runtimes that distributions have.
const USUAL: [&str; 2] = ["runc", "crun"];

/// What a list of reasons may say.
const REASONS: usize = 1000;

/// Why there is no real runtime to become.
#[derive(Debug)]
enum Ended {
    /// None is there, or it could not be executed.
    NoRuntime(String),
    /// The container is refused, in these words.
    Refused(String),
}

/// Becomes the real runtime. `arguments` without the program's name.
///
/// Returns only if there is none to become: the exit code, after the reason was written to stderr and
/// to the runtime's log.
pub fn main(arguments: impl IntoIterator<Item = OsString>, caller: &Caller<'_>) -> u8 {
    let invocation = arguments::parse(arguments);
    let settings = OnceCell::new();
    let settings = || settings.get_or_init(|| (caller.settings)(invocation.config.as_deref()));
    let Err(ended) = become_real(&invocation, caller, &settings);
    let message = match ended {
        Ended::Refused(words) => words,
        Ended::NoRuntime(reason) => {
            let message = format!("gpu-preflight-runtime: no OCI runtime to hand over to: {reason}");
            wording::without_forbidden_phrases(&wording::cut(&message, REASONS))
        }
    };
    refusal::report(message.trim_end(), invocation.log.as_deref(), invocation.log_format.as_deref());
    1
}

fn become_real<'a>(
    invocation: &Invocation,
    caller: &Caller<'_>,
    settings: &dyn Fn() -> &'a Settings,
) -> Result<Infallible, Ended> {
    let passed = Passed::read(caller.variable, [nix::unistd::getpid(), nix::unistd::getppid()].map(Pid::as_raw));
    let real = real_runtime(invocation, caller, settings, &passed).map_err(Ended::NoRuntime)?;
    if let Some(creates) = &invocation.creates {
        // a fault of ours stops no container
        let looked = catch_unwind(AssertUnwindSafe(|| look_at(creates, &real, invocation, caller, settings)));
        if let Some(words) = looked.unwrap_or_default() {
            return Err(Ended::Refused(words));
        }
    }
    hand_over(&real, &invocation.passed_on, &passed).map_err(Ended::NoRuntime)
}

fn real_runtime<'a>(
    invocation: &Invocation,
    caller: &Caller<'_>,
    settings: &dyn Fn() -> &'a Settings,
    passed: &Passed,
) -> Result<PathBuf, String> {
    let excluded = Excluded { ourselves: find::ourselves(), passed };
    let found = if let Some(asked) = &invocation.runtime {
        find::find([asked.as_os_str()], caller.search_path, excluded)
    } else {
        // whoever called us counts on one that starts the container, whatever a configuration names in its place
        let named = &settings().runtimes;
        let usual = USUAL.iter().filter(|usual| named.iter().all(|name| name != *usual)).map(OsStr::new);
        find::find(named.iter().map(OsStr::new).chain(usual), caller.search_path, excluded)
    };
    found.map_err(|reason| {
        format!("{reason}. Name an installed one by --runtime or in the configuration's [runtime] path.")
    })
}

/// Adds the hook. What is said of a container that is not to be started.
fn look_at<'a>(
    creates: &Creates,
    real: &Path,
    invocation: &Invocation,
    caller: &Caller<'_>,
    settings: &dyn Fn() -> &'a Settings,
) -> Option<String> {
    let path = creates.spec();
    let file = match SpecFile::read(&path) {
        Ok(file) => file,
        Err(error) => {
            log::debug!("{} is not looked at: {error}", path.display());
            return None;
        }
    };
    if !(caller.wants_or_has_gpu)(file.text()) {
        return None;
    }
    let Some(hook) = hook::entry(invocation, settings()) else {
        log::warn!("no hook program is to be found; the container is started without it");
        return None;
    };
    let edit = spec::with_hook(file.text(), &hook);
    let (program, args) = match &edit {
        Some(Edit::Added(_)) => (hook.path.as_str(), hook.args.get(1..).unwrap_or_default()),
        Some(Edit::There { path, args }) => (path.as_str(), args.as_slice()),
        None => {
            log::debug!("{} stays as it is", path.display());
            return None;
        }
    };
    // Another program in the hook's place may decide otherwise, and what this one hears of it is its own affair.
    let is_this_program = || find::ourselves().is_some_and(|own| find::identity(Path::new(program)) == Some(own));
    if chain::is_silent(real)
        && is_this_program()
        && let Some(bundle) = creates.bundle()
    {
        let start = Start { id: &creates.id(), bundle: &bundle, hook_args: args, wait: settings().wait };
        let words = (caller.refuses)(&start);
        if words.is_some() {
            return words;
        }
    }
    match edit {
        Some(Edit::Added(edited)) => match file.replace(&edited) {
            Ok(()) => log::debug!("{} has the hook now", path.display()),
            Err(error) => log::warn!("{} stays as it is: {error}", path.display()),
        },
        _ => log::debug!("{} stays as it is", path.display()),
    }
    None
}

/// `execve` with the same environment and descriptors. As its own name the runtime sees its path: crun
/// tells its variants by it.
fn hand_over(real: &Path, arguments: &[OsString], passed: &Passed) -> Result<Infallible, String> {
    let words = [real.as_os_str().to_owned()].into_iter().chain(arguments.iter().cloned());
    let words: Vec<CString> = words
        .map(|word| CString::new(word.into_vec()))
        .collect::<Result<_, _>>()
        .map_err(|_| "an argument holds a zero byte".to_owned())?;
    let program = words.first().ok_or("it has no name")?;
    Note::before(real, passed).write();
    inherited::restore();
    nix::unistd::execv(program, &words)
        .map_err(|errno| format!("{} cannot be executed ({})", real.display(), errno.desc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that cannot be executed, so that the hand-over comes back.
    fn hand_over_after(wants_or_has_gpu: &dyn Fn(&[u8]) -> bool) -> Ended {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("runc");
        std::fs::write(&real, "neither script nor program").unwrap();
        std::fs::set_permissions(&real, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(directory.path().join("config.json"), "{}").unwrap();
        let line = ["--runtime", real.to_str().unwrap(), "create", "-b", directory.path().to_str().unwrap(), "c1"];
        let caller = Caller {
            wants_or_has_gpu,
            settings: &|_| Settings::default(),
            search_path: None,
            variable: None,
            refuses: &|_| None,
        };
        let settings = Settings::default();
        let Err(ended) = become_real(&arguments::parse(line.map(OsString::from)), &caller, &|| &settings);
        ended
    }

    #[test]
    fn a_fault_of_ours_stops_no_container() {
        for look in [|_: &[u8]| false, |_: &[u8]| panic!("a fault")] {
            let ended = hand_over_after(&look);
            let Ended::NoRuntime(reason) = &ended else { panic!("{ended:?}") };
            assert!(reason.contains("cannot be executed (Exec format error)"), "{reason}");
        }
    }
}
