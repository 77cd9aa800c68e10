//! The hook is closed: nothing of the container's can reach into it, and it reaches for nothing but what it judges.

use std::path::{Path, PathBuf};

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::process::Run;
use crate::support::scene::Scene;
use crate::support::trace::{Trace, strace};
use crate::support::words::check_refusal;
use crate::support::{needs, process, programs, scratch, write};

#[test]
fn the_shipped_program_is_static() {
    if !needs::released() {
        return;
    }
    for name in ["gpu-preflight-hook", "gpu-preflight-runtime", "gpu-preflight-healthcheck"] {
        let file = std::fs::read(programs::hook().with_file_name(name)).expect(name);
        assert_eq!(links(&file), Links { interpreter: false, needed: 0 }, "{name}");
    }
    // The reader sees both where they are.
    let dynamic = links(&std::fs::read(programs::cli()).expect("the command line program"));
    assert!(dynamic.interpreter && dynamic.needed > 0, "{dynamic:?}");
}

#[derive(Debug, PartialEq, Eq)]
struct Links {
    interpreter: bool,
    needed: usize,
}

/// What a 64-bit little-endian ELF file wants of others: `PT_INTERP`, and how many `DT_NEEDED`.
fn links(elf: &[u8]) -> Links {
    const PT_DYNAMIC: u64 = 2;
    const PT_INTERP: u64 = 3;
    const DT_NEEDED: u64 = 1;
    let number = |at: usize, size: usize| {
        elf[at..at + size].iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    };
    let offset = |at| usize::try_from(number(at, 8)).expect("an offset in the file");
    assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "a 64-bit little-endian ELF file");
    let (table, size, count) = (offset(32), offset_of(number(54, 2)), offset_of(number(56, 2)));
    let mut links = Links { interpreter: false, needed: 0 };
    for header in (0..count).map(|n| table + n * size) {
        match number(header, 4) {
            PT_INTERP => links.interpreter = true,
            PT_DYNAMIC => {
                let (start, length) = (offset(header + 8), offset(header + 32));
                let entries = (start..start + length).step_by(16).map(|at| number(at, 8));
                links.needed += entries.take_while(|tag| *tag != 0).filter(|tag| *tag == DT_NEEDED).count();
            }
            _ => {}
        }
    }
    links
}

fn offset_of(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}

#[test]
fn it_opens_no_device_executes_nothing_and_talks_to_nobody() {
    if !needs::root() || !needs::released() || !needs::tools(&["runc", "strace"]) {
        return;
    }
    let scratch = scratch();
    let trace = scratch.at("trace");
    let mut bundle = Bundle::cdi(&scratch.at("bundle"), 2);
    let hook = programs::hook();
    let mut args: Vec<String> = strace(&trace).iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let log = scratch.at("hook.jsonl");
    args.extend([&hook, &PathBuf::from("--log"), &log].map(|path| path.to_string_lossy().into_owned()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    bundle.hook("createRuntime", &needs::find("strace").expect("strace"), &args);
    bundle.write();
    let command: [PathBuf; 7] = [
        "runc".into(),
        "--root".into(),
        scratch.at("containers"),
        "run".into(),
        "--bundle".into(),
        bundle.dir.clone(),
        "gpu-preflight-closed".into(),
    ];
    let ended = SimHost::default().run(command).end();
    assert_eq!((ended.code(), ended.stdout.as_str()), (0, "the container runs\n"), "{ended:?}");
    assert!(log.is_file(), "the hook judged the container");

    let trace = Trace::read(&trace);
    let programs: Vec<&str> = trace.calls(&["execve", "execveat"]).collect();
    assert!(programs.len() == 1 && programs[0].contains(hook.to_str().expect("UTF-8")), "{programs:?}");
    let network: Vec<&str> = trace.calls(&["socket", "socketpair", "connect", "bind", "sendto", "sendmsg"]).collect();
    assert_eq!(network, [""; 0]);
    let nodes: Vec<&str> = trace.opens().filter(|line| line.contains("/dev/nvidia")).collect();
    assert!(nodes.iter().all(|line| line.contains("O_PATH")), "{nodes:?}");
    assert!(!nodes.is_empty(), "it looked at the nodes");
    let libraries: Vec<&str> =
        trace.calls(&["mmap", "mprotect"]).filter(|line| line.contains("PROT_EXEC") && line.contains("</")).collect();
    assert_eq!(libraries, [""; 0], "code is mapped from a file");
}

#[test]
fn no_variable_of_its_own_environment_changes_anything() {
    if !needs::root() || !needs::released() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    let mark = scene.at("loaded");
    let evil = preload(&scene.at("evil.c"), &mark);
    let bundle = Bundle::asking(&scene.bundle());
    bundle.write();
    write(&scene.at("off.toml"), "mode = \"off\"\n");
    let plain = scene.hook().stdin(bundle.state(1)).end();
    check_refusal(&plain, 10, "gpu-not-requested");
    let off = scene.at("off.toml").to_string_lossy().into_owned();
    let variables = [
        ("LD_PRELOAD", evil.to_str().expect("UTF-8")),
        ("LD_LIBRARY_PATH", "/tmp"),
        ("LD_AUDIT", evil.to_str().expect("UTF-8")),
        ("GLIBC_TUNABLES", "glibc.malloc.check=3:glibc.malloc.perturb=255"),
        ("MALLOC_ARENA_MAX", "1"),
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "full"),
        ("GPU_PREFLIGHT", "off"),
        ("GPU_PREFLIGHT_IGNORE", "gpu-not-requested"),
        ("GPU_PREFLIGHT_MODE", "off"),
        ("GPU_PREFLIGHT_CONFIG", &off),
        ("GPU_PREFLIGHT_HOST_ROOT", "/nonexistent"),
        ("GPU_PREFLIGHT_FAIL_ON", "never"),
        ("NVIDIA_VISIBLE_DEVICES", "void"),
        ("HOME", "/nonexistent"),
        ("TMPDIR", "/nonexistent"),
        ("LANG", "de_DE.UTF-8"),
    ];
    let with = |variables: &[(&str, &str)]| {
        let run = variables.iter().fold(scene.hook(), |run, (name, value)| run.env(name, *value));
        run.stdin(bundle.state(1)).end()
    };
    for one in variables {
        let ended = with(&[one]);
        assert_eq!((ended.code(), &ended.stderr, &ended.stdout), (10, &plain.stderr, &plain.stdout), "{one:?}");
    }
    assert_eq!(with(&variables).stderr, plain.stderr);
    assert!(!mark.exists(), "a library that the environment named was loaded");
    // The trap works: a dynamic program springs it.
    let sprung = Run::new("/bin/true").env("LD_PRELOAD", &evil).end();
    assert!(mark.exists(), "{sprung:?}");
}

/// A library that leaves a mark where it is loaded.
fn preload(source: &Path, mark: &Path) -> PathBuf {
    let code = format!(
        "#include <fcntl.h>\n__attribute__((constructor)) static void mark(void) {{ creat(\"{}\", 0644); }}\n",
        mark.display()
    );
    write(source, code);
    process::compile_c(source, "evil.so", &["-shared", "-fPIC"])
}
