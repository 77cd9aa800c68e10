//! Environment variables that change how CUDA or graphics work, with what they do.

use std::collections::BTreeMap;

/// A variable and what it does, as the end of a sentence.
pub type Meaning = (&'static str, &'static str);

/// Debuggers, profilers and core dumps. Sources: CUDA-GDB documentation 12.x, "GPU core dump support";
/// CUDA Programming Guide, "CUDA Environment Variables" (2025-12-15); libkineto `init.cpp` and NVTX 3
/// `nvtxInit.h` for the two injection variables.
pub const INJECTION: &[Meaning] = &[
    ("CUDA_INJECTION64_PATH", "the driver loads this library into every CUDA program"),
    ("CUDA_INJECTION32_PATH", "the driver loads this library into every CUDA program"),
    ("NVTX_INJECTION64_PATH", "NVTX loads this library into every program that uses it"),
    ("NVTX_INJECTION32_PATH", "NVTX loads this library into every program that uses it"),
    ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "the driver writes core dumps and works slower"),
    ("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "the driver writes core dumps and works slower"),
    ("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "the driver makes a pipe that triggers core dumps"),
    ("CUDA_DEVICE_WAITS_ON_EXCEPTION", "a program that fails on the GPU hangs until a debugger comes"),
    ("CUDA_LAUNCH_BLOCKING", "every kernel launch waits for its end"),
];

/// What costs time or memory and breaks nothing. Source: CUDA Programming Guide, "Lazy Loading" (2025-12-15): lazy is
/// what CUDA does by itself on Linux since 11.7.
pub const COSTLY: &[Meaning] = &[(
    "CUDA_MODULE_LOADING",
    "every program loads all kernels of all its libraries when it starts, which takes longer and more GPU memory",
)];

/// Limits that a platform sets. Sources: HAMi-core README (Project-HAMi/HAMi-core) for the memory and
/// SM limits; "Multi-Process Service", environment variables (docs.nvidia.com/deploy/mps) for the rest.
pub const LIMITS: &[Meaning] = &[
    ("CUDA_DEVICE_MEMORY_LIMIT", "HAMi's library limits the GPU memory that the program gets"),
    ("CUDA_DEVICE_SM_LIMIT", "HAMi's library limits the share of the GPU that the program gets"),
    ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "MPS limits the GPU memory that the program gets"),
    ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "MPS limits the share of the GPU that the program gets"),
];

/// Variables of the form `NAME_0`, `NAME_1` that `HAMi` sets for each device.
const PER_DEVICE: &str = "CUDA_DEVICE_MEMORY_LIMIT_";

/// Signs of work with OpenGL or Vulkan on NVIDIA's libraries: libglvnd (README, 1.7), Vulkan loader
/// (`LoaderInterfaceArchitecture.md`), NVIDIA's PRIME render offload (driver README, chapter 35),
/// ollama (`docs/gpu.md`).
pub fn graphics_work(environment: &BTreeMap<String, String>) -> Option<&'static str> {
    sign(
        environment,
        &[
            ("__GLX_VENDOR_LIBRARY_NAME", |v| v == "nvidia"),
            ("__NV_PRIME_RENDER_OFFLOAD", is_on),
            ("__EGL_VENDOR_LIBRARY_FILENAMES", |v| v.contains("nvidia")),
            ("VK_DRIVER_FILES", |v| v.contains("nvidia")),
            ("VK_ICD_FILENAMES", |v| v.contains("nvidia")),
            ("OLLAMA_VULKAN", is_on),
        ],
    )
}

/// Variables that lead to a display (X11's manual `X(7)`, Wayland's `wl_display_connect`).
const DISPLAYS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// The container may be for graphics: it works with OpenGL or Vulkan, or has a display.
pub fn may_draw(environment: &BTreeMap<String, String>) -> bool {
    let has_display = DISPLAYS.iter().any(|name| environment.get(*name).is_some_and(|v| !v.is_empty()));
    has_display || graphics_work(environment).is_some()
}

/// Signs of work with NVIDIA's video engines: nvidia-vaapi-driver (its README) and VDPAU
/// (libvdpau's `vdpau_x11.h`).
pub fn video_work(environment: &BTreeMap<String, String>) -> Option<&'static str> {
    sign(
        environment,
        &[
            ("LIBVA_DRIVER_NAME", |v| v == "nvidia"),
            ("NVD_BACKEND", |v| !v.is_empty()),
            ("VDPAU_DRIVER", |v| v == "nvidia"),
        ],
    )
}

