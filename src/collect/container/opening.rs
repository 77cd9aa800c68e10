//! May this process use the container's nodes, and does anybody serve them? Asked in a child with a deadline: to open
//! a node of a driver that is stuck may not come back.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sys::stat::Mode;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, faccessat};

use crate::collect::child;
use crate::collect::rehearsal::{Wanted, Wish};
use crate::model::container::{Access, ContainerNode, Refusal};
use crate::model::host::{Majors, NodeKind};

/// A line a node and step.
const LIMIT: usize = 64 << 10;

/// What the child does with a node.
const ASKS: &str = "asks";
const OPENS: &str = "opens";

/// Asks the kernel whether this process may use the nodes below `root`, and opens those of `to_open`.
///
/// Only a node whose number the driver has, or nobody has, is opened: another driver's may do anything.
pub fn try_nodes(
    root: &Path,
    nodes: &mut [ContainerNode],
    majors: Option<&Majors>,
    to_open: impl Fn(&str) -> bool,
    deadline: Instant,
) {
    let wanted = |node: &ContainerNode| to_open(&node.path) && majors.is_some_and(|majors| is_harmless(node, majors));
    let work: Vec<(usize, bool)> = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.kind == NodeKind::CharDevice)
        .map(|(n, node)| (n, wanted(node)))
        .collect();
    if work.is_empty() {
        return;
    }
    let answer = child::run(deadline, LIMIT, |out| {
        if !may_ask() {
            return;
        }
        for (number, opens) in &work {
            let Some(node) = nodes.get(*number) else { continue };
            let path = root.join(node.path.trim_start_matches('/'));
            try_one(*number, &path, mask(&node.path), *opens, out);
        }
    });
    let (text, complete) = match &answer {
        Ok(answer) => (String::from_utf8_lossy(&answer.bytes).into_owned(), answer.complete),
        Err(_) => (String::new(), false),
    };
    // what got no processor was not kept waiting by the kernel's driver
    let is_late = Instant::now() >= deadline && !answer.as_ref().is_ok_and(|answer| answer.starved);
    for (number, _) in work {
        let Some(node) = nodes.get_mut(number) else { continue };
        node.access = heard(number, &text, complete, is_late);
    }
}

/// The driver has this number, or nobody does: then to open it says so.
fn is_harmless(node: &ContainerNode, majors: &Majors) -> bool {
    majors.of(&node.path) == Some(node.major) || !majors.0.values().any(|major| *major == node.major)
}

/// As the driver's libraries open it.
fn mask(path: &str) -> AccessFlags {
    match Wish::of(path).access {
        Wanted::ReadOnly => AccessFlags::R_OK,
        Wanted::ReadWrite => AccessFlags::R_OK | AccessFlags::W_OK,
    }
}

/// A seccomp profile may refuse the question itself, with the device cgroup's own word: then it refuses one that every
/// process gets a yes to.
fn may_ask() -> bool {
    ask(Path::new("/"), AccessFlags::F_OK).is_ok()
}

/// Seccomp profiles from before Linux 5.8 refuse the call that knows flags, with the device cgroup's own word; glibc takes
/// that call without flags, too. The older one asks for the real user, who is the same inside a container.
fn ask(path: &Path, mask: AccessFlags) -> nix::Result<()> {
    match faccessat(AT_FDCWD, path, mask, AtFlags::AT_EACCESS) {
        Err(Errno::EPERM) => nix::unistd::access(path, mask),
        answer => answer,
    }
}

/// In the child. A line `NUMBER STEP ERRNO MODE`; without a code the step is begun.
fn try_one(number: usize, path: &Path, mask: AccessFlags, opens: bool, out: &mut File) {
    let mut say = |line: &str| {
        // nobody who could hear of it
        let _ = out.write_all(format!("{number} {line}\n").as_bytes());
    };
    let asked = ask(path, mask);
    let code = |result: nix::Result<()>| result.err().map_or(0, |error| error as i32);
    say(&format!("{ASKS} {}", code(asked)));
    if !opens || asked.is_err() {
        return;
    }
    say(OPENS);
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let opened = nix::fcntl::open(path, flags, Mode::empty());
    let nodev = opened.as_ref().is_err_and(|error| *error == Errno::EACCES)
        && statvfs(path).is_ok_and(|system| system.flags().contains(FsFlags::from_bits_retain(NODEV)));
    say(&format!("{OPENS} {}{}", code(opened.map(drop)), if nodev { " nodev" } else { "" }));
}

/// `ST_NODEV` of statvfs(3).
const NODEV: nix::libc::c_ulong = 4;

