//! What stands at a path.

use std::os::fd::OwnedFd;

use nix::sys::stat::{fstat, major, minor};
use nix::sys::statvfs::{FsFlags, fstatvfs};

use super::{file_type, node_kind};
use crate::model::host::NodeKind;

/// What stands at a path. Looked at, never opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: NodeKind,
    /// Number of the device that it is; 0 for anything else.
    pub major: u32,
    /// See `major`.
    pub minor: u32,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// When it was last changed, in seconds since 1970.
    pub changed: i64,
    /// Device and inode number: the file's identity.
    pub identity: (u64, u64),
    /// It is a device node, and its mount has `nodev`: nobody can open it. Not asked in host trees.
    pub nodev: bool,
}

impl Stat {
    pub(super) fn of(place: &OwnedFd, with_mount: bool) -> nix::Result<Self> {
        let found = fstat(place)?;
        let kind = node_kind(file_type(&found));
        let device = matches!(kind, NodeKind::CharDevice | NodeKind::BlockDevice);
        let number = |n: u64| if device { u32::try_from(n).unwrap_or(u32::MAX) } else { 0 };
        Ok(Self {
            kind,
            major: number(major(found.st_rdev)),
            minor: number(minor(found.st_rdev)),
            mode: found.st_mode & 0o7777,
            uid: found.st_uid,
            gid: found.st_gid,
            size: u64::try_from(found.st_size).unwrap_or(0),
            changed: found.st_ctime,
            identity: (found.st_dev, found.st_ino),
            // asked of devices only: statfs is a question to the server on FUSE and NFS
            nodev: device && with_mount && fstatvfs(place)?.flags().contains(FsFlags::ST_NODEV),
        })
    }
}
