//! From outcomes to a report, and from a report to a decision.

use super::{Mode, Policy};
use crate::model::report::{Remedy, Settled, Unjudged};
use crate::model::wording::fill;
use crate::model::{Check, Container, Failure, Family, Finding, Judged, Outcome, Report, Severity, Verdict};

/// May the container start?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Start,
    /// No; the number is what the hook exits with.
    Refuse(u8),
}

/// From when on the exit code of a command is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FailOn {
    #[default]
    Error,
    Warning,
    Unknown,
    Never,
}

/// Facts whose lack refuses a container under `on_unknown = "refuse"`: what was given, its nodes,
/// their access, the driver's version.
const ESSENTIAL: [&str; 6] = [
    "container.gpu_given",
    "container.spec_devices",
    "container.rules",
    "container.hooks",
    "container.devices",
    "host.driver.version",
];

/// Puts the outcomes into words, with the policy's severities.
///
/// `container`: the one that is judged, for what it asks and what it is exempt from; `ignore`: what
/// options say besides.
pub fn report(policy: &Policy, container: Option<&Container>, ignore: &[String], outcomes: Vec<Judged>) -> Report {
    let asked = container.map(|c| policy.asked_by(c)).unwrap_or_default();
    let exempt = container.and_then(|c| policy.exempt.reason(c));
    let ignored =
        |id: &str| policy.ignore.contains(id) || asked.ignore.contains(id) || ignore.iter().any(|i| i.trim() == id);

    let mut report = Report { verdict: Verdict::Pass, findings: Vec::new(), unknown: Vec::new(), settled: Vec::new() };
    for Judged { family, check, worst, judgement } in outcomes {
        match judgement {
            // which reports of the command line tell, and the hook's do not
            Ok(Outcome::Pass | Outcome::NotApplicable) if !cfg!(feature = "cli") => {}
            Ok(outcome @ (Outcome::Pass | Outcome::NotApplicable)) => {
                report.settled.push(Settled { check: check.id, family, passed: outcome == Outcome::Pass });
            }
            Err(unknown) if unknown.was_not_asked() => {}
            Ok(Outcome::Fail(failure)) => {
                let mut severity = severity(policy, check, failure.severity);
                if exempt.is_some() {
                    severity = severity.min(Severity::Warning);
                }
                report.findings.push(finding(family, check, &failure, severity, ignored(check.id)));
            }
            Err(unknown) => report.unknown.push(Unjudged {
                check: check.id,
                family,
                could_be_error: exempt.is_none()
                    && check.severities.iter().any(|s| *s <= worst && severity(policy, check, *s) == Severity::Error)
                    && !ignored(check.id),
                fact: unknown.fact,
                source: unknown.source,
                reason: unknown.reason,
            }),
        }
    }
    report.verdict = verdict(&report, container);
    report
}

fn verdict(report: &Report, container: Option<&Container>) -> Verdict {
    let nothing_asked = |c: &Container| !c.wants_gpu.wanted && c.has_gpu() == Ok(false);
    if report.first_error().is_some() {
        Verdict::Fail
    } else if container.is_some_and(nothing_asked) {
        Verdict::Skip
    } else if report.unknown.iter().any(|u| u.could_be_error) {
        Verdict::Unknown
    } else {
        Verdict::Pass
    }
}

/// A setting below the check's usual severity is a lid, one at or above it a floor: a check that is
/// set to `error` is one in every form, and one set to `warning` does not turn its own notes into warnings.
fn severity(policy: &Policy, check: &Check, found: Severity) -> Severity {
    match (policy.severity.get(check.id), check.severities.first()) {
        (Some(&set), Some(&usual)) if set < usual => found.min(set),
        (Some(&set), _) => found.max(set),
        (None, _) => found,
    }
}

fn finding(family: Family, check: &'static Check, failure: &Failure, severity: Severity, ignored: bool) -> Finding {
    let fits = |action| failure.only.is_empty() || failure.only.contains(&action);
    Finding {
        id: check.id,
        severity,
        subject: family,
        title: check.title,
        message: fill(failure.message, &failure.args),
        evidence: failure.evidence.clone(),
        remedy: check
            .remedy
            .iter()
            .filter(|step| fits(step.action))
            .map(|step| Remedy {
                action: step.action,
                text: fill(step.text, &failure.args),
                command: step.command.map(|command| fill(command, &failure.args)),
            })
            .collect(),
        ignored,
    }
}

