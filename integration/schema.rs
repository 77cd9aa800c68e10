//! What the programs print as JSON keeps to the schema that is published.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::layout::{Layout, reference};
use crate::support::programs::gpu_preflight;
use crate::support::scene::Scene;
use crate::support::{repository, scratch};

struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn report() -> Self {
        Self::named("report.schema.json")
    }

    fn named(name: &str) -> Self {
        let file = repository().join("packaging/schema").join(name);
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        let index = compiler.compile(file.to_str().expect("UTF-8"), &mut schemas).expect("a valid schema");
        Self { schemas, index }
    }

    fn refuses(&self, document: &Value) -> Option<String> {
        self.schemas.validate(document, self.index).err().map(|error| format!("{error:#}"))
    }

    fn check(&self, document: &Value) {
        assert_eq!(self.refuses(document), None, "{document:#}");
    }
}

/// A report keeps to its schema.
#[track_caller]
pub(crate) fn check_report(document: &Value) {
    Schema::report().check(document);
}

fn document(args: &[&str]) -> Value {
    let ended = gpu_preflight(args).args(["--format", "json"]).end();
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {ended:?}"))
}

#[test]
fn a_machine_that_is_well_and_ones_that_are_not() {
    let schema = Schema::report();
    for host in [
        SimHost::default(),
        SimHost::bare(),
        SimHost { modules: "", ..SimHost::default() },
        SimHost::spoilt("rm -f dev/nvidia0; rm -r proc/driver/nvidia/gpus"),
    ] {
        let scene = Scene::on(&host);
        let report = document(&["host", "--host-root", &scene.host().to_string_lossy()]);
        schema.check(&report);
        assert_eq!(report["command"], "host");
    }
}

#[test]
fn what_changed_since_a_profile() {
    let (schema, profiles) = (Schema::report(), Schema::named("host-profile.schema.json"));
    let (scene, other) =
        (Scene::on(&SimHost::default()), Scene::on(&SimHost { driver: "570.124.06", ..SimHost::gpus(1) }));
    let [root, now] = [&scene, &other].map(|scene| scene.host().to_string_lossy().into_owned());
    let profile = scene.at("a.json").to_string_lossy().into_owned();
    document(&["host", "--host-root", &root, "--save", &profile]);
    let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(&profile).expect("a profile")).expect("JSON");
    profiles.check(&saved);
    saved["facts"]["host"]["cdi"] = Value::Null;
    std::fs::write(&profile, saved.to_string()).expect("a profile");
    let report = document(&["host", "--host-root", &now, "--compare", &profile]);
    schema.check(&report);
    let changes = report["changes"].as_array().expect("changes");
    let of =
        |fact: &str| changes.iter().find(|change| change["fact"] == fact).unwrap_or_else(|| panic!("{changes:#?}"));
    assert_eq!(of("host.driver.version")["before"], "550.163.01");
    assert_eq!(of("host.driver.version")["after"], "570.124.06");
    assert_eq!(of("host.gpus[GPU-00000001-0000-4000-8000-000000000001]")["after"], "none");
    assert_eq!(report["not_compared"], json!([{"fact": "host.cdi", "not_known": "then"}]));
    for (at, value) in [("/changes/0/fact", json!(1)), ("/not_compared/0/not_known", json!("never"))] {
        let mut bad = report.clone();
        *bad.pointer_mut(at).expect("a place in the report") = value;
        assert!(schema.refuses(&bad).is_some(), "{at} may be anything");
    }
    let mut half = report;
    half.as_object_mut().expect("an object").remove("not_compared");
    assert!(schema.refuses(&half).is_some(), "changes alone");
}

#[test]
fn containers() {
    let schema = Schema::report();
    let scene = Scene::on(&SimHost::default());
    let root = scene.host().to_string_lossy().into_owned();
    let target = scene.bundle().to_string_lossy().into_owned();
    for bundle in [Bundle::plain(&scene.bundle()), Bundle::asking(&scene.bundle()), Bundle::cdi(&scene.bundle(), 2)] {
        bundle.write();
        let report = document(&["container", &target, "--host-root", &root]);
        schema.check(&report);
        assert_eq!(report["command"], "container");
    }
    let mut bundle = Bundle::cdi(&scene.bundle(), 2);
    bundle.env("CUDA_VISIBLE_DEVICES=\u{1b}[2J");
    bundle.write();
    schema.check(&document(&["container", &target, "--host-root", &root, "--ignore", "cuda-visible-devices-bad-form"]));
}

