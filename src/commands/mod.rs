//! One file a command. They wire collectors, checks, policy and report together, and know all.

pub mod healthcheck;
pub mod hook;
pub mod runtime;

#[cfg(feature = "cli")]
mod catalogue;
#[cfg(feature = "cli")]
mod checks;
#[cfg(feature = "cli")]
mod container;
#[cfg(feature = "cli")]
mod explain;
#[cfg(feature = "cli")]
mod host;
#[cfg(feature = "cli")]
mod image;
#[cfg(feature = "cli")]
mod install;
#[cfg(feature = "cli")]
mod output;
#[cfg(feature = "cli")]
mod saved;
#[cfg(feature = "cli")]
mod setting;
#[cfg(feature = "cli")]
mod status;
#[cfg(feature = "cli")]
mod verify;
#[cfg(feature = "cli")]
mod watch;

#[cfg(feature = "cli")]
pub use entry::main;

#[cfg(feature = "cli")]
mod entry {
    use std::ffi::{OsStr, OsString};
    use std::process::ExitCode;

    use clap::Parser;
    use clap::error::ErrorKind;

    use super::output::{self, Failed};
    use super::setting;
    use crate::cli::{Cli, Command, Format};
    use crate::report::operators::nagios;

    /// The command line program.
    pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
        let args: Vec<OsString> = args.into_iter().collect();
        // Its arguments are the hook's, not this program's, and its environment is no concern of its.
        if args.get(1).is_some_and(|command| command == "hook") {
            return tried(&args);
        }
        let cli = match Cli::try_parse_from(&args) {
            Ok(cli) => cli,
            Err(error) => return misused(&args, &error),
        };
        start_logging(cli.common.verbose);
        let (name, result) = match &cli.command {
            Command::Hook { .. } => return tried(&args),
            Command::Healthcheck(asked) => ("healthcheck", Ok(super::healthcheck::run(asked, &cli.common))),
            Command::Host(asked) => ("host", super::host::run(asked, &cli.common)),
            Command::Container { target } => ("container", super::container::run(target, &cli.common)),
            Command::Image(asked) => ("image", super::image::run(asked, &cli.common)),
            Command::Explain(asked) => ("explain", super::explain::run(asked, &cli.common)),
            Command::Install(asked) => ("install", super::install::install(asked, &cli.common)),
            Command::Uninstall(asked) => ("uninstall", super::install::uninstall(asked, &cli.common)),
            Command::Status(asked) => ("status", super::status::run(asked, &cli.common)),
            Command::Checks { id } => ("checks", super::checks::run(id.as_deref(), &cli.common)),
        };
        match result {
            Ok(code) => ExitCode::from(code),
            Err(failed) => failure(name, cli.common.format, &failed),
        }
    }

    /// The hook, by hand: who asks what it is gets an answer, which no engine waits for.
    fn tried(args: &[OsString]) -> ExitCode {
        let mut own = args.iter().skip_while(|arg| *arg != "hook").skip(1);
        if own.any(|arg| arg == "--help" || arg == "-h") {
            use clap::CommandFactory as _;
            let mut cli = Cli::command();
            let help =
                cli.find_subcommand_mut("hook").map(|hook| hook.render_long_help().to_string()).unwrap_or_default();
            output::print(help.trim_end());
            return ExitCode::SUCCESS;
        }
        let own = args.iter().skip_while(|arg| *arg != "hook").skip(1);
        ExitCode::from(super::hook::tried(own.cloned()))
    }

    fn failure(command: &str, format: Format, failed: &Failed) -> ExitCode {
        let Failed { what, reason, way_out } = failed;
        match format {
            Format::Json => output::print(&crate::report::json::error(command, what, reason, way_out)),
            // who calls a plugin reads its standard output, and takes 2 for CRITICAL
            Format::Nagios => {
                output::print(&nagios::unjudged(what, reason, way_out));
                return ExitCode::from(nagios::UNJUDGED);
            }
            _ => output::complain(&format!("gpu-preflight: {what}: {reason}\n  try: {way_out}")),
        }
        ExitCode::from(unjudged(command))
    }

    /// The code of what could not be judged at all; engines know two of a health check.
    fn unjudged(command: &str) -> u8 {
        if command == "healthcheck" { 1 } else { 2 }
    }

    /// Usage is wrong, or help was asked for.
    fn misused(args: &[OsString], error: &clap::Error) -> ExitCode {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        let named = args.windows(2).filter(|pair| pair[0] == "--format").map(|pair| pair[1].as_os_str());
        let joined = args.iter().filter_map(|arg| arg.to_str()?.strip_prefix("--format=")).map(OsStr::new);
        let twin = setting::environment().remove("GPU_PREFLIGHT_FORMAT").unwrap_or_default();
        let format = named.chain(joined).next().unwrap_or(OsStr::new(&twin));
        let format = [("json", Format::Json), ("nagios", Format::Nagios)].into_iter().find(|(name, _)| format == *name);
        if let Some((_, format)) = format {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let command = args.get(1).and_then(|a| a.to_str()).unwrap_or_default();
            return failure(command, format, &Failed::new("command line", reason, "gpu-preflight --help"));
        }
        let _ = error.print();
        let is_healthcheck = args.iter().any(|arg| arg == "healthcheck");
        ExitCode::from(unjudged(if is_healthcheck { "healthcheck" } else { "" }))
    }

    fn start_logging(verbose: bool) {
        let level = if verbose { log::LevelFilter::Debug } else { log::LevelFilter::Warn };
        let _ = env_logger::Builder::new().filter_level(level).format_timestamp(None).format_target(false).try_init();
    }
}
