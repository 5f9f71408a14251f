//! How much recall a budget buys: the curve to look at before choosing one.
//!
//! Scores are made up here. With scores of your own (`loxia score`), keep some rows out of the anchors and search
//! them as it is done below; `loxia eval knn` does the same on the command line.

use std::error::Error;
use std::sync::Arc;

use loxia::prelude::*;
use loxia::search::linalg::Dense;
use loxia::search::{AnchorSet, BuildOptions, MethodName, QueryRows, build, recall_grid};

const ITEMS: usize = 800;
const TRAITS: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let items = normal("items", ITEMS);
    let (anchors, anchor_vectors) = queries("anchors", 60, &items);
    let (searched, searched_vectors) = queries("searched", 20, &items);
    let vectors = (Arc::new(anchor_vectors), Arc::new(items));
    let anchors = AnchorSet::new(Arc::new(anchors), Some(vectors))?;
    let vectors = Some(Arc::new(searched_vectors));
    let searched = QueryRows { scores: Arc::new(searched), vectors, queries: None };

    let (ks, costs) = ([10, 50], [20, 50, 100, 200]);
    let mut at_100 = Vec::new();
    println!("recall of the top 10 and the top 50 of {ITEMS} items\n{:<10} {costs:>14?} pairs", "");
    for method in [MethodName::Rerank, MethodName::Posterior] {
        let built = build(method, &anchors, &BuildOptions::default())?;
        let grid = recall_grid(&*built.method, &searched, &ks, &costs)?;
        for (column, k) in ks.iter().enumerate() {
            print!("{method:<10} k={k:<3}");
            (0..costs.len()).for_each(|cost| print!("{:8.3}", grid.row(cost)[column]));
            println!();
        }
        at_100.push(grid.row(2)[1]);
        assert!((1..costs.len()).all(|cost| grid.row(cost)[0] + 0.02 >= grid.row(cost - 1)[0]));
    }
    assert!(at_100[1] > at_100[0], "posterior finds more than reranking: {at_100:?}");
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
