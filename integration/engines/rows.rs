//! Starts of containers, and what is to become of them.

use std::fmt::Write as _;

use serde_json::Value;

use super::lay::NODES;
use super::machine::Machine;
use crate::support::process::Ended;
use crate::support::words::FORBIDDEN;

/// What is to become of a start.
#[derive(Debug, Clone, Copy)]
pub(super) enum Becomes {
    /// It runs, is not our business, and has no node.
    Unlogged,
    /// It runs, and may open every node; the log says how a GPU was given.
    Given(&'static str),
    /// The log says that it starts, and how a GPU was given; whether it then runs is the engine's.
    Allowed(&'static str),
    /// It runs without a node; the log warns of this.
    Warned(&'static str),
    /// It runs without a node, as this was to be ignored.
    Overridden(&'static str),
    /// It does not run, the engine shows these words, and nothing is logged.
    Fails(&'static str),
    /// It is refused with this exit code of the hook, for this.
    Refused(u8, &'static str),
}

/// One start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) what: &'static str,
    /// A script that changes the machine, and one that changes it back.
    pub(super) changes: (&'static str, &'static str),
    pub(super) image: &'static str,
    pub(super) options: &'static [&'static str],
    pub(super) becomes: Becomes,
}

/// A start on the machine as it is.
pub(super) const fn row(
    what: &'static str,
    image: &'static str,
    options: &'static [&'static str],
    becomes: Becomes,
) -> Row {
    Row { what, changes: ("", ""), image, options, becomes }
}

/// Single nodes, as docker and podman are given them.
pub(super) const RAW: &[&str] = &["--device=/dev/nvidia0", "--device=/dev/nvidiactl", "--device=/dev/nvidia-uvm"];

/// What neither `--privileged` nor `--device` brings along.
pub(super) const LIBRARY: &str = "--volume=/opt/driver/libcuda.so.1:/usr/lib/libcuda.so.1:ro";

/// Both.
pub(super) const RAW_AND_LIBRARY: &[&str] = &[RAW[0], RAW[1], RAW[2], LIBRARY];

/// The kernel module nvidia-uvm, and what comes with it, is not there.
pub(super) const NO_UVM: (&str, &str) = (
    "mv /sys/module/nvidia_uvm /run/nvidia_uvm; cat /proc/devices >/run/devices
     grep -v nvidia-uvm /run/devices >/proc/devices; rm /dev/nvidia-uvm /dev/nvidia-uvm-tools",
    "mv /run/nvidia_uvm /sys/module/nvidia_uvm; cat /run/devices >/proc/devices
     mknod -m 666 /dev/nvidia-uvm c 511 0; mknod -m 666 /dev/nvidia-uvm-tools c 511 1",
);

/// The programs have gone, and what calls them is still registered.
pub(super) const MISSING: (&str, &str) =
    ("mv /usr/libexec/gpu-preflight /usr/libexec/gone", "mv /usr/libexec/gone /usr/libexec/gpu-preflight");

/// The log cannot be written.
pub(super) const UNWRITABLE: (&str, &str) =
    ("rm -rf /var/log/gpu-preflight; : >/var/log/gpu-preflight", "rm /var/log/gpu-preflight");

/// The driver's nodes are not for everybody (`NVreg_DeviceFileMode=0660`).
pub(super) const STRICT: (&str, &str) = ("chmod 660 /dev/nvidia*", "chmod 666 /dev/nvidia*");

/// How an engine shows a refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shows {
    /// The exit code of its command.
    pub(super) code: i32,
    /// By what a variable is set, as the words say; where crun calls the hook nobody sees them, but for the exit code.
    pub(super) setting: Option<&'static str>,
    /// Our runtime says it, before there is a hook with an exit code.
    pub(super) by_runtime: bool,
}

/// Starts them all; fails with all that went otherwise. `start` gets the image and the options.
pub(super) fn check(
    machine: &Machine,
    engine: &str,
    log: &str,
    shows: Shows,
    rows: &[Row],
    start: impl Fn(&Row) -> Ended,
) {
    let mut wrong = String::new();
    for row in rows {
        if !row.changes.0.is_empty() {
            machine.shell(row.changes.0);
        }
        let ended = start(row);
        if !row.changes.1.is_empty() {
            machine.shell(row.changes.1);
        }
        let logged = machine.decisions(log);
        if let Err(why) = judge(row, shows, &ended, &logged) {
            let _ = writeln!(wrong, "{engine}, {}: {why}\n  {ended:?}\n  {logged:?}", row.what);
        }
        report(engine, row, &ended);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// What a user sees; `--nocapture` shows it.
#[expect(clippy::print_stdout, clippy::disallowed_macros, reason = "what the engines show is what a test prints")]
fn report(engine: &str, row: &Row, ended: &Ended) {
    println!("# {engine}: {} ({})\n{}{}", row.what, ended.code(), ended.stdout, ended.stderr);
}

fn judge(row: &Row, shows: Shows, ended: &Ended, logged: &[Value]) -> Result<(), String> {
    if let Becomes::Unlogged = row.becomes {
        let idle = runs(ended, "absent") && logged.is_empty();
        return if idle { Ok(()) } else { Err("expected to run, unlogged".to_owned()) };
    }
    if let Becomes::Fails(words) = row.becomes {
        let ran = ended.code() == 0 || ended.stdout.contains("the container runs");
        let fails = !ran && logged.is_empty() && ended.stderr.contains(words);
        return if fails { Ok(()) } else { Err(format!("expected to fail with {words:?}, unlogged")) };
    }
    let [decision] = logged else { return Err(format!("{} decisions are logged", logged.len())) };
    let list = |name: &str| decision[name].as_array().cloned().unwrap_or_default();
    let of = |severity: &str| -> Vec<Value> {
        list("findings").into_iter().filter(|f| f["severity"] == severity).map(|f| f["id"].clone()).collect()
    };
    let holds = match row.becomes {
        Becomes::Unlogged | Becomes::Fails(_) => true,
        Becomes::Given(way) => runs(ended, "granted") && decision["gpu_given"] == way,
        Becomes::Allowed(way) => decision["gpu_given"] == way,
        Becomes::Warned(id) => runs(ended, "absent") && of("warning").iter().any(|found| found == id),
        Becomes::Overridden(id) => {
            runs(ended, "absent") && list("remarks").iter().any(|remark| *remark == format!("ignored: {id}"))
        }
        Becomes::Refused(..) => !ended.stdout.contains("the container runs") && ended.code() == shows.code,
    };
    let decided = if let Becomes::Refused(..) = row.becomes { "refuse" } else { "start" };
    if !holds || decision["decision"] != decided {
        return Err(format!("expected {:?}", row.becomes));
    }
    match row.becomes {
        Becomes::Refused(code, id) => refusal(shows, ended, code, id, &of("error")),
        _ => Ok(()),
    }
}

/// It says so, and what became of each node.
fn runs(ended: &Ended, nodes: &str) -> bool {
    let lines = NODES.map(|node| format!("{node} {nodes}\n"));
    ended.code() == 0 && ended.stdout == format!("the container runs\n{}", lines.concat())
}

/// What the engine shows holds the hook's own words, to their end, or at least its exit code.
fn refusal(shows: Shows, ended: &Ended, code: u8, id: &str, errors: &[Value]) -> Result<(), String> {
    if errors.first().is_none_or(|first| first != id) {
        return Err(format!("expected {id} first"));
    }
    let text = &ended.stderr;
    let lower = text.to_lowercase();
    if let Some(phrase) = FORBIDDEN.iter().find(|phrase| lower.contains(*phrase)) {
        return Err(format!("reclassified by {phrase:?}"));
    }
    // to ignore one of several would not help
    let only = errors.len() == 1;
    let setting = if only { format!("GPU_PREFLIGHT_IGNORE={id}") } else { "GPU_PREFLIGHT=warn".to_owned() };
    let words = if let Some(by) = shows.setting {
        vec![
            if shows.by_runtime { "OCI runtime create failed: ".to_owned() } else { format!("exit status {code}") },
            format!("gpu-preflight: start refused [{id}]: "),
            format!("To start anyway: {by} {setting}."),
        ]
    } else {
        vec![format!("(exit code: {code})")]
    };
    match words.iter().find(|words| !text.contains(*words)) {
        Some(words) => Err(format!("{words:?} is not shown")),
        None => Ok(()),
    }
}
