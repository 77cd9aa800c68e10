//! enroot: a hook with the environment that enroot's documentation and `src/runtime.sh` name (github.com/NVIDIA/enroot
//! of 2026-04-29): the user's, `ENROOT_ROOTFS`, `ENROOT_ENVIRON` and so on. The real one was tried by hand.

use super::{Case, Place, silent};
use crate::support::host::SimHost;
use crate::support::write;

const SCRIPT: &str = "enroot-97-gpu-preflight.sh";

/// As enroot writes it from an image of CUDA and `--env`.
const ENVIRON: &str = "PATH=/usr/local/nvidia/bin:/usr/bin\nNVIDIA_VISIBLE_DEVICES=all\n\
    NVIDIA_DRIVER_CAPABILITIES=compute,utility\nNVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=535\n";

const UVM_MISSING: &str = "rm dev/nvidia-uvm*";

pub(super) fn hook() -> Case {
    Case {
        script: SCRIPT,
        prepare: |place| place,
        environment: |place| environment(place, ENVIRON),
        args: &[],
        refuses: 1,
    }
}

fn environment(place: &Place, environ: &str) -> Vec<(&'static str, String)> {
    write(&place.at("environ"), environ);
    let [rootfs, environ] = ["rootfs", "environ"].map(|name| place.at(name).display().to_string());
    vec![("ENROOT_PID", "4711".to_owned()), ("ENROOT_ROOTFS", rootfs), ("ENROOT_ENVIRON", environ)]
}

fn run(spoil: &'static str, environ: &str, user: &[(&'static str, &str)]) -> super::Ended {
    let place = Place::on(&SimHost::spoilt(spoil), SCRIPT);
    let environment = environment(&place, environ);
    let environment: Vec<_> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).chain(user.iter().copied()).collect();
    place.run(&environment, &[])
}

/// The commonest of enroot's silent failures after a reboot (NVIDIA/enroot issue 106).
#[test]
fn a_start_without_uvm_is_refused_on_standard_error() {
    let ended = run(UVM_MISSING, ENVIRON, &[]);
    assert_eq!((ended.code(), ended.stdout.as_str()), (1, ""), "enroot drops what a hook prints");
    assert!(ended.stderr.starts_with("gpu-preflight: start refused [uvm-node-missing] "), "{}", ended.stderr);
    assert!(ended.stderr.ends_with(" To start anyway: export GPU_PREFLIGHT=off.\n"), "{}", ended.stderr);
}

#[test]
fn who_asks_for_no_gpu_or_no_compute_starts() {
    let of_image = |devices: &str| ENVIRON.replace("DEVICES=all", &format!("DEVICES={devices}"));
    for environ in ["", "PATH=/usr/bin\n", &of_image("void"), &of_image("none"), &of_image("")] {
        silent(&run(UVM_MISSING, environ, &[]), environ);
    }
    // The last line counts, and what nobody set is `utility`.
    silent(&run(UVM_MISSING, &format!("{ENVIRON}NVIDIA_VISIBLE_DEVICES=void\n"), &[]), "a second line");
    for capabilities in ["utility", "", "utility,video"] {
        let environ = ENVIRON.replace("compute,utility", capabilities);
        silent(&run(UVM_MISSING, &environ, &[]), capabilities);
    }
}

#[test]
fn the_user_s_environment_comes_first_and_is_the_way_past() {
    silent(&run(UVM_MISSING, ENVIRON, &[("NVIDIA_VISIBLE_DEVICES", "void")]), "the user's choice");
    assert_eq!(run(UVM_MISSING, "NVIDIA_DRIVER_CAPABILITIES=all\n", &[("NVIDIA_VISIBLE_DEVICES", "0")]).code(), 1);
    silent(&run(UVM_MISSING, ENVIRON, &[("GPU_PREFLIGHT", "off")]), "switched off");
    silent(&run(UVM_MISSING, &format!("{ENVIRON}GPU_PREFLIGHT=off\n"), &[]), "switched off by --env");
}
