//! The command line: what is ours, what the real runtime's, and on `create` and `run` which bundle it names.
//!
//! It changes nothing but our own options, so a wrong guess about the rest costs at most a hook.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::grammar::{CREATE, GLOBAL, Read, is_subcommand, split};

/// Our own options, before the subcommand only, each with a value. None of the runtimes has one of these names.
const OWN: [&str; 4] = ["--runtime", "--gpu-preflight-config", "--gpu-preflight-hook", "--gpu-preflight-hook-arg"];

/// A command line, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Invocation {
    /// `--runtime`: the real runtime, a path or a name.
    pub(super) runtime: Option<OsString>,
    /// `--gpu-preflight-config`: our configuration, if not at its usual place.
    pub(super) config: Option<PathBuf>,
    /// `--gpu-preflight-hook`: the hook program, if not this file.
    pub(super) hook: Option<PathBuf>,
    /// `--gpu-preflight-hook-arg`, as often as it was given: arguments of the hook.
    pub(super) hook_args: Vec<OsString>,
    /// The runtime's own log, where engines look for the reason of a failure.
    pub(super) log: Option<OsString>,
    /// Its format.
    pub(super) log_format: Option<OsString>,
    /// What is to be created, on `create` and `run`.
    pub(super) creates: Option<Creates>,
    /// The arguments for the real runtime, without its own name: all but ours.
    pub(super) passed_on: Vec<OsString>,
}

/// The container that `create` or `run` is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Creates {
    /// The bundle; `None`: the working directory.
    bundle: Option<PathBuf>,
    /// crun's `--config`.
    config: Option<PathBuf>,
    /// The first word that is no option.
    id: Option<OsString>,
}

impl Creates {
    /// What it will be called; empty: the line does not say.
    pub(super) fn id(&self) -> String {
        self.id.as_deref().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Its bundle, if the specification lies there.
    pub(super) fn bundle(&self) -> Option<PathBuf> {
        let spec = self.spec();
        let bundle = spec.parent().filter(|_| spec.ends_with("config.json"))?;
        std::path::absolute(if bundle.as_os_str().is_empty() { Path::new(".") } else { bundle }).ok()
    }

    /// Where its specification lies.
    pub(super) fn spec(&self) -> PathBuf {
        match &self.config {
            // crun takes any other name from the working directory, not from the bundle
            Some(config) if config.as_os_str() != "config.json" => config.clone(),
            _ => self.bundle.clone().unwrap_or_else(|| PathBuf::from(".")).join("config.json"),
        }
    }
}

/// Takes a command line apart; `arguments` without the program's name.
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Invocation {
    let mut found = Invocation::default();
    let mut arguments = arguments.into_iter().peekable();
    let mut ended = false;
    while let Some(argument) = arguments.next() {
        if let Some((name, inline)) = own(&argument).filter(|_| !ended) {
            let value = inline.or_else(|| arguments.next());
            found.take_own(name, value);
            continue;
        }
        match if ended { Read::Word } else { GLOBAL.read(argument.as_bytes()) } {
            Read::Word => {
                let rest: Vec<OsString> = arguments.collect();
                if argument == "create" || argument == "run" {
                    found.creates = Some(creates(&rest));
                }
                found.passed_on.push(argument);
                found.passed_on.extend(rest);
                return found;
            }
            Read::End => ended = true,
            Read::Flag => {}
            Read::Unknown => {
                // a later version's option; whether it takes a value nobody knows
                let value = arguments.next_if(|next| !next.as_bytes().starts_with(b"-") && !is_subcommand(next));
                found.passed_on.push(argument);
                found.passed_on.extend(value);
                continue;
            }
            Read::Inline(name, value) => found.take_global(name, OsStr::from_bytes(value)),
            Read::Next(name) => {
                found.passed_on.push(argument);
                if let Some(value) = arguments.next() {
                    found.take_global(name, &value);
                    found.passed_on.push(value);
                }
                continue;
            }
        }
        found.passed_on.push(argument);
    }
    found
}

/// The options of `create` and `run`, which may also stand behind the container's id.
fn creates(line: &[OsString]) -> Creates {
    let mut found = Creates::default();
    let mut rest = line.iter();
    while let Some(argument) = rest.next() {
        let (name, value) = match CREATE.read(argument.as_bytes()) {
            Read::End => {
                found.id = found.id.or_else(|| rest.next().cloned());
                break;
            }
            Read::Inline(name, value) => (name, Some(OsStr::from_bytes(value))),
            Read::Next(name) => (name, rest.next().map(OsString::as_os_str)),
            Read::Word => {
                found.id.get_or_insert_with(|| argument.clone());
                continue;
            }
            Read::Flag | Read::Unknown => continue,
        };
        match name {
            "bundle" => found.bundle = value.map(PathBuf::from),
            "config" => found.config = value.map(PathBuf::from),
            _ => {}
        }
    }
    found
}

impl Invocation {
    fn take_own(&mut self, name: &str, value: Option<OsString>) {
        match name {
            "--runtime" => self.runtime = value,
            "--gpu-preflight-config" => self.config = value.map(PathBuf::from),
            "--gpu-preflight-hook" => self.hook = value.map(PathBuf::from),
            _ => self.hook_args.extend(value),
        }
    }

