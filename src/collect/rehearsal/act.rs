//! What the child does: enter the container's cgroup and user namespace, become its user, and ask the
//! kernel. Nothing here allocates; see `sys`.
//!
//! Only the *effective* identity changes. With real and saved ids still the hook's, no process of the
//! container's user can signal the child, and none can look into it; and the way back, in the hook's own
//! process, stays open. The order is forced: each step needs rights that a later one takes away.

use std::ffi::CString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::{set_dumpable, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::sys::stat::fstat;
use nix::unistd::{Pid, getppid, getresgid, getresuid};

use super::capabilities::{BEARING, effective_after_exec};
use super::cgroup::{Group, confirm};
use super::sheet::{Head, Row, Sheet, Step};
use super::{RuntimeKind, Wanted, Wish, sys};
use crate::model::container::Identity;

/// How often a path is resolved again that something changed meanwhile (EAGAIN of openat2).
const ATTEMPTS: u32 = 8;

/// What the child needs, prepared by its parent.
pub(super) struct Plan<'a> {
    pub(super) root: BorrowedFd<'a>,
    /// Another user namespace to enter.
    pub(super) user_namespace: Option<BorrowedFd<'a>>,
    pub(super) identity: &'a Identity,
    pub(super) runtime: RuntimeKind,
    /// Sorted; `None`: those of the hook stay, as the container keeps them.
    pub(super) groups: Option<&'a [u32]>,
    /// As long as `groups`, for reading them back.
    pub(super) became: &'a mut [u32],
    pub(super) questions: &'a [Question],
}

/// How the child comes into the container's device cgroup.
#[derive(Clone, Copy)]
pub(super) enum Join<'a> {
    /// It is there.
    Nothing,
    /// It was born there, and confirms it.
    Born(&'a Group),
    /// By writing to this file.
    Write(&'a Group, BorrowedFd<'a>),
    /// There is no way in.
    Impossible,
}

/// A node and the way in which it is wanted.
pub(super) struct Question {
    pub(super) path: CString,
    /// `R_OK`, `W_OK`
    pub(super) way: libc::c_int,
}

impl Question {
    pub(super) fn of(wish: &Wish) -> Self {
        let way = match wish.access {
            Wanted::ReadWrite => libc::R_OK | libc::W_OK,
            Wanted::ReadOnly => libc::R_OK,
        };
        // a path with a zero in it names no file, as the empty one
        Self { path: CString::new(wish.path.as_str()).unwrap_or_default(), way }
    }
}

type Stop = (Step, Errno);

/// All of it, in a child of `parent`.
pub(super) fn as_child(plan: &mut Plan<'_>, cgroup: Join<'_>, parent: Pid, sheet: &mut Sheet) {
    let done = set_dumpable(false).map_err(|e| (Step::Guard, e)).and_then(|()| {
        sheet.head.join = enter(cgroup).err().unwrap_or(Errno::UnknownErrno);
        if let Some(namespace) = plan.user_namespace {
            setns(namespace, CloneFlags::CLONE_NEWUSER).map_err(|e| (Step::UserNamespace, e))?;
        }
        assume(plan, &mut sheet.head)?;
        guard(parent)?;
        ask(plan, sheet)
    });
    sheet.end(done);
}

/// In the own process, there and back. Only where cgroup and user namespace are the container's.
///
/// An error: nothing was asked, and nothing has changed. Where the way back is barred this does not return: to
/// go on as the container's user would be wrong in every answer that follows. So it is for a process that only
/// looks, which those who wait for it then find dead.
pub(super) fn in_place(plan: &mut Plan<'_>, groups: &mut [u32], sheet: &mut Sheet) -> nix::Result<()> {
    let (users, own_groups) = (getresuid()?, getresgid()?);
    let capabilities = sys::capabilities()?;
    let count = sys::groups(groups)?;
    let done = assume(plan, &mut sheet.head).and_then(|()| ask(plan, sheet));
    sheet.end(done);
    let own_groups_lost = plan.groups.is_some() && sheet.head.step != Step::Groups;
    let back = || {
        sys::set_effective_user(users.effective.as_raw())?;
        sys::set_capabilities(capabilities)?;
        sys::set_effective_group(own_groups.effective.as_raw())?;
        if own_groups_lost {
            sys::set_groups(groups.get(..count).unwrap_or_default())?;
        }
        // another identity may have made the process readable for its new user
        set_dumpable(false)
    };
    if let Err(errno) = back() {
        log::error!("this process could not take its own identity back ({errno:?})");
        sys::leave()
    }
    Ok(())
}

