//! Rehearsals on a rootfs of our own. They need root; real runtimes are in `integration/rehearsal`.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{getegid, geteuid, getgroups};
use tempfile::TempDir;

use super::*;
use crate::collect::child;
use crate::collect::container::nodes;
use crate::collect::testing::{Call, forbid, skip};
use crate::collect::tree::Kind;
use crate::model::container::{CapabilitySets, Refusal};
use nix::errno::Errno;

const DAC_OVERRIDE: u64 = 1 << 1;

/// A rootfs below a directory that is closed to all others, with a `/dev`.
fn rootfs() -> Option<TempDir> {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("dev")).unwrap();
    let node = root.path().join("dev/probe");
    if mknod(&node, SFlag::S_IFCHR, Mode::empty(), makedev(195, 0)).is_err() {
        skip("device nodes can be made by root only");
        return None;
    }
    std::fs::remove_file(node).unwrap();
    Some(root)
}

fn node(root: &TempDir, name: &str, mode: u32, uid: u32, gid: u32) {
    let path = root.path().join(name.trim_start_matches('/'));
    mknod(&path, SFlag::S_IFCHR, Mode::empty(), makedev(195, 0)).unwrap();
    chown(&path, Some(uid), Some(gid)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn user(uid: u32, gid: u32, groups: &[u32]) -> Identity {
    let capabilities = Some(CapabilitySets::default());
    Identity { uid, gid, additional_gids: groups.to_vec(), capabilities, ..Identity::default() }
}

fn rehearsal<'a>(root: &'a Path, identity: &'a Identity, nodes: &[&str]) -> Rehearsal<'a> {
    Rehearsal {
        place: Place::Container { rootfs: root },
        identity,
        nodes: nodes.iter().copied().map(Wish::of).collect(),
        keep_groups: false,
        runtime: RuntimeKind::Runc,
        privileged_entrypoint: Some(false),
        deadline: Duration::from_secs(5),
        expendable: false,
    }
}

fn access(root: &TempDir, identity: &Identity, path: &str) -> Access {
    let inside = rehearse(&rehearsal(root.path(), identity, &[path])).remove(0);
    let pid = std::process::id().try_into().unwrap();
    let place = Place::Runtime { pid, rootfs: root.path() };
    let outside = rehearse(&Rehearsal { place, ..rehearsal(root.path(), identity, &[path]) }).remove(0);
    assert_eq!(inside, outside);
    inside.access
}

const BY_MODE: Access = Access::Refused(Refusal::Mode);

#[test]
fn groups_decide_about_a_node_of_roots_group() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o660, 0, 44);
    node(&root, "/dev/nvidia1", 0o606, 0, 44);
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidia0"), BY_MODE);
    assert_eq!(access(&root, &user(1000, 1000, &[7, 44, 3, 44]), "/dev/nvidia0"), Access::Granted);
    assert_eq!(access(&root, &user(1000, 44, &[]), "/dev/nvidia0"), Access::Granted);
    assert_eq!(access(&root, &user(1000, 44, &[]), "/dev/nvidia1"), BY_MODE);
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidia1"), Access::Granted);
}

#[test]
fn root_without_capabilities_is_a_user_like_any_other() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o660, 1, 44);
    node(&root, "/dev/nvidia1", 0o660, 0, 0);
    let bare = user(0, 0, &[]);
    let sets = CapabilitySets { bounding: DAC_OVERRIDE, ..CapabilitySets::default() };
    let able = Identity { capabilities: Some(sets), ..bare.clone() };
    assert_eq!(access(&root, &bare, "/dev/nvidia0"), BY_MODE);
    assert_eq!(access(&root, &able, "/dev/nvidia0"), Access::Granted);
    assert_eq!(access(&root, &bare, "/dev/nvidia1"), Access::Granted);
}

