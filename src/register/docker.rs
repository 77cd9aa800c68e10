//! docker's `daemon.json`: our runtime beside the others, and as the default, if that is wanted.
//!
//! An existing default runtime is chained: ours is told its program and calls it. A container remembers the name of
//! its runtime, and does not start once that is gone ("unknown or invalid runtime name", docker 26); so the name can
//! be left, leading to the real runtime itself.

use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;
use serde_json::Value;

use super::json::{Document, SetMember as _};
use super::{RUNTIME, RUNTIME_NAME, Trouble, already_default, is_ours, is_runc};

/// What dockerd calls its own runtime, in the words of several of its releases.
const STOCK: [&str; 4] = ["runc", "io.containerd.runc.v2", "io.containerd.runc.v1", "io.containerd.runtime.v1.linux"];

/// Adds our runtime; with `default` every container takes it that names no other.
pub fn register(text: Option<&str>, default: bool) -> Result<String, Trouble> {
    let document = Document::parse(text)?;
    let runtimes = document.object("runtimes")?;
    let present = document.text("default-runtime").map(str::to_owned);
    if !default && present.as_deref() == Some(RUNTIME_NAME) {
        return Err(already_default("docker"));
    }
    let chained = match present.as_deref() {
        Some(name) if default && name != RUNTIME_NAME && !STOCK.contains(&name) => chained(&document, name)?,
        Some(RUNTIME_NAME) => arguments(entry(&document, RUNTIME_NAME)),
        _ => Vec::new(),
    };
    let wanted = if chained.is_empty() {
        json!({"path": RUNTIME})
    } else {
        CstInputValue::Object(vec![
            ("path".to_owned(), CstInputValue::String(RUNTIME.to_owned())),
            (
                "runtimeArgs".to_owned(),
                CstInputValue::Array(chained.iter().cloned().map(CstInputValue::String).collect()),
            ),
        ])
    };
    let is_so = entry(&document, RUNTIME_NAME).is_some_and(|entry| {
        entry.get("path").and_then(Value::as_str) == Some(RUNTIME) && arguments(Some(entry)) == chained
    });
    if !is_so {
        runtimes.append_or_set(RUNTIME_NAME, wanted);
    }
    if default && present.as_deref() != Some(RUNTIME_NAME) {
        document.top()?.append_or_set("default-runtime", CstInputValue::String(RUNTIME_NAME.to_owned()));
    }
    Ok(document.into_text())
}

/// Takes our runtime out; what stood there as the default before is the default again. With `remembered` its name
/// stays and leads to the real runtime. `None`: nothing is left in a file that was not there before.
pub fn unregister(text: &str, before: Option<&str>, remembered: bool) -> Result<Option<String>, Trouble> {
    let document = Document::parse(Some(text))?;
    let earlier = before.and_then(|before| serde_json::from_str::<Value>(before).ok()).unwrap_or(Value::Null);
    let top = document.top()?;
    if document.text("default-runtime") == Some(RUNTIME_NAME) {
        match default_before(&document, &earlier) {
            Some(name) => top.append_or_set("default-runtime", CstInputValue::String(name)),
            None => top.take_out("default-runtime"),
        }
    }
    if let Some(ours) = entry(&document, RUNTIME_NAME) {
        let runtimes = document.object("runtimes")?;
        if remembered {
            let is_ours = ours.get("path").and_then(Value::as_str).is_some_and(is_ours);
            if is_ours {
                runtimes.append_or_set(RUNTIME_NAME, passed_through(ours));
            }
        } else {
            runtimes.take_out(RUNTIME_NAME);
            if runtimes.properties().is_empty() && earlier.get("runtimes").is_none() {
                top.take_out("runtimes");
            }
        }
    }
    let is_left = before.is_some() || !top.properties().is_empty();
    Ok(is_left.then(|| document.into_text()))
}

/// Without ours the file names no default runtime. A reload leaves a running docker the one it has then (20.10 and 26,
/// measured 2026-11), and one that is gone from the runtimes ends docker 20.10 with a panic.
pub fn loses_its_default(now: &str, after: Option<&str>) -> bool {
    default_of(now).as_deref() == Some(RUNTIME_NAME) && after.and_then(default_of).is_none()
}

/// The default runtime that a file names.
pub fn default_of(text: &str) -> Option<String> {
    Document::parse(Some(text)).ok()?.text("default-runtime").map(str::to_owned)
}

fn entry<'d>(document: &'d Document, name: &str) -> Option<&'d Value> {
    document.value().get("runtimes")?.get(name)
}

