//! How runtimes read options.
//!
//! Every runtime has its own parser. This grammar reads what runc (Go's `flag`: `-bundle X`, `--bundle=X`),
//! crun (argp: `-bX`, `--bund X`) and youki (clap: `-b=X`) accept, and where they differ the reading that
//! is of use to a container.

use std::ffi::OsStr;

/// The options of one place on the command line.
pub(super) struct Grammar {
    /// Long options with a value.
    values: &'static [&'static str],
    /// Long options without.
    flags: &'static [&'static str],
    /// One-letter options with a value, each with its long name. All other letters are flags.
    letters: &'static [(u8, &'static str)],
}

/// Before the subcommand. Sources: `--help` of runc 1.1.5 and crun 1.8.1; crun `src/crun.c` at 0138c64f,
/// youki `crates/liboci-cli/src/lib.rs` at 3d1fab2c and `crates/youki/src/observability.rs` at 1923865e.
pub(super) const GLOBAL: Grammar = Grammar {
    values: &["log", "log-format", "log-level", "root", "criu", "rootless", "cgroup-manager"],
    flags: &["debug", "systemd-cgroup", "systemd-log", "help", "version", "usage"],
    letters: &[(b'l', "log"), (b'r', "root")],
};

/// After `create` and `run`. `config` is crun's (`src/create.c` at 044c89d2), `user-log` gVisor's.
pub(super) const CREATE: Grammar = Grammar {
    values: &["bundle", "config", "console-socket", "pid-file", "preserve-fds", "user-log"],
    flags: &["detach", "keep", "no-subreaper", "no-pivot", "no-new-keyring", "help", "usage"],
    letters: &[(b'b', "bundle"), (b'f', "config"), (b'c', "console-socket"), (b'p', "pid-file")],
};

/// The subcommands of runc, crun and youki: where an option that is not in [`GLOBAL`] stands before a word,
/// the word is its value unless it is one of these.
const SUBCOMMANDS: [&str; 23] = [
    "checkpoint",
    "completion",
    "create",
    "delete",
    "events",
    "exec",
    "features",
    "h",
    "help",
    "info",
    "init",
    "kill",
    "list",
    "mounts",
    "pause",
    "ps",
    "restore",
    "resume",
    "run",
    "spec",
    "start",
    "state",
    "update",
];

/// Whether a word names a subcommand.
pub fn is_subcommand(word: &OsStr) -> bool {
    SUBCOMMANDS.iter().any(|name| word == *name)
}

/// How one argument reads.
pub(super) enum Read<'a> {
    /// Not an option.
    Word,
    /// `--`.
    End,
    /// An option without a value, or with one that is of no interest.
    Flag,
    /// A long option of another version.
    Unknown,
    /// An option and its value.
    Inline(&'static str, &'a [u8]),
    /// An option whose value is the next argument.
    Next(&'static str),
}

impl Grammar {
    /// How one argument reads.
    pub(super) fn read<'a>(&self, argument: &'a [u8]) -> Read<'a> {
        match argument {
            b"--" => Read::End,
            [b'-', b'-', long @ ..] => self.long(long),
            [b'-', body @ ..] if !body.is_empty() => {
                let (name, _) = split(body);
                // Go's parser makes no difference between one dash and two
                if self.values.iter().chain(self.flags).any(|known| known.as_bytes() == name) {
                    self.long(body)
                } else {
                    self.letters(body)
                }
            }
            _ => Read::Word,
        }
    }

    fn long<'a>(&self, body: &'a [u8]) -> Read<'a> {
        let (name, value) = split(body);
        match (self.named(name, self.values), value) {
            (Some(name), Some(value)) => Read::Inline(name, value),
            (Some(name), None) => Read::Next(name),
            (None, Some(_)) => Read::Flag,
            (None, None) if self.named(name, self.flags).is_some() => Read::Flag,
            (None, None) => Read::Unknown,
        }
    }

    /// Letters may stand together behind one dash; the first that takes a value takes the rest.
    fn letters<'a>(&self, body: &'a [u8]) -> Read<'a> {
        for (at, letter) in body.iter().enumerate() {
            if let Some((_, name)) = self.letters.iter().find(|(known, _)| known == letter) {
                let value = body.get(at + 1..).unwrap_or_default();
                return match value {
                    [] => Read::Next(name),
                    [b'=', value @ ..] | value => Read::Inline(name, value),
                };
            }
        }
        Read::Flag
    }

    /// The long option of this name among `candidates`, or the only one of all that begins so (argp).
    fn named(&self, name: &[u8], candidates: &'static [&'static str]) -> Option<&'static str> {
        if let Some(exact) = candidates.iter().find(|known| known.as_bytes() == name) {
            return Some(exact);
        }
        let mut begun = self.values.iter().chain(self.flags).filter(|known| known.as_bytes().starts_with(name));
        match (name, begun.next(), begun.next()) {
            ([_, ..], Some(only), None) if candidates.contains(only) => Some(only),
            _ => None,
        }
    }
}

/// An option's name, and what stands behind the first `=`.
pub(super) fn split(option: &[u8]) -> (&[u8], Option<&[u8]>) {
    match option.iter().position(|byte| *byte == b'=') {
        Some(at) => (option.get(..at).unwrap_or_default(), option.get(at + 1..)),
        None => (option, None),
    }
}
