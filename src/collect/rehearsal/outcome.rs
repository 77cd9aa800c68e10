//! From what the kernel answered to what may be said of it.
//!
//! A refusal is said only where nothing else could explain it; else the answer is unknown.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;

use super::act::Question;
use super::capabilities::DAC_OVERRIDE;
use super::sheet::{Head, Row, Step};
use super::{RuntimeKind, sys};
use crate::collect::tree::Stat;
use crate::model::container::{Access, IdMapping, Identity, Refusal};

/// What is true of all answers.
pub(super) struct Witness<'a> {
    pub(super) identity: &'a Identity,
    pub(super) runtime: RuntimeKind,
    pub(super) privileged_entrypoint: Option<bool>,
    pub(super) head: Head,
}

impl Witness<'_> {
    /// What the kernel's word on a node comes to. `has_acl` is asked only where it matters.
    pub(super) fn access(&self, node: &Stat, question: &Question, row: &Row, has_acl: impl FnOnce() -> bool) -> Access {
        let success = Errno::UnknownErrno;
        if node.nodev {
            return Access::Refused(Refusal::NoDev);
        }
        if self.head.step != Step::Done || !row.asked {
            return Access::Unknown(stopped(&self.head));
        }
        match row.located {
            errno if errno == success => {}
            // root found it by the same way, so it is a directory that this user may not search
            Errno::EACCES => return self.refused_by_mode(),
            errno => return Access::Unknown(format!("it could not be reached as the container's user ({errno:?})")),
        }
        if row.identity != node.identity {
            return Access::Unknown("it was replaced while it was looked at".to_owned());
        }
        match row.access {
            Errno::EACCES if self.mode_grants(node, question, row) && !has_acl() => {
                Access::Unknown("mode and owner allow it; a security module may not (EACCES)".to_owned())
            }
            Errno::EACCES => self.refused_by_mode(),
            errno if errno == success || errno == Errno::EPERM => match (self.head.join, errno) {
                (joined, _) if joined != success => {
                    Access::Unknown(format!("the container's device cgroup could not be entered ({joined:?})"))
                }
                (_, Errno::EPERM) => Access::Refused(Refusal::Cgroup),
                _ => Access::Granted,
            },
            errno => Access::Unknown(format!("the kernel did not say ({errno:?})")),
        }
    }

    /// A refusal by mode, unless the container's program may have more rights than the child had.
    fn refused_by_mode(&self) -> Access {
        let doubt = if self.identity.capabilities.is_none() && self.runtime == RuntimeKind::Unknown {
            "the spec gives no capabilities, and what this runtime makes of that is not known"
        } else if self.head.lacking != 0 {
            "the container's program has capabilities that this process lacks"
        } else {
            match self.privileged_entrypoint {
                Some(true) => "the container's program is setuid, setgid, or has file capabilities",
                // root gains nothing by a file's capabilities that its bounding set would not give it
                None if self.identity.uid != 0 => "whether the container's program raises its privileges was not seen",
                _ => return Access::Refused(Refusal::Mode),
            }
        };
        Access::Unknown(doubt.to_owned())
    }

    /// Mode and owner alone, or the capability that overrides them, would allow it.
    fn mode_grants(&self, node: &Stat, question: &Question, row: &Row) -> bool {
        let mapped = row.uid != IdMapping::OVERFLOW && row.gid != IdMapping::OVERFLOW;
        if self.head.effective & DAC_OVERRIDE != 0 && mapped {
            return true;
        }
        let identity = self.identity;
        let class = if identity.uid == row.uid {
            node.mode >> 6
        } else if identity.gid == row.gid || identity.additional_gids.contains(&row.gid) {
            node.mode >> 3
        } else {
            node.mode
        };
        let way = question.way.unsigned_abs();
        class & way == way
    }
}

/// The file behind a descriptor has an access control list.
pub(super) fn has_acl(file: &OwnedFd) -> bool {
    CString::new(format!("/proc/thread-self/fd/{}", file.as_raw_fd())).is_ok_and(|path| sys::has_acl(&path))
}

