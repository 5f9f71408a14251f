//! PyTorch checkpoints: archive, pickle, tensors as views of storages.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loxia_model::parse::torch_file(bytes);
});
