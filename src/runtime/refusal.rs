//! Saying why nothing can be started, where the engine looks for it.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::SystemTime;

use nix::libc;
use serde::Serialize;

/// Writes a message to stderr, and as an entry of level `error` to the runtime's log if there is one.
pub(super) fn report(message: &str, log: Option<&OsStr>, log_format: Option<&OsStr>) {
    // nobody is left to tell when stderr cannot be written to
    let _ = writeln!(io::stderr(), "{message}");
    let Some(log) = log.and_then(log_file) else { return };
    let line = entry(message, log_format.is_some_and(|format| format == "json"), SystemTime::now());
    let opened = OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(libc::O_NONBLOCK).open(&log);
    if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        log::warn!("{}: {error}", log.display());
    }
}

/// The file meant by `--log`; crun also takes `file:PATH`, `syslog:ID` and `journald:ID`.
fn log_file(value: &OsStr) -> Option<PathBuf> {
    match value.to_str() {
        Some(text) if text.starts_with("syslog:") || text.starts_with("journald:") || text.is_empty() => None,
        Some(text) => Some(text.strip_prefix("file:").unwrap_or(text).into()),
        None => Some(value.into()),
    }
}

/// An entry as runc writes it, from which docker's and containerd's shim take the last error.
fn entry(message: &str, json: bool, time: SystemTime) -> String {
    #[derive(Serialize)]
    struct Entry<'a> {
        level: &'a str,
        msg: &'a str,
        time: &'a str,
    }

    let time = humantime::format_rfc3339_seconds(time).to_string();
    match serde_json::to_string(&Entry { level: "error", msg: message, time: &time }) {
        Ok(line) if json => format!("{line}\n"),
        _ => format!("time={time:?} level=error msg={message:?}\n"),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at what was written")]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_runc() {
        let time = SystemTime::UNIX_EPOCH;
        assert_eq!(
            entry("no \"x\"", true, time),
            "{\"level\":\"error\",\"msg\":\"no \\\"x\\\"\",\"time\":\"1970-01-01T00:00:00Z\"}\n"
        );
        assert_eq!(entry("no \"x\"", false, time), "time=\"1970-01-01T00:00:00Z\" level=error msg=\"no \\\"x\\\"\"\n");
    }

    #[test]
    fn the_log_is_appended_to() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log.json");
        std::fs::write(&log, "first\n").unwrap();
        report("x\ny", Some(log.as_os_str()), Some(OsStr::new("json")));
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("first\n{\"level\":\"error\",\"msg\":\"x\\ny\""), "{text}");
    }

    #[test]
    fn only_files_are_written_to() {
        assert_eq!(log_file(OsStr::new("/a")), Some("/a".into()));
        assert_eq!(log_file(OsStr::new("file:/a")), Some("/a".into()));
        assert_eq!(log_file(OsStr::new("syslog:id")), None);
        assert_eq!(log_file(OsStr::new("")), None);
    }
}
