//! Paths inside a container, as words: nothing here looks at a file.

pub(super) use crate::knowledge::toolkit::base_name as file_name;

/// The path without `.`, `..`, empty components and a trailing slash, always absolute: what a runtime
/// makes of a destination (runc `pathrs`, crun `chroot_realpath` without links).
pub(super) fn clean(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            name => kept.push(name),
        }
    }
    format!("/{}", kept.join("/"))
}

/// What is left of a path below a directory: empty for the directory itself, else with a leading slash.
/// Both must be clean.
pub(super) fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_as_runtimes_take_them() {
        assert_eq!(clean("dev//x/../nvidia0/."), "/dev/nvidia0");
        assert_eq!((clean("/"), clean("/../.."), clean("")), ("/".into(), "/".into(), "/".into()));
        assert_eq!(below("/dev/nvidia0", "/dev"), Some("/nvidia0"));
        assert_eq!(below("/dev", "/dev"), Some(""));
        assert_eq!(below("/devices", "/dev"), None);
        assert_eq!(below("/a", "/"), Some("/a"));
        assert_eq!(file_name("/usr/bin/nvidia-smi"), "nvidia-smi");
    }
}
