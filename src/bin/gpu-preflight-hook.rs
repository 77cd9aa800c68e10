//! The static program. Its name says what it is: `gpu-preflight-runtime` is an OCI runtime, `gpu-preflight-healthcheck` a
//! container's health check, `gpu-preflight-hook` the OCI hook. Under another name it is what its arguments say: a runtime
//! is given a subcommand, a hook options alone.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use gpu_preflight::commands::hook;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| OsString::from("gpu-preflight-hook"));
    let name = Path::new(&name).file_name().unwrap_or_default();
    let args: Vec<OsString> = args.collect();
    if name == "gpu-preflight-healthcheck" {
        return gpu_preflight::commands::healthcheck::main(args);
    }
    let is_hook = name == "gpu-preflight-hook";
    if name == "gpu-preflight-runtime" || !is_hook && args.iter().any(|arg| gpu_preflight::runtime::is_subcommand(arg))
    {
        return gpu_preflight::commands::runtime::main(args);
    }
    hook::process::harden();
    ExitCode::from(hook::run(args))
}
