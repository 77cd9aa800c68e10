//! Digests, as descriptors name them.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256, Sha512};

/// Of the bytes that go by.
#[derive(Clone)]
pub(in crate::collect::image) enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    /// For a digest that is told; `None`: it is of a kind that is not computed, or no digest at all.
    pub(in crate::collect::image) fn of(digest: &str) -> Option<Self> {
        let (algorithm, hex) = digest.split_once(':')?;
        let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match (algorithm, hex.len(), is_hex) {
            ("sha256", 64, true) => Some(Self::sha256()),
            ("sha512", 128, true) => Some(Self::Sha512(Sha512::new())),
            _ => None,
        }
    }

    /// For one that nobody told yet.
    pub(in crate::collect::image) fn sha256() -> Self {
        Self::Sha256(Sha256::new())
    }

    pub(in crate::collect::image) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The digest.
    pub(in crate::collect::image) fn finish(self) -> String {
        let hex = |name: &str, bytes: &[u8]| {
            bytes.iter().fold(format!("{name}:"), |mut text, byte| {
                // to a String nothing can fail
                let _ = write!(text, "{byte:02x}");
                text
            })
        };
        match self {
            Self::Sha256(hasher) => hex("sha256", &hasher.finalize()),
            Self::Sha512(hasher) => hex("sha512", &hasher.finalize()),
        }
    }
}

/// Of bytes that are all there.
pub(in crate::collect::image) fn matches(digest: &str, bytes: &[u8]) -> bool {
    Hasher::of(digest).is_some_and(|mut hasher| {
        hasher.update(bytes);
        hasher.finish() == digest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_compared_by_their_own_kind() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert!(matches(empty, b"") && !matches(empty, b"x"));
        let long = format!("sha512:{}", "0".repeat(128));
        assert!(Hasher::of(&long).is_some() && !matches(&long, b""));
        for wrong in ["", "sha256:", "md5:d41d8cd98f00b204e9800998ecf8427e", "sha256:../../x", &empty.to_uppercase()] {
            assert!(Hasher::of(wrong).is_none(), "{wrong}");
        }
    }
}
