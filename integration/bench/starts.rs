//! Times whole starts of containers, several ways in turn, again and again, and compares what they took.
//!
//! ```text
//! starts ROUNDS -- NAME HOW BUNDLE RUNTIME [ARG]... [-- NAME HOW BUNDLE RUNTIME [ARG]...]...
//! ```
//! `HOW` is `run`, or `engine`: create, state, start, wait for the end, delete, each a process, as containerd's and
//! podman's monitors do. What follows a name that ends with `:` is compared with it. In each round the ways are gone
//! through in another order, and all of them within a second, so that what else the machine does hits them alike: of
//! two ways the median of their differences says what the second costs more.
//! No crates: `rustc` builds it.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Rounds that are run first and not counted: page cache, CPU clock.
const WARM_UP: usize = 5;

/// The kernel takes a container's namespaces down after its end, and the next start would wait for that.
const PAUSE: Duration = Duration::from_millis(40);

struct Way {
    name: String,
    engine: bool,
    bundle: String,
    runtime: Vec<String>,
    times: Vec<f64>,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let rounds = args.next().and_then(|n| n.parse::<usize>().ok());
    let mut ways = Vec::new();
    for part in args.collect::<Vec<_>>().split(|word| word == "--").filter(|part| !part.is_empty()) {
        let [name, how, bundle, runtime @ ..] = part else { return usage() };
        let (name, bundle) = (name.clone(), bundle.clone());
        ways.push(Way { name, engine: how == "engine", bundle, runtime: runtime.to_vec(), times: Vec::new() });
    }
    let (Some(rounds @ 1..), false) = (rounds, ways.is_empty() || ways.iter().any(|way| way.runtime.is_empty())) else {
        return usage();
    };
    become_their_parent();
    for round in 0..rounds + WARM_UP {
        for turn in 0..ways.len() {
            let place = (round + turn) % ways.len();
            let way = &mut ways[place];
            match once(way, &format!("gpu-preflight-bench-{}-{round}-{place}", std::process::id())) {
                Ok(took) if round >= WARM_UP => way.times.push(took.as_secs_f64() * 1e3),
                Ok(_) => {}
                Err(error) => {
                    eprintln!("{}: {error}", way.name);
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    report(&ways, rounds);
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: starts ROUNDS -- NAME run|engine BUNDLE RUNTIME [ARG]... [-- ...]");
    ExitCode::from(2)
}

fn once(way: &Way, id: &str) -> Result<Duration, String> {
    // our runtime changes the specification
    let bundle = Path::new(&way.bundle);
    std::fs::copy(bundle.join("original.json"), bundle.join("config.json")).map_err(|error| error.to_string())?;
    let pid_file = bundle.join("pid");
    let pid_file = pid_file.to_str().ok_or("the bundle's path is no text")?;
    std::thread::sleep(PAUSE);
    let begun = Instant::now();
    if way.engine {
        call(way, &["create", "--bundle", &way.bundle, "--pid-file", pid_file, id])?;
        call(way, &["state", id])?;
        call(way, &["start", id])?;
        let pid = std::fs::read_to_string(pid_file).map_err(|error| error.to_string())?;
        wait_for(pid.trim().parse().map_err(|_| "no pid")?)?;
        call(way, &["delete", id])?;
    } else {
        call(way, &["run", "--bundle", &way.bundle, id])?;
    }
    Ok(begun.elapsed())
}

fn call(way: &Way, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(&way.runtime[0]);
    command.args(&way.runtime[1..]).args(args);
    // a file: what is created keeps it open
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{args:?}: {status}")) }
}

unsafe extern "C" {
    fn prctl(option: i32, argument: u64, ...) -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
}

/// Containers become our children when the runtime that created them ends.
fn become_their_parent() {
    const PR_SET_CHILD_SUBREAPER: i32 = 36;
    // SAFETY: sets an attribute of this process.
    unsafe { prctl(PR_SET_CHILD_SUBREAPER, 1) };
}

fn wait_for(container: i32) -> Result<(), String> {
    let mut status = 0;
    // SAFETY: `status` is a place for what the call writes.
    let ended = unsafe { waitpid(container, &raw mut status, 0) };
    if ended == container && status == 0 { Ok(()) } else { Err(format!("the container ended with {status}")) }
}

fn report(ways: &[Way], rounds: usize) {
    println!("{rounds} starts each, interleaved; milliseconds\n");
    println!("{:<52} {:>8} {:>8}   {:>8} {:>8} {:>7}", "", "minimum", "median", "more", "of it", "+-");
    let mut yardstick = &ways[0];
    for way in ways {
        let (least, median) = (sorted(&way.times)[0], middle(&way.times));
        if way.name.ends_with(':') {
            yardstick = way;
            println!("{:<52} {least:>8.2} {median:>8.2}", way.name);
            continue;
        }
        let more: Vec<f64> = way.times.iter().zip(&yardstick.times).map(|(own, other)| own - other).collect();
        let (added, whole) = (middle(&more), middle(&yardstick.times));
        let (share, error) = (added / whole * 100.0, error_of_middle(&more) / whole * 100.0);
        let name = format!("  {}", way.name);
        println!("{name:<52} {least:>8.2} {median:>8.2}   {added:>8.2} {share:>7.1}% {error:>6.1}%");
    }
}

/// How far a median may be from that of endlessly many, as one standard deviation: by the deviations' median, which
/// outliers do not move.
fn error_of_middle(values: &[f64]) -> f64 {
    let middle_of_all = middle(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle_of_all).abs()).collect();
    let count = u32::try_from(values.len()).map_or(f64::MAX, f64::from);
    1.2533 * 1.4826 * middle(&deviations) / count.sqrt()
}

fn sorted(times: &[f64]) -> Vec<f64> {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times
}

fn middle(times: &[f64]) -> f64 {
    sorted(times)[times.len() / 2]
}
