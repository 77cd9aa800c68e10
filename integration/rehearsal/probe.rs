//! The container's program: it opens each node that it is told of, which is the truth, or attacks the
//! process that rehearses. Linked statically by the tests with `rustc`; std alone.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

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

/// Waits for the child of a process that is called `hook`, and tries on it what could do harm. Prints one
/// line a try: its name, and the errno or 0. Stays, since the pid namespace ends with its first process.
fn attack() {
    println!("waiting");
    loop {
        let Some(pid) = victim() else { continue };
        let file = |name: &str| format!("/proc/{pid}/{name}");
        let tries = [
            ("mem", errno(OpenOptions::new().read(true).write(true).open(file("mem")).err())),
            ("environ", errno(fs::read(file("environ")).err())),
            ("fd", errno(reach_descriptors(&file("fd")).err())),
            ("root", errno(fs::read_dir(file("root/")).err())),
            ("cwd", errno(fs::read_link(file("cwd")).err())),
            // SAFETY: takes numbers, and changes nothing in this process
            ("ptrace", errno((unsafe { ptrace(PTRACE_SEIZE, pid, 0, 0) } < 0).then(io::Error::last_os_error))),
            // SAFETY: takes numbers
            ("kill", errno((unsafe { kill(pid, SIGKILL) } < 0).then(io::Error::last_os_error))),
        ];
        tries.iter().for_each(|(name, errno)| println!("{name} {errno}"));
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Root may list the numbers of another's descriptors; harm begins where one can be opened or followed.
fn reach_descriptors(dir: &str) -> io::Result<()> {
    let mut last = Err(io::ErrorKind::NotFound.into());
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        last = fs::read_link(&path).map(drop).or_else(|_| fs::metadata(&path).map(drop));
        if last.is_ok() {
            break;
        }
    }
    last
}

fn victim() -> Option<i32> {
    let pids = fs::read_dir("/proc").ok()?.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| {
        let parent = status(*pid, "PPid:").and_then(|parent| parent.parse().ok());
        parent.and_then(|parent| status(parent, "Name:")).is_some_and(|name| name == "hook")
    })
}

fn status(pid: i32, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(field)?.trim().to_owned()))
}

fn errno(error: Option<io::Error>) -> i32 {
    error.map_or(0, |e| e.raw_os_error().unwrap_or(-1))
}
