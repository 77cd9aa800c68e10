//! Whole files: what engines write, what they may write one day, what nobody should write.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::collect::container::testing;

fn parse(text: &str) -> Spec {
    Spec::parse(text.as_bytes().to_vec(), "config.json")
}

#[test]
fn a_word_from_tomorrow_in_every_enum_loses_only_its_piece() {
    let mut spec = testing::with_cdi(testing::plain(&["PATH=/bin"]));
    spec["process"]["capabilities"]["bounding"] = json!(["CAP_TOMORROW", "CAP_CHOWN"]);
    spec["process"]["rlimits"] = json!([{"type": "RLIMIT_TOMORROW", "hard": 1, "soft": 1}]);
    spec["process"]["scheduler"] = json!({"policy": "SCHED_TOMORROW"});
    spec["linux"]["namespaces"] = json!([{"type": "tomorrow"}]);
    spec["linux"]["seccomp"] = json!({"defaultAction": "SCMP_ACT_TOMORROW", "architectures": ["SCMP_ARCH_TOMORROW"]});
    spec["linux"]["devices"][0]["type"] = json!("tomorrow");
    spec["mounts"][0] = json!({"source": "no destination"});
    spec["tomorrow"] = json!({"a": [1, 2, {}]});
    let spec = testing::parse(&spec);
    assert_eq!(spec.process.user.known().unwrap().capabilities.unwrap().bounding, 1);
    let devices = spec.linux.devices.known().unwrap();
    assert_eq!((devices.items.len(), devices.unread.len()), (3, 1));
    let mounts = spec.mounts.known().unwrap();
    assert_eq!((mounts.items.len(), mounts.unread.len()), (4, 1));
    assert_eq!(spec.hooks.known().unwrap().items.len(), 1);
    assert_eq!(spec.root_path(), Some("/var/lib/docker/overlay2/c0ffee/merged"));
}

#[test]
fn what_is_absent_is_known_but_for_the_mounts() {
    let spec = parse(r#"{"process":{"env":["A=1"]}}"#);
    assert!(spec.no_mounts_key && spec.mounts.known().is_err());
    assert!(spec.hooks.known().unwrap().items.is_empty() && spec.linux.devices.known().unwrap().items.is_empty());
    assert!(spec.annotations.known().unwrap().is_empty());
    assert_eq!(spec.root_path(), None);
    let spec = parse(r#"{"mounts":[]}"#);
    assert!(!spec.no_mounts_key && spec.mounts.known().unwrap().items.is_empty());
    assert!(spec.process.environment.known().is_err());
}

#[test]
fn what_is_no_spec_is_unknown() {
    for text in ["", "null", "{}", "[]", "{", "{\"process\":", "\u{feff}{}", "true", "\"x\""] {
        let spec = parse(text);
        assert!(spec.process.environment.known().is_err() && spec.hooks.known().is_err(), "{text}");
    }
    let long = Spec::parse(vec![b' '; MOST_BYTES + 1], "config.json");
    assert!(long.hooks.known().unwrap_err().reason.contains("longer"));
}

#[test]
fn what_follows_the_object_and_bytes_that_are_no_text_do_not_matter() {
    let mut bytes = br#"{"process":{"env":["A=x"#.to_vec();
    bytes.extend([0xff, 0xfe, 0xe2, 0x82]);
    bytes.extend(br#"","B=2"]}} and more"#);
    let spec = Spec::parse(bytes, "config.json");
    let env = spec.process.environment.known().unwrap();
    assert_eq!(env[0], ("A".to_owned(), "x????".to_owned()));
    assert_eq!(env[1].1, "2");
}

#[test]
fn nesting_costs_no_stack() {
    for depth in [10_000, 1_000_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for place in ["x", "mounts", "hooks", "process", "linux", "annotations", "root", "hostname"] {
            let spec = parse(&format!(r#"{{"{place}":{deep},"annotations":{{"a":"b"}}}}"#));
            assert_eq!(spec.annotations.known().unwrap()["a"], "b", "{place}");
        }
    }
}

#[test]
fn a_piece_that_does_not_fit_is_unknown_and_the_others_stay() {
    let mut spec = testing::plain(&["A=1"]);
    spec["mounts"] = json!(vec![json!({"destination": "/a"}); json::MOST_ELEMENTS + 1]);
    spec["annotations"] = json!({"a": "x".repeat(json::MOST_BYTES)});
    let spec = testing::parse(&spec);
    assert!(spec.mounts.known().is_err() && spec.annotations.known().is_err());
    assert_eq!(spec.process.environment.known().unwrap().len(), 1);
}

#[test]
fn hooks_keep_their_places() {
    let spec = testing::with_hook(testing::plain(&[]), "createRuntime", "/a", &["a"]);
    let spec = testing::with_hook(testing::with_hook(spec, "prestart", "/b", &[]), "createRuntime", "/c", &[]);
    let spec = testing::parse(&spec);
    let hooks: Vec<_> =
        spec.hooks.known().unwrap().items.iter().map(|h| (h.stage.as_str(), h.place, h.path.as_str())).collect();
    assert_eq!(hooks, [("prestart", 0, "/b"), ("createRuntime", 0, "/a"), ("createRuntime", 1, "/c")]);
}

proptest! {
    #[test]
    fn bytes_of_any_kind_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        Spec::parse(bytes, "config.json");
    }

    #[test]
    fn a_spec_with_errors_is_read_to_an_end(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        shorten in any::<bool>(),
    ) {
        let mut bytes = testing::with_cdi(testing::plain(&["A=1"])).to_string().into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if shorten {
            bytes.truncate(cut.index(bytes.len()));
        }
        Spec::parse(bytes, "config.json");
    }
}
