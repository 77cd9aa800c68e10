//! A small program that calls ours with arguments, for configurations that name a program and nothing else.

use super::{DIRECTORY, RUNTIME, Trouble};
use crate::model::own::WRAPPER;

/// The program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// Where it lies.
    pub path: String,
    /// A shell script, as dockerd writes for `runtimeArgs`.
    pub text: String,
}

/// A changed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The file's text.
    pub text: String,
    /// A program that has to be there besides.
    pub wrapper: Option<Wrapper>,
}

/// What to name so that ours calls `real`; `None`: what ours takes by itself. `whose` tells one wrapper from another.
pub(super) fn calling(real: Option<&str>, whose: &str) -> Result<(String, Option<Wrapper>), Trouble> {
    let Some(real) = real else { return Ok((RUNTIME.to_owned(), None)) };
    let is_plain =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b));
    if !is_plain(real) || !is_plain(whose) {
        return Err(Trouble::refused(
            format!("the runtime {real:?} has a name that no script can be trusted with"),
            "name it in /etc/gpu-preflight/config.toml: [runtime] path = [\"…\"]",
        ));
    }
    let path = format!("{DIRECTORY}/{WRAPPER}{}", whose.replace('/', "-"));
    let text = format!(
        "#!/bin/sh\n# Made by `gpu-preflight install`: the configuration that names this file has no place for arguments.\n\
         exec {RUNTIME} --runtime {real} \"$@\"\n"
    );
    Ok((path.clone(), Some(Wrapper { path, text })))
}
