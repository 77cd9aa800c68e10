//! The one change to a container's specification: our hook, last among its `createRuntime` hooks.
//!
//! The text is not read into a data structure and written out again: a few bytes are put in, and every
//! other byte stays, so unknown fields, big numbers, order and layout survive.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::own::HOOK_NAME;

/// Bytes of `hooks` in a specification of use: some kilobytes.
const MOST_HOOKS: usize = 1 << 20;

/// An entry of `hooks.createRuntime`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Hook {
    /// The program, an absolute path.
    pub(super) path: String,
    /// Its arguments, its name first.
    pub(super) args: Vec<String>,
    /// Its environment. Never empty: runc gives a hook without one that of the container's image.
    pub(super) env: Vec<String>,
    /// Seconds after which the runtime kills it.
    pub(super) timeout: u32,
}

/// What becomes of a specification.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The text with our hook in it.
    Added(Vec<u8>),
    /// It has our hook already, in whatever stage: its program and arguments.
    There { path: String, args: Vec<String> },
}

/// Puts our hook into a specification. `None`: it could not be understood; that is the real runtime's to say.
pub(super) fn with_hook(spec: &[u8], hook: &Hook) -> Option<Edit> {
    let text = std::str::from_utf8(spec).ok()?;
    let entry = serde_json::to_string(hook).ok()?;
    let top = Members::of(text)?;
    let (place, piece) = match top.only("hooks").ok()? {
        None => (end_of(text)?, member("hooks", &stages(&entry), top.0.is_empty())),
        Some(hooks) if hooks.get() == "null" => (range_of(hooks, text)?, stages(&entry)),
        // no engine writes so many: they are the runtime's to refuse, and would take hundreds of megabytes to look at
        Some(hooks) if hooks.get().len() > MOST_HOOKS => return None,
        Some(hooks) => {
            if let Some(ours) = ours(hooks).ok()? {
                return Some(ours);
            }
            let inside = Members::of(hooks.get())?;
            let (place, piece) = match inside.only("createRuntime").ok()? {
                None => (end_of(hooks.get())?, member("createRuntime", &list(&entry), inside.0.is_empty())),
                Some(stage) if stage.get() == "null" => (range_of(stage, hooks.get())?, list(&entry)),
                Some(stage) => {
                    let entries: Vec<&RawValue> = serde_json::from_str(stage.get()).ok()?;
                    let end = end_of(stage.get())?.start + range_of(stage, hooks.get())?.start;
                    (end..end, if entries.is_empty() { entry } else { format!(",{entry}") })
                }
            };
            let start = range_of(hooks, text)?.start;
            (place.start + start..place.end + start, piece)
        }
    };
    let mut edited = Vec::with_capacity(spec.len() + piece.len());
    edited.extend_from_slice(spec.get(..place.start)?);
    edited.extend_from_slice(piece.as_bytes());
    edited.extend_from_slice(spec.get(place.end..)?);
    Some(Edit::Added(edited))
}

fn list(entry: &str) -> String {
    format!("[{entry}]")
}

fn stages(entry: &str) -> String {
    format!("{{\"createRuntime\":[{entry}]}}")
}

fn member(name: &str, value: &str, first: bool) -> String {
    format!("{}\"{name}\":{value}", if first { "" } else { "," })
}

/// Our hook, if it is there by the name of its program or by what it is called with.
fn ours(hooks: &RawValue) -> Result<Option<Edit>, Doubtful> {
    let stages: serde_json::Map<String, Value> = serde_json::from_str(hooks.get()).map_err(|_| Doubtful)?;
    let word = |word: Option<&Value>| word.and_then(Value::as_str).unwrap_or_default().to_owned();
    let named_ours = |word: &str| word.rsplit('/').next() == Some(HOOK_NAME);
    Ok(stages.values().filter_map(Value::as_array).flatten().find_map(|entry| {
        let path = word(entry.get("path"));
        let words: Vec<String> =
            entry.get("args").and_then(Value::as_array).into_iter().flatten().map(|arg| word(Some(arg))).collect();
        let is_ours = named_ours(&path) || words.first().is_some_and(|name| named_ours(name));
        is_ours.then(|| Edit::There { path, args: words.into_iter().skip(1).collect() })
    }))
}

