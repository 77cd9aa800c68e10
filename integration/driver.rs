//! What `host` says of a driver that was updated, of modules that were not built, and of processes that hang in it: on
//! machines that are laid out.

use serde_json::Value;

use crate::support::host::SimHost;
use crate::support::programs::gpu_preflight;
use crate::support::{needs, scratch};

/// The finding of a name on a machine that is spoilt so.
fn finding(spoil: &'static str, id: &str) -> Option<Value> {
    if !needs::tools(&["cc"]) {
        return None;
    }
    let scratch = scratch();
    SimHost::spoilt(spoil).lay(&scratch.at("host"));
    let root = scratch.at("host").to_string_lossy().into_owned();
    let ended = gpu_preflight(&["host", "--format=json", "--host-root", &root]).end();
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let all = report["findings"].as_array().expect("findings");
    let found = all.iter().find(|finding| finding["id"] == id).cloned();
    Some(found.unwrap_or_else(|| panic!("no {id} in {report:#}")))
}

#[track_caller]
fn says(spoil: &'static str, id: &str, words: &str, command: Option<&str>) {
    let Some(finding) = finding(spoil, id) else { return };
    assert!(finding["message"].as_str().expect("a message").contains(words), "{finding:#}");
    if let Some(command) = command {
        assert_eq!(finding["remedy"][0]["command"], command, "{finding:#}");
    }
}

#[test]
fn a_reboot_that_is_pending_is_told_from_two_drivers() {
    let id = "driver-library-mismatch";
    let reload = Some("rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia");
    says(
        "echo 550.127.05 > sys/module/nvidia/version; mkdir -p var/lib/dpkg; \
         printf 'Package: libnvidia-ml1\\nStatus: install ok installed\\nVersion: 550.163.01-1\\n' > var/lib/dpkg/status",
        id,
        "package libnvidia-ml1 has put libnvidia-ml 550.163.01 in place",
        reload,
    );
    says(
        "echo 550.127.05 > sys/module/nvidia/version; mkdir -p var/lib/dpkg; \
         printf 'Package: libnvidia-ml1\\nStatus: install ok installed\\nVersion: 550.127.05-1\\n' > var/lib/dpkg/status",
        id,
        "not 550.127.05 as package libnvidia-ml1 has it: two drivers are installed",
        None,
    );
    says("echo 550.127.05 > sys/module/nvidia/version", id, "without a reboot, or two are installed", reload);
}

/// A module as the kernel's build makes it says its version in a section of its own.
#[test]
fn a_module_that_was_not_built_anew_is_read_from_its_file() {
    says(
        "echo 550.127.05 > sys/module/nvidia/version; mkdir -p var/lib/dpkg lib/modules/$(uname -r)/updates/dkms; \
         printf 'Package: libnvidia-ml1\\nStatus: install ok installed\\nVersion: 550.163.01-1\\n' > var/lib/dpkg/status; \
         echo 'static const char v[] __attribute__((section(\".modinfo\"), used)) = \"license=x\\0version=550.127.05\";' | \
             cc -c -o lib/modules/$(uname -r)/updates/dkms/nvidia.ko -x c -",
        "driver-library-mismatch",
        "the module on disk for this kernel is 550.127.05: it was not built anew",
        None,
    );
}

#[test]
fn how_far_dkms_came_for_the_next_kernel() {
    says(
        "echo 6.1.0-30-amd64 > proc/sys/kernel/osrelease; mkdir -p lib/modules/6.1.0-30-amd64/updates/dkms \
             lib/modules/6.1.0-31-amd64 var/lib/dkms/nvidia/550.163.01/source; \
         touch lib/modules/6.1.0-30-amd64/updates/dkms/nvidia.ko",
        "driver-module-missing-for-kernel",
        "DKMS has nvidia/550.163.01, and the headers of this kernel are not installed",
        Some("apt install linux-headers-6.1.0-31-amd64 && dkms install nvidia/550.163.01 -k 6.1.0-31-amd64"),
    );
}

#[test]
fn a_process_that_hangs_in_the_driver_is_named() {
    says(
        "mkdir -p proc/77; echo '77 (python3) D 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4711 0' > proc/77/stat; \
         echo '[<0>] os_acquire_semaphore+0x35/0x40 [nvidia]' > proc/77/stack",
        "process-stuck-in-driver",
        "process 77 (\"python3\") sleeps inside the driver, in \"os_acquire_semaphore\"",
        None,
    );
}
