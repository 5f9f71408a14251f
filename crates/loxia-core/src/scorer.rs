//! The contract of everything that scores (query, item) pairs.

use std::sync::Arc;

use crate::{Cancel, Error, Item, Progress, Query, Result};

/// What work cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Cost {
    /// Pairs that a model scored; each pair is charged once.
    pub pairs: u64,
    /// Pairs whose score was at hand and therefore free.
    pub cached: u64,
    /// Tokens that went through the model.
    pub tokens: u64,
    /// Pairs whose text was cut to fit the model.
    pub truncated: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.pairs += other.pairs;
        self.cached += other.cached;
        self.tokens += other.tokens;
        self.truncated += other.truncated;
    }
}

/// Who scores, as recorded in artefacts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ScorerInfo {
    /// A name for people, for instance the model directory's.
    pub name: String,
    /// Digest of everything that decides a score: weights, head, tokenizer, layout with its lengths and
    /// compat, precision.
    pub digest: String,
}

/// Scores (query, item) pairs in any grouping.
///
/// An implementation promises that
/// - a pair's score depends on the pair alone: not on what else is scored with it, on the order, or on
///   the number of threads. The same scorer gives the same bits;
/// - every score is finite, or the call fails;
/// - it looks at `cancel` often enough that a person does not wait.
///
/// `conformance::check_pair_scorer` (feature `conformance`) tests the promise.
pub trait PairScorer: Send + Sync {
    /// Scores `pairs`, given as positions in `queries` and `items`; `scores[i]` belongs to `pairs[i]`.
    ///
    /// Texts are prepared once for each query and item used, however many pairs share them, so large
    /// calls are cheaper than many small ones.
    fn score(
        &self,
        queries: &[Query],
        items: &[Item],
        pairs: &[(u32, u32)],
        scores: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Cost>;

    /// Who scores.
    fn info(&self) -> ScorerInfo;
}

impl<S: PairScorer + ?Sized> PairScorer for Arc<S> {
    fn score(
        &self,
        queries: &[Query],
        items: &[Item],
        pairs: &[(u32, u32)],
        scores: &mut [f32],
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Cost> {
        (**self).score(queries, items, pairs, scores, progress, cancel)
    }

    fn info(&self) -> ScorerInfo {
        (**self).info()
    }
}

/// Any function of a query and an item as a scorer.
///
/// ```
/// use loxia_core::*;
/// let overlap = FnScorer::new("overlap", |query: &Query, item: &Item| {
///     let words = query.text.joined();
///     words.split(' ').filter(|word| item.text.contains(word)).count() as f32
/// });
/// let mut scores = [0.0; 2];
/// let items = [Item::plain("a", "red bird"), Item::plain("b", "blue bird")];
/// overlap
///     .score(&[Query::plain("q", "red bird")], &items, &[(0, 0), (0, 1)], &mut scores, &NoProgress, &Cancel::new())
///     .unwrap();
/// assert_eq!(scores, [2.0, 1.0]);
/// ```
pub struct FnScorer<F> {
    name: String,
    function: F,
}

impl<F: Fn(&Query, &Item) -> f32 + Send + Sync> FnScorer<F> {
    /// Names the function; the name is its digest too, so change it when the function changes.
    pub fn new(name: impl Into<String>, function: F) -> Self {
        FnScorer { name: name.into(), function }
    }
}

impl<F: Fn(&Query, &Item) -> f32 + Send + Sync> PairScorer for FnScorer<F> {
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
        for (&(query, item), score) in pairs.iter().zip(scores) {
            cancel.check()?;
            let value = (self.function)(&queries[query as usize], &items[item as usize]);
            if !value.is_finite() {
                return Err(Error::NotFinite { row: query as usize, col: item as usize, value });
            }
            *score = value;
            progress.advance(1);
        }
        Ok(Cost { pairs: pairs.len() as u64, ..Cost::default() })
    }

    fn info(&self) -> ScorerInfo {
        ScorerInfo { name: self.name.clone(), digest: self.name.clone() }
    }
}
