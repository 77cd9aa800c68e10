//! The answer in words: what a person who waits for a deployment wants to know, first.

use std::fmt::Write as _;

use crate::commands::setting;
use crate::model::observed::NOT_STATED;
use crate::model::{Host, Image, Report, Severity, Verdict};
use crate::report::answer::{Answer, worst};
use crate::report::image::About;
use crate::report::text::Detail;
use crate::report::{image, machine, matrix, text};

/// The whole text.
pub(super) fn text(answers: &[Answer<'_>], detail: Detail) -> String {
    let Some(first) = answers.first() else { return String::new() };
    let (Some(of_image), Some(about)) = (first.subjects.image, first.subjects.about) else { return String::new() };
    let mut facts = image::facts(of_image, about, detail);
    if answers.len() > 1 {
        return matrix::report(&for_all(answers), &facts, answers, detail);
    }
    if let Some(host) = first.subjects.host {
        let _ = writeln!(facts, "    {}", judged_for(first.host, host));
    }
    text::report_with(&for_one(first, of_image, about), &facts, first.report, detail)
}

fn judged_for(name: &str, host: &Host) -> String {
    let whose = if host.is_stated() { "stated".to_owned() } else { text::shown(name) };
    format!("judged for  {whose}: driver {}, GPUs {}", machine::driver(host), machine::gpus(host))
}

fn for_one(answer: &Answer<'_>, image: &Image, about: &About) -> String {
    let Some(host) = answer.subjects.host else { return String::new() };
    let report = answer.report;
    let place = place(answer.host, host);
    let shallow = if about.depth == "config" { ", as far as its configuration tells" } else { "" };
    let warned = warns(report);
    let answer = match report.verdict {
        Verdict::Fail => {
            let title = report.first_error().map_or("", |error| error.title);
            format!("it will not work {place}: {title}")
        }
        Verdict::Unknown => {
            let open = report.unknown.iter().find(|unknown| unknown.could_be_error);
            let why = open.map(|open| format!(": {} ({})", text::shown(&open.reason), text::shown(&open.source)));
            format!("whether it works {place} could not be judged{}", why.unwrap_or_default())
        }
        Verdict::Skip => "it wants no GPU".to_owned(),
        Verdict::Pass if has_nothing_for_gpus(image, about) => "nothing in it needs a GPU".to_owned(),
        Verdict::Pass if host.is_target() == Ok(false) => {
            let whose = text::shown(answer.host);
            format!("{}, but {whose} has no GPU: name what it is for by --driver and --gpu", found(warned))
        }
        Verdict::Pass => format!("{} {place}{shallow}{}", found(warned), not_judged(host, image)),
    };
    format!("{answer}{}", setting::besides(report))
}

fn for_all(answers: &[Answer<'_>]) -> String {
    let count = |verdict: Verdict| answers.iter().filter(|answer| answer.report.verdict == verdict).count();
    let all = answers.len();
    let failing = count(Verdict::Fail);
    let warned = answers.iter().filter(|answer| warns(answer.report)).count();
    let besides = if warned == 0 { String::new() } else { format!(", with warnings on {warned}") };
    let answer = match worst(answers) {
        Verdict::Fail if failing == all => format!("it will not work on any of {all} hosts"),
        Verdict::Fail => format!("it will not work on {failing} of {all} hosts"),
        Verdict::Unknown => format!("on {} of {all} hosts something could not be judged", count(Verdict::Unknown)),
        Verdict::Pass => format!("{} on {all} hosts", found(warned > 0)),
        Verdict::Skip => "it wants no GPU".to_owned(),
    };
    format!("{answer}{besides}")
}

fn warns(report: &Report) -> bool {
    report.findings.iter().any(|finding| !finding.ignored && finding.severity == Severity::Warning)
}

/// A warning may be a failure that is only not certain: no code for the GPU, say.
fn found(warned: bool) -> &'static str {
    if warned { "no certain failure is found" } else { "nothing is found against it" }
}

/// `here`, `on hosts/a.json`, `with driver 535.183.01, H100`.
fn place(name: &str, host: &Host) -> String {
    match (host.is_stated(), host.laid_out || name != "this machine") {
        (true, _) => format!("with {name}"),
        (false, true) => format!("on {}", text::shown(name)),
        (false, false) => "here".to_owned(),
    }
}

fn has_nothing_for_gpus(image: &Image, about: &About) -> bool {
    about.depth == "files"
        && !about.asks_for_gpu
        && about.requirements.is_empty()
        && image.cuda.seen().is_some_and(Option::is_none)
        && image.frameworks.seen().is_some_and(|list| list.items.is_empty() && list.unread.is_empty())
        && image.runtimes.seen().is_some_and(|list| list.items.is_empty() && list.unread.is_empty())
}

/// What was left out when a machine was stated.
fn not_judged(host: &Host, image: &Image) -> String {
    let open = |unknown: Option<crate::model::Unknown>| unknown.is_some_and(|unknown| unknown.reason == NOT_STATED);
    match (open(host.driver.version.known().err()), open(host.gpus.known().err())) {
        (true, _) => match &image.answer.min_driver {
            Some(driver) => format!("; it needs driver {driver} or newer, and none was stated"),
            None => "; no driver was stated".to_owned(),
        },
        (_, true) => "; no GPU was stated to judge its code for".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::image::Framework;
    use crate::model::{Finding, Observed};
    use crate::report::json::Subjects;

    fn image() -> Image {
        let torch =
            r#"{"name": "torch", "version": "2.11.0", "build": "cuda", "cuda": "13.0", "source": "x", "sure": true}"#;
        let torch: Framework = serde_json::from_str(torch).unwrap();
        let mut image =
            Image { frameworks: Observed::Known(crate::model::Parts::whole(vec![torch])), ..Image::default() };
        image.answer.min_driver = Some("580.65.06".parse().unwrap());
        image
    }

    fn said(name: &str, host: &Host, image: &Image, depth: &'static str) -> String {
        said_of(name, host, image, &About { depth, ..About::default() })
    }

    fn said_of(name: &str, host: &Host, image: &Image, about: &About) -> String {
        let report = passed();
        let subjects = Subjects { host: Some(host), ..Subjects::default() };
        for_one(&Answer { host: name, report: &report, subjects }, image, about)
    }

    #[test]
    fn beside_warnings_the_headline_does_not_say_that_nothing_is_found() {
        let host = Host { laid_out: true, ..on_gpu() };
        let subjects = || Subjects { host: Some(&host), ..Subjects::default() };
        let report = Report { findings: vec![warning()], ..passed() };
        let answers = ["a.json", "b.json"].map(|host| Answer { host, report: &report, subjects: subjects() });
        let about = About { depth: "files", ..About::default() };
        let one = for_one(&answers[0], &image(), &about);
        assert_eq!(one, "no certain failure is found on a.json, 1 warning");
        assert_eq!(for_all(&answers), "no certain failure is found on 2 hosts, with warnings on 2");
        let ignored = Report { findings: vec![Finding { ignored: true, ..warning() }], ..passed() };
        let answer = Answer { host: "a.json", report: &ignored, subjects: subjects() };
        assert_eq!(for_one(&answer, &image(), &about), "nothing is found against it on a.json, 1 ignored");
    }

    fn passed() -> Report {
        Report { verdict: Verdict::Pass, findings: Vec::new(), unknown: Vec::new(), settled: Vec::new() }
    }

    fn warning() -> Finding {
        Finding {
            id: "framework-lacks-gpu-arch",
            severity: Severity::Warning,
            subject: crate::model::Family::Image,
            title: "a title",
            message: "a message".to_owned(),
            evidence: Vec::new(),
            remedy: Vec::new(),
            ignored: false,
        }
    }

    fn on_gpu() -> Host {
        let gpus = Observed::Known(vec![crate::model::host::Gpu::default()]);
        Host { gpus, ..Host::default() }
    }

    fn stated(driver: Option<&str>) -> Host {
        let mut host = Host::unseen("the command line", NOT_STATED);
        if let Some(driver) = driver {
            host.driver.version = Observed::Known(Some(driver.parse().unwrap()));
        }
        host
    }

    #[test]
    fn the_headline_says_for_which_machine_and_what_was_left_out() {
        let with_driver = stated(Some("580.95.05"));
        let no_gpu = "nothing is found against it with driver 580.95.05; no GPU was stated to judge its code for";
        assert_eq!(said("driver 580.95.05", &with_driver, &image(), "files"), no_gpu);
        let mut with_gpu = stated(None);
        with_gpu.gpus = Observed::Known(vec![crate::model::host::Gpu::default()]);
        let no_driver =
            "nothing is found against it with H100; it needs driver 580.65.06 or newer, and none was stated";
        assert_eq!(said("H100", &with_gpu, &image(), "files"), no_driver);
        let bare =
            "nothing is found against it, but this machine has no GPU: name what it is for by --driver and --gpu";
        assert_eq!(said("this machine", &Host::default(), &image(), "files"), bare);
        let mut here = on_gpu();
        assert_eq!(said("this machine", &here, &image(), "files"), "nothing is found against it here");
        assert!(said("this machine", &here, &image(), "config").ends_with("as far as its configuration tells"));
        here.laid_out = true;
        assert_eq!(said("a.json", &here, &image(), "files"), "nothing is found against it on a.json");
        assert_eq!(said("this machine", &here, &Image::default(), "files"), "nothing in it needs a GPU");
        let asks = About { depth: "files", asks_for_gpu: true, ..About::default() };
        assert_eq!(said_of("a.json", &here, &Image::default(), &asks), "nothing is found against it on a.json");
    }
}
