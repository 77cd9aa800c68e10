use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use nix::libc;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Uid, mkfifo};

use super::super::unpacked;
use super::*;
use crate::collect::child;
use crate::collect::files::Files as _;
use crate::collect::testing::skip;

struct Layers(tempfile::TempDir, usize);

impl Layers {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), 0)
    }

    fn add(&mut self, files: &[(&str, &str)]) -> PathBuf {
        let root = self.0.path().join(self.1.to_string());
        self.1 += 1;
        fs::create_dir(&root).unwrap();
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        root
    }
}

#[expect(unsafe_code, reason = "the standard library and nix have no extended attributes")]
fn set(path: &Path, name: &CStr, value: &str) -> bool {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: both strings end with a zero, and the value is as long as is said.
    let done = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    done == 0
}

fn told(view: &View) -> Vec<(&str, usize)> {
    let files = view.entries().filter(|(_, entry)| entry.kind == Some(NodeKind::File));
    files.map(|(path, entry)| (path, entry.layer)).collect()
}

#[test]
fn overlayfs_marks_are_understood_each_in_its_own_store() {
    if !Uid::effective().is_root() {
        return skip("trusted attributes and devices are root's");
    }
    for (marks, name) in [(Marks::Trusted, c"trusted.overlay.opaque"), (Marks::User, c"user.overlay.opaque")] {
        let mut all = Layers::new();
        let files = [("a/version.py", "1"), ("a/b/version.py", "2"), ("c/version.py", "3"), ("d/x.so", "4")];
        let lower = all.add(&files);
        let upper = all.add(&[("a/version.py", "new")]);
        if !set(&upper.join("a"), name, "y") {
            return skip("the file system has no such attributes");
        }
        fs::create_dir(upper.join("c")).unwrap();
        mknod(&upper.join("c/version.py"), SFlag::S_IFCHR, Mode::empty(), makedev(0, 0)).unwrap();
        // a device, whatever its name says, takes the place of a file and is not opened
        fs::create_dir(upper.join("d")).unwrap();
        mknod(&upper.join("d/x.so"), SFlag::S_IFCHR, Mode::empty(), makedev(195, 0)).unwrap();
        let layers = vec![lower, upper];
        let view = super::super::in_place(&layers, marks).unwrap();
        assert_eq!((view.all_unread(), told(&view)), (&[][..], vec![("/a/version.py", 1)]));
        assert_eq!(view.read("/a/version.py", 10).unwrap().unwrap(), b"new");
        assert_eq!(view.stat("/d/x.so").unwrap().unwrap().kind, NodeKind::CharDevice);
        assert!(view.read("/d/x.so", 10).is_err());
        // an attribute of the image's own is no mark of the store
        let other = if marks == Marks::Trusted { Marks::User } else { Marks::Trusted };
        assert_eq!(
            told(&super::super::in_place(&layers, other).unwrap()),
            [("/a/b/version.py", 0), ("/a/version.py", 1)]
        );
    }
}

#[test]
fn what_only_the_kernel_merges_is_given_up() {
    for (what, at_file) in [("redirect", false), ("metacopy", true), ("whiteout", true), ("opaque", false)] {
        let mut all = Layers::new();
        let layer = all.add(&[("a/version.py", "1")]);
        let path = if at_file { "a/version.py" } else { "a" };
        let name = CString::new(format!("user.overlay.{what}")).unwrap();
        if !set(&layer.join(path), &name, "x") {
            return skip("the file system has no such attributes");
        }
        let gave_up = super::super::in_place(std::slice::from_ref(&layer), Marks::User).unwrap_err();
        assert!(gave_up.source.ends_with(path), "{gave_up:?}");
        // of a plain root file system they say nothing
        assert_eq!(unpacked(&layer).unwrap().all_unread(), []);
    }
}

#[test]
fn without_the_right_to_see_marks_nothing_is_read_in_place() {
    if !Uid::effective().is_root() {
        return skip("capabilities are root's to give away");
    }
    let mut all = Layers::new();
    let layer = all.add(&[("version.py", "1")]);
    let answer = child::run(std::time::Instant::now() + std::time::Duration::from_secs(20), 4096, |out| {
        use std::io::Write as _;
        caps::drop(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap();
        let seen = |marks| super::super::in_place(std::slice::from_ref(&layer), marks).map(|view| told(&view).len());
        let _ = write!(out, "{:?} {:?}", seen(Marks::Trusted).map_err(|unseen| unseen.reason), seen(Marks::User));
    });
    let answer = String::from_utf8(answer.unwrap().bytes).unwrap();
    assert_eq!(answer, r#"Err("only CAP_SYS_ADMIN lets see what unpacked layers hide") Ok(1)"#);
}

#[test]
fn a_root_file_system_is_what_lies_there() {
    let mut all = Layers::new();
    let root = all.add(&[("a/.wh.version.py", ""), ("a/version.py", "1"), ("proc/version.py", "2")]);
    symlink("/etc", root.join("out")).unwrap();
    symlink("a", root.join("in")).unwrap();
    mkfifo(&root.join("x.so"), Mode::S_IRWXU).unwrap();
    let view = unpacked(&root).unwrap();
    assert_eq!(view.all_unread(), []);
    assert_eq!(view.read("/in/version.py", 10).unwrap().unwrap(), b"1");
    assert_eq!(view.read("/out/passwd", 1 << 20), Ok(None));
    assert_eq!(view.stat("/x.so").unwrap().unwrap().kind, NodeKind::Fifo);
    assert!(view.beginning("/x.so", 10).unwrap_or_default().is_none_or(|bytes| bytes.is_empty()));
    assert!(unpacked(&root.join("none")).is_err());
}

#[test]
fn what_may_not_be_entered_and_what_is_too_deep_is_unread() {
    let mut all = Layers::new();
    let root = all.add(&[("a/version.py", "1")]);
    let mut deep = root.join("deep");
    for _ in 0..MOST_LEVELS + 10 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let view = unpacked(&root).unwrap();
    assert!(view.all_unread()[0].reason.contains("deep"), "{:?}", view.all_unread());
    assert_eq!(told(&view), [("/a/version.py", 0)]);
}
