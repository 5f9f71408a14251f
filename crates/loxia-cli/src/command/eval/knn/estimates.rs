//! How far a method's own estimate of its recall can be trusted.

use anyhow::Result;
use loxia::core::{Cancel, Stop};
use loxia::search::{Method, QueryRows, RowOutcome, search_row};
use rayon::prelude::*;

use super::grid::Plan;

/// The recall estimate at one cost and one k beside the truth.
#[derive(Debug, Clone)]
pub(super) struct EstimateCell {
    pub(super) cost: u64,
    pub(super) k: usize,
    pub(super) recall: f64,
    pub(super) estimate: f64,
    /// Mean error of a query's estimate, and of the best constant in its place.
    pub(super) error: f64,
    pub(super) constant_error: f64,
    /// Share of the queries whose 90 % interval holds the truth.
    pub(super) covered: f64,
    /// Whether the estimate was calibrated for tops as large.
    pub(super) calibrated: bool,
    /// Estimate and truth of each query.
    pub(super) pairs: Vec<(f64, f64)>,
}

impl Plan {
    /// Estimates at every k; a search estimates for one k at a time.
    pub(super) fn estimates(
        &self,
        method: &dyn Method,
        budgets: &[(u64, Stop)],
        test: &QueryRows,
        outcomes: &[Vec<RowOutcome>],
        cancel: &Cancel,
    ) -> Result<Vec<EstimateCell>> {
        let estimating =
            outcomes.first().and_then(|costs| costs.first()).is_some_and(|o| o.estimate.is_some());
        if !estimating {
            return Ok(Vec::new());
        }
        let deepest = self.ks.iter().copied().max().unwrap_or(1);
        let mut cells = Vec::new();
        for (at, (cost, stop)) in budgets.iter().enumerate() {
            for (column, &k) in self.ks.iter().enumerate() {
                let searched: Vec<RowOutcome> = if k == deepest {
                    outcomes.iter().map(|costs| costs[at].clone()).collect()
                } else {
                    let search = |query| search_row(method, test, query, &[k], stop, cancel);
                    (0..outcomes.len()).into_par_iter().map(search).collect::<Result<_, _>>()?
                };
                let truths = outcomes.iter().map(|costs| costs[at].recalls[column]);
                let known: Vec<(f64, f64, bool)> = searched
                    .iter()
                    .zip(truths)
                    .filter_map(|(outcome, truth)| {
                        let estimate = outcome.estimate?;
                        // Shares of k are compared after rounding errors of their own.
                        let inside = estimate.low - 1e-9 <= truth && truth <= estimate.high + 1e-9;
                        Some((estimate.mean, truth, inside))
                    })
                    .collect();
                let calibrated = method.estimate_reach(k).is_some_and(|reach| reach.calibrated);
                cells.push(EstimateCell { calibrated, ..EstimateCell::of(*cost, k, &known) });
            }
        }
        Ok(cells)
    }
}

impl EstimateCell {
    fn of(cost: u64, k: usize, known: &[(f64, f64, bool)]) -> Self {
        let count = known.len().max(1) as f64;
        let mean = |value: &dyn Fn(&(f64, f64, bool)) -> f64| known.iter().map(value).sum::<f64>() / count;
        let mut truths: Vec<f64> = known.iter().map(|&(_, truth, _)| truth).collect();
        truths.sort_by(f64::total_cmp);
        let constant = truths.get(truths.len() / 2).copied().unwrap_or(0.0);
        EstimateCell {
            cost,
            k,
            recall: mean(&|&(_, truth, _)| truth),
            estimate: mean(&|&(estimate, _, _)| estimate),
            error: mean(&|&(estimate, truth, _)| (estimate - truth).abs()),
            constant_error: mean(&|&(_, truth, _)| (constant - truth).abs()),
            covered: mean(&|&(_, _, inside)| f64::from(u8::from(inside))),
            calibrated: true,
            pairs: known.iter().map(|&(estimate, truth, _)| (estimate, truth)).collect(),
        }
    }
}
