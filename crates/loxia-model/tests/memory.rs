//! Opening a model takes little more memory than the model takes once it is open.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use loxia_core::artefact::Existing;
use loxia_model::{
    CrossEncoder, ModelOptions, ModelSpec, Precision, SaveOptions, StoredWeights, save_cross_encoder,
};
use serde_json::{Map, Value, json};

/// The system's allocator, counting.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn came(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        came(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        came(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HIDDEN: usize = 256;
const WIDE: usize = 1024;
const WORDS: usize = 20_000;
const LAYERS: usize = 4;

/// Writes a BERT of 8 M weights, half of them words: 33 MB.
fn model(directory: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models/bert-even");
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(source.join(name), directory.join(name)).unwrap();
    }
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(source.join("config.json")).unwrap()).unwrap();
    for (key, size) in [
        ("hidden_size", HIDDEN),
        ("intermediate_size", WIDE),
        ("vocab_size", WORDS),
        ("num_hidden_layers", LAYERS),
        ("num_attention_heads", 4),
        ("max_position_embeddings", 64),
        ("type_vocab_size", 2),
    ] {
        config[key] = json!(size);
    }
    config["id2label"] = json!({ "0": "LABEL_0" });
    config["label2id"] = json!({ "LABEL_0": 0 });
    std::fs::write(directory.join("config.json"), config.to_string()).unwrap();
    let (mut header, mut numbers) = (Map::new(), Vec::<f32>::new());
    let mut add = |name: String, shape: &[usize]| {
        let start = numbers.len();
        let count: usize = shape.iter().product();
        numbers.extend((0..count).map(|n| ((start + n) as f32 * 0.37).sin() * 0.05));
        let offsets = [4 * start, 4 * (start + count)];
        header.insert(name, json!({ "dtype": "F32", "shape": shape, "data_offsets": offsets }));
    };
    for (table, rows) in [("word", WORDS), ("position", 64), ("token_type", 2)] {
        add(format!("bert.embeddings.{table}_embeddings.weight"), &[rows, HIDDEN]);
    }
    let mut norms = vec!["bert.embeddings.LayerNorm".to_owned()];
    let mut maps =
        vec![("bert.pooler.dense".to_owned(), HIDDEN, HIDDEN), ("classifier".to_owned(), 1, HIDDEN)];
    for layer in (0..LAYERS).map(|index| format!("bert.encoder.layer.{index}")) {
        for part in ["self.query", "self.key", "self.value", "output.dense"] {
            maps.push((format!("{layer}.attention.{part}"), HIDDEN, HIDDEN));
        }
        maps.push((format!("{layer}.intermediate.dense"), WIDE, HIDDEN));
        maps.push((format!("{layer}.output.dense"), HIDDEN, WIDE));
        norms.extend([format!("{layer}.attention.output.LayerNorm"), format!("{layer}.output.LayerNorm")]);
    }
    for (name, outputs, inputs) in maps {
        add(format!("{name}.weight"), &[outputs, inputs]);
        add(format!("{name}.bias"), &[outputs]);
    }
    for name in norms {
        add(format!("{name}.weight"), &[HIDDEN]);
        add(format!("{name}.bias"), &[HIDDEN]);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    std::fs::write(directory.join("model.safetensors"), file).unwrap();
}

/// Bytes that an open model takes, and how many more it took to open it.
fn opened(directory: &Path, precision: Precision) -> (usize, usize) {
    // Tables that are made once, and threads, are not the model's.
    let options = ModelOptions { precision: Some(precision), threads: Some(2), ..ModelOptions::default() };
    let open = || CrossEncoder::open(&ModelSpec::from(directory), &options).unwrap();
    drop(open());
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let model = open();
    let held = HELD.load(Ordering::Relaxed);
    let most = MOST.load(Ordering::Relaxed);
    drop(model);
    (held.saturating_sub(before), most.saturating_sub(held))
}

#[test]
fn opening_takes_a_few_pieces_more_than_the_model() {
    let scratch = tempfile::tempdir().unwrap();
    let plain = scratch.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    model(&plain);
    let kept: PathBuf = scratch.path().join("kept");
    let save = SaveOptions { weights: StoredWeights::Int8, existing: Existing::Refuse };
    save_cross_encoder(&ModelSpec::from(plain.as_path()), &ModelOptions::default(), &kept, &save).unwrap();

    // The last layer's keys and values are there a second time, head by head.
    let layers = LAYERS * HIDDEN * (4 * HIDDEN + 2 * WIDE) + 2 * HIDDEN * HIDDEN;
    let words = WORDS * HIDDEN;
    // Positions, norms, head and tokenizer.
    let rest = 2 << 20;
    for (directory, precision, of_weight, of_word) in [
        (&plain, Precision::F32, 4, 4),
        (&kept, Precision::F32, 4, 4),
        (&plain, Precision::Int8, 1, 2),
        (&kept, Precision::Int8, 1, 2),
    ] {
        let (held, more) = opened(directory, precision);
        let expected = layers * of_weight + words * of_word;
        assert!(
            (expected..expected + rest).contains(&held),
            "{precision}: {held} bytes, expected {expected}"
        );
        // A MiB as it is stored, as many numbers in f32, and what 8 bits are restored in.
        println!("{precision}: {held} bytes, {more} more to open it");
        assert!(more < 4 << 20, "{precision}: {more} bytes more");
    }
}
