//! `gpu-preflight-runtime`: what the OCI runtime needs of the rest of the program.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::collect::container;
use crate::collect::tree::{Kind, Tree};
use crate::commands::hook::configuration;
use crate::runtime::{self, Caller, Settings};

/// Seconds that the hook is given besides those that it may wait for the driver.
const HOOK_TIMEOUT: u32 = 5;

/// Becomes the real runtime; `args` without the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "an engine looks its runtimes up by PATH, and so does this one")]
    let search_path = std::env::var_os("PATH");
    let caller = Caller {
        wants_or_has_gpu: &container::wants_or_has_gpu,
        settings: &settings,
        search_path: search_path.as_deref(),
    };
    ExitCode::from(runtime::main(args, &caller))
}

fn settings(config: Option<&Path>) -> Settings {
    let mut settings = Settings { hook_timeout: HOOK_TIMEOUT, ..Settings::default() };
    if let Ok(host) = Tree::open(Path::new("/"), Kind::Host) {
        let (policy, _) = configuration::read(config, &host);
        let wait = u32::try_from(policy.wait_for_driver.as_secs()).unwrap_or(u32::MAX);
        settings.hook_timeout = HOOK_TIMEOUT.saturating_add(wait);
        settings.runtimes = policy.runtime;
    }
    if settings.hook_timeout > HOOK_TIMEOUT {
        settings.hook_args.push(format!("--timeout={}s", settings.hook_timeout));
    }
    settings
}
