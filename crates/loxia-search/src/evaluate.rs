//! Recall against exact search, on queries whose whole rows are known.

use loxia_core::{Cancel, Cost, Scored, Stop};

use crate::linalg::Dense;
use crate::method::best_positions;
use crate::{Method, QueryRows, QueryView, Result, search_with};

/// Mean recall for each cost (row) and each k (column).
///
/// Recall at k is the share of the exact top k (ties by item order) among the items paid for; `k` above
/// the number of items counts all items.
pub fn recall_grid(method: &dyn Method, rows: &QueryRows, ks: &[usize], costs: &[u64]) -> Result<Dense<f64>> {
    let mut sums = Dense::<f64>::zeros(costs.len(), ks.len());
    let deepest = ks.iter().copied().max().unwrap_or(1);
    for query in 0..rows.scores.rows() {
        let exact = best_positions(rows.scores.row(query), deepest, |_| false);
        for (at, &cost) in costs.iter().enumerate() {
            let found = evidence(method, rows, query, deepest, &Stop::at_budget(cost))?;
            let recalls = recalls(&exact, &found, ks, rows.scores.cols());
            sums.row_mut(at).iter_mut().zip(recalls).for_each(|(sum, recall)| *sum += recall);
        }
    }
    let count = rows.scores.rows().max(1) as f64;
    sums.values_mut().iter_mut().for_each(|sum| *sum /= count);
    Ok(sums)
}

/// What a method pays for on one row of known scores.
fn evidence(
    method: &dyn Method,
    rows: &QueryRows,
    query: usize,
    k: usize,
    stop: &Stop,
) -> Result<Vec<Scored>> {
    let id = query.to_string();
    let vector = rows.vectors.as_ref().map(|vectors| vectors.row(query));
    let view = QueryView { id: &id, vector, text: None };
    let answer = search_with(method, &view, k.max(1), stop, &Cancel::new(), |items, scores, _| {
        let row = rows.scores.row(query);
        items.iter().zip(scores).for_each(|(&item, score)| *score = row[item as usize]);
        Ok(Cost { pairs: items.len() as u64, ..Cost::default() })
    })?;
    Ok(answer.evidence.as_slice().to_vec())
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
