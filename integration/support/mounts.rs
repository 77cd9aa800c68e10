//! Mounts for one test, that nobody else sees and nothing has to clean up.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Runs a test in a mount namespace of its own: a thread has one, and what it starts inherits it. Needs root.
pub(crate) fn alone<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let name = std::thread::current().name().unwrap_or("alone").to_owned();
        let thread = std::thread::Builder::new().name(name).spawn_scoped(scope, || {
            unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
            let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&Path>, "/", None::<&Path>, flags, None::<&Path>).expect("private mounts");
            test()
        });
        match thread.expect("a thread").join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Mounts one directory over another.
pub(crate) fn bind(from: &Path, to: &Path) {
    mount(Some(from), to, None::<&Path>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&Path>).expect("a bind mount");
}

/// Mounts a FUSE file system whose server never answers. It ends with the value.
pub(crate) fn silent_fuse(at: &Path) -> File {
    let server = File::options().read(true).write(true).open("/dev/fuse").expect("/dev/fuse");
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server.as_raw_fd());
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("silent"), at, Some("fuse"), flags, Some(options.as_str())).expect("a FUSE mount");
    server
}

#[test]
fn a_silent_file_system_is_silent() {
    if !super::needs::root() {
        return;
    }
    alone(|| {
        let scratch = super::scratch();
        let server = silent_fuse(&scratch.at(""));
        let looked = super::process::Run::new("timeout").args(["0.5", "ls"]).args([scratch.at("")]).end();
        assert_eq!(looked.code(), 124, "it answered: {looked:?}");
        drop(server);
    });
}
