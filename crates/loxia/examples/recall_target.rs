//! Searches that stop when they estimate that enough was found.
//!
//! Scores are made up here; what a model would be asked is the closure of `search_with`.

use std::error::Error;
use std::sync::Arc;

use loxia::core::{IdTable, RecallTarget, StoppedBy};
use loxia::prelude::*;
use loxia::search::linalg::Dense;
use loxia::search::{AnchorSet, Index, IndexOptions, QueryView, search_with};

const ITEMS: usize = 800;
const TRAITS: usize = 12;
const K: usize = 20;
const SEARCHES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let cancel = Cancel::new();
    let items = Arc::new(normal("items", ITEMS));
    let (anchors, anchor_vectors) = queries("anchors", 60, &items);
    let (searched, vectors) = queries("searched", SEARCHES, &items);
    let anchors = AnchorSet::new(Arc::new(anchors), Some((Arc::new(anchor_vectors), items)))?;
    let ids: Vec<String> = (0..ITEMS).map(|item| format!("d{item}")).collect();
    let ids = IdTable::try_from(ids.as_slice())?;
    // The estimate is calibrated on held-out anchors while the index is built.
    let (index, _) = Index::build(&anchors, ids, &IndexOptions::default(), &NoProgress, &cancel)?;

    // Whichever comes first: the target, or 600 pairs.
    let mut stop = Stop::at_budget(600);
    stop.recall = Some(RecallTarget::new(0.9)?);
    let (mut recalls, mut pairs) = (0.0, 0);
    for query in 0..SEARCHES {
        let id = query.to_string();
        let view = QueryView { id: &id, vector: Some(vectors.row(query)), text: None };
        let row = searched.row(query);
        let answer = search_with(&index, &view, K, &stop, &cancel, |items, scores, _| {
            items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
            Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
        })?;
        let estimate = answer.recall_estimate.ok_or("the index is calibrated")?;
        let exact = Ranking::from_scores(row);
        let found =
            answer.ranking.items().filter(|item| exact.items().take(K).any(|top| top == *item)).count();
        let recall = found as f64 / K as f64;
        println!(
            "query {query:2}: {:3} pairs, {:2} rounds, estimated {:.2} ({:.2} to {:.2}), in truth {recall:.2}{}",
            answer.cost.pairs,
            answer.rounds,
            estimate.mean,
            estimate.low,
            estimate.high,
            if answer.stopped_by == StoppedBy::Recall { "" } else { " (budget spent)" }
        );
        recalls += recall;
        pairs += answer.cost.pairs;
    }
    let (recall, pairs) = (recalls / SEARCHES as f64, pairs as f64 / SEARCHES as f64);
    println!("mean recall {recall:.3} for a target of 0.90, {pairs:.0} of {ITEMS} pairs");
    assert!(recall > 0.85, "the target is met");
    assert!(pairs < 0.75 * ITEMS as f64, "and not by scoring everything");
    Ok(())
}

/// Queries: their scores for every item, and their vectors. The vectors know half of what the scores are made of.
fn queries(stream: &str, count: usize, items: &Dense) -> (Dense, Dense) {
    let (known, hidden) = (normal(stream, count), normal(&format!("{stream}/hidden"), count));
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let scores = Dense::from_fn(count, items.rows(), |query, item| {
        let seen = dot(known.row(query), items.row(item));
        seen + dot(hidden.row(query), items.row((item * 7 + 3) % items.rows()))
    });
    (scores, known)
}

fn normal(stream: &str, rows: usize) -> Dense {
    let mut random = Seed(1).stream(stream);
    Dense::from_fn(rows, TRAITS, |_, _| random.normal() as f32)
}

#[test]
fn the_example_runs() -> Result<(), Box<dyn Error>> {
    main()
}
