//! The administrator's additions to the tables.

use super::policy::{File, drop_ins};
use super::tree::Tree;
use crate::knowledge::{BUILT_IN, additions};
use crate::model::Knowledge;

const DIRECTORY: &str = "/etc/gpu-preflight/knowledge.d";
/// Of all files together: the hook reads them before a container starts.
const MOST_BYTES: usize = 64 << 10;
const MOST_REMARKS: usize = 32;

/// The tables with what `knowledge.d/*.toml` adds to them, in the order of the files' names, and remarks about what
/// did not count. `user`: whose files count besides root's.
pub fn read(host: &Tree, user: u32) -> (Knowledge, Vec<String>) {
    let mut knowledge = BUILT_IN;
    let mut remarks = Vec::new();
    let mut left = MOST_BYTES;
    for File { path, text } in drop_ins(host, DIRECTORY, user) {
        match text {
            Err(reason) => remarks.push(format!("{path} does not count: {reason}")),
            Ok(text) if text.len() > left => {
                remarks
                    .push(format!("{path} does not count: with those before it it is longer than {MOST_BYTES} bytes"));
            }
            Ok(text) => {
                left -= text.len();
                let odd = additions::lay_over(&mut knowledge, &text);
                remarks.extend(odd.into_iter().map(|what| format!("{path}: {what}")));
            }
        }
        remarks.truncate(MOST_REMARKS);
    }
    (knowledge, remarks)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::collect::tree::Kind;

    fn of(files: &[(&str, &str, u32)]) -> (Knowledge, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text, mode) in files {
            let directory = dir.path().join("etc/gpu-preflight/knowledge.d");
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join(name), text).unwrap();
            std::fs::set_permissions(directory.join(name), std::fs::Permissions::from_mode(*mode)).unwrap();
        }
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        read(&tree, nix::unistd::geteuid().as_raw())
    }

    fn cuda_of_650(knowledge: &Knowledge) -> String {
        knowledge.offered_by(&"650.10".parse().unwrap()).unwrap().value.to_string()
    }

    const BRANCH: &str = "[[branch]]\nnumber = 650\ncuda = \"14.0\"\n";

    #[test]
    fn nothing_is_added_where_nothing_lies() {
        assert_eq!(of(&[]), (BUILT_IN, Vec::new()));
    }

    #[test]
    fn later_files_override_earlier_ones() {
        let later = BRANCH.replace("14.0", "14.1");
        let (knowledge, remarks) =
            of(&[("20-b.toml", &later, 0o644), ("10-a.toml", BRANCH, 0o600), ("x.bak", "[", 0o644)]);
        assert_eq!((cuda_of_650(&knowledge).as_str(), remarks), ("14.1", Vec::new()));
    }

    #[test]
    fn remarks_name_the_file_and_the_rest_counts() {
        let long = "#".repeat(64 * 1024 + 1);
        let (knowledge, remarks) = of(&[
            ("a.toml", "[[branch]]\nnumber = 640\ncuda = \"12.0\"\n", 0o644),
            ("b.toml", BRANCH, 0o644),
            ("c.toml", &BRANCH.replace("14.0", "15.0"), 0o666),
            ("d.toml", &long, 0o644),
            ("e.toml", "[[branch", 0o644),
        ]);
        assert_eq!(cuda_of_650(&knowledge), "14.0");
        let said: Vec<_> = remarks.iter().map(|remark| remark.split([':', ' ']).next().unwrap()).collect();
        let files = ["a", "c", "d", "e"].map(|name| format!("{DIRECTORY}/{name}.toml"));
        assert_eq!(said, files, "{remarks:?}");
        assert!(remarks[1].contains("others may write it"), "{remarks:?}");
    }
}
