//! The accounting of ANNCUR's publication, to compare with its tables.
//!
//! A search costs the anchor items and the items retrieved by guess. Anchor items are neither left out of
//! the retrieved ones nor added to them, so that some are paid for twice and a scored one may be missing in
//! the answer; FixedItem's anchor items are not charged at all. At each cost the best split of the budget
//! is taken *on the test rows*, for each k apart: it is an upper bound of what could have been chosen.

use rayon::prelude::*;

use crate::linalg::Dense;
use crate::method::best_positions;
use crate::{QueryRows, QueryView, Result};

/// Shares of the budget for anchor items that are tried at each cost.
const SHARES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// A method that spends on anchor items first and retrieves by guess then.
pub trait PaperAccounting: Send + Sync {
    /// Whether anchor items count towards the cost.
    fn charges_anchors(&self) -> bool {
        true
    }

    /// The best `count` items by the guess from `anchors` anchor items, where `row` holds the query's
    /// scores.
    fn retrieved(&self, query: &QueryView<'_>, row: &[f32], anchors: usize, count: usize)
    -> Result<Vec<u32>>;
}

/// Recall of each query (row) at each cost and k (columns, k running fastest) under that accounting.
///
/// The split is the same for all queries: the one with the highest mean recall of the cell.
pub fn paper_recalls(
    method: &dyn PaperAccounting,
    rows: &QueryRows,
    ks: &[usize],
    costs: &[u64],
) -> Result<Dense<f64>> {
    let queries = rows.scores.rows();
    let mut best = Dense::<f64>::zeros(queries, costs.len() * ks.len());
    for (at, &cost) in costs.iter().enumerate() {
        let cost = usize::try_from(cost).unwrap_or(usize::MAX).min(rows.scores.cols());
        let splits: Vec<(usize, usize)> = if method.charges_anchors() {
            let split = |share: f64| ((cost as f64 * share) as usize).clamp(1, cost);
            SHARES.iter().map(|&share| (split(share), cost - split(share))).collect()
        } else {
            vec![(0, cost)]
        };
        let mut highest = vec![f64::NEG_INFINITY; ks.len()];
        for &(anchors, count) in &splits {
            let search = |query: usize| recalls(method, rows, query, ks, anchors, count);
            let found: Vec<Vec<f64>> = (0..queries).into_par_iter().map(search).collect::<Result<_>>()?;
            for (column, highest) in highest.iter_mut().enumerate() {
                let sum: f64 = found.iter().map(|recalls| recalls[column]).sum();
                if sum > *highest {
                    *highest = sum;
                    let place = at * ks.len() + column;
                    (0..queries).for_each(|query| best[(query, place)] = found[query][column]);
                }
            }
        }
    }
    Ok(best)
}

fn recalls(
    method: &dyn PaperAccounting,
    rows: &QueryRows,
    query: usize,
    ks: &[usize],
    anchors: usize,
    count: usize,
) -> Result<Vec<f64>> {
    let row = rows.scores.row(query);
    let number = query.to_string();
    let view = rows.view(query, &number);
    let mut is_found = vec![false; row.len()];
    for item in method.retrieved(&view, row, anchors, count)? {
        is_found[item as usize] = true;
    }
    let exact = best_positions(row, ks.iter().copied().max().unwrap_or(1), |_| false);
    let recall = |&k: &usize| {
        let top = &exact[..k.min(exact.len())];
        top.iter().filter(|&&item| is_found[item as usize]).count() as f64 / top.len().max(1) as f64
    };
    Ok(ks.iter().map(recall).collect())
}
