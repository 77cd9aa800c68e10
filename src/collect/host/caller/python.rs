//! The Python that the caller's `PATH` comes to first, and where it looks for packages. By files alone: nothing runs.
//!
//! Python's documentation, "The initialization of the `sys.path` module search path" and `site` (3.13); Debian's
//! `dist-packages` by its Python policy.

use std::collections::BTreeMap;

use super::super::look::names;
use crate::collect::files::Files as _;
use crate::collect::image::packages_of_python;
use crate::collect::paths::clean;
use crate::collect::tree::Tree;
use crate::knowledge::toolkit::{base_name, parent};
use crate::model::Unseen;
use crate::model::host::Python;

/// More directories than a `PATH` or `PYTHONPATH` of use has.
const MOST: usize = 128;
const CONFIGURATION: usize = 16 << 10;
const NAMES: usize = 1 << 16;
pub(super) const FACT: &str = "host.python";

/// Variables by name.
type Environment = BTreeMap<String, String>;

/// The Python; `None`: no directory of `PATH` has one.
pub(super) fn python(tree: &Tree, environment: &Environment) -> Result<Option<Python>, Unseen> {
    let variable = |name: &str| environment.get(name).map(String::as_str).unwrap_or_default();
    let directories = || variable("PATH").split(':').filter(|directory| directory.starts_with('/')).take(MOST);
    let in_each = directories().flat_map(|d| ["python3", "python"].map(|name| clean(&format!("{d}/{name}"))));
    let Some(path) = in_each.into_iter().find(|path| tree.is_program(path)) else { return Ok(None) };
    if !variable("PYTHONHOME").is_empty() {
        return Err(Unseen::new("PYTHONHOME", "it leads Python to a place of its own"));
    }
    if tree.beginning(&path, 2)?.as_deref() == Some(b"#!") {
        return Err(Unseen::new(path, "a script, which chooses a Python itself"));
    }
    let directories = look_for_packages(tree, environment, &path)?;
    let (frameworks, packages) = packages_of_python(tree, &directories, FACT);
    Ok(Some(Python { path, frameworks, packages }))
}

/// Where it is installed, and as which version.
struct Installed {
    /// `/usr`, `/opt/venv`.
    prefix: String,
    /// `3.11`
    version: String,
}

/// The directories of packages in Python's order, each once.
fn look_for_packages(tree: &Tree, environment: &Environment, path: &str) -> Result<Vec<String>, Unseen> {
    let variable = |name: &str| environment.get(name).map(String::as_str).unwrap_or_default();
    // a directory of programs may be a link itself, `/bin`
    let real = tree.resolved(path).ok_or_else(|| Unseen::new(path, "where it leads cannot be told"))?;
    let base = |version: String| Installed { prefix: parent(parent(&real)).to_owned(), version };
    let configuration = configuration(tree, path)?;
    let version = version_of(base_name(&real)).map(str::to_owned);
    let (own, of_base) = if let Some((prefix, text)) = configuration {
        let said = value(&text, "version").or(value(&text, "version_info")).and_then(major_minor);
        let version = version.or(said).or_else(|| only_version(tree, &prefix));
        let version = version.ok_or_else(|| Unseen::new(&prefix, "its version cannot be told"))?;
        let shares = value(&text, "include-system-site-packages").is_some_and(|v| v.eq_ignore_ascii_case("true"));
        (Installed { prefix, version: version.clone() }, shares.then(|| base(version)))
    } else {
        let version = version.or_else(|| only_version(tree, parent(parent(&real))));
        let version = version.ok_or_else(|| Unseen::new(path, "its version cannot be told"))?;
        (base(version.clone()), Some(base(version)))
    };
    let told = variable("PYTHONPATH").split(':').filter(|directory| directory.starts_with('/')).take(MOST);
    let mut all: Vec<String> = told.map(clean).collect();
    // an environment that is shut off from the system's packages is from the user's as well
    if of_base.is_some() && variable("PYTHONNOUSERSITE").is_empty() && !variable("HOME").is_empty() {
        let user = variable("PYTHONUSERBASE");
        let user = if user.is_empty() { format!("{}/.local", variable("HOME")) } else { user.to_owned() };
        all.push(clean(&format!("{user}/lib/python{}/site-packages", own.version)));
    }
    all.extend(sites(&own));
    all.extend(of_base.iter().flat_map(sites));
    Ok(each_once(tree, all))
}