#[test]
fn directories_on_the_way_count_and_those_above_the_rootfs_do_not() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o666, 0, 0);
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidia0"), Access::Granted);
    std::fs::set_permissions(root.path().join("dev"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidia0"), BY_MODE);
}

#[test]
fn capability_nodes_are_only_read() {
    let Some(root) = rootfs() else { return };
    std::fs::create_dir(root.path().join("dev/nvidia-caps")).unwrap();
    node(&root, "/dev/nvidia-caps/nvidia-cap1", 0o444, 0, 0);
    node(&root, "/dev/nvidiactl", 0o444, 0, 0);
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidia-caps/nvidia-cap1"), Access::Granted);
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidiactl"), BY_MODE);
    let found = nodes::look(&Tree::open(root.path(), Kind::Container).unwrap());
    let paths: Vec<_> = found.known().unwrap().iter().map(|node| node.path.as_str()).collect();
    assert_eq!(paths, ["/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1"]);
}

#[test]
fn links_stay_inside_and_magic_ones_are_not_followed() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o666, 0, 0);
    symlink("../../../../dev/nvidia0", root.path().join("dev/up")).unwrap();
    symlink("/dev/nvidia0", root.path().join("dev/absolute")).unwrap();
    symlink("absolute", root.path().join("dev/circle")).unwrap();
    symlink("/proc/self/root/dev/null", root.path().join("dev/outside")).unwrap();
    let who = user(1000, 1000, &[]);
    assert_eq!(access(&root, &who, "/dev/up"), Access::Granted);
    assert_eq!(access(&root, &who, "/dev/circle"), Access::Granted);
    let answer = rehearse(&rehearsal(root.path(), &who, &["/dev/outside"])).remove(0);
    assert_eq!(answer.look, Look::Missing);
}

#[test]
fn what_is_no_device_is_seen_and_not_asked_about() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o660, 3, 44);
    nix::unistd::mkfifo(&root.path().join("dev/nvidia1"), Mode::S_IRWXU).unwrap();
    std::fs::write(root.path().join("dev/nvidia2"), "").unwrap();
    let who = user(1000, 44, &[]);
    let nodes = ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3", "/dev/a\0b"];
    let answers = rehearse(&rehearsal(root.path(), &who, &nodes));
    let kind = |n: usize| match &answers[n].look {
        Look::Node(node) => Some(node.kind),
        _ => None,
    };
    let Look::Node(first) = &answers[0].look else { panic!("{answers:?}") };
    assert_eq!((first.major, first.minor, first.mode, first.uid, first.gid), (195, 0, 0o660, 3, 44));
    assert_eq!(answers[0].access, Access::Granted);
    assert_eq!((kind(1), kind(2)), (Some(NodeKind::Fifo), Some(NodeKind::File)));
    assert_eq!((&answers[3].look, &answers[4].look), (&Look::Missing, &Look::Missing));
    assert!(answers[1..].iter().all(|a| matches!(a.access, Access::Unknown(_))));
}

#[test]
fn identities_that_cannot_be_taken_are_unknown() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o600, 0, 0);
    let unknown = |identity: &Identity| matches!(access(&root, identity, "/dev/nvidia0"), Access::Unknown(_));
    assert!(unknown(&user(u32::MAX, 0, &[])));
    assert!(unknown(&user(1000, u32::MAX, &[])));
    assert!(unknown(&user(1000, 1000, &[u32::MAX])));
    let kept = user(1000, 1000, &[]);
    let keeping =
        |runtime| Rehearsal { keep_groups: true, runtime, ..rehearsal(root.path(), &kept, &["/dev/nvidia0"]) };
    assert!(matches!(rehearse(&keeping(RuntimeKind::Unknown)).remove(0).access, Access::Unknown(_)));
    assert_eq!(rehearse(&keeping(RuntimeKind::Runc)).remove(0).access, BY_MODE);
}

#[test]
fn a_container_that_cannot_be_reached_is_unseen() {
    let who = user(0, 0, &[]);
    let absent = Path::new("/nowhere/at/all");
    let places = [
        Place::Container { rootfs: absent },
        Place::Runtime { pid: std::process::id().try_into().unwrap(), rootfs: absent },
        Place::Runtime { pid: 1, rootfs: Path::new("relative") },
        Place::Runtime { pid: 0, rootfs: Path::new("/") },
        Place::Running { pid: i32::MAX },
    ];
    for place in places {
        let answers = rehearse(&Rehearsal { place, ..rehearsal(absent, &who, &["/dev/nvidia0"]) });
        assert!(matches!(answers[0].look, Look::Unseen(_)), "{place:?}");
        assert!(matches!(answers[0].access, Access::Unknown(_)), "{place:?}");
    }
}

