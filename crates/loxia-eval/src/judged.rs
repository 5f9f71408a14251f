//! A query's ranking as its judgements see it.
//!
//! This is where trec_eval's reading of runs is decided. Items are ordered by score, compared as 32-bit
//! floats; of equal scores the item with the *greater* id (byte order) comes first; the rank column and the
//! order of the file count for nothing. An item is judged with a level of 0 or more, pooled but not judged
//! (a negative level), or not pooled at all.

use std::cmp::Ordering;
use std::collections::HashSet;

use indexmap::IndexMap;
use loxia_core::{ItemId, QueryId, RunEntry};

use crate::{Error, Result};

/// What the judgements say of a retrieved item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    /// Judged, with this relevance level.
    Level(u32),
    /// In the pool, but nobody judged it: a negative level in the qrels.
    PooledUnjudged,
    /// Not in the qrels.
    NotPooled,
}

impl Grade {
    /// Whether it counts as relevant at a level.
    pub(crate) fn is_relevant(self, level: u32) -> bool {
        matches!(self, Grade::Level(own) if own >= level)
    }
}

/// The grades of a ranking from the first rank to the last, with the levels of all judged items.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JudgedRanking {
    /// Grade of each retrieved item, best rank first.
    pub(crate) grades: Vec<Grade>,
    /// Levels of all judged items of the query, retrieved or not, highest first; no negative ones.
    levels: Vec<u32>,
}

impl JudgedRanking {
    /// Orders a query's list and looks up its grades; a duplicate item or a score that is no number is
    /// an error.
    pub(crate) fn new(
        run: &str,
        query: &QueryId,
        entries: &[RunEntry],
        judgements: &IndexMap<ItemId, i32>,
    ) -> Result<Self> {
        let mut seen = HashSet::with_capacity(entries.len());
        for entry in entries {
            if entry.score.is_nan() {
                return Err(Error::BadScore {
                    run: run.to_owned(),
                    query: query.clone(),
                    item: entry.item.clone(),
                    score: entry.score,
                    expected: "scores must be numbers",
                });
            }
            if !seen.insert(entry.item.as_str()) {
                return Err(Error::DuplicateItem {
                    run: run.to_owned(),
                    query: query.clone(),
                    item: entry.item.clone(),
                });
            }
        }
        let mut order: Vec<(f32, &str)> =
            entries.iter().map(|entry| (entry.score as f32, entry.item.as_str())).collect();
        order.sort_unstable_by(|a, b| {
            // No NaN is left, so every pair compares; `total_cmp` would part the two zeros.
            b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal).then_with(|| b.1.cmp(a.1))
        });
        let grades = order
            .into_iter()
            .map(|(_, item)| match judgements.get(item) {
                None => Grade::NotPooled,
                Some(&level) => u32::try_from(level).map_or(Grade::PooledUnjudged, Grade::Level),
            })
            .collect();
        let mut levels: Vec<u32> =
            judgements.values().filter_map(|&level| u32::try_from(level).ok()).collect();
        levels.sort_unstable_by(|a, b| b.cmp(a));
        Ok(JudgedRanking { grades, levels })
    }

    /// The same ranking with everything removed that has no level (trec_eval's `-J`).
    pub(crate) fn judged_only(&self) -> Self {
        let judged = |grade: &Grade| matches!(grade, Grade::Level(_));
        JudgedRanking {
            grades: self.grades.iter().copied().filter(judged).collect(),
            levels: self.levels.clone(),
        }
    }

    /// Levels of all judged items, highest first.
    pub(crate) fn levels(&self) -> &[u32] {
        &self.levels
    }

    /// Number of retrieved items.
    pub(crate) fn retrieved(&self) -> usize {
        self.grades.len()
    }

    /// Number of items judged relevant at a level, retrieved or not.
    pub(crate) fn relevant(&self, level: u32) -> usize {
        self.levels.partition_point(|&own| own >= level)
    }

    /// Number of relevant items among the first `depth`.
    pub(crate) fn relevant_within(&self, level: u32, depth: usize) -> usize {
        self.head(depth).iter().filter(|grade| grade.is_relevant(level)).count()
    }

    /// The grades of the first `depth` ranks, or of all if there are fewer.
    pub(crate) fn head(&self, depth: usize) -> &[Grade] {
        &self.grades[..depth.min(self.grades.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[(&str, f64)]) -> Vec<RunEntry> {
        list.iter().map(|&(item, score)| RunEntry { item: item.into(), score }).collect()
    }

    fn judgements(list: &[(&str, i32)]) -> IndexMap<ItemId, i32> {
        list.iter().map(|&(item, level)| (item.into(), level)).collect()
    }

    #[test]
    fn ties_go_to_the_greater_id_and_scores_are_compared_as_f32() {
        // 1 + 1e-9 is 1 in 32 bits, so all three tie.
        let list = entries(&[("a", 1.0), ("b", 1.0 + 1e-9), ("c", 1.0), ("d", 2.0)]);
        let pool = judgements(&[("a", 1), ("b", 2), ("c", 3), ("d", 4)]);
        let ranking = JudgedRanking::new("run", &"q".into(), &list, &pool).unwrap();
        assert_eq!(ranking.grades, [4, 3, 2, 1].map(Grade::Level));
    }

    #[test]
    fn both_zeros_tie_and_ids_compare_as_bytes() {
        let list = entries(&[("Z", 0.0), ("a", -0.0), ("é", 0.0)]);
        let pool = judgements(&[("Z", 1), ("a", 2), ("é", 3)]);
        let ranking = JudgedRanking::new("run", &"q".into(), &list, &pool).unwrap();
        assert_eq!(ranking.grades, [3, 2, 1].map(Grade::Level));
    }

    #[test]
    fn a_duplicate_and_a_nan_are_named() {
        let pool = judgements(&[("a", 1)]);
        let list = entries(&[("a", 1.0), ("b", 3.0), ("a", 2.0)]);
        let error = JudgedRanking::new("bm25", &"q7".into(), &list, &pool).unwrap_err();
        assert_eq!(
            error.to_string(),
            "run \"bm25\", query q7: item a occurs more than once; a ranking holds an item once, remove one \
             of the lines"
        );
        let list = entries(&[("b", f64::NAN)]);
        let error = JudgedRanking::new("bm25", &"q7".into(), &list, &pool).unwrap_err();
        assert!(error.to_string().contains("item b is NaN"), "{error}");
    }

    #[test]
    fn negative_levels_are_pooled_but_not_judged() {
        let list = entries(&[("a", 3.0), ("b", 2.0), ("c", 1.0)]);
        let pool = judgements(&[("a", -1), ("b", 0), ("x", 2)]);
        let ranking = JudgedRanking::new("run", &"q".into(), &list, &pool).unwrap();
        assert_eq!(ranking.grades, [Grade::PooledUnjudged, Grade::Level(0), Grade::NotPooled]);
        assert_eq!(ranking.levels(), [2, 0]);
        assert_eq!(ranking.judged_only().grades, [Grade::Level(0)]);
        assert_eq!((ranking.relevant(1), ranking.relevant(0)), (1, 2));
    }
}