/// Those of one installation; a distribution's Python has more than one.
fn sites(installed: &Installed) -> Vec<String> {
    let Installed { prefix, version } = installed;
    let of = |prefix: &str, kind: &str| {
        ["lib", "lib64"].map(|lib| format!("{}/{lib}/python{version}/{kind}", prefix.trim_end_matches('/')))
    };
    if prefix != "/usr" {
        return of(prefix, "site-packages").into();
    }
    let mut all = Vec::new();
    for kind in ["dist-packages", "site-packages"] {
        all.extend(of("/usr/local", kind));
        all.extend((kind == "dist-packages").then(|| format!("/usr/lib/python3/{kind}")));
        all.extend(of(prefix, kind));
    }
    all
}

/// Those that are there; `lib64` is a link to `lib` in many.
fn each_once(tree: &Tree, all: Vec<String>) -> Vec<String> {
    let mut seen = Vec::new();
    let is_new = |path: &String| match tree.stat(path) {
        Ok(Some(stat)) if seen.contains(&stat.identity) => false,
        Ok(Some(stat)) => {
            seen.push(stat.identity);
            true
        }
        Ok(None) => false,
        // whoever lists it is told why not
        Err(_) => true,
    };
    all.into_iter().filter(is_new).collect()
}

/// `pyvenv.cfg` of a virtual environment, and the directory that it makes one. Links to the program are not followed
/// for it.
fn configuration(tree: &Tree, path: &str) -> Result<Option<(String, String)>, Unseen> {
    for directory in [parent(path), parent(parent(path))] {
        let file = format!("{}/pyvenv.cfg", directory.trim_end_matches('/'));
        if let Some(text) = tree.read_text(&file, CONFIGURATION)? {
            return Ok(Some((directory.to_owned(), text)));
        }
    }
    Ok(None)
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().filter_map(|line| line.split_once('=')).find(|(k, _)| k.trim() == key).map(|(_, value)| value.trim())
}

/// `3.11` of `python3.11`.
fn version_of(program: &str) -> Option<&str> {
    let version = program.strip_prefix("python")?;
    let (major, minor) = version.split_once('.')?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(major) && is_number(minor)).then_some(version)
}

/// `3.11` of `3.11.2.final.0`.
fn major_minor(version: &str) -> Option<String> {
    let mut parts = version.split('.');
    let version = format!("python{}.{}", parts.next()?, parts.next()?);
    version_of(&version).map(str::to_owned)
}

