//! A specification with one thing wrong in it, whatever it is: the hook decides, in proper words, and does not fall.

use serde_json::{Value, json};

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::process::Ended;
use crate::support::scene::Scene;
use crate::support::{needs, words, write};

fn check(what: &str, ended: &Ended) {
    let code = ended.code();
    assert!(code == 0 || (10..=15).contains(&code), "{what}: {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
    words::check(ended);
}

/// Every value of a container with a GPU, each replaced by values of every kind, and left out.
#[test]
fn every_value_may_be_of_any_kind() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::gpus(1));
    let mut bundle = Bundle::cdi_laid_out(&scene.bundle(), 1);
    bundle.spec["hooks"]["prestart"] =
        json!([{"path": "/usr/bin/nvidia-container-runtime-hook", "args": ["x", "prestart"]}]);
    bundle.spec["annotations"] = json!({"io.gpu-preflight.require": "true", "cdi.k8s.io/x": "nvidia.com/gpu=0"});
    let kinds =
        [json!(null), json!(true), json!(-1), json!(1e300), json!(""), json!("\u{0}\u{1b}"), json!([]), json!({})];
    let mut places = Vec::new();
    pointers(&bundle.spec, String::new(), &mut places);
    // Capabilities and the like are lists of one kind: their first entries stand for the others.
    places.retain(|place| {
        place
            .rsplit('/')
            .next()
            .is_none_or(|last| last.parse::<usize>().is_ok_and(|n| n < 2) || last.parse::<usize>().is_err())
    });
    assert!(places.len() > 80, "{}", places.len());
    for place in places {
        for value in &kinds {
            let mut spec = bundle.spec.clone();
            *spec.pointer_mut(&place).expect("a place in the specification") = value.clone();
            write(&bundle.dir.join("config.json"), spec.to_string());
            check(&format!("{place} = {value}"), &scene.hook().stdin(bundle.state(1)).end());
        }
    }
}

fn pointers(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                pointers(field, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), into);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                pointers(item, format!("{at}/{number}"), into);
            }
        }
        _ => {}
    }
    into.push(at);
}

/// Bytes changed, cut out, doubled and cut off at random; the same every time.
#[test]
fn any_byte_may_be_wrong() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::gpus(1));
    let bundle = Bundle::cdi_laid_out(&scene.bundle(), 1);
    let whole = serde_json::to_vec(&bundle.spec).expect("JSON");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..if needs::long() { 20_000 } else { 300 } {
        let mut text = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(text.len());
            match random.below(4) {
                0 => text[at] = u8::try_from(random.below(256)).expect("a byte"),
                1 => drop(text.drain(at..(at + 1 + random.below(40)).min(text.len()))),
                2 => text.extend_from_within(at..(at + 60).min(text.len())),
                _ => text.truncate(at.max(1)),
            }
        }
        write(&bundle.dir.join("config.json"), &text);
        check(&format!("round {round}"), &scene.hook().stdin(bundle.state(1)).end());
    }
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("below a length")
    }
}