fn heard(number: usize, text: &str, complete: bool, is_late: bool) -> Access {
    let own = text.lines().filter_map(|line| line.split_once(' ')).filter(|(n, _)| n.parse() == Ok(number));
    let why = if is_late { "the kernel did not answer in time" } else { "this process may not ask the kernel" };
    let mut access = Access::Unknown(why.to_owned());
    for (_, step) in own {
        let mut words = step.split(' ');
        let (step, code) = (words.next().unwrap_or_default(), words.next().and_then(|code| code.parse::<i32>().ok()));
        access = match (step, code) {
            (_, Some(0)) => Access::Granted,
            // The device cgroup was asked before, and is asked again by opening: it is the driver that refuses.
            (OPENS, Some(code)) if code == Errno::EPERM as i32 => {
                Access::Unknown("the driver refuses this process with EPERM".to_owned())
            }
            (_, Some(code)) => refused(Errno::from_raw(code), words.next().is_some()),
            (_, None) if is_late => Access::Refused(Refusal::Hangs),
            (_, None) if complete => access,
            (_, None) => Access::Unknown("the process that opened it was ended by it".to_owned()),
        };
    }
    access
}

fn refused(error: Errno, nodev: bool) -> Access {
    match error {
        Errno::EPERM => Access::Refused(Refusal::Cgroup),
        Errno::EACCES if nodev => Access::Refused(Refusal::NoDev),
        Errno::EACCES => Access::Refused(Refusal::Mode),
        Errno::ENXIO | Errno::ENODEV => Access::Refused(Refusal::NoDriver),
        other => Access::Unknown(format!("to open it ends with {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn node(path: &str, major: u32, minor: u32) -> ContainerNode {
        ContainerNode { path: path.into(), major, minor, looked_at: true, ..ContainerNode::default() }
    }

    /// Every kernel has `/dev/null` (1:3).
    fn tried(nodes: &mut [ContainerNode], majors: &[(&str, u32)]) -> Vec<Access> {
        let majors = Majors(majors.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect());
        try_nodes(Path::new("/"), nodes, Some(&majors), |_| true, Instant::now() + Duration::from_secs(5));
        nodes.iter().map(|node| node.access.clone()).collect()
    }

    #[test]
    fn what_can_be_opened_is_granted_and_what_is_gone_is_not_known() {
        let mut nodes = [node("/dev/null", 1, 3), node("/dev/null-of-nobody", 1, 3)];
        let answers = tried(&mut nodes, &[("mem", 1)]);
        assert_eq!(answers[0], Access::Granted);
        assert!(matches!(&answers[1], Access::Unknown(why) if why.contains("ENOENT")), "{answers:?}");
    }

    #[test]
    fn the_node_of_another_driver_is_never_opened() {
        let majors = Majors([("nvidia", 195), ("watchdog", 10)].map(|(name, n)| (name.to_owned(), n)).into());
        assert!(!is_harmless(&node("/dev/nvidiactl", 10, 130), &majors));
        assert!(is_harmless(&node("/dev/nvidiactl", 195, 255), &majors));
        assert!(is_harmless(&node("/dev/nvidiactl", 99, 255), &majors), "nobody's");
    }

    #[test]
    fn each_answer_of_the_kernel_has_its_meaning() {
        let of = |text: &str, complete, is_late| heard(3, text, complete, is_late);
        assert_eq!(of("3 asks 0\n3 opens\n3 opens 0\n", true, false), Access::Granted);
        assert_eq!(of("3 asks 1\n", true, false), Access::Refused(Refusal::Cgroup));
        let by_driver = of("3 asks 0\n3 opens\n3 opens 1\n", true, false);
        assert!(matches!(&by_driver, Access::Unknown(why) if why.contains("driver")), "{by_driver:?}");
        assert!(matches!(of("", true, false), Access::Unknown(why) if why.contains("may not ask")));
        assert_eq!(of("3 asks 13\n", true, false), Access::Refused(Refusal::Mode));
        assert_eq!(of("3 asks 0\n3 opens\n3 opens 13 nodev\n", true, false), Access::Refused(Refusal::NoDev));
        assert_eq!(of("3 asks 0\n3 opens\n3 opens 6\n", true, false), Access::Refused(Refusal::NoDriver));
        assert_eq!(of("3 asks 0\n3 opens\n", false, true), Access::Refused(Refusal::Hangs));
        assert!(matches!(of("3 asks 0\n3 opens\n", false, false), Access::Unknown(_)), "it died");
        assert!(matches!(of("4 asks 0\n", false, true), Access::Unknown(_)), "nobody came so far");
        assert!(
            matches!(of("3 asks 0\n3 opens\n3 opens 5\n", true, false), Access::Unknown(why) if why.contains("EIO"))
        );
    }
}
