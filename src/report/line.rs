//! What the hook prints: a first line that is complete in itself, and a few more: the other ways out, or further
//! errors, and what is wrong with the configuration.
//!
//! Engines show it in odd ways: runc puts it behind its own words, docker glues `: unknown.` to its
//! last line, kubectl cuts it, and some reclassify an error by phrases in it.

use std::fmt::Write as _;

use crate::model::container::{EngineName, Scheduler};
use crate::model::report::{Remedy, Unjudged};
use crate::model::wording::{cut, quote, without_forbidden_phrases};
use crate::model::{Action, Container, Finding, Report, Severity};

/// The first line has at most this many bytes.
pub const FIRST_LINE: usize = 400;

/// All of it has at most this many: 64 KiB would fill the pipe that runc reads only at the end.
const ALL: usize = 4000;

/// How many further errors are named.
const FURTHER: usize = 3;

/// What the hook says of a container that it refuses, or (`refused` is false) would refuse if it were
/// not told only to warn. `unknown`: what refuses it where no error does; `notes`: what is wrong with the
/// configuration, since a file that does not count may be why; `overrides`: [`setting_by`], if any counts.
pub fn hook(
    report: &Report,
    unknown: Option<&Unjudged>,
    notes: &[String],
    overrides: Option<&str>,
    refused: bool,
) -> String {
    let errors = report.counted().filter(|f| f.severity == Severity::Error).count();
    let mut text = match (report.first_error(), unknown) {
        (Some(error), _) => first_line(error, errors == 1, overrides, refused),
        (None, Some(unknown)) => unknown_line(unknown, overrides, refused),
        (None, None) => return String::new(),
    };
    let command = report.first_error().and_then(|error| error.remedy.first()?.command.as_deref());
    if let Some(command) = command.filter(|command| !text.contains(command)) {
        let _ = write!(text, "\ndo: {}", cut(command, FIRST_LINE));
    }
    if let Some(error) = report.first_error().filter(|_| errors == 1) {
        let others: Vec<&str> = error.remedy.iter().skip(1).map(|way| way.text.as_str()).collect();
        let others: Vec<&str> = others.into_iter().filter(|way| !text.contains(way)).collect();
        if let Some((first, rest)) = others.split_first() {
            let (label, first) = labelled(1, first);
            let ways = std::iter::once(first.as_str()).chain(rest.iter().copied()).collect::<Vec<_>>().join(" ");
            let _ = write!(text, "\n{label}: {}", cut(&ways, FIRST_LINE));
        }
    }
    let further = report.counted().filter(|f| f.severity == Severity::Error).skip(1);
    for finding in further.take(FURTHER) {
        let _ = write!(text, "\nalso [{}]: {}", finding.id, cut(&finding.message, FIRST_LINE / 2));
    }
    for note in notes.iter().take(FURTHER) {
        let _ = write!(text, "\nnote: {}", cut(note, FIRST_LINE / 2));
    }
    let mut text = without_forbidden_phrases(&text);
    if text.len() > ALL {
        text = cut(&text, ALL);
    }
    text.push('\n');
    text
}

/// A step with the word before it: the first is to be done, another instead of it, or after it where it says so.
pub(super) fn labelled(place: usize, text: &str) -> (&'static str, String) {
    match text.strip_prefix("Then ") {
        Some(rest) if place > 0 => ("then", rest[..1].to_uppercase() + &rest[1..]),
        _ => (if place == 0 { "do" } else { "or" }, text.to_owned()),
    }
}

fn first_line(error: &Finding, only: bool, overrides: Option<&str>, refused: bool) -> String {
    let head = head(error.id, refused);
    // To ignore one of several would not help.
    let setting = if only { format!("GPU_PREFLIGHT_IGNORE={}", error.id) } else { "GPU_PREFLIGHT=warn".to_owned() };
    let tail = tail(&setting, overrides);
    let room = FIRST_LINE.saturating_sub(head.len() + tail.len() + 3);
    let remedy = steps(&error.remedy, room.saturating_sub(error.message.len()));
    let remedy = remedy.as_str();
    // What is wrong comes first, but the way out must be there too, so neither may push the other out.
    let remedy = cut(remedy, (room / 2).max(room.saturating_sub(error.message.len())));
    let message = cut(&error.message, room - remedy.len());
    let gap = if remedy.is_empty() { "" } else { " " };
    format!("{head}{message}.{gap}{remedy} {tail}")
}