impl Policy {
    /// The mode that holds for a container, with what it asks for itself.
    pub fn mode_for(&self, container: &Container) -> Mode {
        self.asked_by(container).mode.unwrap_or(self.mode)
    }

    /// Would an enforcing hook refuse this container?
    pub fn decide(&self, report: &Report, container: &Container) -> Decision {
        if let Some(error) = report.first_error() {
            return Decision::Refuse(error.subject.exit_code());
        }
        match essential_unknown(report) {
            Some(unknown) if self.refuse_unknown && container.wants_gpu.wanted => {
                Decision::Refuse(unknown.family.exit_code())
            }
            _ => Decision::Start,
        }
    }
}

/// The first unknown that refuses where `on_unknown` says so: what the line must speak of.
pub fn essential_unknown(report: &Report) -> Option<&Unjudged> {
    report.unknown.iter().find(|u| u.could_be_error && ESSENTIAL.contains(&u.fact.as_str()))
}

/// The exit code of a command.
pub fn exit_code(report: &Report, fail_on: FailOn) -> u8 {
    let at_least = |severity| report.counted().any(|f| f.severity >= severity);
    u8::from(match fail_on {
        FailOn::Error => at_least(Severity::Error),
        FailOn::Warning => at_least(Severity::Warning),
        FailOn::Unknown => at_least(Severity::Error) || report.verdict == Verdict::Unknown,
        FailOn::Never => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::container::{Given, Strength, Wants};
    use crate::model::{Action, Judgement, Observed, Place, Step, Unknown};

    static CHECK: Check = Check {
        id: "uvm-node-missing",
        title: "title",
        why: "why.",
        messages: &["{node} is absent"],
        remedy: &[
            Step { action: Action::LoadModule, text: "Load {node}.", command: Some("load {node}") },
            Step { action: Action::Reboot, text: "Reboot.", command: None },
        ],
        severities: &[Severity::Error, Severity::Warning],
        places: &[Place::Hook],
        judge: |_| Ok(Outcome::Pass),
    };

    fn judged(judgement: Judgement) -> Vec<Judged> {
        vec![Judged { family: Family::Nodes, check: &CHECK, worst: Severity::Error, judgement }]
    }

    fn fails(severity: Severity) -> Vec<Judged> {
        judged(
            Failure::new(severity, CHECK.messages[0])
                .arg("node", "/dev/nvidia-uvm")
                .only(&[Action::LoadModule])
                .found(),
        )
    }

    fn lacks(fact: &str) -> Vec<Judged> {
        judged(Err(Unknown::new(fact, "somewhere", "late")))
    }

    fn wanting() -> Container {
        Container {
            wants_gpu: Wants { wanted: true, strength: Strength::Environment, why: String::new() },
            gpu_given: Observed::Known(Given::Cdi),
            ..Container::default()
        }
    }

    #[test]
    fn an_error_refuses_with_its_family_and_says_what_to_do() {
        let policy = Policy::default();
        let report = report(&policy, Some(&wanting()), &[], fails(Severity::Error));
        assert_eq!(report.verdict, Verdict::Fail);
        assert_eq!(policy.decide(&report, &wanting()), Decision::Refuse(11));
        assert_eq!(report.findings[0].message, "/dev/nvidia-uvm is absent");
        assert_eq!(report.findings[0].remedy.len(), 1);
        assert_eq!(report.findings[0].remedy[0].command.as_deref(), Some("load /dev/nvidia-uvm"));
        assert_eq!(exit_code(&report, FailOn::Error), 1);
        assert_eq!(exit_code(&report, FailOn::Never), 0);
    }

    #[test]
    fn what_is_ignored_stays_and_does_not_count() {
        for policy in [Policy { ignore: [CHECK.id.to_owned()].into(), ..Policy::default() }, Policy::default()] {
            let options = if policy.ignore.is_empty() { vec![CHECK.id.to_owned()] } else { Vec::new() };
            let report = report(&policy, Some(&wanting()), &options, fails(Severity::Error));
            assert!(report.findings[0].ignored);
            assert_eq!((report.verdict, policy.decide(&report, &wanting())), (Verdict::Pass, Decision::Start));
        }
    }

    #[test]
    fn a_severity_that_is_set_is_a_lid_or_a_floor() {
        let set = |level| Policy { severity: [(CHECK.id.to_owned(), level)].into(), ..Policy::default() };
        let found = |level, outcome| report(&set(level), Some(&wanting()), &[], fails(outcome)).findings[0].severity;
        assert_eq!(found(Severity::Warning, Severity::Error), Severity::Warning);
        assert_eq!(found(Severity::Warning, Severity::Note), Severity::Note);
        assert_eq!(found(Severity::Error, Severity::Warning), Severity::Error);
    }

    #[test]
    fn the_unknown_is_no_pass_and_refuses_only_where_it_shall() {
        let lenient = Policy::default();
        let strict = Policy { refuse_unknown: true, ..Policy::default() };
        let essential = report(&strict, Some(&wanting()), &[], lacks("container.devices"));
        assert_eq!(essential.verdict, Verdict::Unknown);
        assert_eq!(lenient.decide(&essential, &wanting()), Decision::Start);
        assert_eq!(strict.decide(&essential, &wanting()), Decision::Refuse(11));
        let other = report(&strict, Some(&wanting()), &[], lacks("host.selinux"));
        assert_eq!(strict.decide(&other, &wanting()), Decision::Start);
        let unwanted = Container { wants_gpu: Wants::default(), ..wanting() };
        assert_eq!(strict.decide(&essential, &unwanted), Decision::Start);
        assert_eq!((exit_code(&other, FailOn::Error), exit_code(&other, FailOn::Unknown)), (0, 1));
    }

    #[test]
    fn what_could_be_no_error_here_leaves_no_error_open() {
        let strict = Policy { refuse_unknown: true, ..Policy::default() };
        let lacks = || Err(Unknown::new("container.devices", "somewhere", "late"));
        let open = || vec![Judged { worst: Severity::Warning, ..judged(lacks()).remove(0) }];
        let mild = report(&strict, Some(&wanting()), &[], open());
        assert_eq!((mild.verdict, mild.unknown.len()), (Verdict::Pass, 1));
        assert_eq!(strict.decide(&mild, &wanting()), Decision::Start);
        let raised = Policy { severity: [(CHECK.id.to_owned(), Severity::Error)].into(), ..strict };
        let severe = report(&raised, Some(&wanting()), &[], open());
        assert_eq!(raised.decide(&severe, &wanting()), Decision::Refuse(11), "a warning is an error there");
    }

    #[test]
    fn who_is_exempt_gets_warnings() {
        let mut container = wanting();
        container.annotations = Observed::Known([("burn-in".to_owned(), String::new())].into());
        let mut policy = Policy::default();
        policy.exempt.annotations.push("burn-in".into());
        let report = report(&policy, Some(&container), &[], fails(Severity::Error));
        assert_eq!(report.findings[0].severity, Severity::Warning);
        assert_eq!(policy.decide(&report, &container), Decision::Start);
    }

    #[test]
    fn what_was_not_asked_is_neither_known_nor_unknown() {
        let not_stated = Err(Unknown::new("host.gpus", "the command line", crate::model::observed::NOT_STATED));
        let asked = report(&Policy::default(), Some(&wanting()), &[], judged(not_stated));
        assert_eq!((asked.verdict, asked.unknown.len(), asked.settled.len()), (Verdict::Pass, 0, 0));
        let settled = |judgement| report(&Policy::default(), Some(&wanting()), &[], judged(judgement)).settled;
        assert!(settled(Ok(Outcome::Pass))[0].passed && !settled(Ok(Outcome::NotApplicable))[0].passed);
    }

    #[test]
    fn nothing_wanted_and_nothing_given_is_a_skip() {
        let report = report(&Policy::default(), Some(&Container::default()), &[], Vec::new());
        assert_eq!(report.verdict, Verdict::Skip);
    }
}
