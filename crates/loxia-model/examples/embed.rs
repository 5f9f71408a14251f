//! Vectors of the lines of a file, as raw little-endian f32.
//!
//!     cargo run --release --example embed -- MODEL TEXTS.jsonl OUT.f32

use std::io::Write;

use loxia_core::{Cancel, Item, NoProgress};
use loxia_model::{ModelOptions, TextEncoder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [model, texts, out] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("three arguments");
    let model = TextEncoder::open(&model.parse()?, &ModelOptions::default())?;
    let mut items = Vec::new();
    for (number, line) in std::fs::read_to_string(texts)?.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        items.push(Item::plain(number.to_string(), line["text"].as_str().unwrap_or_default()));
    }
    let embeddings = model.encode_items(&items, &NoProgress, &Cancel::new())?;
    let bytes: Vec<u8> = embeddings.vectors.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::File::create(out)?.write_all(&bytes)?;
    println!("{} x {}, {} cut", items.len(), embeddings.dim, embeddings.truncated);
    Ok(())
}
