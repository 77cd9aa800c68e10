//! The one place that prints, and what every command ends with.

use std::io::Write;

use anstream::{AutoStream, ColorChoice};

use crate::cli::{Color, Common, FailOn, Format};
use crate::model::Report;
use crate::policy;
use crate::report::json::Subjects;
use crate::report::text::Detail;

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

/// Prints a report as the options say and returns the exit code.
pub(crate) fn finish(
    command: &str,
    target: &str,
    headline: &str,
    report: &Report,
    subjects: Subjects<'_>,
    common: &Common,
) -> Result<u8, Failed> {
    match common.format {
        Format::Json => {
            let text = crate::report::json::report(command, target, report, subjects)
                .map_err(|error| Failed::new(target, error.to_string(), "report this as a bug"))?;
            print(&text);
        }
        Format::Text => {
            let text = crate::report::text::report(headline, report, detail(common));
            styled(&crate::report::text::wrapped(text.trim_end(), width()), common);
        }
    }
    Ok(policy::exit_code(report, fail_on(common)))
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
