//! The header of a safetensors file, and whether its tensors tile the data.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loxia_model::parse::safetensors_header(bytes);
});
