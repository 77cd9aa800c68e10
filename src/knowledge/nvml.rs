//! NVML's return codes.
//!
//! Names and numbers as in `nvml.h` and NVIDIA's NVML reference (general knowledge, 2026-11). The names lose their `NVML_ERROR_`; go-nvml prints
//! `ERROR_DRIVER_NOT_LOADED`, pynvml `NVMLError_DriverNotLoaded`.

/// Number, name without its prefix, text.
pub const ROWS: &[(u32, &str, &str)] = &[
    (1, "UNINITIALIZED", "Uninitialized"),
    (2, "INVALID_ARGUMENT", "Invalid Argument"),
    (3, "NOT_SUPPORTED", "Not Supported"),
    (4, "NO_PERMISSION", "Insufficient Permissions"),
    (5, "ALREADY_INITIALIZED", "Already Initialized"),
    (6, "NOT_FOUND", "Not Found"),
    (7, "INSUFFICIENT_SIZE", "Insufficient Size"),
    (8, "INSUFFICIENT_POWER", "Insufficient External Power"),
    (9, "DRIVER_NOT_LOADED", "Driver Not Loaded"),
    (10, "TIMEOUT", "Timeout"),
    (11, "IRQ_ISSUE", "Interrupt Request Issue"),
    (12, "LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"),
    (13, "FUNCTION_NOT_FOUND", "Function Not Found"),
    (14, "CORRUPTED_INFOROM", "Corrupted infoROM"),
    (15, "GPU_IS_LOST", "GPU is lost"),
    (16, "RESET_REQUIRED", "GPU requires restart"),
    (17, "OPERATING_SYSTEM", "The operating system has blocked the request."),
    (18, "LIB_RM_VERSION_MISMATCH", "RM has detected an NVML/RM version mismatch."),
    (19, "IN_USE", "GPU is currently in use by another application"),
    (20, "MEMORY", "Insufficient Memory"),
    (21, "NO_DATA", "No data"),
    (22, "VGPU_ECC_NOT_SUPPORTED", "vGPU is not supported while ECC is on"),
    (23, "INSUFFICIENT_RESOURCES", "Insufficient Resources"),
    (24, "FREQ_NOT_SUPPORTED", "Frequency Not Supported"),
    (25, "ARGUMENT_VERSION_MISMATCH", "Argument Version Mismatch"),
    (26, "DEPRECATED", "Deprecated"),
    (27, "NOT_READY", "Not Ready"),
    (28, "GPU_NOT_FOUND", "GPU Not Found"),
    (29, "INVALID_STATE", "Invalid State"),
    (30, "RESET_TYPE_NOT_SUPPORTED", "Reset Type Not Supported"),
    (999, "UNKNOWN", "Unknown Error"),
];

/// The user may not use the GPU, or the driver's control node.
pub const NO_PERMISSION: u32 = 4;
/// The library has no such function.
pub const FUNCTION_NOT_FOUND: u32 = 13;
/// The GPU is no longer on the bus.
pub const GPU_IS_LOST: u32 = 15;
/// The driver keeps the GPU out of use until it is reset.
pub const RESET_REQUIRED: u32 = 16;
/// The library is of another version than the kernel module.
pub const VERSION_MISMATCH: u32 = 18;
/// What has no code of its own.
pub const UNKNOWN: u32 = 999;

/// A code in words: `code 15, GPU is lost`.
pub fn said(code: u32) -> String {
    match ROWS.iter().find(|(number, _, _)| *number == code) {
        Some((_, _, text)) => format!("code {code}, {}", text.trim_end_matches('.')),
        None => format!("code {code}"),
    }
}

/// The number of a name: `nvml_error_no_permission`, `nvmlerror_nopermission`, `error_no_permission`.
pub fn by_name(name: &str) -> Option<u32> {
    let name = name.to_ascii_lowercase();
    let tail = ["nvml_error_", "nvmlerror_", "error_"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let bare: String = tail.chars().filter(|c| *c != '_').collect();
    let same = |known: &str| known.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).eq(bare.chars());
    ROWS.iter().find(|(_, known, _)| same(known)).map(|(number, _, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_said_in_words_where_it_has_some() {
        assert_eq!(said(GPU_IS_LOST), "code 15, GPU is lost");
        assert_eq!(said(VERSION_MISMATCH), "code 18, RM has detected an NVML/RM version mismatch");
        assert_eq!(said(4242), "code 4242");
    }

    #[test]
    fn names_in_every_spelling() {
        for name in ["NVML_ERROR_DRIVER_NOT_LOADED", "NVMLError_DriverNotLoaded", "ERROR_DRIVER_NOT_LOADED"] {
            assert_eq!(by_name(name), Some(9), "{name}");
        }
        assert_eq!((by_name("nvml_error_"), by_name("driver_not_loaded")), (None, None));
    }
}
