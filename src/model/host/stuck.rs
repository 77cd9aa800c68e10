//! Processes that the kernel holds inside the driver.

/// A process in uninterruptible sleep (state D) inside NVIDIA's modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckProcess {
    /// Its number on this machine.
    pub pid: u32,
    /// Its name, as the kernel has it: 15 bytes at most.
    pub name: String,
    /// The function of the driver that it is in.
    pub function: String,
}
