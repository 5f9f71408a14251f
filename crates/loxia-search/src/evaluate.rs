//! Recall against exact search, on queries whose whole rows are known.
//!
//! Queries are spread over the thread pool; results are gathered in the order of the queries, so they do
//! not depend on the number of threads.

use loxia_core::{Cancel, Cost, RecallEstimate, Scored, Stop};
use rayon::prelude::*;

use crate::linalg::Dense;
use crate::method::best_positions;
use crate::{Method, QueryRows, Result, search_with};

/// How the search of one known row went.
#[derive(Debug, Clone, PartialEq)]
pub struct RowOutcome {
    /// Recall at each k that was asked for: the share of the exact top k (ties by item order) among the
    /// items paid for; a `k` above the number of items counts all items.
    pub recalls: Vec<f64>,
    /// What was paid.
    pub cost: Cost,
    /// Batches in which something was scored.
    pub rounds: u32,
    /// The method's own estimate of its recall at the largest of the ks.
    pub estimate: Option<RecallEstimate>,
}

impl RowOutcome {
    /// Recalls that were found otherwise, at a cost.
    pub fn of_recalls(recalls: Vec<f64>, pairs: u64) -> Self {
        RowOutcome { recalls, cost: Cost { pairs, ..Cost::default() }, rounds: 1, estimate: None }
    }
}

/// Searches one row of known scores.
///
/// ```
/// use loxia_core::{Cancel, Stop};
/// use loxia_search::{Exact, QueryRows, linalg::Dense, search_row};
/// let scores = Dense::new(1, 3, vec![0.1, 0.9, 0.5]).unwrap();
/// let rows = QueryRows { scores: scores.into(), vectors: None, queries: None };
/// let outcome = search_row(&Exact::new(3), &rows, 0, &[1, 2], &Stop::at_budget(2), &Cancel::new()).unwrap();
/// assert_eq!((outcome.recalls, outcome.cost.pairs), (vec![1.0, 0.5], 2));
/// ```
///
/// # Panics
/// If there is no such row.
pub fn search_row(
    method: &dyn Method,
    rows: &QueryRows,
    query: usize,
    ks: &[usize],
    stop: &Stop,
    cancel: &Cancel,
) -> Result<RowOutcome> {
    let row = rows.scores.row(query);
    let deepest = ks.iter().copied().max().unwrap_or(1).max(1);
    let exact = best_positions(row, deepest, |_| false);
    let number = query.to_string();
    let view = rows.view(query, &number);
    let answer = search_with(method, &view, deepest, stop, cancel, |items, scores, _| {
        items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
        Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
    })?;
    Ok(RowOutcome {
        recalls: recalls(&exact, answer.evidence.as_slice(), ks, row.len()),
        cost: answer.cost,
        rounds: answer.rounds,
        estimate: answer.recall_estimate,
    })
}

/// Mean recall for each cost (row) and each k (column).
pub fn recall_grid(method: &dyn Method, rows: &QueryRows, ks: &[usize], costs: &[u64]) -> Result<Dense<f64>> {
    let cancel = Cancel::new();
    let search = |query: usize| -> Result<Vec<f64>> {
        let mut recalls = Vec::with_capacity(costs.len() * ks.len());
        for &cost in costs {
            recalls.extend(search_row(method, rows, query, ks, &Stop::at_budget(cost), &cancel)?.recalls);
        }
        Ok(recalls)
    };
    let queries = rows.scores.rows();
    let found: Vec<Vec<f64>> = (0..queries).into_par_iter().map(search).collect::<Result<_>>()?;
    let mut means = Dense::<f64>::zeros(costs.len(), ks.len());
    for recalls in &found {
        means.values_mut().iter_mut().zip(recalls).for_each(|(sum, recall)| *sum += recall);
    }
    means.values_mut().iter_mut().for_each(|sum| *sum /= queries.max(1) as f64);
    Ok(means)
}

/// Recall at each k, given the exact order.
pub(crate) fn recalls(exact: &[u32], found: &[Scored], ks: &[usize], items: usize) -> Vec<f64> {
    let mut paid = vec![false; items];
    found.iter().for_each(|scored| paid[scored.item as usize] = true);
    ks.iter()
        .map(|&k| {
            let top = &exact[..k.min(exact.len())];
            top.iter().filter(|&&item| paid[item as usize]).count() as f64 / top.len().max(1) as f64
        })
        .collect()
}

/// Mean recall over k = 10, 50, 100 and the given costs: the number that constants are chosen by.
pub(crate) fn mean_recall(method: &dyn Method, rows: &QueryRows, costs: &[u64]) -> Result<f64> {
    let grid = recall_grid(method, rows, &[10, 50, 100], costs)?;
    Ok(grid.values().iter().sum::<f64>() / grid.values().len() as f64)
}
