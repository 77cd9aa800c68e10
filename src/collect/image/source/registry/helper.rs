//! Helpers of docker's that keep credentials: `docker-credential-NAME get`.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use super::credentials::Proof;
use crate::collect::image::source::machine::Machine;

/// A helper may ask a server of its own.
const PATIENCE: Duration = Duration::from_secs(20);
/// A name, a server and a secret.
const MOST_ANSWER: u64 = 64 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

/// What a helper knows of a server; `None`: nothing. It runs as the caller, with the caller's environment, as docker and
/// podman run it.
pub(super) fn ask(machine: &Machine<'_>, helper: &str, server: &str) -> Result<Option<Proof>, String> {
    let program = format!("docker-credential-{helper}");
    // a slash would lead out of PATH
    if helper.contains('/') {
        return Err(format!("{program} is no name of a program"));
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the user's own configuration names this program for this very question"
    )]
    let mut command = Command::new(&program);
    if let Some(path) = machine.callers("PATH") {
        command.env("PATH", path);
    }
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{program} cannot be run ({error})"))?;
    let answer = talk(&mut child, server);
    let _ = child.kill();
    let status = child.wait();
    let Some(answer) = answer else { return Err(format!("{program} did not answer in time")) };
    if !status.is_ok_and(|status| status.success()) {
        // "credentials not found in native keychain"
        return Ok(None);
    }
    let answer: Answer = serde_json::from_slice(&answer).map_err(|_| format!("{program} answered no such JSON"))?;
    Ok(match (answer.username.as_str(), answer.secret) {
        (_, secret) if secret.is_empty() => None,
        ("<token>", secret) => Some(Proof::Identity(secret)),
        (name, password) => Some(Proof::Password { name: name.to_owned(), password }),
    })
}

/// All that it says until it ends; `None`: it took too long.
fn talk(child: &mut Child, server: &str) -> Option<Vec<u8>> {
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(server.as_bytes());
    }
    let stdout = child.stdout.take()?;
    let (say, hear) = mpsc::channel();
    // What the helper leaves behind may keep the pipe open: only this thread waits for it.
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.take(MOST_ANSWER).read_to_end(&mut bytes);
        let _ = say.send(bytes);
    });
    let bytes = hear.recv_timeout(PATIENCE).ok()?;
    for _ in 0..100 {
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::collect::tree::{Kind, Tree};

    fn answered(script: &str) -> Result<Option<Proof>, String> {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("docker-credential-t");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        let machine = Machine::new(&tree, false, BTreeMap::from([("PATH".to_owned(), path)]));
        // while another test's child still has the script open for writing, it cannot be run
        let busy = |answer: &Result<_, String>| matches!(answer, Err(why) if why.contains("busy"));
        (0..100).map(|_| ask(&machine, "t", "q.io")).find(|answer| !busy(answer)).expect("a script that is closed")
    }

    #[test]
    fn an_answer_is_a_password_a_token_or_nothing() {
        let password =
            answered(r#"read host; echo "{\"ServerURL\":\"$host\",\"Username\":\"n@$host\",\"Secret\":\"s\"}""#);
        assert!(
            matches!(password, Ok(Some(Proof::Password { name, password })) if name == "n@q.io" && password == "s")
        );
        let token = answered(r#"echo '{"Username":"<token>","Secret":"t"}'"#);
        assert!(matches!(token, Ok(Some(Proof::Identity(token))) if token == "t"));
        assert!(matches!(answered("echo 'credentials not found in native keychain'; exit 1"), Ok(None)));
        assert!(answered("echo nonsense").is_err());
    }

    #[test]
    fn a_helper_is_a_name_on_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        assert!(ask(&Machine::new(&tree, false, BTreeMap::new()), "../../bin/sh", "q.io").is_err());
    }
}
