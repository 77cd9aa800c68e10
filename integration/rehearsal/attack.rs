//! Another container's process, in the same pid namespace and of the same user, attacks the process that
//! rehearses (Kubernetes' `shareProcessNamespace`, `docker --pid=container:`).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::container::{Container, DOCKER, Setup, Tools};
use super::{answers, can_run, soon};

const SETUP: Setup = Setup::RuncV1;

#[test]
fn a_process_of_the_containers_user_can_neither_stop_the_rehearsal_nor_look_into_it() {
    if !can_run(SETUP) {
        return;
    }
    let (tries, answer) = attack(1000);
    assert!(tries.len() == 7 && tries.values().all(|errno| *errno != 0), "{tries:?}");
    assert!(answer.starts_with("granted"), "{answer}");
}

/// Root with docker's capabilities may kill what is of uid 0, and a killed rehearsal is unknown.
#[test]
fn the_containers_root_cannot_look_into_the_rehearsal() {
    if !can_run(SETUP) {
        return;
    }
    let (mut tries, answer) = attack(0);
    assert_eq!(tries.remove("kill"), Some(0), "{tries:?}");
    assert!(tries.len() == 6 && tries.values().all(|errno| *errno != 0), "{tries:?}");
    assert!(answer.starts_with("unknown"), "{answer}");
}

/// Starts an attacker, and then a container of the same user in its pid namespace whose hook rehearses for
/// long enough to be found. What each try came to, and the rehearsal's answer.
fn attack(uid: u32) -> (BTreeMap<String, i32>, String) {
    let tools = Tools::make();
    let mut attacker = container(&tools, uid);
    attacker.spec.as_object_mut().unwrap().remove("hooks");
    attacker.spec["process"]["args"] = json!(["/probe", "--attack"]);
    let id = format!("attacker-{}-{uid}", std::process::id());
    let mut running = attacker.command(SETUP, &id).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(running.stdout.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert_eq!(first, "waiting\n");
    let runc = |arguments: &[&str]| {
        Command::new("runc").arg("--root").arg(attacker.path("answers/state")).args(arguments).output().unwrap()
    };
    let pid = soon("the attacker's state", || {
        serde_json::from_slice::<Value>(&runc(&["state", &id]).stdout).ok()?["pid"].as_u64()
    });

    let mut victim = container(&tools, uid);
    victim.spec["hooks"] = json!({"createContainer": victim.spec["hooks"]["createContainer"]});
    victim.spec["linux"]["namespaces"][0]["path"] = format!("/proc/{pid}/ns/pid").into();
    victim.question["repeat"] = 20_000.into();
    victim.question["deadline"] = 20_000.into();
    let output = victim.command(SETUP, &format!("victim-{}-{uid}", std::process::id())).output().unwrap();
    runc(&["kill", &id, "KILL"]);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    running.wait().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tries = rest.lines().filter_map(|line| {
        let (name, errno) = line.split_once(' ')?;
        Some((name.to_owned(), errno.parse().ok()?))
    });
    let answers = answers(&victim, "createContainer").unwrap();
    (tries.collect(), answers["answers"][0].as_str().unwrap().to_owned())
}

fn container<'a>(tools: &'a Tools, uid: u32) -> Container<'a> {
    let mut container = Container::new(tools);
    container.user(uid, uid, &[44]);
    if uid != 0 {
        container.capabilities(&[("bounding", DOCKER)]);
    }
    container
}
