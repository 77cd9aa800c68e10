//! The child's answers, as they pass through the pipe.

use nix::errno::Errno;

/// How far the child came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Step {
    /// Nothing was heard of it.
    #[default]
    None,
    /// Entering the container's user namespace.
    UserNamespace,
    /// Setting the supplementary groups.
    Groups,
    /// Setting the group.
    Group,
    /// Setting the user.
    User,
    /// Setting the capabilities.
    Capabilities,
    /// Reading back what it became.
    ReadBack,
    /// Hiding from others, and dying with its parent.
    Guard,
    /// The question whose answer is known.
    Calibration,
    /// All questions were asked.
    Done,
}

const STEPS: [Step; 10] = [
    Step::None,
    Step::UserNamespace,
    Step::Groups,
    Step::Group,
    Step::User,
    Step::Capabilities,
    Step::ReadBack,
    Step::Guard,
    Step::Calibration,
    Step::Done,
];

/// What is true of all answers. An errno of `UnknownErrno`, which is 0, means success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) step: Step,
    /// Why it stopped at the step.
    pub(super) errno: Errno,
    /// Whether the device cgroup could be entered.
    pub(super) join: Errno,
    /// The capabilities it had.
    pub(super) effective: u64,
    /// Capabilities that bear on the answer, that the container's program will have, and that the child
    /// could not take.
    pub(super) lacking: u64,
}

/// What the kernel said of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// The child came so far.
    pub(super) asked: bool,
    /// Whether the container's user can reach it.
    pub(super) located: Errno,
    /// Whether it may use it.
    pub(super) access: Errno,
    /// Owner and group, in the container's user namespace.
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Device and inode number.
    pub(super) identity: (u64, u64),
}

/// All answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) head: Head,
    pub(super) rows: Vec<Row>,
}

const WORD: usize = size_of::<u64>();
const HEAD: usize = 5;
const ROW: usize = 7;

impl Sheet {
    pub(super) fn blank(rows: usize) -> Self {
        Self { head: Head::default(), rows: vec![Row::default(); rows] }
    }

    /// Length in the pipe, in bytes.
    pub(super) fn length(&self) -> usize {
        (HEAD + ROW * self.rows.len()) * WORD
    }

    /// Notes how the child ended.
    pub(super) fn end(&mut self, result: Result<(), (Step, Errno)>) {
        (self.head.step, self.head.errno) = result.err().unwrap_or((Step::Done, Errno::UnknownErrno));
    }

    /// Into a buffer of its length. Allocates nothing.
    pub(super) fn write(&self, buffer: &mut [u8]) {
        let head = &self.head;
        let step = STEPS.iter().position(|step| *step == head.step).unwrap_or(0);
        let words = [step as u64, number(head.errno), number(head.join), head.effective, head.lacking];
        let rows = self.rows.iter().flat_map(|row| {
            let (device, inode) = row.identity;
            let owners = (u64::from(row.uid), u64::from(row.gid));
            [u64::from(row.asked), number(row.located), number(row.access), owners.0, owners.1, device, inode]
        });
        for (place, word) in buffer.chunks_exact_mut(WORD).zip(words.into_iter().chain(rows)) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// From a buffer of its length.
    pub(super) fn read(buffer: &[u8]) -> Option<Self> {
        let words: Vec<u64> =
            buffer.chunks_exact(WORD).filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes)).collect();
        let (&[step, errno, join, effective, lacking], rest) = words.split_first_chunk::<HEAD>()?;
        let step = *STEPS.get(usize::try_from(step).ok()?)?;
        let rows = rest
            .as_chunks::<ROW>()
            .0
            .iter()
            .map(|&[asked, located, access, uid, gid, device, inode]| Row {
                asked: asked != 0,
                located: errno_of(located),
                access: errno_of(access),
                uid: u32::try_from(uid).unwrap_or(u32::MAX),
                gid: u32::try_from(gid).unwrap_or(u32::MAX),
                identity: (device, inode),
            })
            .collect();
        Some(Self { head: Head { step, errno: errno_of(errno), join: errno_of(join), effective, lacking }, rows })
    }
}

impl Default for Head {
    fn default() -> Self {
        let none = Errno::UnknownErrno;
        Self { step: Step::None, errno: none, join: none, effective: 0, lacking: 0 }
    }
}

impl Default for Row {
    fn default() -> Self {
        let none = Errno::UnknownErrno;
        Self { asked: false, located: none, access: none, uid: 0, gid: 0, identity: (0, 0) }
    }
}

fn number(errno: Errno) -> u64 {
    u64::from((errno as i32).unsigned_abs())
}

fn errno_of(number: u64) -> Errno {
    Errno::from_raw(i32::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_through_the_pipe_comes_out_the_same() {
        let mut sheet = Sheet::blank(3);
        sheet.end(Err((Step::User, Errno::EPERM)));
        sheet.head.join = Errno::ESTALE;
        (sheet.head.effective, sheet.head.lacking) = (0x1ff_ffff_ffff, 2);
        sheet.rows[1] = Row {
            asked: true,
            located: Errno::UnknownErrno,
            access: Errno::EACCES,
            uid: 65534,
            gid: 44,
            identity: (u64::MAX, 7),
        };
        let mut buffer = vec![0; sheet.length()];
        sheet.write(&mut buffer);
        assert_eq!(Sheet::read(&buffer), Some(sheet));
        assert_eq!(Sheet::read(&buffer[..8]), None);
    }
}
