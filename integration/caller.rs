//! `host` speaks of the caller's own environment: on this machine made to look like one with GPUs.

use std::path::Path;

use serde_json::Value;

use crate::support::host::SimHost;
use crate::support::programs::gpu_preflight;
use crate::support::{needs, programs, scratch};

/// The report, with these variables set; `None`: said and skipped.
fn judged(host: &SimHost, environment: &[(&str, &str)]) -> Option<Value> {
    if !needs::root() || !needs::tools(&["cc", "unshare"]) {
        return None;
    }
    let command = [programs::cli().into_os_string(), "host".into(), "--no-nvml".into(), "--format=json".into()];
    let run = environment.iter().fold(host.run(command), |run, (name, value)| run.env(name, *value));
    let ended = run.end();
    Some(serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}")))
}

/// Message and severity of the finding of a name.
fn finding<'a>(report: &'a Value, id: &str) -> Option<(&'a str, &'a str)> {
    let all = report["findings"].as_array().expect("findings");
    let one = all.iter().find(|finding| finding["id"] == id)?;
    Some((one["message"].as_str()?, one["severity"].as_str()?))
}

#[track_caller]
fn finds(host: &SimHost, environment: &[(&str, &str)], id: &str, severity: &str, words: &str) {
    let Some(report) = judged(host, environment) else { return };
    let found = finding(&report, id).unwrap_or_else(|| panic!("{environment:?}: no {id} in {report:#}"));
    assert!(found.1 == severity && found.0.contains(words), "{found:?}");
}

#[test]
fn variables_that_spoil_cuda_for_the_caller_are_found_and_stop_nothing() {
    let host = SimHost::default();
    for (name, value, id, severity, words) in [
        ("CUDA_VISIBLE_DEVICES", "2", "cuda-visible-devices-out-of-range", "warning", "this machine has 2 GPUs"),
        ("CUDA_VISIBLE_DEVICES", "GPU-ffff", "cuda-visible-devices-out-of-range", "warning", "none of the 2 GPUs"),
        ("CUDA_VISIBLE_DEVICES", "-1", "cuda-visible-devices-empty", "warning", "hides every GPU"),
        ("CUDA_VISIBLE_DEVICES", "", "cuda-visible-devices-empty", "warning", "hides every GPU"),
        ("CUDA_VISIBLE_DEVICES", "all", "cuda-visible-devices-bad-form", "warning", "cannot read"),
        ("CUDA_VISIBLE_DEVICES", "0,0", "cuda-visible-devices-bad-form", "warning", "twice"),
        ("CUDA_INJECTION64_PATH", "/x.so", "injection-variables-set", "warning", "loads this library"),
        ("CUDA_MODULE_LOADING", "EAGER", "injection-variables-set", "note", "loads all kernels"),
        ("CUDA_DEVICE_MEMORY_LIMIT", "1g", "uvm-limit-set", "warning", "limits the GPU memory"),
    ] {
        finds(&host, &[(name, value)], id, severity, words);
    }
}

#[test]
fn gpus_of_different_kinds_are_numbered_by_cuda_itself() {
    let hybrid = SimHost::spoilt("echo 0x1fb2 > sys/bus/pci/devices/0000:01:00.0/device");
    finds(&hybrid, &[], "igpu-dgpu-order", "note", "CUDA_DEVICE_ORDER is not set");
    for (host, environment) in [(&SimHost::default(), None), (&hybrid, Some(("CUDA_DEVICE_ORDER", "PCI_BUS_ID")))] {
        let Some(report) = judged(host, &environment.into_iter().collect::<Vec<_>>()) else { return };
        assert_eq!(finding(&report, "igpu-dgpu-order"), None);
    }
}

