//! Calls of the library that the wrapper has no method for.

#![expect(unsafe_code, reason = "functions of a C library; each call says why it is sound")]

use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings::{
    NVML_GPU_FABRIC_STATE_COMPLETED, NVML_GPU_FABRIC_STATE_IN_PROGRESS, NVML_GPU_FABRIC_STATE_NOT_STARTED,
    NVML_GPU_FABRIC_STATE_NOT_SUPPORTED, nvmlGpuFabricInfo_t, nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t,
    nvmlGridLicensableFeatures_t, nvmlMemory_t, nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t,
};

use crate::model::host::{Fabric, FabricState};

/// Bytes, and how many are free, by the call that every driver has.
pub(super) fn memory(device: &Device<'_>) -> Option<(u64, u64)> {
    let call = device.nvml().lib().nvmlDeviceGetMemoryInfo.as_ref().ok()?;
    let mut memory = nvmlMemory_t { total: 0, free: 0, used: 0 };
    // SAFETY: the handle is the library's own, and the structure is the one that this call fills.
    let code = unsafe { call(device.handle(), &raw mut memory) };
    (code == SUCCESS).then_some((memory.total, memory.free))
}

/// The newer call (R545), which fills the structure whose size and version are written into it, else the older one (R525).
pub(super) fn fabric(device: &Device<'_>) -> Option<Fabric> {
    let library = device.nvml().lib();
    if let Ok(call) = library.nvmlDeviceGetGpuFabricInfoV.as_ref() {
        // SAFETY: zero is a value of every field, all of which are integers.
        let mut info: nvmlGpuFabricInfo_v3_t = unsafe { std::mem::zeroed() };
        // The second version's fields are the first of the third, which has room for either.
        for (size, version) in [(size_of::<nvmlGpuFabricInfo_v3_t>(), 3), (size_of::<nvmlGpuFabricInfo_v2_t>(), 2)] {
            info.version = u32::try_from(size).unwrap_or_default() | version << 24;
            // SAFETY: the handle is the library's own, and the structure is as large as it says.
            if unsafe { call(device.handle(), &raw mut info) } == SUCCESS {
                return told(info.state, info.status);
            }
        }
    }
    let call = library.nvmlDeviceGetGpuFabricInfo.as_ref().ok()?;
    // SAFETY: as above.
    let mut info: nvmlGpuFabricInfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the handle is the library's own, and the structure is the one that this call fills.
    (unsafe { call(device.handle(), &raw mut info) } == SUCCESS).then(|| told(info.state, info.status))?
}

/// A state that nobody here knows is none. The status has a meaning at the end alone (`nvml.h`).
fn told(state: u8, status: nvmlReturn_t) -> Option<Fabric> {
    let state = match u32::from(state) {
        NVML_GPU_FABRIC_STATE_NOT_SUPPORTED => FabricState::NotSupported,
        NVML_GPU_FABRIC_STATE_NOT_STARTED => FabricState::NotStarted,
        NVML_GPU_FABRIC_STATE_IN_PROGRESS => FabricState::InProgress,
        NVML_GPU_FABRIC_STATE_COMPLETED => FabricState::Completed,
        _ => return None,
    };
    Some(Fabric { state, status: (state == FabricState::Completed).then_some(status) })
}

/// One of the features that need a licence is in use, and has it or not; `None`: none needs one.
pub(super) fn licensed(device: &Device<'_>) -> Option<bool> {
    let call = device.nvml().lib().nvmlDeviceGetGridLicensableFeatures_v4.as_ref().ok()?;
    // SAFETY: zero is a value of every field: integers, and arrays of them.
    let mut features: nvmlGridLicensableFeatures_t = unsafe { std::mem::zeroed() };
    // SAFETY: the handle is the library's own, and the structure is the one that this call fills.
    let code = unsafe { call(device.handle(), &raw mut features) };
    if code != SUCCESS || features.isGridLicenseSupported == 0 {
        return None;
    }
    let count = usize::try_from(features.licensableFeaturesCount).unwrap_or_default();
    let mut used =
        features.gridLicensableFeatures.iter().take(count).filter(|feature| feature.featureEnabled != 0).peekable();
    used.peek()?;
    Some(used.any(|feature| feature.featureState != 0))
}
