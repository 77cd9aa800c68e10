//! What Rust's standard library changes of the process before `main`, and how the real runtime gets it
//! back as the engine gave it to us.
//!
//! Before `main` the library ignores SIGPIPE and opens `/dev/null` on those of the descriptors 0 to 2
//! that are closed. Both are inherited through `execve`: crun hands an ignored SIGPIPE on to the
//! container, where `yes | head` would then never end. What an engine itself had ignored has to stay
//! ignored, so the state is recorded by a function that runs before the library's own start.

#![expect(unsafe_code, reason = "signal dispositions, and a function that runs before main")]

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};

static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: an entry of `.init_array` is a pointer to a function of the C ABI; glibc and musl call it once,
// single-threaded, before `main`. The function may be called without arguments: it reads none.
#[unsafe(link_section = ".init_array")]
#[used]
static RECORD: extern "C" fn() = record;

/// Runs before the standard library is set up, so it uses system calls and atomics only.
extern "C" fn record() {
    for descriptor in 0..3u8 {
        // SAFETY: asks for a flag of a descriptor; there is none to be misused.
        if unsafe { libc::fcntl(i32::from(descriptor), libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is set; the old one is written to a place of its type.
    if unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) } == 0 {
        // SAFETY: all zeroes is a valid value of this plain C structure, and the call filled it in.
        let ignored = unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN;
        PIPE_IGNORED.store(ignored, Ordering::Relaxed);
    }
}

/// Gives the process back as it was before the standard library's start. For use directly before
/// `execve`: nothing may be printed in between.
pub(super) fn restore() {
    let handler = if PIPE_IGNORED.load(Ordering::Relaxed) { SigHandler::SigIgn } else { SigHandler::SigDfl };
    // SAFETY: no handler function is installed, only one of the two standard dispositions.
    let _ = unsafe { signal(Signal::SIGPIPE, handler) };
    for descriptor in 0..3u8 {
        if CLOSED.load(Ordering::Relaxed) & (1 << descriptor) != 0 {
            // SAFETY: this descriptor was closed when the process began: what is there now is the library's
            // `/dev/null`, which no object of ours owns.
            unsafe { libc::close(i32::from(descriptor)) };
        }
    }
}
