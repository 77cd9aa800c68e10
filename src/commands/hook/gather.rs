//! The look into the container, in a child: a root file system whose server never answers must not keep
//! the hook, and with it the runtime, from ending. Every fact is told as soon as it is known.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::collect::child::{self, Child, Ending};
use crate::collect::container::{Called, Inside};
use crate::collect::image::{self, Hints, Survey};
use crate::collect::rehearsal::{self, Look, Place, Rehearsal, RuntimeKind, Wish};
use crate::collect::tree::Tree;
use crate::model::container::{Access, ContainerNode, LegacyState, Moment, Refusal, Stage};
use crate::model::host::NodeKind;
use crate::model::image::Libc;
use crate::model::{Container, Host, Image, Observed, Unknown};

/// The rehearsal takes a fifth of a millisecond; a thousand times that is late.
const REHEARSAL: Duration = Duration::from_millis(200);

/// The reason of what the child did not tell.
const LATE: &str = "it did not show in time";

/// What the child tells is a few kilobytes; a container may have many nodes. With the last byte of an answer it is
/// as much as any process may let a pipe hold, so that the parent can sleep to the end.
const TOLD_LIMIT: usize = (1 << 20) - 1;

/// A container's facts, with what could not be seen in time named.
pub(super) struct Gathered {
    pub(super) container: Container,
    pub(super) image: Image,
    /// The deadline came before the look was done.
    pub(super) late: bool,
    /// The child, which ends while the checks are asked.
    _ending: Option<Ending>,
}

/// One fact, on its way from the child. Lines of JSON.
#[derive(Serialize, Deserialize)]
enum Told {
    LegacyHasRun,
    Devices(Result<Vec<Node>, Lack>),
    Libcuda(Result<Vec<String>, Lack>),
    Entrypoint(Option<bool>),
    Architecture(Result<Option<String>, Lack>),
    Libc(Result<Option<Libc>, Lack>),
    Survey(Box<Survey>),
}

#[derive(Serialize, Deserialize)]
struct Lack(String, String, String);

/// A node with all that the report leaves out.
#[derive(Serialize, Deserialize)]
struct Node {
    path: String,
    kind: u8,
    number: (u32, u32),
    mode: u32,
    owner: (u32, u32),
    looked_at: bool,
    access: u8,
    reason: String,
}

/// The look into the container, under way.
pub(super) struct Looking {
    child: Option<Child>,
}

/// Begins to look. `read_host` reads the machine, where the container's nodes depend on it.
pub(super) fn begin(called: &Called, read_host: &dyn Fn() -> Host, laid_out: bool, files: &Tree) -> Looking {
    // Before there is a child, whose parent would be the hook itself.
    let runtime = runtime(called, called.by_spec(), files);
    let looker = Looker { called, runtime, laid_out };
    let child = child::start(TOLD_LIMIT, |out| look(&looker, &mut called.inside(read_host, files), out));
    Looking { child: child.ok() }
}

impl Looking {
    /// What showed until the deadline.
    pub(super) fn finish(self, called: &Called, host: &Host, deadline: Instant) -> Gathered {
        let mut container = called.on(host);
        let late = |fact: &str| Unknown::new(fact, "the container", LATE);
        container.devices = Observed::Unknown(late("container.devices"));
        container.libcuda = Observed::Unknown(late("container.libcuda"));
        let mut image = image::unseen("the container", LATE);

        let answer = self.child.map(|child| child.finish(deadline));
        let (bytes, complete, ending) = answer
            .map_or_else(|| (Vec::new(), false, None), |answer| (answer.bytes, answer.complete, Some(answer.ending)));
        for told in bytes.split_inclusive(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
            match told {
                Told::LegacyHasRun => {
                    if let Some(hook) = container.legacy_hook.as_mut() {
                        hook.state = LegacyState::HasRun;
                    }
                }
                Told::Devices(devices) => {
                    container.devices = received(devices.map(|d| d.into_iter().map(ContainerNode::from).collect()));
                }
                Told::Libcuda(libcuda) => container.libcuda = received(libcuda),
                Told::Entrypoint(raises) => container.privileged_entrypoint = raises,
                Told::Architecture(architecture) => image.architecture = received(architecture),
                Told::Libc(libc) => image.libc = received(libc),
                Told::Survey(survey) => {
                    image = Image { architecture: image.architecture, libc: image.libc, ..survey.into_image() };
                }
            }
        }
        Gathered { container, image, late: !complete, _ending: ending }
    }
}

