//! Members of an archive, by their names.

use std::collections::HashMap;
use std::io;

use crate::collect::image::layer::tar::Header;

/// docker's old archives have three for each layer, and no image has more than some hundred. Of all names together,
/// each with what it costs besides.
const MOST_BYTES: usize = 6 << 20;
const BESIDE: usize = 256;
const MOST_NAME: usize = 4096;
/// Links to links.
const HOPS: usize = 8;

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Member<T> {
    /// A file.
    File(T),
    /// A name for another member.
    Link(String),
}

impl<T> Member<T> {
    /// A link of this name: a symbolic one leads from its own directory, a hard one from the root.
    pub(super) fn link(name: &str, target: &[u8], hard: bool) -> Self {
        let target = String::from_utf8_lossy(&target[..target.len().min(MOST_NAME)]);
        let from = name.rfind('/').map_or("", |slash| &name[..slash]);
        let from = if hard || target.starts_with('/') { "" } else { from };
        Self::Link(clean(&format!("{from}/{target}")))
    }
}

/// What is left for the names of an archive's members.
pub(super) struct Room(usize);

impl Room {
    pub(super) fn new() -> Self {
        Self(MOST_BYTES)
    }

    /// A member's name as others refer to it; `None`: nobody can.
    pub(super) fn name_of(&mut self, header: &Header) -> io::Result<Option<String>> {
        let raw = &header.name;
        if raw.len() > MOST_NAME {
            return Ok(None);
        }
        let bytes = raw.len() + header.target.len().min(MOST_NAME) + BESIDE;
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| io::Error::other("it has more members than are read"))?;
        Ok(Some(clean(&String::from_utf8_lossy(raw))))
    }
}

/// The file that a name stands for, its links followed: they may come before what they point to.
pub(super) fn resolve<'a, T>(members: &'a HashMap<String, Member<T>>, name: &str) -> Option<&'a T> {
    match members.get(&resolve_name(members, name)?)? {
        Member::File(file) => Some(file),
        Member::Link(_) => None,
    }
}

/// The file's own name.
pub(super) fn resolve_name<T>(members: &HashMap<String, Member<T>>, name: &str) -> Option<String> {
    let mut name = clean(name);
    for _ in 0..HOPS {
        match members.get(&name)? {
            Member::File(_) => return Some(name),
            Member::Link(target) => name.clone_from(target),
        }
    }
    None
}

fn clean(path: &str) -> String {
    crate::collect::paths::clean(path).trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_files_whatever_stands_before_what() {
        let mut members = HashMap::from([("b/layer.tar".to_owned(), Member::File(1))]);
        members.insert("a/layer.tar".to_owned(), Member::link("a/layer.tar", b"../b/layer.tar", false));
        members.insert("c".to_owned(), Member::link("x/c", b"./a/layer.tar", true));
        members.insert("round".to_owned(), Member::link("round", b"round", false));
        assert_eq!(resolve(&members, "./a//layer.tar"), Some(&1));
        assert_eq!(resolve(&members, "c"), Some(&1));
        assert_eq!(resolve(&members, "round"), None);
        assert_eq!(resolve(&members, "none"), None);
    }
}
