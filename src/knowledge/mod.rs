//! What the vendor publishes, as tables with source and date, and pure functions over them.
pub mod architecture;
pub mod cuda_visible_devices;
pub mod driver_capabilities;
pub mod driver_files;
pub mod monitors;
pub mod require;
pub mod toolkit;
pub mod variables;
pub mod visible_devices;
