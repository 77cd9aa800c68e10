//! The hooks directory of podman, CRI-O and NRI's hook injector.

use super::HOOK;
use crate::model::own::hook_seconds;

pub use crate::model::own::{HOOK_FILE as FILE, HOOKS_DIRECTORY as USUAL};

/// The registration, as it is shipped. `wait`: seconds of the policy's `wait_for_driver`.
pub fn text(wait: u64) -> String {
    let timeout = hook_seconds(wait);
    let argument = if wait > 0 { format!(", \"--timeout={timeout}s\"") } else { String::new() };
    format!(
        r#"{{
  "version": "1.0.0",
  "hook": {{
    "path": "{HOOK}",
    "args": ["gpu-preflight-hook", "--stage", "createRuntime"{argument}],
    "env": ["PATH=/usr/bin:/bin"],
    "timeout": {timeout}
  }},
  "when": {{"always": true}},
  "stages": ["createRuntime"]
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn it_is_the_file_that_is_shipped() {
        assert_eq!(text(0), include_str!("../../hooks/zz-gpu-preflight.json"));
    }

    #[test]
    fn who_waits_for_the_driver_is_given_the_time() {
        let waiting: Value = serde_json::from_str(&text(60)).unwrap();
        assert_eq!(waiting["hook"]["timeout"], 65);
        assert_eq!(waiting["hook"]["args"][3], "--timeout=65s");
    }
}
