//! The item vectors of a fitted model as a first stage: an index can rerank without anything beside it.

use std::sync::Arc;

use super::prior::Prior;
use crate::method::best_positions;
use crate::{FirstStage, QueryView, Result, spare};

/// Items by the product of their vector, as the model holds it in half precision, with the query's.
///
/// ```
/// use loxia_search::{AnchorSet, FirstStage, Posterior, PosteriorSettings, QueryView, linalg::Dense};
/// let vectors = |rows| Dense::from_fn(rows, 2, |row, col| (row + col) as f32);
/// let scores = Dense::from_fn(8, 40, |row, col| ((row + 2) * col % 11) as f32);
/// let anchors = AnchorSet::new(scores.into(), Some((vectors(8).into(), vectors(40).into()))).unwrap();
/// let posterior = Posterior::fit(&anchors, PosteriorSettings::default()).unwrap();
/// let query = QueryView { id: "q", vector: Some(&[1.0, 0.0]), text: None };
/// assert_eq!(posterior.dual_scan().unwrap().best(&query, 2).unwrap(), [39, 38]);
/// ```
#[derive(Clone)]
pub struct StoredScan {
    pub(super) prior: Arc<Prior>,
}

impl FirstStage for StoredScan {
    fn items(&self) -> usize {
        self.prior.items()
    }

    fn best(&self, query: &QueryView<'_>, count: usize) -> Result<Vec<u32>> {
        let scores = self.scores(query)?.unwrap_or_default();
        let best = best_positions(&scores, count, |_| false);
        spare::give(scores);
        Ok(best)
    }

    fn scores(&self, query: &QueryView<'_>) -> Result<Option<Vec<f32>>> {
        self.prior.vectors.as_ref().map(|part| part.dual_scores(query)).transpose()
    }
}
