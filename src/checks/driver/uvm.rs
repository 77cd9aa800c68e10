//! A CUDA that does not start because of `nvidia_uvm`, by the code of a real `cuInit` and what the machine shows beside it.

use super::cuda::answered;
use super::kernel_log::since_load;
use crate::checks::not_applicable;
use crate::model::check::{Action, Check, Judgement, Outcome, Place, Severity, Step};
use crate::model::host::CudaStart;
use crate::model::{Facts, Host};

const AFTER_SLEEP: &str = "cuInit answers {code} ({meaning}), NVML answers well, and the machine has slept since boot: \
                           nvidia_uvm does not survive every sleep";
const HMM: &str = "cuInit answers {code} ({meaning}), and {sign}: on this kernel CUDA does not start with HMM";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "uvm-broken-after-resume",
        title: "nvidia_uvm is broken since the machine slept",
        why: "After suspend and resume cuInit fails with 999 although nvidia-smi works: \"CUDA unknown error - this may be due to an incorrectly set up environment\".",
        messages: &[AFTER_SLEEP],
        remedy: &[
            Step {
                action: Action::FreeGpu,
                text: "End the programs that use CUDA.",
                command: Some("fuser -v /dev/nvidia-uvm"),
            },
            Step {
                action: Action::LoadModule,
                text: "Load the module anew.",
                command: Some("rmmod nvidia_uvm && modprobe nvidia_uvm"),
            },
            Step {
                action: Action::ChangeEnvironment,
                text: "Let the driver keep its memory over a sleep, and enable its services.",
                command: Some(
                    "echo 'options nvidia NVreg_PreserveVideoMemoryAllocations=1' > /etc/modprobe.d/nvidia-sleep.conf; systemctl enable nvidia-suspend nvidia-resume",
                ),
            },
            Step { action: Action::Reboot, text: "If the module cannot be unloaded, reboot.", command: None },
            Step {
                action: Action::UpdateDriver,
                text: "Install another driver only if it fails after each sleep with these services on.",
                command: None,
            },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: broken_after_resume,
    },
    Check {
        id: "uvm-hmm-open-module",
        title: "HMM of the open module does not work on this kernel",
        why: "With the open kernel module on some kernels, of Enterprise Linux above all, cuInit fails with 3 or 999 because of heterogeneous memory management.",
        messages: &[HMM],
        remedy: &[
            Step {
                action: Action::LoadModule,
                text: "Switch HMM off and load the module anew.",
                command: Some(
                    "echo 'options nvidia_uvm uvm_disable_hmm=1' > /etc/modprobe.d/nvidia-uvm-hmm.conf; rmmod nvidia_uvm && modprobe nvidia_uvm",
                ),
            },
            Step { action: Action::Reboot, text: "To keep HMM: boot with the kernel option nokaslr.", command: None },
            Step { action: Action::UpdateDriver, text: "Update kernel and driver.", command: None },
        ],
        severities: &[Severity::Error],
        places: &[Place::Host, Place::Healthcheck],
        judge: hmm,
    },
];

/// `CUresult` (cuda.h).
const NOT_INITIALIZED: u32 = 3;
const UNKNOWN: u32 = 999;

/// What explains a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    AfterSleep,
    /// By which sign.
    Hmm(String),
    Other,
}

/// The code that cuInit answered with, if it did not succeed, and what explains it.
pub(super) fn cause(facts: &Facts<'_>) -> Option<(u32, Cause)> {
    let host = facts.host;
    let code = match host.cuda_start {
        Some(CudaStart::Answered(code)) if code != 0 => code,
        _ => return None,
    };
    let log = host.kernel_log.seen().map(Vec::as_slice).unwrap_or_default();
    if !matches!(code, NOT_INITIALIZED | UNKNOWN) {
        return Some((code, Cause::Other));
    }
    let on = host.uvm.hmm_disabled == Some(false);
    if on && since_load(log).iter().any(|line| line.contains("nvidia-uvm") && line.contains(NO_REGION)) {
        return Some((code, Cause::Hmm("nvidia-uvm found no room for HMM (its line in the kernel's log)".to_owned())));
    }
    if code == UNKNOWN && has_slept(host, log) && nvml_answers(host) && host.driver.has_module("nvidia_uvm") == Ok(true)
    {
        return Some((code, Cause::AfterSleep));
    }
    let kernel = host.kernel.seen().map(String::as_str).unwrap_or_default();
    let open = host.driver.open_kernel_modules.seen() == Some(&Some(true));
    let cause = if on && open && is_of_el(kernel) {
        Cause::Hmm(format!("the open module runs with HMM on kernel {kernel}"))
    } else {
        Cause::Other
    };
    Some((code, cause))
}

/// What nvidia-uvm writes where it finds no addresses for HMM (CUDA 12.9 release notes, "Known issues": kernels with
/// address randomisation).
const NO_REGION: &str = "request_free_mem_region() err";

/// Kernels of Enterprise Linux 8 and newer (open-gpu-kernel-modules#901 and #947, read 2026-12).
fn is_of_el(kernel: &str) -> bool {
    let rest = kernel.split_once(".el").map(|(_, rest)| rest).unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u32>().is_ok_and(|release| release >= 8)
}

