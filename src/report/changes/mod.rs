//! What differs between two host profiles of a machine, fact by fact.
//!
//! Both are documents of `report::profile`, so their shape is known: what stands one or two levels deep was observed,
//! and `null` there says that nobody could see it; deeper a `null` is an option that is not set. Lists of things with
//! a name are compared name by name, in whatever order they stand.

use serde::Serialize;
use serde_json::{Map, Value};

mod pairs;
pub mod words;

/// How a profile says that something is not there.
const NONE: &str = "none";

/// Objects whose keys are names of things, by their place; all other objects have fields.
const NAMED: [&str; 5] = ["modules", "device_nodes", "toolkit.programs", "engines.runtimes", "engines.runtime_args"];

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// What is not as it was.
    pub changes: Vec<Change>,
    /// What was known only then, or is known only now.
    pub not_compared: Vec<NotCompared>,
}

/// A fact that is not as it was. What was or is not there is `"none"`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// `host.driver.version`, `host.gpus[GPU-…].minor`.
    pub fact: String,
    /// As the profile has it.
    pub before: Value,
    /// As it is now.
    pub after: Value,
    #[serde(skip)]
    path: Vec<Step>,
}

/// A fact of which only one side is known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotCompared {
    /// As in [`Change`].
    pub fact: String,
    /// On which side it is lacking.
    pub not_known: Side,
    #[serde(skip)]
    path: Vec<Step>,
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// When the profile was written.
    Then,
    /// Now.
    Now,
}

/// A step down into the document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A field.
    Field(String),
    /// A thing by its name.
    Thing(String),
}

/// The facts of two profiles of a host.
pub fn between(before: &Value, after: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    let fields = |value: &Value| value.pointer("/facts/host").and_then(Value::as_object).cloned().unwrap_or_default();
    comparison.objects(&[], &fields(before), &fields(after));
    comparison
}

impl Comparison {
    fn values(&mut self, path: &[Step], before: &Value, after: &Value) {
        match (before, after) {
            _ if before == after => {}
            (Value::Null, _) if is_observed(path) => self.not_compared(path, Side::Then),
            (_, Value::Null) if is_observed(path) => self.not_compared(path, Side::Now),
            (Value::Object(before), Value::Object(after)) => self.objects(path, before, after),
            (Value::Array(old), Value::Array(new)) => match pairs::identities(&place(path)) {
                Some(identities) => {
                    for (name, old, new) in pairs::of(identities, old, new) {
                        let nothing = Value::from(NONE);
                        let path = [path, &[Step::Thing(name)]].concat();
                        self.values(&path, old.unwrap_or(&nothing), new.unwrap_or(&nothing));
                    }
                }
                None => self.change(path, before, after),
            },
            _ => self.change(path, before, after),
        }
    }

    fn objects(&mut self, path: &[Step], before: &Map<String, Value>, after: &Map<String, Value>) {
        let named = matches!(path.last(), Some(Step::Field(_))) && NAMED.contains(&place(path).as_str());
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        let nothing = Value::from(NONE);
        for key in keys {
            let step = if named { Step::Thing(key.clone()) } else { Step::Field(key.clone()) };
            let path = [path, &[step]].concat();
            self.values(&path, before.get(key).unwrap_or(&nothing), after.get(key).unwrap_or(&nothing));
        }
    }

    fn change(&mut self, path: &[Step], before: &Value, after: &Value) {
        let (before, after) = (before.clone(), after.clone());
        self.changes.push(Change { fact: fact(path), before, after, path: path.to_vec() });
    }

    fn not_compared(&mut self, path: &[Step], not_known: Side) {
        self.not_compared.push(NotCompared { fact: fact(path), not_known, path: path.to_vec() });
    }
}

/// `null` says here that nobody saw it.
fn is_observed(path: &[Step]) -> bool {
    match path {
        [Step::Field(_)] | [Step::Field(_), Step::Field(_)] => true,
        [Step::Field(list), Step::Thing(_), Step::Field(_)] => list == "gpus",
        _ => false,
    }
}

/// The fields on the way alone: `engines.runtimes`.
fn place(path: &[Step]) -> String {
    let fields = path.iter().filter_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Thing(_) => None,
    });
    fields.collect::<Vec<_>>().join(".")
}

