//! Judgements in TREC's and BEIR's columns.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loxia_data::parse_qrels(bytes, "input", &Default::default());
});
