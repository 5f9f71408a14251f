//! The promise of a [`PairScorer`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Cancel, Cost, Error, Item, NoProgress, PairScorer, Query};

/// How many pairs are tried one by one; more would only take time.
const PAIRS_TRIED_ALONE: usize = 100;

/// Checks that a pair's score is the same to the bit alone, first, last, reversed, repeated, in batches of
/// 1, 7 and 64 and from two threads at once; that scores are finite and costs add up; that cancelling, an
/// empty list and a wrong number of places are handled as promised.
///
/// All pairs of `queries` and `items` are scored about ten times; a few dozen pairs of unequal lengths make
/// a good test.
///
/// # Panics
/// If the scorer breaks its promise, or if there are no queries or no items.
pub fn check_pair_scorer(scorer: &dyn PairScorer, queries: &[Query], items: &[Item]) {
    assert!(!queries.is_empty() && !items.is_empty(), "the check needs queries and items");
    let check = Check { scorer, queries, items };
    let pairs: Vec<(u32, u32)> = (0..queries.len() as u32)
        .flat_map(|query| (0..items.len() as u32).map(move |item| (query, item)))
        .collect();
    let (expected, cost) = check.score(&pairs);
    if let Some(place) = expected.iter().position(|score| !score.is_finite()) {
        panic!("pair {:?} scored {}; scores are finite or the call fails", pairs[place], expected[place]);
    }
    assert_eq!(cost.pairs + cost.cached, pairs.len() as u64, "every pair is paid for or cached: {cost:?}");
    check.grouping(&pairs, &expected);
    check.position(&pairs, &expected);
    check.repetition(&pairs, &expected);
    check.threads(&pairs, &expected);
    check.edges(&pairs);
    assert_eq!(scorer.info(), scorer.info(), "a scorer has one name and one digest");
}

struct Check<'a> {
    scorer: &'a dyn PairScorer,
    queries: &'a [Query],
    items: &'a [Item],
}

impl Check<'_> {
    fn score(&self, pairs: &[(u32, u32)]) -> (Vec<f32>, Cost) {
        // Not zeros: a place that is left alone must show.
        let mut scores = vec![f32::NAN; pairs.len()];
        let result =
            self.scorer.score(self.queries, self.items, pairs, &mut scores, &NoProgress, &Cancel::new());
        match result {
            Ok(cost) => (scores, cost),
            Err(error) => panic!("scoring {} pairs failed: {error}", pairs.len()),
        }
    }

    /// Scores `pairs` in one call and compares bits.
    fn compare(&self, pairs: &[(u32, u32)], expected: &[f32], how: &str) {
        let (scores, _) = self.score(pairs);
        for ((pair, score), expected) in pairs.iter().zip(&scores).zip(expected) {
            assert!(
                score.to_bits() == expected.to_bits(),
                "pair {pair:?} scored {score} {how}, but {expected} among all pairs in order; \
                 a pair's score depends on the pair alone"
            );
        }
    }

    fn grouping(&self, pairs: &[(u32, u32)], expected: &[f32]) {
        for size in [1, 7, 64] {
            let limit = if size == 1 { PAIRS_TRIED_ALONE } else { usize::MAX };
            for (batch, expected) in pairs.chunks(size).zip(expected.chunks(size)).take(limit) {
                self.compare(batch, expected, &format!("in a batch of {size}"));
            }
        }
    }

    fn position(&self, pairs: &[(u32, u32)], expected: &[f32]) {
        let reversed: (Vec<_>, Vec<_>) = pairs.iter().copied().zip(expected).rev().unzip();
        self.compare(&reversed.0, &reversed.1, "in reversed order");
        // Each pair of a sample leads and closes a batch with its neighbours.
        let neighbours = 5.min(pairs.len() - 1);
        for place in (0..pairs.len()).step_by(pairs.len().div_ceil(16)) {
            let turned = |from: &[_]| [&from[place..], &from[..place]].concat();
            let turned_scores = [&expected[place..], &expected[..place]].concat();
            let mut batch: Vec<(u32, u32)> = turned(pairs)[..=neighbours].to_vec();
            let mut scores = turned_scores[..=neighbours].to_vec();
            self.compare(&batch, &scores, "first in a batch");
            batch.reverse();
            scores.reverse();
            self.compare(&batch, &scores, "last in a batch");
        }
    }

    fn repetition(&self, pairs: &[(u32, u32)], expected: &[f32]) {
        self.compare(&[pairs, pairs].concat(), &[expected, expected].concat(), "when given twice");
        self.compare(&[pairs[0]; 9], &[expected[0]; 9], "when given nine times in a row");
    }

    fn threads(&self, pairs: &[(u32, u32)], expected: &[f32]) {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| self.compare(pairs, expected, "while another thread scored"));
            }
        });
    }

    fn edges(&self, pairs: &[(u32, u32)]) {
        let (_, cost) = self.score(&[]);
        assert_eq!(cost, Cost::default(), "no pairs cost nothing");

        let cancel = Cancel::new();
        cancel.cancel();
        let mut scores = vec![0.0; pairs.len()];
        let result = self.scorer.score(self.queries, self.items, pairs, &mut scores, &NoProgress, &cancel);
        assert!(
            matches!(result, Err(Error::Cancelled)),
            "a raised cancel flag ends the call with Error::Cancelled, not {result:?}"
        );

        let too_few = catch_unwind(AssertUnwindSafe(|| {
            let mut scores = vec![0.0; pairs.len() - 1];
            let _ =
                self.scorer.score(self.queries, self.items, pairs, &mut scores, &NoProgress, &Cancel::new());
        }));
        assert!(too_few.is_err(), "fewer places than pairs is a mistake of the caller and panics");
    }
}
