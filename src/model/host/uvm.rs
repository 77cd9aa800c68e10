//! What of the machine's past and of `nvidia_uvm` explains a CUDA that does not start. What was not seen explains nothing.

/// Signs beside a `cuInit` that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UvmSigns {
    /// The machine has slept and woken since boot.
    pub slept: Option<bool>,
    /// Heterogeneous memory management of `nvidia_uvm` is switched off (`uvm_disable_hmm`).
    pub hmm_disabled: Option<bool>,
}
