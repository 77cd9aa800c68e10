//! Slurm: Prolog and `HealthCheckProgram`, with the environment that slurmd 22.05.8 of Debian 12 gave them (captured on
//! 2026-11-30) and a stand-in for scontrol that answers as it did. A real slurmd was tried by hand.

use super::{Case, NOT_LOADED, Place};
use crate::support::host::SimHost;

/// `scontrol --oneliner show node`, cut.
const NODE: &str = "NodeName=vm Arch=x86_64 CPUAlloc=0 CPUTot=2 AvailableFeatures=(null) Gres=gpu:2 NodeAddr=127.0.0.1 \
    Version=22.05.8 RealMemory=1000 State=IDLE ThreadsPerCore=1 CfgTRES=cpu=2,mem=1000M,billing=2 AllocTRES=";

const UVM_MISSING: &str = "rm dev/nvidia-uvm*";

pub(super) fn prolog() -> Case {
    let environment = |_: &Place| job(Some("0,1"));
    Case { script: "slurm-prolog.sh", prepare: |place| scontrol(place, NODE), environment, args: &[], refuses: 1 }
}

pub(super) fn health_check() -> Case {
    let environment = |_: &Place| vec![("SLURMD_NODENAME", "vm".to_owned())];
    // It tells nobody but scontrol: the stand-in's words are the place's.
    let prepare = |place: Place| {
        let told = place.at("told").display().to_string();
        let place = scontrol(place, NODE);
        place.edit("\nexit 0\n", format!("\nsed -n 's/.*reason=//p' {told}\nexit 0\n"))
    };
    Case { script: "slurm-health-check.sh", prepare, environment, args: &[], refuses: 0 }
}

/// What slurmd sets for a Prolog; without GPUs it sets nothing about them.
fn job(gpus: Option<&str>) -> Vec<(&'static str, String)> {
    let of_all = [
        ("SLURM_JOB_USER", "root"),
        ("SLURM_JOBID", "3"),
        ("SLURM_JOB_WORK_DIR", "/tmp"),
        ("SLURM_SCRIPT_CONTEXT", "prolog_slurmd"),
        ("SLURM_NODELIST", "vm"),
        ("SLURM_JOB_ID", "3"),
        ("SLURMD_NODENAME", "vm"),
        ("SLURM_CLUSTER_NAME", "t"),
    ];
    let of_gpus = ["SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"];
    let of_gpus = gpus.into_iter().flat_map(|gpus| of_gpus.map(|name| (name, gpus)));
    of_all.into_iter().chain(of_gpus).map(|(name, value)| (name, value.to_owned())).collect()
}

/// A stand-in that knows a node and writes down what it is told.
fn scontrol(place: Place, node: &str) -> Place {
    let told = place.at("told");
    let body = format!("case \"$*\" in *show*) echo '{node}' ;; *) echo \"$*\" >>{} ;; esac", told.display());
    let program = place.executable("bin/scontrol", &body);
    std::fs::write(told, "").expect("a file");
    let path = program.parent().expect("a directory").display().to_string();
    place.edit("PATH=/usr/local/sbin", format!("PATH={path}:/usr/local/sbin"))
}

fn told(place: &Place) -> String {
    std::fs::read_to_string(place.at("told")).expect("what scontrol was told")
}

fn run(place: &Place, environment: &[(&'static str, String)]) -> i32 {
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    place.run(&environment, &[]).code()
}

#[test]
fn a_prolog_drains_with_a_reason_and_stops_the_job() {
    let place = scontrol(Place::on(&SimHost::spoilt(NOT_LOADED), "slurm-prolog.sh"), NODE);
    assert_eq!(run(&place, &job(Some("0"))), 1);
    let reason = "update nodename=vm state=drain reason=gpu-preflight: [driver-not-loaded] ";
    assert!(told(&place).starts_with(reason), "{}", told(&place));
}

#[test]
fn a_job_without_gpus_starts_on_any_node() {
    let place = scontrol(Place::on(&SimHost::spoilt(NOT_LOADED), "slurm-prolog.sh"), NODE);
    assert_eq!((run(&place, &job(None)), told(&place).as_str()), (0, ""));
}

/// Slurm drains no node for what the job's first CUDA program makes.
#[test]
fn a_node_that_cuda_will_make_is_no_reason() {
    for script in ["slurm-prolog.sh", "slurm-health-check.sh"] {
        for spoil in
            [UVM_MISSING, "rm dev/nvidia*", "rm -r sys/module/nvidia_uvm; sed -i /uvm/d proc/modules proc/devices"]
        {
            let place = scontrol(Place::on(&SimHost::spoilt(spoil), script), NODE);
            assert_eq!((run(&place, &job(Some("0"))), told(&place).as_str()), (0, ""), "{script}, {spoil}");
        }
    }
}

#[test]
fn a_health_check_drains_only_nodes_whose_gpus_slurm_hands_out_and_keeps_a_reason() {
    let drained = NODE.replace("State=IDLE", "State=IDLE+DRAIN Reason=mine");
    let without = NODE.replace("Gres=gpu:2", "Gres=(null)");
    for (node, drains) in [(NODE, true), (&drained, false), (&without, false)] {
        let place = scontrol(Place::on(&SimHost::spoilt(NOT_LOADED), "slurm-health-check.sh"), node);
        assert_eq!(run(&place, &[("SLURMD_NODENAME", "vm".to_owned())]), 0);
        assert_eq!(told(&place).contains("state=drain reason=gpu-preflight: ["), drains, "{node}");
    }
}
