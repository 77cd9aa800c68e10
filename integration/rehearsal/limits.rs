//! The rehearsal where the container's own limits are in its way, and in containers that run.

use std::path::Path;
use std::time::{Duration, Instant};

use gpu_preflight::collect::rehearsal::Place;
use serde_json::{Value, json};

use super::container::{Container, Setup, Tools};
use super::hook::answer;
use super::{EPERM, answers, can_run, play};

/// At createContainer the hook counts as one of the container's processes. Some limits stop the hook
/// itself, or the container; where it runs, it answers, in a child or without.
#[test]
fn a_limit_of_processes_does_not_change_the_answers() {
    for setup in [Setup::RuncV1, Setup::CrunV1].into_iter().filter(|s| can_run(*s)) {
        let tools = Tools::make();
        let mut answered = Vec::new();
        for limit in 1..=12 {
            let mut container = Container::new(&tools);
            container.user(1000, 1000, &[]);
            container.spec["hooks"] = json!({"createContainer": container.spec["hooks"]["createContainer"]});
            container.question["tries_to_fork"] = true.into();
            container.spec["linux"]["resources"]["pids"] = json!({"limit": limit});
            container.command(setup, &format!("limited-{}", std::process::id())).output().unwrap();
            let Some(said) = answers(&container, "createContainer") else { continue };
            let words: Vec<_> = said["answers"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
            let expected = ["refused by mode 660 0:44", "granted 666 0:0", "refused by cgroup 666 0:0"];
            assert_eq!(words, expected, "{}, limit {limit}", setup.name());
            answered.push((limit, said["forks"] == true));
        }
        assert!(answered.iter().any(|(_, forks)| !forks), "{}: {answered:?}", setup.name());
    }
}

#[test]
fn a_running_container_is_rehearsed_and_a_frozen_one_is_unknown_in_time() {
    for setup in Setup::ALL.into_iter().filter(|s| can_run(*s)) {
        let tools = Tools::make();
        let mut container = Container::new(&tools);
        container.user(1000, 1000, &[]).spec["process"]["args"] = json!(["/probe", "--wait"]);
        let running = container.start(setup);
        let pid = running.pid();
        let ask = |question: &Value| answer(Place::Running { pid }, question);
        let words = &ask(&container.question)["answers"];
        let expected = ["refused by mode 660 0:44", "granted 666 0:0", "refused by cgroup 666 0:0"];
        assert_eq!(*words, json!(expected), "{}", setup.name());

        let Some(group) = unified(pid).filter(|_| setup == Setup::RuncV2) else { continue };
        let freeze = |value: &str| std::fs::write(group.join("cgroup.freeze"), value).unwrap();
        container.question["deadline"] = 50.into();
        freeze("1");
        let start = Instant::now();
        let words = ask(&container.question)["answers"].clone();
        let took = start.elapsed();
        freeze("0");
        assert!(words.as_array().unwrap().iter().all(|w| w.as_str().unwrap().contains("in time")), "{words}");
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

/// On v2 every group above may refuse as well, whatever the container's own rules say.
#[test]
fn a_group_above_the_containers_own_may_refuse() {
    let setup = Setup::RuncV2;
    if !can_run(setup) {
        return;
    }
    let tools = Tools::make();
    let group = format!("/rehearsal-above-{}", std::process::id());
    let mut above = Container::new(&tools);
    above.rule("/dev/nvidia0", "-rwm").spec["process"]["args"] = json!(["/probe", "--wait"]);
    above.spec["linux"]["cgroupsPath"] = group.as_str().into();
    let _above = above.start(setup);
    let mut container = Container::new(&tools);
    container.spec["linux"]["cgroupsPath"] = format!("{group}/own").into();
    let played = play(&mut container, setup).unwrap();
    assert_eq!(played[0].errno, EPERM);
    for said in &played[0].rehearsed {
        assert_eq!(said, "refused by cgroup 660 0:44");
    }
    assert!(played[1].rehearsed.iter().all(|said| said == "granted 666 0:0"));
}

/// The directory of a process's group of cgroup v2, where this machine has it mounted.
fn unified(pid: i32) -> Option<std::path::PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
    mounts.iter().map(|mount| Path::new(mount).join(path)).find(|dir| dir.join("cgroup.freeze").exists())
}
