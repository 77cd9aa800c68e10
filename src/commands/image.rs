//! `gpu-preflight image`: judges an image before it is deployed.

use crate::checks;
use crate::cli::{self, Common};
use crate::collect::container;
use crate::collect::host::{self, Options, Scope};
use crate::collect::image;
use crate::collect::image::source::{self, Depth, Reference, Wish};
use crate::commands::output::{Failed, finish};
use crate::commands::setting;
use crate::knowledge::answer;
use crate::model::{Facts, Place, Report, Verdict};
use crate::policy;
use crate::report::json::Subjects;

/// Reads, judges, prints.
pub(crate) fn run(asked: &cli::Image, common: &Common) -> Result<u8, Failed> {
    let files = setting::host_tree(common)?;
    let policy = setting::policy(common, &files)?;
    let knowledge = setting::knowledge(&files);
    let options =
        Options { laid_out: common.host_root.is_some(), driver_root: common.driver_root.clone(), scope: Scope::Full };
    let host = host::read(&files, &options);
    let depth = match asked.depth {
        cli::Depth::Config => Depth::Config,
        cli::Depth::Files => Depth::Files,
    };
    let wish = Wish { depth, architecture: "amd64".to_owned() };
    let found = source::find(&Reference::parse(&asked.reference), &wish).map_err(|failed| {
        Failed::new(
            &asked.reference,
            failed.to_string(),
            "name an image that is there, as gpu-preflight image --help says",
        )
    })?;
    let mut image = image::examine(&found);
    answer::tell(&mut image, &found.configuration.environment, &knowledge);
    let container = container::of_image(&found.configuration, &host);
    let facts = Facts { host: &host, image: &image, container: &container, knowledge: &knowledge, place: Place::Image };
    let report = policy::report(&policy, Some(&container), &common.ignore, checks::judge(&facts));
    let subjects = Subjects { host: Some(&host), image: Some(&image), container: None };
    finish("image", &asked.reference, &headline(&found.source, &report), &report, subjects, common)
}

fn headline(source: &str, report: &Report) -> String {
    let answer = match report.verdict {
        Verdict::Fail => "it will not work here",
        Verdict::Unknown => "some of it could not be judged",
        Verdict::Pass | Verdict::Skip => "it suits this machine",
    };
    format!("{answer} (read from {source}){}", setting::besides(report))
}