/// The one next step, with its command, and behind it what the caller may set instead: who forgot nothing, and
/// works on the CPU, has nothing to repair. Of these, what fits.
fn steps(remedy: &[Remedy], room: usize) -> String {
    let Some(first) = remedy.first() else { return String::new() };
    let mut steps = first.text.clone();
    if let Some(command) = &first.command {
        let whole = format!("{} ({command}).", first.text.trim_end_matches('.'));
        if whole.len() < room {
            steps = whole;
        }
    }
    match remedy.get(1).filter(|second| second.action == Action::ChangeEnvironment) {
        Some(second) if steps.len() + second.text.len() < room => format!("{steps} {}", second.text),
        _ => steps,
    }
}

fn unknown_line(unknown: &Unjudged, overrides: Option<&str>, refused: bool) -> String {
    let head = head(unknown.check, refused);
    // More than one check may lack the same fact, so that to ignore one of them would not help.
    let tail = tail("GPU_PREFLIGHT=warn", overrides);
    let message = format!(
        "{} could not be seen ({}: {}), and the policy refuses what is unknown.",
        unknown.fact,
        quote(&unknown.source),
        quote(&unknown.reason)
    );
    let room = FIRST_LINE.saturating_sub(head.len() + tail.len() + 1);
    format!("{head}{} {tail}", cut(&message, room))
}

fn head(id: &str, refused: bool) -> String {
    let act = if refused { "refused" } else { "would be refused (mode warn)" };
    format!("gpu-preflight: start {act} [{id}]: ")
}

fn tail(setting: &str, overrides: Option<&str>) -> String {
    match overrides {
        Some(by) => format!("To start anyway: {by} {setting}."),
        None => "Overrides are switched off on this machine.".to_owned(),
    }
}

