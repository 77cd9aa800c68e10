//! What is newer than every table: judged by rule and never refused for that; and an administrator's additions.

use serde_json::json;

use super::world::Part::{Compat, Torch};
use super::world::{Gpu, Laid, Machine, Part, Way, findings};
use crate::support::{needs, write};

const UNKNOWN: Gpu = ("NVIDIA Z9000", "0x7777");
const NEW: Machine = Machine { driver: "700.10", gpu: UNKNOWN, toolkit: "1.19.0" };

const ADDITIONS: &str = r#"
[[branch]]
number = 700
cuda = "15.0"
[[major]]
number = 15
driver = "700.05"
[[gpu]]
pci = "0x7770-0x777f"
compute_capability = "8.0"
"#;

fn laid(parts: &[Part], additions: &str) -> Laid {
    let laid = NEW.with(Way::Cdi, parts);
    if !additions.is_empty() {
        write(&laid.scene.host().join("etc/gpu-preflight/knowledge.d/new.toml"), additions);
    }
    laid
}

fn has(said: &[(String, String)], id: &str) -> bool {
    said.iter().any(|(found, _)| found == id)
}

#[test]
fn a_driver_and_a_gpu_newer_than_the_tables_start_what_is_known() {
    if !needs::root() {
        return;
    }
    for cuda in ["12.8", "13.2"] {
        let laid = laid(&[Torch("4.0.0", cuda)], "");
        let (code, said) = laid.decided();
        assert_eq!((code, said), (0, Vec::new()), "CUDA {cuda}");
    }
    // newer than the tables' newest CUDA, of a major that they know: the rule is said to be one
    let laid = laid(&[Torch("4.0.0", "13.9")], "");
    let (code, said) = laid.decided();
    assert!(code == 0 && has(&said, "minor-version-compat"), "{said:?}");
    let text = laid.text();
    assert!(text.stdout.contains("driver 700.10 offers at least CUDA 13.5"), "{text:?}");
}

#[test]
fn a_cuda_newer_than_the_tables_is_unknown_on_a_newer_driver_and_never_refused() {
    if !needs::root() {
        return;
    }
    let laid = laid(&[Torch("4.0.0", "15.0")], "");
    let (code, said) = laid.decided();
    assert_eq!((code, said), (0, Vec::new()));
    assert_eq!(laid.scene.logged()[0]["verdict"], "unknown");
    let report = laid.json();
    assert_eq!(report["verdict"], "unknown", "{report:#}");
    let unknown = report["unknown"].as_array().expect("a list");
    let about = unknown.iter().find(|one| one["check"] == "framework-cuda-newer-than-driver");
    let reason = about.and_then(|one| one["reason"].as_str()).unwrap_or_default();
    assert!(reason.contains("newer than the tables"), "{unknown:#?}");
    let text = laid.text_with(&["--verbose"]);
    assert!(text.stdout.contains("newer than the tables"), "{text:?}");
    assert!(!text.stdout.contains("refused"), "{text:?}");
}

#[test]
fn a_cuda_newer_than_the_tables_is_judged_by_rule_on_a_driver_that_they_know() {
    if !needs::root() {
        return;
    }
    let machine = Machine { driver: "620.70.06", ..NEW };
    let laid = machine.with(Way::Cdi, &[Torch("4.0.0", "15.0")]);
    let (code, said) = laid.decided();
    assert!(code != 0 && has(&said, "framework-cuda-newer-than-driver"), "{said:?}");
    let text = laid.text();
    assert!(text.stdout.contains("newer than 620.70.06"), "{text:?}");
}

/// Whether forward compatibility is allowed on it nobody knows.
#[test]
fn an_image_with_a_libcuda_of_its_own_starts_on_a_gpu_newer_than_the_tables() {
    if !needs::root() {
        return;
    }
    let machine = Machine { driver: "575.57.08", ..NEW };
    let laid = machine.with(Way::CdiWithCompat, &[Torch("2.10.0+cu130", "13.0"), Compat("13.0", "580.82.07")]);
    let (code, said) = laid.decided();
    assert_eq!(code, 0, "{said:?}");
    assert_eq!(laid.scene.logged()[0]["verdict"], "unknown");
}

#[test]
fn an_administrators_tables_make_it_certain() {
    if !needs::root() {
        return;
    }
    let known = laid(&[Torch("4.0.0", "15.0")], ADDITIONS);
    let (code, said) = known.decided();
    assert_eq!((code, said), (0, Vec::new()));
    let report = known.json();
    let unknown = report["unknown"].as_array().expect("a list");
    assert!(unknown.iter().all(|one| one["check"] != "framework-cuda-newer-than-driver"), "{unknown:#?}");
    let newer = laid(&[Torch("5.0.0", "16.0")], ADDITIONS);
    let (code, said) = newer.decided();
    assert!(code != 0 && has(&said, "framework-cuda-newer-than-driver"), "{said:?}");
    let text = newer.text();
    assert!(text.stdout.contains("driver 700.10 offers CUDA 15.0"), "{text:?}");
    // what a toolkit makes code for, against a GPU that only the additions know
    let drops = format!("{ADDITIONS}[[target]]\ncuda = \"15.0\"\ncapabilities = [\"9.0\", \"14.0\"]\n");
    let dropped = laid(&[Torch("4.0.0", "15.0")], &drops);
    let (code, said) = dropped.decided();
    assert!(code != 0 && has(&said, "gpu-generation-dropped"), "{said:?}");
}

#[test]
fn broken_additions_are_said_and_stop_nothing() {
    if !needs::root() {
        return;
    }
    for (additions, said) in [
        ("[[branch]\n", "new.toml: the file does not count"),
        ("[[branch]]\nnumber = 700\ncuda = \"12.0\"\n", "new.toml: [[branch]] 1 does not count"),
        ("[[gpu]]\npci = \"z\"\ncompute_capability = \"9.0\"\n", "new.toml: [[gpu]] 1 does not count: pci is neither"),
    ] {
        let laid = laid(&[Torch("4.0.0", "13.2")], additions);
        let ended = laid.judge();
        assert_eq!(ended.code(), 0, "{ended:?}");
        let logged = laid.scene.logged();
        let line = logged.last().expect("a line");
        let remarks = line["remarks"].as_array().expect("remarks");
        assert!(remarks.iter().any(|remark| remark.as_str().is_some_and(|r| r.contains(said))), "{line:#}");
        assert_eq!((&line["decision"], findings(line)), (&json!("start"), Vec::new()), "{line:#}");
        let text = laid.text();
        assert!(text.stderr.contains(said) && text.code() == 0, "{text:?}");
    }
}
