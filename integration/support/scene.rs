//! A laid-out host, a bundle and the hook, run on them without a runtime: at createContainer, when the nodes stand
//! in the rootfs.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::bundle::Bundle;
use super::host::SimHost;
use super::process::{Ended, Run};
use super::{Scratch, programs, scratch};

/// The hook decides after one second with what it has; this is what a test grants to a busy machine besides.
pub(crate) const HOOK_LIMIT: Duration = Duration::from_secs(4);

/// See the module.
#[derive(Debug)]
pub(crate) struct Scene {
    scratch: Scratch,
}

impl Scene {
    /// A scene on a host.
    pub(crate) fn on(host: &SimHost) -> Self {
        let scene = Self { scratch: scratch() };
        host.lay(&scene.host());
        scene
    }

    /// Where the host lies.
    pub(crate) fn host(&self) -> PathBuf {
        self.scratch.at("host")
    }

    /// Where a bundle may lie.
    pub(crate) fn bundle(&self) -> PathBuf {
        self.scratch.at("bundle")
    }

    /// A path for anything else.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.scratch.at(path)
    }

    /// The hook on that host, logging into the scene.
    pub(crate) fn hook(&self) -> Run {
        Run::new(programs::hook()).args(self.hook_args()).limit(HOOK_LIMIT)
    }

    /// Its arguments.
    pub(crate) fn hook_args(&self) -> Vec<std::ffi::OsString> {
        let (host, log) = (self.host(), self.log());
        ["--stage".into(), "createContainer".into(), "--host-root".into(), host.into(), "--log".into(), log.into()]
            .into()
    }

    /// What the hook makes of a bundle.
    pub(crate) fn judge(&self, bundle: &Bundle) -> Ended {
        bundle.write();
        self.hook().stdin(bundle.state(1)).end()
    }

    fn log(&self) -> PathBuf {
        self.at("hook.jsonl")
    }

    /// The decision log's lines.
    pub(crate) fn logged(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}
