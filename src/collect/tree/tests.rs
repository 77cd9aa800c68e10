use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use nix::mount::{MsFlags, mount, umount};
use nix::unistd::{Uid, mkfifo, setfsuid};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::collect::testing::skip;

const NOTHING: Option<&Path> = None;

/// A directory `root` with `outside` beside it, which nothing below `root` may ever lead to.
pub(super) fn laid_out() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("outside"), "outside").unwrap();
    fs::create_dir_all(dir.path().join("root/a/b")).unwrap();
    fs::write(dir.path().join("root/a/b/file"), "within").unwrap();
    dir
}

/// Both ways of resolving, which must agree on everything.
pub(super) fn both(dir: &TempDir, kind: Kind, scenario: impl Fn(&Tree)) {
    for resolver in [Resolver::Kernel, Resolver::Walk] {
        let mut tree = Tree::open(&dir.path().join("root"), kind).unwrap();
        tree.resolver = resolver;
        scenario(&tree);
    }
}

fn text(tree: &Tree, path: &str) -> Option<String> {
    tree.read_text(path, 100).unwrap_or_else(|e| panic!("{path} with {:?}: {e:?}", tree.resolver))
}

fn reason(tree: &Tree, path: &str) -> String {
    tree.read(path, 100).expect_err(&format!("{path} with {:?}", tree.resolver)).reason
}

#[test]
fn links_stay_below_the_root() {
    let dir = laid_out();
    let root = dir.path().join("root");
    symlink("/a/b/file", root.join("absolute")).unwrap();
    symlink("../../../../../../a/b/file", root.join("a/b/climber")).unwrap();
    symlink("../../outside", root.join("a/escape")).unwrap();
    symlink(dir.path().join("outside"), root.join("host-path")).unwrap();
    symlink("a/b", root.join("directory")).unwrap();
    symlink("directory/../b/file", root.join("through")).unwrap();
    both(&dir, Kind::Image, |tree| {
        for path in
            ["a/b/file", "/a/b/file", "absolute", "a/b/climber", "directory/file", "through", "../../a//./b/file"]
        {
            assert_eq!(text(tree, path).as_deref(), Some("within"), "{path} with {:?}", tree.resolver);
        }
        for path in
            ["a/escape", "host-path", "../outside", "/../outside", "gone", "a/b/file/x", "a/b/file/", "a\0b", ""]
        {
            let found = tree.stat(path).unwrap();
            assert!(found.is_none_or(|s| s.kind == NodeKind::Directory), "{path} with {:?}", tree.resolver);
        }
        assert_eq!(tree.link("absolute").unwrap().as_deref(), Some(Path::new("/a/b/file")));
        assert_eq!(tree.link("directory").unwrap().as_deref(), Some(Path::new("a/b")));
        for path in ["directory/", "a/b/file", "a", "gone", ""] {
            assert_eq!(tree.link(path).unwrap().as_deref(), NOTHING, "{path} with {:?}", tree.resolver);
        }
    });
}

#[test]
fn loops_end_and_long_paths_are_refused() {
    let dir = laid_out();
    let root = dir.path().join("root");
    symlink("loop-b", root.join("loop-a")).unwrap();
    symlink("loop-a", root.join("loop-b")).unwrap();
    // each link is followed twice by the next: 2^30 steps for whoever counts none
    symlink(".", root.join("l0")).unwrap();
    for n in 1..30 {
        symlink(format!("l{0}/l{0}", n - 1), root.join(format!("l{n}"))).unwrap();
    }
    both(&dir, Kind::Image, |tree| {
        for path in ["loop-a", "loop-a/x", "l29/a/b/file"] {
            assert!(reason(tree, path).contains("ELOOP"), "{path} with {:?}", tree.resolver);
        }
        assert_eq!(tree.link("loop-a").unwrap().as_deref(), Some(Path::new("loop-b")));
        assert!(tree.stat(&"a/".repeat(3000)).is_err() || tree.resolver == Resolver::Walk);
    });
}

/// What a name in a random tree is.
#[derive(Debug, Clone)]
enum Entry {
    Directory,
    File,
    Link(String),
}

fn entries() -> impl Strategy<Value = Vec<(String, Entry)>> {
    let path = "/?(\\.\\.?/|[ab]/){0,4}([ab]|\\.\\.?)/?";
    let entry =
        prop_oneof![Just(Entry::Directory), Just(Entry::File), path.prop_map(Entry::Link), path.prop_map(Entry::Link)];
    proptest::collection::vec(("[ab](/[ab]){0,2}", entry), 0..10)
}

