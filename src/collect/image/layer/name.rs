//! Names of entries, as words.

use super::MOST_PATH;

/// The path of a name below the root, without a slash before it, and where its last component begins: as engines
/// clean it, without `.`, `..` and empty components, and never above the root. `None`: it is too long.
pub(super) fn clean(raw: &[u8]) -> Option<(Vec<u8>, usize)> {
    if raw.len() > MOST_PATH {
        return None;
    }
    let mut path = Vec::with_capacity(raw.len());
    for component in raw.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => path.truncate(path.iter().rposition(|byte| *byte == b'/').unwrap_or(0)),
            name => {
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
            }
        }
    }
    let base = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    Some((path, base))
}

/// The path is the directory, or below it.
pub(super) fn is_at_or_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// In places that hold neither libraries nor Python, and often links by the ten thousand.
pub(super) fn is_apart(path: &[u8]) -> bool {
    const PLACES: [&[u8]; 10] = [
        b"usr/share/doc/",
        b"usr/share/man/",
        b"usr/share/zoneinfo/",
        b"usr/share/icons/",
        b"usr/share/locale/",
        b"usr/share/terminfo/",
        b"usr/share/fonts/",
        b"etc/ssl/certs/",
        b"etc/pki/ca-trust/",
        b"proc/",
    ];
    PLACES.iter().any(|place| path.starts_with(place)) || memchr::memmem::find(path, b"/node_modules/").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_root() {
        let of = |raw: &str| {
            let (path, base) = clean(raw.as_bytes()).unwrap();
            (String::from_utf8(path.clone()).unwrap(), String::from_utf8(path[base..].to_vec()).unwrap())
        };
        let told = |path: &str, base: &str| (path.to_owned(), base.to_owned());
        assert_eq!(of("./usr/lib/x.so"), told("usr/lib/x.so", "x.so"));
        assert_eq!(of("/x/"), told("x", "x"));
        assert_eq!(of("usr/lib/../../esc.so"), told("esc.so", "esc.so"));
        assert_eq!(of("../../../etc/./passwd"), told("etc/passwd", "passwd"));
        assert_eq!(of("a/../.."), told("", ""));
        assert_eq!(of("./"), told("", ""));
        assert_eq!(clean(&[b'a'; MOST_PATH + 1]), None);
        assert_eq!(clean(b"a/\xff").unwrap().0, b"a/\xff");
    }

    #[test]
    fn a_directory_is_above_what_has_its_name_and_a_slash() {
        assert!(is_at_or_below(b"a/b", b"a") && is_at_or_below(b"a", b"a") && !is_at_or_below(b"ab", b"a"));
        assert!(is_apart(b"srv/node_modules/x/y") && !is_apart(b"usr/share/cuda"));
    }
}
