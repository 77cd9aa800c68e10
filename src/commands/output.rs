//! The one place that prints, and what every command ends with.

use std::io::Write;

use anstream::{AutoStream, ColorChoice};

use crate::checks;
use crate::cli::{Color, Common, FailOn, Format};
use crate::model::Severity;
use crate::policy;
use crate::report::answer::Answer;
use crate::report::json;
use crate::report::junit::Failing;
use crate::report::text::Detail;
use crate::report::{junit, sarif};

/// A command could not judge at all.
#[derive(Debug)]
pub(crate) struct Failed {
    /// What it was about: the target, a file.
    pub(crate) what: String,
    /// Why not.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) way_out: String,
}

impl Failed {
    pub(crate) fn new(what: impl Into<String>, reason: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self { what: what.into(), reason: reason.into(), way_out: way_out.into() }
    }
}

/// Prints the report on one host as the options say and returns the exit code.
pub(crate) fn finish(
    command: &str,
    target: &str,
    headline: &str,
    answer: Answer<'_>,
    common: &Common,
) -> Result<u8, Failed> {
    let text = |detail| crate::report::text::report(headline, answer.report, detail);
    conclude(command, target, &[answer], &text, common)
}

/// Prints the reports on one host or several as the options say and returns the exit code: the worst of them.
pub(crate) fn conclude(
    command: &str,
    target: &str,
    answers: &[Answer<'_>],
    text: &dyn Fn(Detail) -> String,
    common: &Common,
) -> Result<u8, Failed> {
    deliver(&rendered(command, target, answers, text, common)?, common);
    Ok(exit_code(answers, common))
}

/// The reports as the options say; those for people with escape sequences for colour, and of any width.
pub(crate) fn rendered(
    command: &str,
    target: &str,
    answers: &[Answer<'_>],
    text: &dyn Fn(Detail) -> String,
    common: &Common,
) -> Result<String, Failed> {
    Ok(match common.format {
        Format::Json => {
            let text = match answers {
                [answer] => json::report(command, target, answer),
                answers => json::matrix(command, target, answers),
            };
            text.map_err(|error| Failed::new(target, error.to_string(), "report this as a bug"))?
        }
        Format::Text => text(detail(common)).trim_end().to_owned(),
        Format::Sarif => sarif::log(command, target, answers, checks::all()),
        Format::Junit => junit::document(command, target, answers, failing(common)),
        Format::Nagios | Format::Prometheus | Format::Nfd => return Err(only_for_host(command)),
    })
}

/// Prints what was rendered.
pub(crate) fn deliver(text: &str, common: &Common) {
    match common.format {
        Format::Text => styled(&crate::report::text::wrapped(text, width()), common),
        _ => print(text),
    }
}

/// The worst of them.
pub(crate) fn exit_code(answers: &[Answer<'_>], common: &Common) -> u8 {
    let code = |answer: &Answer<'_>| policy::exit_code(answer.report, fail_on(common));
    answers.iter().map(code).max().unwrap_or_default()
}

fn only_for_host(command: &str) -> Failed {
    Failed::new(
        format!("{command} --format"),
        "nagios, prometheus and nfd are for host, which judges a machine",
        "--format text or --format json",
    )
}

/// A command that does not judge a machine says so before it looks at anything.
pub(crate) fn is_of_no_machine(command: &str, common: &Common) -> Result<(), Failed> {
    match common.format {
        Format::Nagios | Format::Prometheus | Format::Nfd => Err(only_for_host(command)),
        Format::Text | Format::Json | Format::Sarif | Format::Junit => Ok(()),
    }
}

/// A command that has no report to print in the formats of pipelines says so.
pub(crate) fn has_no_report(command: &str, common: &Common) -> Result<(), Failed> {
    match common.format {
        Format::Text | Format::Json => Ok(()),
        Format::Nagios | Format::Prometheus | Format::Nfd => Err(only_for_host(command)),
        Format::Sarif | Format::Junit => Err(Failed::new(
            format!("{command} --format"),
            "SARIF and JUnit are for host, container and image, which judge something",
            "--format text or --format json",
        )),
    }
}

fn failing(common: &Common) -> Failing {
    Failing {
        from: match common.fail_on {
            FailOn::Error | FailOn::Unknown => Some(Severity::Error),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Never => None,
        },
        unknown: common.fail_on == FailOn::Unknown,
    }
}

/// Of the terminal; what is piped is not wrapped.
pub(crate) fn width() -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns).max(40))
}

pub(crate) fn detail(common: &Common) -> Detail {
    match (common.quiet, common.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Usual,
    }
}

fn fail_on(common: &Common) -> policy::FailOn {
    match common.fail_on {
        FailOn::Error => policy::FailOn::Error,
        FailOn::Warning => policy::FailOn::Warning,
        FailOn::Unknown => policy::FailOn::Unknown,
        FailOn::Never => policy::FailOn::Never,
    }
}

/// Prints a line or text on standard output. A reader that is gone is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
}

/// Prints text with colours, where they are wanted.
pub(crate) fn styled(text: &str, common: &Common) {
    let choice = match common.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    let mut out = AutoStream::new(std::io::stdout(), choice).lock();
    let _ = writeln!(out, "{text}");
}

/// Prints a line on standard error.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
