//! Names of images in archives and layouts.

/// Named in a message.
const MOST_NAMED: usize = 12;

/// An image's name is the one asked for: the same, the same but for the registry and repository above it, or its
/// tag alone.
pub(super) fn is(name: &str, asked: &str) -> bool {
    let with_tag = |text: &str| {
        let tagged = text.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
        if tagged { text.to_owned() } else { format!("{text}:latest") }
    };
    let ends = |asked: &str| name.strip_suffix(asked).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', ':']));
    ends(asked) || ends(&with_tag(asked))
}

/// Names for a message, not too many of them.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = names.collect();
    all.dedup();
    let more = all.len().saturating_sub(MOST_NAMED);
    all.truncate(MOST_NAMED);
    let names = all.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_in_full_or_by_what_tells_it_apart() {
        let name = "docker.io/library/torch:2.9";
        for asked in [name, "library/torch:2.9", "torch:2.9", "2.9"] {
            assert!(is(name, asked), "{asked}");
        }
        for asked in ["orch:2.9", ".9", "torch", "torch:2", ""] {
            assert!(!is(name, asked), "{asked}");
        }
        assert!(is("127.0.0.1:5000/x:latest", "x") && is("x:latest", "x:latest") && is("2.9", "2.9"));
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        assert!(list(names.iter().map(String::as_str)).ends_with("11 and 8 more"));
        assert_eq!(list(["a", "a", "b"].into_iter()), "a, b");
    }
}
