//! Anchor rows: queries scored against the whole collection before any search.

use std::sync::Arc;

use loxia_core::Query;

use crate::item_scores::ItemScores;
use crate::linalg::Dense;
use crate::{Error, FirstStage, QueryView, Result};

/// Sums of squares of larger values would not fit single precision.
pub(crate) const LARGEST: f64 = 1e15;

/// Queries with all their scores, and their vectors where there is an encoder.
#[derive(Debug, Clone)]
pub struct QueryRows {
    /// Scores, one row a query, one column an item.
    pub scores: Arc<Dense>,
    /// Vectors, one row a query.
    pub vectors: Option<Arc<Dense>>,
    /// Ids and texts, one a row: for first stages that read them.
    pub queries: Option<Arc<[Query]>>,
}

/// What every learning method is made from: anchor rows, and item vectors where there is an encoder.
///
/// ```
/// use loxia_search::{AnchorSet, linalg::Dense};
/// let scores = Dense::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
/// let anchors = AnchorSet::new(scores.into(), None).unwrap();
/// assert_eq!((anchors.len(), anchors.items()), (2, 3));
/// ```
#[derive(Clone)]
pub struct AnchorSet {
    rows: QueryRows,
    item_vectors: Option<Arc<Dense>>,
    first_stage: Option<Arc<dyn FirstStage>>,
    item_scores: Option<Arc<ItemScores>>,
    every_row: Option<Arc<Dense>>,
}

impl AnchorSet {
    /// Anchor scores (queries x items) and vectors of the anchor queries and of the items.
    ///
    /// No anchors, no items, shapes that do not fit and values that are not finite (or above 1e15 in
    /// size) are refused.
    pub fn new(scores: Arc<Dense>, vectors: Option<(Arc<Dense>, Arc<Dense>)>) -> Result<Self> {
        if scores.rows() == 0 || scores.cols() == 0 {
            return Err(Error::Shape {
                what: "matrix of anchor scores",
                found_rows: scores.rows(),
                found_cols: scores.cols(),
                expected: "at least one anchor query and one item; rerank and exact need no anchors".into(),
            });
        }
        scores.check_size("anchor scores", LARGEST)?;
        let (query_vectors, item_vectors) = vectors.unzip();
        if let (Some(queries), Some(items)) = (&query_vectors, &item_vectors) {
            let width = items.cols();
            check_shape("matrix of anchor query vectors", queries, scores.rows(), width)?;
            check_shape("matrix of item vectors", items, scores.cols(), width)?;
            queries.check_size("anchor query vectors", LARGEST)?;
            items.check_size("item vectors", LARGEST)?;
        }
        let rows = QueryRows { scores, vectors: query_vectors, queries: None };
        Ok(AnchorSet { rows, item_vectors, first_stage: None, item_scores: None, every_row: None })
    }

    /// With a first stage in the place of a scan of the item vectors, and what it may want to know of the
    /// anchor queries: their ids and texts, in the order of the rows.
    pub fn with_first_stage(mut self, stage: Arc<dyn FirstStage>, queries: Arc<[Query]>) -> Result<Self> {
        if (stage.items(), queries.len()) != (self.items(), self.len()) {
            return Err(Error::Shape {
                what: "first stage with its queries",
                found_rows: queries.len(),
                found_cols: stage.items(),
                expected: format!("{} anchor queries and {} items", self.len(), self.items()),
            });
        }
        self.first_stage = Some(stage);
        self.rows.queries = Some(queries);
        Ok(self)
    }

    /// With scores of items in the query slot, for the methods that do without anchor queries.
    pub fn with_item_scores(mut self, item_scores: Arc<ItemScores>) -> Result<Self> {
        if item_scores.items() != self.items() {
            return Err(Error::Shape {
                what: "matrix of item scores",
                found_rows: item_scores.rows().rows(),
                found_cols: item_scores.items(),
                expected: format!("{} columns, one for each item", self.items()),
            });
        }
        self.item_scores = Some(item_scores);
        Ok(self)
    }

    /// With the whole matrix, rows to be searched included: only for the oracle, which is a bound and no
    /// method.
    pub fn with_every_row(mut self, scores: Arc<Dense>) -> Result<Self> {
        check_shape("whole score matrix", &scores, scores.rows(), self.items())?;
        self.every_row = Some(scores);
        Ok(self)
    }

    /// Number of anchor queries.
    pub fn len(&self) -> usize {
        self.rows.scores.rows()
    }

