//! Joining runs: reciprocal ranks or scores of an item are added over the runs that have it.

use std::cmp::Ordering;

use indexmap::IndexMap;
use indexmap::map::Entry;
use loxia_core::{ItemId, QueryId, Run, RunEntry};

use crate::{Error, Result};

/// What becomes of a run's scores before they are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalisation {
    /// To 0..1 within each query: the lowest score of the list is 0, the highest 1. Where all are equal
    /// every item gets 1, for it was found all the same.
    #[default]
    MinMax,
    /// Added as they are; for runs whose scores have one scale.
    None,
}

/// How runs are joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fusion {
    /// Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): the sum of `1 / (k + rank)`.
    ReciprocalRank {
        /// Damps the first ranks; 60 in the paper.
        k: f64,
    },
    /// The sum of the scores (Fox and Shaw 1994).
    CombSum(Normalisation),
    /// That sum times the number of runs that have the item.
    CombMnz(Normalisation),
}

impl Default for Fusion {
    fn default() -> Self {
        Fusion::ReciprocalRank { k: 60.0 }
    }
}

/// Joins runs into one, cut to `depth` items a query if given.
///
/// Within a run, ranks come from the scores; of equal scores the earlier line ranks higher. In the result,
/// of equal sums the item comes first that was seen first, runs in the order given. Queries stand in the
/// order they were first seen.
///
/// ```
/// use loxia_core::{Run, RunEntry};
/// use loxia_eval::{Fusion, fuse};
/// let run = |tag: &str, items: [&str; 2]| {
///     let mut run = Run::new(tag);
///     run.push("q".into(), RunEntry { item: items[0].into(), score: 2.0 });
///     run.push("q".into(), RunEntry { item: items[1].into(), score: 1.0 });
///     run
/// };
/// let fused = fuse(&[run("a", ["d1", "d2"]), run("b", ["d2", "d3"])], Fusion::default(), None)?;
/// let order: Vec<&str> = fused.get("q").unwrap().iter().map(|entry| entry.item.as_str()).collect();
/// assert_eq!(order, ["d2", "d1", "d3"]);
/// # Ok::<(), loxia_eval::Error>(())
/// ```
pub fn fuse(runs: &[Run], fusion: Fusion, depth: Option<usize>) -> Result<Run> {
    if runs.is_empty() {
        return Err(Error::Setting { name: "the number of runs", found: "0".into(), expected: "at least 1" });
    }
    if let Fusion::ReciprocalRank { k } = fusion
        && !(k >= 0.0 && k.is_finite())
    {
        return Err(Error::Setting { name: "k", found: k.to_string(), expected: "0 or more" });
    }
    let mut queries: IndexMap<&QueryId, Vec<(&Run, &[RunEntry])>> = IndexMap::new();
    for run in runs {
        for (query, entries) in run.iter() {
            queries.entry(query).or_default().push((run, entries));
        }
    }
    let mut fused = Run::new(match fusion {
        Fusion::ReciprocalRank { .. } => "rrf",
        Fusion::CombSum(_) => "combsum",
        Fusion::CombMnz(_) => "combmnz",
    });
    for (query, lists) in queries {
        fused.insert(query.clone(), fuse_query(query, &lists, fusion, depth)?);
    }
    Ok(fused)
}

/// Sum of an item's contributions, and how many runs gave one.
#[derive(Debug, Clone, Copy)]
struct Sum {
    score: f64,
    runs: u32,
    /// The last run that gave one, to find duplicates.
    last: usize,
}

fn fuse_query(
    query: &QueryId,
    lists: &[(&Run, &[RunEntry])],
    fusion: Fusion,
    depth: Option<usize>,
) -> Result<Vec<RunEntry>> {
    let mut sums: IndexMap<&ItemId, Sum> = IndexMap::new();
    for (number, (run, entries)) in lists.iter().enumerate() {
        if let Some(entry) = entries.iter().find(|entry| !entry.score.is_finite()) {
            return Err(Error::BadScore {
                run: run.tag.clone(),
                query: query.clone(),
                item: entry.item.clone(),
                score: entry.score,
                expected: "fusion needs finite scores",
            });
        }
        for (entry, score) in entries.iter().zip(contributions(entries, fusion)) {
            match sums.entry(&entry.item) {
                Entry::Vacant(vacant) => {
                    vacant.insert(Sum { score, runs: 1, last: number });
                }
                Entry::Occupied(occupied) if occupied.get().last == number => {
                    return Err(Error::DuplicateItem {
                        run: run.tag.clone(),
                        query: query.clone(),
                        item: entry.item.clone(),
                    });
                }
                Entry::Occupied(mut occupied) => {
                    let sum = occupied.get_mut();
                    *sum = Sum { score: sum.score + score, runs: sum.runs + 1, last: number };
                }
            }
        }
    }
    let mut fused: Vec<RunEntry> = sums
        .into_iter()
        .map(|(item, sum)| {
            let times = if let Fusion::CombMnz(_) = fusion { f64::from(sum.runs) } else { 1.0 };
            RunEntry { item: item.clone(), score: sum.score * times }
        })
        .collect();
    // Stable, so that ties stay in the order they were seen.
    fused.sort_by(descending);
    fused.truncate(depth.unwrap_or(usize::MAX));
    Ok(fused)
}