/// The entry's `runtimeArgs`.
fn arguments(entry: Option<&Value>) -> Vec<String> {
    let list = entry.and_then(|entry| entry.get("runtimeArgs")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What our runtime is told, so that it calls this one.
fn chained(document: &Document, name: &str) -> Result<Vec<String>, Trouble> {
    let entry = entry(document, name);
    let Some(program) = entry.and_then(|entry| entry.get("path")).and_then(Value::as_str) else {
        return Err(Trouble::refused(
            format!("its default runtime {name:?} is no OCI program that another could call"),
            "register ours beside it with --no-default, and start containers with --runtime gpu-preflight",
        ));
    };
    let own = arguments(entry);
    if is_runc(program) && own.is_empty() {
        return Ok(Vec::new());
    }
    Ok(["--runtime".to_owned(), program.to_owned()].into_iter().chain(own).collect())
}

/// The default before ours: by the text that stood there, else by the program that ours was told.
fn default_before(document: &Document, earlier: &Value) -> Option<String> {
    // one that has left the file since, docker would not start with
    let is_there = |name: &&str| STOCK.contains(name) || entry(document, name).is_some();
    let earlier = earlier.get("default-runtime").and_then(Value::as_str);
    let earlier = earlier.filter(|name| *name != RUNTIME_NAME).filter(is_there);
    let told = || {
        let told = told(entry(document, RUNTIME_NAME)?)?;
        let runtimes = document.value().get("runtimes")?.as_object()?;
        let same = |(name, entry): (&String, &Value)| {
            (name != RUNTIME_NAME && entry.get("path").and_then(Value::as_str) == Some(told.as_str()))
                .then(|| name.clone())
        };
        runtimes.iter().find_map(same)
    };
    earlier.map(str::to_owned).or_else(told)
}

/// The program behind `--runtime` of our entry.
fn told(entry: &Value) -> Option<String> {
    let arguments = arguments(Some(entry));
    let at = arguments.iter().position(|argument| argument == "--runtime")?;
    arguments.get(at + 1).cloned()
}

/// Our name for the real runtime.
fn passed_through(ours: &Value) -> CstInputValue {
    let path = CstInputValue::String(told(ours).unwrap_or_else(|| "runc".to_owned()));
    let arguments = arguments(Some(ours));
    let behind = arguments.iter().position(|argument| argument == "--runtime").map_or(0, |at| at + 2);
    let further: Vec<_> = arguments.into_iter().skip(behind).map(CstInputValue::String).collect();
    let mut members = vec![("path".to_owned(), path)];
    if !further.is_empty() {
        members.push(("runtimeArgs".to_owned(), CstInputValue::Array(further)));
    }
    CstInputValue::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file names our runtime, as ours or as a name that leads past us.
    fn names_ours(text: &str) -> bool {
        Document::parse(Some(text)).is_ok_and(|document| entry(&document, RUNTIME_NAME).is_some())
    }

    /// The name leads to our program, and not past it.
    fn leads_to_ours(text: &str) -> bool {
        Document::parse(Some(text)).is_ok_and(|document| {
            entry(&document, RUNTIME_NAME).and_then(|entry| entry.get("path")?.as_str()).is_some_and(is_ours)
        })
    }

    const ALONE: &str = r#"{
  "runtimes": {
    "gpu-preflight": {
      "path": "/usr/libexec/gpu-preflight/gpu-preflight-runtime"
    }
  },
  "default-runtime": "gpu-preflight"
}
"#;

    const NVIDIA: &str = r#"{
    "log-level": "warn",
    "default-runtime": "nvidia",
    "runtimes": {
        "nvidia": {
            "args": [],
            "path": "nvidia-container-runtime"
        }
    },
    "data-root": "/data/docker"
}"#;

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// What one entry becomes after it was put in and taken out again.
    fn there_and_back(text: &str, default: bool) -> String {
        let with = register(Some(text), default).unwrap();
        assert_eq!(register(Some(&with), default).as_deref(), Ok(with.as_str()), "twice is once");
        assert!(leads_to_ours(&with));
        unregister(&with, Some(text), false).unwrap().unwrap()
    }

    #[test]
    fn a_default_that_was_ours_alone_is_lost_and_one_that_comes_back_is_not() {
        let ours = register(Some(r#"{"iptables": false}"#), true).unwrap();
        assert!(loses_its_default(&ours, Some(r#"{"iptables": false}"#)));
        assert!(loses_its_default(&ours, None));
        assert!(!loses_its_default(&ours, Some(r#"{"default-runtime": "runc"}"#)));
        let beside = register(None, false).unwrap();
        assert!(!loses_its_default(&beside, None));
    }

    #[test]
    fn without_a_file_there_is_one_and_then_none() {
        for text in [None, Some(""), Some(" \n")] {
            assert_eq!(value(&register(text, true).unwrap()), value(ALONE), "{text:?}");
        }
        assert_eq!(unregister(&register(None, true).unwrap(), None, false), Ok(None));
    }

    #[test]
    fn the_layout_of_what_stays_is_kept() {
        let with = register(Some(NVIDIA), true).unwrap();
        assert!(
            with.starts_with("{\n    \"log-level\": \"warn\",\n    \"default-runtime\": \"gpu-preflight\",\n"),
            "{with}"
        );
        assert!(with.ends_with("    },\n    \"data-root\": \"/data/docker\"\n}"), "{with}");
        assert!(with.contains("        \"nvidia\": {\n            \"args\": [],\n"), "{with}");
        let ours = &value(&with)["runtimes"]["gpu-preflight"];
        assert_eq!(
            *ours,
            serde_json::json!({"path": RUNTIME, "runtimeArgs": ["--runtime", "nvidia-container-runtime"]})
        );
    }

    #[test]
    fn what_was_put_in_comes_out_again() {
        for text in [
            NVIDIA,
            "{}",
            "{ }",
            "{\n}\n",
            "{\"debug\":true}",
            "{\n\t\"debug\": true,\n\t\"runtimes\": {}\n}\n",
            "{\"runtimes\":{\"crun\":{\"path\":\"/usr/bin/crun\"}},\"default-runtime\":\"crun\"}",
            "{\"default-runtime\":\"runc\"}",
        ] {
            for default in [true, false] {
                assert_eq!(value(&there_and_back(text, default)), value(text), "{text}");
            }
        }
        let text = "{\n    \"debug\": true\n}\n";
        assert_eq!(there_and_back(text, true), text);
        assert_eq!(there_and_back(NVIDIA, true), NVIDIA);
    }

    #[test]
    fn the_default_is_found_again_in_a_file_that_others_changed() {
        let with = register(Some(NVIDIA), true).unwrap().replace("\"warn\"", "\"info\"");
        let out = value(&unregister(&with, None, false).unwrap().unwrap());
        assert_eq!((&out["default-runtime"], &out["log-level"]), (&"nvidia".into(), &"info".into()));
        assert!(out["runtimes"].get("gpu-preflight").is_none());
    }

    #[test]
    fn a_name_that_containers_remember_leads_to_the_real_runtime() {
        let runtime = |text: &str| {
            let with = register(Some(text), true).unwrap();
            let out = unregister(&with, Some(text), true).unwrap().unwrap();
            assert!(names_ours(&out) && !leads_to_ours(&out));
            assert_eq!(unregister(&out, Some(text), true).unwrap().unwrap(), out, "twice is once");
            let gone = unregister(&out, Some(text), false).unwrap().unwrap();
            assert_eq!(value(&gone), value(text));
            value(&out)["runtimes"]["gpu-preflight"].clone()
        };
        assert_eq!(runtime("{}"), serde_json::json!({"path": "runc"}));
        assert_eq!(runtime(NVIDIA), serde_json::json!({"path": "nvidia-container-runtime"}));
        let with_arguments =
            r#"{"runtimes":{"x":{"path":"/usr/bin/crun","runtimeArgs":["--debug"]}},"default-runtime":"x"}"#;
        let expected = serde_json::json!({"path": "/usr/bin/crun", "runtimeArgs": ["--debug"]});
        assert_eq!(runtime(with_arguments), expected);
    }

    #[test]
    fn a_default_that_has_left_the_file_does_not_come_back() {
        let with = register(Some(NVIDIA), true).unwrap();
        let mut value = value(&with);
        value["runtimes"].as_object_mut().unwrap().remove("nvidia");
        let out = unregister(&value.to_string(), Some(NVIDIA), false).unwrap().unwrap();
        assert!(serde_json::from_str::<Value>(&out).unwrap().get("default-runtime").is_none(), "{out}");
    }

    #[test]
    fn what_is_the_default_is_not_put_beside_the_others_in_passing() {
        let with = register(Some("{}"), true).unwrap();
        assert!(matches!(register(Some(&with), false), Err(Trouble::Refused { .. })));
    }

    #[test]
    fn a_runc_that_lies_elsewhere_is_called_where_it_lies() {
        let text = r#"{"default-runtime":"my","runtimes":{"my":{"path":"/opt/runc-1.2/runc"}}}"#;
        let ours = value(&register(Some(text), true).unwrap())["runtimes"]["gpu-preflight"].clone();
        assert_eq!(ours["runtimeArgs"], serde_json::json!(["--runtime", "/opt/runc-1.2/runc"]));
    }

    #[test]
    fn a_default_that_is_no_program_is_not_replaced() {
        for text in [
            r#"{"default-runtime":"kata","runtimes":{"kata":{"runtimeType":"io.containerd.kata.v2"}}}"#,
            r#"{"default-runtime":"io.containerd.runsc.v1"}"#,
            r#"{"default-runtime":"gone"}"#,
        ] {
            assert!(matches!(register(Some(text), true), Err(Trouble::Refused { .. })), "{text}");
            assert_eq!(value(&there_and_back(text, false)), value(text));
        }
    }

    #[test]
    fn a_broken_file_is_not_touched() {
        for text in [
            "{",
            "[]",
            "{\"a\":1,}",
            "// x\n{}",
            "{\"runtimes\":[]}",
            "{\"runtimes\":{},\"Runtimes\":{}}",
            "null",
            "{}{}",
        ] {
            assert!(matches!(register(Some(text), true), Err(Trouble::Broken(_))), "{text}");
        }
    }
}
