//! The name of an image in a registry, as docker reads it.

use crate::collect::image::source::manifest::{hex, short};
use crate::model::Unseen;

/// Where names without a registry are.
const HUB: &str = "docker.io";

/// Which image of which registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::collect::image::source) struct Name {
    /// `docker.io`, `127.0.0.1:5000`: as it is written in names.
    pub(in crate::collect::image::source) registry: String,
    /// `library/debian`.
    pub(in crate::collect::image::source) repository: String,
    /// A tag, or a digest, which says more.
    pub(in crate::collect::image::source) version: Version,
}

/// What stands behind the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::collect::image::source) enum Version {
    Tag(String),
    Digest(String),
}

impl Name {
    /// Reads `[REGISTRY/]REPOSITORY[:TAG][@DIGEST]`.
    pub(in crate::collect::image::source) fn parse(text: &str) -> Result<Self, Unseen> {
        let no = |why: &str| Unseen::new(short(text), format!("is no name of an image: {why}"));
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            // else it is the registry's port
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (name, None),
        };
        let version = match (digest, tag) {
            (Some(digest), _) => Version::Digest(
                hex(digest).map(|_| digest.to_owned()).ok_or_else(|| no("its digest is none of SHA-256"))?,
            ),
            (None, Some(tag)) => {
                let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
                let is_tag = !tag.is_empty() && tag.len() <= 128 && tag.bytes().all(word);
                Version::Tag(is_tag.then(|| tag.to_owned()).ok_or_else(|| no("of its tag"))?)
            }
            (None, None) => Version::Tag("latest".to_owned()),
        };
        let (registry, path) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (HUB, name),
        };
        // both are two names of one
        let registry = if registry == "index.docker.io" { HUB } else { registry };
        let is_host = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']');
        if registry.is_empty() || !registry.bytes().all(is_host) {
            return Err(no("of its registry"));
        }
        let is_path = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_path) && !part.starts_with('.');
        if !path.split('/').all(is_part) {
            return Err(no("a repository has small letters, digits and - _ . between slashes"));
        }
        let repository =
            if registry == HUB && !path.contains('/') { format!("library/{path}") } else { path.to_owned() };
        Ok(Self { registry: registry.to_owned(), repository, version })
    }

    /// Whom to ask.
    pub(super) fn host(&self) -> &str {
        if self.registry == HUB { "registry-1.docker.io" } else { &self.registry }
    }

    /// The registry is on this machine: docker takes it to speak without TLS.
    pub(super) fn is_loopback(&self) -> bool {
        let host = match self.registry.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map_or(rest, |(host, _)| host),
            None => self.registry.rsplit_once(':').map_or(self.registry.as_str(), |(host, _)| host),
        };
        host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    }

    /// All of it, without what was left out: `docker.io/library/debian:latest`.
    pub(in crate::collect::image::source) fn whole(&self) -> String {
        match &self.version {
            Version::Tag(tag) => format!("{}/{}:{tag}", self.registry, self.repository),
            Version::Digest(digest) => format!("{}/{}@{digest}", self.registry, self.repository),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> String {
        Name::parse(text).map_or_else(|unseen| unseen.reason, |name| name.whole())
    }

    #[test]
    fn what_is_left_out_is_dockers() {
        assert_eq!(whole("debian"), "docker.io/library/debian:latest");
        assert_eq!(whole("pytorch/pytorch:2.9"), "docker.io/pytorch/pytorch:2.9");
        assert_eq!(whole("localhost/x"), "localhost/x:latest");
        assert_eq!(whole("127.0.0.1:5000/a/b:1"), "127.0.0.1:5000/a/b:1");
        assert_eq!(whole("nvcr.io/nvidia/pytorch:25.08-py3"), "nvcr.io/nvidia/pytorch:25.08-py3");
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(whole(&format!("q.io/x:1@{digest}")), format!("q.io/x@{digest}"));
    }

    #[test]
    fn what_could_be_a_path_or_a_header_is_no_name() {
        for text in
            ["", "X", "q.io/../x", "q.io/x:a b", "q.io/x\r\n:1", "q.io/x@sha256:12", "q.io//x", "q io.de/x", "q.io/"]
        {
            assert!(whole(text).contains("no name of an image"), "{text:?} is {}", whole(text));
        }
    }

    #[test]
    fn registries_on_this_machine_are_known() {
        for (text, is) in [
            ("localhost:5000/x", true),
            ("127.8.0.1/x", true),
            ("[::1]:5000/x", true),
            ("127.0.0.1.evil.org/x", false),
            ("localhost.org:5000/x", false),
            ("10.0.0.1:5000/x", false),
            ("x", false),
        ] {
            assert_eq!(Name::parse(text).unwrap().is_loopback(), is, "{text}");
        }
    }
}
