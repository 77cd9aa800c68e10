//! Times whole processes: starts every program in turn, again and again, and compares what they took.
//!
//! ```text
//! measure ROUNDS -- NAME STDIN PROGRAM [ARG]... [-- NAME STDIN PROGRAM [ARG]...]...
//! ```
//! The first program is the yardstick. Interleaving spreads whatever else the machine does over all of
//! them alike; the minimum says what a program costs, the median what it costs on a busy machine.
//! `Command` starts by `posix_spawn`, so the size of this process does not count. No crates: `rustc` builds it.

use std::fs::File;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Rounds that are run first and not counted: page cache, CPU clock.
const WARM_UP: usize = 50;

struct Program {
    name: String,
    stdin: String,
    argv: Vec<String>,
    times: Vec<Duration>,
    failed: usize,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let rounds = args.next().and_then(|n| n.parse::<usize>().ok());
    let mut programs = Vec::new();
    for part in args.collect::<Vec<_>>().split(|word| word == "--").filter(|part| !part.is_empty()) {
        let [name, stdin, argv @ ..] = part else { return usage() };
        programs.push(Program {
            name: name.clone(),
            stdin: stdin.clone(),
            argv: argv.to_vec(),
            times: Vec::new(),
            failed: 0,
        });
    }
    let (Some(rounds @ 1..), false) = (rounds, programs.iter().any(|p| p.argv.is_empty()) || programs.is_empty())
    else {
        return usage();
    };
    for round in 0..rounds + WARM_UP {
        for program in &mut programs {
            match once(program) {
                Ok((took, ok)) if round >= WARM_UP => {
                    program.times.push(took);
                    program.failed += usize::from(!ok);
                }
                Ok(_) => {}
                Err(error) => {
                    eprintln!("{}: {error}", program.name);
                    return ExitCode::from(2);
                }
            }
        }
    }
    report(&mut programs, rounds);
    ExitCode::from(u8::from(programs.iter().any(|p| p.failed > 0)))
}

fn usage() -> ExitCode {
    eprintln!("usage: measure ROUNDS -- NAME STDIN PROGRAM [ARG]... [-- ...]");
    ExitCode::from(2)
}

fn once(program: &Program) -> std::io::Result<(Duration, bool)> {
    let mut command = Command::new(&program.argv[0]);
    command.args(&program.argv[1..]).stdin(File::open(&program.stdin)?).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.spawn()?.wait()?;
    Ok((start.elapsed(), status.success()))
}

fn report(programs: &mut [Program], rounds: usize) {
    println!("{rounds} runs each, interleaved; whole processes, from start to wait\n");
    println!("{:<34} {:>10} {:>7} {:>10} {:>7}", "", "minimum", "", "median", "");
    let mut yardstick = None;
    for program in programs {
        program.times.sort_unstable();
        let found = (micros(program.times[0]), micros(program.times[program.times.len() / 2]));
        let (least, median) = *yardstick.get_or_insert(found);
        println!(
            "{:<34} {:>7.0} us {:>6.2}x {:>7.0} us {:>6.2}x{}",
            program.name,
            found.0,
            found.0 / least,
            found.1,
            found.1 / median,
            if program.failed > 0 { format!("   {} runs did not exit with 0", program.failed) } else { String::new() }
        );
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
