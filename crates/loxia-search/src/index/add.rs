//! Items added to an index, and what it costs in recall that the fit never saw them.

use std::sync::Arc;

use loxia_core::{Cancel, IdTable, Seed};

use super::Index;
use crate::evaluate::mean_recall;
use crate::linalg::Dense;
use crate::{AnchorSet, Error, Posterior, Result};

/// Held-out anchor rows of an evaluation.
const HELD_OUT: usize = 60;
const COSTS: [u64; 2] = [50, 200];

/// Mean recall (k = 10, 50, 100 at cost 50 and 200) over all items, on held-out anchor rows.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct EvaluatedAddition {
    /// Share of the items that were added.
    pub share: f64,
    /// Fitted with all items.
    pub rebuilt: f64,
    /// Fitted with the others, these added.
    pub added: f64,
}

impl Index {
    /// With new items: their ids, anchor scores (anchors x new items, the anchors in the order of the
    /// build) and, where the index has vectors, theirs. Ids that are already there are refused.
    pub fn add(&self, ids: &IdTable, scores: &Dense, vectors: Option<&Dense>) -> Result<Self> {
        if ids.len() != scores.cols() {
            return Err(Error::Shape {
                what: "matrix of the new items' anchor scores",
                found_rows: scores.rows(),
                found_cols: scores.cols(),
                expected: format!("{} columns, one for each new id", ids.len()),
            });
        }
        let mut all = (*self.ids).clone();
        ids.iter().try_for_each(|id| all.push(id).map(|_| ()))?;
        Ok(Index {
            posterior: self.posterior.with_items(scores, vectors)?,
            ids: Arc::new(all),
            encoder: self.encoder.clone(),
            anchor_queries: self.anchor_queries.clone(),
            added: self.added + ids.len(),
            stored: None,
        })
    }

    /// What it costs to add a share of the items instead of building with them: a fifth of the anchor rows
    /// is held out, and the others are fitted once with all items and once with some, drawn at random, left
    /// out and added. `None` with too few anchors or items to leave any out.
    pub fn evaluate_addition(
        &self,
        anchors: &AnchorSet,
        share: f64,
        cancel: &Cancel,
    ) -> Result<Option<EvaluatedAddition>> {
        let items = anchors.items();
        let left_out = (share.clamp(0.0, 1.0) * items as f64).round() as usize;
        let Some((kept, held)) = anchors.hold_out(0, 5, HELD_OUT) else { return Ok(None) };
        if left_out == 0 || left_out == items {
            return Ok(None);
        }
        let mut order: Vec<usize> = (0..items).collect();
        Seed(0).stream("index/evaluate-addition").shuffle(&mut order);
        let (first, later) = order.split_at(items - left_out);
        let settings = *self.posterior.settings();
        cancel.check()?;
        let rebuilt = mean_recall(&Posterior::fit(&kept, settings)?, &held, &COSTS)?;
        cancel.check()?;
        let new = kept.select_items(later);
        let grown = Posterior::fit(&kept.select_items(first), settings)?
            .with_items(&new.rows().scores, new.item_vectors().map(|vectors| &**vectors))?;
        cancel.check()?;
        // The grown model has its items in another order: the new ones last.
        let held = crate::QueryRows {
            scores: Arc::new(held.scores.select_cols(&order)),
            vectors: held.vectors.clone(),
            queries: held.queries.clone(),
        };
        let added = mean_recall(&grown, &held, &COSTS)?;
        Ok(Some(EvaluatedAddition { share: left_out as f64 / items as f64, rebuilt, added }))
    }
}
