//! A CDI kind of our own, for engines that take nothing but CDI. A copy of NVIDIA's specification with a hook in it
//! would go stale with the next driver.

use serde_json::json;

use super::HOOK;
use crate::model::own::{HOOK_ARGUMENTS, HOOK_ENVIRONMENT, hook_seconds};

/// The file.
pub const FILE: &str = "/etc/cdi/gpu-preflight.json";

/// What a container asks for, behind its GPU: hooks run in the order in which devices are asked for.
pub const DEVICE: &str = "gpu-preflight.io/hook=check";

/// The specification. `wait`: seconds of the policy's `wait_for_driver`. Version 0.3 does: only a
/// vendor's name has a dot, and the device's begins with a letter (CDI `SPEC.md`, 05ae4b5b).
pub fn text(wait: u64) -> String {
    let timeout = hook_seconds(wait);
    let mut args = HOOK_ARGUMENTS.map(str::to_owned).to_vec();
    if wait > 0 {
        args.push(format!("--timeout={timeout}s"));
    }
    let spec = json!({
        "cdiVersion": "0.3.0",
        "kind": "gpu-preflight.io/hook",
        "devices": [{
            "name": "check",
            "containerEdits": {"hooks": [{
                "hookName": "createRuntime", "path": HOOK, "args": args, "env": [HOOK_ENVIRONMENT], "timeout": timeout,
            }]},
        }],
    });
    format!("{spec:#}\n")
}
