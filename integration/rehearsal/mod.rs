//! The rehearsal against the truth: containers of real runtimes open their nodes themselves, and hooks at
//! every stage have rehearsed just that before.
#![expect(clippy::unwrap_used, reason = "a test that cannot be laid out has failed")]

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::Value;

mod attack;
mod container;
mod hook;
mod limits;
mod scenarios;

use container::{Container, STAGES, Setup, Tools};
use scenarios::{SCENARIOS, Scenario};

/// What `open` of a node says: no driver is behind the number, and an unused one cannot be opened otherwise.
const ENXIO: i32 = 6;
const EACCES: i32 = 13;
const EPERM: i32 = 1;

/// Prints a line for each node of each scenario; `--nocapture` shows them.
#[test]
#[expect(clippy::disallowed_macros, reason = "the table is what a test prints")]
fn the_rehearsal_says_what_the_containers_program_will_find() {
    let mut table = format!("{:46} {:10} rehearsal at {}\n", "scenario", "", STAGES.join(", "));
    let mut wrong = String::new();
    let mut micros = Vec::new();
    for setup in Setup::ALL.into_iter().filter(|setup| can_run(*setup)) {
        let tools = Tools::make();
        for scenario in SCENARIOS.iter().filter(|s| s.setups.contains(&setup)) {
            let mut container = Container::new(&tools);
            (scenario.lay)(&mut container);
            match play(&mut container, setup) {
                Ok(played) => judge(scenario, setup, &played, &mut table, &mut wrong),
                Err(error) => writeln!(wrong, "{}, {}: {error}", scenario.name, setup.name()).unwrap(),
            }
            micros.extend(STAGES.iter().filter_map(|s| answers(&container, s)?["micros"].as_u64()));
        }
    }
    micros.sort_unstable();
    let median = micros.get(micros.len() / 2).copied().unwrap_or(0);
    println!("{table}{} rehearsals, median {median} microseconds", micros.len());
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A node, what its open came to, and what the rehearsals said.
struct Played {
    path: String,
    errno: i32,
    rehearsed: [String; 3],
}

fn play(container: &mut Container<'_>, setup: Setup) -> Result<Vec<Played>, String> {
    let id = format!("rehearsal-{}", std::process::id());
    let output = container.command(setup, &id).output().map_err(|e| e.to_string())?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("{}: {stdout}{stderr}", output.status));
    }
    let stages = STAGES.map(|stage| answers(container, stage));
    let lines = stdout.lines().enumerate().map(|(n, line)| {
        let (path, errno) = line.rsplit_once(' ').ok_or_else(|| stdout.to_string())?;
        let word =
            |stage: &Option<Value>| stage.as_ref().map_or("no hook", |s| s["answers"][n].as_str().unwrap()).to_owned();
        let rehearsed = [word(&stages[0]), word(&stages[1]), word(&stages[2])];
        Ok(Played { path: path.to_owned(), errno: errno.parse().map_err(|_| stdout.to_string())?, rehearsed })
    });
    lines.collect()
}

fn answers(container: &Container<'_>, stage: &str) -> Option<Value> {
    let text = std::fs::read(container.path(&format!("answers/{stage}.json"))).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

/// Adds to the table, and to the list of answers that are not what they must be.
fn judge(scenario: &Scenario, setup: Setup, played: &[Played], table: &mut String, wrong: &mut String) {
    let first = played.iter().find(|p| p.path == "/dev/nvidia0");
    if first.is_none_or(|p| (p.errno == ENXIO || p.errno == 0) != scenario.granted) {
        writeln!(wrong, "{}, {}: the scenario is not what it says", scenario.name, setup.name()).unwrap();
    }
    for Played { path, errno, rehearsed } in played {
        let truth = match *errno {
            0 | ENXIO => "granted",
            EACCES | EPERM => "refused",
            _ => "neither",
        };
        let right = |word: &String| word.starts_with(truth) || (scenario.unknowable && word.starts_with("unknown"));
        let mark = if rehearsed.iter().all(right) { ' ' } else { '!' };
        let words =
            if rehearsed.iter().all(|r| *r == rehearsed[0]) { rehearsed[0].clone() } else { rehearsed.join(" | ") };
        let node = path.trim_start_matches("/dev/");
        writeln!(table, "{mark}{:45} {:10} {node:14} open {errno:2}  {words}", scenario.name, setup.name()).unwrap();
        if mark == '!' {
            writeln!(wrong, "{}, {}: {path} open {errno}: {words}", scenario.name, setup.name()).unwrap();
        }
    }
}

/// Says what is lacking, if something is.
fn can_run(setup: Setup) -> bool {
    let tools = [setup.runtime(), "unshare", "setpriv", "rustc", "setcap"];
    let tool = tools.into_iter().find(|tool| !installed(tool));
    let lacking = if nix::unistd::geteuid().is_root() { tool } else { Some("root") };
    if let Some(lacking) = lacking {
        assert!(std::env::var_os("GPU_PREFLIGHT_TEST_SKIPS").is_none_or(|v| v != "forbidden"), "{lacking} is needed");
        // past the harness, which would swallow what a test prints that does not fail
        let mut stderr = std::io::stderr();
        writeln!(stderr, "skipped: rehearsal under {} needs {lacking}", setup.name()).unwrap();
    }
    lacking.is_none()
}

fn installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).any(|dir| dir.join(tool).exists())
}
