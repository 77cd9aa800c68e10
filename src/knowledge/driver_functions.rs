//! Functions of NVIDIA's kernel modules, by which a process shows that it is inside the driver.
//!
//! Names as in open-gpu-kernel-modules 580.95.05 (`kernel-open/nvidia/os-interface.c`, `nv.c`, `nvidia-modeset`,
//! `nvidia-uvm`); `_nv012345rm` is what those of its closed part are called (logs of hung tasks in reports until 2026).

/// What a stack has behind a function of a module: `os_acquire_rwlock_write+0x35/0x40 [nvidia]`.
const MODULES: [&str; 5] = ["[nvidia]", "[nvidia_uvm]", "[nvidia_modeset]", "[nvidia_drm]", "[nvidia_peermem]"];

/// Beginnings that no other part of the kernel has; `nv_`, which forcedeth and `sata_nv` have as well, is none.
const STARTS: [&str; 7] = ["nvidia_", "nvkms_", "uvm_", "os_acquire_", "os_cond_acquire_", "os_delay", "_nv0"];

/// The first function of the driver in a process's stack, `/proc/PID/stack`, newest call first.
pub fn of_stack(stack: &str) -> Option<&str> {
    let mut of_driver = stack.lines().filter(|line| MODULES.iter().any(|module| line.trim_end().ends_with(module)));
    of_driver.next()?.split_whitespace().find_map(|word| Some(word.split_once('+')?.0))
}

/// The function that a process sleeps in, `/proc/PID/wchan`, is the driver's.
pub fn is_of_driver(function: &str) -> bool {
    STARTS.iter().any(|start| function.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_own_function_is_found_in_a_stack() {
        let stack = "[<0>] down+0x43/0x60\n[<0>] os_acquire_semaphore+0x35/0x40 [nvidia]\n[<0>] _nv043921rm+0x10/0x40 [nvidia]\n[<0>] do_syscall_64+0x55/0xb0\n";
        assert_eq!(of_stack(stack), Some("os_acquire_semaphore"));
        // before Linux 4.16 with addresses
        assert_eq!(of_stack("[<ffffffffc0a8b1c5>] uvm_release+0x15/0x30 [nvidia_uvm]\n"), Some("uvm_release"));
        for other in
            ["[<0>] nfs_wait+0x1/0x2 [nfs]\n", "[<0>] io_schedule+0x46/0x80\n", "", "[<0>] x+0x1/0x2 [nvidiafb]\n"]
        {
            assert_eq!(of_stack(other), None, "{other}");
        }
    }

    #[test]
    fn a_function_that_others_may_have_too_is_none() {
        assert!(is_of_driver("os_acquire_rwlock_write") && is_of_driver("uvm_va_space_destroy"));
        for other in ["nv_close", "io_schedule", "0", "", "down", "acpi_os_acquire_lock"] {
            assert!(!is_of_driver(other), "{other}");
        }
    }
}
