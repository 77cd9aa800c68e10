//! `WWW-Authenticate`: how a registry wants to be convinced.

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password, with each request.
    Basic,
    /// A token of another server.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// Reads the first one that this program can meet. Values stand in quotes and may hold commas.
pub(super) fn parse(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once([' ', '\t']).unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (None, None, None);
    let mut left = rest;
    while let Some((name, after)) = left.split_once('=') {
        let (value, after) = value(after);
        match name.trim_matches([' ', '\t', ',']) {
            name if name.eq_ignore_ascii_case("realm") => realm = Some(value),
            name if name.eq_ignore_ascii_case("service") => service = Some(value),
            name if name.eq_ignore_ascii_case("scope") => scope = Some(value),
            _ => {}
        }
        left = after;
    }
    Some(Challenge::Bearer { realm: realm?, service, scope })
}

/// A value and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.trim_start().strip_prefix('"') else {
        let (value, after) = text.split_once(',').unwrap_or((text, ""));
        return (value.trim().to_owned(), after);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Challenge::Bearer { realm: realm.into(), service: own(service), scope: own(scope) }
    }

    #[test]
    fn values_in_quotes_may_hold_commas_and_quotes() {
        assert_eq!(
            parse(r#"Bearer realm="https://a/t",service="spike,reg", scope="repository:x:pull,push""#),
            Some(bearer("https://a/t", Some("spike,reg"), Some("repository:x:pull,push")))
        );
        assert_eq!(parse(r#"bearer realm="a\"b""#), Some(bearer("a\"b", None, None)));
        assert_eq!(parse("BEARER Realm=https://a , Service=b"), Some(bearer("https://a", Some("b"), None)));
    }

    #[test]
    fn what_is_unknown_or_cut_is_no_challenge_and_no_panic() {
        assert_eq!(parse(r#"Basic realm="x""#), Some(Challenge::Basic));
        assert_eq!(parse("Negotiate"), None);
        assert_eq!(parse(r#"Bearer service="x""#), None);
        assert_eq!(parse(r#"Bearer realm="x"#), Some(bearer("x", None, None)));
        assert_eq!(parse(r#"Bearer realm="x\"#), Some(bearer("x", None, None)));
        assert_eq!(parse(""), None);
    }
}