/// The first variable of the table that is set to something other than off.
pub fn set_of(table: &[Meaning], environment: &BTreeMap<String, String>) -> Option<(String, &'static str)> {
    let named = table.iter().find(|(name, _)| environment.get(*name).is_some_and(|v| counts(name, v)));
    if let Some((name, meaning)) = named {
        return Some(((*name).to_owned(), meaning));
    }
    let (_, meaning) = table.iter().find(|(name, _)| PER_DEVICE.trim_end_matches('_') == *name)?;
    let (name, _) = environment.iter().find(|(name, value)| {
        is_set(value)
            && name
                .strip_prefix(PER_DEVICE)
                .is_some_and(|n| (1..=3).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
    })?;
    Some((name.clone(), meaning))
}

/// A variable, and what its value must be to count.
type Sign = (&'static str, fn(&str) -> bool);

fn sign(environment: &BTreeMap<String, String>, signs: &[Sign]) -> Option<&'static str> {
    signs.iter().find(|(name, says)| environment.get(*name).is_some_and(|v| says(v))).map(|(name, _)| *name)
}

fn is_on(value: &str) -> bool {
    matches!(value, "1" | "true" | "TRUE" | "True")
}

/// Of the one variable that is not on or off only one value does what the table says.
fn counts(name: &str, value: &str) -> bool {
    if name == COSTLY[0].0 { value.trim() == "EAGER" } else { is_set(value) }
}

fn is_set(value: &str) -> bool {
    !matches!(value.trim(), "" | "0" | "false")
}

/// A variable that speaks of GPUs or of what their programs load: no other is kept or shown.
pub fn concerns_gpus(name: &str) -> bool {
    ["CUDA_", "NVIDIA_", "NVTX_"].iter().any(|start| name.starts_with(start))
        || matches!(name, "LD_LIBRARY_PATH" | "LD_PRELOAD" | "PYTHONPATH" | "JAX_PLATFORMS")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn a_variable_that_is_off_or_empty_is_not_set() {
        let found = |pairs: &[(&str, &str)]| set_of(INJECTION, &environment(pairs)).map(|(name, _)| name);
        assert_eq!(found(&[("CUDA_LAUNCH_BLOCKING", "1")]).as_deref(), Some("CUDA_LAUNCH_BLOCKING"));
        assert_eq!(found(&[("CUDA_LAUNCH_BLOCKING", "0"), ("CUDA_INJECTION64_PATH", "")]), None);
    }

    #[test]
    fn loading_all_at_once_is_one_value_of_a_variable() {
        let found = |value| set_of(COSTLY, &environment(&[("CUDA_MODULE_LOADING", value)])).is_some();
        assert!(found("EAGER") && !found("LAZY") && !found("DEFAULT") && !found(""));
    }

    #[test]
    fn limits_are_found_for_all_devices_and_for_one() {
        let found = |pairs: &[(&str, &str)]| set_of(LIMITS, &environment(pairs)).map(|(name, _)| name);
        assert_eq!(found(&[("CUDA_DEVICE_MEMORY_LIMIT_0", "3000m")]).as_deref(), Some("CUDA_DEVICE_MEMORY_LIMIT_0"));
        assert_eq!(found(&[("CUDA_DEVICE_MEMORY_LIMIT", "1g")]).as_deref(), Some("CUDA_DEVICE_MEMORY_LIMIT"));
        assert_eq!(found(&[("CUDA_DEVICE_MEMORY_LIMIT_X", "1g"), ("MEMORY_LIMIT", "1g")]), None);
        assert_eq!(set_of(INJECTION, &environment(&[("CUDA_DEVICE_MEMORY_LIMIT_0", "1g")])), None);
    }

    #[test]
    fn signs_of_graphics_and_video() {
        assert_eq!(graphics_work(&environment(&[("OLLAMA_VULKAN", "1")])), Some("OLLAMA_VULKAN"));
        assert_eq!(graphics_work(&environment(&[("OLLAMA_VULKAN", "0"), ("VK_DRIVER_FILES", "/lvp_icd.json")])), None);
        assert!(may_draw(&environment(&[("DISPLAY", ":0")])) && !may_draw(&environment(&[("DISPLAY", "")])));
        assert_eq!(video_work(&environment(&[("LIBVA_DRIVER_NAME", "nvidia")])), Some("LIBVA_DRIVER_NAME"));
        assert_eq!(video_work(&environment(&[("LIBVA_DRIVER_NAME", "iHD")])), None);
    }
}
