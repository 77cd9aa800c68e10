//! From a template and its arguments to words that are safe to print.
//!
//! Values that come from an image or a spec are the attacker's: quoted, escaped, cut. And engines
//! reclassify errors by phrases that a runtime's text contains, so the finished text is filtered
//! for these whatever a quoted value says.

use std::fmt::Write as _;

use super::check::Arg;

/// A foreign value is cut at this many bytes.
pub const FOREIGN_LIMIT: usize = 80;

/// Phrases by which docker and podman decide on exit codes, restart policies and added (misleading)
/// sentences, in any case form. Sources: moby `daemon/errors.go` at b985e231 (2026-08-23), podman
/// `libpod/oci_util.go` at c6580b4a (2026-05-19).
pub const FORBIDDEN: [&str; 7] = [
    "permission denied",
    "operation not permitted",
    "no such file or directory",
    "executable file not found",
    "not found",
    "is a directory",
    "not a directory",
];

/// Foreign text for a message: in double quotes, control and non-ASCII bytes escaped, cut.
pub fn quote(foreign: &str) -> String {
    let mut out = String::with_capacity(foreign.len().min(FOREIGN_LIMIT) + 2);
    out.push('"');
    for c in foreign.chars() {
        let start = out.len();
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            _ => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
        if out.len() > FOREIGN_LIMIT + 1 {
            out.truncate(start);
            out.push_str("...");
            break;
        }
    }
    out.push('"');
    out
}

/// The name of an argument, which stands in braces in a template.
pub fn is_argument(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Puts the arguments into a template. An argument that the template names and nobody gave is a defect of a check,
/// which its tests show; a program that is in use says `{name}` and goes on.
pub fn fill(template: &str, args: &[(&'static str, Arg)]) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        let Some(close) = after.find('}') else {
            rest = &rest[open..];
            break;
        };
        let wanted = &after[..close];
        match args.iter().find(|(name, _)| *name == wanted) {
            Some((_, Arg::Ours(value))) => out.push_str(value),
            Some((_, Arg::Foreign(value))) => out.push_str(&quote(value)),
            None => {
                debug_assert!(!is_argument(wanted), "nobody gave {wanted} for: {template}");
                out.push_str(&rest[open..=open + 1 + close]);
            }
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    out
}

/// Breaks every forbidden phrase by putting `_` for its first blank. Works on the finished text.
pub fn without_forbidden_phrases(text: &str) -> String {
    let mut out = text.to_owned();
    let mut lower = out.to_ascii_lowercase();
    for phrase in FORBIDDEN {
        while let Some(at) = lower.find(phrase) {
            let blank = at + phrase.find(' ').unwrap_or(0);
            out.replace_range(blank..=blank, "_");
            lower.replace_range(blank..=blank, "_");
        }
    }
    out
}

/// Cuts a text at a number of bytes, at the end of a character, and says so with dots.
pub fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(3);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn foreign_text_is_quoted_escaped_and_cut() {
        assert_eq!(quote("all"), "\"all\"");
        assert_eq!(quote("a\"b\\c\u{1b}[2J\nd"), r#""a\"b\\c\u{1b}[2J\u{a}d""#);
        assert_eq!(quote("grün"), r#""gr\u{fc}n""#);
        assert!(quote(&"x".repeat(500)).len() <= FOREIGN_LIMIT + 5);
    }

    #[test]
    fn arguments_are_put_where_the_template_names_them() {
        let args = [("node", Arg::Ours("/dev/nvidia0".into())), ("value", Arg::Foreign("{node}".into()))];
        assert_eq!(fill("{node} is absent; {value} wants it{", &args), "/dev/nvidia0 is absent; \"{node}\" wants it{");
        assert_eq!(fill("docker inspect -f '{{.Id}}'", &args), "docker inspect -f '{{.Id}}'");
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "nobody gave absent")]
    fn an_argument_that_nobody_gave_is_a_defect() {
        fill("{absent} gave", &[]);
    }

    #[test]
    fn no_phrase_that_engines_look_for_gets_out() {
        let text = without_forbidden_phrases("Permission Denied; executable file not found; is a directory");
        assert_eq!(text, "Permission_Denied; executable_file not_found; is_a directory");
    }

    proptest! {
        #[test]
        fn whatever_goes_in_no_phrase_comes_out(parts in proptest::collection::vec(prop_oneof![
            Just("permission denied".to_owned()), Just("NOT FOUND".to_owned()), Just("not ".to_owned()), Just("a directory".to_owned()), Just("is ".to_owned()), "\\PC{0,5}"], 0..12)) {
            let out = without_forbidden_phrases(&parts.concat()).to_ascii_lowercase();
            for phrase in FORBIDDEN {
                prop_assert!(!out.contains(phrase));
            }
        }

        #[test]
        fn quoting_yields_short_printable_ascii(text in "\\PC{0,300}|[\\x00-\\x20\\x7f-\\u{ff}]{0,300}") {
            let quoted = quote(&text);
            prop_assert!(quoted.len() <= FOREIGN_LIMIT + 5);
            prop_assert!(quoted.bytes().all(|b| (0x20..0x7f).contains(&b)));
        }
    }
}
