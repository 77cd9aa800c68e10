//! Processes in uninterruptible sleep inside NVIDIA's modules, found without a call into the driver.
//!
//! Of a process its first thread counts: to look at every thread of every process takes too long. Such a sleep is usual
//! and short: of those that a first look finds only those count that a second one, a second later,
//! finds where they were, without having run in between. Only what the kernel tells of the processes is read, which
//! never waits for them.

use std::time::{Duration, Instant};

use super::look::{fact, names_if_there, short};
use crate::collect::process_stat::Stat;
use crate::collect::tree::Tree;
use crate::knowledge::driver_functions::{is_of_driver, of_stack};
use crate::model::host::StuckProcess;
use crate::model::observed::NOT_STATED;
use crate::model::{Host, Observed, Parts, Unknown, Unseen};

const PROCESSES: &str = "/proc";
const FACT: &str = "host.stuck";
/// More processes than a kernel has by default at once, and what else lies in `/proc`.
const NAMES: usize = 1 << 17;
/// Some hundred processes take a few milliseconds.
const LONGEST: Duration = Duration::from_millis(60);
/// So far the looks lie apart. The driver starts a GPU in seconds, and who waits for that sleeps too: that it is a
/// warning, and for how long, is said.
const APART: Duration = Duration::from_secs(1);
const STACK: usize = 64 << 10;
/// A line for each thing that a kernel knows of a process.
const STATUS: usize = 16 << 10;

/// What a first look found.
#[derive(Debug)]
pub struct Suspects {
    laid_out: bool,
    at: Instant,
    found: Vec<Suspect>,
    unread: Option<Unseen>,
}

#[derive(Debug)]
struct Suspect {
    process: StuckProcess,
    run: Run,
}

/// Which process it is and how often it has given the processor away: the same twice means that it did not run.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    started: u64,
    switches: Option<String>,
}

/// Looks for the first time, at all processes, where there is a driver to be stuck in.
pub fn suspects(tree: &Tree, host: &Host) -> Suspects {
    let (at, laid_out) = (Instant::now(), host.laid_out);
    let mut suspects = Suspects { laid_out, at, found: Vec::new(), unread: None };
    if host.driver.version.seen() == Some(&None) {
        return suspects;
    }
    let names = match names_if_there(tree, PROCESSES, NAMES) {
        Ok(names) => names.unwrap_or_default(),
        Err(unseen) => {
            suspects.unread = Some(unseen);
            return suspects;
        }
    };
    let pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if pids.is_empty() {
        let reason = if laid_out { NOT_STATED } else { "it shows no process" };
        suspects.unread = Some(Unseen::new(PROCESSES, reason));
    }
    for pid in pids {
        if at.elapsed() > LONGEST && !laid_out {
            suspects.unread = Some(Unseen::new(PROCESSES, "there are more processes than can be looked at in time"));
            break;
        }
        match look(tree, pid) {
            Ok(suspect) => suspects.found.extend(suspect),
            Err(unseen) => suspects.unread = Some(unseen),
        }
    }
    suspects
}

impl Suspects {
    /// One of them has this name.
    pub fn has(&self, name: &str) -> bool {
        self.found.iter().any(|suspect| suspect.process.name == name)
    }

    /// Looks again, and waits until it is time for that where there is anything to look for. Of a machine that is laid
    /// out one look is all there is.
    pub fn that_stay(&self, tree: &Tree) -> Observed<Parts<StuckProcess>> {
        let mut items: Vec<StuckProcess> = Vec::new();
        if !self.found.is_empty() && !self.laid_out {
            std::thread::sleep(APART.saturating_sub(self.at.elapsed()));
        }
        for Suspect { process, run } in &self.found {
            // one that has ended, or cannot be seen any more, is none
            let again = look(tree, process.pid).ok().flatten();
            if again.is_some_and(|again| again.run == *run) {
                items.push(process.clone());
            }
        }
        let unread: Option<Unknown> = self.unread.clone().map(|unseen| unseen.leaves_open(FACT));
        match unread {
            Some(unknown) if items.is_empty() => Observed::Unknown(unknown),
            unread => fact(FACT, Ok(Parts { items, unread: unread.into_iter().collect() })),
        }
    }
}

