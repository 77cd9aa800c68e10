//! What Nagios, Prometheus, node-feature-discovery and systemd get of `host`, and what `--compare` says of a machine
//! that has changed.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::host::SimHost;
use crate::support::process::{Ended, Run};
use crate::support::programs::{cli, gpu_preflight};
use crate::support::scene::Scene;
use crate::support::{needs, repository, scratch};

/// An error that the driver's facts do not show.
const NODE_GONE: &str = "rm dev/nvidiactl";
/// The modules are gone, the libraries are there.
const NOT_LOADED: &str =
    "rm -r sys/module/nvidia* proc/driver/nvidia dev/nvidia*; sed -i /nvidia/d proc/modules proc/devices";

fn host(scene: &Scene, args: &[&str]) -> Ended {
    let root = scene.host().to_string_lossy().into_owned();
    gpu_preflight(&[&["host", "--host-root", &root], args].concat()).end()
}

#[test]
fn a_plugin_says_its_state_in_the_first_line_and_by_its_code() {
    if !needs::root() {
        return;
    }
    for (machine, code, first) in [
        (SimHost::default(), 0, "GPU OK - ready for GPU containers (driver 550.163.01, 2 x NVIDIA H100 80GB HBM3"),
        (SimHost::bare(), 0, "GPU OK - this machine has no NVIDIA part | gpus=0 errors=0 warnings=0 unknown="),
        (SimHost::spoilt("rm dev/nvidia1"), 1, "GPU WARNING - ready for GPU containers (driver 550.163.01, 2 x NVIDIA"),
        (SimHost::spoilt(NODE_GONE), 2, "GPU CRITICAL - GPU containers will not work (driver 550.163.01, 2 x NVIDIA"),
        (SimHost::spoilt(NOT_LOADED), 2, "GPU CRITICAL - GPU containers will not work (driver not loaded"),
    ] {
        let scene = Scene::on(&machine);
        // how bad a finding must be is the state's affair
        for fail_on in ["error", "never", "unknown"] {
            let ended = host(&scene, &["--format", "nagios", "--fail-on", fail_on]);
            assert_eq!((ended.code(), ended.stderr.as_str()), (code, ""), "{ended:?}");
            assert!(ended.stdout.starts_with(first), "{ended:?}");
            assert_eq!(ended.stdout.matches('|').count(), 1, "{ended:?}");
            assert!(ended.stdout.len() <= 4096 && ended.stdout.lines().count() <= 24, "{ended:?}");
        }
    }
}

/// Data behind the bar, by the guidelines' grammar.
#[test]
fn performance_data_can_be_read() {
    if !needs::root() {
        return;
    }
    let ended = host(&Scene::on(&SimHost::spoilt(NODE_GONE)), &["--format", "nagios"]);
    let (_, data) = ended.stdout.lines().next().and_then(|line| line.split_once(" | ")).expect("a bar");
    let data: BTreeMap<&str, i64> = data
        .split(' ')
        .map(|pair| pair.split_once('=').expect("label=value"))
        .map(|(label, value)| (label, value.parse().expect("a number")))
        .collect();
    assert_eq!(data.keys().copied().collect::<Vec<_>>(), ["errors", "gpus", "unknown", "warnings"]);
    assert!(data["gpus"] == 2 && data["errors"] > 0, "{data:?}");
}

/// 2 would be CRITICAL, and standard error is what nobody sees.
#[test]
fn a_plugin_that_cannot_judge_is_unknown() {
    for args in [
        &["host", "--host-root", "/nonexistent", "--format", "nagios"][..],
        &["host", "--no-such-option", "--format", "nagios"],
        &["host", "--format=nagios", "--ignore", "no-such-check"],
        &["container", "/nonexistent", "--format", "nagios"],
    ] {
        let ended = gpu_preflight(args).end();
        assert_eq!((ended.code(), ended.stderr.as_str()), (3, ""), "{args:?}: {ended:?}");
        assert!(ended.stdout.starts_with("GPU UNKNOWN - ") && !ended.stdout.contains('|'), "{args:?}: {ended:?}");
    }
    let ended = gpu_preflight(&["host", "--no-such-option"]).env("GPU_PREFLIGHT_FORMAT", "nagios").end();
    assert_eq!((ended.code(), ended.stderr.as_str()), (3, ""), "{ended:?}");
}

