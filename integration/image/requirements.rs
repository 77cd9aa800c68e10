//! What images say of themselves, `NVIDIA_REQUIRE_CUDA` and `CUDA_VERSION`, as nvidia/cuda's have it.

use std::fmt::Write as _;

use super::world::Part::{Compat, Env, File, Torch};
use super::world::Way::{Cdi, CdiWithCompat, HookBehind};
use super::world::{A100, GEFORCE, Laid, Machine, Part, Way, finding, findings};
use crate::support::needs;
use crate::support::words::{FIRST_LINE, check};

/// Of nvidia/cuda:12.8.1, in its order.
fn require_12_8() -> String {
    const BRANDS: [&str; 12] = [
        "unknown",
        "grid",
        "tesla",
        "nvidia",
        "quadro",
        "quadrortx",
        "nvidiartx",
        "vapps",
        "vpc",
        "vcs",
        "vws",
        "cloudgaming",
    ];
    let mut value = "NVIDIA_REQUIRE_CUDA=cuda>=12.8".to_owned();
    for branch in [470, 535, 550, 560, 565] {
        for brand in BRANDS {
            let _ = write!(value, " brand={brand},driver>={branch},driver<{}", branch + 1);
        }
    }
    value
}

fn cuda_12_8(machine: Machine, way: Way) -> Laid {
    let require: &'static str = require_12_8().leak();
    let env = [Env("CUDA_VERSION=12.8.1"), Env(require), Env("NVIDIA_DRIVER_CAPABILITIES=compute,utility")];
    machine.with(way, &[env[0], env[1], env[2], Torch("2.9.0+cu128", "12.8")])
}

/// Nothing is installed in it that would need CUDA.
fn bare_cuda_12_8(machine: Machine, way: Way) -> Laid {
    let require: &'static str = require_12_8().leak();
    machine.with(way, &[Env("CUDA_VERSION=12.8.1"), Env(require), Env("NVIDIA_DRIVER_CAPABILITIES=compute,utility")])
}

fn on(driver: &'static str, gpu: super::world::Gpu) -> Machine {
    Machine { driver, gpu, toolkit: "1.17.8" }
}

fn has(said: &[(String, String)], id: &str, severity: &str) -> bool {
    said.contains(&(id.to_owned(), severity.to_owned()))
}

