//! `status`: engine by engine, whether a container that wants a GPU would be checked.

use std::fmt::Write as _;

use crate::model::Verdict;
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
                Daemon::Down => " once it runs".to_owned(),
                Daemon::Unknown(reason) => format!("; whether the one that runs has read that is unknown ({reason})"),
                _ => String::new(),
            };
            format!("checked {how} ({}){daemon}", quote(&entry.file))
        }
        None if engine.checks_now() => "checked still, until it is restarted".to_owned(),
        None if engine.unread.is_some() => {
            "whether it is checked could not be told: its configuration is unread".to_owned()
        }
        None if engine.entries.is_empty() => "not checked".to_owned(),
        None => "not checked, though registered".to_owned(),
    }
}

/// How many of the engines check, and how that fits the verdict: where something is wrong, that comes first. `counts`:
/// findings by number, errors first.
pub fn headline(registration: &Registration, verdict: Verdict, counts: &str) -> String {
    let all = registration.engines.len();
    let checked = registration.engines.iter().filter(|engine| engine.checks_now()).count();
    let state = match (checked, all) {
        (_, 0) => "no container engine is on this machine".to_owned(),
        (0, _) => "no GPU container is checked before it starts".to_owned(),
        (checked, all) if checked == all => "GPU containers are checked before they start".to_owned(),
        (checked, all) => format!("GPU containers of {checked} of {all} engines are checked before they start"),
    };
    let besides = if counts.is_empty() { String::new() } else { format!(", {counts}") };
    match verdict {
        Verdict::Fail => format!("{counts}: {state}"),
        Verdict::Pass if checked < all => format!("nothing is broken, but {state}{besides}"),
        _ => format!("{state}{besides}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::host::{EngineKind, Entry};

    fn engine(entries: &[EntryWay], daemon: Daemon) -> RegisteredEngine {
        let entry = |way: &EntryWay| Entry {
            way: *way,
            file: "/f".into(),
            program: "/p".into(),
            there: true,
            searched: true,
            called: true,
            timeout: None,
        };
        let entries = entries.iter().map(entry).collect();
        RegisteredEngine { engine: EngineKind::Docker, entries, daemon, passed_by: None, unread: None }
    }

    #[test]
    fn the_headline_fits_the_verdict() {
        let registration = |engines: Vec<RegisteredEngine>| Registration { engines, ..Registration::default() };
        let bare = registration(vec![engine(&[], Daemon::None)]);
        assert_eq!(
            headline(&bare, Verdict::Pass, "1 warning"),
            "nothing is broken, but no GPU container is checked before it starts, 1 warning"
        );
        assert_eq!(
            headline(&bare, Verdict::Fail, "1 error, 1 warning"),
            "1 error, 1 warning: no GPU container is checked before it starts"
        );
        let all = registration(vec![engine(&[EntryWay::DefaultRuntime], Daemon::Current)]);
        assert_eq!(headline(&all, Verdict::Pass, ""), "GPU containers are checked before they start");
        let none = registration(Vec::new());
        assert_eq!(headline(&none, Verdict::Pass, ""), "no container engine is on this machine");
    }

    #[test]
    fn each_state_of_a_daemon_has_its_words() {
        let default = &[EntryWay::DefaultRuntime][..];
        for (engine, words) in [
            (engine(default, Daemon::Down), "checked by its default runtime (\"/f\") once it runs"),
            (engine(&[], Daemon::Lingers { there: true }), "checked still, until it is restarted"),
            (engine(&[], Daemon::Lingers { there: false }), "not checked"),
            (engine(default, Daemon::Unaware(String::new())), "not checked, though registered"),
            (
                RegisteredEngine { unread: Some(String::new()), ..engine(&[], Daemon::None) },
                "whether it is checked could not be told: its configuration is unread",
            ),
        ] {
            assert_eq!(checked(&engine), words);
        }
    }
}