#[test]
fn the_library_that_wins_by_ld_library_path_is_named() {
    let scratch = scratch();
    let lay = |path: &str| {
        let path = scratch.at(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, "").expect("a file");
    };
    lay("old/libcuda.so.1");
    lay("cuda-12.1/libcudart.so.12.1.105");
    lay("cuda-12.4/libcudart.so.12.4.127");
    for (directory, target) in [("cuda-12.1", "libcudart.so.12.1.105"), ("cuda-12.4", "libcudart.so.12.4.127")] {
        std::os::unix::fs::symlink(target, scratch.at(directory).join("libcudart.so.12")).expect("a link");
    }
    let at = |name: &str| scratch.at(name).to_string_lossy().into_owned();
    let id = "ld-library-path-foreign-cuda";
    let host = SimHost::default();
    finds(&host, &[("LD_LIBRARY_PATH", &at("old"))], id, "warning", "old/libcuda.so.1");
    let both = [at("cuda-12.1"), at("cuda-12.4")];
    finds(&host, &[("LD_LIBRARY_PATH", &both.join(":"))], id, "warning", "libcudart.so.12\" (12.1.105), and never");
    let newest_first = both.iter().rev().cloned().collect::<Vec<_>>().join(":");
    if let Some(report) = judged(&host, &[("LD_LIBRARY_PATH", &newest_first)]) {
        assert_eq!(finding(&report, id), None);
    }
}

#[test]
fn of_a_machine_below_a_directory_the_callers_environment_says_nothing() {
    let scratch = scratch();
    SimHost::default().lay(Path::new(&scratch.at("")));
    let root = scratch.at("").to_string_lossy().into_owned();
    let spoilt = [("CUDA_VISIBLE_DEVICES", "all"), ("LD_LIBRARY_PATH", "/nowhere"), ("CUDA_LAUNCH_BLOCKING", "1")];
    let run = gpu_preflight(&["host", "--format=json", "--host-root", &root]);
    let ended = spoilt.iter().fold(run, |run, (name, value)| run.env(name, *value)).end();
    let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
    let of_it = |finding: &&Value| finding["subject"] == "environment";
    assert!(report["findings"].as_array().expect("findings").iter().find(of_it).is_none(), "{report:#}");
    assert!(!report["unknown"].to_string().contains("environment"), "{report:#}");
}

/// A Python environment below a directory, whose torch says that it was built for this.
fn environment(root: &Path, version: &str, cuda: &str) {
    let site = root.join("lib/python3.11/site-packages");
    std::fs::create_dir_all(site.join("torch")).expect("a directory");
    std::fs::create_dir_all(site.join(format!("torch-{version}.dist-info"))).expect("a directory");
    std::fs::write(site.join("torch/version.py"), format!("cuda = {cuda}\nhip = None\n")).expect("a file");
    std::fs::create_dir_all(root.join("bin")).expect("a directory");
    std::fs::write(root.join("pyvenv.cfg"), "home = /usr/bin\nversion = 3.11.2\n").expect("a file");
    // nothing of it is to run
    std::os::unix::fs::symlink("/bin/false", root.join("bin/python3")).expect("a link");
}

#[test]
fn the_python_on_the_path_is_judged_by_its_files_against_the_driver() {
    let scratch = scratch();
    let host = SimHost::default();
    let usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    for (name, version, cuda, found) in [
        ("new", "2.11.0", "'13.0'", Some(("framework-cuda-newer-than-driver", "warning"))),
        ("cpu", "2.9.0+cpu", "None", Some(("framework-is-cpu-build", "note"))),
        ("fits", "2.5.1", "'12.4'", None),
    ] {
        let root = scratch.at(name);
        environment(&root, version, cuda);
        let python = format!("{}/bin/python3", root.display());
        let path = format!("{}/bin:{usual}", root.display());
        let variables = [("PATH", path.as_str()), ("VIRTUAL_ENV", root.to_str().expect("UTF-8"))];
        if let Some((id, severity)) = found {
            finds(&host, &variables, id, severity, &python);
        }
        let Some(report) = judged(&host, &variables) else { return };
        crate::schema::check_report(&report);
        let fact = &report["facts"]["host"]["python"];
        assert_eq!((&fact["path"], &fact["frameworks"][0]["version"]), (&python.into(), &version.into()), "{fact:#}");
        let of_image = report["findings"].as_array().expect("findings").iter().filter(|f| f["subject"] == "image");
        assert_eq!(of_image.count(), usize::from(found.is_some()), "{report:#}");
    }
}
