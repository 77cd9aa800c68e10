//! The test's own program as an OCI hook: it rehearses where a runtime has called it, and writes down
//! the answers.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use gpu_preflight::collect::rehearsal::{Answer, Look, Place, Rehearsal, RuntimeKind, Wish, rehearse};
use gpu_preflight::model::container::{Access, CapabilitySets, Identity, Refusal};
use serde_json::{Value, json};

/// Names the file with the question; its directory takes the answers.
pub(super) const QUESTION: &str = "REHEARSAL_QUESTION";
/// `prestart`, `createRuntime`, `createContainer`, or `inject`: give a node as NVIDIA's legacy hook does.
pub(super) const STAGE: &str = "REHEARSAL_STAGE";
/// This function, as the test harness finds it.
pub(super) const ARGUMENTS: [&str; 4] = ["rehearsal::hook::as_a_hook", "--exact", "--nocapture", "--test-threads=1"];

/// `/dev/nvidia-uvm`, given by the stage `inject`.
const INJECTED: (u64, u64) = (511, 0);

/// The runtimes of the other tests call it; by itself it has nothing to do.
#[test]
fn as_a_hook() {
    let (Some(path), Ok(stage)) = (std::env::var_os(QUESTION), std::env::var(STAGE)) else { return };
    let path = Path::new(&path);
    let question: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let told: Value = serde_json::from_str(&input).unwrap();
    let pid = i32::try_from(told["pid"].as_i64().unwrap_or(0)).unwrap();
    let rootfs = Path::new(question["rootfs"].as_str().unwrap());
    if stage == "inject" {
        return inject(pid, rootfs);
    }
    let place = match stage.as_str() {
        "createContainer" => Place::Container { rootfs: question["inside"].as_str().map_or(rootfs, Path::new) },
        _ => Place::Runtime { pid, rootfs },
    };
    let mut answer = answer(place, &question);
    if question["tries_to_fork"] == true {
        answer["forks"] = std::process::Command::new("true").status().is_ok().into();
    }
    std::fs::write(path.with_file_name(format!("{stage}.json")), answer.to_string()).unwrap();
}

/// Rehearses, and says in JSON what came of it.
pub(super) fn answer(place: Place<'_>, question: &Value) -> Value {
    let identity = identity(&question["identity"]);
    let nodes: Vec<_> = question["nodes"].as_array().unwrap().iter().map(|n| Wish::of(n.as_str().unwrap())).collect();
    let repeat = question["repeat"].as_u64().unwrap_or(1);
    let rehearsal = Rehearsal {
        place,
        identity: &identity,
        nodes: (0..repeat).flat_map(|_| nodes.clone()).collect(),
        keep_groups: question["keep_groups"] == true,
        runtime: match question["runtime"].as_str() {
            Some("runc") => RuntimeKind::Runc,
            Some("crun") => RuntimeKind::Crun,
            _ => RuntimeKind::Unknown,
        },
        privileged_entrypoint: question["entrypoint"].as_bool(),
        deadline: Duration::from_millis(question["deadline"].as_u64().unwrap_or(5000)),
        expendable: false,
    };
    let start = Instant::now();
    let mut answers = rehearse(&rehearsal);
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap();
    answers.truncate(nodes.len());
    // What the shipped hook's throw-away child does. Last: it does not leave the container's device cgroup.
    if matches!(place, Place::Runtime { .. }) && question["deadline"].is_null() {
        let words = |answers: &[Answer]| answers.iter().map(word).collect::<Vec<_>>();
        let in_place = rehearse(&Rehearsal { nodes: nodes.clone(), expendable: true, ..rehearsal });
        assert_eq!(words(&in_place), words(&answers), "in place, and in a child of its own");
    }
    json!({
        "answers": answers.iter().map(word).collect::<Value>(),
        "micros": micros,
    })
}

fn word(answer: &Answer) -> String {
    let access = match &answer.access {
        Access::Granted => "granted",
        Access::Refused(Refusal::Mode) => "refused by mode",
        Access::Refused(Refusal::Cgroup) => "refused by cgroup",
        Access::Refused(Refusal::NoDev) => "refused by nodev",
        Access::Refused(Refusal::NoDriver | Refusal::Hangs) => panic!("a rehearsal opens nothing: {answer:?}"),
        Access::Unknown(reason) => return format!("unknown: {reason}"),
    };
    match &answer.look {
        Look::Node(node) => format!("{access} {:o} {}:{}", node.mode, node.uid, node.gid),
        other => panic!("{access}, and nobody saw it: {other:?}"),
    }
}

fn identity(value: &Value) -> Identity {
    let number = |v: &Value| v.as_u64().unwrap_or(0);
    let id = |v: &Value| u32::try_from(number(v)).unwrap();
    let sets = &value["capabilities"];
    Identity {
        uid: id(&value["uid"]),
        gid: id(&value["gid"]),
        additional_gids: value["groups"].as_array().into_iter().flatten().map(id).collect(),
        capabilities: sets.is_object().then(|| CapabilitySets {
            bounding: number(&sets["bounding"]),
            effective: number(&sets["effective"]),
            inheritable: number(&sets["inheritable"]),
            permitted: number(&sets["permitted"]),
            ambient: number(&sets["ambient"]),
        }),
        no_new_privileges: value["no_new_privileges"] == true,
    }
}

/// As NVIDIA's legacy hook on cgroup v1: a node in the rootfs, and a rule that the spec does not have.
fn inject(pid: i32, rootfs: &Path) {
    use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};
    let (major, minor) = INJECTED;
    umask(Mode::empty());
    let node = Path::new(&format!("/proc/{pid}/root")).join(rootfs.strip_prefix("/").unwrap()).join("dev/nvidia-uvm");
    mknod(&node, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(major, minor)).unwrap();
    let cgroups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let group = cgroups.lines().find_map(|line| line.split_once(":devices:")).unwrap().1;
    let allow = format!("/sys/fs/cgroup/devices{group}/devices.allow");
    std::fs::write(allow, format!("c {major}:{minor} rw")).unwrap();
}
