use super::*;

fn soon(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

#[test]
#[cfg(feature = "cli")]
fn a_library_finds_a_limit_that_it_can_make_tables_for() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    let answer = run(soon(5000), 64, |out| {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
        few_descriptors();
        let _ = write!(out, "{}", getrlimit(Resource::RLIMIT_NOFILE).unwrap().0);
    })
    .unwrap();
    let limit: u64 = String::from_utf8(answer.bytes).unwrap().parse().unwrap();
    assert!((1..=MOST_DESCRIPTORS).contains(&limit), "{limit}");
}

#[test]
fn what_a_child_writes_arrives_whole() {
    let answer = run(soon(5000), 1 << 20, |out| {
        let _ = out.write_all(&vec![7; 100_000]);
    })
    .unwrap();
    assert!(answer.complete);
    assert_eq!(answer.bytes.len(), 100_000);
}

#[test]
fn a_child_that_does_not_end_is_ended_and_what_it_said_stays() {
    let start = Instant::now();
    let answer = run(soon(100), 100, |out| {
        let _ = out.write_all(b"so far");
        std::thread::sleep(Duration::from_secs(60));
    })
    .unwrap();
    assert!(!answer.complete);
    assert_eq!(answer.bytes, b"so far");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_child_that_dies_is_not_taken_for_one_that_ended() {
    // in a process without threads, whose children have nothing of each other's open
    let answer = run(soon(20_000), 100, |out| {
        for signal in [Signal::SIGKILL, Signal::SIGABRT] {
            let mut died = run(soon(5000), 100, |out| {
                let _ = out.write_all(b"half");
                let _ = nix::sys::signal::raise(signal);
            })
            .unwrap();
            let excused = died.excuse().is_some();
            let _ = write!(out, "{} {excused}, ", died.complete);
        }
    })
    .unwrap();
    assert_eq!(String::from_utf8(answer.bytes).unwrap(), "false true, false false, ");
}

#[test]
fn where_the_starter_ignores_children_an_end_is_still_told_from_a_death() {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};
    let answer = run(soon(10_000), 100, |out| {
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: no handler is installed.
        #[expect(unsafe_code, reason = "as a starter would have it")]
        let _ = unsafe { sigaction(Signal::SIGCHLD, &ignore) }.unwrap();
        let ended = run(soon(5000), 100, |out| out.write_all(b"all").unwrap()).unwrap();
        let died = run(soon(5000), 100, |out| {
            out.write_all(b"ha").unwrap();
            nix::sys::signal::raise(Signal::SIGKILL).unwrap();
        })
        .unwrap();
        let _ = write!(out, "{:?} {:?}", (ended.bytes, ended.complete), (died.bytes, died.complete));
    })
    .unwrap();
    assert_eq!(String::from_utf8(answer.bytes).unwrap(), "([97, 108, 108], true) ([104, 97], false)");
    assert!(answer.complete);
}

#[test]
fn a_child_that_closes_its_pipe_and_stays_is_not_waited_for() {
    let start = Instant::now();
    let answer = run(soon(5000), 100, |out| {
        let _ = nix::unistd::close(std::os::fd::AsRawFd::as_raw_fd(out));
        std::thread::sleep(Duration::from_secs(20));
    })
    .unwrap();
    assert!(!answer.complete);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn what_the_starter_left_open_is_closed_and_what_we_opened_is_not() {
    let (end, inherited) = nix::unistd::pipe2(OFlag::O_NONBLOCK).unwrap();
    let own = tempfile::tempfile().unwrap();
    let child = start(100, |out| {
        let open = [own.as_fd(), end.as_fd(), inherited.as_fd(), std::io::stdin().as_fd()]
            .map(|fd| nix::fcntl::fcntl(fd, FcntlArg::F_GETFD).is_ok());
        let _ = write!(out, "{open:?}");
    })
    .unwrap();
    let answer = child.finish(soon(5000));
    assert_eq!(String::from_utf8(answer.bytes).unwrap(), "[true, false, false, false]");
}
