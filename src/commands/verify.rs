//! `explain --verify`: what the checks of this machine, and of a container, say of the causes.

use std::path::Path;

use crate::checks;
use crate::cli::Common;
use crate::commands::host::Told;
use crate::commands::output::Failed;
use crate::commands::{container, host};
use crate::model::wording::{cut, fill};
use crate::model::{Family, Judged, Outcome, Place};
use crate::report::explained::{Explained, Verified};

/// A check's words are cut here: a line, not a report.
const WORDS: usize = 400;

/// Asks the checks, and puts what is confirmed first and what is ruled out last.
pub(crate) fn verify(causes: &mut [Explained], target: Option<&Path>, common: &Common) -> Result<(), Failed> {
    let of_container = target.map(|target| container::ask(target, common)).transpose()?.map(|asked| asked.judged);
    let of_machine = host::ask(common, &Told::Library, false)?.judged;
    for cause in causes.iter_mut() {
        cause.verified = Some(verdict(cause.sheet.id, of_container.as_deref(), &of_machine));
    }
    causes.sort_by_key(|cause| match cause.verified {
        Some(Verified::Confirmed(_)) => 0,
        Some(Verified::RuledOut) => 2,
        _ => 1,
    });
    Ok(())
}

/// What is so with the container itself is nearer than what is so with the machine, and a machine in order says
/// nothing of a container that lacks something.
fn verdict(id: &str, of_container: Option<&[Judged]>, of_machine: &[Judged]) -> Verified {
    let is_it = |one: &&Judged| one.check.id == id;
    let container = of_container.and_then(|judged| judged.iter().find(is_it));
    // the caller's own environment and Python say nothing of a container's
    let of_caller = |one: &&Judged| matches!(one.family, Family::Environment | Family::Image);
    let machine = of_machine.iter().find(is_it).filter(|one| of_container.is_none() || !of_caller(one));
    let both = || [container, machine].into_iter().flatten();
    if let Some(failure) = both().find_map(|one| one.judgement.as_ref().ok().and_then(Outcome::failure)) {
        return Verified::Confirmed(cut(&fill(failure.message, &failure.args), WORDS));
    }
    if let Some(unknown) = both().find_map(|one| one.judgement.as_ref().err()) {
        let words = format!("{} could not be seen ({}: {})", unknown.fact, unknown.source, unknown.reason);
        return Verified::Undecided(cut(&words, WORDS));
    }
    let passes = |one: &&Judged| matches!(one.judgement, Ok(Outcome::Pass));
    let asks_containers = machine.is_some_and(|one| one.check.places.contains(&Place::Hook));
    if container.as_ref().is_some_and(passes) || (machine.as_ref().is_some_and(passes) && !asks_containers) {
        return Verified::RuledOut;
    }
    let known = checks::find(id).is_some();
    Verified::Undecided(
        match (known, of_container.is_some(), machine.as_ref().is_some_and(passes)) {
            (false, _, _) => "no check judges it; see how to verify",
            (true, false, true) => "this machine is in order; name the container with --container",
            (true, false, false) => "it is a matter of the container: name it with --container",
            (true, true, _) => "the question does not arise here, as far as its check sees",
        }
        .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Evidence, Failure, Severity, Unknown};

    fn judged(id: &str, judgement: crate::model::Judgement) -> Judged {
        let (family, check) = checks::find(id).expect("a check");
        Judged { family, check, worst: crate::model::Severity::Error, judgement }
    }

    #[test]
    fn found_passed_unseen_and_unasked() {
        let failure = Failure::new(Severity::Error, "{node} is absent").foreign("node", "/dev/x");
        assert!(failure.evidence == Vec::<Evidence>::new());
        let unknown = Unknown { fact: "host.pci".into(), source: "/sys".into(), reason: "late".into() };
        let machine = [
            judged("uvm-node-missing", Ok(Outcome::Pass)),
            judged("toolkit-not-installed", Ok(Outcome::Pass)),
            judged("nouveau-loaded", Err(unknown)),
            judged("docker-is-snap", Ok(Outcome::NotApplicable)),
        ];
        let container = |judgement| [judged("uvm-node-missing", judgement)];
        let lacking = container(failure.found());
        assert_eq!(
            verdict("uvm-node-missing", Some(&lacking), &machine),
            Verified::Confirmed("\"/dev/x\" is absent".into())
        );
        let whole = container(Ok(Outcome::Pass));
        assert_eq!(verdict("uvm-node-missing", Some(&whole), &machine), Verified::RuledOut);
        // that the machine has the node does not say that the container has it
        assert!(matches!(verdict("uvm-node-missing", None, &machine), Verified::Undecided(_)));
        assert_eq!(verdict("toolkit-not-installed", None, &machine), Verified::RuledOut);
        let hidden = Failure::new(Severity::Warning, "hidden");
        let caller = [judged("cuda-visible-devices-empty", hidden.found())];
        let of_its_own = [judged("cuda-visible-devices-empty", Ok(Outcome::Pass))];
        assert_eq!(verdict("cuda-visible-devices-empty", Some(&of_its_own), &caller), Verified::RuledOut);
        assert!(matches!(verdict("cuda-visible-devices-empty", None, &caller), Verified::Confirmed(_)));
        for id in ["nouveau-loaded", "docker-is-snap", "torch-load-map-location"] {
            assert!(matches!(verdict(id, None, &machine), Verified::Undecided(_)), "{id}");
        }
    }
}
