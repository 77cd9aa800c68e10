//! Kernel, processor, distribution, and what guards or encloses the machine.

use nix::sys::utsname::uname;

use super::look::{exists, fact, seems_there, short};
use crate::collect::tree::Tree;
use crate::model::host::{Inside, SeLinux};
use crate::model::{Observed, Unseen};

const RELEASE: &str = "/proc/sys/kernel/osrelease";
const PROCESSOR: &str = "/proc/sys/kernel/arch";
/// The first four bytes are the variable's attributes, the fifth is its value.
const SECURE_BOOT: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
const ENVIRON_LIMIT: usize = 1 << 18;

/// Release of the running kernel and processor of the machine. Of a laid-out directory only its files
/// count; `built_for` is then what the loaded driver says of itself.
pub(super) fn kernel_and_architecture(
    tree: &Tree,
    laid_out: bool,
    built_for: Option<&'static str>,
) -> (Observed<String>, Observed<String>) {
    let (mut kernel, mut processor) = (None, None);
    if !laid_out && let Ok(names) = uname() {
        kernel = names.release().to_str().map(str::to_owned);
        // a 32-bit word is the personality of the caller, and says nothing about the machine
        processor =
            names.machine().to_str().filter(|name| name.contains("64") || name.contains("390")).map(str::to_owned);
    }
    let kernel = kernel.map_or_else(|| release(tree), Ok);
    let processor = processor.map_or_else(|| processor_by_files(tree, built_for), Ok);
    (fact("host.kernel", kernel), fact("host.architecture", processor))
}

fn release(tree: &Tree) -> Result<String, Unseen> {
    if let Some(text) = short(tree, RELEASE)? {
        return Ok(text);
    }
    // "Linux version 5.4.0-1018-azure (buildd@…) …"
    let version = short(tree, "/proc/version")?;
    let word = version.as_deref().and_then(|text| text.strip_prefix("Linux version ")?.split(' ').next());
    word.map(str::to_owned).ok_or_else(|| Unseen::new(RELEASE, "absent"))
}

fn processor_by_files(tree: &Tree, built_for: Option<&'static str>) -> Result<String, Unseen> {
    let text = short(tree, PROCESSOR)?.or_else(|| built_for.map(str::to_owned));
    text.ok_or_else(|| Unseen::new(PROCESSOR, "absent"))
}