    fn take_global(&mut self, name: &str, value: &OsStr) {
        match name {
            "log" => self.log = Some(value.to_owned()),
            "log-format" => self.log_format = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// One of our options, and its value where that stands behind `=`.
fn own(argument: &OsStr) -> Option<(&'static str, Option<OsString>)> {
    let (name, value) = split(argument.as_bytes());
    let name = OWN.into_iter().find(|own| own.as_bytes() == name)?;
    Some((name, value.map(|value| OsString::from_vec(value.to_vec()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_ascii_whitespace().map(OsString::from).collect()
    }

    fn spec(line: &str) -> Option<String> {
        parse(words(line)).creates.map(|c| c.spec().to_string_lossy().into_owned())
    }

    #[test]
    fn the_bundle_is_found_however_a_runtime_lets_it_be_said() {
        for line in [
            "create --bundle /b c1",
            "create --bundle=/b c1",
            "create -b /b c1",
            "create -b/b c1",
            "create -b=/b c1",
            "create -bundle /b c1",
            "create -bundle=/b c1",
            "create --bund /b c1",
            "create c1 --bundle /b",
            "run -d -b /b c1",
            "run -db /b c1",
            "run --bundle /first --bundle /b c1",
            "run --pid-file --bundle --bundle /b c1",
            "run --pid-file -b/x --console-socket=-b -b /b c1",
            "run -console-socket -b -b /b c1",
            "run --preserve-fds 3 --no-pivot --keep --new-option -b /b c1",
            "--root run --log create --log-format json --systemd-cgroup run -b /b c1",
            "--root=/r --debug --criu /c --rootless auto create -b /b c1",
            "-root /r -debug create -b /b c1",
            "--cgroup-manager systemd --log-level debug create -b /b c1",
            "-l /log -s -r /root create -b /b c1",
            "-sr /root create -b /b c1",
            "-l/log create -b /b c1",
            "--later-option value create -b /b c1",
            "--later-flag create -b /b c1",
            "--later-option=run create -b /b c1",
            "-- create -b /b c1",
        ] {
            assert_eq!(spec(line).as_deref(), Some("/b/config.json"), "{line}");
        }
    }

    #[test]
    fn without_a_bundle_it_is_the_working_directory() {
        for line in ["create c1", "run -- -b /b", "run --pid-file -b/b c1", "run", "run -b"] {
            assert_eq!(spec(line).as_deref(), Some("./config.json"), "{line}");
        }
    }

    #[test]
    fn another_specification_of_crun_is_relative_to_the_working_directory() {
        assert_eq!(spec("create -f /other.json -b /b c1").as_deref(), Some("/other.json"));
        assert_eq!(spec("create --config=other.json -b /b c1").as_deref(), Some("other.json"));
        assert_eq!(spec("create --config config.json -b /b c1").as_deref(), Some("/b/config.json"));
    }

    #[test]
    fn the_container_is_called_by_the_first_word() {
        let of = |line: &str| {
            let creates = parse(words(line)).creates.unwrap_or_default();
            (creates.id(), creates.bundle())
        };
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of("create --bundle /b --pid-file /p c1"), ("c1".to_owned(), at("/b")));
        assert_eq!(of("run c1 -b /b x"), ("c1".to_owned(), at("/b")));
        assert_eq!(of("run -b /b -- -c"), ("-c".to_owned(), at("/b")));
        assert_eq!(of("create -f /b/other.json c1"), ("c1".to_owned(), None));
        assert_eq!(of("run"), (String::new(), std::env::current_dir().ok()));
    }

    #[test]
    fn only_create_and_run_create() {
        for line in
            ["", "state c1", "delete run", "exec -b /b create", "--version", "--root create", "features", "x run"]
        {
            let found = parse(words(line));
            assert_eq!((found.creates, found.passed_on), (None, words(line)), "{line}");
        }
    }

    #[test]
    fn only_our_own_options_before_the_subcommand_are_taken_out() {
        let found = parse(words(
            "--root /r --runtime /usr/bin/crun --gpu-preflight-config=/c.toml --gpu-preflight-hook /h \
             --gpu-preflight-hook-arg --log --gpu-preflight-hook-arg=/l --debug run --runtime x --bundle /b c1",
        ));
        assert_eq!(found.runtime.as_deref(), Some(OsStr::new("/usr/bin/crun")));
        assert_eq!(found.config, Some(PathBuf::from("/c.toml")));
        assert_eq!(found.hook, Some(PathBuf::from("/h")));
        assert_eq!(found.hook_args, ["--log", "/l"]);
        assert_eq!(found.passed_on, words("--root /r --debug run --runtime x --bundle /b c1"));
        assert!(found.creates.is_some());

        let as_values = parse(words("--root --runtime --log --runtime=x state c1"));
        assert_eq!((as_values.runtime, as_values.log), (None, Some("--runtime=x".into())));
        assert_eq!(parse(words("-- --runtime x")).passed_on, words("-- --runtime x"));
        assert_eq!(parse(words("--debug --runtime")).passed_on, words("--debug"));
    }

    #[test]
    fn the_log_is_known_to_write_a_refusal_into() {
        let found = parse(words("--log /a --log=/b --log-format json create c1"));
        assert_eq!((found.log, found.log_format), (Some("/b".into()), Some("json".into())));
    }

    proptest! {
        #[test]
        fn any_line_passes_unchanged_but_for_our_own(line in proptest::collection::vec(prop_oneof![
            "[a-z=-]{0,12}".prop_map(OsString::from),
            proptest::sample::select(&["create", "run", "--", "-b", "--bundle", "--log", "-", ""]).prop_map(OsString::from),
            proptest::collection::vec(1u8..=255, 0..8).prop_map(OsString::from_vec),
        ], 0..20)) {
            prop_assume!(!line.iter().any(|argument| own(argument).is_some()));
            prop_assert_eq!(parse(line.clone()).passed_on, line);
        }

        #[test]
        fn our_own_vanish_without_a_trace(before in "(--debug |--root /r |--log=x |-s ){0,4}", after in "(create|run|state)( -b /b| --runtime y| c1){0,3}") {
            let found = parse(words(&format!("{before} --runtime /x {after}")));
            prop_assert_eq!(found.runtime.as_deref(), Some(OsStr::new("/x")));
            prop_assert_eq!(found.passed_on, words(&format!("{before} {after}")));
        }
    }
}
