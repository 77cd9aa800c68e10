//! Runtimes that call each other: whoever names us and is named by us is called once.

use super::super::support::Scratch;
use super::*;

/// A directory with a `runc` that tells what it sees, NVIDIA's runtime as far as it matters here, and our
/// configuration.
struct Chain {
    scratch: Scratch,
}

impl Chain {
    /// `path`: the runtimes of our configuration; `@/` is the directory.
    fn new(path: &[&str]) -> Self {
        let chain = Self { scratch: scratch() };
        let path: Vec<String> = path.iter().map(|name| name.replace('@', &chain.text("."))).collect();
        write(&chain.scratch.at("config.toml"), format!("[runtime]\npath = {path:?}\n"));
        std::os::unix::fs::symlink(look(), chain.scratch.at("runc")).expect("a link");
        chain
    }

    fn text(&self, name: &str) -> String {
        self.scratch.at(name).to_str().expect("UTF-8").to_owned()
    }

    /// A runtime that notes that it was called, and calls the next one of its own configuration.
    fn runtime(&self, name: &str, calls: &str) {
        let (calls, note) = (calls.replace("SHIM", &self.shim()), self.text("called"));
        script(&self.scratch.at(name), &format!("echo {name} >> {note}\n{calls} \"$@\""));
    }

    fn shim(&self) -> String {
        format!("{} --gpu-preflight-config {}", shim().display(), self.text("config.toml"))
    }

    /// What an engine gets that calls us; `through` may set variables before.
    fn seen(&self, through: &str) -> (Ended, String, String) {
        let _ = std::fs::remove_file(self.scratch.at("called"));
        let command = format!("PATH={}:$PATH; {through} \"$@\"", self.text("."));
        let words = [self.shim(), "--root /r state c1".to_owned()].join(" ");
        let (ended, seen) = seen(&command, &words.split(' ').map(OsString::from).collect::<Vec<_>>());
        let called = std::fs::read_to_string(self.scratch.at("called")).unwrap_or_default();
        (ended, seen, called.replace('\n', " "))
    }

    /// What the last runtime sees when it is called at once.
    fn direct(&self) -> String {
        let words = [&self.text("runc"), "--root", "/r", "state", "c1"];
        seen(&format!("PATH={}:$PATH; exec \"$@\"", self.text(".")), &words.map(OsString::from)).1
    }
}

/// The lines about the environment, and the arguments but for the program's own name.
fn given(seen: &str) -> Vec<&str> {
    let mut given: Vec<&str> =
        seen.lines().filter(|line| line.starts_with("env ") || line.starts_with("arg ")).skip(1).collect();
    given.sort_unstable();
    given
}

#[test]
fn who_is_named_by_us_and_names_us_is_called_once() {
    for path in [&["nvidia-container-runtime", "runc"][..], &["@/nvidia-container-runtime", "@/runc"]] {
        let chain = Chain::new(path);
        chain.runtime("nvidia-container-runtime", "exec SHIM");
        let (ended, seen, called) = chain.seen("exec");
        assert_eq!((ended.code(), called.as_str()), (42, "nvidia-container-runtime "), "{ended:?}");
        assert_eq!(given(&seen), given(&chain.direct()), "the last one sees what the engine gave");
    }
}

#[test]
fn several_are_called_once_each() {
    let chain = Chain::new(&["one", "two", "runc"]);
    chain.runtime("one", "exec SHIM");
    chain.runtime("two", "exec SHIM");
    let (ended, seen, called) = chain.seen("exec");
    assert_eq!((ended.code(), called.as_str()), (42, "one two "), "{ended:?}");
    assert_eq!(given(&seen), given(&chain.direct()));
}

#[test]
fn a_script_may_call_us_instead_of_becoming_us() {
    let chain = Chain::new(&["nvidia-container-runtime", "runc"]);
    chain.runtime("nvidia-container-runtime", "SHIM");
    let (ended, _, called) = chain.seen("exec");
    assert_eq!((ended.code(), called.as_str()), (42, "nvidia-container-runtime "), "{ended:?}");
}

#[test]
fn where_none_is_left_it_is_one_that_distributions_have() {
    let chain = Chain::new(&["nvidia-container-runtime"]);
    chain.runtime("nvidia-container-runtime", "exec SHIM");
    let (ended, seen, called) = chain.seen("exec");
    assert_eq!((ended.code(), called.as_str()), (42, "nvidia-container-runtime "), "{ended:?}");
    assert_eq!(given(&seen), given(&chain.direct()));
}

#[test]
fn what_was_noted_by_another_process_means_nothing() {
    use std::os::unix::fs::MetadataExt;

    let chain = Chain::new(&["nvidia-container-runtime", "runc"]);
    chain.runtime("nvidia-container-runtime", "exec SHIM");
    let file = std::fs::metadata(chain.scratch.at("nvidia-container-runtime")).expect("the script");
    let stale = format!("GPU_PREFLIGHT_RUNTIME_OVER=1:{}:{}", file.dev(), file.ino());
    let (ended, _, called) = chain.seen(&format!("export {stale}; exec"));
    assert_eq!((ended.code(), called.as_str()), (42, "nvidia-container-runtime "), "{ended:?}");
    // and it is no business of ours where nobody calls us again
    let chain = Chain::new(&["runc"]);
    let (_, seen, _) = chain.seen(&format!("export {stale}; exec"));
    assert!(seen.contains(&format!("env {stale}\n")), "{seen}");
}

#[test]
fn a_circle_that_leaves_no_choice_is_told() {
    let chain = Chain::new(&["runc"]);
    let nvidia = chain.text("nvidia-container-runtime");
    chain.runtime("nvidia-container-runtime", &format!("exec SHIM --runtime {nvidia}"));
    let log = chain.text("log.json");
    let ended = run(shim(), &["--runtime", &nvidia, "--log", &log, "--log-format", "json", "create", "-b", "/b", "x"]);
    assert_eq!((ended.code(), ended.stdout.as_str()), (1, ""), "{ended:?}");
    let why = "has called gpu-preflight for this very start, and would again";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    let entries = std::fs::read_to_string(&log).expect("the log");
    let [entry] = entries.lines().collect::<Vec<_>>()[..] else { panic!("{entries}") };
    let entry: serde_json::Value = serde_json::from_str(entry).expect("JSON");
    assert_eq!((&entry["level"], &entry["msg"]), (&json!("error"), &json!(ended.stderr.trim_end())));
    assert_eq!(std::fs::read_to_string(chain.text("called")).expect("the calls"), "nvidia-container-runtime\n");
}
