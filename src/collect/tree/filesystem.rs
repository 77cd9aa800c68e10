//! On which file systems a tree may be read.

use std::os::fd::AsFd;

use nix::sys::statfs::{FsType, fstatfs};

use super::Kind;

/// Magic numbers of `include/uapi/linux/magic.h` and, for ZFS and bcachefs, of their own sources.
pub(super) const PROC: u32 = 0x9fa0;
const SYSFS: u32 = 0x6265_6572;
pub(super) const OVERLAY: u32 = 0x794c_7630;

/// Kernel interfaces that look like files: reading one may have an effect, or never end.
const PSEUDO: [u32; 14] = [
    PROC,
    SYSFS,
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x5a3c_69f0, // apparmorfs
    0xf97c_ff8c, // selinuxfs
    0x6265_6570, // configfs
    0xcafe_4a11, // bpf
    0x1980_0202, // mqueue
    0x6165_676c, // pstore
    0x0187,      // autofs
];

/// File systems that answer from this machine alone. A list of what is known to be harmless: a network
/// file system that nobody thought of must not hang a container's start.
const LOCAL: [u32; 17] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xca45_1a4e, // bcachefs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    0x3153_464a, // jfs
    0x5265_4973, // reiserfs
    0x3434,      // nilfs
    OVERLAY,
    0x0102_1994, // tmpfs, devtmpfs
    0x8584_58f6, // ramfs, the initial root
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0x9660,      // iso9660
    0x4d44,      // vfat
    0x2011_bab0, // exfat
];

/// Why a file must not be read in a tree of this kind; `None`: it may.
pub(super) fn refusal(kind: Kind, place: &impl AsFd) -> nix::Result<Option<String>> {
    match kind {
        Kind::Host => Ok(None),
        Kind::Image => Ok(PSEUDO.contains(&magic(place)?).then(|| "on a file system of the kernel's own".to_owned())),
        Kind::Container => {
            let magic = magic(place)?;
            let reason = || format!("on a file system that is not read here (type 0x{magic:x})");
            Ok((!LOCAL.contains(&magic)).then(reason))
        }
    }
}

/// It claims a size for its files that says nothing about what reading them yields.
pub(super) fn sizes_mean_nothing(place: &impl AsFd) -> bool {
    magic(place).is_ok_and(|magic| PSEUDO.contains(&magic))
}

/// The number that tells what file system something lies on.
pub(super) fn magic(place: &impl AsFd) -> nix::Result<u32> {
    Ok(number(fstatfs(place)?.filesystem_type()))
}

/// Signed on some targets, so that the upper half may be ones.
pub(super) fn number(of: FsType) -> u32 {
    u32::try_from(i128::from(of.0) & 0xffff_ffff).unwrap_or(0)
}
