//! The hook runs as root on files that an image's author wrote: it reads nothing outside of the root file system,
//! never waits, never falls, stays small, and none of it makes it refuse a container that would have worked.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;
use serde_json::json;

use crate::support::bundle::{Bundle, libraries};
use crate::support::host::SimHost;
use crate::support::process::{Ended, Run};
use crate::support::scene::{HOOK_LIMIT, Scene};
use crate::support::trace::{Trace, strace};
use crate::support::{link, mounts, needs, programs, words, write};

/// Resident memory in kilobytes, on an ordinary container and on a hostile one.
const ORDINARY: u64 = 8 << 10;
const HOSTILE: u64 = 32 << 10;

/// A trap's name, and how it is set in a file's place.
type Trap<'a> = (&'a str, &'a dyn Fn(&Path));

/// Files that a reader of root file systems is likely to look at.
fn likely_files() -> Vec<String> {
    let packages = "usr/local/lib/python3.11/site-packages";
    let libraries = libraries();
    let mut files: Vec<String> =
        ["etc/os-release", "etc/ld.so.conf", "etc/ld.so.cache", "etc/passwd", "app"].map(str::to_owned).into();
    files.extend(["etc/nv_tegra_release", "usr/local/cuda/version.json", "usr/local/cuda/version.txt"].map(Into::into));
    files.extend(["torch/version.py", "torch-2.5.1.dist-info/METADATA"].map(|file| format!("{packages}/{file}")));
    files.extend(["libcuda.so.1", "libcudart.so.12", "libc.so.6"].map(|file| format!("{libraries}/{file}")));
    files.push("lib64/ld-linux-x86-64.so.2".into());
    files
}

/// Puts a trap in the place of every likely file.
fn trap(bundle: &Bundle, set: impl Fn(&Path)) {
    for file in likely_files() {
        let at = bundle.rootfs().join(file);
        std::fs::create_dir_all(at.parent().expect("a parent")).expect("directories");
        let _ = std::fs::remove_file(&at);
        set(&at);
    }
}

/// A scene with a container that would start, whose rootfs then becomes hostile. The driver's library is mounted
/// by the spec, so that what lies in the rootfs cannot take the GPU away.
fn scene() -> (Scene, Bundle) {
    let scene = Scene::on(&SimHost::default());
    let bundle = Bundle::cdi_laid_out(&scene.bundle(), 2);
    (scene, bundle)
}

fn check_starts(what: &str, ended: &Ended) {
    assert_eq!(ended.code(), 0, "{what}: {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
}

#[test]
fn links_lead_nowhere_but_into_the_rootfs() {
    if !needs::root() || !needs::tools(&["strace"]) || !needs::released() {
        return;
    }
    mounts::alone(|| {
        let (scene, bundle) = scene();
        // At createContainer the container's /proc is mounted below the rootfs.
        mounts::bind(Path::new("/proc"), &bundle.rootfs().join("proc"));
        let secret = scene.at("secret");
        write(&secret, "PRETTY_NAME=secret\n");
        let up = "../".repeat(40) + secret.to_str().expect("UTF-8").trim_start_matches('/');
        let targets = [
            secret.to_str().expect("UTF-8"),
            &up,
            "/proc/kmsg",
            "/proc/1/environ",
            "/proc/self/environ",
            "/proc/self/root/etc/passwd",
            "/proc/self/fd/0",
            "/proc/thread-self/cwd/config.json",
            "/proc/sys/kernel/random/uuid",
        ];
        for target in targets {
            trap(&bundle, |at| link(target, at));
            bundle.write();
            let trace = scene.at("trace");
            let run = Run::new("strace").args(strace(&trace)).args([programs::hook()]).args(scene.hook_args());
            let ended = run.stdin(bundle.state(1)).end();
            check_starts(target, &ended);
            let allowed = [scene.host(), bundle.dir.clone(), scene.at("hook.jsonl")];
            let procfs = bundle.rootfs().join("proc");
            let trace = Trace::read(&trace);
            for opened in trace.opened_for_use() {
                // Its own limits and memory map; an empty stdin for its children.
                if trace.is_about_itself(&opened) || opened == Path::new("/dev/null") {
                    continue;
                }
                assert!(
                    allowed.iter().any(|root| opened.starts_with(root)) && !opened.starts_with(&procfs),
                    "a link to {target} made the hook open {}",
                    opened.display()
                );
            }
        }
    });
}

#[test]
fn what_is_no_file_stops_nothing() {
    if !needs::root() {
        return;
    }
    let traps: [Trap<'_>; 6] = [
        ("a loop of links", &|at| link(at.file_name().expect("a name"), at)),
        ("a FIFO", &|at| mkfifo(at, Mode::from_bits_truncate(0o644)).expect("a FIFO")),
        ("a socket", &|at| drop(bound_socket(at))),
        ("a directory", &|at| std::fs::create_dir_all(at).expect("a directory")),
        ("an endless device", &|at| {
            mknod(at, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 5)).expect("a node");
        }),
        ("10 GB of nothing", &|at| {
            std::fs::File::create(at).and_then(|file| file.set_len(10 << 30)).expect("a sparse file");
        }),
    ];
    for (what, set) in traps {
        let (scene, bundle) = scene();
        trap(&bundle, set);
        bundle.write();
        let (ended, kilobytes) = scene.hook().stdin(bundle.state(1)).end_with_memory(&scene.at(""));
        check_starts(what, &ended);
        assert!(kilobytes <= HOSTILE, "{what}: {kilobytes} kB resident");
    }
}

