//! A machine without any part of NVIDIA's: nothing is said, nothing is stopped, nothing is left behind.

use serde_json::{Value, json};

use crate::support::bundle::Bundle;
use crate::support::host::SimHost;
use crate::support::programs::gpu_preflight;
use crate::support::scene::Scene;
use crate::support::words::{check, check_start};

#[test]
fn a_plain_container_starts_unlogged() {
    let scene = Scene::on(&SimHost::bare());
    check_start(&scene.judge(&Bundle::plain(&scene.bundle())));
    assert!(scene.logged().is_empty());
}

/// Many images ask by their environment, and run well on a processor: only a warning, in the log.
#[test]
fn an_image_that_asks_by_its_environment_starts() {
    let scene = Scene::on(&SimHost::bare());
    check_start(&scene.judge(&Bundle::asking(&scene.bundle())));
    let [line] = &scene.logged()[..] else { panic!("{:?}", scene.logged()) };
    assert_eq!((&line["decision"], &line["gpu_given"]), (&json!("start"), &json!("none")));
    assert_eq!(line["findings"][0]["id"], "gpu-not-requested");
    assert_eq!(line["findings"][0]["severity"], "warning");
}

#[test]
fn void_and_none_are_a_choice() {
    for value in ["void", "none", ""] {
        let scene = Scene::on(&SimHost::bare());
        let mut bundle = Bundle::plain(&scene.bundle());
        bundle.env(&format!("NVIDIA_VISIBLE_DEVICES={value}"));
        check_start(&scene.judge(&bundle));
        assert!(scene.logged().is_empty(), "{value:?}");
    }
}

/// Who demands a GPU in so many words is told here too.
#[test]
fn a_demand_is_refused() {
    let scene = Scene::on(&SimHost::bare());
    let mut bundle = Bundle::plain(&scene.bundle());
    bundle.spec["annotations"] = json!({"io.gpu-preflight.require": "true"});
    let ended = scene.judge(&bundle);
    assert_eq!(ended.code(), 10, "{ended:?}");
    assert!(ended.line().contains("gpu-not-requested"), "{ended:?}");
    check(&ended);
}

#[test]
fn the_machine_itself_has_nothing_to_judge() {
    let scene = Scene::on(&SimHost::bare());
    let root = scene.host().to_string_lossy().into_owned();
    let ended = gpu_preflight(&["host", "--host-root", &root, "--format", "json"]).end();
    assert_eq!(ended.code(), 0, "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(report["verdict"], "skip", "{report}");
    assert!(report["findings"].as_array().is_some_and(|all| all.iter().all(|f| f["severity"] != "error")), "{report}");
}
