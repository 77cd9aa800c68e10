#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpu_preflight::collect::image::fuzzing::metadata(bytes));
