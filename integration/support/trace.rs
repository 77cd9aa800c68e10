//! What a program asked the kernel for, as strace saw it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The arguments that make strace write every call of a program and its children into a file.
pub(crate) fn strace(to: &Path) -> Vec<std::ffi::OsString> {
    // -y: the path behind every descriptor, as the kernel has it, so links and `..` hide nothing.
    ["-f", "-y", "-qq", "-s", "256", "-o"].map(Into::into).into_iter().chain([to.into(), "--".into()]).collect()
}

/// The calls of a trace.
#[derive(Debug)]
pub(crate) struct Trace {
    text: String,
}

impl Trace {
    pub(crate) fn read(path: &Path) -> Self {
        Self::of(&std::fs::read_to_string(path).expect("a trace"))
    }

    /// Calls that strace had to write in two parts, since another process's came between, are put together.
    fn of(text: &str) -> Self {
        let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
        let mut whole = String::new();
        for line in text.lines() {
            let process = line.split(' ').next().unwrap_or_default();
            if let Some(beginning) = line.strip_suffix(" <unfinished ...>") {
                begun.insert(process, beginning);
            } else if let Some((_, end)) = line.split_once(" resumed>") {
                whole += begun.remove(process).unwrap_or_default();
                // it aligns the results of these
                whole += &end.split_whitespace().collect::<Vec<_>>().join(" ");
                whole.push('\n');
            } else {
                whole += line;
                whole.push('\n');
            }
        }
        Self { text: whole }
    }

    /// The lines of a call.
    pub(crate) fn calls<'a>(&'a self, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        self.text.lines().filter(move |line| names.contains(&name(line)))
    }

    /// The lines of the calls that open a file.
    pub(crate) fn opens(&self) -> impl Iterator<Item = &str> {
        self.calls(&["open", "openat", "openat2", "creat"])
    }

    /// What was opened so that it could be read or written: `O_PATH` only looks.
    pub(crate) fn opened_for_use(&self) -> Vec<PathBuf> {
        self.opens().filter(|line| !line.contains("O_PATH")).filter_map(result_path).collect()
    }

    /// What a process asked of the kernel about itself: `/proc/self` under its number.
    pub(crate) fn is_about_itself(&self, path: &Path) -> bool {
        let Some(number) = path.strip_prefix("/proc").ok().and_then(|rest| rest.iter().next()?.to_str()) else {
            return false;
        };
        self.text.lines().any(|line| line.split(' ').next() == Some(number))
    }
}

/// `1234  openat2(3</x>, …) = 4</x/y>` is a call of `openat2`.
fn name(line: &str) -> &str {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    call.split('(').next().unwrap_or_default()
}

/// The path behind the descriptor that a call returned.
fn result_path(line: &str) -> Option<PathBuf> {
    let result = line.rsplit(") = ").next()?;
    let path = result.split_once('<')?.1;
    // A device's numbers follow in brackets of their own: `4</dev/null<char 1:3>>`.
    Some(path.split(['<', '>']).next()?.into())
}

#[test]
fn a_trace_is_read_as_strace_writes_it() {
    let text = concat!(
        "12  openat2(3</x>, \"y\", {flags=O_RDONLY|O_CLOEXEC, resolve=RESOLVE_IN_ROOT}, 24) = 4</x/y>\n",
        "12  openat(AT_FDCWD</>, \"/dev/null\", O_RDWR) = 5</dev/null<char 1:3>>\n",
        "12  openat(AT_FDCWD</>, \"/dev/nvidia0\", O_RDONLY|O_PATH) = 6</dev/nvidia0<char 195:0>>\n",
        "12  openat(AT_FDCWD</>, \"/absent\", O_RDONLY) = -1 ENOENT (No such file or directory)\n",
        "12  read(4</x/y>, \"openat(\", 7) = 7\n",
        "12  openat(AT_FDCWD</w>, \"/z\", O_RDONLY <unfinished ...>\n",
        "13  openat(AT_FDCWD</w>, \"/l\", O_RDONLY|O_PATH <unfinished ...>\n",
        "12  <... openat resumed>)             = 7</z>\n",
        "13  <... openat resumed>) = 8</l>\n",
    );
    let trace = Trace::of(text);
    assert_eq!(trace.opened_for_use(), [Path::new("/x/y"), Path::new("/dev/null"), Path::new("/z")]);
    assert!(trace.is_about_itself(Path::new("/proc/12/maps")) && !trace.is_about_itself(Path::new("/proc/1/maps")));
    assert_eq!(trace.opens().count(), 6);
    assert_eq!(trace.calls(&["read"]).count(), 1);
}
