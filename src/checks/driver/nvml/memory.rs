//! What NVML says of a GPU's memory.

use super::{about, plain};
use crate::model::Facts;
use crate::model::check::{Judgement, Severity};
use crate::model::host::NvmlGpu;

pub(super) const ECC: &str =
    "{gpu}: {count} memory errors that ECC could not correct since the driver was loaded{others}";
pub(super) const REMAP_FAILED: &str = "{gpus}: a faulty row of memory could not be replaced";
pub(super) const REMAP_PENDING: &str = "{gpus}: a faulty row of memory waits for a reset to be replaced";
pub(super) const RETIREMENT: &str = "{gpus}: a faulty page of memory waits for a reset to be retired";
pub(super) const OCCUPIED: &str = "{gpu}: {used} of {total} MiB of memory are in use{others}";

pub(super) fn ecc_uncorrectable(facts: &Facts<'_>) -> Judgement {
    about(
        facts,
        ECC,
        Severity::Error,
        |gpu| gpu.uncorrectable.is_some_and(|count| count > 0),
        |failure, gpu| failure.arg("count", gpu.uncorrectable.unwrap_or_default()),
    )
}

pub(super) fn remap_failed(facts: &Facts<'_>) -> Judgement {
    about(facts, REMAP_FAILED, Severity::Error, |gpu| gpu.remap_failed == Some(true), plain)
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
    const MIB: u64 = 1 << 20;
    about(facts, OCCUPIED, Severity::Warning, is_occupied, |failure, gpu| {
        let (total, free) = (gpu.memory.unwrap_or_default(), gpu.memory_free.unwrap_or_default());
        failure.arg("used", total.saturating_sub(free) / MIB).arg("total", total / MIB)
    })
}
