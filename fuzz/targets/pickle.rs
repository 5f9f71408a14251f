//! The restricted pickle machine.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loxia_model::parse::pickle(bytes);
});
