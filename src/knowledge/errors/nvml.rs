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
    (27, "NOT_READY", "Not Ready"),
    (28, "GPU_NOT_FOUND", "GPU Not Found"),
    (999, "UNKNOWN", "Unknown Error"),
];

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
    fn names_in_every_spelling() {
        for name in ["NVML_ERROR_DRIVER_NOT_LOADED", "NVMLError_DriverNotLoaded", "ERROR_DRIVER_NOT_LOADED"] {
            assert_eq!(by_name(name), Some(9), "{name}");
        }
        assert_eq!((by_name("nvml_error_"), by_name("driver_not_loaded")), (None, None));
    }
}
