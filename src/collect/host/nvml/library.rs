//! The library itself, as `nvml-wrapper` calls it. Every symbol may be absent, every code unknown, every GPU silent.

use std::ffi::OsStr;

use nvml_wrapper::enum_wrappers::device::{
    ComputeMode as Mode, EccCounter, GpuVirtualizationMode, MemoryError, RetirementCause,
};
use nvml_wrapper::enums::device::{SampleValue, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use super::Said;
use crate::knowledge::nvml::{FUNCTION_NOT_FOUND, UNKNOWN};
use crate::model::host::{ComputeMode, MigDevice, NvmlGpu, NvmlProcess, NvmlTrouble, Virtualization};

mod raw;

/// `NVML_FI_DEV_REMAPPED_PENDING` and `…_FAILURE` (`nvml.h`, 12.4).
const REMAP_PENDING: u32 = 144;
const REMAP_FAILED: u32 = 145;

/// More than a GPU of use has, and few enough that an answer is never cut.
const MOST_PROCESSES: usize = 64;

/// `NVML_VALUE_NOT_AVAILABLE` of an `unsigned long long`.
const NOT_AVAILABLE: u64 = u64::MAX;

/// Asks for everything, and says it as it comes.
pub(super) fn talk(file: &OsStr, say: &mut dyn FnMut(&Said)) {
    calls(say, "nvmlInit_v2");
    let nvml = match Nvml::builder().lib_path(file).init() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(error)) => {
            return say(&Said::Trouble(NvmlTrouble::NotLoaded(error.to_string())));
        }
        Err(error) => return say(&Said::Trouble(failed("nvmlInit_v2", &error))),
    };
    calls(say, "nvmlSystemGetDriverVersion");
    if let Ok(version) = nvml.sys_driver_version() {
        say(&Said::Driver(version));
    }
    calls(say, "nvmlSystemGetCudaDriverVersion_v2");
    if let Ok(version) = nvml.sys_cuda_driver_version() {
        say(&Said::Cuda(format!("{}.{}", cuda_driver_version_major(version), cuda_driver_version_minor(version))));
    }
    calls(say, "nvmlDeviceGetCount_v2");
    match nvml.device_count() {
        Ok(count) => {
            for index in 0..count.min(256) {
                gpu(&nvml, index, say);
            }
        }
        Err(error) => say(&Said::Trouble(failed("nvmlDeviceGetCount_v2", &error))),
    }
    // The process ends here; to be asked to shut down is one more call that may not come back, and the wrapper panics
    // where a library lacks it.
    std::mem::forget(nvml);
}

fn calls(say: &mut dyn FnMut(&Said), name: &str) {
    say(&Said::Calls(name.to_owned()));
}

fn gpu(nvml: &Nvml, index: u32, say: &mut dyn FnMut(&Said)) {
    let call = format!("nvmlDeviceGetHandleByIndex_v2({index})");
    calls(say, &call);
    let mut gpu = NvmlGpu { index, ..NvmlGpu::default() };
    match nvml.device_by_index(index) {
        Ok(device) => {
            calls(say, &format!("nvmlDeviceGet...({index})"));
            describe(&device, &mut gpu);
            if gpu.trouble.is_none() {
                say(&Said::Gpu(Box::new(gpu.clone())));
                calls(say, &format!("nvmlDeviceGetComputeRunningProcesses_v3({index})"));
                who_uses(&device, &mut gpu);
            }
        }
        Err(error) => gpu.trouble = Some(failed(&call, &error)),
    }
    say(&Said::Gpu(Box::new(gpu)));
}

fn describe(device: &Device<'_>, gpu: &mut NvmlGpu) {
    // what a GPU that is lost answers to the first question, it answers to all
    match device.uuid() {
        Ok(uuid) => gpu.uuid = Some(uuid),
        Err(error @ (NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::Unknown)) => {
            gpu.trouble = Some(failed("nvmlDeviceGetUUID", &error));
            return;
        }
        Err(_) => {}
    }
    gpu.name = device.name().ok();
    gpu.pci = device.pci_info().ok().map(|pci| address(&pci.bus_id));
    gpu.minor = device.minor_number().ok();
    gpu.compute_capability = device.cuda_compute_capability().ok().map(|cc| format!("{}.{}", cc.major, cc.minor));
    take_memory(device, gpu);
    gpu.persistent = device.is_in_persistent_mode().ok();
    gpu.compute_mode = device.compute_mode().ok().map(|mode| match mode {
        Mode::Default => ComputeMode::Default,
        Mode::Prohibited => ComputeMode::Prohibited,
        Mode::ExclusiveThread | Mode::ExclusiveProcess => ComputeMode::Exclusive,
    });
    gpu.uncorrectable = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok();
    gpu.remap_pending = flag(device, REMAP_PENDING);
    gpu.remap_failed = flag(device, REMAP_FAILED);
    gpu.retirement_pending = device.are_pages_pending_retired().ok();
    let retired = |cause| device.retired_pages(cause).ok().and_then(|pages| u32::try_from(pages.len()).ok());
    gpu.retired_pages = retired(RetirementCause::MultipleSingleBitEccErrors)
        .zip(retired(RetirementCause::DoubleBitEccError))
        .map(|(single, double)| single.saturating_add(double));
    gpu.virtualization = device.virtualization_mode().ok().map(|mode| match mode {
        GpuVirtualizationMode::Bare => Virtualization::None,
        GpuVirtualizationMode::PassThrough => Virtualization::Passthrough,
        GpuVirtualizationMode::Vgpu => Virtualization::Vgpu,
        GpuVirtualizationMode::HostVgpu => Virtualization::HostVgpu,
        GpuVirtualizationMode::HostVsga => Virtualization::HostVsga,
    });
    if gpu.virtualization == Some(Virtualization::Vgpu) {
        gpu.licensed = raw::licensed(device);
    }
    gpu.fabric = raw::fabric(device);
    gpu.mig = device.mig_mode().ok().map(|mode| mode.current == 1);
    if gpu.mig == Some(true) {
        gpu.mig_devices = mig_devices(device).ok();
    }
}

