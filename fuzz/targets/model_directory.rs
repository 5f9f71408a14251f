//! A whole model directory: what it says it is, its tokenizer, and the names and shapes of its tensors.

#![no_main]

use loxia_fuzz::{files_of, with_directory, write_files};
use loxia_model::{ModelOptions, ModelSpec, inspect};

const FILES: [&str; 16] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "model.safetensors",
    "loxia.json",
    "modules.json",
    "1_Pooling/config.json",
    "2_Dense/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "model.safetensors.index.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
];

libfuzzer_sys::fuzz_target!(
    // As for the target `tokenizer`: only what escapes counts.
    init: std::panic::set_hook(Box::new(|_| ())),
    |input: &[u8]| {
        with_directory(|directory| {
            write_files(directory, &files_of(input, &FILES));
            let _ = inspect(&ModelSpec::from(directory), &ModelOptions::default());
        });
    }
);