/// `ID` and `ID_LIKE` of `os-release`, in this order; empty: it says neither.
pub fn os(tree: &Tree) -> Observed<Vec<String>> {
    let read = || {
        let text = match tree.read_text("/etc/os-release", 1 << 16)? {
            Some(text) => Some(text),
            None => tree.read_text("/usr/lib/os-release", 1 << 16)?,
        };
        let text = text.ok_or_else(|| Unseen::new("/etc/os-release", "absent"))?;
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
            Some(line.trim_matches(['"', '\'']).split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        Ok(["ID", "ID_LIKE"].into_iter().filter_map(value).flatten().collect())
    };
    fact("host.os", read())
}

/// The only cgroup hierarchy is v2: its controllers are at the top, not in `unified` beside v1's.
pub(super) fn cgroup_v2(tree: &Tree) -> Observed<bool> {
    let read = || {
        if exists(tree, "/sys/fs/cgroup/cgroup.controllers")? {
            return Ok(true);
        }
        if exists(tree, "/sys/fs/cgroup")? { Ok(false) } else { Err(Unseen::new("/sys/fs/cgroup", "absent")) }
    };
    fact("host.cgroup_v2", read())
}

/// The state of `SELinux`; `None`: the kernel has none, or it is not active.
pub(super) fn selinux(tree: &Tree) -> Observed<Option<SeLinux>> {
    let read = || {
        let Some(enforce) = short(tree, "/sys/fs/selinux/enforce")? else { return Ok(None) };
        // "current pending"
        let boolean = |name: &str| -> Result<Option<bool>, Unseen> {
            let text = short(tree, &format!("/sys/fs/selinux/booleans/{name}"))?;
            Ok(text.map(|text| text.starts_with('1')))
        };
        // The nodes of GPUs are xserver_misc_device_t, for which newer policies have a boolean of their own
        // (container-selinux 2.236.0).
        let of_gpus = boolean("container_use_xserver_devices")?;
        let of_all = boolean("container_use_devices")?;
        let container_use_devices = if of_gpus == Some(true) { of_gpus } else { of_all };
        Ok(Some(SeLinux { enforcing: enforce == "1", container_use_devices }))
    };
    fact("host.selinux", read())
}

/// Secure Boot is on; `None`: no UEFI.
pub fn secure_boot(tree: &Tree) -> Observed<Option<bool>> {
    let read = || match tree.read(SECURE_BOOT, 64)? {
        Some(bytes) if bytes.len() == 5 => Ok(bytes.last().map(|last| *last == 1)),
        Some(_) => Err(Unseen::new(SECURE_BOOT, "not five bytes long")),
        None if exists(tree, "/sys/firmware/efi")? && !exists(tree, "/sys/firmware/efi/efivars")? => {
            Err(Unseen::new(SECURE_BOOT, "efivarfs is not mounted"))
        }
        None => Ok(None),
    };
    fact("host.secure_boot", read())
}

/// What kind of container the machine itself is, as far as one shows.
pub(super) fn inside(tree: &Tree) -> Option<Inside> {
    if seems_there(tree, "/.dockerenv") || seems_there(tree, "/run/.containerenv") {
        return Some(Inside::Container);
    }
    let environ = tree.read("/proc/1/environ", ENVIRON_LIMIT).ok().flatten()?;
    if !environ.split(|b| *b == 0).any(|variable| variable == b"container=lxc") {
        return None;
    }
    Some(if in_user_namespace(tree) { Inside::UnprivilegedLxc } else { Inside::Lxc })
}

/// Our ids are not the machine's: we are in a user namespace of somebody's (rootless engines, systemd-nspawn,
/// unprivileged LXC). Where no mapping shows, as in a directory that is laid out without one, we are not.
pub(super) fn in_user_namespace(tree: &Tree) -> bool {
    short(tree, "/proc/self/uid_map").ok().flatten().is_some_and(|mapping| !is_whole_range(&mapping))
}

/// "0 0 4294967295": every id is itself.
fn is_whole_range(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn a_laid_out_directory_says_nothing_of_this_machine() {
        let (kernel, processor) = kernel_and_architecture(&Laid::out(&[]).tree(), true, None);
        assert!(kernel.known().is_err() && processor.known().is_err());
        let laid = Laid::out(&[("/proc/version", "Linux version 4.18.0-372.el8.x86_64 (mock@x) (gcc)\n")]);
        let (kernel, processor) = kernel_and_architecture(&laid.tree(), true, Some("x86_64"));
        assert_eq!(kernel.seen().map(String::as_str), Some("4.18.0-372.el8.x86_64"));
        assert_eq!(processor.seen().map(String::as_str), Some("x86_64"));
        let (kernel, _) = kernel_and_architecture(&laid.tree(), false, None);
        assert_ne!(kernel.seen().map(String::as_str), Some("4.18.0-372.el8.x86_64"), "this machine's own counts");
    }

    #[test]
    fn distributions_are_told_with_their_kin() {
        let laid =
            Laid::out(&[("/usr/lib/os-release", "NAME=x\nID=\"sles\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=1\n")]);
        assert_eq!(os(&laid.tree()), Observed::Known(vec!["sles".into(), "suse".into(), "opensuse".into()]));
    }

    #[test]
    fn guards_are_read_or_known_to_be_absent() {
        let laid = Laid::out(&[
            ("/sys/fs/selinux/enforce", "1"),
            ("/sys/fs/selinux/booleans/container_use_devices", "0 0"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpu"),
        ]);
        laid.write(SECURE_BOOT, [6, 0, 0, 0, 1]);
        let expected = SeLinux { enforcing: true, container_use_devices: Some(false) };
        assert_eq!(selinux(&laid.tree()), Observed::Known(Some(expected)));
        laid.write("/sys/fs/selinux/booleans/container_use_xserver_devices", "0 0");
        assert_eq!(selinux(&laid.tree()), Observed::Known(Some(expected)));
        laid.write("/sys/fs/selinux/booleans/container_use_xserver_devices", "1 1");
        let lets = SeLinux { enforcing: true, container_use_devices: Some(true) };
        assert_eq!(selinux(&laid.tree()), Observed::Known(Some(lets)));
        assert_eq!(secure_boot(&laid.tree()), Observed::Known(Some(true)));
        assert_eq!(cgroup_v2(&laid.tree()), Observed::Known(true));
        let bare = Laid::out(&[]);
        assert_eq!(selinux(&bare.tree()), Observed::Known(None));
        assert_eq!(secure_boot(&bare.tree()), Observed::Known(None));
        assert!(cgroup_v2(&bare.tree()).known().is_err());
        bare.directory("/sys/firmware/efi");
        assert!(secure_boot(&bare.tree()).known().is_err());
    }

    #[test]
    fn what_encloses_the_machine_is_recognised() {
        assert_eq!(inside(&Laid::out(&[]).tree()), None);
        assert_eq!(inside(&Laid::out(&[("/run/.containerenv", "")]).tree()), Some(Inside::Container));
        let laid = Laid::out(&[("/proc/1/environ", "PATH=/bin\0container=lxc\0")]);
        assert_eq!(inside(&laid.tree()), Some(Inside::Lxc));
        laid.write("/proc/self/uid_map", "         0          0 4294967295\n");
        assert_eq!(inside(&laid.tree()), Some(Inside::Lxc));
        laid.write("/proc/self/uid_map", "0 100000 65536\n");
        assert_eq!(inside(&laid.tree()), Some(Inside::UnprivilegedLxc));
    }

    #[test]
    fn a_user_namespace_shows_whatever_made_it() {
        let laid = Laid::out(&[("/run/.containerenv", "")]);
        assert!(!in_user_namespace(&laid.tree()));
        laid.write("/proc/self/uid_map", "         0          0 4294967295\n");
        assert!(!in_user_namespace(&laid.tree()));
        laid.write("/proc/self/uid_map", "0 1000 1\n1 100000 65536\n");
        assert!(in_user_namespace(&laid.tree()));
        assert_eq!(inside(&laid.tree()), Some(Inside::Container));
    }
}
