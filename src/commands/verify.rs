//! `explain --verify`: what the checks of this machine, and of a container, say of the causes.

use std::path::Path;

use crate::cli::Common;
use crate::commands::output::Failed;
use crate::commands::{container, host};
use crate::model::wording::{cut, fill};
use crate::model::{Judged, Outcome};
use crate::report::explained::{Explained, Verified};

/// A check's words are cut here: a line, not a report.
const WORDS: usize = 400;

/// Asks the checks, and puts what is confirmed first and what is ruled out last.
pub(crate) fn verify(causes: &mut [Explained], target: Option<&Path>, common: &Common) -> Result<(), Failed> {
    let mut judged = match target {
        // What is so with the container itself is nearer than what is so with the machine.
        Some(target) => container::ask(target, common)?.judged,
        None => Vec::new(),
    };
    judged.extend(host::ask(common)?.judged);
    for cause in causes.iter_mut() {
        cause.verified = Some(verdict(cause.sheet.id, &judged, target.is_some()));
    }
    causes.sort_by_key(|cause| match cause.verified {
        Some(Verified::Confirmed(_)) => 0,
        Some(Verified::RuledOut) => 2,
        _ => 1,
    });
    Ok(())
}

fn verdict(id: &str, judged: &[Judged], with_container: bool) -> Verified {
    let asked: Vec<&Judged> = judged.iter().filter(|one| one.check.id == id).collect();
    let found = asked.iter().find_map(|one| one.judgement.as_ref().ok().and_then(Outcome::failure));
    if let Some(failure) = found {
        return Verified::Confirmed(cut(&fill(failure.message, &failure.args), WORDS));
    }
    if let Some(unknown) = asked.iter().find_map(|one| one.judgement.as_ref().err()) {
        return Verified::Undecided(cut(
            &format!("{} could not be seen ({}: {})", unknown.fact, unknown.source, unknown.reason),
            WORDS,
        ));
    }
    if asked.iter().any(|one| matches!(one.judgement, Ok(Outcome::Pass))) {
        return Verified::RuledOut;
    }
    Verified::Undecided(
        match (asked.is_empty(), with_container) {
            (false, _) => "the question does not arise here, as far as its check sees",
            (true, false) => {
                "no check of the machine alone decides it; name the container with --container, or see how to verify"
            }
            (true, true) => "no check decides it; see how to verify",
        }
        .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks;
    use crate::model::{Evidence, Failure, Severity, Unknown};

    fn judged(id: &str, judgement: crate::model::Judgement) -> Judged {
        let (family, check) = checks::find(id).expect("a check");
        Judged { family, check, judgement }
    }

    #[test]
    fn found_passed_unseen_and_unasked() {
        let failure = Failure::new(Severity::Error, "{node} is absent").foreign("node", "/dev/x");
        assert!(failure.evidence == Vec::<Evidence>::new());
        let unknown = Unknown { fact: "host.pci".into(), source: "/sys".into(), reason: "late".into() };
        let all = [
            judged("uvm-node-missing", failure.found()),
            judged("driver-not-loaded", Ok(Outcome::Pass)),
            judged("nouveau-loaded", Err(unknown)),
            judged("docker-is-snap", Ok(Outcome::NotApplicable)),
        ];
        assert_eq!(verdict("uvm-node-missing", &all, false), Verified::Confirmed("\"/dev/x\" is absent".into()));
        assert_eq!(verdict("driver-not-loaded", &all, false), Verified::RuledOut);
        for id in ["nouveau-loaded", "docker-is-snap", "torch-load-map-location"] {
            assert!(matches!(verdict(id, &all, false), Verified::Undecided(_)), "{id}");
        }
    }
}
