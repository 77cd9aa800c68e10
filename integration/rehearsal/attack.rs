//! Another container's process, in the same pid namespace and of the same user, attacks the process that
//! rehearses (Kubernetes' `shareProcessNamespace`, `docker --pid=container:`).

use std::collections::BTreeMap;

use serde_json::json;

use super::container::{Container, DOCKER, Setup, Tools};
use super::{EACCES, EPERM, answers, can_run};

const SETUP: Setup = Setup::RuncV1;
const REFUSALS: [i32; 2] = [EACCES, EPERM];

#[test]
fn a_process_of_the_containers_user_can_neither_stop_the_rehearsal_nor_look_into_it() {
    if !can_run(SETUP) {
        return;
    }
    let (tries, answer) = attack(1000);
    assert!(tries.len() == 7 && tries.values().all(|errno| REFUSALS.contains(errno)), "{tries:?}");
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
    assert!(tries.len() == 6 && tries.values().all(|errno| REFUSALS.contains(errno)), "{tries:?}");
    assert!(answer.starts_with("unknown"), "{answer}");
}

/// Starts an attacker, and then a container of the same user in its pid namespace whose hook rehearses for
/// long enough to be found. What each try came to, and the rehearsal's answer.
fn attack(uid: u32) -> (BTreeMap<String, i32>, String) {
    let tools = Tools::make();
    let mut attacker = container(&tools, uid);
    attacker.spec.as_object_mut().unwrap().remove("hooks");
    attacker.spec["process"]["args"] = json!(["/probe", "--attack"]);
    let mut attacker = attacker.start(SETUP);
    let pid = attacker.pid();

    let mut victim = container(&tools, uid);
    victim.spec["hooks"] = json!({"createContainer": victim.spec["hooks"]["createContainer"]});
    victim.spec["linux"]["namespaces"][0]["path"] = format!("/proc/{pid}/ns/pid").into();
    victim.question["repeat"] = 20_000.into();
    victim.question["deadline"] = 20_000.into();
    let output = victim.command(SETUP, &format!("victim-{}-{uid}", std::process::id())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = attacker.end();
    let tries = said.lines().filter_map(|line| {
        let (name, errno) = line.split_once(' ')?;
        Some((name.to_owned(), errno.parse().ok()?))
    });
    let answers = answers(&victim, "createContainer").unwrap();
    (tries.collect(), answers["answers"][0].as_str().unwrap().to_owned())
}

fn container(tools: &Tools, uid: u32) -> Container<'_> {
    let mut container = Container::new(tools);
    container.user(uid, uid, &[44]);
    if uid != 0 {
        container.capabilities(&[("bounding", DOCKER)]);
    }
    container
}