#[test]
fn what_judges_no_machine_has_no_such_format() {
    for format in ["prometheus", "nfd"] {
        for args in
            [&["container", "."][..], &["image", "x"], &["status"], &["checks"], &["explain", "x"], &["install"]]
        {
            let ended = gpu_preflight(&[args, &["--format", format]].concat()).end();
            assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""), "{args:?}");
            assert!(ended.stderr.contains("are for host"), "{args:?}: {ended:?}");
        }
    }
}

#[test]
fn prometheus_own_tool_finds_nothing_wrong_with_the_metrics() {
    let Some(promtool) = needs::find("promtool").filter(|_| needs::root()) else {
        needs::tools(&["promtool"]);
        return;
    };
    for machine in [
        SimHost::default(),
        SimHost::bare(),
        SimHost::spoilt(NODE_GONE),
        SimHost::spoilt(NOT_LOADED),
        SimHost { gpu: (r#"a "b" \ {c="d"} 1"#, "0x2330"), ..SimHost::default() },
    ] {
        let ended = host(&Scene::on(&machine), &["--format", "prometheus", "--fail-on", "never"]);
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
        let checked = Run::new(&promtool).args(["check", "metrics"]).stdin(ended.stdout.as_str()).end();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}: {}", ended.stdout);
    }
}

#[test]
fn metrics_tell_verdict_findings_and_gpus() {
    if !needs::root() {
        return;
    }
    let ended = host(&Scene::on(&SimHost::spoilt(NODE_GONE)), &["--format", "prometheus"]);
    assert_eq!(ended.code(), 1);
    for wanted in [
        "driver=\"550.163.01\",cuda=\"12.4\",kernel=\"",
        "\ngpu_preflight_verdict{verdict=\"fail\"} 1\n",
        "\ngpu_preflight_verdict{verdict=\"pass\"} 0\n",
        "\ngpu_preflight_finding{id=\"control-node-missing\",severity=\"error\",subject=\"nodes\",ignored=\"false\"} 1\n",
        "\ngpu_preflight_gpus{seen_by=\"driver\"} 2\n",
        "\ngpu_preflight_gpu_info{index=\"1\",uuid=\"GPU-00000001-0000-4000-8000-000000000001\",pci=\"0000:02:00.0\",name=\"NVIDIA H100 80GB HBM3\"} 1\n",
    ] {
        assert!(ended.stdout.contains(wanted), "{wanted}: {}", ended.stdout);
    }
}

/// As NFD reads it: the labels of a file's lines.
fn labels(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let all = lines.map(|line| {
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        (
            name.strip_prefix("feature.node.kubernetes.io/gpu-preflight.").expect("our names").to_owned(),
            value.to_owned(),
        )
    });
    let all: BTreeMap<String, String> = all.collect();
    for (name, value) in &all {
        for text in [name, value] {
            let inner = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            let ends = text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.ends_with(|c: char| c.is_ascii_alphanumeric());
            assert!(inner && ends && text.len() <= 40, "{name}={value}");
        }
    }
    all
}

#[test]
fn a_nodes_labels_are_those_of_its_driver_and_verdict() {
    if !needs::root() {
        return;
    }
    let of = |machine: &SimHost| labels(&host(&Scene::on(machine), &["--format", "nfd"]).stdout);
    let well = of(&SimHost::gpus(8));
    let wanted = [
        ("cuda-version", "12.4"),
        ("driver-major", "550"),
        ("driver-version", "550.163.01"),
        ("errors", "0"),
        ("gpus", "8"),
        ("verdict", "pass"),
    ];
    let told: Vec<_> = well.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(told.into_iter().filter(|(name, _)| *name != "warnings").collect::<Vec<_>>(), wanted);
    let sick = of(&SimHost::spoilt(NOT_LOADED));
    assert!(sick["verdict"] == "fail" && !sick.contains_key("driver-version") && !sick.contains_key("cuda-version"));
    assert_eq!(of(&SimHost::bare())["verdict"], "skip");
}

#[test]
fn who_reads_the_file_sees_the_old_text_or_the_new_one_and_when_it_was_written() {
    let (well, sick) = (Scene::on(&SimHost::default()), Scene::on(&SimHost::spoilt(NOT_LOADED)));
    let place = scratch();
    let file = place.at("gpu-preflight.prom");
    let name = file.to_string_lossy().into_owned();
    let args = ["--format", "prometheus", "--fail-on", "never", "--output", &name];
    let printed = [&well, &sick].map(|scene| host(scene, &args[..4]).stdout);
    let inode = || std::fs::metadata(&file).expect("the file").ino();
    let ended = host(&well, &args);
    assert_eq!((ended.code(), ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
    let first = inode();
    host(&well, &args);
    assert_ne!(inode(), first, "the same text is written anew");
    assert_eq!(std::fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o644);

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&file).expect("it is always there");
                assert!(printed.contains(&text), "half a file: {text}");
                reads += 1;
            }
            reads
        });
        for scene in [&sick, &well].into_iter().cycle().take(10) {
            host(scene, &args);
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("the reader") > 10);
    });
    assert_eq!(std::fs::read_dir(place.path()).expect("a directory").count(), 1);
}

