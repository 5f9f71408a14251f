//! Retrieve and rerank: score the first stage's best. One round, no learning.

use crate::method::{Goal, Method, Outcome, QueryView};
use crate::{FirstStage, Ledger, Result};

/// Scores the best of a first stage until the budget is spent.
///
/// ```
/// use loxia_search::{DualScan, Method, Rerank, linalg::Dense};
/// let items = Dense::new(2, 1, vec![1.0, 2.0]).unwrap();
/// let rerank = Rerank::new(DualScan::new(items.into()));
/// assert_eq!((rerank.name(), rerank.items()), ("rerank", 2));
/// ```
#[derive(Debug, Clone)]
pub struct Rerank<F> {
    first_stage: F,
}

impl<F: FirstStage> Rerank<F> {
    /// Over this first stage.
    pub fn new(first_stage: F) -> Self {
        Rerank { first_stage }
    }
}

impl<F: FirstStage> Method for Rerank<F> {
    fn name(&self) -> &str {
        "rerank"
    }

    fn items(&self) -> usize {
        self.first_stage.items()
    }

    fn run(&self, query: &QueryView<'_>, _goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        // Cached pairs are free, so the end of the budget may lie further down the list.
        loop {
            let wanted = ledger.evidence().len() + ledger.remaining();
            let candidates = self.first_stage.best(query, wanted)?;
            if ledger.pay(&candidates)?.is_empty() || !ledger.is_open() {
                return Ok(Outcome::default());
            }
        }
    }
}
