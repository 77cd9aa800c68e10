use super::look::testing::Laid;
use super::*;
use crate::model::host::{EngineKind, Platform};

fn options(scope: Scope) -> Options {
    Options { laid_out: true, driver_root: None, scope }
}

/// A machine of which everything was copied that says that there is no GPU.
fn bare() -> Laid {
    let laid = Laid::out(&[
        ("/proc/devices", "Character devices:\n  1 mem\n"),
        ("/proc/sys/kernel/osrelease", "6.1.0-30-amd64\n"),
        ("/proc/sys/kernel/arch", "x86_64\n"),
        ("/dev/null", ""),
        ("/etc/os-release", "ID=debian\n"),
        ("/var/log/kern.log", ""),
        ("/sys/fs/cgroup/cgroup.controllers", "cpu\n"),
    ]);
    for directory in ["/sys/module/ext4", "/sys/bus/pci/devices", "/lib/modules/6.1.0-30-amd64"] {
        laid.directory(directory);
    }
    laid
}

/// The same with one GPU and its driver.
fn with_a_gpu() -> Laid {
    let laid = bare();
    laid.write("/proc/devices", "Character devices:\n195 nvidia\n195 nvidiactl\n510 nvidia-uvm\n");
    laid.write(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8\n",
    );
    laid.write("/proc/driver/nvidia/params", "DeviceFileMode: 438\n");
    laid.write("/proc/driver/nvidia/gpus/0000:65:00.0/information", "GPU UUID: \t GPU-1\nDevice Minor: \t 0\n");
    laid.write("/sys/module/nvidia/version", "550.163.01\n");
    laid.write("/sys/module/nvidia_uvm/version", "550.163.01\n");
    laid.write("/dev/nvidia0", "");
    laid.write("/usr/bin/dockerd", "");
    for (file, value) in [("vendor", "0x10de"), ("class", "0x030200"), ("device", "0x2330")] {
        laid.write(&format!("/sys/bus/pci/devices/0000:65:00.0/{file}"), value);
    }
    laid
}

#[test]
fn a_machine_that_never_heard_of_nvidia_is_wholly_known() {
    let host = read(&bare().tree(), &options(Scope::Full));
    assert_eq!(host.has_gpu(), Ok(false));
    let expected = Host {
        laid_out: true,
        kernel: Observed::Known("6.1.0-30-amd64".into()),
        architecture: Observed::Known("x86_64".into()),
        majors: host.majors.clone(),
        cgroup_v2: Observed::Known(true),
        os: Observed::Known(vec!["debian".into()]),
        driver: crate::model::host::Driver {
            root: host.driver.root.clone(),
            module_files: host.driver.module_files.clone(),
            ..Default::default()
        },
        ..Host::default()
    };
    assert_eq!(host, expected);
    assert!(host.majors.known().is_ok() && host.driver.module_files.known().is_ok());
}

#[test]
fn a_hooks_look_knows_the_driver_and_says_what_it_left_out() {
    let laid = with_a_gpu();
    let host = read(&laid.tree(), &options(Scope::Hook));
    assert_eq!(host.has_gpu(), Ok(true));
    assert_eq!(host.driver.version.seen().unwrap().as_ref().unwrap().as_str(), "550.163.01");
    assert_eq!(host.driver.has_module("nvidia_uvm"), Ok(true));
    assert_eq!(host.majors.known().unwrap().uvm(), Some(510));
    assert!(host.device_nodes.known().unwrap().contains_key("/dev/nvidia0"));
    assert_eq!(host.gpus.known().unwrap()[0].uuid, None, "identities wake a GPU");
    let left_out = [
        host.pci.known().err(),
        host.cdi.known().err(),
        host.driver.libraries.known().err(),
        host.driver.module_files.known().err(),
        host.toolkit.version.known().err(),
        host.kernel_log.known().err(),
    ];
    for unknown in left_out {
        assert_eq!(unknown.unwrap().reason, LEFT_OUT);
    }
    assert!(host.engines.is_empty());
    laid.write("/run/nvidia-persistenced/socket", "");
    let host = read(&laid.tree(), &options(Scope::Hook));
    assert_eq!(host.sockets, Observed::Known(vec!["/run/nvidia-persistenced/socket".into()]));
}

#[test]
fn a_hook_looks_at_the_bus_only_when_the_driver_shows_no_gpu() {
    let host = read(&bare().tree(), &options(Scope::Hook));
    assert_eq!((host.pci.clone(), host.has_gpu()), (Observed::Known(Vec::new()), Ok(false)));
    let laid = bare();
    for (file, value) in [("vendor", "0x10de"), ("class", "0x030000"), ("device", "0x2204")] {
        laid.write(&format!("/sys/bus/pci/devices/0000:01:00.0/{file}"), value);
    }
    assert_eq!(read(&laid.tree(), &options(Scope::Hook)).has_gpu(), Ok(true));
}

#[test]
fn a_full_look_adds_the_rest() {
    let host = read(&with_a_gpu().tree(), &options(Scope::Full));
    assert_eq!(host.platform, Platform::Native);
    assert_eq!(host.gpus.known().unwrap()[0].uuid.as_deref(), Some("GPU-1"));
    assert_eq!(host.pci.known().unwrap()[0].device, 0x2330);
    assert_eq!(host.engines[0].kind, EngineKind::Docker);
    assert_eq!(host.driver.modules.known().unwrap()["nvidia_uvm"].version.as_deref(), Some("550.163.01"));
}

#[test]
fn this_machine_can_be_looked_at_whatever_it_is() {
    let tree = Tree::open("/".as_ref(), crate::collect::tree::Kind::Host).unwrap();
    for scope in [Scope::Hook, Scope::Full] {
        let host = read(&tree, &Options { laid_out: false, driver_root: None, scope });
        assert!(host.kernel.known().is_ok() && host.architecture.known().is_ok());
    }
}