/// By what a variable is set, in the words of who started the container.
pub fn setting_by(container: &Container) -> &'static str {
    match (container.scheduler, container.engine) {
        (Some(Scheduler::Kubernetes), _) | (None, EngineName::Crio) => "in the container's env",
        (Some(Scheduler::Nomad | Scheduler::Ecs), _) => "in the task's environment",
        (Some(Scheduler::Slurm), _) => "in the job's environment",
        // ctr has no short form
        (None, EngineName::Containerd) => "--env",
        (None, EngineName::Docker | EngineName::Podman | EngineName::Unknown) => "-e",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::report::Unjudged;
    use crate::model::wording::FORBIDDEN;
    use crate::model::{Family, Verdict};

    fn error(id: &'static str, message: &str, remedy: &str) -> Finding {
        Finding {
            id,
            severity: Severity::Error,
            subject: Family::Nodes,
            title: "title",
            message: message.to_owned(),
            evidence: Vec::new(),
            remedy: vec![Remedy { action: Action::LoadModule, text: remedy.to_owned(), command: None }],
            ignored: false,
        }
    }

    fn report(findings: Vec<Finding>) -> Report {
        Report { verdict: Verdict::Fail, findings, unknown: Vec::new(), settled: Vec::new() }
    }

    #[test]
    fn what_comes_after_a_step_is_not_offered_in_its_place() {
        assert_eq!(labelled(1, "Then load it."), ("then", "Load it.".to_owned()));
        assert_eq!(labelled(1, "Load it."), ("or", "Load it.".to_owned()));
        assert_eq!(labelled(0, "Then load it."), ("do", "Then load it.".to_owned()), "what came before was left out");
    }

    #[test]
    fn a_second_step_is_named_if_the_caller_may_take_it_and_it_fits() {
        let mut error = error("gpu-not-requested", "it has no GPU", "Give it one.");
        let set = |action| Remedy { action, text: "For work on the CPU set V=void.".to_owned(), command: None };
        error.remedy.push(set(Action::ChangeEnvironment));
        let line = |error: &Finding| {
            let text = hook(&report(vec![error.clone()]), None, &[], Some("-e"), true);
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert!(line(&error).contains("Give it one. For work on the CPU set V=void. To start"), "{}", line(&error));
        error.message = "m".repeat(FIRST_LINE);
        assert!(!line(&error).contains("CPU"));
        error.message.truncate(10);
        error.remedy[1] = set(Action::Reboot);
        assert!(!line(&error).contains("CPU"));
    }

    #[test]
    fn the_command_of_the_step_is_there_to_be_copied() {
        let mut error = error("uvm-major-mismatch", "stale", "Make it anew.");
        error.remedy[0].command = Some("nvidia-ctk cdi generate".to_owned());
        let lines = |error: &Finding| {
            let text = hook(&report(vec![error.clone()]), None, &[], Some("-e"), true);
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let short = lines(&error);
        assert!(short[0].contains(": stale. Make it anew (nvidia-ctk cdi generate). To start"), "{short:?}");
        assert_eq!(short.len(), 1);
        error.message = "m".repeat(FIRST_LINE - 150);
        let long = lines(&error);
        assert!(long[0].contains("m. Make it anew. To start") && long[0].len() <= FIRST_LINE, "{long:?}");
        assert_eq!(long[1], "do: nvidia-ctk cdi generate");
    }

    #[test]
    fn the_override_is_set_in_the_words_of_who_started_the_container() {
        let of = |engine, scheduler| setting_by(&Container { engine, scheduler, ..Container::default() });
        assert_eq!(of(EngineName::Docker, None), "-e");
        assert_eq!(of(EngineName::Containerd, None), "--env");
        assert_eq!(of(EngineName::Containerd, Some(Scheduler::Kubernetes)), "in the container's env");
        let text = hook(&report(vec![error("a", "b", "c.")]), None, &[], Some("in the container's env"), true);
        assert!(text.ends_with("To start anyway: in the container's env GPU_PREFLIGHT_IGNORE=a.\n"), "{text}");
    }

    #[test]
    fn the_other_ways_out_stand_on_a_line_of_their_own() {
        let mut error = error("framework-cuda-newer-than-driver", "too new", "Install driver 2.");
        let way = |text: &str| Remedy { action: Action::ChangeImage, text: text.to_owned(), command: None };
        error.remedy.extend([way("Use an older image."), way("Add compat.")]);
        let text = hook(&report(vec![error.clone()]), None, &[], Some("-e"), true);
        assert_eq!(text.lines().nth(1), Some("or: Use an older image. Add compat."), "{text}");
        let two = hook(&report(vec![error.clone(), error]), None, &[], Some("-e"), true);
        assert!(!two.contains("or: "), "{two}");
    }

    #[test]
    fn one_error_is_one_complete_line() {
        let line = hook(
            &report(vec![error("uvm-node-missing", "/dev/nvidia-uvm is absent", "Load nvidia_uvm.")]),
            None,
            &[],
            Some("-e"),
            true,
        );
        assert_eq!(
            line,
            "gpu-preflight: start refused [uvm-node-missing]: /dev/nvidia-uvm is absent. Load nvidia_uvm. To start anyway: -e GPU_PREFLIGHT_IGNORE=uvm-node-missing.\n"
        );
    }

    #[test]
    fn long_messages_leave_room_for_the_way_out_and_the_override() {
        let line = hook(
            &report(vec![error("uvm-node-missing", &"m".repeat(1000), &"r".repeat(1000))]),
            None,
            &[],
            Some("-e"),
            true,
        );
        assert!(line.trim_end().len() <= FIRST_LINE, "{}", line.len());
        assert!(
            line.contains("mmm...")
                && line.contains("rrr...")
                && line.ends_with("GPU_PREFLIGHT_IGNORE=uvm-node-missing.\n")
        );
    }

    #[test]
    fn further_errors_are_named_and_all_of_it_stays_small() {
        let many = (0..50).map(|_| error("uvm-node-missing", &"x\u{e9}".repeat(2000), "y.")).collect();
        let text = hook(&report(many), None, &[], None, true);
        assert!(text.len() <= ALL + 1);
        assert_eq!(text.lines().count(), 1 + FURTHER);
        assert!(text.contains("switched off"));
    }

    #[test]
    fn of_several_errors_none_is_said_to_be_all_that_stands_in_the_way() {
        let two = vec![error("uvm-module-not-loaded", "a", "b."), error("uvm-node-missing", "c", "d.")];
        let text = hook(&report(two), None, &["/etc/x.toml does not count: it is broken".to_owned()], Some("-e"), true);
        assert!(text.lines().next().is_some_and(|line| line.ends_with("-e GPU_PREFLIGHT=warn.")), "{text}");
        assert!(text.ends_with("\nnote: /etc/x.toml does not count: it is broken\n"), "{text}");
    }

    #[test]
    fn no_phrase_gets_out_whatever_is_quoted() {
        for phrase in FORBIDDEN {
            let text = hook(&report(vec![error("a", &phrase.to_uppercase(), phrase)]), None, &[], Some("-e"), false);
            assert!(!text.to_lowercase().contains(phrase), "{text}");
            assert!(text.contains("would be refused (mode warn)"));
        }
    }

    #[test]
    fn an_unknown_that_refuses_says_what_was_not_seen() {
        let unknown = Unjudged {
            check: "gpu-node-missing",
            family: Family::Nodes,
            could_be_error: true,
            fact: "container.devices".into(),
            source: "/proc/7/root".into(),
            reason: "late".into(),
        };
        let text = hook(&report(Vec::new()), Some(&unknown), &[], Some("-e"), true);
        assert!(
            text.starts_with("gpu-preflight: start refused [gpu-node-missing]: container.devices could not be seen"),
            "{text}"
        );
    }
}
