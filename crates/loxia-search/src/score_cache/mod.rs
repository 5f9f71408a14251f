//! Scores kept on disk, so that no pair is ever paid for twice.
//!
//! A score is found by the digest of its scorer (model, head, tokenizer, layout with its lengths and compat,
//! precision) and by the texts of query and item; ids play no part, so another data set with the same texts
//! finds it too. What is kept takes 24 bytes on disk and about 40 in memory.

mod record;
mod store;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use loxia_core::{Cancel, Cost, Item, PairScorer, Progress, Query, Result, ScorerInfo};

use record::{Key, digest_item, digest_query, key};
pub use store::CacheFound;
use store::Store;

/// Pairs scored before they are kept: what a stop or a failure may lose.
const PAIRS_AT_ONCE: usize = 4096;

/// A scorer that remembers: pairs it has scored before, in this process or an earlier one, are free and
/// counted in [`Cost::cached`].
///
/// ```
/// use loxia_core::*;
/// use loxia_search::CachedScorer;
/// let directory = tempfile::tempdir().unwrap();
/// let length = || FnScorer::new("length", |_: &Query, item: &Item| item.text.len() as f32);
/// let (queries, items) = ([Query::plain("q", "bird")], [Item::plain("a", "pine"), Item::plain("b", "crossbill")]);
/// let score = |pairs: &[(u32, u32)]| {
///     let scorer = CachedScorer::open(length(), directory.path()).unwrap();
///     let mut scores = vec![0.0; pairs.len()];
///     let cost = scorer.score(&queries, &items, pairs, &mut scores, &NoProgress, &Cancel::new()).unwrap();
///     (scores, cost.pairs, cost.cached)
/// };
/// assert_eq!(score(&[(0, 0)]), (vec![4.0], 1, 0));
/// assert_eq!(score(&[(0, 0), (0, 1)]), (vec![4.0, 9.0], 1, 1));
/// ```
#[derive(Debug)]
pub struct CachedScorer<S> {
    scorer: S,
    store: Mutex<Store>,
}

impl<S: PairScorer> CachedScorer<S> {
    /// Reads what `directory` keeps of this scorer; the directory is made if it is not there.
    ///
    /// Processes may share a directory. What one of them scores the others see when they open it next.
    pub fn open(scorer: S, directory: &Path) -> Result<Self> {
        let store = Store::open(directory, &scorer.info().digest)?;
        Ok(CachedScorer { scorer, store: Mutex::new(store) })
    }

    /// What was there at opening, damage included.
    pub fn found(&self) -> CacheFound {
        self.with_store(|store| store.found())
    }

    /// The scorer that is asked for new pairs.
    pub fn scorer(&self) -> &S {
        &self.scorer
    }

    fn with_store<T>(&self, work: impl FnOnce(&mut Store) -> T) -> T {
        // A panic elsewhere leaves whole records behind.
        work(&mut self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Pairs that must be scored, and who waits for each.
#[derive(Default)]
struct Missing {
    keys: Vec<Key>,
    pairs: Vec<(u32, u32)>,
    /// (place in the caller's pairs, place here)
    waiting: Vec<(usize, usize)>,
}

impl<S: PairScorer> PairScorer for CachedScorer<S> {
    fn score(
        &self,
        queries: &[Query],
        items: &[Item],
        pairs: &[(u32, u32)],
        scores: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Cost> {
        assert_eq!(pairs.len(), scores.len(), "one score for each pair");
        cancel.check()?;
        let keys = keys_of(queries, items, pairs);
        let mut missing = Missing::default();
        let mut places: HashMap<Key, usize> = HashMap::new();
        self.with_store(|store| {
            for (at, (&key, &pair)) in keys.iter().zip(pairs).enumerate() {
                if let Some(score) = store.get(key) {
                    scores[at] = score;
                    continue;
                }
                // Pairs of equal texts are scored once.
                let place = *places.entry(key).or_insert_with(|| {
                    missing.keys.push(key);
                    missing.pairs.push(pair);
                    missing.keys.len() - 1
                });
                missing.waiting.push((at, place));
            }
        });
        let mut cost = Cost { cached: (pairs.len() - missing.pairs.len()) as u64, ..Cost::default() };
        progress.advance(cost.cached);
        let mut fresh = vec![0.0; missing.pairs.len()];
        let parts = missing.pairs.chunks(PAIRS_AT_ONCE).zip(missing.keys.chunks(PAIRS_AT_ONCE));
        for ((pairs, keys), fresh) in parts.zip(fresh.chunks_mut(PAIRS_AT_ONCE)) {
            cost += self.scorer.score(queries, items, pairs, fresh, progress, cancel)?;
            let new: Vec<(Key, f32)> = keys.iter().copied().zip(fresh.iter().copied()).collect();
            self.with_store(|store| store.keep(&new))?;
        }
        missing.waiting.iter().for_each(|&(at, place)| scores[at] = fresh[place]);
        Ok(cost)
    }

    fn info(&self) -> ScorerInfo {
        self.scorer.info()
    }
}

/// The key of each pair; every text is read once.
fn keys_of(queries: &[Query], items: &[Item], pairs: &[(u32, u32)]) -> Vec<Key> {
    let (mut query_digests, mut item_digests) = (HashMap::new(), HashMap::new());
    let digests = pairs.iter().map(|&(query, item)| {
        let query =
            query_digests.entry(query).or_insert_with_key(|&query| digest_query(&queries[query as usize]));
        let item = item_digests.entry(item).or_insert_with_key(|&item| digest_item(&items[item as usize]));
        key(query, item)
    });
    digests.collect()
}
