//! Was a child not done because something in it did not come back, or because it got no processor?

use std::path::Path;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::collect::process_stat::Stat;
use crate::collect::tree::{Kind, Tree};

/// Whoever is woken so long after the deadline was not run in between, nor was the child: its cgroup was frozen, as by
/// `docker pause`.
const OVERSLEPT: Duration = Duration::from_millis(250);

/// Whether a child that is not done at its deadline got no processor. `begun`: since when it was waited for.
pub(super) fn is(child: Pid, begun: Instant, deadline: Instant) -> bool {
    let now = Instant::now();
    now.saturating_duration_since(deadline) > OVERSLEPT || could_not_run(child, now - begun)
}

/// It wants to run, and could for less than half of the time: its cgroup's quota is used up, or the machine is busy. One
/// that waits for a driver sleeps, and one that a driver keeps busy has run.
fn could_not_run(child: Pid, waited: Duration) -> bool {
    let stat = Tree::open(Path::new("/proc"), Kind::Host)
        .ok()
        .and_then(|proc| proc.read_text(&format!("{child}/stat"), 4096).ok().flatten())
        .unwrap_or_default();
    Stat::parse(&stat).is_some_and(|stat| stat.state == "R" && stat.ran * 2 < waited)
}

#[cfg(test)]
mod tests {
    use super::super::{run, start};
    use super::*;

    fn soon(milliseconds: u64) -> Instant {
        Instant::now() + Duration::from_millis(milliseconds)
    }

    #[test]
    fn who_waits_or_works_is_told_from_who_gets_no_processor() {
        let asleep = run(soon(300), 100, |_| std::thread::sleep(Duration::from_secs(20))).unwrap();
        assert!(!asleep.complete && !asleep.starved);
        drop(asleep);
        let child = start(100, |_| {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(20) {}
        })
        .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert!(could_not_run(child.pid, Duration::from_secs(3600)), "it has run for no hour");
        assert!(!could_not_run(child.pid, Duration::from_millis(1)));
        drop(child.finish(soon(0)));
    }

    #[test]
    fn a_parent_that_was_away_knows_nothing_of_its_child() {
        let child = start(100, |_| std::thread::sleep(Duration::from_secs(20))).unwrap();
        let deadline = Instant::now();
        std::thread::sleep(OVERSLEPT * 2);
        assert!(child.finish(deadline).starved);
    }
}