proptest! {
    /// Whatever links a tree is made of, the walk finds what the kernel finds.
    #[test]
    fn the_walk_agrees_with_the_kernel(
        entries in entries(),
        paths in proptest::collection::vec("/?([ab.]{1,2}/){0,5}[ab.]{0,2}", 1..12),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        for (path, entry) in &entries {
            // whatever stands in the way of an entry, or is one already, wins
            let _ = match entry {
                Entry::Directory => fs::create_dir(root.join(path)),
                Entry::File => fs::File::create_new(root.join(path)).map(|_| ()),
                Entry::Link(target) => symlink(target, root.join(path)),
            };
        }
        let tree = |resolver| Tree { resolver, ..Tree::open(&root, Kind::Image).unwrap() };
        let (kernel, walk) = (tree(Resolver::Kernel), tree(Resolver::Walk));
        for path in &paths {
            prop_assert_eq!(kernel.stat(path), walk.stat(path), "stat {} in {:?}", path, entries);
            prop_assert_eq!(kernel.link(path), walk.link(path), "link {} in {:?}", path, entries);
            prop_assert_eq!(kernel.read(path, 9), walk.read(path, 9), "read {} in {:?}", path, entries);
        }
    }
}

#[test]
fn only_regular_files_are_opened() {
    let dir = laid_out();
    let root = dir.path().join("root");
    mkfifo(&root.join("fifo"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    symlink("fifo", root.join("link")).unwrap();
    both(&dir, Kind::Image, |tree| {
        for path in ["fifo", "socket", "link", "a"] {
            assert_eq!(reason(tree, path), "no regular file", "{path}");
            assert!(tree.file(path).is_err());
        }
        assert_eq!(tree.stat("fifo").unwrap().unwrap().kind, NodeKind::Fifo);
        assert_eq!(tree.stat("socket").unwrap().unwrap().kind, NodeKind::Socket);
    });
}

#[test]
fn reads_are_bounded_and_sparse_files_cost_nothing() {
    let dir = laid_out();
    let root = dir.path().join("root");
    fs::File::create(root.join("sparse")).unwrap().set_len(10 << 30).unwrap();
    fs::write(root.join("ten"), "0123456789").unwrap();
    both(&dir, Kind::Image, |tree| {
        assert_eq!(reason(tree, "sparse"), "larger than 100 bytes");
        assert_eq!(tree.read("ten", 10).unwrap().unwrap(), b"0123456789");
        assert_eq!(tree.read("ten", 9).unwrap_err().reason, "larger than 9 bytes");
        assert!(tree.file("sparse").unwrap().is_some());
    });
}

#[test]
fn directories_are_listed_sorted_and_bounded() {
    let dir = laid_out();
    let root = dir.path().join("root");
    let foreign = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    fs::write(root.join("a").join(foreign), "").unwrap();
    fs::write(root.join("a/a"), "").unwrap();
    both(&dir, Kind::Image, |tree| {
        let names = tree.list("a", 3).unwrap().unwrap();
        assert_eq!(names, ["a".into(), "b".into(), foreign.to_owned()]);
        assert_eq!(tree.list("/", 9).unwrap().unwrap(), ["a"]);
        assert_eq!(tree.list("a", 2).unwrap_err().reason, "more than 2 names");
        assert!(tree.list("gone", 2).unwrap().is_none() && tree.list("a/a", 2).unwrap().is_none());
    });
}

#[test]
fn a_tree_within_has_its_own_root() {
    let dir = laid_out();
    symlink("/outside", dir.path().join("root/a/up")).unwrap();
    symlink("/b/file", dir.path().join("root/a/down")).unwrap();
    both(&dir, Kind::Host, |tree| {
        let within = tree.below("/a", Kind::Image).unwrap().unwrap();
        assert_eq!(text(&within, "down").as_deref(), Some("within"));
        assert_eq!(text(&within, "up"), None);
        assert!(tree.below("gone", Kind::Host).unwrap().is_none());
        assert!(tree.below("a/b/file", Kind::Host).unwrap().is_none());
        let unseen = within.read("b", 1).unwrap_err();
        assert!(unseen.source.ends_with("/root/a/b"), "{}", unseen.source);
    });
}

#[test]
fn what_an_identity_says_is_the_same_through_links() {
    let dir = laid_out();
    let root = dir.path().join("root");
    symlink("a/b/file", root.join("link")).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(root.join("a/b/file")).unwrap();
    file.write_all(b"!").unwrap();
    both(&dir, Kind::Container, |tree| {
        let (one, two) = (tree.stat("link").unwrap().unwrap(), tree.stat("a/b/file").unwrap().unwrap());
        assert_eq!(one, two);
        assert_eq!((one.kind, one.size, one.major), (NodeKind::File, 7, 0));
    });
}

#[test]
fn an_unreadable_file_is_unseen_in_words_of_our_own() {
    let dir = laid_out();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.path().join("root/a/b"), fs::Permissions::from_mode(0o000)).unwrap();
    if Uid::effective().is_root() {
        // of this thread only, and with it go the capabilities that make root read everything
        setfsuid(Uid::from_raw(65534));
    }
    both(&dir, Kind::Image, |tree| assert_eq!(reason(tree, "a/b/file"), "access refused (EACCES)"));
    setfsuid(Uid::effective());
    fs::set_permissions(dir.path().join("root/a/b"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The caller's own procfs stands for one that lies below a container's root.
fn proc(resolver: Resolver, kind: Kind) -> Option<Tree> {
    let mut tree = Tree::open(Path::new("/proc"), kind).ok()?;
    tree.resolver = resolver;
    tree.stat("self/status").ok()??;
    Some(tree)
}

#[test]
fn magic_links_are_refused_and_pseudo_files_are_the_hosts_only() {
    for resolver in [Resolver::Kernel, Resolver::Walk] {
        let Some(host) = proc(resolver, Kind::Host) else { return skip("no /proc here") };
        assert!(host.read("self/status", 1 << 16).unwrap().unwrap().starts_with(b"Name:"));
        assert!(host.read("mounts", 1 << 20).unwrap().is_some(), "an ordinary link of procfs");
        for path in ["self/root/etc", "self/exe", "self/cwd/x", "self/fd/0"] {
            assert!(host.stat(path).unwrap_err().reason.contains("ELOOP"), "{path} with {resolver:?}");
        }
        assert!(host.link("self/exe").unwrap().is_some());
        for kind in [Kind::Image, Kind::Container] {
            let tree = proc(resolver, kind).unwrap();
            assert!(reason(&tree, "self/status").starts_with("on a file system"), "{kind:?}");
            assert!(tree.list("self", 1000).is_err());
        }
    }
}

#[test]
fn sizes_of_sysfs_are_not_believed() {
    for resolver in [Resolver::Kernel, Resolver::Walk] {
        let mut tree = Tree::open(Path::new("/sys"), Kind::Host).unwrap();
        tree.resolver = resolver;
        match tree.stat("kernel/mm/transparent_hugepage/enabled") {
            Ok(Some(found)) if found.size > 100 => {
                assert!(tree.read("kernel/mm/transparent_hugepage/enabled", 100).unwrap().is_some());
            }
            _ => skip("no such attribute here"),
        }
    }
}

/// Undoes a mount when a test ends, however it ends.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = umount(&self.0);
    }
}

fn mounted(source: &str, target: PathBuf, kind: &str, flags: MsFlags) -> Option<Mounted> {
    match mount(Some(source), &target, Some(kind), flags, None::<&str>) {
        Ok(()) => Some(Mounted(target)),
        Err(e) => {
            skip(&format!("no mounts here ({e})"));
            None
        }
    }
}

#[test]
fn mounts_below_an_image_are_not_crossed() {
    let dir = laid_out();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("volume")).unwrap();
    fs::create_dir_all(root.join("proc")).unwrap();
    let Some(_volume) = mounted("none", root.join("volume"), "tmpfs", MsFlags::MS_NODEV) else { return };
    let Some(_proc) = mounted("none", root.join("proc"), "proc", MsFlags::empty()) else { return };
    fs::write(root.join("volume/file"), "mounted").unwrap();
    symlink("/proc/self/root/a/b/file", root.join("magic")).unwrap();
    symlink("/proc/self/status", root.join("pseudo")).unwrap();
    both(&dir, Kind::Image, |tree| {
        for path in ["volume/file", "magic", "pseudo", "proc/kmsg"] {
            assert!(reason(tree, path).contains("EXDEV"), "{path} with {:?}", tree.resolver);
        }
    });
    both(&dir, Kind::Container, |tree| {
        assert_eq!(text(tree, "volume/file").as_deref(), Some("mounted"));
        assert!(reason(tree, "magic").contains("ELOOP"));
        assert!(reason(tree, "pseudo").contains("0x9fa0"));
    });
    both(&dir, Kind::Host, |tree| {
        assert!(tree.read("pseudo", 1 << 16).unwrap().is_some());
        assert!(reason(tree, "magic").contains("ELOOP"));
    });
}

#[test]
fn a_device_under_nodev_says_so() {
    let dir = laid_out();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("dev")).unwrap();
    let Some(_dev) = mounted("none", root.join("dev"), "tmpfs", MsFlags::MS_NODEV) else { return };
    let node = nix::sys::stat::makedev(195, 255);
    if let Err(e) = nix::sys::stat::mknod(&root.join("dev/nvidiactl"), SFlag::S_IFCHR, Mode::S_IRUSR, node) {
        return skip(&format!("no device nodes here ({e})"));
    }
    both(&dir, Kind::Container, |tree| {
        let found = tree.stat("dev/nvidiactl").unwrap().unwrap();
        assert_eq!((found.kind, found.major, found.minor, found.nodev), (NodeKind::CharDevice, 195, 255, true));
        assert_eq!(tree.read("dev/nvidiactl", 10).unwrap_err().reason, "no regular file");
    });
}