fn stopped(head: &Head) -> String {
    let what = match head.step {
        Step::None | Step::Done => return "the kernel was not asked".to_owned(),
        Step::UserNamespace => "entering the container's user namespace failed",
        Step::Groups => "taking the container's groups failed",
        Step::Group => "taking the container's group failed",
        Step::User => "taking the container's user failed",
        Step::Capabilities => "taking the container's capabilities failed",
        Step::ReadBack => "the identity taken was not the container's",
        Step::Guard => "the process that asks could not be guarded",
        Step::Calibration => "this kernel, or a seccomp profile, has no faccessat2",
    };
    format!("{what} ({:?})", head.errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::container::CapabilitySets;
    use crate::model::host::NodeKind;

    const OK: Errno = Errno::UnknownErrno;

    struct Case {
        identity: Identity,
        runtime: RuntimeKind,
        entrypoint: Option<bool>,
        head: Head,
        node: Stat,
        row: Row,
        acl: bool,
    }

    /// User 1000 before a node 0660 root:44, and a kernel that says yes.
    fn case() -> Case {
        Case {
            identity: Identity {
                uid: 1000,
                gid: 1000,
                capabilities: Some(CapabilitySets::default()),
                ..Identity::default()
            },
            runtime: RuntimeKind::Runc,
            entrypoint: Some(false),
            head: Head { step: Step::Done, ..Head::default() },
            node: Stat {
                changed: 0,
                kind: NodeKind::CharDevice,
                major: 195,
                minor: 0,
                mode: 0o660,
                uid: 0,
                gid: 44,
                size: 0,
                identity: (5, 7),
                nodev: false,
            },
            row: Row { asked: true, gid: 44, identity: (5, 7), ..Row::default() },
            acl: false,
        }
    }

    fn judge(change: impl FnOnce(&mut Case)) -> Access {
        let mut case = case();
        change(&mut case);
        let witness = Witness {
            identity: &case.identity,
            runtime: case.runtime,
            privileged_entrypoint: case.entrypoint,
            head: case.head,
        };
        let question = Question { path: c"/dev/nvidia0".to_owned(), way: libc::R_OK | libc::W_OK };
        witness.access(&case.node, &question, &case.row, || case.acl)
    }

    fn unknown(access: &Access) -> bool {
        matches!(access, Access::Unknown(_))
    }

    #[test]
    fn the_kernels_word_is_passed_on() {
        assert_eq!(judge(|_| ()), Access::Granted);
        assert_eq!(judge(|c| c.row.access = Errno::EACCES), Access::Refused(Refusal::Mode));
        assert_eq!(judge(|c| c.row.located = Errno::EACCES), Access::Refused(Refusal::Mode));
        assert_eq!(judge(|c| c.row.access = Errno::EPERM), Access::Refused(Refusal::Cgroup));
        assert_eq!(judge(|c| c.node.nodev = true), Access::Refused(Refusal::NoDev));
    }

    #[test]
    fn outside_the_containers_cgroup_only_the_mode_can_refuse() {
        let join = |c: &mut Case| c.head.join = Errno::EACCES;
        assert!(unknown(&judge(join)));
        assert!(unknown(&judge(|c| (join(c), c.row.access = Errno::EPERM).0)));
        assert_eq!(judge(|c| (join(c), c.row.access = Errno::EACCES).0), Access::Refused(Refusal::Mode));
    }

    #[test]
    fn a_program_that_may_have_more_rights_is_not_refused() {
        let refused = |c: &mut Case| c.row.access = Errno::EACCES;
        assert!(unknown(&judge(|c| (refused(c), c.entrypoint = Some(true)).0)));
        assert!(unknown(&judge(|c| (refused(c), c.entrypoint = None).0)));
        assert!(unknown(&judge(|c| (refused(c), c.head.lacking = DAC_OVERRIDE).0)));
        let no_capabilities = |c: &mut Case| (c.identity.capabilities, c.runtime) = (None, RuntimeKind::Unknown);
        assert!(unknown(&judge(|c| (refused(c), no_capabilities(c)).0)));
        assert_eq!(judge(no_capabilities), Access::Granted, "capabilities only ever add");
        let root = |c: &mut Case| (c.identity.uid, c.row.uid, c.entrypoint) = (0, 1, None);
        assert_eq!(judge(|c| (refused(c), root(c)).0), Access::Refused(Refusal::Mode));
    }

    #[test]
    fn a_refusal_that_mode_and_owner_do_not_explain_is_unknown() {
        let refused = |c: &mut Case| c.row.access = Errno::EACCES;
        assert!(unknown(&judge(|c| (refused(c), c.node.mode = 0o666).0)));
        assert!(unknown(&judge(|c| (refused(c), c.identity.additional_gids = vec![44]).0)));
        assert!(unknown(&judge(|c| (refused(c), c.head.effective = DAC_OVERRIDE).0)));
        let with_acl = judge(|c| (refused(c), (c.node.mode, c.acl) = (0o666, true)).0);
        assert_eq!(with_acl, Access::Refused(Refusal::Mode));
        let unmapped = judge(|c| (refused(c), (c.head.effective, c.row.gid) = (DAC_OVERRIDE, IdMapping::OVERFLOW)).0);
        assert_eq!(unmapped, Access::Refused(Refusal::Mode), "it does not help on owners that are not mapped");
        let class_denied = judge(|c| {
            refused(c);
            (c.node.mode, c.identity.gid) = (0o606, 44);
        });
        assert_eq!(class_denied, Access::Refused(Refusal::Mode), "the class that matches first decides");
    }

    #[test]
    fn what_did_not_happen_as_planned_is_unknown() {
        assert!(unknown(&judge(|c| c.head.step = Step::Calibration)));
        assert!(unknown(&judge(|c| c.head.step = Step::ReadBack)));
        assert!(unknown(&judge(|c| c.row = Row::default())));
        assert!(unknown(&judge(|c| c.row.identity = (5, 8))));
        assert!(unknown(&judge(|c| c.row.located = Errno::ELOOP)));
        assert!(unknown(&judge(|c| c.row.access = Errno::ENOSYS)));
        assert_eq!(judge(|c| c.row.located = OK), Access::Granted);
    }
}
