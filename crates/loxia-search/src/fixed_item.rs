//! FixedItem: an item is described by its scores, in the query slot, against fixed anchor items.
//!
//! score(q, i) is guessed as the sum over anchor items a of f(q, a) f(i, a): no anchor queries are needed,
//! and nothing is fitted. A share of the budget buys the anchor items, the rest the best of the guess.

use std::sync::Arc;

use crate::item_scores::ItemScores;
use crate::linalg::row_times;
use crate::method::{Goal, Method, Outcome, QueryView, best_positions};
use crate::paper::PaperAccounting;
use crate::{Error, Ledger, Result};

/// The method.
#[derive(Debug, Clone)]
pub struct FixedItem {
    item_scores: Arc<ItemScores>,
    share: f64,
}

impl FixedItem {
    /// Over scores of items in the query slot; `share` of a budget, above 0 and below 1, buys anchor items.
    pub fn new(item_scores: Arc<ItemScores>, share: f64) -> Result<Self> {
        if !(share > 0.0 && share < 1.0) {
            return Err(Error::Setting {
                name: "share of the budget for anchor items",
                value: share.to_string(),
                allowed: "above 0 and below 1",
            });
        }
        Ok(FixedItem { item_scores, share })
    }

    /// The guessed row, from scores at the first anchor items.
    fn guess(&self, scores: &[f32]) -> Vec<f32> {
        let mut weights = scores.to_vec();
        weights.resize(self.item_scores.anchors().len(), 0.0);
        row_times(&weights, self.item_scores.rows())
    }
}

impl Method for FixedItem {
    fn name(&self) -> &str {
        "fixed-item"
    }

    fn items(&self) -> usize {
        self.item_scores.items()
    }

    fn run(&self, _query: &QueryView<'_>, _goal: &Goal, ledger: &mut Ledger<'_>) -> Result<Outcome> {
        let anchors = self.item_scores.anchors();
        let count = ((ledger.remaining() as f64 * self.share) as usize).max(1).min(anchors.len());
        let paid = ledger.pay(&anchors[..count])?;
        let scores: Vec<f32> = paid.iter().map(|scored| scored.score).collect();
        if ledger.is_open() && !scores.is_empty() {
            let row = self.guess(&scores);
            while ledger.is_open() {
                let best = best_positions(&row, ledger.remaining(), |item| ledger.is_paid(item));
                ledger.pay(&best)?;
            }
        }
        Ok(Outcome::default())
    }
}

impl PaperAccounting for FixedItem {
    fn charges_anchors(&self) -> bool {
        false
    }

    fn retrieved(
        &self,
        _query: &QueryView<'_>,
        row: &[f32],
        anchors: usize,
        count: usize,
    ) -> Result<Vec<u32>> {
        let fixed = self.item_scores.anchors();
        // Anchor calls are not charged, so all of them are made.
        let used = if anchors == 0 { fixed.len() } else { anchors.min(fixed.len()) };
        let scores: Vec<f32> = fixed[..used].iter().map(|&item| row[item as usize]).collect();
        Ok(best_positions(&self.guess(&scores), count, |_| false))
    }
}
