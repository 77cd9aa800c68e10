//! `status`: engine by engine, whether a container that wants a GPU would be checked.

use std::fmt::Write as _;

use crate::model::host::{Daemon, EntryWay, RegisteredEngine, Registration};
use crate::model::wording::quote;

/// By what an engine would give a container a GPU, in words; none: by nothing. The error is why nobody can tell.
pub type Ways = Result<Vec<&'static str>, String>;

/// One line for each engine, one for its way to a GPU. `ways`: in the order of the registration's engines.
pub fn engines(registration: &Registration, ways: &[Ways]) -> String {
    let mut out = String::new();
    for (engine, ways) in registration.engines.iter().zip(ways) {
        let name = engine.engine.name();
        let _ = writeln!(out, "    {name:<12}{}", checked(engine));
        let gpu = match ways {
            Ok(ways) if ways.is_empty() => "by nothing that is set up here".to_owned(),
            Ok(ways) => format!("by {}", ways.join(", or ")),
            Err(reason) => format!("how could not be told ({reason})"),
        };
        let _ = writeln!(out, "    {:<12}it would get its GPU {gpu}", "");
    }
    out
}

fn checked(engine: &RegisteredEngine) -> String {
    match engine.passes() {
        Some(entry) => {
            let how = match entry.way {
                EntryWay::DefaultRuntime => "by its default runtime",
                EntryWay::HooksDirectory => "by its hooks directory",
                EntryWay::BehindNvidia => "behind NVIDIA's runtime, its default",
                EntryWay::NamedRuntime => "where it is named",
            };
            let daemon = match &engine.daemon {
                Daemon::Unknown(reason) => format!("; whether it has read that: {reason}"),
                _ => String::new(),
            };
            format!("checked {how} ({}){daemon}", quote(&entry.file))
        }
        None if engine.entries.is_empty() => "not checked".to_owned(),
        None => "not checked, though registered".to_owned(),
    }
}

/// How many of the engines check.
pub fn headline(registration: &Registration) -> String {
    let all = registration.engines.len();
    let checked = registration.engines.iter().filter(|engine| engine.passes().is_some()).count();
    match (checked, all) {
        (_, 0) => "no container engine is on this machine".to_owned(),
        (0, _) => "no GPU container is checked before it starts".to_owned(),
        (checked, all) if checked == all => "GPU containers are checked before they start".to_owned(),
        (checked, all) => format!("GPU containers of {checked} of {all} engines are checked before they start"),
    }
}
