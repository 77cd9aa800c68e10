//! Running a program and seeing what became of it: exit code, output, memory, and that it ends in time.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Nothing that a test runs takes longer; if it does it is killed, and the test fails.
const LIMIT: Duration = Duration::from_secs(20);

/// A program to be run. It gets `PATH` and what the test sets, nothing of the caller's environment.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    stdin: Vec<u8>,
    limit: Duration,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn new(program: impl Into<PathBuf>) -> Self {
        let mut command = Command::new(program.into());
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        Self { command, stdin: Vec::new(), limit: LIMIT }
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.command.args(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn current_dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end, or fails the test at the limit.
    pub(crate) fn end(mut self) -> Ended {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let until = Instant::now() + self.limit;
        let mut child = spawn(&mut self.command, until).unwrap_or_else(|error| panic!("{:?}: {error}", self.command));
        let mut to = child.stdin.take().expect("a pipe");
        let input = std::mem::take(&mut self.stdin);
        // A program that does not read is no error of the test: the pipe breaks, and this ends.
        let writer = std::thread::spawn(move || drop(to.write_all(&input)));
        let stdout = collect(child.stdout.take().expect("a pipe"));
        let stderr = collect(child.stderr.take().expect("a pipe"));
        let status = wait(&mut child, until)
            .unwrap_or_else(|| panic!("{:?} was still running after {:?}", self.command, self.limit));
        let _ = writer.join();
        let [stdout, stderr] = [stdout, stderr].map(|thread| thread.join().expect("a reader"));
        Ended { status, stdout, stderr }
    }

    /// Runs it as [`Run::end`] does, and says how many kilobytes of it were resident at most.
    ///
    /// A process counts the memory of whom it was forked from until it executes its program, so a small C
    /// program stands between, which is smaller than all that is measured.
    pub(crate) fn end_with_memory(self, scratch: &Path) -> (Ended, u64) {
        let result = scratch.join("resident");
        let mut wrapped = Run::new(launcher()).args([result.as_os_str(), self.command.get_program()]);
        wrapped = wrapped.args(self.command.get_args()).stdin(self.stdin).limit(self.limit);
        if let Some(dir) = self.command.get_current_dir() {
            wrapped = wrapped.current_dir(dir);
        }
        for (name, value) in self.command.get_envs() {
            wrapped = wrapped.env(&name.to_string_lossy(), value.unwrap_or_default());
        }
        let ended = wrapped.end();
        let kilobytes = std::fs::read_to_string(result).expect("the launcher's answer");
        (ended, kilobytes.trim().parse().expect("a number"))
    }
}

impl Ended {
    /// The exit code; a signal fails the test.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("killed by signal {:?}: {self:?}", self.status.signal()))
    }

    /// The first line on stderr.
    pub(crate) fn line(&self) -> &str {
        self.stderr.lines().next().unwrap_or_default()
    }
}

/// Starts it. A program that this test has just written may be held open for a moment by a child that another test has
/// forked and that has not executed its own program yet.
fn spawn(command: &mut Command, until: Instant) -> std::io::Result<Child> {
    loop {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn collect(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("waiting for a child") {
            return Some(status);
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn launcher() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compile_c(&super::repository().join("integration/support/launch.c"), "launch", &["-static"]))
}

/// Compiles a C file into cargo's directory for tests, whole at once: other runs of the tests may use it.
pub(crate) fn compile_c(source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let new = program.with_extension(std::process::id().to_string());
    let built = Run::new("cc").args(["-Os", "-o"]).args([&new]).args(flags).args([source]).end();
    assert!(built.status.success(), "cc {}: {}", source.display(), built.stderr);
    std::fs::rename(new, &program).expect("a program's name");
    program
}
