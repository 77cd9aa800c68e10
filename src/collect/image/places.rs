//! Where frameworks and CUDA libraries lie in images.

use std::collections::BTreeMap;

use crate::collect::paths::clean;
use crate::model::Container;

/// Directories of libraries; those of Python lie below some of them, virtual environments included.
const LIBRARIES: [&str; 9] = [
    "/usr/local/lib",
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
/// More of them than a `PATH` of use has.
const MOST: usize = 24;

/// What a container's configuration says of where its program lies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// Its environment.
    pub environment: Option<&'a BTreeMap<String, String>>,
    /// Its program and that one's arguments.
    pub args: &'a [String],
}

impl<'a> Hints<'a> {
    /// Of a container.
    pub fn of(container: &'a Container) -> Self {
        let args = container.args.seen().map_or(&[][..], Vec::as_slice);
        Self { environment: container.environment.seen(), args }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.and_then(|all| all.get(name)).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Directories of libraries, each once.
    pub(super) fn libraries(&self) -> Vec<String> {
        let mut found: Vec<String> = LIBRARIES.map(str::to_owned).to_vec();
        let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| self.variable(name));
        // `/opt/python/bin` in the path has its libraries in `/opt/python/lib`
        let of_path =
            self.variable("PATH").unwrap_or_default().split(':').filter_map(|entry| entry.strip_suffix("/bin"));
        for prefix in prefixes.chain(of_path).filter(|prefix| prefix.starts_with('/')) {
            add(&mut found, format!("{}/lib", clean(prefix).trim_end_matches('/')));
        }
        found.truncate(MOST);
        found
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
        let path = self.variable("LD_LIBRARY_PATH").unwrap_or_default();
        for directory in path.split([':', ';']).filter(|directory| directory.starts_with('/')).map(clean) {
            add(&mut found, directory);
        }
        found.truncate(MOST);
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
        let args = ["/srv/server/run".to_owned(), "--port".to_owned()];
        let hints = Hints { environment: Some(&environment), args: &args };
        let further: Vec<String> = hints.libraries().split_off(LIBRARIES.len());
        assert_eq!(further, ["/srv/env/lib", "/opt/py/lib"]);
        assert_eq!(hints.programs(), ["/app", "/srv/server", "/opt/lib"]);
        assert_eq!(Hints::default().libraries().len(), LIBRARIES.len());
    }
}
