//! The policy as the hook reads it. A broken configuration never stops a container: what is broken does
//! not count, and the log says so.

use std::path::Path;

use crate::checks;
use crate::collect::policy::{self as files, File};
use crate::collect::tree::{Kind, Tree};
use crate::policy::{Policy, known_checks};

/// The policy of `--config`, or of the machine, with remarks about what did not count.
pub fn read(told: Option<&Path>, host: &Tree) -> (Policy, Vec<String>) {
    let user = nix::unistd::geteuid().as_raw();
    let found = match told {
        None => files::files(host, user),
        Some(path) => vec![one(path, user)],
    };
    let mut policy = Policy::default();
    let mut remarks = Vec::new();
    if found.is_empty() {
        return (policy, remarks);
    }
    let known = known_checks(checks::all().map(|(_, check)| check.id));
    for File { path, text } in found {
        match text {
            Err(reason) => remarks.push(format!("{path} does not count: {reason}")),
            Ok(text) => {
                let troubles = policy.lay_over(&path, &text, &known);
                remarks.extend(troubles.into_iter().map(|trouble| format!("{}: {}", trouble.file, trouble.what)));
            }
        }
    }
    (policy, remarks)
}

fn one(path: &Path, user: u32) -> File {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = path.to_string_lossy().into_owned();
    let absent = File { path: name.clone(), text: Err("it is absent".to_owned()) };
    match Tree::open(Path::new("/"), Kind::Host) {
        Ok(root) => files::file(&root, &name, user).unwrap_or(absent),
        Err(_) => absent,
    }
}