/// The process, if it sleeps inside the driver; `None`: it does not, or has ended. `Unseen`: it sleeps, and where cannot
/// be seen.
fn look(tree: &Tree, pid: u32) -> Result<Option<Suspect>, Unseen> {
    let of = |name: &str| format!("{PROCESSES}/{pid}/{name}");
    // what has ended in the meantime is no trouble, and what may not be seen (hidepid) sleeps for all that is known
    let Ok(Some(stat)) = short(tree, &of("stat")) else { return Ok(None) };
    let Some(Stat { name, started, .. }) = Stat::parse(&stat).filter(|stat| stat.state == "D") else { return Ok(None) };
    let function = match tree.read_text(&of("stack"), STACK) {
        Ok(Some(stack)) if !stack.trim().is_empty() => of_stack(&stack).map(str::to_owned),
        stack => match short(tree, &of("wchan")) {
            Ok(Some(function)) if !matches!(function.as_str(), "" | "0") => {
                Some(function).filter(|function| is_of_driver(function))
            }
            _ if matches!(stack, Ok(None)) && short(tree, &of("stat")) == Ok(None) => None,
            _ => return Err(Unseen::new(of("stack"), "it sleeps, and root alone may see where")),
        },
    };
    let switches = tree.read_text(&of("status"), STATUS).ok().flatten();
    let switches = switches.and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some(line.trim().to_owned())
    });
    let run = Run { started, switches };
    Ok(function.map(|function| Suspect { process: StuckProcess { pid, name: name.to_owned(), function }, run }))
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    const IN_DRIVER: &str = "[<0>] down+0x43/0x60\n[<0>] os_acquire_semaphore+0x35/0x40 [nvidia]\n";
    const ON_DISK: &str = "[<0>] io_schedule+0x46/0x80\n[<0>] ext4_file_read_iter+0x1/0x2 [ext4]\n";

    fn process(laid: &Laid, pid: u32, name: &str, state: &str, files: &[(&str, &str)]) {
        let fields = ["0"; 17].join(" ");
        laid.write(&format!("/proc/{pid}/stat"), format!("{pid} ({name}) {state} 1 {fields} 4711 0 0\n"));
        for (file, text) in files {
            laid.write(&format!("/proc/{pid}/{file}"), text);
        }
    }

    fn host(laid_out: bool) -> Host {
        let mut host = Host { laid_out, ..Host::default() };
        host.driver.version = Observed::Known(Some("550.163.01".parse().unwrap()));
        host
    }

    fn found(laid: &Laid) -> Observed<Parts<StuckProcess>> {
        suspects(&laid.tree(), &host(true)).that_stay(&laid.tree())
    }

    #[test]
    fn who_sleeps_in_the_driver_is_told_from_who_waits_for_a_disk() {
        let laid = Laid::out(&[("/proc/devices", "")]);
        process(&laid, 10, "python3 (a) D", "D", &[("stack", IN_DRIVER), ("wchan", "down")]);
        process(&laid, 11, "cp", "D", &[("stack", ON_DISK), ("wchan", "io_schedule")]);
        process(&laid, 12, "bash", "S", &[("stack", IN_DRIVER)]);
        process(&laid, 13, "nvidia-smi", "D", &[("wchan", "uvm_va_space_destroy")]);
        process(&laid, 14, "tar", "D", &[("wchan", "io_schedule")]);
        let all = found(&laid);
        let all = all.seen().unwrap();
        let told: Vec<_> = all.items.iter().map(|p| (p.pid, p.name.as_str(), p.function.as_str())).collect();
        let expected = [(10, "python3 (a) D", "os_acquire_semaphore"), (13, "nvidia-smi", "uvm_va_space_destroy")];
        assert_eq!(told, expected);
        assert!(all.unread.is_empty());
    }

    #[test]
    fn where_one_sleeps_that_cannot_be_seen_is_unknown_only_if_one_does() {
        let laid = Laid::out(&[]);
        process(&laid, 10, "bash", "S", &[]);
        assert_eq!(found(&laid), Observed::default());
        process(&laid, 11, "x", "D", &[("stack", ""), ("wchan", "0")]);
        assert!(found(&laid).known().is_err());
        process(&laid, 12, "y", "D", &[("stack", IN_DRIVER)]);
        let all = found(&laid);
        assert_eq!(all.seen().map(|all| (all.items.len(), all.unread.len())), Some((1, 1)));
    }

    #[test]
    fn without_a_driver_nobody_looks() {
        let laid = Laid::out(&[]);
        process(&laid, 10, "x", "D", &[("stack", IN_DRIVER)]);
        let first = suspects(&laid.tree(), &Host { laid_out: true, ..Host::default() });
        assert_eq!(first.that_stay(&laid.tree()), Observed::default());
    }

    #[test]
    fn a_machine_that_is_laid_out_without_processes_was_not_asked() {
        assert!(found(&Laid::out(&[("/proc/devices", "")])).known().unwrap_err().was_not_asked());
    }

    #[test]
    fn one_that_went_on_between_two_looks_is_not_stuck() {
        let laid = Laid::out(&[]);
        for pid in [10, 11, 12, 13] {
            let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t1\n";
            process(&laid, pid, "x", "D", &[("stack", IN_DRIVER), ("status", status)]);
        }
        let first = suspects(&laid.tree(), &host(false));
        assert!(first.has("x") && !first.has("y"));
        laid.write("/proc/11/status", "voluntary_ctxt_switches:\t8\n");
        laid.unlink("/proc/12/stat");
        process(&laid, 13, "x", "S", &[]);
        let left = first.that_stay(&laid.tree());
        assert_eq!(left.seen().unwrap().items.iter().map(|p| p.pid).collect::<Vec<_>>(), [10]);
    }

    #[test]
    fn the_processes_of_this_machine_are_looked_at_in_time() {
        let tree = Tree::open("/".as_ref(), crate::collect::tree::Kind::Host).unwrap();
        let before = Instant::now();
        let first = suspects(&tree, &host(false));
        assert!(before.elapsed() < LONGEST * 5 && first.found.is_empty(), "{first:?}");
    }
}