/// Who is on it, and what is free then: a program that ends meanwhile gives its memory back after its name is gone.
fn who_uses(device: &Device<'_>, gpu: &mut NvmlGpu) {
    let told = |all: Vec<ProcessInfo>| all.iter().take(MOST_PROCESSES).map(process).collect();
    gpu.processes = device.running_compute_processes().ok().map(told);
    gpu.graphics = device.running_graphics_processes().ok().map(told);
    gpu.mps = device.mps_running_compute_processes().ok().map(|all| !all.is_empty());
    take_memory(device, gpu);
}

fn process(of: &ProcessInfo) -> NvmlProcess {
    let memory = match of.used_gpu_memory {
        UsedGpuMemory::Used(bytes) if bytes != NOT_AVAILABLE => Some(bytes),
        _ => None,
    };
    NvmlProcess { pid: Some(of.pid), memory }
}

/// The newer call came with R510 and is refused by some drivers since (nvidia-settings issue 78); the older one counts
/// what the driver keeps for itself as used.
fn take_memory(device: &Device<'_>, gpu: &mut NvmlGpu) {
    if let Ok(memory) = device.memory_info() {
        (gpu.memory, gpu.memory_free) = (Some(memory.total), Some(memory.free));
        gpu.memory_reserved = Some(memory.reserved);
    } else if let Some((total, free)) = raw::memory(device) {
        (gpu.memory, gpu.memory_free) = (Some(total), Some(free));
    }
}

fn flag(device: &Device<'_>, field: u32) -> Option<bool> {
    let values = device.field_values_for(&[FieldId(field)]).ok()?;
    match values.into_iter().next()?.ok()?.value.ok()? {
        SampleValue::U32(value) => Some(value != 0),
        SampleValue::U64(value) => Some(value != 0),
        SampleValue::I64(value) => Some(value != 0),
        SampleValue::F64(_) => None,
    }
}

/// The count is how many there could be; places without one answer that there is none.
fn mig_devices(device: &Device<'_>) -> Result<Vec<MigDevice>, NvmlError> {
    let mut found = Vec::new();
    for index in 0..device.mig_device_count()?.min(64) {
        match device.mig_device_by_index(index) {
            Ok(instance) => found.push(MigDevice {
                uuid: instance.uuid()?,
                profile: instance.name().ok().and_then(|name| Some(name.split_once(" MIG ")?.1.to_owned())),
                memory: instance.attributes().ok().map(|of| of.memory_size_mb << 20),
            }),
            Err(NvmlError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// NVML writes the domain with eight digits and in capitals, the kernel with four.
fn address(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    match text.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 => format!("{}:{rest}", domain.get(4..).unwrap_or(domain)),
        _ => text,
    }
}

fn failed(call: &str, error: &NvmlError) -> NvmlTrouble {
    NvmlTrouble::Failed(call.to_owned(), code(error))
}

/// The number behind the wrapper's word (`nvml.h`, `nvmlReturn_t`).
fn code(error: &NvmlError) -> u32 {
    match error {
        NvmlError::Uninitialized => 1,
        NvmlError::InvalidArg => 2,
        NvmlError::NotSupported => 3,
        NvmlError::NoPermission => 4,
        NvmlError::NotFound => 6,
        NvmlError::InsufficientSize(_) => 7,
        NvmlError::InsufficientPower => 8,
        NvmlError::DriverNotLoaded => 9,
        NvmlError::Timeout => 10,
        NvmlError::IrqIssue => 11,
        NvmlError::LibraryNotFound => 12,
        NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => FUNCTION_NOT_FOUND,
        NvmlError::CorruptedInfoROM => 14,
        NvmlError::GpuLost => 15,
        NvmlError::ResetRequired => 16,
        NvmlError::OperatingSystem => 17,
        NvmlError::LibRmVersionMismatch => 18,
        NvmlError::InUse => 19,
        NvmlError::InsufficientMemory => 20,
        NvmlError::NoData => 21,
        NvmlError::VgpuEccNotSupported => 22,
        NvmlError::UnexpectedVariant(number) => *number,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_the_kernels() {
        assert_eq!(address("00000000:65:00.0"), "0000:65:00.0");
        assert_eq!(address("0001:0A:00.0"), "0001:0a:00.0");
    }

    #[test]
    fn codes_that_the_wrapper_does_not_know_are_kept() {
        assert_eq!(code(&NvmlError::UnexpectedVariant(28)), 28);
        assert_eq!(code(&NvmlError::LibRmVersionMismatch), 18);
        assert_eq!(code(&NvmlError::SetReleaseFailed), UNKNOWN);
    }
}