#[test]
fn a_report_for_people_has_no_colour_in_a_file_and_a_file_that_cannot_be_written_is_an_error() {
    let scene = Scene::on(&SimHost::default());
    let file = scene.at("report.txt");
    let name = file.to_string_lossy().into_owned();
    host(&scene, &["--color", "always", "--output", &name]);
    let text = std::fs::read_to_string(&file).expect("the report");
    assert!(!text.contains('\u{1b}') && text.contains("driver 550.163.01"), "{text}");
    let taken = scene.host().to_string_lossy().into_owned();
    for bad in ["/nonexistent/a.prom", &taken, "/dev/stdout"] {
        let ended = host(&scene, &["--output", bad]);
        assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""), "{bad}: {ended:?}");
    }
}

#[test]
fn what_changed_since_it_worked_stands_before_what_is_wrong_now() {
    if !needs::root() {
        return;
    }
    let scene = Scene::on(&SimHost::default());
    let profile = scene.at("worked.json").to_string_lossy().into_owned();
    let saved = host(&scene, &["--save", &profile]);
    assert_eq!(saved.code(), 0, "{saved:?}");
    let same = host(&scene, &["--compare", &profile]);
    assert_eq!(same.code(), 0);
    let first = same.stdout.lines().next().expect("a line");
    assert!(first.ends_with(&format!("; nothing changed since {profile}")), "{first}");
    // saved to the file that is compared with: what it was counts
    let kernel = scene.host().join("proc/sys/kernel/osrelease");
    std::fs::write(kernel, "9.9.9-test\n").expect("another kernel");
    let booted = host(&scene, &["--compare", &profile, "--save", &profile]);
    assert_eq!(booted.code(), 0, "a change is no finding: {booted:?}");
    assert!(booted.stdout.contains("; 1 change since ") && booted.stdout.contains(", now 9.9.9-test\n"), "{booted:?}");

    let spoil = "rm dev/nvidiactl; chmod 660 dev/nvidia0; rm -r sys/module/nvidia_drm; sed -i /nvidia_drm/d proc/modules
        mkdir -p etc/nvidia-container-runtime; printf '[nvidia-container-cli]\\nno-cgroups = true\\n' >etc/nvidia-container-runtime/config.toml
        echo 9.9.9-test >proc/sys/kernel/osrelease";
    let now = host(&Scene::on(&SimHost::spoilt(spoil)), &["--compare", &profile]);
    assert_eq!(now.code(), 1);
    let at = |text: &str| now.stdout.find(text).unwrap_or_else(|| panic!("{text}: {}", now.stdout));
    let order = [
        "modules  nvidia_drm: gone",
        "nodes    /dev/nvidiactl: gone (nvidiactl, minor 255, 0666)",
        "nodes    /dev/nvidia0 mode: 0666, now 0660",
        "toolkit  config: none, now /etc/nvidia-container-runtime/config.toml",
        "error [control-node-missing]",
    ];
    let places = order.map(at);
    assert!(places.is_sorted(), "{places:?}: {}", now.stdout);
}

#[test]
fn what_is_no_profile_is_not_compared_with() {
    let scene = Scene::on(&SimHost::bare());
    let file = scene.at("a.json");
    let name = file.to_string_lossy().into_owned();
    for (text, says) in
        [(None, "it is absent"), (Some("{}"), "it is no host profile"), (Some("\0"), "it is no host profile")]
    {
        if let Some(text) = text {
            std::fs::write(&file, text).expect("a file");
        }
        let ended = host(&scene, &["--compare", &name]);
        assert!(ended.code() == 2 && ended.stderr.contains(says), "{ended:?}");
    }
    let ended = host(&scene, &["--compare", &name, "--format", "nagios"]);
    assert!(ended.code() == 3 && ended.stdout.contains("text and JSON only"), "{ended:?}");
}

