//! Candidate lists, as JSON lines.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loxia_data::parse_candidates(bytes, "input", &Default::default());
});
