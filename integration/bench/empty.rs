//! The yardstick: a Rust program that does nothing, built as the hook is.
fn main() {}
