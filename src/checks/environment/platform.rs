//! Variables of debuggers, profilers and platforms that change how CUDA works.

use super::judged;
use crate::checks::not_applicable;
use crate::knowledge::variables::{COSTLY, INJECTION, LIMITS, Meaning, set_of};
use crate::model::Facts;
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};

const SET: &str = "{name}={value} is set: {meaning}";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "injection-variables-set",
        title: "variables of a debugger, profiler or core dump are set for CUDA",
        why: "Programs work slower, load a foreign library into CUDA, or hang when they fail.",
        messages: &[SET],
        remedy: &[Step { action: Action::ChangeEnvironment, text: "Unset {name}, unless it is meant.", command: None }],
        severities: &[Severity::Warning, Severity::Note],
        places: &[Place::Hook, Place::Host],
        judge: injection_variables_set,
    },
    Check {
        id: "uvm-limit-set",
        title: "a platform limits the GPU memory or the share of the GPU",
        why: "Programs see less memory than the GPU has, and may fail to allocate where it has enough.",
        messages: &[SET],
        remedy: &[Step {
            action: Action::ChangeEnvironment,
            text: "Ask for more at the platform that sets {name}, or unset it.",
            command: None,
        }],
        severities: &[Severity::Warning],
        places: &[Place::Hook, Place::Host],
        judge: limit_set,
    },
];

fn injection_variables_set(facts: &Facts<'_>) -> Judgement {
    match set(facts, INJECTION, Severity::Warning)? {
        Outcome::Pass => set(facts, COSTLY, Severity::Note),
        outcome => Ok(outcome),
    }
}

fn limit_set(facts: &Facts<'_>) -> Judgement {
    set(facts, LIMITS, Severity::Warning)
}

fn set(facts: &Facts<'_>, table: &[Meaning], severity: Severity) -> Judgement {
    let Some(environment) = judged(facts)? else { return not_applicable() };
    let Some((name, meaning)) = set_of(table, environment) else { return Ok(Outcome::Pass) };
    let value = environment.get(&name).map_or("", String::as_str);
    Failure::new(severity, SET).arg("name", &name).foreign("value", value).arg("meaning", meaning).found()
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{World, unseen};
    use crate::model::{Observed, Severity};

    const ROWS: [(&str, &str, &str); 3] = [
        ("injection-variables-set", "CUDA_INJECTION64_PATH", "/opt/libtrace.so"),
        ("injection-variables-set", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"),
        ("uvm-limit-set", "CUDA_DEVICE_MEMORY_LIMIT_0", "3000m"),
    ];

    #[test]
    fn a_set_variable_is_a_warning_in_the_container_and_on_the_machine() {
        for (id, name, value) in ROWS {
            let mut world = World::cdi(1);
            world.silent(id);
            world.set(name, value);
            world.failure(id);
            let mut machine = World::machine(1);
            machine.silent(id);
            machine.host.environment = Observed::Known([(name.to_owned(), value.to_owned())].into());
            machine.failure(id);
        }
    }

    #[test]
    fn what_only_costs_time_is_a_note() {
        let mut world = World::cdi(1);
        world.set("CUDA_MODULE_LOADING", "EAGER");
        assert_eq!(world.failure("injection-variables-set").severity, Severity::Note);
        world.set("CUDA_LAUNCH_BLOCKING", "1");
        assert_eq!(world.failure("injection-variables-set").severity, Severity::Warning);
    }

    #[test]
    fn without_a_gpu_nobody_cares_and_what_nobody_saw_is_unknown() {
        for (id, name, value) in ROWS {
            let mut world = World::plain();
            world.set(name, value);
            world.silent(id);
            let mut bare = World { host: crate::model::testing::bare_host(), ..World::machine(0) };
            bare.host.environment = Observed::Known([(name.to_owned(), value.to_owned())].into());
            bare.silent(id);
            let mut world = World::cdi(1);
            world.container.environment = unseen();
            world.unknown(id);
            let mut machine = World::machine(1);
            machine.host.environment = unseen();
            machine.unknown(id);
        }
    }
}
