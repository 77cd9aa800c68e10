//! How this machine calls our hook.

use serde::Serialize;

use super::EngineKind;

/// Registrations of the hook, and the program that they name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Registration {
    /// The static program where `install` puts it.
    pub program: OwnProgram,
    /// Each installed engine.
    pub engines: Vec<RegisteredEngine>,
    /// Files that `install` wrote and that name our program no more.
    pub overwritten: Vec<String>,
    /// Users whose rootless docker runs here with a configuration of its own that does not name ours, by their files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rootless: Vec<String>,
    /// The policy's mode, where it is not to refuse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowered: Option<&'static str>,
    /// Seconds that the policy lets the hook wait for the driver.
    #[serde(skip)]
    pub wait: u64,
}

/// The static program's file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnProgram {
    /// Not there.
    #[default]
    Absent,
    /// Root's, static.
    Sound,
    /// There, and not to be trusted: why.
    Unsound(String),
}

/// An engine, and what it would call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegisteredEngine {
    /// Which.
    pub engine: EngineKind,
    /// What of its configuration names our program.
    pub entries: Vec<Entry>,
    /// What the running daemon knows of it.
    pub daemon: Daemon,
    /// Our default runtime is registered, and NVIDIA's beside it, which does not call ours.
    pub passed_by: Option<String>,
    /// A file of its configuration that could not be read: what it registers nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// One registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// How it leads to the hook.
    pub way: EntryWay,
    /// The file that says so.
    pub file: String,
    /// The program that it names.
    pub program: String,
    /// That program is there.
    pub there: bool,
    /// The engine looks into the file's directory, and no other file masks it.
    pub searched: bool,
    /// A file of a hooks directory that calls it for every container (`always`, a stage, a version that engines know).
    pub called: bool,
    /// Seconds after which the hook is killed, where the registration says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// How a registration leads to the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryWay {
    /// The runtime of every container that names no other.
    DefaultRuntime,
    /// A runtime that a container must name.
    NamedRuntime,
    /// A file of a hooks directory.
    HooksDirectory,
    /// NVIDIA's runtime, the engine's default, calls ours.
    BehindNvidia,
}

/// What the running daemon knows of the registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Daemon {
    /// It has none that could be behind its files.
    None,
    /// It does not run, and reads its files when it starts.
    Down,
    /// Nobody may ask it, or it did not answer: why.
    Unknown(String),
    /// It runs with what its files say.
    Current,
    /// It says itself that it does not know our runtime, or has another default.
    Unaware(String),
    /// It calls our runtime by default, and its file does not name that any more: it was reloaded, not restarted.
    Lingers {
        /// The program that it calls is there.
        there: bool,
    },
    /// Its default runtime has our name still, and that leads past our program: what it starts remembers the name.
    KeepsName,
    /// It was started before its file was last changed; whether it was reloaded since nobody can see.
    Older(String),
}

impl RegisteredEngine {
    /// A container that it starts now, naming no runtime, passes through the hook.
    pub fn checks_now(&self) -> bool {
        self.daemon == Daemon::Lingers { there: true } || self.passes().is_some()
    }

    /// The entry by which a container that names no runtime passes through the hook, if it does.
    pub fn passes(&self) -> Option<&Entry> {
        if matches!(self.daemon, Daemon::Unaware(_) | Daemon::Older(_)) {
            return None;
        }
        self.entries
            .iter()
            .find(|entry| entry.there && entry.searched && entry.called && entry.way != EntryWay::NamedRuntime)
    }
}
