//! `config.json` of all families.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loxia_model::parse::config_json(bytes);
});