    /// Never true: a set without anchors is refused.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.rows.scores.cols()
    }

    /// The anchor rows.
    pub fn rows(&self) -> &QueryRows {
        &self.rows
    }

    /// Vectors of the items.
    pub fn item_vectors(&self) -> Option<&Arc<Dense>> {
        self.item_vectors.as_ref()
    }

    /// The first stage, where it is not a scan of the item vectors.
    pub fn first_stage(&self) -> Option<&Arc<dyn FirstStage>> {
        self.first_stage.as_ref()
    }

    /// Scores of items in the query slot.
    pub fn item_scores(&self) -> Option<&Arc<ItemScores>> {
        self.item_scores.as_ref()
    }

    /// The whole matrix, for the oracle.
    pub(crate) fn every_row(&self) -> Option<&Arc<Dense>> {
        self.every_row.as_ref()
    }

    /// The same anchors over some of the items, in the order named.
    pub fn select_items(&self, items: &[usize]) -> Self {
        let rows = QueryRows {
            scores: Arc::new(self.rows.scores.select_cols(items)),
            vectors: self.rows.vectors.clone(),
            queries: self.rows.queries.clone(),
        };
        let item_vectors = self.item_vectors.as_ref().map(|vectors| Arc::new(vectors.select_rows(items)));
        // What is known of the items otherwise is for stored matrices, whose items are never a part.
        AnchorSet { rows, item_vectors, first_stage: None, item_scores: None, every_row: None }
    }

    /// Anchors outside a fold (every `folds`-th row, from `fold` on), and the rows of the fold, at most
    /// `limit`. With a single anchor nothing can be held out: `None`.
    pub fn hold_out(&self, fold: usize, folds: usize, limit: usize) -> Option<(AnchorSet, QueryRows)> {
        let (held, kept): (Vec<usize>, Vec<usize>) = (0..self.len()).partition(|row| row % folds == fold);
        if held.is_empty() || kept.is_empty() {
            return None;
        }
        let held = &held[..held.len().min(limit)];
        let kept = AnchorSet { rows: self.rows.select(&kept), ..self.clone() };
        Some((kept, self.rows.select(held)))
    }
}

impl QueryRows {
    /// Copies the named rows.
    pub fn select(&self, rows: &[usize]) -> Self {
        QueryRows {
            scores: Arc::new(self.scores.select_rows(rows)),
            vectors: self.vectors.as_ref().map(|vectors| Arc::new(vectors.select_rows(rows))),
            queries: self.queries.as_ref().map(|all| rows.iter().map(|&row| all[row].clone()).collect()),
        }
    }

    /// A row as methods see it; one without an id of its own is called by `number`, its position.
    pub(crate) fn view<'a>(&'a self, row: usize, number: &'a str) -> QueryView<'a> {
        let known = self.queries.as_ref().map(|queries| &queries[row]);
        QueryView {
            id: known.map_or(number, |query| query.id.as_str()),
            vector: self.vectors.as_ref().map(|vectors| vectors.row(row)),
            text: known.map(|query| &query.text),
        }
    }
}

impl std::fmt::Debug for AnchorSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (anchors, items) = (self.len(), self.items());
        f.debug_struct("AnchorSet").field("anchors", &anchors).field("items", &items).finish_non_exhaustive()
    }
}

fn check_shape(what: &'static str, matrix: &Dense, rows: usize, cols: usize) -> Result<()> {
    if (matrix.rows(), matrix.cols()) == (rows, cols) && cols > 0 {
        return Ok(());
    }
    Err(Error::Shape {
        what,
        found_rows: matrix.rows(),
        found_cols: matrix.cols(),
        expected: format!("{rows} x {}", cols.max(1)),
    })
}

/// Mean of each column.
pub(crate) fn column_means(matrix: &Dense) -> Vec<f32> {
    let mut sums = vec![0.0f64; matrix.cols()];
    for row in 0..matrix.rows() {
        sums.iter_mut().zip(matrix.row(row)).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    sums.iter().map(|sum| (sum / matrix.rows() as f64) as f32).collect()
}

/// The matrix with a vector subtracted from each row.
pub(crate) fn centred(matrix: &Dense, means: &[f32]) -> Dense {
    let mut out = matrix.clone();
    for row in 0..out.rows() {
        out.row_mut(row).iter_mut().zip(means).for_each(|(value, mean)| *value -= mean);
    }
    out
}

/// Mean of the squares of all values.
pub(crate) fn mean_square(matrix: &Dense) -> f64 {
    let sum: f64 = matrix.values().iter().map(|&value| f64::from(value).powi(2)).sum();
    sum / matrix.values().len().max(1) as f64
}
