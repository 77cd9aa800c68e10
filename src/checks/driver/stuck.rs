//! Processes that the kernel holds inside the driver.

use super::nvidia_loaded;
use crate::checks::nodes::expect::{Subject, subject};
use crate::checks::not_applicable;
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};

const STUCK: &str = "process {pid} ({name}) sleeps inside the driver, in {function}, and does not go on{others}";

/// Checks of this file.
pub(super) const CHECKS: &[Check] = &[Check {
    id: "process-stuck-in-driver",
    title: "a process is stuck inside the driver",
    why: "A process in uninterruptible sleep (state D) inside the driver holds locks that others wait for, and no signal ends it.",
    messages: &[STUCK],
    remedy: &[
        Step {
            action: Action::None,
            text: "Look again in a minute: what waits for a GPU to start goes on by itself.",
            command: Some("ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /D/'"),
        },
        Step {
            action: Action::Reboot,
            text: "Reboot the machine; a process that stays there cannot be ended.",
            command: None,
        },
    ],
    severities: &[Severity::Warning],
    places: &[Place::Host],
    judge: stuck,
}];

fn stuck(facts: &Facts<'_>) -> Judgement {
    if subject(facts)? != Some(Subject::Machine) || !nvidia_loaded(facts.host)? {
        return not_applicable();
    }
    let all = facts.host.stuck.known()?;
    let Some(first) = all.items.first() else { return all.all().map(|_| Outcome::Pass) };
    let others = match all.items.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    Failure::new(Severity::Warning, STUCK)
        .arg("pid", first.pid)
        .foreign("name", &first.name)
        .foreign("function", &first.function)
        .arg("others", others)
        .saw("host.stuck", format!("{} in {}", first.pid, first.function), format!("/proc/{}/stack", first.pid))
        .found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::host::StuckProcess;
    use crate::model::{Observed, Parts, Severity, Unknown};

    const ID: &str = "process-stuck-in-driver";

    fn with(count: u32) -> World {
        let mut world = World::machine(1);
        let process = |pid| StuckProcess { pid, name: "python3".into(), function: "os_acquire_semaphore".into() };
        world.host.stuck = Observed::Known(Parts::whole((1..=count).map(process).collect()));
        world
    }

    #[test]
    fn a_process_that_stays_in_the_driver_is_a_warning() {
        assert_eq!(with(1).short(ID).severity, Severity::Warning);
        let failure = with(3).failure(ID);
        let words = crate::model::wording::fill(failure.message, &failure.args);
        assert!(words.contains("process 1 (\"python3\")") && words.contains("(and 2 more)"), "{words}");
        with(0).silent(ID);
    }

    #[test]
    fn one_that_could_not_be_seen_is_unknown_and_does_not_hide_another() {
        let mut world = with(0);
        let unread = || vec![Unknown::new("host.stuck", "/proc/7/stack", "refused")];
        world.host.stuck = Observed::Known(Parts { items: Vec::new(), unread: unread() });
        world.unknown(ID);
        let mut world = with(1);
        let Observed::Known(all) = &mut world.host.stuck else { panic!() };
        all.unread = unread();
        world.failure(ID);
        world.host.stuck = unseen();
        world.unknown(ID);
    }

    #[test]
    fn where_no_driver_is_loaded_there_is_nothing_to_be_stuck_in() {
        with(1).silent_with(
            |world| {
                world.host.driver.version = Observed::Known(None);
                world.host.driver.modules = Observed::default();
            },
            ID,
        );
    }
}
