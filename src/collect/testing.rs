//! What tests of this module share.

use std::io::Write as _;

/// Says that a test, or a part of it, was skipped, past the harness, which would swallow it. A failure where
/// skips are forbidden, as `integration/test.sh` forbids them to root.
#[expect(clippy::disallowed_methods, reason = "how the tests are told what they must not skip")]
pub(super) fn skip(what: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let forbidden = std::env::var_os("GPU_PREFLIGHT_TEST_SKIPS").is_some_and(|rule| rule == "forbidden");
    assert!(!forbidden, "{name}: {what}");
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {what}");
}

/// A directory with such files in it, by paths with or without a slash before them.
pub(super) fn laid<T: AsRef<[u8]>>(files: &[(&str, T)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    dir
}

/// A system call that [`forbid`] takes away.
pub(super) struct Call {
    pub(super) number: libc::c_long,
    /// Only where the argument at this index has this value in its lower half.
    pub(super) only: Option<(u32, u32)>,
}

/// From now on the call gives this thread, and what it forks, EPERM, as a seccomp profile makes it that does
/// not know it. For good: call it in a child.
#[expect(unsafe_code, reason = "a seccomp filter, which no crate here makes")]
pub(super) fn forbid(call: &Call) {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const SAME: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let line = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code.try_into().unwrap(), jt: 0, jf, k };
    let number = u32::try_from(call.number).unwrap();
    // `struct seccomp_data`: number, architecture, instruction pointer, six arguments of 64 bits
    let (offset, value) = call.only.map_or((0, number), |(index, value)| (16 + 8 * index, value));
    let offset = offset + if call.only.is_some() && cfg!(target_endian = "big") { 4 } else { 0 };
    let mut lines = [
        line(LOAD, 0, 0),
        line(SAME, 3, number),
        line(LOAD, 0, offset),
        line(SAME, 1, value),
        line(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        line(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: lines.len().try_into().unwrap(), filter: lines.as_mut_ptr() };
    nix::sys::prctl::set_no_new_privs().unwrap();
    // SAFETY: the kernel copies the program, which lives until after the call.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
