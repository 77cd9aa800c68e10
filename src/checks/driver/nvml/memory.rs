//! What NVML says of a GPU's memory.

use super::holders::{end, words};
use super::{about, name, named, plain};
use crate::checks::not_applicable;
use crate::model::check::{Failure, Judgement, Outcome, Place, Severity};
use crate::model::host::NvmlGpu;
use crate::model::{Facts, Unknown};

pub(super) const ECC: &str =
    "{gpu}: {count} memory errors that ECC could not correct since the driver was loaded{others}";
pub(super) const REMAP_FAILED: &str = "{gpus}: a faulty row of memory could not be replaced";
pub(super) const REMAP_PENDING: &str = "{gpus}: a faulty row of memory waits for a reset to be replaced";
pub(super) const RETIREMENT: &str = "{gpus}: a faulty page of memory waits for a reset to be retired";
pub(super) const TOO_FULL: &str = "no GPU has {wanted} MiB of free memory; {gpus} has {free} MiB";
pub(super) const FULL: &str = "{gpus}: less than {wanted} MiB of memory are free";
pub(super) const OCCUPIED: &str = "{gpu}: {used} of {total} MiB of memory are in use{by}{others}";

/// The program that met the error was ended. GPUs with error containment (A100 and newer) work on without a reset, and the
/// count stays until there is one.
pub(super) fn ecc_uncorrectable(facts: &Facts<'_>) -> Judgement {
    about(
        facts,
        ECC,
        Severity::Warning,
        |gpu| gpu.uncorrectable.is_some_and(|count| count > 0),
        |failure, gpu| failure.arg("count", gpu.uncorrectable.unwrap_or_default()),
    )
}

pub(super) fn remap_failed(facts: &Facts<'_>) -> Judgement {
    let has_failed = |gpu: &NvmlGpu| gpu.remap_failed == Some(true);
    // That memory has a fault is no reason to kill a container that works on it, and none that a new start takes away; a
    // machine has other GPUs.
    let all = facts.host.nvml.as_ref().is_some_and(|nvml| nvml.gpus.iter().all(has_failed));
    let severity = if all && facts.place == Place::Host { Severity::Error } else { Severity::Warning };
    about(facts, REMAP_FAILED, severity, has_failed, plain)
}

pub(super) fn remap_pending(facts: &Facts<'_>) -> Judgement {
    about(facts, REMAP_PENDING, Severity::Warning, |gpu| gpu.remap_pending == Some(true), plain)
}

pub(super) fn retirement_pending(facts: &Facts<'_>) -> Judgement {
    about(facts, RETIREMENT, Severity::Warning, |gpu| gpu.retirement_pending == Some(true), plain)
}

/// Nine parts in ten of the memory are in use.
fn is_occupied(gpu: &NvmlGpu) -> bool {
    matches!((gpu.memory, gpu.memory_free), (Some(total), Some(free)) if total > 0 && free < total / 10)
}

pub(super) fn memory_occupied(facts: &Facts<'_>) -> Judgement {
    if facts.place == Place::Healthcheck {
        return memory_short(facts);
    }
    about(facts, OCCUPIED, Severity::Warning, is_occupied, |failure, gpu| {
        let (total, free) = (gpu.memory.unwrap_or_default(), gpu.memory_free.unwrap_or_default());
        let holders = gpu.holders();
        let by = if holders.is_empty() { String::new() } else { format!(", by {}", words(facts.host, &holders)) };
        failure
            .arg("used", total.saturating_sub(free) / MIB)
            .arg("total", total / MIB)
            .arg("by", by)
            .arg("end", end(facts.host, &holders))
    })
}

const MIB: u64 = 1 << 20;

/// From inside, memory in use is what a GPU is for: only what somebody wants to be free counts.
fn memory_short(facts: &Facts<'_>) -> Judgement {
    let Some(wanted) = facts.container.inside.as_ref().and_then(|inside| inside.min_free_memory) else {
        return not_applicable();
    };
    let not_told = |reason: &str| Unknown::new("host.nvml.gpus", "NVML", reason);
    let nvml = facts.host.nvml.as_ref().ok_or_else(|| not_told("it was not asked, and it alone knows the memory"))?;
    let told: Vec<(&NvmlGpu, u64)> = nvml.answering().filter_map(|gpu| Some((gpu, gpu.memory_free?))).collect();
    let most = told.iter().max_by_key(|(_, free)| *free).ok_or_else(|| not_told("no GPU told its memory"))?;
    let short: Vec<&NvmlGpu> = told.iter().filter(|(_, free)| *free < wanted).map(|(gpu, _)| *gpu).collect();
    let (severity, message, gpus) = match short.as_slice() {
        [] => return Ok(Outcome::Pass),
        all if all.len() == told.len() => (Severity::Error, TOO_FULL, name(most.0)),
        some => (Severity::Warning, FULL, named(some)),
    };
    Failure::new(severity, message)
        .arg("end", end(facts.host, &most.0.holders()))
        .arg("gpus", gpus)
        .arg("wanted", wanted / MIB)
        .arg("free", most.1 / MIB)
        .saw("host.nvml.gpus", format!("{} MiB free at most", most.1 / MIB), "NVML")
        .found()
}