fn unit(name: &str) -> String {
    std::fs::read_to_string(repository().join("packaging/systemd").join(name)).expect("a unit")
}

/// The values of a unit's setting.
fn settings<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

#[test]
fn systemd_takes_the_units() {
    let Some(analyze) = needs::find("systemd-analyze") else {
        needs::tools(&["systemd-analyze"]);
        return;
    };
    let place = scratch();
    let service = unit("gpu-preflight-host.service").replace("/usr/bin/gpu-preflight", &cli().to_string_lossy());
    std::fs::write(place.at("gpu-preflight-host.service"), service).expect("a unit");
    std::fs::write(place.at("gpu-preflight-host.timer"), unit("gpu-preflight-host.timer")).expect("a unit");
    let units = ["service", "timer"].map(|kind| place.at(&format!("gpu-preflight-host.{kind}")));
    let verified = Run::new(analyze).args(["verify", "--man=no"]).args(&units).end();
    // what it does not understand in a unit it warns of and passes over; other units of the machine are no affair of ours
    assert!(verified.status.success() && !verified.stderr.contains("gpu-preflight"), "{verified:?}");
}

/// The unit's command with the unit's environment: metrics where the unit says, and codes that it takes for success.
#[test]
fn the_units_command_writes_the_metrics() {
    let service = unit("gpu-preflight-host.service");
    let [command] = settings(&service, "ExecStart")[..] else { panic!("one command: {service}") };
    let args = command.strip_prefix("/usr/bin/gpu-preflight ").expect("our program").split(' ');
    let environment = settings(&service, "Environment");
    let (name, file) = environment[0].split_once('=').expect("a variable");
    let directory = Path::new(file).parent().and_then(Path::to_str).expect("a directory");
    let writable = settings(&service, "ReadWritePaths");
    assert!(name == "GPU_PREFLIGHT_OUTPUT" && writable == [format!("-{directory}")], "{writable:?}");
    for (machine, code) in [(SimHost::bare(), "0"), (SimHost::spoilt(NOT_LOADED), "1")] {
        let scene = Scene::on(&machine);
        let written = scene.at("gpu-preflight.prom");
        let run = Run::new(cli()).args(args.clone()).env(name, &written).env("GPU_PREFLIGHT_HOST_ROOT", scene.host());
        let ended = run.end();
        assert_eq!((ended.code().to_string().as_str(), ended.stdout.as_str()), (code, ""), "{ended:?}");
        assert!(code == "0" || settings(&service, "SuccessExitStatus") == [code]);
        assert!(std::fs::read_to_string(written).expect("metrics").contains("gpu_preflight_verdict{verdict="));
    }
}

/// What it may do under systemd is enough for all that it finds, and for a directory and a file of another user.
#[test]
fn the_units_capabilities_are_enough() {
    if !needs::root() || !needs::tools(&["setpriv"]) {
        return;
    }
    let service = unit("gpu-preflight-host.service");
    let [kept] = settings(&service, "CapabilityBoundingSet")[..] else { panic!("one set: {service}") };
    let kept = kept.to_lowercase().replace("cap_", "+").replace(' ', ",");
    let place = scratch();
    let file = place.at("gpu-preflight.prom");
    let args = [
        cli().as_os_str(),
        "host".as_ref(),
        "--format".as_ref(),
        "prometheus".as_ref(),
        "--output".as_ref(),
        file.as_os_str(),
    ]
    .map(std::ffi::OsStr::to_owned);
    for machine in
        [SimHost::default(), SimHost::spoilt("chmod 600 dev/nvidia*; chown 65534 dev/nvidia*"), SimHost::bare()]
    {
        let [free, bound] =
            [vec![], vec!["setpriv".to_owned(), format!("--bounding-set=-all,{kept}"), "--no-new-privs".to_owned()]]
                .map(|before| {
                    std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).expect("another owner");
                    let run = machine.run(before.into_iter().map(Into::into).chain(args.clone())).end();
                    assert_eq!(run.stderr, "", "{run:?}");
                    let owner = std::fs::metadata(&file).expect("the file").uid();
                    let text = std::fs::read_to_string(&file).expect("the metrics");
                    // the next run finds a file of that user's
                    std::os::unix::fs::chown(&file, Some(65534), Some(65534)).expect("another owner");
                    (run.code(), text, owner)
                });
        assert_eq!((free.0, free.1), (bound.0, bound.1), "{}", machine.spoil);
        assert_eq!(bound.2, 65534, "a file keeps its owner");
    }
}