/// A path of a socket has at most 108 bytes: bound by its name in a directory that is the working one's.
fn bound_socket(at: &Path) -> UnixListener {
    let short = PathBuf::from(format!("/tmp/gpu-preflight-{}", std::process::id()));
    let _ = std::fs::remove_file(&short);
    let socket = UnixListener::bind(&short).expect("a socket");
    if std::fs::rename(&short, at).is_err() {
        // Another file system: a node of a socket's kind is as good.
        mknod(at, SFlag::S_IFSOCK, Mode::from_bits_truncate(0o644), 0).expect("a socket's node");
        let _ = std::fs::remove_file(&short);
    }
    socket
}

#[test]
fn a_file_system_that_never_answers_holds_nothing_up() {
    if !needs::root() {
        return;
    }
    for below in ["usr/local/lib/python3.11/site-packages", "etc", "usr/local/cuda", "usr/local/lib"] {
        mounts::alone(|| {
            let (scene, bundle) = scene();
            bundle.write();
            let at = bundle.rootfs().join(below);
            std::fs::create_dir_all(&at).expect("directories");
            let server = mounts::silent_fuse(&at);
            let ended = scene.hook().stdin(bundle.state(1)).limit(HOOK_LIMIT).end();
            check_starts(below, &ended);
            drop(server);
        });
    }
}

#[test]
fn a_driver_library_on_a_file_system_that_never_answers_holds_nothing_up() {
    if !needs::root() {
        return;
    }
    mounts::alone(|| {
        let scene = Scene::on(&SimHost::default());
        let mut bundle = Bundle::cdi_laid_out(&scene.bundle(), 2);
        let at = scene.at("lazy");
        std::fs::create_dir_all(&at).expect("a directory");
        bundle.spec["mounts"].as_array_mut().expect("mounts").push(json!({
            "destination": "/usr/local/nvidia", "source": at, "options": ["ro", "rbind"],
        }));
        bundle.write();
        let server = mounts::silent_fuse(&at);
        let ended = scene.hook().stdin(bundle.state(1)).end();
        check_starts("a lazy mount", &ended);
        drop(server);
    });
}

#[test]
fn names_that_are_no_text_stop_nothing() {
    if !needs::root() {
        return;
    }
    let (scene, bundle) = scene();
    for dir in ["usr/local/lib/python3.11/site-packages", &libraries(), "etc/ld.so.conf.d", "dev"] {
        for name in [&b"torch-\xff\xfe.dist-info"[..], b"libcuda.so.\xff", b"\x1b[2J", b"nvidia\xc0\xaf"] {
            write(&bundle.rootfs().join(dir).join(OsStr::from_bytes(name)), b"\xff\xfe\x00");
        }
    }
    check_starts("names", &scene.judge(&bundle));
}

#[test]
fn a_node_that_is_none_is_refused_and_never_opened() {
    if !needs::root() {
        return;
    }
    let traps: [Trap<'_>; 3] = [
        ("a FIFO", &|at| mkfifo(at, Mode::from_bits_truncate(0o666)).expect("a FIFO")),
        ("a file", &|at| write(at, "")),
        ("a directory", &|at| std::fs::create_dir(at).expect("a directory")),
    ];
    for (what, set) in traps {
        let (scene, bundle) = scene();
        let node = bundle.rootfs().join("dev/nvidia-uvm");
        std::fs::remove_file(&node).expect("a node");
        set(&node);
        let ended = scene.judge(&bundle);
        assert_eq!(ended.code(), 11, "{what}: {ended:?}");
        words::check_refusal(&ended, 11, "node-not-a-device");
    }
}

