//! Items in the query slot of the cross-encoder: a stand-in for anchor queries where there are none.

use std::sync::Arc;

use crate::linalg::Dense;
use crate::{Error, Result};

/// Scores between anchor items and all items, one row an anchor item.
///
/// ```
/// use loxia_search::{ItemScores, linalg::Dense};
/// // Three items in the query slot, each against the two anchor items 0 and 2.
/// let scores = Dense::new(3, 2, vec![1.0, 0.2, 0.3, 0.4, 0.1, 2.0]).unwrap();
/// let item_scores = ItemScores::items_against_anchors(&scores, vec![0, 2].into()).unwrap();
/// assert_eq!((item_scores.anchors().len(), item_scores.items()), (2, 3));
/// ```
#[derive(Debug, Clone)]
pub struct ItemScores {
    rows: Arc<Dense>,
    anchors: Arc<[u32]>,
}

impl ItemScores {
    /// Every item in the query slot against the anchor items (items x anchors), as ANNCUR's files hold it.
    pub fn items_against_anchors(scores: &Dense, anchors: Arc<[u32]>) -> Result<Self> {
        ItemScores::new(Arc::new(scores.transposed()), anchors)
    }

    /// The anchor items in the query slot against every item (anchors x items): what scoring the anchor
    /// items as if they were queries gives.
    pub fn anchors_against_items(scores: Arc<Dense>, anchors: Arc<[u32]>) -> Result<Self> {
        ItemScores::new(scores, anchors)
    }

    fn new(rows: Arc<Dense>, anchors: Arc<[u32]>) -> Result<Self> {
        if anchors.is_empty() || rows.rows() != anchors.len() {
            return Err(Error::Shape {
                what: "matrix of item scores",
                found_rows: rows.rows(),
                found_cols: rows.cols(),
                expected: format!("one row for each of {} anchor items, at least one", anchors.len()),
            });
        }
        let distinct: std::collections::BTreeSet<u32> = anchors.iter().copied().collect();
        let outside = anchors.iter().any(|&item| item as usize >= rows.cols());
        if distinct.len() < anchors.len() || outside {
            return Err(Error::Setting {
                name: "list of anchor items",
                value: format!("{} items, {} of them distinct", anchors.len(), distinct.len()),
                allowed: "distinct and below the number of items",
            });
        }
        rows.check_finite("item scores")?;
        Ok(ItemScores { rows, anchors })
    }

    /// One row an anchor item, one column an item.
    pub fn rows(&self) -> &Arc<Dense> {
        &self.rows
    }

    /// Positions of the anchor items.
    pub fn anchors(&self) -> &Arc<[u32]> {
        &self.anchors
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.rows.cols()
    }
}
