//! Options of the `nvidia` module in modprobe's configuration.

use std::collections::BTreeMap;

use super::look::{ending, fact, names};
use crate::collect::tree::Tree;
use crate::model::{Observed, Unseen};

/// A file in an earlier directory hides those of the same name in later ones (modprobe.d(5)).
const DIRECTORIES: [&str; 4] = ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"];
const FILES: usize = 1024;
const FILE: usize = 1 << 18;

/// `options nvidia …`, option to value; the last word on each counts.
pub fn module_options(tree: &Tree) -> Observed<BTreeMap<String, String>> {
    fact("host.driver.module_options", read(tree))
}

fn read(tree: &Tree) -> Result<BTreeMap<String, String>, Unseen> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for directory in DIRECTORIES {
        for name in names(tree, directory, FILES)?.into_iter().filter(|name| ending(name) == "conf") {
            let path = format!("{directory}/{name}");
            files.entry(name).or_insert(path);
        }
    }
    let mut found = BTreeMap::new();
    for path in files.values() {
        // a link to nothing hides a file too
        if let Some(text) = tree.read_text(path, FILE)? {
            found.extend(options(&text));
        }
    }
    Ok(found)
}

fn options(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let of_nvidia = |line: &str| {
        let mut words = line.split_whitespace();
        let (command, module) = (words.next()?, words.next()?);
        // Debian's own name for the same module
        let ours = command == "options" && matches!(module, "nvidia" | "nvidia-current");
        ours.then(|| words.map(str::to_owned).collect::<Vec<_>>())
    };
    let pair = |word: String| match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.trim_matches('"').to_owned()),
        None => (word, String::new()),
    };
    joined.lines().filter_map(of_nvidia).flatten().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn options_of_all_files_count_and_masked_files_do_not() {
        let laid = Laid::out(&[
            (
                "/etc/modprobe.d/nvidia.conf",
                "# options nvidia X=1\noptions nvidia NVreg_DeviceFileMode=0660 \\\n  NVreg_DeviceFileGID=44\noptions nvidia-drm modeset=1\n",
            ),
            (
                "/usr/lib/modprobe.d/nvidia.conf",
                "options nvidia NVreg_DeviceFileMode=0600 NVreg_OpenRmEnableUnsupportedGpus=1\n",
            ),
            ("/lib/modprobe.d/z.conf", "options nvidia NVreg_DeviceFileGID=27\n"),
            ("/lib/modprobe.d/z.conf.bak", "options nvidia NVreg_DeviceFileGID=1\n"),
        ]);
        let expected = [("NVreg_DeviceFileMode", "0660"), ("NVreg_DeviceFileGID", "27")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(module_options(&laid.tree()), Observed::Known(expected.into()));
        assert_eq!(module_options(&Laid::out(&[]).tree()), Observed::Known(BTreeMap::new()));
    }
}
