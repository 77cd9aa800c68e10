//! The rehearsal: may the container's user read and write its GPU nodes? The kernel itself answers,
//! about that user, in the container's device cgroup and user namespace, and no node is opened.
//!
//! A short-lived child enters the container's device cgroup and user namespace, takes its groups, its
//! user and the capabilities that its program will have, and asks `faccessat2` about descriptors that
//! were opened with `O_PATH`, which never reach a driver. So access control lists, user namespaces,
//! modes that a runtime really made and rules that a hook added later all count, and nothing has to be
//! evaluated here. What this cannot see: the rules of a security module for the container's label, and
//! nodes on a file system that was mounted inside a user namespace.
//!
//! Where anything did not go as planned, the answer is unknown, never a refusal.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::collect::tree::{Stat, Tree};
use crate::model::Unseen;
use crate::model::container::{Access, Identity};
use crate::model::host::NodeKind;

mod act;
mod capabilities;
mod cgroup;
mod outcome;
mod run;
mod scene;
mod sheet;
mod sys;
#[cfg(test)]
mod tests;

pub use capabilities::effective_after_exec;

use act::{Join, Plan, Question};
use outcome::Witness;
use run::Silence;
use scene::Scene;
use sheet::Sheet;

/// As the kernel's `NGROUPS_MAX`.
const MOST_GROUPS: usize = 65_536;

/// What is to be asked.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    /// How the container is reached.
    pub place: Place<'a>,
    /// Whom its program runs as.
    pub identity: &'a Identity,
    /// The nodes.
    pub nodes: Vec<Wish>,
    /// Annotation `run.oci.keep_original_groups` is set (`podman --group-add keep-groups`).
    pub keep_groups: bool,
    /// What started it.
    pub runtime: RuntimeKind,
    /// Its program is setuid, setgid or has file capabilities; `None`: nobody looked.
    pub privileged_entrypoint: Option<bool>,
    /// How long it may take in all. 200 ms are a thousand times what it takes.
    pub deadline: Duration,
    /// This process is a child that looks and is then thrown away, outside the container's namespaces: it may
    /// act itself where that takes no other namespace and no memory of the container's. Saves a process; the
    /// deadline is then the caller's to keep.
    pub expendable: bool,
}

/// From where the container is seen.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// A hook at prestart or createRuntime, outside: `pid` and `rootfs` (absolute) as the state and the
    /// spec have them.
    Runtime {
        /// Of the container's first process, as this process counts.
        pid: i32,
        /// In the container's mount namespace, before it becomes the root.
        rootfs: &'a Path,
    },
    /// A hook at createContainer, inside the container's namespaces and cgroups.
    Container {
        /// The spec's, or `.` under runc, which starts the hook there.
        rootfs: &'a Path,
    },
    /// A container that runs.
    Running {
        /// One of its processes, as this process counts.
        pid: i32,
    },
}

/// Runtimes, as far as they differ in whom the container's program runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RuntimeKind {
    Runc,
    Crun,
    Youki,
    Unknown,
}

impl RuntimeKind {
    /// The one that started this process as a hook, by its parent's name. Reads the machine's `/proc`,
    /// which a hook sees at every stage, and by the machine's numbers.
    pub fn of_parent(files: &Tree) -> Self {
        let parent = || {
            let status = files.read_text("/proc/self/status", 64 << 10).ok()??;
            let parent: u32 = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
            files.read_text(&format!("/proc/{parent}/comm"), 64).ok()?
        };
        let name = parent().unwrap_or_default();
        // runc's own child, which starts hooks at createContainer, is "runc:[2:INIT]"
        [("runc", Self::Runc), ("crun", Self::Crun), ("youki", Self::Youki)]
            .into_iter()
            .find_map(|(prefix, kind)| name.starts_with(prefix).then_some(kind))
            .unwrap_or(Self::Unknown)
    }
}

/// A node, and how it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Path in the container.
    pub path: String,
    /// How its users open it.
    pub access: Wanted,
    /// What stands there, if the caller has looked already, with the eyes of root.
    pub look: Option<Stat>,
}

/// How a node's users open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// GPUs, control nodes, UVM.
    ReadWrite,
    /// Capability nodes below `/dev/nvidia-caps`, which the driver makes 0444.
    ReadOnly,
}

impl Wish {
    /// A node of NVIDIA's, wanted as the driver's libraries open it.
    pub fn of(path: impl Into<String>) -> Self {
        let path = path.into();
        let access = if path.starts_with("/dev/nvidia-caps/") { Wanted::ReadOnly } else { Wanted::ReadWrite };
        Self { path, access, look: None }
    }
}

/// What is known of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Path in the container.
    pub path: String,
    /// What stands there. The owner is as the container sees it where its user could reach the node.
    pub look: Look,
    /// May the container's user use it?
    pub access: Access,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Nothing.
    Missing,
    /// This.
    Node(Stat),
    /// It could not be looked at.
    Unseen(Unseen),
}

