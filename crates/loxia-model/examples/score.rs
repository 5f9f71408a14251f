//! Scores of pairs of texts, one a line.
//!
//!     cargo run --release --example score -- MODEL PAIRS.jsonl

use loxia_core::{Cancel, Item, NoProgress, PairScorer, Query};
use loxia_model::{CrossEncoder, ModelOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [model, pairs] = std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("two arguments");
    let model = CrossEncoder::open(&model.parse()?, &ModelOptions::default())?;
    let (mut queries, mut items) = (Vec::new(), Vec::new());
    for (number, line) in std::fs::read_to_string(pairs)?.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        queries.push(Query::plain(number.to_string(), text("query")));
        items.push(Item::plain(number.to_string(), text("text")));
    }
    let pairs: Vec<(u32, u32)> = (0..queries.len() as u32).map(|number| (number, number)).collect();
    let mut scores = vec![0.0; pairs.len()];
    model.score(&queries, &items, &pairs, &mut scores, &NoProgress, &Cancel::new())?;
    scores.iter().for_each(|score| println!("{score}"));
    Ok(())
}
