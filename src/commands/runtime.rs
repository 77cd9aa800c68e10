//! `gpu-preflight-runtime`: what the OCI runtime needs of the rest of the program.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::collect::child;
use crate::collect::container;
use crate::collect::tree::{Kind, Tree};
use crate::commands::hook::{self, configuration};
use crate::model::own::HOOK_SECONDS;
use crate::runtime::{self, Caller, Settings, Start};

/// A judgement ends by itself in time. What still does not end after so much more is left behind.
const PATIENCE: Duration = Duration::from_millis(100);

/// No machine takes longer to boot.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// A refusal is a few lines.
const WORDS: usize = 8192;

/// Becomes the real runtime; `args` without the program's name.
#[expect(clippy::disallowed_methods, reason = "a runtime is looked up by PATH, and others hand a variable of ours on")]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // A panic means that the container starts; its words would stand before those that a user must see.
    std::panic::set_hook(Box::new(|_| {}));
    let search_path = std::env::var_os("PATH");
    let variable = std::env::var_os(runtime::VARIABLE);
    let caller = Caller {
        wants_or_has_gpu: &container::wants_or_has_gpu,
        settings: &settings,
        search_path: search_path.as_deref(),
        variable: variable.as_deref(),
        refuses: &refuses,
    };
    ExitCode::from(runtime::main(args, &caller))
}

fn settings(config: Option<&Path>) -> Settings {
    let mut settings = Settings { hook_timeout: HOOK_SECONDS, ..Settings::default() };
    if let Ok(host) = Tree::open(Path::new("/"), Kind::Host) {
        let (policy, _) = configuration::read(config, &host);
        let wait = u32::try_from(policy.wait_for_driver.as_secs()).unwrap_or(u32::MAX);
        settings.hook_timeout = HOOK_SECONDS.saturating_add(wait);
        settings.wait = policy.wait_for_driver;
        settings.runtimes = policy.runtime;
    }
    if settings.hook_timeout > HOOK_SECONDS {
        settings.hook_args.push(format!("--timeout={}s", settings.hook_timeout));
    }
    settings
}

/// In a child: the real runtime must not inherit what a judgement leaves behind, nor a crash of it be the end of the
/// start.
fn refuses(start: &Start<'_>) -> Option<String> {
    let deadline = Instant::now() + hook::BUDGET + start.wait.min(LONGEST_WAIT) + PATIENCE;
    let answer = child::run(deadline, WORDS, |out| {
        if let Some(words) = hook::before_start(start.hook_args, start.id, start.bundle) {
            let _ = out.write_all(words.as_bytes());
        }
    });
    let answer = answer.ok().filter(|answer| answer.complete && !answer.bytes.is_empty())?;
    String::from_utf8(answer.bytes).ok()
}
