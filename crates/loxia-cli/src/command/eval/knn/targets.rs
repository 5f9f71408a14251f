//! What searches that stop at a recall target reach, and what they cost beside a fixed budget.

use anyhow::Result;
use loxia::core::{Cancel, RecallTarget, Stop};
use loxia::search::{EstimateReach, Method, QueryRows, RowOutcome, search_row};
use rayon::prelude::*;

use super::grid::Plan;

/// Searches with one target and one k.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetCell {
    pub(super) target: f64,
    pub(super) k: usize,
    /// Mean recall reached.
    pub(super) recall: f64,
    /// Mean pairs paid for.
    pub(super) pairs: f64,
    /// Mean recall if every query had as many pairs.
    pub(super) even_recall: f64,
    /// The least budget, the same for every query, that reaches the same mean recall.
    pub(super) even_budget: u64,
    /// What the estimate could certify.
    pub(super) reach: EstimateReach,
}

impl TargetCell {
    /// Whether searches could end by their estimate.
    pub(super) fn is_certifiable(&self) -> bool {
        self.target <= self.reach.largest_target
    }
}

impl Plan {
    /// Stops at every target for every k, with a method that estimates.
    pub(super) fn stop_at_targets(
        &self,
        method: &dyn Method,
        test: &QueryRows,
        cancel: &Cancel,
        say: &dyn Fn(&str),
    ) -> Result<Vec<TargetCell>> {
        let mut cells = Vec::new();
        for &k in &self.ks {
            let Some(reach) = method.estimate_reach(k) else { continue };
            for &target in &self.targets {
                let items = method.items() as u64;
                let cell = TargetCell {
                    target,
                    k,
                    recall: 1.0,
                    pairs: items as f64,
                    even_recall: 1.0,
                    even_budget: items,
                    reach,
                };
                if !cell.is_certifiable() {
                    say(&format!(
                        "target {target} for k = {k} cannot be certified, the largest that can is {}: every search goes \
                         on until all items are scored ({items} pairs)",
                        reach.largest_target
                    ));
                    // Which is exact, and need not be tried.
                    cells.push(cell);
                    continue;
                }
                let stop = Stop { recall: Some(RecallTarget::new(target)?), ..Stop::default() };
                let (recall, pairs) = means(method, test, k, &stop, cancel)?;
                let budget = |pairs: u64| means(method, test, k, &Stop::at_budget(pairs), cancel);
                let (even_recall, _) = budget(pairs.round() as u64)?;
                // A budget of all items finds everything, so that there is one that is enough.
                let (mut below, mut enough) = (0, items);
                let mut guess = pairs.round() as u64;
                while enough - below > 1 {
                    guess = guess.clamp(below + 1, enough - 1);
                    if budget(guess)?.0 >= recall - 1e-9 {
                        enough = guess;
                    } else {
                        below = guess;
                    }
                    // Near the mean cost first, then by halves.
                    guess = if enough == items { 2 * below } else { below.midpoint(enough) };
                }
                cells.push(TargetCell { recall, pairs, even_recall, even_budget: enough, ..cell });
            }
        }
        Ok(cells)
    }
}

/// Mean recall and mean pairs over all queries.
fn means(
    method: &dyn Method,
    test: &QueryRows,
    k: usize,
    stop: &Stop,
    cancel: &Cancel,
) -> Result<(f64, f64)> {
    let queries = test.scores.rows();
    let search = |query| search_row(method, test, query, &[k], stop, cancel);
    let found: Vec<RowOutcome> =
        (0..queries).into_par_iter().map(search).collect::<loxia::search::Result<_>>()?;
    let mean = |value: fn(&RowOutcome) -> f64| found.iter().map(value).sum::<f64>() / queries.max(1) as f64;
    Ok((mean(|outcome| outcome.recalls[0]), mean(|outcome| outcome.cost.pairs as f64)))
}
