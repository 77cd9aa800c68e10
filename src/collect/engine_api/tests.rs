//! Endpoints as docker's client finds them, and talk over a socket.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::thread;

use sha2::{Digest as _, Sha256};

use super::*;
use crate::collect::tree::Kind;

fn of(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Endpoint, String> {
    let dir = crate::collect::testing::laid(files);
    let tree = Tree::open(dir.path(), Kind::Host).unwrap();
    let variables: BTreeMap<&str, &str> = variables.iter().copied().chain([("HOME", "/home")]).collect();
    endpoint(&tree, &|name| variables.get(name).copied()).map_err(|unseen| unseen.reason)
}

fn socket(path: &str) -> Endpoint {
    Endpoint::Socket(path.into())
}

#[test]
fn the_variable_the_context_and_the_socket_in_this_order() {
    let context =
        |host: &str| format!(r#"{{"Name":"spk","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#);
    let meta = format!("home/.docker/contexts/meta/{:x}/meta.json", Sha256::digest("spk"));
    let unix = context("unix:///run/spk.sock");
    let files = [("home/.docker/config.json", r#"{"currentContext":"spk"}"#), (meta.as_str(), unix.as_str())];
    assert_eq!(of(&[], &[]), Ok(socket("/var/run/docker.sock")));
    assert_eq!(of(&files, &[]), Ok(socket("/run/spk.sock")));
    assert_eq!(of(&files, &[("DOCKER_CONTEXT", "default")]), Ok(socket("/var/run/docker.sock")));
    assert_eq!(of(&files, &[("DOCKER_HOST", "unix:///h.sock")]), Ok(socket("/h.sock")));
    assert!(of(&files, &[("DOCKER_CONTEXT", "other")]).unwrap_err().contains("docker's context is other"));
    assert!(of(&[("home/.docker/config.json", "{")], &[]).is_ok());
    let ssh = context("ssh://me@there");
    let files = [files[0], (meta.as_str(), ssh.as_str())];
    assert!(of(&files, &[]).unwrap_err().contains("by ssh, which this program does not speak"));
}

#[test]
fn a_port_speaks_tls_where_it_is_told_to() {
    let tcp = |address: &str, tls: Option<(&str, bool)>| {
        let tls = tls.map(|(directory, verify)| Tls { directory: directory.into(), verify });
        Ok(Endpoint::Tcp { address: address.into(), tls })
    };
    assert_eq!(of(&[], &[("DOCKER_HOST", "tcp://h:1")]), tcp("h:1", None));
    assert_eq!(of(&[], &[("DOCKER_HOST", "tcp://h")]), tcp("h:2375", None));
    let verified = [("DOCKER_HOST", "tcp://h"), ("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "/c")];
    assert_eq!(of(&[], &verified), tcp("h:2376", Some(("/c", true))));
    assert_eq!(of(&[], &verified[..2]), tcp("h:2376", Some(("/home/.docker", true))));
    for wrong in ["tcp://", "tcp://a b", "npipe:////./pipe/docker", "nonsense", "unix://relative"] {
        assert!(of(&[], &[("DOCKER_HOST", wrong)]).is_err(), "{wrong}");
    }
}

#[test]
fn a_certificate_to_know_the_other_by_must_be_there() {
    let tree = Tree::open(Path::new("/"), Kind::Host).unwrap();
    let tls = |verify| Some(Tls { directory: "/nowhere".into(), verify });
    let with = |verify| Api::new(&Endpoint::Tcp { address: "h:1".into(), tls: tls(verify) }, &tree);
    assert!(with(true).is_err() && with(false).is_ok());
}

#[test]
fn an_absent_socket_is_told_from_one_that_does_not_answer() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let asked = |name: &str| Api::socket(&at(name)).json::<serde_json::Value>("/info");
    assert!(matches!(asked("absent"), Err(Silent::Nobody)));
    drop(UnixListener::bind(at("left")).unwrap());
    let Err(Silent::Failed(unseen)) = asked("left") else { panic!("nobody listens") };
    assert!(unseen.reason.contains("nobody listens"), "{unseen:?}");
    let listener = UnixListener::bind(at("rude")).unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"220 mail.example.org ESMTP\r\n");
        }
    });
    assert!(matches!(asked("rude"), Err(Silent::Failed(_))));
}
