//! The state that a runtime hands its hooks on stdin.
//!
//! As measured: runc's pid is its own view's (1 at createContainer), crun's is 0 there, youki leaves it
//! out; crun says `created` where the specification says `creating`, adds `root`, and with a user
//! namespace and a device gives `/` as bundle. `oci_spec::runtime::State` takes `{}` for a state and
//! refuses words of status that it does not know, so the fields are taken one by one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::spec::json;
use crate::model::Unseen;

/// A state that names a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The container's id.
    pub id: String,
    /// Its first process, in the pid namespace of whoever the runtime thinks of; `None`: absent or 0.
    pub pid: Option<i32>,
    /// The bundle; crun's may be `/` (see [`State::bundle_is_known`]).
    pub bundle: PathBuf,
    /// Annotations of the spec.
    pub annotations: BTreeMap<String, String>,
    /// crun's own: the root file system. Its presence tells crun from the others.
    pub root: Option<String>,
    /// The runtime's word for how far it is.
    pub status: String,
}

impl State {
    /// Reads a state; the error says what is wrong with it, and the hook then starts the container.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unseen> {
        let refuse = |reason: String| Unseen::new("the state on stdin", reason);
        let text = std::str::from_utf8(bytes).map_err(|_| refuse("no text".to_owned()))?;
        if text.trim_ascii().is_empty() {
            return Err(refuse("empty".to_owned()));
        }
        let names = ["id", "pid", "bundle", "annotations", "root", "status"];
        let [id, pid, bundle, annotations, root, status] = json::fields(text, names).map_err(refuse)?;
        let id = word(id).ok_or_else(|| refuse("it has no id".to_owned()))?;
        let root = word(root);
        let bundle = word(bundle);
        if bundle.is_none() && root.is_none() {
            return Err(refuse("it has no bundle".to_owned()));
        }
        Ok(Self {
            id,
            pid: pid.and_then(|raw| json::value::<i32>(raw.get()).ok()).filter(|pid| *pid > 0),
            bundle: bundle.unwrap_or_default().into(),
            annotations: annotations
                .and_then(|raw| json::entries(raw.get()).ok())
                .unwrap_or_default()
                .into_iter()
                .filter_map(|(name, value)| Some((name, json::value(value.get()).ok()?)))
                .collect(),
            root,
            status: word(status).unwrap_or_default(),
        })
    }

    /// The bundle is one: absolute, and not the `/` that crun gives for some user namespaces.
    pub fn bundle_is_known(&self) -> bool {
        self.bundle.is_absolute() && self.bundle.parent().is_some()
    }
}

fn word(piece: Option<&RawValue>) -> Option<String> {
    json::value::<String>(piece?.get()).ok().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state(text: &str) -> State {
        State::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn as_runc_crun_and_youki_send_it() {
        let runc = state(
            r#"{"ociVersion":"1.0.2-dev","id":"t1","status":"creating","pid":3057,"bundle":"/b","annotations":{"a":"b","c":1}}"#,
        );
        assert_eq!((runc.id.as_str(), runc.pid, runc.bundle.to_str()), ("t1", Some(3057), Some("/b")));
        assert_eq!(runc.annotations, [("a".to_owned(), "b".to_owned())].into());
        assert!(runc.bundle_is_known() && runc.root.is_none());
        let inside = state(r#"{"id":"t1","status":"creating","pid":1,"bundle":"/b"}"#);
        assert_eq!(inside.pid, Some(1));
        let crun = state(r#"{"ociVersion":"1.0","id":"t2","pid":0,"root":"/r","bundle":"/","status":"created"}"#);
        assert_eq!((crun.pid, crun.root.as_deref(), crun.status.as_str()), (None, Some("/r"), "created"));
        assert!(!crun.bundle_is_known());
        let youki = state(r#"{"id":"t3","status":"from-tomorrow","bundle":"/b","annotations":null}"#);
        assert_eq!((youki.pid, youki.status.as_str()), (None, "from-tomorrow"));
    }

    #[test]
    fn what_names_no_container_is_an_error() {
        for text in [
            "",
            "  \n",
            "{}",
            "null",
            "[]",
            "{\"id\":\"a\"",
            r#"{"id":"a"}"#,
            r#"{"bundle":"/b"}"#,
            r#"{"id":"","bundle":"/b"}"#,
            r#"{"id":7,"bundle":"/b"}"#,
        ] {
            assert!(State::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(State::parse(&[0xff, 0xfe]).is_err());
        assert_eq!(state(r#"{"id":"a","bundle":"/b","pid":"many"}"#).pid, None);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in ".{0,200}") {
            let _ = State::parse(text.as_bytes());
        }
    }
}
