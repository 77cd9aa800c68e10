//! `CUDA_VISIBLE_DEVICES`: which of its GPUs a CUDA program sees.
//!
//! CUDA keeps the good entries before the first bad one, and indices count the GPUs that the process
//! can see, so inside a container from 0 (CUDA Programming Guide, appendix "CUDA Environment
//! Variables", 2025-12-15). A word counts as the number that it begins with, as `PyTorch`, which
//! imitates the driver, writes down (`torch/cuda/__init__.py`, `_parse_visible_devices`).

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Place among the visible GPUs.
    Index(u32),
    /// A negative number: the list ends here.
    Negative,
    /// A number with something behind it, `0-3`: CUDA reads the number and drops the rest.
    IndexAnd(u32, String),
    /// `GPU-…`, or as much of it as is unambiguous.
    Uuid(String),
    /// `MIG-<uuid>`
    MigUuid(String),
    /// `MIG-GPU-<uuid>/<GPU instance>/<compute instance>`, the name before driver 470.
    MigOldName(String),
    /// Nothing that CUDA would take: the list ends here.
    Other(String),
}

impl Entry {
    /// The list ends before this entry.
    pub fn ends_the_list(&self) -> bool {
        matches!(self, Self::Negative | Self::Other(_))
    }
}

/// Words that people write to hide all GPUs. CUDA knows none of them, and so hides all. `NoDevFiles` is what
/// Slurm writes where a job has none (Slurm, "Generic Resource (GRES) Scheduling", 2024).
const NOTHING: [&str; 7] = ["NoDevFiles", "none", "void", "null", "false", "no", "cpu"];

/// Reads a value. No entries: all GPUs are hidden.
pub fn parse(value: &str) -> Vec<Entry> {
    let value = value.trim();
    if value.is_empty() || NOTHING.iter().any(|word| value.eq_ignore_ascii_case(word)) {
        return Vec::new();
    }
    value.split(',').map(|word| entry(word.trim())).collect()
}

/// All GPUs are hidden on purpose: nothing, `-1`, or Slurm's word for nothing.
pub fn hides_all(entries: &[Entry]) -> bool {
    matches!(entries.first(), None | Some(Entry::Negative))
}

fn entry(word: &str) -> Entry {
    let text = || word.to_owned();
    // whether CUDA minds the case is not written anywhere
    let starts = |prefix: &str| word.get(..prefix.len()).is_some_and(|s| s.eq_ignore_ascii_case(prefix));
    if starts("MIG-GPU-") {
        return Entry::MigOldName(text());
    } else if starts("MIG-") {
        return Entry::MigUuid(text());
    } else if starts("GPU-") {
        return Entry::Uuid(text());
    }
    let (negative, digits) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let end = digits.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    match (negative, number.is_empty(), rest.is_empty()) {
        (_, true, _) => Entry::Other(text()),
        (true, ..) => Entry::Negative,
        (false, _, true) => Entry::Index(number.parse().unwrap_or(u32::MAX)),
        (false, _, false) => Entry::IndexAnd(number.parse().unwrap_or(u32::MAX), text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_are_read_as_cuda_reads_them() {
        for (value, entries) in [
            ("0,1", vec![Entry::Index(0), Entry::Index(1)]),
            ("0, 2,-1,1", vec![Entry::Index(0), Entry::Index(2), Entry::Negative, Entry::Index(1)]),
            ("0-3", vec![Entry::IndexAnd(0, "0-3".into())]),
            ("all", vec![Entry::Other("all".into())]),
            ("GPU-8932f937", vec![Entry::Uuid("GPU-8932f937".into())]),
            ("gpu-8932f937", vec![Entry::Uuid("gpu-8932f937".into())]),
            ("\"0\"", vec![Entry::Other("\"0\"".into())]),
            ("MIG-0b", vec![Entry::MigUuid("MIG-0b".into())]),
            ("MIG-GPU-0a/1/0", vec![Entry::MigOldName("MIG-GPU-0a/1/0".into())]),
            ("+1", vec![Entry::Index(1)]),
            ("", vec![]),
            ("NoDevFiles", vec![]),
        ] {
            assert_eq!(parse(value), entries, "{value:?}");
        }
    }

    #[test]
    fn hidden_on_purpose_is_nothing_or_a_negative_number_first() {
        for (value, hidden) in
            [("", true), (" ", true), ("-1", true), ("NoDevFiles", true), ("0,-1", false), ("x", false)]
        {
            assert_eq!(hides_all(&parse(value)), hidden, "{value:?}");
        }
        assert!(parse("x")[0].ends_the_list() && parse("-1")[0].ends_the_list() && !parse("7")[0].ends_the_list());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(value in "\\PC{0,60}") {
            let _ = hides_all(&parse(&value));
        }
    }
}
