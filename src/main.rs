//! The command line program: parse, start logging, call one command, turn its result into an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_preflight::commands::main(std::env::args_os())
}
