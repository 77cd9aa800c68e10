//! The hand-over: the real runtime is the same process, with everything that the engine gave it.

use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;

use super::*;

#[test]
fn no_attribute_of_the_process_changes() {
    for setting in [
        "exec \"$@\"",
        "trap '' PIPE; exec \"$@\"",
        "trap '' INT HUP TERM CHLD; exec \"$@\"",
        "umask 077; ulimit -n 32; ulimit -c 0; cd /usr; exec \"$@\"",
        "exec \"$@\" 5</dev/null 9>/dev/null 31</etc/passwd",
        "exec \"$@\" <&-",
        "exec \"$@\" <&- >&- 2>&-",
        "exec \"$@\" 2>&- 3</dev/null",
        "exec \"$@\" < /dev/zero >/dev/full 2>/dev/full",
        "exec nice -n 7 \"$@\"",
    ] {
        let arguments = ["--root", "/r", "state", "", "a b", "--runtime", "x"].map(OsString::from);
        let direct = [&[look().into()], &arguments[..]].concat();
        let through = [&[shim().into(), "--runtime".into(), look().into()], &arguments[..]].concat();
        let (direct, wanted) = seen(setting, &direct);
        let (through, found) = seen(setting, &through);
        assert_eq!(wanted, found, "{setting}");
        assert_eq!((direct.code(), through.code()), (42, 42), "{setting}");
    }
}

#[test]
fn arguments_of_every_kind_and_number_arrive() {
    let odd = [OsString::from_vec(vec![0xff, 0xfe, b'=']), OsString::new(), "-".into(), "--".into(), "\n".into()];
    let many = (0..10_000).map(|n| OsString::from(n.to_string())).collect();
    let odd_global = vec!["--root".into(), OsString::from_vec(vec![b'/', 0x80]), "create".into(), "-b".into()];
    let odd_bundle = vec!["run".into(), "-b".into(), OsString::from_vec(vec![0xc3, 0x28]), "id".into()];
    for arguments in [odd.to_vec(), many, odd_global, odd_bundle, Vec::new()] {
        let direct = [vec![look().into()], arguments.clone()].concat();
        let through = [vec![shim().into(), format!("--runtime={}", look().display()).into()], arguments].concat();
        assert_eq!(seen("exec \"$@\"", &direct).1, seen("exec \"$@\"", &through).1);
    }
}

#[test]
fn it_is_the_same_process_with_the_same_end() {
    let scratch = scratch();
    let script = scratch.at("runtime");
    write(&script, "#!/bin/sh\necho $$\ncase $1 in kill) kill -$2 $$;; *) exit $1;; esac\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let start = |args: &[&str]| {
        let mut command = std::process::Command::new(shim());
        command.arg("--runtime").arg(&script).args(args).stdout(std::process::Stdio::piped());
        let child = command.spawn().expect("a process");
        let pid = child.id();
        let output = child.wait_with_output().expect("its end");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), pid.to_string());
        output.status
    };
    for code in [0, 1, 7, 125, 255] {
        assert_eq!(start(&[&code.to_string()]).code(), Some(code));
    }
    for signal in [2, 9, 13, 15] {
        assert_eq!(start(&["kill", &signal.to_string()]).signal(), Some(signal));
    }
}

#[test]
fn what_a_real_runtime_says_is_said_unchanged() {
    for name in ["runc", "crun"] {
        let Some(real) = real(name) else { continue };
        let scratch = scratch();
        let root = scratch.at("state");
        let root = root.to_str().expect("UTF-8");
        for args in [
            &["--version"][..],
            &["-v"],
            &["--help"],
            &["features"],
            &["help", "create"],
            &["create", "--help"],
            &["run", "--help"],
            &[],
            &["frobnicate"],
            &["--frobnicate", "list"],
            &["--root", root, "list"],
            &["--root", root, "--log-format", "json", "state", "absent"],
            &["--root", root, "delete", "absent"],
            &["--root", root, "create", "--bundle", "/absent", "x"],
            &["--root", root, "run", "--bundle", "/dev/null", "x"],
            &["create"],
        ] {
            let direct = run(&real, args);
            let mut own = vec!["--runtime", name];
            own.extend(args);
            let through = run(shim(), &own);
            assert_eq!(direct.stdout, through.stdout, "{name} {args:?}");
            assert_eq!(timeless(&direct.stderr), timeless(&through.stderr), "{name} {args:?}");
            assert_eq!(direct.status, through.status, "{name} {args:?}");
        }
    }
}

/// The text with the same word for every time in it.
fn timeless(text: &str) -> String {
    let words = text.split(|c: char| c == '"' || c.is_whitespace());
    words.filter(|word| is_time(word)).fold(text.to_owned(), |text, time| text.replace(time, "TIME"))
}

/// As RFC 3339 has it, with or without parts of seconds, and crun's colon behind it.
fn is_time(word: &str) -> bool {
    let at = |place: usize| word.as_bytes().get(place).copied();
    at(4) == Some(b'-') && at(10) == Some(b'T') && at(13) == Some(b':') && word.trim_end_matches(':').ends_with('Z')
}

#[test]
fn without_a_real_runtime_the_engine_is_told_and_nothing_is_made() {
    let scratch = scratch();
    let bundle = Bundle::asking(&scratch.at("b"));
    bundle.write();
    let before = std::fs::read(bundle.dir.join("config.json")).expect("the spec");
    let log = scratch.at("log.json");
    let args = ["--log-format=json", "create", "--bundle"].map(OsString::from);
    let start = |own: &[OsString]| {
        Run::new(shim())
            .args(own.to_vec())
            .args([OsString::from("--log"), log.clone().into()])
            .args(args.clone())
            .args([bundle.dir.clone().into(), OsString::from("x")])
            .env("PATH", scratch.path())
            .end()
    };
    for (own, why) in [
        (vec![], "\"runc\" is in no directory of PATH, \"crun\" is in no directory of PATH"),
        (vec!["--runtime".into(), "/absent/not found".into()], "\"/absent/not_found\" is absent"),
        (vec!["--runtime".into(), shim().into()], "is gpu-preflight itself"),
        (vec!["--runtime".into(), programs::hook().into()], "is gpu-preflight itself"),
        (vec!["--runtime".into(), "/".into()], "\"/\" is no regular file"),
    ] {
        let ended = start(&own);
        assert_eq!(ended.code(), 1);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        let logged = std::fs::read_to_string(&log).expect("the log");
        let last: serde_json::Value = serde_json::from_str(logged.lines().last().expect("an entry")).expect("JSON");
        assert_eq!((&last["level"], &last["msg"]), (&json!("error"), &json!(ended.stderr.trim_end())));
        assert!(is_time(last["time"].as_str().expect("a time")));
        assert_eq!(std::fs::read(bundle.dir.join("config.json")).expect("the spec"), before);
        assert_eq!(names(&bundle.dir), ["config.json", "rootfs"]);
    }
}

#[test]
fn a_program_that_is_none_is_named() {
    let scratch = scratch();
    let file = scratch.at("runtime");
    write(&file, "neither script nor program");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let ended = run(shim(), &["--runtime", file.to_str().expect("UTF-8"), "state", "x"]);
    assert_eq!(ended.code(), 1);
    assert!(ended.stderr.contains("cannot be executed (Exec format error)"), "{}", ended.stderr);
}