/// The bracket that closes an object or array, as an empty place before it.
fn end_of(text: &str) -> Option<Range<usize>> {
    let at = text.rfind(['}', ']'])?;
    Some(at..at)
}

/// Where a value stands in the text that it was read from.
fn range_of(value: &RawValue, text: &str) -> Option<Range<usize>> {
    let start = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some(start..start + value.get().len())
}

/// Which of several members counts is not certain, or what is there has no members.
#[derive(Debug)]
struct Doubtful;

/// The members of an object in their order, the values as they are written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    fn of(object: &'a str) -> Option<Self> {
        serde_json::from_str(object).ok()
    }

    /// The member of this name, if there is one. Doubtful is a name that is there twice, or in other case:
    /// runtimes differ in which of them counts (Go's decoder even merges them), so nothing is safe to add.
    fn only(&self, name: &str) -> Result<Option<&'a RawValue>, Doubtful> {
        let mut same = self.0.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        match (same.next(), same.next()) {
            (None, _) => Ok(None),
            (Some((key, value)), None) if key == name => Ok(Some(value)),
            _ => Err(Doubtful),
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A member's name, borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn hook() -> Hook {
        Hook {
            path: "/usr/libexec/gpu-preflight/gpu-preflight-hook".into(),
            args: vec![HOOK_NAME.into(), "--stage".into(), "createRuntime".into()],
            env: vec!["PATH=/usr/bin:/bin".into()],
            timeout: 5,
        }
    }

    const ENTRY: &str = r#"{"path":"/usr/libexec/gpu-preflight/gpu-preflight-hook","args":["gpu-preflight-hook","--stage","createRuntime"],"env":["PATH=/usr/bin:/bin"],"timeout":5}"#;

    fn edit(text: &str) -> Option<String> {
        match with_hook(text.as_bytes(), &hook())? {
            Edit::Added(bytes) => Some(String::from_utf8(bytes).unwrap()),
            Edit::There { .. } => None,
        }
    }

    #[test]
    fn it_comes_last_and_every_other_byte_stays() {
        for (before, behind) in [
            ("{", r"}"),
            ("{ \n", "}\n"),
            (r#"{"big":123456789012345678901234567890.0e+1,"x":[1 , 2],"x":"\u00e4""#, "}"),
            (r#"{"hooks":{"createRuntime":["#, r"]}}"),
            (r#"{"hooks" : { "createRuntime" : [ {"path":"/n","later":1.50} "#, r#"], "poststop":[]} , "z":1}"#),
            (r#"{"hooks":{"prestart":[{"path":"/n"}]"#, "}}"),
            (r#"{"a":1,"hooks":{"#, r#"},"b":{"createRuntime":[]}}"#),
            (r#"{"\u0068ooks":{"createRuntim\u0065":["#, "]}}"),
        ] {
            let out = edit(&format!("{before}{behind}")).unwrap();
            let piece = out.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind)).unwrap();
            assert!(piece.contains(ENTRY), "{out}");
            let parsed: Value = serde_json::from_str(&out).unwrap();
            let last = parsed["hooks"]["createRuntime"].as_array().unwrap().last().cloned();
            assert_eq!(last, serde_json::from_str(ENTRY).ok(), "{out}");
        }
    }

    #[test]
    fn null_counts_as_absent() {
        let both = format!(r#"{{"hooks":{{"createRuntime":[{ENTRY}]}},"z":1}}"#);
        assert_eq!(edit(r#"{"hooks":null,"z":1}"#).as_deref(), Some(both.as_str()));
        assert_eq!(edit(r#"{"hooks":{"createRuntime":null},"z":1}"#).as_deref(), Some(both.as_str()));
    }

    #[test]
    fn a_hook_of_ours_is_enough_in_any_stage() {
        for stage in ["prestart", "createRuntime", "createContainer", "startContainer"] {
            for (entry, path, args) in [
                (r#"{"path":"/opt/gpu-preflight-hook"}"#, "/opt/gpu-preflight-hook", &[][..]),
                (r#"{"path":"/x","args":["gpu-preflight-hook","--log","/l"]}"#, "/x", &["--log", "/l"]),
            ] {
                let text = format!(r#"{{"hooks":{{"{stage}":[{{"path":"/n"}},{entry}]}}}}"#);
                let there = Edit::There { path: path.into(), args: args.iter().map(|arg| (*arg).into()).collect() };
                assert_eq!(with_hook(text.as_bytes(), &hook()), Some(there));
            }
        }
        for other in [r#"{"path":"/x","args":["x","gpu-preflight-hook"]}"#, r#"{"path":"/gpu-preflight-hook/x"}"#, "7"]
        {
            assert!(edit(&format!(r#"{{"hooks":{{"createRuntime":[{other}]}}}}"#)).is_some(), "{other}");
        }
    }

    #[test]
    fn what_cannot_be_understood_stays() {
        let deep = format!(r#"{{"hooks":{{"createRuntime":[{}1{}]}}}}"#, "[".repeat(50_000), "]".repeat(50_000));
        for odd in [
            "",
            "[]",
            "null",
            "7",
            "{",
            "{}x",
            "{\"a\":}",
            "\u{feff}{}",
            r#"{"hooks":[]}"#,
            r#"{"hooks":"x"}"#,
            r#"{"hooks":{"createRuntime":{}}}"#,
            r#"{"hooks":{"createRuntime":7}}"#,
            r#"{"hooks":{},"hooks":{}}"#,
            r#"{"Hooks":{}}"#,
            r#"{"hooks":{"createRuntime":[],"createRuntime":[]}}"#,
            r#"{"hooks":{"createruntime":[]}}"#,
            &deep,
        ] {
            assert_eq!(with_hook(odd.as_bytes(), &hook()), None, "{}", &odd[..odd.len().min(60)]);
        }
        assert_eq!(with_hook(b"{\"a\":\"\xff\"}", &hook()), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-zA-Z\"\\\\{}\\[\\],:]{0,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// A specification that has none, some or all of what matters here.
    fn any_spec() -> impl Strategy<Value = Value> {
        let entries = || proptest::collection::vec(any_json(), 0..3).prop_map(Value::from);
        let stages =
            (entries(), proptest::option::of(prop_oneof![entries(), Just(Value::Null)])).prop_map(|(other, ours)| {
                let mut stages = json!({"createContainer": other});
                if let Some(ours) = ours {
                    stages["createRuntime"] = ours;
                }
                stages
            });
        let hooks = proptest::option::of(prop_oneof![stages, Just(Value::Null), Just(json!({}))]);
        (proptest::collection::btree_map("[a-z]{1,5}", any_json(), 0..4), hooks).prop_map(|(rest, hooks)| {
            let mut spec = Value::Object(rest.into_iter().filter(|(key, _)| key != "hooks").collect());
            if let Some(hooks) = hooks {
                spec["hooks"] = hooks;
            }
            spec
        })
    }

    proptest! {
        #[test]
        fn only_the_hook_is_added_and_only_once(spec in any_spec(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&spec) } else { serde_json::to_string(&spec) }.unwrap();
            let spec: Value = serde_json::from_str(&text).unwrap();
            let edited = edit(&text).unwrap();
            prop_assert_eq!(edit(&edited), None);

            let mut expected = spec;
            if expected["hooks"].is_null() {
                expected["hooks"] = json!({});
            }
            if expected["hooks"]["createRuntime"].is_null() {
                expected["hooks"]["createRuntime"] = json!([]);
            }
            expected["hooks"]["createRuntime"].as_array_mut().unwrap().push(serde_json::from_str(ENTRY).unwrap());
            prop_assert_eq!(serde_json::from_str::<Value>(&edited).unwrap(), expected);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = with_hook(&bytes, &hook());
        }

        #[test]
        fn a_damaged_specification_is_survived_and_never_made_worse(spec in any_spec(), at: proptest::sample::Index, byte: u8) {
            let mut bytes = serde_json::to_vec(&spec).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Some(Edit::Added(edited)) = with_hook(&bytes, &hook()) {
                prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok() == serde_json::from_slice::<Value>(&edited).is_ok());
            }
        }
    }
}
