//! Compute capability: what machine code a GPU runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::version::NotAVersion;

/// `8.6`: the generation of a GPU and its variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// The generation.
    pub major: u8,
    /// The variant within it.
    pub minor: u8,
}

impl ComputeCapability {
    /// Of its two numbers.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }
}

/// `8.6`, `sm_86`, `compute_86` and `12.0` alike; the last digit of a number without a point is the variant.
impl FromStr for ComputeCapability {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let digits = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).unwrap_or(text);
        let split = match digits.split_once('.') {
            Some(parts) => Some(parts),
            None if digits.is_ascii() => digits.len().checked_sub(1).filter(|at| *at > 0).map(|at| digits.split_at(at)),
            None => None,
        };
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        split
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }))
            .ok_or_else(|| NotAVersion::of(text))
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for ComputeCapability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ComputeCapability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_its_forms_are_read() {
        for (text, major, minor) in
            [("8.6", 8, 6), ("sm_86", 8, 6), ("compute_120", 12, 0), ("12.1", 12, 1), ("75", 7, 5)]
        {
            assert_eq!(text.parse(), Ok(ComputeCapability::new(major, minor)), "{text}");
        }
        for text in ["", "8", "sm_", "8.", ".6", "sm_90a", "8.6.1", "N/A", "é1", "300.1"] {
            assert!(text.parse::<ComputeCapability>().is_err(), "{text}");
        }
        assert!(ComputeCapability::new(9, 0) < ComputeCapability::new(10, 3));
        assert_eq!(ComputeCapability::new(10, 3).to_string(), "10.3");
    }
}
