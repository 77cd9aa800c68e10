//! Which requirements a container declares.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::is_disabled;
use crate::knowledge::driver_capabilities::is_old_image;

const PREFIX: &str = "NVIDIA_REQUIRE_";
/// Select mounts on Jetson.
const OF_JETSON: &str = "NVIDIA_REQUIRE_JETPACK";
const VERSION: &str = "CUDA_VERSION";

/// A requirement that a container declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement<'a> {
    /// The variable that it stands in.
    pub variable: &'a str,
    /// That one's value.
    pub value: &'a str,
    /// What is required; `None`: made of a `CUDA_VERSION` that is no version. The toolkit's hook then fails.
    pub text: Option<Cow<'a, str>>,
}

impl Requirement<'_> {
    /// It is made of a `CUDA_VERSION`.
    pub fn is_of_version(&self) -> bool {
        self.variable == VERSION
    }
}

/// All that NVIDIA's hook would evaluate; none, if they are switched off.
pub fn declared(environment: &BTreeMap<String, String>) -> Vec<Requirement<'_>> {
    if is_disabled(environment) {
        return Vec::new();
    }
    let mut all: Vec<_> = environment
        .range(PREFIX.to_owned()..)
        .take_while(|(name, _)| name.starts_with(PREFIX))
        .filter(|(name, value)| !name.starts_with(OF_JETSON) && !value.is_empty())
        .map(|(name, value)| Requirement { variable: name, value, text: Some(Cow::Borrowed(value.as_str())) })
        .collect();
    if let Some((name, value)) = environment.get_key_value(VERSION).filter(|_| is_old_image(environment)) {
        let text = major_and_minor(value).map(|version| Cow::Owned(format!("cuda>={version}")));
        all.push(Requirement { variable: name, value, text });
    }
    all
}

/// Of a version as `golang.org/x/mod/semver` takes it (v0.x, 2026): up to three numbers without leading zeros, then
/// perhaps `-…` and `+…` if all three are there. A minor that is not there is 0.
fn major_and_minor(version: &str) -> Option<String> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (numbers, suffix) = version.split_at(version.find(['-', '+']).unwrap_or(version.len()));
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| {
        let canonical = *part == "0" || !part.starts_with('0');
        part.bytes().all(|b| b.is_ascii_digit()) && canonical && part.parse::<u32>().is_ok()
    };
    // the third need not fit a number
    let is_patch = |part: &&str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (*part == "0" || !part.starts_with('0'))
    };
    let whole = parts.len() == 3;
    let good = parts.len() <= 3
        && parts.iter().take(2).all(is_number)
        && parts.iter().skip(2).all(is_patch)
        && (suffix.is_empty() || (whole && is_suffix(suffix)));
    good.then(|| format!("{}.{}", parts.first().unwrap_or(&"0"), parts.get(1).unwrap_or(&"0")))
}

fn is_suffix(suffix: &str) -> bool {
    let of_words = |text: &str| {
        text.split('.').all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
    };
    let (before, build) = suffix.split_once('+').map_or((suffix, None), |(before, build)| (before, Some(build)));
    (before.is_empty() || before.strip_prefix('-').is_some_and(of_words)) && build.is_none_or(of_words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn texts(pairs: &[(&str, &str)]) -> Vec<Option<String>> {
        declared(&environment(pairs)).into_iter().map(|r| r.text.map(Cow::into_owned)).collect()
    }

    #[test]
    fn every_variable_of_the_prefix_counts_but_jetsons() {
        let pairs = [
            ("NVIDIA_REQUIRE_CUDA", "cuda>=12.4"),
            ("NVIDIA_REQUIRE_DRIVER", "driver>=535"),
            ("NVIDIA_REQUIRE_EMPTY", ""),
            ("NVIDIA_REQUIRE_JETPACK", "csv-mounts=all"),
            ("NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS", "base-only"),
            ("NVIDIA_REQUIR", "x"),
            ("CUDA_VERSION", "12.4.1"),
            ("PATH", "/bin"),
        ];
        assert_eq!(texts(&pairs), [Some("cuda>=12.4".into()), Some("driver>=535".into())]);
        assert_eq!(texts(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.4"), ("NVIDIA_DISABLE_REQUIRE", "1")]), []);
    }

    #[test]
    fn an_old_image_requires_its_version() {
        let with = |version| texts(&[("CUDA_VERSION", version), ("NVIDIA_REQUIRE_CUDA", "")]);
        for (version, text) in [
            ("9.0.176", "cuda>=9.0"),
            ("12.4.1", "cuda>=12.4"),
            ("12", "cuda>=12.0"),
            ("v11.8", "cuda>=11.8"),
            ("12.4.1-rc.1+b2", "cuda>=12.4"),
        ] {
            assert_eq!(with(version), [Some(text.into())], "{version}");
        }
        for version in ["cu124", "12.04", "12.4.1.2", "12.4-1", "12.", ".1", "12.4.1-", "99999999999.1", "12 "] {
            assert_eq!(with(version), [None], "{version}");
        }
    }

    proptest! {
        #[test]
        fn any_version_is_read_without_a_panic(text in "\\PC{0,20}|[v0-9.+-]{0,12}") {
            if let Some(version) = major_and_minor(&text) {
                prop_assert!(version.parse::<crate::model::Release>().is_ok());
            }
        }
    }
}
