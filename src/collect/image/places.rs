//! Where frameworks and CUDA libraries lie in images.

use std::collections::BTreeMap;

use crate::collect::paths::clean;
use crate::model::Container;
use crate::model::container::{Given, Mount};

/// Directories of libraries; those of Python lie below some of them, virtual environments included.
const LIBRARIES: [&str; 10] = [
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/opt/conda/lib",
    "/opt/venv/lib",
    "/venv/lib",
    "/app/.venv/lib",
];
/// Directories of programs that bring their libraries along: llama.cpp's image has them in `/app`.
const PROGRAMS: [&str; 1] = ["/app"];
/// Where interpreters look that a container's configuration names: more than one of use has.
const MOST: usize = 24;
/// Words of a command line: launchers, and the program behind them.
const WORDS: usize = 8;
/// Of those, that are looked at as scripts; and directories of `PATH` that they are looked for in.
const SCRIPTS: usize = 3;
const PATHS: usize = 8;

/// What a container's configuration says of where its program lies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// Its environment.
    pub environment: Option<&'a BTreeMap<String, String>>,
    /// Its program and that one's arguments.
    pub args: &'a [String],
    /// Where it starts.
    pub working_directory: Option<&'a str>,
    /// What will be mounted over its root file system, and is not yet.
    pub mounts: &'a [Mount],
    /// NVIDIA's tools have brought the driver's files into it.
    pub injected: bool,
    /// Where frameworks lie, if somebody who knows all files has looked: then nothing is guessed.
    pub everywhere: Option<&'a Everywhere>,
}

/// Directories with frameworks, all there are.
#[derive(Debug, Clone, Default)]
pub struct Everywhere {
    /// With packages of Python.
    pub packages: Vec<String>,
    /// With programs that are no packages, and their libraries.
    pub programs: Vec<String>,
    /// With a libcuda that may be one for forward compatibility.
    pub libcuda: Vec<String>,
}

impl<'a> Hints<'a> {
    /// Of a container whose mounts are done.
    pub fn of(container: &'a Container) -> Self {
        let args = container.args.seen().map_or(&[][..], Vec::as_slice);
        let working_directory = container.working_directory.as_deref();
        let given = matches!(container.gpu_given.seen(), Some(Given::Cdi | Given::LegacyHook));
        let injected = given && !container.moment.is_foretold() && !container.legacy_still_to_run();
        Self { environment: container.environment.seen(), args, working_directory, injected, ..Self::default() }
    }

