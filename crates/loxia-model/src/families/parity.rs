//! Hidden states and token ids against transformers, every family, size and kernel.
//!
//! Fixtures are made by `tools/golden/models.py`.

use std::path::{Path, PathBuf};

use loxia_core::{Cancel, Item, QueryText};
use loxia_nn::Kernel;
use serde::Deserialize;

use super::{Family, ModelConfig};
use crate::engine::{Engine, Machine};
use crate::layout::{Layout, LayoutKind};
use crate::network::Top;
use crate::options::ModelOptions;
use crate::tokenizer::Tokenizer;

#[derive(Deserialize)]
struct Golden {
    pairs: Vec<GoldenPair>,
}

#[derive(Deserialize)]
struct GoldenPair {
    query: String,
    item: String,
    ids: Vec<u32>,
    states: Vec<f32>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models")
}

#[test]
fn hidden_states_agree_with_transformers() {
    for kernel in Kernel::available() {
        for family in Family::ALL {
            for size in ["odd", "one-head", "even"] {
                check(&fixtures().join(format!("{family}-{size}")), kernel);
            }
        }
    }
}

fn check(directory: &Path, kernel: Kernel) {
    let config = ModelConfig::read(&directory.join("config.json")).unwrap();
    let tokenizer = Tokenizer::open(directory).unwrap();
    let layout = Layout::new(LayoutKind::Pair).bind(&tokenizer, config.usable_positions()).unwrap();
    let top = Top::Classifier(config.facts.labels());
    let machine = Machine::new(&ModelOptions { kernel: Some(kernel), ..ModelOptions::default() }).unwrap();
    let (engine, _) = Engine::open(directory, &config, top, &machine).unwrap();
    let golden: Golden = crate::json::read_json(&directory.join("golden.json")).unwrap();
    for pair in golden.pairs {
        let query = layout.query(&QueryText::Plain(pair.query)).unwrap();
        let item = layout.item(&Item::plain("d", pair.item)).unwrap();
        let sequence = layout.pair(&query, &item);
        assert_eq!(sequence.ids, pair.ids, "{}", directory.display());
        if pair.states.is_empty() {
            continue;
        }
        engine
            .run(
                &[sequence],
                |sequence, rows| rows.extend(0..sequence.len() as u32),
                |parts| Ok(parts.concat()),
                |_, states| {
                    assert_eq!(states.len(), pair.states.len());
                    let apart =
                        states.iter().zip(&pair.states).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    assert!(
                        apart < 1e-4,
                        "{}: states differ by {apart} ({})",
                        directory.display(),
                        kernel.name()
                    );
                },
                &Cancel::new(),
            )
            .unwrap();
    }
}