fn fact(path: &[Step]) -> String {
    let steps = path.iter().map(|step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Thing(name) => format!("[{name}]"),
    });
    format!("host{}", steps.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::host::{Carried, Engine, EngineKind};
    use crate::model::testing::{cdi_spec, host};
    use crate::model::{Host, Observed};
    use crate::report::profile;

    fn compared(before: &Host, after: &Host) -> Comparison {
        let of = |host| profile::document(&Carried::from(host)).unwrap();
        between(&of(before), &of(after))
    }

    fn facts(comparison: &Comparison) -> Vec<(&str, &Value, &Value)> {
        comparison.changes.iter().map(|change| (change.fact.as_str(), &change.before, &change.after)).collect()
    }

    /// A machine of which everything is known, changed by one hand.
    fn changed(change: impl FnOnce(&mut Host)) -> Comparison {
        let mut before = host(2);
        before.cdi = Observed::Known(vec![cdi_spec()]);
        let mut after = before.clone();
        change(&mut after);
        compared(&before, &after)
    }

    #[test]
    fn an_unchanged_machine_has_no_changes_in_whatever_order_its_things_stand() {
        let comparison = changed(|host| {
            if let Observed::Known(pci) = &mut host.pci {
                pci.reverse();
            }
        });
        assert_eq!(comparison, Comparison::default());
    }

    #[test]
    fn each_fact_has_its_name_and_both_values() {
        let comparison = changed(|host| {
            host.driver.version = Observed::Known(None);
            host.driver.modules = Observed::Known([].into());
            host.engines.push(Engine::new(EngineKind::Podman, "/usr/bin/podman"));
            host.engines[0].default_runtime = Some("nvidia".to_owned());
            host.engines[0].runtimes.clear();
            if let Observed::Known(nodes) = &mut host.device_nodes {
                nodes.get_mut("/dev/nvidia1").unwrap().mode = 0o660;
                nodes.get_mut("/dev/nvidia-uvm").unwrap().major = 1;
            }
        });
        let (podman, none) =
            (serde_json::to_value(Engine::new(EngineKind::Podman, "/usr/bin/podman")).unwrap(), json!("none"));
        let module = json!({"version": "550.163.01"});
        assert_eq!(
            facts(&comparison),
            [
                ("host.device_nodes[/dev/nvidia-uvm].driver", &json!("nvidia-uvm"), &Value::Null),
                ("host.device_nodes[/dev/nvidia1].mode", &json!("0666"), &json!("0660")),
                ("host.driver.version", &json!("550.163.01"), &none),
                ("host.engines[docker].default_runtime", &Value::Null, &json!("nvidia")),
                ("host.engines[docker].runtimes[nvidia]", &json!("/usr/bin/nvidia-container-runtime"), &none),
                ("host.engines[podman]", &none, &podman),
                ("host.modules[nvidia]", &module, &none),
                ("host.modules[nvidia_drm]", &module, &none),
                ("host.modules[nvidia_modeset]", &module, &none),
                ("host.modules[nvidia_uvm]", &module, &none),
            ]
        );
        assert_eq!(comparison.not_compared, []);
    }

    #[test]
    fn a_gpu_is_known_by_its_uuid_and_one_without_by_its_slot() {
        let comparison = changed(|host| {
            if let Observed::Known(gpus) = &mut host.gpus {
                gpus.remove(0);
                gpus[0].index = 0;
            }
        });
        let all = facts(&comparison);
        let names: Vec<_> = all.iter().map(|(fact, ..)| *fact).collect();
        assert_eq!(
            names,
            [
                "host.gpus[GPU-00000000-0000-4000-8000-000000000001]",
                "host.gpus[GPU-00000001-0000-4000-8000-000000000001].index"
            ]
        );
        let asleep = changed(|host| {
            if let Observed::Known(gpus) = &mut host.gpus {
                gpus[1].uuid = None;
            }
        });
        assert_eq!(asleep.changes, []);
        assert_eq!(asleep.not_compared[0].fact, "host.gpus[GPU-00000001-0000-4000-8000-000000000001].uuid");
        let another = changed(|host| {
            if let Observed::Known(gpus) = &mut host.gpus {
                gpus[1].uuid = Some("GPU-b".to_owned());
            }
        });
        let all = facts(&another);
        assert_eq!(
            all.iter().map(|(fact, ..)| *fact).collect::<Vec<_>>(),
            ["host.gpus[GPU-00000001-0000-4000-8000-000000000001]", "host.gpus[GPU-b]"]
        );
    }

    #[test]
    fn what_one_side_does_not_know_is_no_change() {
        let unseen = |host: &mut Host| {
            host.toolkit.version = Observed::unknown("host.toolkit.version", "/var/lib/dpkg", "refused");
            host.gpus = Observed::unknown("host.gpus", "/proc", "refused");
        };
        let known = host(1);
        let mut lacking = known.clone();
        unseen(&mut lacking);
        for (before, after, side) in [(&known, &lacking, Side::Now), (&lacking, &known, Side::Then)] {
            let comparison = compared(before, after);
            assert_eq!(comparison.changes, []);
            let all: Vec<_> = comparison.not_compared.iter().map(|one| (one.fact.as_str(), one.not_known)).collect();
            assert_eq!(all, [("host.gpus", side), ("host.toolkit.version", side)]);
        }
        assert_eq!(compared(&lacking, &lacking), Comparison::default());
    }

    proptest::proptest! {
        /// Whatever a profile holds that somebody wrote by hand, it differs from itself in nothing.
        #[test]
        fn any_documents_are_compared(keys in proptest::collection::vec("[a-z_]{0,8}|gpus|cdi|engines", 0..6), n in 0u32..9) {
            let mut value = json!(n);
            for (place, key) in keys.iter().enumerate() {
                value = if place % 2 == 0 { json!([{key: value}, value]) } else { json!({key: value}) };
            }
            let of = |value: &Value| json!({"facts": {"host": {"gpus": value, "cdi": value, "x": value}}});
            assert_eq!(between(&of(&value), &of(&value)), Comparison::default());
            let _ = words::lines(&between(&of(&value), &of(&json!([{"uuid": 1}]))));
        }
    }
}
