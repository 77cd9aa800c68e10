//! Does CUDA start? Asked by a real `cuInit`, where somebody wants that: only a code that was really seen is judged, and
//! each has one cause.

use super::nvml::hung::may_sleep;
use super::uvm::{Cause, cause};
use crate::checks::not_applicable;
use crate::knowledge::cuda::codes;
use crate::knowledge::cuda_visible_devices::{hides_all, parse};
use crate::model::check::{Action, Check, Failure, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::CudaStart;
use crate::model::{Facts, Unknown};

const CODE: &str = "cuInit answers {code} ({meaning}): no CUDA program starts";
const NO_LIBRARY: &str = "libcuda.so.1 cannot be loaded: {why}";
const HUNG: &str = "cuInit did not come back in time";
const DIED: &str = "the process that called cuInit was ended by it";

pub(super) const CHECKS: &[Check] = &[Check {
    id: "cuda-does-not-start",
    title: "CUDA does not start",
    why: "cuInit, the first call of every CUDA program, fails; so every one of them does, or works on the CPU.",
    messages: &[CODE, NO_LIBRARY, HUNG, DIED],
    remedy: &[
        Step {
            action: Action::LoadModule,
            text: "If nothing else is found: end all CUDA programs, and load nvidia_uvm anew.",
            command: Some("rmmod nvidia_uvm && modprobe nvidia_uvm"),
        },
        Step { action: Action::Reboot, text: "If the module cannot be unloaded, reboot.", command: None },
    ],
    severities: &[Severity::Error, Severity::Warning],
    places: &[Place::Host, Place::Healthcheck],
    judge: does_not_start,
}];

/// `CUDA_ERROR_NO_DEVICE`, `CUDA_ERROR_OUT_OF_MEMORY` (cuda.h).
const NO_DEVICE: u32 = 100;
const OUT_OF_MEMORY: u32 = 2;

fn does_not_start(facts: &Facts<'_>) -> Judgement {
    let Some(start) = &facts.host.cuda_start else {
        let wanted = facts.container.inside.as_ref().is_some_and(|inside| inside.wants_cuda);
        if wanted && facts.container.has_gpu()? {
            return Err(Unknown::new("host.cuda_start", "cuInit", "it was not called"));
        }
        return not_applicable();
    };
    let failure = match start {
        CudaStart::Answered(0) => return Ok(Outcome::Pass),
        CudaStart::Answered(NO_DEVICE) if hides_its_gpus(facts)? => return not_applicable(),
        // what has a name of its own is said by that
        CudaStart::Answered(_) if cause(facts).is_some_and(|(_, cause)| cause != Cause::Other) => {
            return not_applicable();
        }
        CudaStart::Answered(code) => {
            // From inside, what only this program may have met: MPS has no place for one more, memory is used up.
            let may_be_own = facts.place == Place::Healthcheck && matches!(*code, OUT_OF_MEMORY | 805..=810);
            let severity = if may_be_own { Severity::Warning } else { Severity::Error };
            answered(severity, CODE, *code)
        }
        CudaStart::NotLoaded(why) => Failure::new(Severity::Error, NO_LIBRARY).foreign("why", why),
        // It starts the GPUs that sleep, as NVML does.
        CudaStart::Late => Failure::new(if may_sleep(facts) { Severity::Warning } else { Severity::Error }, HUNG),
        // From inside it may be a library that the container's environment has CUDA load.
        CudaStart::Died => {
            let inside = facts.place == Place::Healthcheck;
            Failure::new(if inside { Severity::Warning } else { Severity::Error }, DIED)
        }
        CudaStart::NotAsked(why) => return Err(Unknown::new("host.cuda_start", "cuInit", why)),
    };
    failure.saw("host.cuda_start", format!("{start:?}"), "cuInit").found()
}

/// Then no device is what was asked for. On the machine it is the caller's own affair whatever the variable says: wrong
/// forms of it have checks of their own.
fn hides_its_gpus(facts: &Facts<'_>) -> Result<bool, Unknown> {
    if facts.place == Place::Host {
        return Ok(facts.host.environment.known()?.contains_key("CUDA_VISIBLE_DEVICES"));
    }
    Ok(facts.container.variable("CUDA_VISIBLE_DEVICES")?.is_some_and(|value| hides_all(&parse(value))))
}

pub(super) fn answered(severity: Severity, message: &'static str, code: u32) -> Failure {
    Failure::new(severity, message).arg("code", code).arg("meaning", meaning(code))
}

/// In the words that programs print, or by its name.
fn meaning(code: u32) -> &'static str {
    codes::by_number(code).map_or("an unknown code", |row| if row.text.is_empty() { row.driver } else { row.text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::World;
    use crate::model::container::FromInside;

    const ID: &str = "cuda-does-not-start";

    fn with(start: Option<CudaStart>) -> World {
        let mut world = World::cdi(1);
        world.place = Place::Healthcheck;
        world.container.inside = Some(FromInside::default());
        world.host.cuda_start = start;
        world
    }

    #[test]
    fn every_answer_but_success_is_an_error() {
        with(Some(CudaStart::Answered(0))).silent(ID);
        for start in [
            CudaStart::Answered(999),
            CudaStart::Answered(NO_DEVICE),
            CudaStart::NotLoaded("libcuda.so.1: cannot open shared object file".into()),
        ] {
            assert_eq!(with(Some(start)).short(ID).severity, Severity::Error);
        }
    }

    #[test]
    fn a_code_is_said_in_the_words_that_programs_print() {
        for (code, words) in [(999, "unknown error"), (1, "CUDA_ERROR_INVALID_VALUE"), (77777, "an unknown code")] {
            assert_eq!(meaning(code), words);
        }
    }

    #[test]
    fn what_only_the_health_check_may_have_met_is_no_error() {
        for code in [2, 805, 807, 808, 809] {
            let full = with(Some(CudaStart::Answered(code)));
            assert_eq!(full.failure(ID).severity, Severity::Warning, "{code}");
            let machine = World { place: Place::Host, ..full };
            assert_eq!(machine.failure(ID).severity, Severity::Error, "{code}");
        }
        with(Some(CudaStart::NotAsked("no process could be made".into()))).unknown(ID);
    }

    #[test]
    fn one_that_starts_gpus_takes_its_time_and_one_that_ends_may_have_been_ended() {
        for (start, inside, on_the_machine) in [
            (CudaStart::Late, Severity::Warning, Severity::Warning),
            (CudaStart::Died, Severity::Warning, Severity::Error),
        ] {
            let world = with(Some(start));
            assert_eq!(world.short(ID).severity, inside);
            assert_eq!(World { place: Place::Host, ..world }.short(ID).severity, on_the_machine);
        }
        let mut awake = with(Some(CudaStart::Late));
        awake.container.inside = Some(FromInside { in_use: true, ..FromInside::default() });
        assert_eq!(awake.short(ID).severity, Severity::Error);
    }

    #[test]
    fn who_hides_the_gpus_has_none() {
        let mut world = with(Some(CudaStart::Answered(NO_DEVICE)));
        world.set("CUDA_VISIBLE_DEVICES", "-1");
        world.silent(ID);
        world.host.cuda_start = Some(CudaStart::Answered(999));
        world.failure(ID);
    }

    #[test]
    fn what_the_caller_has_hidden_from_himself_is_no_fault_of_the_machine() {
        let mut world = World::machine(1);
        world.host.cuda_start = Some(CudaStart::Answered(NO_DEVICE));
        world.failure(ID);
        world.host.environment =
            crate::model::Observed::Known([("CUDA_VISIBLE_DEVICES".to_owned(), "7".to_owned())].into());
        world.silent(ID);
        world.host.cuda_start = Some(CudaStart::Answered(999));
        world.failure(ID);
    }

    #[test]
    fn where_it_was_wanted_and_could_not_be_called_that_is_said() {
        let mut world = with(None);
        world.silent(ID);
        world.container.inside = Some(FromInside { wants_cuda: true, ..FromInside::default() });
        world.unknown(ID);
    }
}