/// Asks. One answer for each wish, in their order.
///
/// Costs about 0.2 ms and a child that is gone when this returns; waits no longer than the deadline, and
/// a fifth of a second for the end of a child that was killed.
///
/// With [`Place::Container`], call it in a process that does nothing but look: where no child can be made it takes
/// the container's identity itself, and ends should it not get its own back.
pub fn rehearse(rehearsal: &Rehearsal<'_>) -> Vec<Answer> {
    let deadline = Instant::now() + rehearsal.deadline;
    let scene = match Scene::open(rehearsal.place) {
        Ok(scene) => scene,
        Err(unseen) => return rehearsal.nodes.iter().map(|wish| Answer::unseen(wish, &unseen)).collect(),
    };
    let mut answers: Vec<_> = rehearsal.nodes.iter().map(|wish| Answer::looked_at(wish, &scene)).collect();
    if !answers.iter().any(Answer::can_be_asked) {
        return answers;
    }
    let questions: Vec<_> = rehearsal.nodes.iter().map(Question::of).collect();
    let (sheet, root) = match ask(rehearsal, &scene, &questions, deadline) {
        Ok(asked) => asked,
        Err(reason) => {
            for answer in answers.iter_mut().filter(|answer| answer.can_be_asked()) {
                answer.access = Access::Unknown(reason.clone());
            }
            return answers;
        }
    };
    let witness = Witness {
        identity: rehearsal.identity,
        runtime: rehearsal.runtime,
        privileged_entrypoint: rehearsal.privileged_entrypoint,
        head: sheet.head,
    };
    for ((answer, question), row) in answers.iter_mut().zip(&questions).zip(&sheet.rows) {
        let (true, Look::Node(node)) = (answer.can_be_asked(), &mut answer.look) else { continue };
        let has_acl = || act::locate(root, question).is_ok_and(|file| outcome::has_acl(&file));
        answer.access = witness.access(node, question, row, has_acl);
        if row.identity == node.identity {
            (node.uid, node.gid) = (row.uid, row.gid);
        }
    }
    answers
}

/// The kernel's answers, or why it was not asked.
fn ask<'a>(
    rehearsal: &Rehearsal<'_>,
    scene: &'a Scene,
    questions: &[Question],
    deadline: Instant,
) -> Result<(Sheet, BorrowedFd<'a>), String> {
    let identity = rehearsal.identity;
    let no_number = [identity.uid, identity.gid].iter().chain(&identity.additional_gids).any(|id| *id == sys::LEAVE);
    if no_number || identity.additional_gids.len() > MOST_GROUPS {
        return Err("the spec's user or groups are none that a process can have".to_owned());
    }
    // crun follows the annotation, runc ignores it (measured)
    let groups_kept = match rehearsal.runtime {
        _ if scene.groups_fixed || !rehearsal.keep_groups => scene.groups_fixed,
        RuntimeKind::Crun => true,
        RuntimeKind::Runc => false,
        _ => return Err("whether this runtime keeps the caller's groups is not known".to_owned()),
    };
    let root = scene.root.as_ref().map_err(|unseen| format!("the rootfs {}", unseen.reason))?.as_fd();
    let namespace = scene.user_namespace.as_ref();
    let namespace = namespace.map_err(|unseen| format!("the container's user namespace: {}", unseen.reason))?;
    let mut groups = identity.additional_gids.clone();
    groups.sort_unstable();
    let mut became = vec![0; groups.len()];
    let mut plan = Plan {
        root,
        user_namespace: namespace.as_ref().map(AsFd::as_fd),
        identity,
        runtime: rehearsal.runtime,
        groups: (!groups_kept).then_some(&groups),
        became: &mut became,
        questions,
    };
    let door = scene.cgroup.as_ref().map(Option::as_ref).map_err(drop);
    if rehearsal.expendable && plan.user_namespace.is_none() {
        let handle = door.ok().flatten().filter(|door| door.is_entered_by_thread()).map(|door| (door, door.handle()));
        let join = match (door, &handle) {
            (Ok(None), _) => Some(Join::Nothing),
            (_, Some((door, Ok(file)))) => Some(Join::Write(&door.group, file.as_fd())),
            _ => None,
        };
        if join.is_some() {
            return Ok((ask_in_place(&mut plan, join)?, root));
        }
    }
    let sheet = match run::in_child(&mut plan, door, deadline) {
        Ok(sheet) => sheet,
        // inside the container its limit of processes counts
        Err(Silence::Unborn(_)) if matches!(rehearsal.place, Place::Container { .. }) => ask_in_place(&mut plan, None)?,
        Err(Silence::Unborn(errno)) => return Err(format!("no process could be made to ask the kernel ({errno:?})")),
        Err(Silence::Killed) => return Err("the process that asked the kernel was killed".to_owned()),
        Err(Silence::Late) => return Err("the kernel was not asked in time".to_owned()),
    };
    Ok((sheet, root))
}

fn ask_in_place(plan: &mut Plan<'_>, cgroup: Option<Join<'_>>) -> Result<Sheet, String> {
    let failed = |errno| format!("the identity of this process could not be read ({errno:?})");
    let mut groups = vec![0; sys::count_groups().map_err(failed)?];
    let mut sheet = Sheet::blank(plan.questions.len());
    act::in_place(plan, cgroup, &mut groups, &mut sheet).map_err(failed)?;
    Ok(sheet)
}

impl Answer {
    fn unseen(wish: &Wish, unseen: &Unseen) -> Self {
        Self {
            path: wish.path.clone(),
            look: Look::Unseen(unseen.clone()),
            access: Access::Unknown(unseen.reason.clone()),
        }
    }

    /// As root, so that what is missing, or of the wrong kind, is not taken for a refusal.
    fn looked_at(wish: &Wish, scene: &Scene) -> Self {
        let seen = match &wish.look {
            Some(stat) => Ok(Some(stat.clone())),
            None => scene.tree.stat(&wish.path),
        };
        let (look, reason) = match seen {
            Ok(None) => (Look::Missing, "nothing is there"),
            Ok(Some(node)) if node.kind == NodeKind::CharDevice => (Look::Node(node), "not asked"),
            Ok(Some(node)) => (Look::Node(node), "it is no character device"),
            Err(unseen) => return Self::unseen(wish, &unseen),
        };
        Self { path: wish.path.clone(), look, access: Access::Unknown(reason.to_owned()) }
    }

    fn can_be_asked(&self) -> bool {
        matches!(&self.look, Look::Node(node) if node.kind == NodeKind::CharDevice)
    }
}
