//! Search under a scorer of your own: any function of two texts, here one that compares spellings.
//!
//! A model would take the closure's place; the steps stay the same. Vectors come from TF-IDF, so nothing else is
//! needed.

use std::error::Error;
use std::sync::Arc;

use loxia::core::{FnScorer, IdTable};
use loxia::prelude::*;
use loxia::search::linalg::Dense;
use loxia::search::{
    AnchorSet, Index, IndexOptions, QueryEncoder, Searcher, TextCollection, TfidfSettings, TfidfVectors,
};

fn main() -> Result<(), Box<dyn Error>> {
    let cancel = Cancel::new();
    let items: Vec<Item> = names("items", 600)
        .into_iter()
        .enumerate()
        .map(|(i, name)| Item::plain(format!("n{i}"), name))
        .collect();
    let queries: Vec<Query> = names("queries", 41)
        .into_iter()
        .enumerate()
        .map(|(i, name)| Query::plain(format!("q{i}"), name))
        .collect();
    let (query, anchor_queries) = queries.split_last().ok_or("there are queries")?;
    let scorer = FnScorer::new("common letters", |query: &Query, item: &Item| {
        common_letters(&query.text.joined(), &item.text)
    });

    // 1. Vectors of all texts, and the anchor queries against every item.
    let (tfidf, item_vectors) = TfidfVectors::fit(&items, &TfidfSettings::default(), &cancel)?;
    let mut query_vectors = Vec::new();
    for query in anchor_queries {
        query_vectors.extend(tfidf.encode(query)?);
    }
    let query_vectors = Dense::new(anchor_queries.len(), tfidf.dims(), query_vectors)?;
    let pairs: Vec<(u32, u32)> = (0..anchor_queries.len() as u32)
        .flat_map(|query| (0..items.len() as u32).map(move |item| (query, item)))
        .collect();
    let mut scores = vec![0.0; pairs.len()];
    scorer.score(anchor_queries, &items, &pairs, &mut scores, &NoProgress, &cancel)?;

    // 2. The index learns from them.
    let scores = Dense::new(anchor_queries.len(), items.len(), scores)?;
    let anchors = AnchorSet::new(scores.into(), Some((query_vectors.into(), Arc::new(item_vectors))))?;
    let ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
    let ids = IdTable::try_from(ids.as_slice())?;
    let (index, _) = Index::build(&anchors, ids, &IndexOptions::default(), &NoProgress, &cancel)?;

    // 3. A search for a new query pays for 60 of the 600 items.
    let best_possible =
        items.iter().map(|item| common_letters(&query.text.joined(), &item.text)).fold(0.0, f32::max);
    let searcher = Searcher::new(index, TextCollection::new(scorer, items.clone()).with_encoder(tfidf))?;
    let answer = searcher.search(query, 5, &Stop::at_budget(60), &cancel)?;
    println!("{} ({} of {} items scored)", query.text.joined(), answer.cost.pairs, items.len());
    for scored in answer.ranking.as_slice() {
        println!("{:6.3}  {}", scored.score, items[scored.item as usize].text);
    }
    assert_eq!(answer.cost.pairs, 60);
    let best = answer.ranking.as_slice().first().ok_or("something was found")?;
    assert!(best.score > 0.9 * best_possible, "{} against {best_possible}", best.score);
    Ok(())
}

/// Length of the longest common subsequence, as a share of the longer word.
fn common_letters(a: &str, b: &str) -> f32 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0u16; b.len() + 1];
    for &letter in &a {
        let mut row = vec![0u16; b.len() + 1];
        for (at, &other) in b.iter().enumerate() {
            row[at + 1] = if letter == other { before[at] + 1 } else { before[at + 1].max(row[at]) };
        }
        before = row;
    }
    f32::from(before[b.len()]) / a.len().max(b.len()).max(1) as f32
}

/// Made-up names of three to five syllables.
fn names(stream: &str, count: usize) -> Vec<String> {
    let syllables = [
        "lo", "xi", "a", "cur", "vi", "ros", "tra", "pit", "yo", "psit", "ta", "cus", "leu", "cop", "te",
        "ra",
    ];
    let mut random = Seed(7).stream(stream);
    (0..count)
        .map(|_| {
            let length = 3 + random.below(3);
            (0..length).map(|_| syllables[random.below(syllables.len() as u64) as usize]).collect()
        })
        .collect()
}

#[test]
fn the_example_runs() -> Result<(), Box<dyn Error>> {
    main()
}
