//! The container's program: it opens each node that it is told of, which is the truth, or attacks the
//! process that rehearses. Linked statically by the tests with `rustc`; std alone.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

const O_NONBLOCK: i32 = 0o4000;
const PTRACE_SEIZE: i32 = 0x4206;
const SIGKILL: i32 = 9;

unsafe extern "C" {
    fn kill(pid: i32, signal: i32) -> i32;
    fn ptrace(request: i32, pid: i32, address: usize, data: usize) -> i64;
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    match arguments.peek().map(String::as_str) {
        Some("--wait") => {
            println!("waiting");
            std::thread::sleep(Duration::from_secs(60));
        }
        Some("--attack") => attack(),
        _ => arguments.for_each(|node| open(&node)),
    }
}

/// `r:PATH` is opened for reading only.
fn open(node: &str) {
    let (path, write) = node.strip_prefix("r:").map_or((node, true), |path| (path, false));
    let opened = OpenOptions::new().read(true).write(write).custom_flags(O_NONBLOCK).open(path);
    println!("{path} {}", errno(opened.err()));
}

/// Waits for a process that is the grandchild of one that came into this pid namespace from outside, and
/// tries on it what could do harm. Prints one line a try: its name, and the errno or 0.
fn attack() {
    let (ready, deadline) = (String::from("waiting"), Instant::now() + Duration::from_secs(20));
    println!("{ready}");
    while Instant::now() < deadline {
        let Some(pid) = victim() else { continue };
        let file = |name: &str| format!("/proc/{pid}/{name}");
        let tries = [
            ("mem", errno(OpenOptions::new().read(true).write(true).open(file("mem")).err())),
            ("environ", errno(fs::read(file("environ")).err())),
            ("fd", errno(fs::read_dir(file("fd")).err())),
            ("root", errno(fs::read_dir(file("root/")).err())),
            ("cwd", errno(fs::read_link(file("cwd")).err())),
            // SAFETY: takes numbers, and changes nothing in this process
            ("ptrace", errno((unsafe { ptrace(PTRACE_SEIZE, pid, 0, 0) } < 0).then(io::Error::last_os_error))),
            // SAFETY: takes numbers
            ("kill", errno((unsafe { kill(pid, SIGKILL) } < 0).then(io::Error::last_os_error))),
        ];
        // it may have ended in the middle
        if fs::metadata(format!("/proc/{pid}")).is_ok() || tries.iter().all(|(_, errno)| *errno != 3 && *errno != 2) {
            tries.iter().for_each(|(name, errno)| println!("{name} {errno}"));
            println!("{}", status(pid, "Uid:").unwrap_or_default());
            return;
        }
    }
    println!("nobody came");
}

fn victim() -> Option<i32> {
    let pids = fs::read_dir("/proc").ok()?.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| {
        let up = |pid: i32| status(pid, "PPid:")?.parse::<i32>().ok();
        *pid != 1 && up(*pid).filter(|p| *p > 1).and_then(up).filter(|p| *p > 1).and_then(up) == Some(0)
    })
}

fn status(pid: i32, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(field)?.trim().to_owned()))
}

fn errno(error: Option<io::Error>) -> i32 {
    error.map_or(0, |e| e.raw_os_error().unwrap_or(-1))
}