#[test]
fn the_way_back_in_the_own_process_leads_to_the_same_identity() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o660, 0, 44);
    let root = nix::fcntl::open(root.path(), nix::fcntl::OFlag::O_PATH, Mode::empty()).unwrap();
    // an identity is a thread's own
    let state = || {
        let thread = nix::unistd::getresuid().unwrap();
        (thread, geteuid(), getegid(), getgroups().unwrap(), sys::capabilities().unwrap())
    };
    for (groups, expected) in [(vec![44], Errno::UnknownErrno), (vec![], Errno::EACCES)] {
        let identity = user(1000, 1000, &groups);
        let questions = [Question::of(&Wish::of("/dev/nvidia0"))];
        let mut became = vec![0; groups.len()];
        let mut plan = Plan {
            root: root.as_fd(),
            user_namespace: None,
            identity: &identity,
            runtime: RuntimeKind::Runc,
            groups: Some(&groups),
            became: &mut became,
            questions: &questions,
        };
        let before = state();
        let sheet = ask_in_place(&mut plan, None).unwrap();
        assert_eq!(sheet.rows[0].access, expected);
        assert_eq!(state(), before);
    }
}

#[test]
fn a_process_that_cannot_be_itself_again_ends_there() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o660, 0, 44);
    let root = nix::fcntl::open(root.path(), nix::fcntl::OFlag::O_PATH, Mode::empty()).unwrap();
    let identity = user(1000, 1000, &[]);
    let questions = [Question::of(&Wish::of("/dev/nvidia0"))];
    for barred in [false, true] {
        let answer = child::run(Instant::now() + Duration::from_secs(10), 64, |out| {
            let mut plan = Plan {
                root: root.as_fd(),
                user_namespace: None,
                identity: &identity,
                runtime: RuntimeKind::Runc,
                groups: Some(&[]),
                became: &mut [],
                questions: &questions,
            };
            if barred {
                forbid(&Call { number: libc::SYS_setresuid, only: Some((1, 0)) });
            }
            let asked = ask_in_place(&mut plan, None).is_ok();
            let _ = write!(out, "{asked} {}", geteuid());
        });
        let answer = answer.unwrap();
        let expected: (&[u8], bool) = if barred { (b"", false) } else { (b"true 0", true) };
        assert_eq!((&*answer.bytes, answer.complete), expected);
    }
}

/// Sets an access control list: owner and group may do all, one user and all others what is
/// given.
fn acl(path: &Path, user: u32, may: u16, others: u16) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    // `struct posix_acl_xattr_header` and entries: tag, permissions, id
    let none = u32::MAX;
    let entries: [(u16, u16, u32); 5] = [(1, 6, none), (2, may, user), (4, 6, none), (16, 6, none), (32, others, none)];
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let name = c"system.posix_acl_access";
    #[expect(unsafe_code, reason = "nix has no setxattr")]
    // SAFETY: both strings end with a zero, and the kernel reads as many bytes as the value has
    let result = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    result == 0
}

#[test]
fn access_control_lists_count() {
    let Some(root) = rootfs() else { return };
    node(&root, "/dev/nvidia0", 0o666, 0, 0);
    if !acl(&root.path().join("dev/nvidia0"), 1000, 0, 6) {
        return skip("this file system has no access control lists");
    }
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidia0"), BY_MODE);
    assert_eq!(access(&root, &user(1001, 1000, &[]), "/dev/nvidia0"), Access::Granted);
    node(&root, "/dev/nvidia1", 0o660, 0, 0);
    assert!(acl(&root.path().join("dev/nvidia1"), 1000, 6, 0));
    assert_eq!(access(&root, &user(1000, 1000, &[]), "/dev/nvidia1"), Access::Granted);
    assert_eq!(access(&root, &user(1001, 1000, &[]), "/dev/nvidia1"), BY_MODE);
}
