//! Order among scored items, and a bounded heap that keeps the best.
//!
//! One tie rule everywhere: the higher score first, and of equal scores the item that stands earlier in
//! the collection. Scores are finite; the makers of scores see to that.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// An item, by its position in the collection, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Position of the item in its collection.
    pub item: u32,
    /// Its score.
    pub score: f32,
}

impl Scored {
    /// Ranking order: `Less` comes first. Score descending, then item ascending.
    ///
    /// A NaN would sort before everything, a negative zero after zero: equal to `f32::total_cmp`, except
    /// that both zeros are one value.
    pub fn ranking_order(&self, other: &Scored) -> Ordering {
        let key = |score: f32| if score == 0.0 { 0.0 } else { score };
        key(other.score).total_cmp(&key(self.score)).then(self.item.cmp(&other.item))
    }
}

/// Items from best to worst.
///
/// ```
/// use loxia_core::{Ranking, Scored};
/// let ranking = Ranking::from_scores(&[0.5, 2.0, 2.0, -1.0]);
/// assert_eq!(ranking.items().collect::<Vec<_>>(), [1, 2, 0, 3]);
/// assert_eq!(ranking.top(1).len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranking(Vec<Scored>);

impl Ranking {
    /// Sorts scored items; each item should occur once.
    pub fn new(mut scored: Vec<Scored>) -> Self {
        scored.sort_unstable_by(Scored::ranking_order);
        Ranking(scored)
    }

    /// Ranks a whole row of scores: item `i` has `scores[i]`.
    pub fn from_scores(scores: &[f32]) -> Self {
        Ranking::new(scores.iter().enumerate().map(|(i, &score)| Scored { item: i as u32, score }).collect())
    }

    /// The best `k` (or all, if fewer).
    pub fn top(&self, k: usize) -> &[Scored] {
        &self.0[..k.min(self.0.len())]
    }

    /// All, best first.
    pub fn as_slice(&self) -> &[Scored] {
        &self.0
    }

    /// Positions of the items, best first.
    pub fn items(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.0.iter().map(|scored| scored.item)
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is ranked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops all but the best `k`.
    pub fn truncate(&mut self, k: usize) {
        self.0.truncate(k);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct ByRank(Scored);

impl Eq for ByRank {}

impl PartialOrd for ByRank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByRank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.ranking_order(&other.0)
    }
}

/// Keeps the best `k` of what is pushed, in `O(log k)` a push and `O(k)` memory; the order of pushes does
/// not matter.
///
/// ```
/// let mut top = loxia_core::TopK::new(2);
/// for (item, score) in [(4, 1.0), (2, 3.0), (9, 3.0), (1, 3.0)] {
///     top.push(item, score);
/// }
/// assert_eq!(top.into_ranking().items().collect::<Vec<_>>(), [1, 2]);
/// ```
#[derive(Debug, Clone)]
pub struct TopK {
    k: usize,
    // The worst of the kept is on top.
    heap: BinaryHeap<ByRank>,
}

impl TopK {
    /// An empty heap for the best `k`.
    pub fn new(k: usize) -> Self {
        // A caller may ask for more than will ever come: do not reserve it all.
        TopK { k, heap: BinaryHeap::with_capacity(k.min(1 << 16)) }
    }

    /// Offers an item.
    pub fn push(&mut self, item: u32, score: f32) {
        let new = ByRank(Scored { item, score });
        if self.heap.len() < self.k {
            self.heap.push(new);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && new < *worst
        {
            *worst = new;
        }
    }

    /// The score that a new item must reach, once `k` are held.
    pub fn threshold(&self) -> Option<f32> {
        (self.heap.len() == self.k).then(|| self.heap.peek().map(|worst| worst.0.score)).flatten()
    }

    /// Merges another heap into this one.
    pub fn merge(&mut self, other: TopK) {
        for Scored { item, score } in other.heap.into_iter().map(|entry| entry.0) {
            self.push(item, score);
        }
    }

    /// The kept items, best first.
    pub fn into_ranking(self) -> Ranking {
        Ranking(self.heap.into_sorted_vec().into_iter().map(|entry| entry.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn top_k_equals_the_head_of_the_full_sort(
            scores in prop::collection::vec((-3i32..3).prop_map(|s| s as f32 / 2.0), 0..60),
            k in 0usize..70,
            split in 0usize..60,
        ) {
            let full = Ranking::from_scores(&scores);
            let mut left = TopK::new(k);
            let mut right = TopK::new(k);
            for (item, &score) in scores.iter().enumerate().rev() {
                if item < split { left.push(item as u32, score) } else { right.push(item as u32, score) }
            }
            left.merge(right);
            let merged = left.into_ranking();
            prop_assert_eq!(merged.as_slice(), full.top(k));
        }
    }

    #[test]
    fn zeros_of_both_signs_tie() {
        let ranking = Ranking::from_scores(&[-0.0, 0.0]);
        assert_eq!(ranking.items().collect::<Vec<_>>(), [0, 1]);
    }
}
