//! `REF`: which image, and where it is.

use std::path::PathBuf;

/// An image's name, and where it is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A tag or digest: docker, then podman, then containerd.
    Any(String),
    /// `docker:NAME`.
    Docker(String),
    /// `podman:NAME`.
    Podman(String),
    /// `containerd:[NAMESPACE/]NAME`, which may be both.
    Containerd(String),
    /// `registry:NAME`.
    Registry(String),
    /// `oci:DIR[:TAG]`.
    Layout {
        /// The layout's directory.
        directory: PathBuf,
        /// The image's name in it.
        tag: Option<String>,
    },
    /// `oci-archive:FILE[:TAG]`, `docker-archive:FILE[:TAG]`, or a file whose kind is seen in it.
    Archive {
        /// The file.
        file: PathBuf,
        /// The image's name in it.
        tag: Option<String>,
    },
    /// `-`: an archive on standard input.
    Stdin,
    /// `rootfs:DIR`: an unpacked root file system.
    Rootfs(PathBuf),
    /// A path without a word before it: what it is, is seen there.
    Path(PathBuf),
}

impl Reference {
    /// Reads one.
    pub fn parse(text: &str) -> Self {
        if text == "-" {
            return Self::Stdin;
        }
        if text.starts_with('/') || text.starts_with("./") || text.starts_with("../") {
            return Self::Path(text.into());
        }
        let with_tag = |rest: &str| match rest.rsplit_once(':') {
            // a colon before a slash is of the path
            Some((path, tag)) if !tag.contains('/') && !path.is_empty() && !tag.is_empty() => {
                (PathBuf::from(path), Some(tag.to_owned()))
            }
            _ => (PathBuf::from(rest), None),
        };
        match text.split_once(':') {
            Some(("docker", rest)) => Self::Docker(rest.to_owned()),
            Some(("podman", rest)) => Self::Podman(rest.to_owned()),
            Some(("containerd", rest)) => Self::Containerd(rest.to_owned()),
            Some(("registry", rest)) => Self::Registry(rest.to_owned()),
            Some(("rootfs", rest)) => Self::Rootfs(rest.into()),
            Some(("oci", rest)) => {
                let (directory, tag) = with_tag(rest);
                Self::Layout { directory, tag }
            }
            Some(("oci-archive" | "docker-archive", rest)) => {
                let (file, tag) = with_tag(rest);
                Self::Archive { file, tag }
            }
            _ => Self::Any(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_colon_names_the_source() {
        let of = Reference::parse;
        assert_eq!(of("pytorch/pytorch:2.9"), Reference::Any("pytorch/pytorch:2.9".into()));
        assert_eq!(of("docker:5000/x:1"), Reference::Docker("5000/x:1".into()));
        assert_eq!(of("containerd:k8s.io/x"), Reference::Containerd("k8s.io/x".into()));
        assert_eq!(of("./x:1"), Reference::Path("./x:1".into()));
        let layout = |directory: &str, tag: Option<&str>| Reference::Layout {
            directory: directory.into(),
            tag: tag.map(str::to_owned),
        };
        assert_eq!(of("oci:images/torch"), layout("images/torch", None));
        assert_eq!(of("oci:images/torch:latest"), layout("images/torch", Some("latest")));
        assert_eq!(of("oci:/a:b/c"), layout("/a:b/c", None));
        assert_eq!(of("-"), Reference::Stdin);
    }
}