/// The texts of a finding's ways out.
fn ways_out(report: &serde_json::Value, id: &str) -> Vec<String> {
    let steps = finding(report, id)["remedy"].as_array().cloned().unwrap_or_default();
    steps.iter().map(|step| step["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The hook's refusal: in proper words, whole in its first line.
fn check_first_line(laid: &Laid, words: &[&str]) {
    let ended = laid.judge();
    assert_ne!(ended.code(), 0, "{ended:?}");
    check(&ended);
    let line = ended.line();
    assert!(line.len() <= FIRST_LINE && !line.contains("...") && !line.contains('\u{2026}'), "{line}");
    for word in words {
        assert!(line.contains(word), "{word} is not in {line}");
    }
}

#[test]
fn an_image_of_cuda_12_8_is_refused_on_driver_470_by_cdi() {
    if !needs::root() {
        return;
    }
    let laid = cuda_12_8(on("470.256.02", GEFORCE), Cdi);
    check_first_line(&laid, &["12.8", "470.256.02", "11.4", "525.60.13", "framework-cuda-newer-than-driver"]);
    let text = laid.text();
    assert_eq!(text.code(), 1, "{text:?}");
    let report = laid.json();
    assert_eq!(report["verdict"], "fail");
    let ways = ways_out(&report, "framework-cuda-newer-than-driver");
    assert!(ways.iter().any(|way| way.contains("525.60.13")), "{ways:#?}");
    assert!(ways.iter().any(|way| way.contains("CUDA 11")), "{ways:#?}");
    assert!(ways.iter().all(|way| !way.contains("compat")), "a GeForce has none: {ways:#?}");
}

/// By CDI nobody enforces what it requires, and a monitor made from it would run.
#[test]
fn an_image_of_cuda_12_8_with_nothing_in_it_starts_on_driver_470_by_cdi_with_a_warning() {
    if !needs::root() {
        return;
    }
    let (code, said) = bare_cuda_12_8(on("470.256.02", GEFORCE), Cdi).decided();
    assert_eq!(code, 0, "{said:?}");
    assert!(has(&said, "require-cuda-unsatisfied", "warning"), "{said:?}");
    assert!(has(&said, "cuda-newer-than-driver", "warning"), "{said:?}");
}

#[test]
fn an_image_of_cuda_12_8_is_refused_on_driver_470_by_nvidias_hook() {
    if !needs::root() {
        return;
    }
    let laid = bare_cuda_12_8(on("470.256.02", GEFORCE), HookBehind);
    check_first_line(&laid, &["12.8", "470.256.02", "11.4", "require-cuda-unsatisfied"]);
    let text = laid.text();
    assert_eq!(text.code(), 1, "{text:?}");
    for word in ["cuda>=12.8", "470.256.02", "CUDA 11.4", "525.60.13"] {
        assert!(text.stdout.contains(word), "{word} is not in {}", text.stdout);
    }
    let said = findings(&laid.json());
    assert!(has(&said, "require-cuda-unsatisfied", "error"), "{said:?}");
    assert!(has(&said, "cuda-newer-than-driver", "warning"), "{said:?}");
}

#[test]
fn a_data_centre_gpu_has_three_ways_out() {
    if !needs::root() {
        return;
    }
    for way in [Cdi, HookBehind] {
        let laid = cuda_12_8(on("470.256.02", A100), way);
        check_first_line(&laid, &["12.8", "470.256.02", "11.4", "framework-cuda-newer-than-driver"]);
        let report = laid.json();
        let ways = ways_out(&report, "framework-cuda-newer-than-driver");
        assert_eq!(ways.len(), 3, "{way:?}: {ways:#?}");
        for (way, word) in ways.iter().zip(["525.60.13", "CUDA 11 or older", "cuda-compat-12-8"]) {
            assert!(way.contains(word), "{ways:#?}");
        }
        let text = laid.text().stdout;
        assert!(ways.iter().all(|way| text.contains(way.as_str())), "{text}");
        // the hook names those that its first line has no room for on the second
        let ended = laid.judge();
        let printed = [ended.stdout.as_str(), ended.stderr.as_str()].concat();
        assert!(ways.iter().all(|way| printed.contains(way.as_str())), "{printed}");
    }
}

#[test]
fn on_driver_535_it_runs_by_minor_version_compatibility() {
    if !needs::root() {
        return;
    }
    for gpu in [GEFORCE, A100] {
        let laid = cuda_12_8(on("535.183.01", gpu), Cdi);
        let (code, said) = laid.decided();
        assert_eq!(code, 0, "{said:?}");
        assert!(has(&said, "minor-version-compat", "note"), "{said:?}");
        assert!(said.iter().all(|(_, severity)| severity != "error"), "{said:?}");
        let text = laid.text();
        assert_eq!(text.code(), 0, "{text:?}");
        assert!(text.stdout.contains("driver 535.183.01 offers CUDA 12.2"), "{text:?}");
    }
}

/// Its requirement makes an exception of 535 for all brands but the consumers', and NVIDIA's hook holds to the letter:
/// a `GeForce` is refused by it though CUDA would start.
#[test]
fn on_driver_535_nvidias_hook_refuses_it_on_a_geforce() {
    if !needs::root() {
        return;
    }
    let laid = cuda_12_8(on("535.183.01", GEFORCE), HookBehind);
    check_first_line(&laid, &["12.8", "535.183.01", "12.2", "require-cuda-unsatisfied"]);
    let report = laid.json();
    let said = findings(&report);
    assert!(has(&said, "require-cuda-unsatisfied", "error"), "{said:?}");
    assert!(has(&said, "minor-version-compat", "note"), "{said:?}");
    let ways = ways_out(&report, "require-cuda-unsatisfied");
    assert!(ways.len() >= 3 && ways.iter().any(|way| way.contains("NVIDIA_DISABLE_REQUIRE")), "{ways:#?}");

    let (code, said) = cuda_12_8(on("535.183.01", A100), HookBehind).decided();
    assert_eq!(code, 0, "{said:?}");
    assert!(said.iter().all(|(id, _)| id != "require-cuda-unsatisfied"), "{said:?}");
}

#[test]
fn an_image_of_cuda_13_runs_on_575_where_forward_compatibility_is_allowed() {
    if !needs::root() {
        return;
    }
    let image: &[Part] = &[
        Env("CUDA_VERSION=13.0.1"),
        Torch("2.10.0+cu130", "13.0"),
        Compat("13.0", "580.82.07"),
        File("etc/ld.so.cache", ""),
    ];
    let laid = on("575.57.08", A100).with(CdiWithCompat, image);
    let (code, said) = laid.decided();
    assert_eq!(code, 0, "{said:?}");
    assert!(has(&said, "compat-in-use", "note"), "{said:?}");
    assert!(laid.text().stdout.contains("580.82.07"));
    assert_eq!(findings(&laid.json()), said);

    let laid = on("575.57.08", GEFORCE).with(CdiWithCompat, image);
    check_first_line(&laid, &["575.57.08"]);
    let report = laid.json();
    let refused = finding(&report, "compat-on-unsupported-gpu");
    assert_eq!(refused["severity"], "error");
    for word in ["580.82.07", "575.57.08", "GeForce RTX 3090", "804"] {
        assert!(refused["message"].as_str().is_some_and(|message| message.contains(word)), "{refused:#}");
    }

    // without the hook nothing leads to it but what an entrypoint may do
    let (code, said) = on("575.57.08", A100).with(Cdi, image).decided();
    assert!(code == 0 && has(&said, "framework-cuda-newer-than-driver", "warning"), "{said:?}");
    assert!(has(&said, "compat-not-enabled-by-toolkit", "warning"), "{said:?}");
    let (code, said) = on("575.57.08", GEFORCE).with(Cdi, image).decided();
    assert!(code != 0 && has(&said, "framework-cuda-newer-than-driver", "error"), "{said:?}");
}
