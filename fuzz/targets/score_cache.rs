//! Files of kept scores. Whatever a file holds, every pair gets a finite score, and the second time all of
//! them are found.

#![no_main]

use std::fs;
use std::path::Path;

use loxia_core::artefact::digest_bytes;
use loxia_core::{Cancel, FnScorer, Item, NoProgress, PairScorer, Query};
use loxia_fuzz::with_directory;
use loxia_search::CachedScorer;

const SCORER: &str = "fuzz";

fn score(directory: &Path) -> ([f32; 4], u64) {
    let one = FnScorer::new(SCORER, |_: &Query, _: &Item| 1.0);
    let scorer = CachedScorer::open(one, directory).expect("damage is counted, not an error");
    let found = scorer.found();
    let queries = [Query::plain("q", "a"), Query::plain("r", "b")];
    let items = [Item::plain("i", "x"), Item::plain("j", "y")];
    let mut scores = [f32::NAN; 4];
    let pairs = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let cost = scorer
        .score(&queries, &items, &pairs, &mut scores, &NoProgress, &Cancel::new())
        .expect("the scorer never fails");
    assert!(cost.cached <= found.scores);
    (scores, cost.pairs)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    with_directory(|directory| {
        let stem = &digest_bytes(SCORER.as_bytes())[..32];
        fs::write(directory.join(format!("{stem}-000.scores")), bytes).expect("the scratch directory has room");
        let (first, _) = score(directory);
        assert!(first.iter().all(|score| score.is_finite()));
        assert_eq!(score(directory), (first, 0));
    });
});