/// What each line of a list adds to the sum of its item.
fn contributions(entries: &[RunEntry], fusion: Fusion) -> Vec<f64> {
    match fusion {
        Fusion::ReciprocalRank { k } => {
            let mut order: Vec<usize> = (0..entries.len()).collect();
            order.sort_by(|&a, &b| descending(&entries[a], &entries[b]));
            let mut scores = vec![0.0; entries.len()];
            for (position, line) in order.into_iter().enumerate() {
                scores[line] = 1.0 / (k + (position + 1) as f64);
            }
            scores
        }
        Fusion::CombSum(Normalisation::None) | Fusion::CombMnz(Normalisation::None) => {
            entries.iter().map(|entry| entry.score).collect()
        }
        Fusion::CombSum(Normalisation::MinMax) | Fusion::CombMnz(Normalisation::MinMax) => {
            let scores = || entries.iter().map(|entry| entry.score);
            let (low, high) =
                (scores().fold(f64::INFINITY, f64::min), scores().fold(f64::NEG_INFINITY, f64::max));
            // Halves, because the distance of two finite scores can overflow.
            let range = high / 2.0 - low / 2.0;
            scores().map(|score| if range > 0.0 { (score / 2.0 - low / 2.0) / range } else { 1.0 }).collect()
        }
    }
}

fn descending(a: &RunEntry, b: &RunEntry) -> Ordering {
    b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tag: &str, lists: &[(&str, &[(&str, f64)])]) -> Run {
        let mut run = Run::new(tag);
        for (query, list) in lists {
            for &(item, score) in *list {
                run.push((*query).into(), RunEntry { item: item.into(), score });
            }
        }
        run
    }

    fn fused(runs: &[Run], fusion: Fusion, depth: Option<usize>) -> Vec<(String, f64)> {
        let run = fuse(runs, fusion, depth).unwrap();
        run.get("q").unwrap().iter().map(|entry| (entry.item.to_string(), entry.score)).collect()
    }

    fn two() -> [Run; 2] {
        [
            run("a", &[("q", &[("d1", 10.0), ("d2", 30.0), ("d3", 20.0)])]),
            run("b", &[("q", &[("d4", 0.5), ("d2", 0.1)]), ("p", &[("d9", 1.0)])]),
        ]
    }

    #[test]
    fn reciprocal_ranks() {
        let list = fused(&two(), Fusion::default(), None);
        let expected =
            [("d2", 1.0 / 61.0 + 1.0 / 62.0), ("d4", 1.0 / 61.0), ("d3", 1.0 / 62.0), ("d1", 1.0 / 63.0)];
        assert_eq!(list, expected.map(|(item, score)| (item.to_owned(), score)));
        assert_eq!(fused(&two(), Fusion::default(), Some(2)).len(), 2);
        assert_eq!(fuse(&two(), Fusion::default(), None).unwrap().len(), 2);
    }

    #[test]
    fn scores() {
        let list = fused(&two(), Fusion::CombSum(Normalisation::MinMax), None);
        // d2 and d4 tie at 1: d2 was seen first.
        let expected = [("d2", 1.0), ("d4", 1.0), ("d3", 0.5), ("d1", 0.0)];
        assert_eq!(list, expected.map(|(item, score)| (item.to_owned(), score)));
        let list = fused(&two(), Fusion::CombMnz(Normalisation::MinMax), None);
        assert_eq!(list[0], ("d2".to_owned(), 2.0));
        let list = fused(&two(), Fusion::CombSum(Normalisation::None), None);
        assert_eq!(list[0], ("d2".to_owned(), 30.1));
    }

    #[test]
    fn equal_and_huge_scores_stay_finite() {
        let runs = [run("a", &[("q", &[("d1", 5.0), ("d2", 5.0)])])];
        let list = fused(&runs, Fusion::CombSum(Normalisation::MinMax), None);
        assert_eq!(list, [("d1".to_owned(), 1.0), ("d2".to_owned(), 1.0)]);
        let runs = [run("a", &[("q", &[("d1", f64::MAX), ("d2", f64::MIN)])])];
        let list = fused(&runs, Fusion::CombSum(Normalisation::MinMax), None);
        assert_eq!(list, [("d1".to_owned(), 1.0), ("d2".to_owned(), 0.0)]);
    }

    #[test]
    fn bad_input_is_named() {
        let runs = [run("a", &[("q", &[("d1", 1.0), ("d1", 2.0)])])];
        let error = fuse(&runs, Fusion::default(), None).unwrap_err();
        assert!(error.to_string().starts_with("run \"a\", query q: item d1 occurs more than once"));
        let runs = [run("a", &[("q", &[("d1", f64::INFINITY)])])];
        assert!(fuse(&runs, Fusion::default(), None).is_err());
        assert!(fuse(&[], Fusion::default(), None).is_err());
        assert!(fuse(&two(), Fusion::ReciprocalRank { k: -1.0 }, None).is_err());
    }
}