/// What the child knows of the call.
struct Looker<'a> {
    called: &'a Called,
    runtime: RuntimeKind,
    /// The machine is only laid out.
    laid_out: bool,
}

/// In the child.
fn look(looker: &Looker<'_>, inside: &mut Inside<'_>, out: &mut File) {
    let mut tell = |told: &Told| {
        if let Ok(mut line) = serde_json::to_vec(told) {
            line.push(b'\n');
            let _ = out.write_all(&line);
        }
    };
    let (mut devices, has_run) = inside.devices();
    if has_run {
        tell(&Told::LegacyHasRun);
    }
    // The nodes are told twice: what they are must not be lost where the kernel is slow to answer for
    // them, or the entrypoint lies on a file system that does not answer.
    tell(&Told::Devices(sent(devices.as_ref().map(|nodes| nodes.iter().map(Node::from).collect()))));
    if let Observed::Known(nodes) = &mut devices {
        let privileged_entrypoint = inside.privileged_entrypoint();
        tell(&Told::Entrypoint(privileged_entrypoint));
        rehearse(looker, inside, privileged_entrypoint, nodes);
        tell(&Told::Devices(Ok(nodes.iter().map(Node::from).collect())));
    }
    tell(&Told::Libcuda(sent(inside.libcuda())));
    if let Ok(Some(rootfs)) = inside.of_image() {
        let container = inside.container();
        let foretold = container.moment.is_foretold();
        let hints = if foretold { Hints::before_mounts(container) } else { Hints::of(container) };
        let (architecture, libc) = image::loaders(rootfs);
        tell(&Told::Architecture(sent(architecture)));
        tell(&Told::Libc(sent(libc)));
        tell(&Told::Survey(Box::new(image::survey(rootfs, &hints))));
    }
}

/// Asks the kernel about the nodes that are there. Those that a hook has still to make cannot be asked.
fn rehearse(
    looker: &Looker<'_>,
    inside: &Inside<'_>,
    privileged_entrypoint: Option<bool>,
    nodes: &mut [ContainerNode],
) {
    let called = looker.called;
    let wishes: Vec<Wish> = nodes
        .iter()
        .filter(|n| n.looked_at && n.kind == NodeKind::CharDevice)
        .map(|n| Wish { look: inside.stat(&n.path).cloned(), ..Wish::of(&n.path) })
        .collect();
    let (Some(rootfs), false) = (called.root_path(), wishes.is_empty()) else { return };
    let at_create_container = called.moment() == Moment::Hook(Stage::CreateContainer);
    let place = match called.pid() {
        _ if at_create_container => {
            Place::Container { rootfs: if inside.is_working_directory() { Path::new(".") } else { rootfs } }
        }
        // A machine that is only laid out has no process whose access could be rehearsed.
        Some(pid) if !looker.laid_out => Place::Runtime { pid, rootfs },
        _ => return,
    };
    let container = inside.container();
    let Some(identity) = container.user.seen() else { return };
    let keep_groups = keeps_groups(container);
    let answers = rehearsal::rehearse(&Rehearsal {
        place,
        identity,
        nodes: wishes,
        keep_groups,
        runtime: looker.runtime,
        privileged_entrypoint,
        deadline: REHEARSAL,
        // In the container's own namespaces this process must not show itself under its user's identity.
        expendable: !at_create_container,
    });
    let mut answers: BTreeMap<String, rehearsal::Answer> = answers.into_iter().map(|a| (a.path.clone(), a)).collect();
    for node in nodes {
        let Some(answer) = answers.remove(&node.path) else { continue };
        if let Look::Node(stat) = answer.look {
            (node.uid, node.gid) = (stat.uid, stat.gid);
        }
        node.access = answer.access;
    }
}