fn enter(cgroup: Join<'_>) -> nix::Result<()> {
    let group = match cgroup {
        Join::Nothing => return Ok(()),
        Join::Impossible => return Err(Errno::ENOENT),
        Join::Born(group) => group,
        Join::Write(group, file) => {
            nix::unistd::write(file, b"0")?;
            group
        }
    };
    confirm(group)
}

/// Becomes the container's user, as the kernel confirms.
fn assume(plan: &mut Plan<'_>, head: &mut Head) -> Result<(), Stop> {
    if let Some(groups) = plan.groups {
        sys::set_groups(groups).map_err(|e| (Step::Groups, e))?;
    }
    let identity = plan.identity;
    sys::set_effective_group(identity.gid).map_err(|e| (Step::Group, e))?;
    sys::set_effective_user(identity.uid).map_err(|e| (Step::User, e))?;
    // after the user: changing it clears the effective set
    let mut sets = sys::capabilities().map_err(|e| (Step::Capabilities, e))?;
    let wanted = effective_after_exec(identity, plan.runtime, u64::MAX).unwrap_or(0);
    head.lacking = wanted & BEARING & !sets.permitted;
    sets.effective = effective_after_exec(identity, plan.runtime, sets.permitted).unwrap_or(0);
    head.effective = sets.effective;
    sys::set_capabilities(sets).map_err(|e| (Step::Capabilities, e))?;
    let differs = |same: bool| if same { Ok(()) } else { Err((Step::ReadBack, Errno::EINVAL)) };
    let read = |e| (Step::ReadBack, e);
    differs(getresuid().map_err(read)?.effective.as_raw() == identity.uid)?;
    differs(getresgid().map_err(read)?.effective.as_raw() == identity.gid)?;
    differs(sys::capabilities().map_err(read)?.effective == sets.effective)?;
    if let Some(groups) = plan.groups {
        let count = sys::groups(plan.became).map_err(read)?;
        let mut became = plan.became.get_mut(..count);
        // the kernel sorts by the numbers outside the user namespace
        if let Some(became) = &mut became {
            became.sort_unstable();
        }
        differs(became.as_deref() == Some(groups))?;
    }
    Ok(())
}

/// Nobody may look into the child, and it must not outlive its parent. Last: a change of identity
/// clears both.
fn guard(parent: Pid) -> Result<(), Stop> {
    set_dumpable(false).map_err(|e| (Step::Guard, e))?;
    set_pdeathsig(Signal::SIGKILL).map_err(|e| (Step::Guard, e))?;
    if getppid() == parent { Ok(()) } else { Err((Step::Guard, Errno::ESRCH)) }
}

/// Asks for each node, after one question whose answer is known: a seccomp profile that does not know
/// the system call answers EPERM to everything, which would look like the device cgroup's refusal.
fn ask(plan: &Plan<'_>, sheet: &mut Sheet) -> Result<(), Stop> {
    sys::access(plan.root, libc::F_OK).map_err(|e| (Step::Calibration, e))?;
    for (question, row) in plan.questions.iter().zip(&mut sheet.rows) {
        *row = answer(plan.root, question);
    }
    Ok(())
}

fn answer(root: BorrowedFd<'_>, question: &Question) -> Row {
    let mut row = Row { asked: true, ..Row::default() };
    let file = match locate(root, question) {
        Ok(file) => file,
        Err(errno) => return Row { located: errno, ..row },
    };
    match fstat(&file) {
        Ok(found) => (row.uid, row.gid, row.identity) = (found.st_uid, found.st_gid, (found.st_dev, found.st_ino)),
        Err(errno) => return Row { located: errno, ..row },
    }
    row.access = sys::access(file.as_fd(), question.way).err().unwrap_or(Errno::UnknownErrno);
    row
}

/// What stands at the path, not opened, and not outside the root. As the container's user: a directory
/// that it may not search is a refusal.
pub(super) fn locate(root: BorrowedFd<'_>, question: &Question) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let mut attempts = 0;
    loop {
        match openat2(root, question.path.as_c_str(), how) {
            Err(Errno::EAGAIN | Errno::EINTR) if attempts < ATTEMPTS => attempts += 1,
            result => return result,
        }
    }
}
