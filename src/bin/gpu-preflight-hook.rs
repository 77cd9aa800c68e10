//! The static program. Its name says what it is: `gpu-preflight-runtime` is an OCI runtime, any other
//! name the OCI hook.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use gpu_preflight::commands::hook;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| OsString::from("gpu-preflight-hook"));
    if Path::new(&name).file_name().is_some_and(|n| n == "gpu-preflight-runtime") {
        return gpu_preflight::commands::runtime::main(args);
    }
    hook::process::harden();
    ExitCode::from(hook::run(args))
}