/// The runtime that called, where it matters: whom the program runs as differs between them only in
/// specs without capabilities, and with groups that are to be kept.
fn runtime(called: &Called, container: &Container, files: &Tree) -> RuntimeKind {
    let by_the_book = container.user.seen().is_some_and(|user| user.capabilities.is_some()) && !keeps_groups(container);
    match (called.is_crun(), by_the_book) {
        (true, _) => RuntimeKind::Crun,
        (false, true) => RuntimeKind::Unknown,
        (false, false) => RuntimeKind::of_parent(files),
    }
}

/// `podman --group-add keep-groups`.
fn keeps_groups(container: &Container) -> bool {
    container
        .annotations
        .seen()
        .and_then(|all| all.get("run.oci.keep_original_groups"))
        .is_some_and(|value| value == "1")
}

fn sent<T>(fact: Observed<T>) -> Result<T, Lack> {
    match fact {
        Observed::Known(value) => Ok(value),
        Observed::Unknown(Unknown { fact, source, reason }) => Err(Lack(fact, source, reason)),
    }
}

fn received<T>(told: Result<T, Lack>) -> Observed<T> {
    match told {
        Ok(value) => Observed::Known(value),
        Err(Lack(fact, source, reason)) => Observed::Unknown(Unknown { fact, source, reason }),
    }
}

const KINDS: [NodeKind; 6] = [
    NodeKind::CharDevice,
    NodeKind::BlockDevice,
    NodeKind::File,
    NodeKind::Directory,
    NodeKind::Fifo,
    NodeKind::Socket,
];

impl From<&ContainerNode> for Node {
    fn from(node: &ContainerNode) -> Self {
        let (access, reason) = match &node.access {
            Access::Granted => (0, String::new()),
            Access::Refused(Refusal::Mode) => (1, String::new()),
            Access::Refused(Refusal::Cgroup) => (2, String::new()),
            Access::Refused(Refusal::NoDev) => (3, String::new()),
            Access::Refused(refusal @ (Refusal::NoDriver | Refusal::Hangs)) => (4, format!("{refusal:?}")),
            Access::Unknown(reason) => (4, reason.clone()),
        };
        let kind = KINDS.iter().position(|kind| *kind == node.kind).and_then(|place| u8::try_from(place).ok());
        Self {
            path: node.path.clone(),
            kind: kind.unwrap_or(u8::MAX),
            number: (node.major, node.minor),
            mode: node.mode,
            owner: (node.uid, node.gid),
            looked_at: node.looked_at,
            access,
            reason,
        }
    }
}

impl From<Node> for ContainerNode {
    fn from(node: Node) -> Self {
        Self {
            path: node.path,
            kind: KINDS.get(usize::from(node.kind)).copied().unwrap_or(NodeKind::File),
            major: node.number.0,
            minor: node.number.1,
            mode: node.mode,
            uid: node.owner.0,
            gid: node.owner.1,
            access: match node.access {
                0 => Access::Granted,
                1 => Access::Refused(Refusal::Mode),
                2 => Access::Refused(Refusal::Cgroup),
                3 => Access::Refused(Refusal::NoDev),
                _ => Access::Unknown(node.reason),
            },
            looked_at: node.looked_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_arrives_as_it_was_sent() {
        for access in [
            Access::Granted,
            Access::Refused(Refusal::Mode),
            Access::Refused(Refusal::Cgroup),
            Access::Refused(Refusal::NoDev),
            Access::Unknown("late".into()),
        ] {
            for kind in KINDS {
                let node = ContainerNode {
                    path: "/dev/nvidia0".into(),
                    kind,
                    major: 195,
                    minor: 3,
                    mode: 0o660,
                    uid: 1,
                    gid: 44,
                    access: access.clone(),
                    looked_at: true,
                };
                let line = serde_json::to_vec(&Told::Devices(Ok(vec![Node::from(&node)]))).unwrap();
                let Ok(Told::Devices(Ok(mut nodes))) = serde_json::from_slice(&line) else { panic!("another fact") };
                assert_eq!(nodes.pop().map(ContainerNode::from), Some(node));
            }
        }
    }
}
