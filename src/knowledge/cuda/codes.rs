//! CUDA's error numbers, with the names that the driver (`CUresult`) and the runtime (`cudaError_t`) have for them.
//!
//! Headers and strings of CUDA 13.5 (read 2026-11). `""`: this side has no such number, or the text is of no use to
//! tell an error by.

/// An error number.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its number.
    pub number: u32,
    /// The driver's name for it.
    pub driver: &'static str,
    /// The runtime's name for it.
    pub runtime: &'static str,
    /// What `cudaGetErrorString` says.
    pub text: &'static str,
}

const fn row(number: u32, driver: &'static str, runtime: &'static str, text: &'static str) -> Row {
    Row { number, driver, runtime, text }
}

/// By number.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row(0, "CUDA_SUCCESS", "cudaSuccess", ""),
    row(1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", ""),
    row(2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory"),
    row(3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", "initialization error"),
    row(4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading", ""),
    row(5, "CUDA_ERROR_PROFILER_DISABLED", "cudaErrorProfilerDisabled", ""),
    row(6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "cudaErrorProfilerNotInitialized", ""),
    row(7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "cudaErrorProfilerAlreadyStarted", ""),
    row(8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "cudaErrorProfilerAlreadyStopped", ""),
    row(9, "", "cudaErrorInvalidConfiguration", ""),
    row(10, "", "cudaErrorVersionTranslation", ""),
    row(12, "", "cudaErrorInvalidPitchValue", ""),
    row(13, "", "cudaErrorInvalidSymbol", ""),
    row(16, "", "cudaErrorInvalidHostPointer", ""),
    row(17, "", "cudaErrorInvalidDevicePointer", ""),
    row(18, "", "cudaErrorInvalidTexture", ""),
    row(19, "", "cudaErrorInvalidTextureBinding", ""),
    row(20, "", "cudaErrorInvalidChannelDescriptor", ""),
    row(21, "", "cudaErrorInvalidMemcpyDirection", ""),
    row(22, "", "cudaErrorAddressOfConstant", ""),
    row(23, "", "cudaErrorTextureFetchFailed", ""),
    row(24, "", "cudaErrorTextureNotBound", ""),
    row(25, "", "cudaErrorSynchronizationError", ""),
    row(26, "", "cudaErrorInvalidFilterSetting", ""),
    row(27, "", "cudaErrorInvalidNormSetting", ""),
    row(28, "", "cudaErrorMixedDeviceExecution", ""),
    row(31, "", "cudaErrorNotYetImplemented", ""),
    row(32, "", "cudaErrorMemoryValueTooLarge", ""),
    row(34, "CUDA_ERROR_STUB_LIBRARY", "cudaErrorStubLibrary", "CUDA driver is a stub library"),
    row(35, "", "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"),
    row(36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "cudaErrorCallRequiresNewerDriver", "API call is not supported in the installed CUDA driver"),
    row(37, "", "cudaErrorInvalidSurface", ""),
    row(43, "", "cudaErrorDuplicateVariableName", ""),
    row(44, "", "cudaErrorDuplicateTextureName", ""),
    row(45, "", "cudaErrorDuplicateSurfaceName", ""),
    row(46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"),
    row(47, "CUDA_ERROR_MULTICAST_RESOURCE_FULL", "", ""),
    row(49, "", "cudaErrorIncompatibleDriverContext", ""),
    row(52, "", "cudaErrorMissingConfiguration", ""),
    row(53, "", "cudaErrorPriorLaunchFailure", ""),
    row(65, "", "cudaErrorLaunchMaxDepthExceeded", ""),
    row(66, "", "cudaErrorLaunchFileScopedTex", ""),
    row(67, "", "cudaErrorLaunchFileScopedSurf", ""),
    row(68, "", "cudaErrorSyncDepthExceeded", ""),
    row(69, "", "cudaErrorLaunchPendingCountExceeded", ""),
    row(98, "", "cudaErrorInvalidDeviceFunction", ""),
    row(100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice", "no CUDA-capable device is detected"),
    row(101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", "invalid device ordinal"),
    row(102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "cudaErrorDeviceNotLicensed", "device doesn't have valid Grid license"),
    row(103, "", "cudaErrorSoftwareValidityNotEstablished", ""),
    row(127, "", "cudaErrorStartupFailure", ""),
    row(200, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage", "device kernel image is invalid"),
    row(201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized", "invalid device context"),
    row(202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "", ""),
    row(205, "CUDA_ERROR_MAP_FAILED", "cudaErrorMapBufferObjectFailed", ""),
    row(206, "CUDA_ERROR_UNMAP_FAILED", "cudaErrorUnmapBufferObjectFailed", ""),
    row(207, "CUDA_ERROR_ARRAY_IS_MAPPED", "cudaErrorArrayIsMapped", ""),
    row(208, "CUDA_ERROR_ALREADY_MAPPED", "cudaErrorAlreadyMapped", ""),
    row(209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"),
    row(210, "CUDA_ERROR_ALREADY_ACQUIRED", "cudaErrorAlreadyAcquired", ""),
    row(211, "CUDA_ERROR_NOT_MAPPED", "cudaErrorNotMapped", ""),
    row(212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "cudaErrorNotMappedAsArray", ""),
    row(213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "cudaErrorNotMappedAsPointer", ""),
    row(214, "CUDA_ERROR_ECC_UNCORRECTABLE", "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"),
    row(215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "cudaErrorUnsupportedLimit", ""),
    row(216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "cudaErrorDeviceAlreadyInUse", ""),
    row(217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "cudaErrorPeerAccessUnsupported", ""),
    row(218, "CUDA_ERROR_INVALID_PTX", "cudaErrorInvalidPtx", "a PTX JIT compilation failed"),
    row(219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "cudaErrorInvalidGraphicsContext", ""),
    row(220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "cudaErrorNvlinkUncorrectable", "uncorrectable NVLink error detected during the execution"),
    row(221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "cudaErrorJitCompilerNotFound", "PTX JIT compiler library not found"),
    row(222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "cudaErrorUnsupportedPtxVersion", "the provided PTX was compiled with an unsupported toolchain."),
    row(223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "cudaErrorJitCompilationDisabled", "PTX JIT compilation was disabled"),
    row(224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "cudaErrorUnsupportedExecAffinity", ""),
    row(225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "cudaErrorUnsupportedDevSideSync", ""),
    row(226, "CUDA_ERROR_CONTAINED", "cudaErrorContained", ""),
    row(227, "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", "cudaErrorInsufficientLoaderVersion", "Loader version is insufficient for fatbin"),
    row(300, "CUDA_ERROR_INVALID_SOURCE", "cudaErrorInvalidSource", ""),
    row(301, "CUDA_ERROR_FILE_NOT_FOUND", "cudaErrorFileNotFound", ""),
    row(302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "cudaErrorSharedObjectSymbolNotFound", "shared object symbol not found"),
    row(303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "cudaErrorSharedObjectInitFailed", "shared object initialization failed"),
    row(304, "CUDA_ERROR_OPERATING_SYSTEM", "cudaErrorOperatingSystem", "OS call failed or operation not supported on this OS"),
    row(400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle", ""),
    row(401, "CUDA_ERROR_ILLEGAL_STATE", "cudaErrorIllegalState", ""),
    row(402, "CUDA_ERROR_LOSSY_QUERY", "cudaErrorLossyQuery", ""),
    row(500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found"),
    row(600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", ""),
    row(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    row(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources", "too many resources requested for launch"),
    row(702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout", "the launch timed out and was terminated"),
    row(703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "cudaErrorLaunchIncompatibleTexturing", ""),
    row(704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "cudaErrorPeerAccessAlreadyEnabled", ""),
    row(705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "cudaErrorPeerAccessNotEnabled", ""),
    row(708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cudaErrorSetOnActiveProcess", ""),
    row(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "cudaErrorContextIsDestroyed", ""),
    row(710, "CUDA_ERROR_ASSERT", "cudaErrorAssert", "device-side assert triggered"),
    row(711, "CUDA_ERROR_TOO_MANY_PEERS", "cudaErrorTooManyPeers", ""),
    row(712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "cudaErrorHostMemoryAlreadyRegistered", ""),
    row(713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "cudaErrorHostMemoryNotRegistered", ""),
    row(714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "cudaErrorHardwareStackError", ""),
    row(715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction", "an illegal instruction was encountered"),
    row(716, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress", "misaligned address"),
    row(717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "cudaErrorInvalidAddressSpace", ""),
    row(718, "CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc", ""),
    row(719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", "unspecified launch failure"),
    row(720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cudaErrorCooperativeLaunchTooLarge", ""),
    row(721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "cudaErrorTensorMemoryLeak", ""),
    row(800, "CUDA_ERROR_NOT_PERMITTED", "cudaErrorNotPermitted", "operation not permitted"),
    row(801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported", "operation not supported"),
    row(802, "CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady", "system not yet initialized"),
    row(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "cudaErrorSystemDriverMismatch", "system has unsupported display driver / cuda driver combination"),
    row(804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "cudaErrorCompatNotSupportedOnDevice", "forward compatibility was attempted on non supported HW"),
    row(805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "cudaErrorMpsConnectionFailed", "MPS client failed to connect to the MPS control daemon or the MPS server"),
    row(806, "CUDA_ERROR_MPS_RPC_FAILURE", "cudaErrorMpsRpcFailure", "the remote procedural call between the MPS server and the MPS client failed"),
    row(807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "cudaErrorMpsServerNotReady", "MPS server is not ready to accept new MPS client requests"),
    row(808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "cudaErrorMpsMaxClientsReached", "the hardware resources required to create MPS client have been exhausted"),
    row(809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "cudaErrorMpsMaxConnectionsReached", "the hardware resources required to support device connections have been exhausted"),
    row(810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "cudaErrorMpsClientTerminated", ""),
    row(811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "cudaErrorCdpNotSupported", ""),
    row(812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "cudaErrorCdpVersionMismatch", ""),
    row(900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported", ""),
    row(901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "cudaErrorStreamCaptureInvalidated", ""),
    row(902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "cudaErrorStreamCaptureMerge", ""),
    row(903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "cudaErrorStreamCaptureUnmatched", ""),
    row(904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "cudaErrorStreamCaptureUnjoined", ""),
    row(905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "cudaErrorStreamCaptureIsolation", ""),
    row(906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "cudaErrorStreamCaptureImplicit", ""),
    row(907, "CUDA_ERROR_CAPTURED_EVENT", "cudaErrorCapturedEvent", ""),
    row(908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "cudaErrorStreamCaptureWrongThread", ""),
    row(909, "CUDA_ERROR_TIMEOUT", "cudaErrorTimeout", ""),
    row(910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "cudaErrorGraphExecUpdateFailure", ""),
    row(911, "CUDA_ERROR_EXTERNAL_DEVICE", "cudaErrorExternalDevice", ""),
    row(912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cudaErrorInvalidClusterSize", ""),
    row(913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "cudaErrorFunctionNotLoaded", ""),
    row(914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "cudaErrorInvalidResourceType", ""),
    row(915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "cudaErrorInvalidResourceConfiguration", ""),
    row(916, "CUDA_ERROR_KEY_ROTATION", "", ""),
    row(917, "CUDA_ERROR_STREAM_DETACHED", "cudaErrorStreamDetached", ""),
    row(918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", "cudaErrorGraphRecaptureFailure", ""),
    row(919, "CUDA_ERROR_FABRIC_NOT_READY", "cudaErrorFabricNotReady", ""),
    row(999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "unknown error"),
];

/// The number of a name, in any case form.
pub fn by_name(name: &str) -> Option<&'static Row> {
    let same = |known: &str| !known.is_empty() && known.eq_ignore_ascii_case(name);
    ROWS.iter().find(|row| same(row.driver) || same(row.runtime))
}

/// The row of a number.
pub fn by_number(number: u32) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_found_by_either_name() {
        assert!(ROWS.windows(2).all(|two| two[0].number < two[1].number));
        for name in ["CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "cudaerrorunknown"] {
            assert_eq!(by_name(name).map(|row| row.number), Some(999), "{name}");
        }
        assert!(by_name("").is_none() && by_name("cudaErrorNo").is_none());
        assert_eq!(by_number(804).map(|row| row.runtime), Some("cudaErrorCompatNotSupportedOnDevice"));
    }
}
