//! libcuda and libcudart where the caller's `LD_LIBRARY_PATH` leads the loader.

use std::collections::BTreeMap;

use super::super::libraries::{end_of_links, is_for_processor, search_path};
use super::super::look::names;
use crate::collect::loader;
use crate::collect::tree::Tree;
use crate::knowledge::cuda::is_release;
use crate::knowledge::toolkit::base_name;
use crate::model::host::{NodeKind, PathLibrary};
use crate::model::{Host, Release, Unseen};

const NAMES: usize = 1 << 16;
const LIBCUDA: &str = "libcuda.so.1";
const LIBCUDART: &str = "libcudart.so.";

/// In the loader's order. Without the variable there is nothing to be led astray by, and nothing is looked at.
pub(super) fn libraries(
    tree: &Tree,
    environment: &BTreeMap<String, String>,
    host: &Host,
) -> Result<Vec<PathLibrary>, Unseen> {
    let named = loader::of_environment(environment);
    let mut found = Vec::new();
    for directory in &named {
        look_into(tree, &directory.path, host, true, &mut found)?;
    }
    if found.iter().any(|library| library.name != LIBCUDA) {
        for directory in search_path(tree) {
            look_into(tree, &directory, host, false, &mut found)?;
        }
    }
    Ok(found)
}

fn look_into(
    tree: &Tree,
    directory: &str,
    host: &Host,
    by_variable: bool,
    found: &mut Vec<PathLibrary>,
) -> Result<(), Unseen> {
    for name in names(tree, directory, NAMES)? {
        // the driver's own is known where every loader looks
        let wanted = is_runtime(&name) || (by_variable && name == LIBCUDA);
        let path = format!("{directory}/{name}");
        if !wanted || found.iter().any(|other| other.path == path) {
            continue;
        }
        let Some(stat) = tree.stat(&path)?.filter(|stat| stat.kind == NodeKind::File) else { continue };
        // the loader passes over what is for another processor
        if !is_for_processor(tree, &path, host.architecture.seen().map(String::as_str))? {
            continue;
        }
        let is_it = |known: &str| tree.stat(known).ok().flatten().is_some_and(|other| other.identity == stat.identity);
        let of_driver = name == LIBCUDA
            && host.driver.libraries.seen().is_some_and(|all| all.iter().any(|library| is_it(&library.path)));
        let version = version(base_name(&end_of_links(tree, path.clone())?));
        found.push(PathLibrary { name, path, version, by_variable, of_driver });
    }
    Ok(())
}

/// A name that programs ask for: `libcudart.so.12`, of CUDA 11 and before `libcudart.so.11.0`.
fn is_runtime(name: &str) -> bool {
    let version = name.strip_prefix(LIBCUDART).and_then(|version| version.parse().ok());
    version.as_ref().is_some_and(is_release) && name.matches('.').count() <= 3
}

/// `12.4.127` of `libcudart.so.12.4.127`; the name that programs ask for tells nothing more.
fn version(file: &str) -> Option<Release> {
    let version = file.split_once(".so.")?.1;
    version.parse().ok().filter(|_| version.contains('.') && !is_runtime(file))
}

#[cfg(test)]
mod tests {
    use super::super::super::look::testing::Laid;
    use super::*;
    use crate::model::Observed;
    use crate::model::host::DriverLibrary;

    fn of(laid: &Laid, path: &str, host: &Host) -> Vec<(String, Option<String>, bool, bool)> {
        let environment = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), path.to_owned())]);
        let found = libraries(&laid.tree(), &environment, host).unwrap();
        let told = |l: PathLibrary| (l.path, l.version.map(|v| v.to_string()), l.by_variable, l.of_driver);
        found.into_iter().map(told).collect()
    }

    fn machine() -> (Laid, Host) {
        let laid = Laid::out(&[
            ("/usr/lib64/libcuda.so.550.163.01", ""),
            ("/opt/old/libcuda.so.470.42.01", ""),
            ("/opt/cuda-12.1/lib64/libcudart.so.12.1.105", ""),
            ("/usr/lib64/libcudart.so.12.4.127", ""),
            ("/usr/lib64/libcudart.so.11.0", ""),
        ]);
        laid.link("libcuda.so.550.163.01", "/usr/lib64/libcuda.so.1");
        laid.link("/usr/lib64", "/opt/driver");
        laid.link("libcuda.so.470.42.01", "/opt/old/libcuda.so.1");
        laid.link("libcudart.so.12.1.105", "/opt/cuda-12.1/lib64/libcudart.so.12");
        laid.link("libcudart.so.12.4.127", "/usr/lib64/libcudart.so.12");
        let library = DriverLibrary {
            name: "libcuda".into(),
            path: "/usr/lib64/libcuda.so.550.163.01".into(),
            version: None,
            current: true,
            size: 0,
        };
        let mut host = Host::default();
        host.driver.libraries = Observed::Known(vec![library]);
        (laid, host)
    }

    #[test]
    fn what_the_variable_names_comes_first_and_the_drivers_own_is_known_by_whatever_name() {
        let (laid, host) = machine();
        let at = |path: &str, version: &str, by_variable, of_driver| {
            (path.to_owned(), Some(version.to_owned()), by_variable, of_driver)
        };
        let old = at("/opt/old/libcuda.so.1", "470.42.01", true, false);
        assert_eq!(of(&laid, "/opt/old::/gone:relative", &host), std::slice::from_ref(&old));
        let cuda = "/opt/cuda-12.1/lib64/libcudart.so.12";
        let runtimes = [
            at(cuda, "12.1.105", true, false),
            ("/usr/lib64/libcudart.so.11.0".to_owned(), None, false, false),
            at("/usr/lib64/libcudart.so.12", "12.4.127", false, false),
        ];
        assert_eq!(of(&laid, "/opt/cuda-12.1/lib64/", &host), runtimes);
        let own = of(&laid, "/opt/driver:/opt/old", &host);
        assert!(own.contains(&at("/opt/driver/libcuda.so.1", "550.163.01", true, true)) && own.contains(&old));
        assert_eq!(of(&laid, "", &host), []);
    }

    #[test]
    fn what_is_for_another_processor_is_passed_over() {
        let (laid, host) = machine();
        let mut foreign = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 3, 0];
        foreign.resize(64, 0);
        laid.write("/opt/32/libcuda.so.1", foreign);
        assert_eq!(of(&laid, "/opt/32", &host), []);
    }
}
