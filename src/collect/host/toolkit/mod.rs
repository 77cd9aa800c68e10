//! NVIDIA's container toolkit: programs, version, configuration.

use std::collections::BTreeMap;

use super::look::fact;
use crate::collect::tree::Tree;
use crate::knowledge::toolkit::PROGRAM_DIRS;
use crate::model::Unseen;
use crate::model::host::{NodeKind, Toolkit};

mod config;
mod packages;

pub(super) use config::config;

/// `nvidia-container-toolkit` is what the hook was called before 1.11, and a link to it since.
const PROGRAMS: [&str; 6] = [
    "nvidia-container-runtime",
    "nvidia-container-runtime-hook",
    "nvidia-container-toolkit",
    "nvidia-container-cli",
    "nvidia-ctk",
    "nvidia-cdi-hook",
];

/// The toolkit.
pub fn toolkit(tree: &Tree) -> Toolkit {
    let programs = programs(tree);
    let any = programs.as_ref().is_ok_and(|programs| !programs.is_empty());
    let versions = packages::versions(tree, any);
    Toolkit {
        libnvidia_container: versions.as_ref().ok().and_then(|versions| versions.libnvidia_container.clone()),
        predecessor: versions.as_ref().ok().and_then(|versions| versions.predecessor.clone()),
        version: fact("host.toolkit.version", versions.map(|versions| versions.toolkit)),
        programs: fact("host.toolkit.programs", programs),
        config: config(tree),
    }
}

fn programs(tree: &Tree) -> Result<BTreeMap<String, String>, Unseen> {
    let mut found = BTreeMap::new();
    for name in PROGRAMS {
        for directory in PROGRAM_DIRS {
            let path = format!("{directory}/{name}");
            if tree.stat(&path)?.is_some_and(|stat| stat.kind == NodeKind::File) {
                found.insert(name.to_owned(), path);
                break;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;
    use crate::model::Observed;

    #[test]
    fn programs_are_found_where_they_are_first_looked_for() {
        let laid = Laid::out(&[("/usr/local/bin/nvidia-ctk", ""), ("/opt/bin/nvidia-container-cli", "")]);
        laid.link("/gone", "/usr/bin/nvidia-ctk");
        let toolkit = toolkit(&laid.tree());
        let expected =
            [("nvidia-ctk", "/usr/local/bin/nvidia-ctk"), ("nvidia-container-cli", "/opt/bin/nvidia-container-cli")];
        assert_eq!(toolkit.programs, Observed::Known(expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into()));
        assert!(toolkit.version.known().is_err(), "its programs are there, and no package says of which version");
    }

    #[test]
    fn where_there_is_none_this_is_known() {
        let toolkit = toolkit(&Laid::out(&[]).tree());
        assert_eq!(toolkit, Toolkit::default());
    }
}
