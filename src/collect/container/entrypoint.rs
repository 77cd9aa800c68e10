//! May the container's program have more privileges than its user?

use std::collections::BTreeMap;

use super::paths::clean;
use crate::collect::tree::Tree;
use crate::model::host::NodeKind;

/// What the runtimes search when the container has no `PATH` (runc, crun).
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Directories of `PATH` that are searched.
const MOST_DIRECTORIES: usize = 32;
/// Set-user-id and set-group-id.
const SET_ID: u32 = 0o6000;
/// Programs by which a start script without root's rights gets them and needs no password: development
/// images run as a user and let it `sudo`, fixuid gives the user other ids. `su` asks for a password.
const RAISERS: [&str; 4] = ["/usr/bin/sudo", "/usr/bin/doas", "/usr/local/bin/fixuid", "/usr/local/bin/sudo"];

/// The program is setuid or setgid, or has file capabilities, or the image has a program for it to become
/// root with; `None`: it was not found, or not readable. What a user may not open by itself, such a program
/// may.
pub(super) fn may_raise_privileges(
    program: &str,
    variables: &BTreeMap<String, String>,
    cwd: &str,
    rootfs: &Tree,
) -> Option<bool> {
    let (path, mode) = candidates(program, variables, cwd).into_iter().find_map(|path| {
        let found = rootfs.stat(&path).ok()??;
        (found.kind == NodeKind::File && found.mode & 0o111 != 0).then_some((path, found.mode))
    })?;
    if mode & SET_ID != 0 || RAISERS.iter().any(|path| is_set_id(path, rootfs)) {
        return Some(true);
    }
    rootfs.has_xattr(&path, c"security.capability").ok()?
}

fn is_set_id(path: &str, rootfs: &Tree) -> bool {
    rootfs.stat(path).ok().flatten().is_some_and(|found| found.kind == NodeKind::File && found.mode & SET_ID != 0)
}

fn candidates(program: &str, variables: &BTreeMap<String, String>, cwd: &str) -> Vec<String> {
    if program.starts_with('/') {
        return vec![clean(program)];
    }
    if program.contains('/') {
        return vec![clean(&format!("{cwd}/{program}"))];
    }
    let path = variables.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    path.split(':').take(MOST_DIRECTORIES).map(|directory| clean(&format!("{directory}/{program}"))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use nix::unistd::{Uid, setfsuid};

    use super::*;
    use crate::collect::testing::skip;
    use crate::collect::tree::Kind;

    #[test]
    fn set_id_bits_and_file_capabilities() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("usr/bin");
        fs::create_dir_all(&bin).unwrap();
        for (name, mode) in [("plain", 0o755), ("setuid", 0o4755), ("setgid", 0o2755), ("no-program", 0o644)] {
            fs::write(bin.join(name), "#!").unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let rootfs = Tree::open(dir.path(), Kind::Image).unwrap();
        let variables = BTreeMap::new();
        let ask = |program: &str| may_raise_privileges(program, &variables, "/usr", &rootfs);
        assert_eq!((ask("/usr/bin/plain"), ask("plain"), ask("bin/plain")), (Some(false), Some(false), Some(false)));
        assert_eq!((ask("setuid"), ask("./bin/setgid")), (Some(true), Some(true)));
        assert_eq!((ask("no-program"), ask("absent"), ask("")), (None, None, None));
        let elsewhere = [("PATH".to_owned(), "/nowhere".to_owned())].into();
        assert_eq!(may_raise_privileges("plain", &elsewhere, "/", &rootfs), None);
    }

    #[test]
    fn a_script_may_call_sudo() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("usr/bin");
        fs::create_dir_all(&bin).unwrap();
        let rootfs = Tree::open(dir.path(), Kind::Image).unwrap();
        for (name, mode, raises) in [("start.sh", 0o755, false), ("sudo", 0o755, false), ("sudo", 0o4755, true)] {
            fs::write(bin.join(name), "#!").unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(mode)).unwrap();
            let raised = may_raise_privileges("/usr/bin/start.sh", &BTreeMap::new(), "/", &rootfs);
            assert_eq!(raised, Some(raises), "{name} {mode:o}");
        }
    }

    #[test]
    fn file_capabilities_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        fs::write(&program, "#!").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        if !give_capability(&program) {
            return skip("file capabilities cannot be set here");
        }
        let rootfs = Tree::open(dir.path(), Kind::Image).unwrap();
        assert_eq!(may_raise_privileges("/program", &BTreeMap::new(), "/", &rootfs), Some(true));
    }

    #[test]
    fn a_program_need_not_be_readable() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = dir.path().join("program");
        fs::write(&program, "#!").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o111)).unwrap();
        let rootfs = Tree::open(dir.path(), Kind::Image).unwrap();
        if Uid::effective().is_root() {
            // of this thread only, and with it go the capabilities that make root read everything
            setfsuid(Uid::from_raw(65534));
        }
        let (opened, raises) =
            (rootfs.file("/program").is_ok(), may_raise_privileges("/program", &BTreeMap::new(), "/", &rootfs));
        setfsuid(Uid::effective());
        assert_eq!((opened, raises), (false, Some(false)));
    }

    /// `cap_dac_override+ep`, `struct vfs_cap_data` of revision 2.
    #[expect(unsafe_code, reason = "nix has no setxattr")]
    fn give_capability(program: &std::path::Path) -> bool {
        let mut data = [0_u8; 20];
        data[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
        data[4..8].copy_from_slice(&2_u32.to_le_bytes());
        let path = std::ffi::CString::new(program.to_str().unwrap()).unwrap();
        // SAFETY: both strings end with NUL and the value is as long as it is said to be.
        let result = unsafe {
            libc::setxattr(path.as_ptr(), c"security.capability".as_ptr(), data.as_ptr().cast(), data.len(), 0)
        };
        result == 0
    }
}
