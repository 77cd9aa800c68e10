//! Versions as the vendor writes them. Compared number by number, never as text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version")]
pub struct NotAVersion(String);

impl NotAVersion {
    pub(super) fn of(text: &str) -> Self {
        Self(text.chars().take(40).collect())
    }
}

/// Dot-separated numbers. A missing number counts as zero: `570` equals `570.0`.
#[derive(Debug, Clone)]
pub struct Release {
    numbers: Vec<u32>,
    text: String,
}

impl Release {
    /// Of its numbers.
    pub fn of(numbers: &[u32]) -> Self {
        let text = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        Self { numbers: numbers.to_vec(), text }
    }

    /// The number at `place`, counted from zero; zero where there is none.
    pub fn number(&self, place: usize) -> u32 {
        self.numbers.get(place).copied().unwrap_or(0)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Release {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let bad = || NotAVersion::of(text);
        if text.len() > 40 {
            return Err(bad());
        }
        let numbers = text
            .split('.')
            .map(|part| if part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None })
            .collect::<Option<Vec<u32>>>()
            .ok_or_else(bad)?;
        Ok(Self { numbers, text: text.to_owned() })
    }
}

impl Ord for Release {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let places = self.numbers.len().max(other.numbers.len());
        (0..places)
            .map(|i| self.number(i).cmp(&other.number(i)))
            .find(|o| o.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    }
}

impl PartialOrd for Release {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Release {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Release {}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The version of the NVIDIA driver, `535.183.01`: of the kernel module, or of a driver library.
pub type DriverVersion = Release;

/// A version of CUDA, `12.8`: what a driver offers or what a program was built for.
pub type CudaVersion = Release;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(v("550.54.14") < v("550.54.15"));
        assert!(v("550.90") > v("550.54.15"));
        assert!(v("570") == v("570.0"));
        assert!(v("12.10") > v("12.9"));
        assert_eq!(v("535.183.01").to_string(), "535.183.01");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", ".", "550.", "1.2-rc1", "N/A", "550,1", "1.99999999999", " 1"] {
            assert!(text.parse::<Release>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_prints_what_it_read(text in "\\PC{0,50}") {
            if let Ok(version) = text.parse::<Release>() {
                prop_assert_eq!(version.to_string(), text);
            }
        }

        #[test]
        fn order_is_the_order_of_the_numbers(a in proptest::collection::vec(0u32..2000, 1..4), b in proptest::collection::vec(0u32..2000, 1..4)) {
            let text = |n: &[u32]| n.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
            let (mut x, mut y) = (a.clone(), b.clone());
            x.resize(3, 0);
            y.resize(3, 0);
            prop_assert_eq!(v(&text(&a)).cmp(&v(&text(&b))), x.cmp(&y));
        }
    }
}
