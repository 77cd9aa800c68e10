//! What the vendor publishes, as tables with source and date, and pure functions over them.
pub mod visible_devices;
