//! The hook's arguments. An argument it does not know is logged and ignored: packages of different
//! ages must not stop containers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::model::container::Stage;

/// What the hook was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments {
    /// `--stage`: the stage it was registered for.
    pub(super) stage: Stage,
    /// `--config`: this file instead of `/etc/gpu-preflight`.
    pub(super) config: Option<PathBuf>,
    /// `--log`: the decision log's file.
    pub(super) log: Option<PathBuf>,
    /// `--host-root`: the machine's files lie below this directory.
    pub(super) host_root: Option<PathBuf>,
    /// `--driver-root`: the driver's user-space files lie below this directory.
    pub(super) driver_root: Option<String>,
    /// `--timeout`: what it was registered with; it ends well before.
    pub(super) timeout: Duration,
    /// The program's own file, to find its place among a spec's hooks.
    pub(super) own_program: Option<String>,
    /// What it did not understand.
    pub(super) odd: Vec<String>,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            stage: Stage::CreateRuntime,
            config: None,
            log: None,
            host_root: None,
            driver_root: None,
            timeout: Duration::from_secs(5),
            own_program: None,
            odd: Vec::new(),
        }
    }
}

impl Arguments {
    /// Reads the arguments behind the program's name: `--name value` or `--name=value`.
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Self {
        let mut parsed = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let Some(text) = arg.to_str() else {
                parsed.odd.push(format!("argument {}", arg.display()));
                continue;
            };
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (text, None),
            };
            if !matches!(name, "--stage" | "--config" | "--log" | "--host-root" | "--driver-root" | "--timeout") {
                parsed.odd.push(format!("argument {text:?}"));
                continue;
            }
            match attached.or_else(|| args.next()) {
                Some(value) => parsed.take(name, value),
                None => parsed.odd.push(format!("argument {text:?} without a value")),
            }
        }
        parsed
    }

    fn take(&mut self, name: &str, value: OsString) {
        let text = value.to_string_lossy().into_owned();
        match name {
            "--stage" => match [Stage::Prestart, Stage::CreateRuntime, Stage::CreateContainer]
                .into_iter()
                .find(|s| s.name() == text)
            {
                Some(stage) => self.stage = stage,
                None => self.odd.push(format!("stage {text:?}")),
            },
            "--timeout" => match humantime::parse_duration(&text) {
                Ok(timeout) => self.timeout = timeout,
                Err(_) => self.odd.push(format!("timeout {text:?}")),
            },
            "--config" => self.config = Some(value.into()),
            "--log" => self.log = Some(value.into()),
            "--host-root" => self.host_root = Some(value.into()),
            _ => self.driver_root = Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn parse(args: &[&str]) -> Arguments {
        Arguments::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn values_may_be_attached_or_follow() {
        let parsed = parse(&[
            "--stage",
            "createContainer",
            "--log=/tmp/l",
            "--config",
            "/c",
            "--host-root=/h",
            "--driver-root",
            "/d",
            "--timeout",
            "95s",
        ]);
        assert_eq!(parsed.stage, Stage::CreateContainer);
        assert_eq!(
            (parsed.log, parsed.config, parsed.host_root),
            (Some("/tmp/l".into()), Some("/c".into()), Some("/h".into()))
        );
        assert_eq!((parsed.driver_root.as_deref(), parsed.timeout), (Some("/d"), Duration::from_secs(95)));
        assert!(parsed.odd.is_empty());
    }

    #[test]
    fn what_it_does_not_know_is_noted_and_ignored() {
        let mut args: Vec<OsString> =
            ["--from-the-future", "x", "--stage", "startContainer", "--log"].iter().map(OsString::from).collect();
        args.insert(0, OsString::from_vec(vec![b'-', 0xff]));
        let parsed = Arguments::parse(args);
        assert_eq!(parsed.stage, Stage::CreateRuntime);
        assert_eq!(parsed.odd.len(), 5, "{:?}", parsed.odd);
    }
}
