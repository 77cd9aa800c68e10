//! `gpu-preflight status`: is the hook registered, and would it be called?

use crate::checks::{self, stack::ways};
use crate::cli::{self, Common};
use crate::collect::host;
use crate::commands::output::{Failed, conclude, is_of_no_machine};
use crate::commands::setting;
use crate::model::host::Registration;
use crate::model::{Container, Facts, Family, Host, Image, Judged, Knowledge, Place};
use crate::policy::{self, Mode};
use crate::report::answer::Answer;
use crate::report::json::Subjects;
use crate::report::status::{self, Ways};
use crate::report::text;

mod last;

/// Looks at the registrations and judges them with the container stack around them, or shows the last refusals.
pub(crate) fn run(asked: &cli::Status, common: &Common) -> Result<u8, Failed> {
    if let Some(count) = asked.last {
        return last::run(usize::from(count), common);
    }
    is_of_no_machine("status", common)?;
    let files = setting::host_tree(common)?;
    let policy = setting::policy(common, &files)?;
    let knowledge = setting::knowledge(&files);
    let mut host = setting::machine(common, &files, &knowledge);
    let mut registration = host::registration(&files, &host, policy.wait_for_driver.as_secs());
    registration.lowered = (policy.mode != Mode::Enforce).then(|| policy.mode.name());
    host.registration = Some(registration);
    let report = policy::report(&policy, None, &common.ignore, judge(&host, &knowledge));
    let nothing = Registration::default();
    let registration = host.registration.as_ref().unwrap_or(&nothing);
    let headline = status::headline(registration, report.verdict, &setting::counts(&report));
    let lines = status::engines(registration, &of_engines(&host));

    let target = setting::name_of_machine(common);
    let subjects = Subjects { host: Some(&host), ..Subjects::default() };
    let answer = Answer { host: &target, report: &report, subjects };
    let text = |detail| text::report_with(&headline, &lines, &report, detail);
    conclude("status", &target, &[answer], &text, common)
}

/// The container stack as for `host`, and our own place in it.
fn judge(host: &Host, knowledge: &Knowledge) -> Vec<Judged> {
    let (image, container) = (Image::default(), Container::default());
    let at = |place| {
        let facts = Facts { host, image: &image, container: &container, knowledge, place };
        checks::judge(&facts)
    };
    let stack = at(Place::Host).into_iter().filter(|judged| judged.family == Family::Stack);
    stack.chain(at(Place::Status)).collect()
}

fn of_engines(host: &Host) -> Vec<Ways> {
    let of = |engine| ways::words(host, engine).map_err(|unknown| format!("{}: {}", unknown.source, unknown.reason));
    host.engines.iter().map(of).collect()
}