#[test]
fn a_specification_that_is_none_starts_the_container_in_little_memory() {
    let scene = Scene::on(&SimHost::default());
    let bundle = Bundle::asking(&scene.bundle());
    let whole = serde_json::to_vec(&bundle.spec).expect("JSON");
    let mut huge = bundle.spec.clone();
    huge["annotations"] = json!({"padding": "x".repeat(100 << 20)});
    let deep = |open: &str, middle: &str, close: &str| {
        let nested = open.repeat(10_000) + middle + &close.repeat(10_000);
        let text = String::from_utf8(whole.clone()).expect("UTF-8");
        text.replacen('{', &format!("{{\"annotations\":{nested},"), 1).into_bytes()
    };
    // What cannot be read is unknown: start. Where only a part is senseless, the rest is judged.
    let cases: [(&str, Vec<u8>, i32); 9] = [
        ("100 MB", serde_json::to_vec(&huge).expect("JSON"), 0),
        ("10,000 nested arrays", deep("[", "", "]"), 10),
        ("10,000 nested objects", deep("{\"a\":", "null", "}"), 10),
        ("cut off", whole[..whole.len() / 2].to_vec(), 0),
        ("empty", Vec::new(), 0),
        ("no object", b"[1, 2]".to_vec(), 0),
        ("no text", b"\xff\xfe{}".to_vec(), 0),
        ("only braces", b"{}".to_vec(), 0),
        ("wrong kinds", br#"{"process": [], "root": 7, "mounts": {}, "linux": "x", "hooks": null}"#.to_vec(), 0),
    ];
    for (what, text, code) in cases {
        write(&bundle.dir.join("config.json"), text);
        let (ended, kilobytes) = scene.hook().stdin(bundle.state(1)).end_with_memory(&scene.at(""));
        assert_eq!(ended.code(), code, "{what}: {ended:?}");
        words::check(&ended);
        assert!(kilobytes <= HOSTILE, "{what}: {kilobytes} kB resident");
    }
    // And where config.json itself is a trap.
    std::fs::remove_file(bundle.dir.join("config.json")).expect("config.json");
    mkfifo(&bundle.dir.join("config.json"), Mode::from_bits_truncate(0o644)).expect("a FIFO");
    check_starts("a FIFO", &scene.hook().stdin(bundle.state(1)).end());
}

#[test]
fn what_a_container_says_is_quoted_and_harmless() {
    if !needs::root() {
        return;
    }
    let values = [
        "\u{1b}[2J\u{1b}]0;owned\u{7}",
        "no such file or directory",
        "permission denied: is a directory",
        "Executable File Not Found",
        "operation not permitted\nnot a directory",
        "\u{202e}\u{fffd}gr\u{fc}n",
        "{node} {value} %s \\",
        "\" } ] , error",
    ];
    for value in values.map(str::to_owned).into_iter().chain(["x".repeat(100_000), "0,".repeat(50_000)]) {
        let scene = Scene::on(&SimHost::default());
        let mut bundle = Bundle::plain(&scene.bundle());
        bundle.env(&format!("NVIDIA_VISIBLE_DEVICES={value}"));
        let ended = scene.judge(&bundle);
        assert_eq!(ended.code(), 10, "{:?}: {ended:?}", value.chars().take(40).collect::<String>());
        words::check(&ended);
        assert!(scene.logged().len() <= 1);
    }
}

#[test]
fn an_ordinary_container_takes_little_memory() {
    if !needs::root() || !needs::released() {
        return;
    }
    let scene = Scene::on(&SimHost::gpus(8));
    for bundle in [Bundle::plain(&scene.bundle()), Bundle::cdi_laid_out(&scene.bundle(), 8)] {
        bundle.write();
        let (ended, kilobytes) = scene.hook().stdin(bundle.state(1)).end_with_memory(&scene.at(""));
        check_starts("ordinary", &ended);
        assert!(kilobytes <= ORDINARY, "{kilobytes} kB resident");
    }
}
