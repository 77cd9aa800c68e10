//! The static program. For now only the runtime.

use std::process::ExitCode;

use gpu_preflight::runtime;

#[expect(clippy::disallowed_methods, reason = "the engine's PATH")]
fn main() -> ExitCode {
    let path = std::env::var_os("PATH");
    let caller = runtime::Caller {
        wants_or_has_gpu: &|spec| {
            let wish = b"\"NVIDIA_VISIBLE_DEVICES=all\"";
            spec.windows(wish.len()).any(|window| window == wish)
        },
        settings: &|_| runtime::Settings::default(),
        search_path: path.as_deref(),
    };
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    if std::path::Path::new(&name).file_name().is_some_and(|name| name == "gpu-preflight-runtime") {
        return ExitCode::from(runtime::main(arguments, &caller));
    }
    ExitCode::SUCCESS
}
