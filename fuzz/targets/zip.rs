//! Zip archives: the directory, and every entry unpacked.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loxia_model::parse::zip(bytes);
});
