//! Data runs one way: who may import whom, as the crate's documentation says.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::repository;

/// What a module of the first level may name besides itself. `commands` and the programs know all.
fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    match layer {
        "model" => Some(&[]),
        "knowledge" | "policy" | "report" | "runtime" | "register" => Some(&["model"]),
        "collect" | "checks" => Some(&["model", "knowledge"]),
        _ => None,
    }
}

#[test]
fn no_layer_imports_one_that_it_must_not_know() {
    let src = repository().join("src");
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in rust_files(&src) {
        let module = module_path(file.strip_prefix(&src).expect("below src"));
        let Some(layer) = module.first().cloned() else { continue };
        let Some(allowed) = allowed(&layer) else { continue };
        let text = std::fs::read_to_string(&file).expect("a source file");
        for (line, target) in first_level_names(&text, &module) {
            if target != layer && !allowed.contains(&target.as_str()) {
                wrong.push(format!("{}:{line}: {layer} must not know {target}", file.display()));
            }
        }
        seen.insert(layer);
    }
    assert!(seen.len() >= 7, "only the layers {seen:?} were seen");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn rust_files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a source directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files
}

/// `collect/host/pci.rs` is the module `collect::host::pci`; programs and lib.rs are none.
fn module_path(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    match parts.first().map(String::as_str) {
        Some("bin" | "main" | "lib") => Vec::new(),
        _ => parts,
    }
}

/// Every module of the first level that a file names by `crate::` or by as many `super::` as lead to the crate's
/// root, with its line. Comments are no imports; a path in a `mod tests { }` counts, one `super` further down.
fn first_level_names(text: &str, module: &[String]) -> Vec<(usize, String)> {
    let code = without_comments_and_strings(text);
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut inline: Vec<usize> = Vec::new();
    for (number, line) in code.lines().enumerate() {
        if is_inline_module(line) {
            inline.push(depth);
        }
        let ups = module.len() + inline.len();
        for prefix in ["crate::".to_owned(), "gpu_preflight::".to_owned(), "super::".repeat(ups)] {
            for at in occurrences(line, &prefix) {
                found.extend(names_after(&code, number, &line[at + prefix.len()..]).map(|n| (number + 1, n)));
            }
        }
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth = depth.saturating_sub(1);
                    if inline.last() == Some(&depth) {
                        inline.pop();
                    }
                }
                _ => {}
            }
        }
    }
    found
}

fn is_inline_module(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    line.starts_with("mod ") && line.ends_with('{')
}

/// Where a path begins with `prefix`: not in the middle of a longer path or name.
fn occurrences<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = usize> + 'a {
    line.match_indices(prefix).map(|(at, _)| at).filter(|at| {
        let before = line[..*at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == ':'))
    })
}

/// The names that a path goes on with: one, or those of a `{…}` list, which may go over several lines.
fn names_after<'a>(code: &'a str, number: usize, rest: &'a str) -> Box<dyn Iterator<Item = String> + 'a> {
    let Some(list) = rest.strip_prefix('{') else {
        return Box::new(std::iter::once(identifier(rest)).filter(|n| !n.is_empty()));
    };
    let mut text = list.to_owned();
    for line in code.lines().skip(number + 1).take(50) {
        text.push_str(line);
    }
    let mut depth = 0;
    let mut names = Vec::new();
    let mut start = true;
    for (at, c) in text.char_indices() {
        if depth == 0 && start && (c.is_alphabetic() || c == '_') {
            names.push(identifier(&text[at..]));
            start = false;
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            _ => {}
        }
    }
    Box::new(names.into_iter())
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Blanks out comments and the contents of string literals, so that neither words nor braces in them count.
fn without_comments_and_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw_string(rest) {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            rest[open..].find(&close).map_or(rest.len(), |end| open + end + close.len())
        } else if c == '"' {
            end_of_string(rest)
        } else if let Some(end) = char_literal(rest) {
            end
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    out
}

fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.bytes().take_while(|b| *b == b'#').count();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn end_of_string(text: &str) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `'{'` and `'\n'` are literals, `'a` is a lifetime.
fn char_literal(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    let from = if first == '\\' { 2 } else { first.len_utf8() };
    let end = inner.get(from..)?.find('\'')?;
    (first == '\\' && end < 10 || end == 0).then_some(1 + from + end + 1)
}

#[test]
fn names_are_found_wherever_a_path_to_the_root_begins() {
    let text = r#"
use crate::model::Host; // crate::comment
use crate::{
    checks::{self, nodes},
    policy,
};
use super::super::report::line;
use super::sibling;
fn f() -> &'static str { let _ = '{'; gpu_preflight::commands::x(); "crate::string" }
mod tests {
    use super::super::super::runtime;
    use super::super::uncle;
}
use super::super::knowledge;
"#;
    let module = ["collect".to_owned(), "pci".to_owned()];
    let names: Vec<_> = first_level_names(text, &module).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["model", "checks", "policy", "report", "commands", "runtime", "knowledge"]);
}
