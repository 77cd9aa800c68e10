//! What overlayfs marks at files and directories of its layers by extended attributes
//! (Documentation/filesystems/overlayfs.rst, Linux 6.12).

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use nix::errno::Errno;
use nix::libc;

use super::Marks;

/// Names of attributes of one file: more than this nobody sets but to be in the way.
const MOST_NAMES: usize = 64 << 10;

/// The directory hides what layers below it have in it. An error where a layer cannot be understood without the
/// others, or at all.
pub(super) fn of_directory(directory: BorrowedFd<'_>, marks: Marks) -> Result<bool, String> {
    let names = names_of(&|buffer, size| list(directory, buffer, size))?;
    refuse_redirects(&names, marks)?;
    if !has(&names, marks, "opaque") {
        return Ok(false);
    }
    match value(directory, &name(marks, "opaque")).map_err(|e| reason(e).to_owned())? {
        b'y' => Ok(true),
        _ => Err("what it takes away is marked in a way that is not known".to_owned()),
    }
}

/// The file is all there.
pub(super) fn of_file(directory: BorrowedFd<'_>, file: &CStr, marks: Marks) -> Result<(), String> {
    let link = [format!("/proc/self/fd/{}/", directory.as_raw_fd()).as_bytes(), file.to_bytes()].concat();
    let Ok(link) = CString::new(link) else { return Ok(()) };
    let names = names_of(&|buffer, size| list_of(&link, buffer, size))?;
    refuse_redirects(&names, marks)
}

fn refuse_redirects(names: &[u8], marks: Marks) -> Result<(), String> {
    for what in ["redirect", "metacopy", "whiteout"] {
        if has(names, marks, what) {
            return Err(format!("it has overlay.{what}, which only the kernel merges"));
        }
    }
    Ok(())
}

fn name(marks: Marks, what: &str) -> CString {
    let space = match marks {
        Marks::Trusted => "trusted",
        Marks::User => "user",
    };
    CString::new(format!("{space}.overlay.{what}")).unwrap_or_default()
}

fn has(names: &[u8], marks: Marks, what: &str) -> bool {
    let wanted = name(marks, what);
    names.split(|byte| *byte == 0).any(|name| name == wanted.to_bytes())
}

/// All names, each with a zero behind it. Most files have none, or fit into the first buffer.
fn names_of(list: &dyn Fn(*mut libc::c_char, usize) -> libc::ssize_t) -> Result<Vec<u8>, String> {
    let mut names = vec![0_u8; 512];
    loop {
        match Errno::result(list(names.as_mut_ptr().cast(), names.len())) {
            Ok(length) => {
                names.truncate(usize::try_from(length).unwrap_or(0));
                return Ok(names);
            }
            Err(Errno::ENOTSUP) => return Ok(Vec::new()),
            Err(Errno::ERANGE) if names.len() < MOST_NAMES => names.resize(MOST_NAMES, 0),
            Err(errno) => return Err(reason(errno).to_owned()),
        }
    }
}

#[expect(unsafe_code, reason = "the standard library and nix have no extended attributes")]
fn list(directory: BorrowedFd<'_>, buffer: *mut libc::c_char, size: usize) -> libc::ssize_t {
    // SAFETY: the descriptor is open, and the kernel writes no more than `size` bytes into the caller's buffer of
    // that size.
    unsafe { libc::flistxattr(directory.as_raw_fd(), buffer, size) }
}

#[expect(unsafe_code, reason = "the standard library and nix have no extended attributes")]
fn list_of(path: &CStr, buffer: *mut libc::c_char, size: usize) -> libc::ssize_t {
    // SAFETY: the path ends with a zero, and the kernel writes no more than `size` bytes into the caller's buffer of
    // that size.
    unsafe { libc::llistxattr(path.as_ptr(), buffer, size) }
}

/// The first byte of an attribute that has one.
#[expect(unsafe_code, reason = "the standard library and nix have no extended attributes")]
fn value(directory: BorrowedFd<'_>, name: &CStr) -> nix::Result<u8> {
    let mut value = 0_u8;
    let buffer = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the name ends with a zero, and the kernel writes no more than one byte to where there is one.
    let length = unsafe { libc::fgetxattr(directory.as_raw_fd(), name.as_ptr(), buffer, 1) };
    Errno::result(length).map(|_| value)
}

fn reason(errno: Errno) -> &'static str {
    errno.desc()
}
