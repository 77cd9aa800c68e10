//! The hook's own process. It runs as root beside an attacker's container, so nobody may look into it,
//! and it keeps nothing open that is not its own.

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::Mode;

use crate::collect::child;

/// First act under the hook's name: not dumpable, no core file, no descriptors but the standard ones,
/// files that only their owner and group read.
pub fn harden() {
    let _ = nix::sys::prctl::set_dumpable(false);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    nix::sys::stat::umask(Mode::from_bits_truncate(0o027));
    close_inherited();
}

/// runc leaves its init socket, log pipe and exec.fifo open in a createContainer hook.
fn close_inherited() {
    // SAFETY: close_range takes three numbers; nothing of this process has a descriptor above 2 yet.
    #[expect(unsafe_code, reason = "no safe wrapper of close_range is at hand")]
    let done = unsafe { nix::libc::syscall(nix::libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if done == 0 {
        child::is_alone();
        return;
    }
    // Before Linux 5.9, or refused by an old seccomp profile.
    for descriptor in 3..1024 {
        let _ = nix::unistd::close(descriptor);
    }
}
