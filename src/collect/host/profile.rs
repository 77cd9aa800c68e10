//! Reads a host profile, which `gpu-preflight host --save` wrote, or somebody by hand.

use serde::Deserialize;

use crate::collect::tree::Tree;
use crate::model::host::Carried;
use crate::model::{Host, Unseen};

/// A machine with hundreds of CDI devices has some hundred kilobytes.
pub const LIMIT: usize = 4 << 20;

#[derive(Deserialize)]
struct Kind {
    schema_version: u64,
    kind: String,
}

#[derive(Deserialize)]
struct Profile {
    facts: Facts,
}

#[derive(Deserialize)]
struct Facts {
    host: Carried,
}

/// The machine of a profile; `name` is what the user calls the file.
pub fn profile(tree: &Tree, path: &str, name: &str) -> Result<Host, Unseen> {
    Ok(carried(tree, path, name)?.into_host(name))
}

/// What a profile carries, to be compared with another; named as for [`profile`].
pub fn carried(tree: &Tree, path: &str, name: &str) -> Result<Carried, Unseen> {
    let bytes = tree.read(path, LIMIT)?.ok_or_else(|| Unseen::new(name, "it is absent"))?;
    parse(&bytes, name)
}

/// What kind and version it is must be as it was agreed on; fields that are not known here do not matter.
fn parse(bytes: &[u8], name: &str) -> Result<Carried, Unseen> {
    let wrong = |what: String| Unseen::new(name, format!("it is no host profile: {what}"));
    let kind: Kind = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    if kind.kind != "host-profile" {
        return Err(wrong("its kind is another".to_owned()));
    }
    if kind.schema_version != 1 {
        return Err(wrong(format!("its schema_version is {}, and this program reads 1", kind.schema_version)));
    }
    let profile: Profile = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    Ok(profile.facts.host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Observed;
    use crate::model::host::Platform;

    fn of(text: &str) -> Result<Host, Unseen> {
        Ok(parse(text.as_bytes(), "a.json")?.into_host("a.json"))
    }

    #[test]
    fn what_a_profile_does_not_tell_is_unknown() {
        let host = of(r#"{"schema_version": 1, "kind": "host-profile", "facts": {"host": {
            "driver": {"version": "535.183.01"}, "gpus": null, "toolkit": {"config": "none", "version": null}
        }}}"#)
        .unwrap();
        assert_eq!(host.driver.version, Observed::Known(Some("535.183.01".parse().unwrap())));
        assert_eq!(host.toolkit.config, Observed::Known(None));
        assert_eq!(host.platform, Platform::Native);
        for (fact, unknown) in [
            ("host.gpus", host.gpus.known().err()),
            ("host.pci", host.pci.known().err()),
            ("host.toolkit.version", host.toolkit.version.known().err()),
            ("host.cdi", host.cdi.known().err()),
            ("host.driver.libraries", host.driver.libraries.known().err()),
        ] {
            let unknown = unknown.unwrap();
            assert_eq!((unknown.fact.as_str(), unknown.source.as_str()), (fact, "a.json"));
        }
    }

    #[test]
    fn unknown_fields_are_let_pass_and_what_is_no_profile_is_refused() {
        let good = r#"{"schema_version": 1, "kind": "host-profile", "extra": 1,
                       "facts": {"host": {"new": {}, "gpus": [{"name": "H100", "more": 1}]}}}"#;
        assert_eq!(of(good).unwrap().gpus.seen().unwrap()[0].name.as_deref(), Some("H100"));
        for (text, says) in [
            ("", "no host profile"),
            ("{}", "schema_version"),
            (r#"{"schema_version": 2, "kind": "host-profile", "facts": []}"#, "its schema_version is 2"),
            (r#"{"schema_version": 1, "kind": "report", "facts": {"host": {}}}"#, "its kind is another"),
            (r#"{"schema_version": 1, "kind": "host-profile"}"#, "facts"),
            (
                r#"{"schema_version": 1, "kind": "host-profile", "facts": {"host": {"driver": {"version": "new"}}}}"#,
                "new",
            ),
            (r#"{"schema_version": 1, "kind": "host-profile", "facts": {"host": {"gpus": {}}}}"#, "invalid type"),
        ] {
            let unseen = of(text).unwrap_err();
            assert!(unseen.reason.contains(says), "{text}: {}", unseen.reason);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = parse(&bytes, "a.json");
        }
    }
}