    /// Of a container that nobody has started.
    pub fn before_mounts(container: &'a Container) -> Self {
        let mounts = container.mounts.seen().map_or(&[][..], |mounts| &mounts.items);
        Self { mounts, ..Self::of(container) }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&'a str> {
        self.environment.and_then(|all| all.get(name)).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Directories of libraries, each once; and whether the configuration names no more than that.
    pub(super) fn libraries(&self) -> (Vec<String>, bool) {
        let mut found: Vec<String> = LIBRARIES.map(str::to_owned).to_vec();
        let (prefixes, whole) = self.prefixes();
        for prefix in prefixes {
            add(&mut found, format!("{prefix}/lib"));
        }
        (found, whole)
    }

    /// Where the first words of its command may lie that may be scripts: an absolute path, one from where it starts, or
    /// a name to be found by `PATH`. In a container that is about to start only a name that says it is one is looked
    /// for, since each place costs a look.
    pub(super) fn scripts(&self) -> Vec<String> {
        let start = self.working_directory.filter(|start| start.starts_with('/')).unwrap_or("/");
        let mut found = Vec::new();
        for word in self.args.iter().take(SCRIPTS).filter(|word| !word.is_empty() && !word.starts_with('-')) {
            if word.starts_with('/') {
                found.push(clean(word));
            } else if word.contains('/') {
                found.push(clean(&format!("{start}/{word}")));
            } else if self.everywhere.is_some() || word.strip_suffix(".sh").is_some() {
                let path = self.variable("PATH").unwrap_or_default().split(':').take(PATHS);
                found
                    .extend(path.filter(|entry| entry.starts_with('/')).map(|entry| clean(&format!("{entry}/{word}"))));
                // `bash run.sh`
                found.push(clean(&format!("{start}/{word}")));
            }
        }
        found
    }

    /// Directories that Python is told to look into for packages.
    pub(super) fn packages(&self) -> Vec<String> {
        let path = self.variable("PYTHONPATH").unwrap_or_default().split(':').take(MOST);
        path.filter(|directory| directory.starts_with('/')).map(clean).collect()
    }

    /// Where the container's interpreter and its packages may be installed, and whether that is all.
    fn prefixes(&self) -> (Vec<String>, bool) {
        let mut prefixes: Vec<String> = Vec::new();
        let mut keep = |prefix: &str| {
            if prefix.starts_with('/') {
                prefixes.push(clean(prefix).trim_end_matches('/').to_owned());
            }
        };
        // `/srv/env/bin/python` has its packages in `/srv/env/lib`, behind whatever launcher it stands
        for (directory, _) in self.args.iter().take(WORDS).filter_map(|program| program.rsplit_once('/')) {
            keep(directory.strip_suffix("/bin").unwrap_or_default());
        }
        // packages that a user installed, which come before the system's
        keep(&format!("{}/.local", self.variable("HOME").unwrap_or("/root").trim_end_matches('/')));
        for name in ["VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT"] {
            keep(self.variable(name).unwrap_or_default());
        }
        // what uv and poetry make where a project lies
        if let Some(directory) = self.working_directory.map(|directory| directory.trim_end_matches('/')) {
            for name in [".venv", "venv"] {
                keep(&format!("{directory}/{name}"));
            }
        }
        let mut path = self.variable("PATH").unwrap_or_default().split(':');
        path.by_ref().take(MOST).filter_map(|entry| entry.strip_suffix("/bin")).for_each(&mut keep);
        let whole = path.next().is_none() && prefixes.len() <= MOST;
        prefixes.truncate(MOST);
        (prefixes, whole)
    }

    /// Directories in which a program may have CUDA libraries of its own, each once.
    pub(super) fn programs(&self) -> Vec<String> {
        let mut found: Vec<String> = PROGRAMS.map(str::to_owned).to_vec();
        let program = self.args.first().filter(|program| program.starts_with('/')).map(|program| clean(program));
        if let Some((directory, _)) = program.as_deref().and_then(|program| program.rsplit_once('/')) {
            let is_of_all = matches!(directory, "" | "/bin" | "/sbin" | "/usr/bin" | "/usr/sbin" | "/usr/local/bin");
            if !is_of_all {
                add(&mut found, directory.to_owned());
            }
        }
        let path = self.variable("LD_LIBRARY_PATH").unwrap_or_default().split([':', ';']).take(MOST);
        for directory in path.filter(|directory| directory.starts_with('/')).map(clean) {
            add(&mut found, directory);
        }
        found
    }
}

fn add(found: &mut Vec<String>, path: String) {
    if !found.contains(&path) {
        found.push(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_further_places_once() {
        let environment: BTreeMap<String, String> = [
            ("PATH", "/opt/py/bin:/opt/conda/bin:/usr/bin:/sbin:relative/bin:/bin"),
            ("VIRTUAL_ENV", "/srv/env/"),
            ("LD_LIBRARY_PATH", "/opt/lib:/app/:lib"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let args = ["/srv/server/bin/run".to_owned(), "--port".to_owned()];
        let hints = Hints {
            environment: Some(&environment),
            args: &args,
            working_directory: Some("/project"),
            ..Hints::default()
        };
        let further: Vec<String> = hints.libraries().0.split_off(LIBRARIES.len());
        let expected = ["/srv/server", "/root/.local", "/srv/env", "/project/.venv", "/project/venv", "/opt/py"];
        assert_eq!(further, expected.map(|prefix| format!("{prefix}/lib")));
        assert_eq!(hints.programs(), ["/app", "/srv/server/bin", "/opt/lib"]);
        assert_eq!(Hints::default().libraries().0.len(), LIBRARIES.len() + 1);
    }

    #[test]
    fn the_commands_first_words_may_be_scripts_wherever_they_lie() {
        let environment = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:relative:/bin".to_owned())]);
        let args = ["docker-entrypoint.sh", "serve", "./run", "/last"].map(str::to_owned);
        let everywhere = Everywhere::default();
        let hints =
            Hints { environment: Some(&environment), args: &args, working_directory: Some("/app"), ..Hints::default() };
        let named = ["/usr/local/bin/docker-entrypoint.sh", "/bin/docker-entrypoint.sh", "/app/docker-entrypoint.sh"];
        assert_eq!(hints.scripts(), [&named[..], &["/app/run"]].concat());
        let of_image = Hints { everywhere: Some(&everywhere), ..hints };
        assert!(of_image.scripts().contains(&"/usr/local/bin/serve".to_owned()));
        let options = ["--x/y", "", "/a/../b"].map(str::to_owned);
        assert_eq!(Hints { args: &options, ..Hints::default() }.scripts(), ["/b"]);
    }

    #[test]
    fn lists_without_an_end_are_cut_before_they_are_looked_at() {
        let many = (0..200_000).map(|n| format!("/d{n}/bin")).collect::<Vec<_>>().join(":");
        let environment: BTreeMap<String, String> =
            ["PATH", "LD_LIBRARY_PATH"].map(|name| (name.to_owned(), many.clone())).into();
        let hints = Hints { environment: Some(&environment), ..Hints::default() };
        let (libraries, whole) = hints.libraries();
        assert!(libraries.len() <= LIBRARIES.len() + MOST && hints.programs().len() <= MOST + 2);
        assert!(!whole);
    }
}