/// The only one that has a directory of its own there.
fn only_version(tree: &Tree, prefix: &str) -> Option<String> {
    let library = format!("{}/lib", prefix.trim_end_matches('/'));
    let all = names(tree, &library, NAMES).ok()?;
    let mut versions = all.iter().filter_map(|name| version_of(name));
    let first = versions.next()?;
    versions.next().is_none().then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;
    use crate::model::image::Build;

    const NEW: &str = "cuda = '13.0'\nhip = None\n";
    const OLD: &str = "cuda = '12.1'\nhip = None\n";

    fn of(laid: &Laid, environment: &[(&str, &str)]) -> Result<Option<Python>, Unseen> {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        python(&laid.tree(), &environment)
    }

    /// A program, and torch in a directory of packages, whose version file says this.
    fn program(laid: &Laid, path: &str) {
        laid.program(path, "\u{7f}ELF");
    }

    fn torch(laid: &Laid, site: &str, version: &str, says: &str) {
        laid.directory(&format!("{site}/torch-{version}.dist-info"));
        laid.write(&format!("{site}/torch/version.py"), says);
    }

    fn cuda(python: Option<Python>) -> Vec<(String, Option<String>)> {
        let frameworks = python.unwrap().frameworks.items.into_iter();
        frameworks.map(|framework| (framework.source, framework.cuda.map(|cuda| cuda.to_string()))).collect()
    }

    fn machine() -> Laid {
        let laid = Laid::out(&[]);
        program(&laid, "/usr/bin/python3.11");
        laid.link("python3.11", "/usr/bin/python3");
        laid.link("usr/bin", "/bin");
        torch(&laid, "/usr/lib/python3/dist-packages", "2.3.0", OLD);
        laid
    }

    #[test]
    fn the_first_on_the_path_counts_by_whatever_links() {
        let laid = machine();
        let at = |file: &str, cuda: &str| vec![(file.to_owned(), Some(cuda.to_owned()))];
        let own = at("/usr/lib/python3/dist-packages/torch/version.py", "12.1");
        for path in ["/usr/bin:/bin", "/gone:/bin", "relative:/usr/bin"] {
            let found = of(&laid, &[("PATH", path)]).unwrap();
            assert!(found.as_ref().unwrap().path.ends_with("/bin/python3"));
            assert_eq!(cuda(found), own, "{path}");
        }
        assert_eq!(of(&laid, &[("PATH", "/gone")]).unwrap(), None);
        assert_eq!(of(&laid, &[]).unwrap(), None);
    }

    #[test]
    fn an_environment_has_packages_of_its_own_and_the_systems_only_if_it_says_so() {
        let laid = machine();
        laid.link("/usr/bin/python3", "/srv/env/bin/python3");
        laid.write("/srv/env/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n");
        laid.directory("/home/a/.local/lib/python3.11/site-packages/torch-2.1.0+cpu.dist-info");
        let environment = [("PATH", "/srv/env/bin:/usr/bin"), ("HOME", "/home/a")];
        assert_eq!(cuda(of(&laid, &environment).unwrap()), []);
        torch(&laid, "/srv/env/lib/python3.11/site-packages", "2.11.0", NEW);
        laid.link("lib", "/srv/env/lib64");
        let own = "/srv/env/lib/python3.11/site-packages/torch/version.py";
        assert_eq!(cuda(of(&laid, &environment).unwrap()), [(own.to_owned(), Some("13.0".to_owned()))]);
        laid.write("/srv/env/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = True\n");
        let shared = of(&laid, &environment).unwrap().unwrap().frameworks.items;
        assert_eq!((shared.len(), shared[0].build), (1, Build::Cpu), "the user's come first");
    }

    #[test]
    fn what_python_is_told_of_and_what_the_user_installed_come_first() {
        let laid = machine();
        torch(&laid, "/home/a/.local/lib/python3.11/site-packages", "2.11.0", NEW);
        torch(&laid, "/opt/told", "2.2.0", OLD);
        let first = |more: &[(&str, &str)]| {
            let environment = [&[("PATH", "/usr/bin"), ("HOME", "/home/a")], more].concat();
            cuda(of(&laid, &environment).unwrap())[0].0.clone()
        };
        assert!(first(&[]).starts_with("/home/a/.local/"));
        assert!(first(&[("PYTHONNOUSERSITE", "1")]).starts_with("/usr/lib/"));
        assert!(first(&[("PYTHONPATH", ":/opt/told")]).starts_with("/opt/told/"));
    }

    #[test]
    fn condas_own_lies_below_its_prefix() {
        let laid = Laid::out(&[]);
        program(&laid, "/opt/conda/envs/a/bin/python");
        torch(&laid, "/opt/conda/envs/a/lib/python3.12/site-packages", "2.5.1", OLD);
        let found = of(&laid, &[("PATH", "/opt/conda/envs/a/bin:/usr/bin")]).unwrap();
        assert_eq!(cuda(found)[0].1.as_deref(), Some("12.1"));
    }

    #[test]
    fn what_chooses_a_python_itself_is_unknown() {
        let laid = machine();
        laid.program("/home/a/.pyenv/shims/python3", "#!/usr/bin/env bash\n");
        assert!(of(&laid, &[("PATH", "/home/a/.pyenv/shims:/usr/bin")]).is_err());
        assert!(of(&laid, &[("PATH", "/usr/bin"), ("PYTHONHOME", "/opt/p")]).is_err());
        // no version anywhere
        program(&laid, "/opt/x/bin/python3");
        assert!(of(&laid, &[("PATH", "/opt/x/bin")]).is_err());
    }
}