#[test]
fn images_and_the_machines_that_they_are_judged_for() {
    let schema = Schema::report();
    let scene = Scene::on(&SimHost::default());
    let root = scene.host().to_string_lossy().into_owned();
    let profile = scene.at("a.json").to_string_lossy().into_owned();
    schema.check(&document(&["host", "--host-root", &root, "--save", &profile]));
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&profile).expect("a profile")).expect("JSON");
    let of_profiles = Schema::named("host-profile.schema.json");
    of_profiles.check(&saved);
    for (at, value) in [("/kind", json!("report")), ("/schema_version", json!(2)), ("/facts/host/gpus", json!("H100"))]
    {
        let mut bad = saved.clone();
        *bad.pointer_mut(at).expect("a place in the profile") = value;
        assert!(of_profiles.refuses(&bad).is_some(), "{at} may be anything");
    }
    let place = scratch();
    let mut layout = Layout::torch("2.11.0", "13.0");
    layout.env.push("NVIDIA_REQUIRE_CUDA=cuda>=12.8".to_owned());
    layout.lay(place.path());
    let image = reference(place.path());
    for args in [
        &["--host-root", &root][..],
        &["--host-profile", &profile],
        &["--driver", "535.183.01"],
        &["--gpu", "sm_90"],
        &["--driver", "535.183.01", "--depth", "config"],
    ] {
        let report = document(&[&["image", &image], args].concat());
        schema.check(&report);
        assert_eq!((&report["command"], &report["target"]), (&json!("image"), &json!(image)));
        let about = &report["facts"]["image"];
        assert!(about["source"].is_string() && about["depth"].is_string() && about["id"].is_string(), "{about:#}");
    }
    let deep = document(&["image", &image, "--driver", "535.183.01"]);
    let needs = ["cuda_runtime", "min_driver", "full_driver"].map(|name| deep["facts"]["image"][name].clone());
    assert_eq!(needs, ["13.0", "580.65.06", "580.65.06"].map(Value::from));
    let matrix = document(&["image", &image, "--host-profile", &profile, "--host-profile", &profile]);
    schema.check(&matrix);
    assert_eq!(matrix["results"].as_array().map(Vec::len), Some(2));
    for (at, value) in [("/results", json!([])), ("/verdict", json!("good")), ("/results/0/host", Value::Null)] {
        let mut bad = matrix.clone();
        *bad.pointer_mut(at).expect("a place in the matrix") = value;
        assert!(schema.refuses(&bad).is_some(), "{at} may be anything");
    }
}

#[test]
fn what_could_not_be_judged_at_all() {
    let schema = Schema::report();
    let report = document(&["container", "/nonexistent"]);
    assert!(report["error"]["what"].is_string(), "{report:#}");
    schema.check(&report);
}

#[test]
fn what_a_text_means() {
    let (schema, of_errors) = (Schema::named("explain.schema.json"), Schema::report());
    for text in ["cuInit failed: 999", "oneDNN custom operations are on", "NVRM: Xid (PCI:0000:41:00): 79, GPU has"] {
        schema.check(&document(&["explain", text]));
    }
    let scene = Scene::on(&SimHost::default());
    let root = scene.host().to_string_lossy().into_owned();
    let verified = document(&["explain", "CUDA unknown error", "--verify", "--host-root", &root]);
    assert!(verified["causes"][0]["verified"]["result"].is_string(), "{verified:#}");
    schema.check(&verified);
    of_errors.check(&document(&["explain", "nobody knows this"]));
    let mut bad = verified;
    bad["causes"][0]["confidence"] = json!("certain");
    assert!(schema.refuses(&bad).is_some());
}

/// The schema is no rubber stamp.
#[test]
fn a_document_with_another_word_is_refused() {
    let schema = Schema::report();
    let good = json!({
        "schema_version": 1,
        "tool": {"name": "gpu-preflight", "version": "0.1.0"},
        "command": "container",
        "target": "bundle",
        "verdict": "fail",
        "findings": [{
            "id": "uvm-node-missing", "severity": "error", "subject": "nodes", "title": "t", "message": "m",
            "evidence": [{"fact": "f", "value": "v", "source": "s"}],
            "remedy": [{"action": "load-module", "text": "Load it.", "command": "modprobe nvidia_uvm"}],
            "ignored": false,
        }],
        "unknown": [{"check": "gpu-node-missing", "fact": "f", "source": "s", "reason": "r"}],
        "facts": {"host": {}, "image": {}, "container": {}},
    });
    schema.check(&good);
    let changes: [(&str, Value); 12] = [
        ("/schema_version", json!(2)),
        ("/tool/name", json!("another")),
        ("/verdict", json!("passed")),
        ("/findings/0/id", json!("No Kebab")),
        ("/findings/0/severity", json!("fatal")),
        ("/findings/0/subject", json!("network")),
        ("/findings/0/ignored", json!("no")),
        ("/findings/0/remedy/0/action", json!("pray")),
        ("/findings/0/evidence", json!({})),
        ("/unknown/0/reason", Value::Null),
        ("/facts/host", json!([])),
        ("/target", Value::Null),
    ];
    for (at, value) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(at).expect("a place in the document") = value;
        assert!(schema.refuses(&bad).is_some(), "{at} may be {}", bad.pointer(at).expect("a value"));
    }
    for part in ["tool", "command", "verdict", "findings", "unknown", "facts"] {
        let mut bad = good.clone();
        bad.as_object_mut().expect("an object").remove(part);
        assert!(schema.refuses(&bad).is_some(), "{part} may be absent");
    }
}