/// By the kernel's own count, or its log since the last boot.
fn has_slept(host: &Host, log: &[String]) -> bool {
    let boot = log.iter().rposition(|line| line.contains("Linux version ")).unwrap_or(0);
    let woke = |line: &String| line.contains("PM: suspend exit") || line.contains("PM: hibernation: hibernation exit");
    host.uvm.slept == Some(true) || log.get(boot..).is_some_and(|lines| lines.iter().any(woke))
}

fn nvml_answers(host: &Host) -> bool {
    host.nvml.as_ref().is_some_and(|nvml| nvml.trouble.is_none() && nvml.answering().next().is_some())
}

fn broken_after_resume(facts: &Facts<'_>) -> Judgement {
    match cause(facts) {
        None => not_applicable(),
        Some((code, Cause::AfterSleep)) => answered(Severity::Error, AFTER_SLEEP, code)
            .saw("host.cuda_start", code, "cuInit")
            .saw("host.uvm.slept", "true", "/sys/power/suspend_stats")
            .found(),
        Some(_) => Ok(Outcome::Pass),
    }
}

fn hmm(facts: &Facts<'_>) -> Judgement {
    match cause(facts) {
        None => not_applicable(),
        Some((code, Cause::Hmm(sign))) => answered(Severity::Error, HMM, code)
            .arg("sign", sign)
            .saw("host.cuda_start", code, "cuInit")
            .saw("host.uvm.hmm_disabled", "false", "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm")
            .found(),
        Some(_) => Ok(Outcome::Pass),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::World;
    use crate::model::Observed;
    use crate::model::host::{Nvml, NvmlGpu, NvmlTrouble, UvmSigns};

    const ID: &str = "cuda-does-not-start";
    const SLEEP: &str = "uvm-broken-after-resume";
    const HMM: &str = "uvm-hmm-open-module";

    /// A machine whose cuInit answers so and whose NVML answers well.
    fn machine(code: u32) -> World {
        let mut world = World::machine(1);
        world.host.cuda_start = Some(CudaStart::Answered(code));
        world.host.nvml = Some(Nvml { gpus: vec![NvmlGpu::default()], ..Nvml::default() });
        world
    }

    /// Exactly one of the three says it.
    #[track_caller]
    fn says(world: &World, id: &str) {
        for other in [ID, SLEEP, HMM] {
            if other == id {
                assert_eq!(world.short(id).severity, Severity::Error);
            } else {
                world.silent(other);
            }
        }
    }

    #[test]
    fn what_fails_since_the_machine_slept_has_a_name_of_its_own() {
        let slept = UvmSigns { slept: Some(true), ..UvmSigns::default() };
        let with = |change: &dyn Fn(&mut World)| {
            let mut world = machine(UNKNOWN);
            world.host.uvm = slept;
            change(&mut world);
            world
        };
        says(&with(&|_| ()), SLEEP);
        says(&machine(UNKNOWN), ID);
        says(&with(&|world| world.host.cuda_start = Some(CudaStart::Answered(802))), ID);
        says(&with(&|world| world.host.nvml = None), ID);
        says(&with(&|world| world.host.nvml.as_mut().unwrap().trouble = Some(NvmlTrouble::Failed("x".into(), 9))), ID);
        says(&with(&|world| world.host.driver.modules = Observed::default()), ID);
        let log = |lines: &[&str]| Observed::Known(lines.iter().map(|line| (*line).to_owned()).collect());
        let mut by_log = machine(UNKNOWN);
        by_log.host.kernel_log = log(&["kernel: Linux version 5.3", "kernel: PM: suspend exit"]);
        says(&by_log, SLEEP);
        by_log.host.kernel_log = log(&["kernel: PM: suspend exit", "kernel: Linux version 5.3"]);
        says(&by_log, ID);
        with(&|world| world.host.cuda_start = Some(CudaStart::Answered(0))).silent(SLEEP);
        with(&|world| world.host.cuda_start = None).silent(SLEEP);
    }

    #[test]
    fn hmm_is_named_where_its_kernels_log_or_the_kind_of_kernel_shows_it() {
        let on = UvmSigns { hmm_disabled: Some(false), ..UvmSigns::default() };
        let el = |code| {
            let mut world = machine(code);
            world.host.kernel = Observed::Known("5.14.0-570.23.1.el9_6.x86_64".into());
            world.host.uvm = on;
            world
        };
        says(&el(3), HMM);
        says(&el(UNKNOWN), HMM);
        says(&el(802), ID);
        let spoilt = |change: &dyn Fn(&mut Host)| {
            let mut world = el(3);
            change(&mut world.host);
            world
        };
        says(&spoilt(&|host| host.uvm.hmm_disabled = Some(true)), ID);
        says(&spoilt(&|host| host.uvm.hmm_disabled = None), ID);
        says(&spoilt(&|host| host.driver.open_kernel_modules = Observed::Known(Some(false))), ID);
        says(&spoilt(&|host| host.kernel = Observed::Known("3.10.0-1160.el7.x86_64".into())), ID);
        let line = "nvidia-uvm: uvm_pmm_gpu.c:3176 devmem_alloc_pagemap[pid:9] request_free_mem_region() err -34";
        let mut said = machine(3);
        said.host.uvm = on;
        says(&said, ID);
        said.host.kernel_log = Observed::Known(vec![line.to_owned()]);
        says(&said, HMM);
    }
}
