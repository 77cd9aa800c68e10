//! How the declared requirements of an image (`NVIDIA_REQUIRE_*`) are switched off.
//!
//! The NVIDIA Container Toolkit takes `NVIDIA_DISABLE_REQUIRE` as a Go boolean and any other word for
//! false (`internal/config/image`, d34b3046, 2026-08-21).

use std::collections::BTreeMap;

/// The variable.
pub const DISABLE: &str = "NVIDIA_DISABLE_REQUIRE";

/// Other orders and longer forms of it that people write. Names that begin with `NVIDIA_REQUIRE_` are
/// read as requirements themselves.
const LIKE: [&str; 6] = [
    "NVIDIA_REQUIRE_DISABLE",
    "NVIDIA_REQUIRE_DISABLED",
    "DISABLE_REQUIRE",
    "NVIDIA_DISABLE_REQUIREMENT",
    "NVIDIA_DISABLE_REQUIRE_CUDA",
    "NVIDIA_DISABLE_CUDA_REQUIRE",
];

/// Go's `strconv.ParseBool`.
pub fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The container switches its requirements off.
pub fn is_disabled(environment: &BTreeMap<String, String>) -> bool {
    environment.get(DISABLE).is_some_and(|v| go_bool(v) == Some(true))
}

/// The container declares requirements: a variable, or a `CUDA_VERSION` that stands for one.
pub fn are_declared(environment: &BTreeMap<String, String>) -> bool {
    environment.iter().any(|(name, value)| {
        !value.is_empty()
            && (name == "CUDA_VERSION"
                || (name.starts_with("NVIDIA_REQUIRE_")
                    && !name.starts_with("NVIDIA_REQUIRE_JETPACK")
                    && !is_near(name)))
    })
}

/// A name that is meant to be [`DISABLE`] and is not.
pub fn is_near(name: &str) -> bool {
    if name == DISABLE || name.len() > 40 {
        return false;
    }
    let upper = name.to_ascii_uppercase();
    // most names are of another length, which is quicker to see
    let within = |name: &str, most: usize| upper.len().abs_diff(name.len()) <= most && distance(&upper, name) <= most;
    within(DISABLE, 2) || LIKE.iter().any(|like| within(like, 1))
}

/// Letters to put in, take out or change, to make one text of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (y, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let best = (corner + usize::from(x != *y)).min(left + 1).min(*above + 1);
            corner = *above;
            *above = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn only_gos_words_switch_off() {
        for (value, off) in
            [("1", true), ("true", true), ("T", true), ("yes", false), ("on", false), ("0", false), ("", false)]
        {
            assert_eq!(is_disabled(&environment(&[(DISABLE, value)])), off, "{value}");
        }
    }

    #[test]
    fn near_misses_are_recognised_and_other_names_are_not() {
        for name in [
            "NVIDIA_DISABLE_REQUIRES",
            "NVIDIA_DISABLE_REQUIRED",
            "NVIDA_DISABLE_REQUIRE",
            "nvidia_disable_require",
            "NVIDIA_REQUIRE_DISABLE",
            "DISABLE_REQUIRE",
            "NVIDIA_DISABLE_REQUIREMENTS",
            "NVIDIA_DISABLE_REQUIRE_CUDA",
        ] {
            assert!(is_near(name), "{name}");
        }
        for name in [DISABLE, "NVIDIA_REQUIRE_CUDA", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_REQUIRE_JETPACK", "PATH", ""] {
            assert!(!is_near(name), "{name}");
        }
    }

    #[test]
    fn requirements_are_declared_by_name_or_by_an_old_version_variable() {
        assert!(are_declared(&environment(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.4")])));
        assert!(are_declared(&environment(&[("CUDA_VERSION", "10.1.243")])));
        assert!(!are_declared(&environment(&[("NVIDIA_REQUIRE_JETPACK", "csv-mounts=all"), ("PATH", "/bin")])));
        assert!(!are_declared(&environment(&[("NVIDIA_REQUIRE_DISABLE", "1"), ("NVIDIA_REQUIRE_CUDA", "")])));
    }

    proptest! {
        #[test]
        fn the_distance_is_a_distance(a in "[A-C_]{0,8}", b in "[A-C_]{0,8}") {
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
            prop_assert_eq!(distance(&a, &b) == 0, a == b);
            prop_assert!(distance(&a, &b) <= a.len().max(b.len()));
        }
    }
}
