//! The thin OCI runtime: puts the hook into the specification of a container that wants or has a GPU,
//! and becomes the real runtime.
//!
//! It becomes it by `execve`, so process id, descriptors, signals, terminal and exit code are the real
//! runtime's by construction. Whatever goes wrong with the specification, the container is handed on as
//! it is: only the lack of a real runtime ends here.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

mod arguments;
mod bundle;
mod find;
mod grammar;
mod hook;
mod inherited;
mod refusal;
mod spec;

use arguments::{Creates, Invocation};
use bundle::SpecFile;

/// What the runtime does not find out by itself.
pub struct Caller<'a> {
    /// The cheap look: does the container of this `config.json` want a GPU, or was it given one?
    pub wants_or_has_gpu: &'a dyn Fn(&[u8]) -> bool,
    /// Reads the configuration: the file of `--gpu-preflight-config`, or the usual one. Called at most
    /// once, and only if something of it is needed.
    pub settings: &'a dyn Fn(Option<&Path>) -> Settings,
    /// The `PATH` of our own environment.
    pub search_path: Option<&'a OsStr>,
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
}

impl Default for Settings {
    fn default() -> Self {
        Self { runtimes: vec!["runc".into(), "crun".into()], hook_args: Vec::new(), hook_timeout: 5 }
    }
}

/// Becomes the real runtime. `arguments` without the program's name.
///
/// Returns only if there is none to become: the exit code, after the reason was written to stderr and
/// to the runtime's log.
pub fn main(arguments: impl IntoIterator<Item = OsString>, caller: &Caller<'_>) -> u8 {
    let invocation = arguments::parse(arguments);
    let settings = OnceCell::new();
    let settings = || settings.get_or_init(|| (caller.settings)(invocation.config.as_deref()));
    let Err(reason) = become_real(&invocation, caller, &settings);
    let message = format!("gpu-preflight-runtime: no OCI runtime to hand over to: {reason}");
    refusal::report(&message, invocation.log.as_deref(), invocation.log_format.as_deref());
    1
}

fn become_real<'a>(
    invocation: &Invocation,
    caller: &Caller<'_>,
    settings: &dyn Fn() -> &'a Settings,
) -> Result<Infallible, String> {
    let real = real_runtime(invocation, caller, settings)?;
    if let Some(creates) = &invocation.creates {
        // a fault of ours stops no container
        if catch_unwind(AssertUnwindSafe(|| add_hook(creates, invocation, caller, settings))).is_err() {
            log::error!("the look at the container failed; it is started without the hook");
        }
    }
    hand_over(&real, &invocation.passed_on)
}

fn real_runtime<'a>(
    invocation: &Invocation,
    caller: &Caller<'_>,
    settings: &dyn Fn() -> &'a Settings,
) -> Result<PathBuf, String> {
    match &invocation.runtime {
        Some(asked) => find::find([asked.as_os_str()], caller.search_path, find::ourselves()),
        None => find::find(settings().runtimes.iter().map(OsStr::new), caller.search_path, find::ourselves()),
    }
    .map_err(|reason| format!("{reason}. Name an installed one by --runtime or in the configuration's [runtime] path."))
}

fn add_hook<'a>(creates: &Creates, invocation: &Invocation, caller: &Caller<'_>, settings: &dyn Fn() -> &'a Settings) {
    let path = creates.spec();
    let file = match SpecFile::read(&path) {
        Ok(file) => file,
        Err(error) => return log::debug!("{} is not looked at: {error}", path.display()),
    };
    if !(caller.wants_or_has_gpu)(file.text()) {
        return;
    }
    let Some(hook) = hook::entry(invocation, settings()) else {
        return log::warn!("no hook program is to be found; the container is started without it");
    };
    match spec::with_hook(file.text(), &hook).map(|edited| file.replace(&edited)) {
        None => log::debug!("{} stays as it is", path.display()),
        Some(Ok(())) => log::debug!("{} has the hook now", path.display()),
        Some(Err(error)) => log::warn!("{} stays as it is: {error}", path.display()),
    }
}

/// `execve` with the same environment and descriptors. As its own name the runtime sees its path: crun
/// tells its variants by it.
fn hand_over(real: &Path, arguments: &[OsString]) -> Result<Infallible, String> {
    let words = [real.as_os_str().to_owned()].into_iter().chain(arguments.iter().cloned());
    let words: Vec<CString> = words
        .map(|word| CString::new(word.into_vec()))
        .collect::<Result<_, _>>()
        .map_err(|_| "an argument holds a zero byte".to_owned())?;
    let program = words.first().ok_or("it has no name")?;
    inherited::restore();
    nix::unistd::execv(program, &words)
        .map_err(|errno| format!("{} cannot be executed ({})", real.display(), errno.desc()))
}
