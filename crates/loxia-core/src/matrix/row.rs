//! One query's scores.

use crate::{Ranking, TopK};

/// A row of which only some columns have a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseRow<'a> {
    /// Columns that have a score, ascending.
    pub columns: &'a [u32],
    /// Their scores.
    pub scores: &'a [f32],
}

/// A row of a [`ScoreMatrix`](super::ScoreMatrix); all its scores are finite.
///
/// ```
/// use loxia_core::matrix::{RowView, SparseRow};
/// let row = RowView::Sparse(SparseRow { columns: &[2, 7], scores: &[0.5, 1.5] });
/// assert_eq!((row.get(7), row.get(3)), (Some(1.5), None));
/// assert_eq!(row.top(1).items().collect::<Vec<_>>(), [7]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowView<'a> {
    /// Every column has a score.
    Dense(&'a [f32]),
    /// Some columns have one.
    Sparse(SparseRow<'a>),
}

impl<'a> RowView<'a> {
    /// The score of a column, if it has one.
    pub fn get(&self, col: u32) -> Option<f32> {
        match self {
            RowView::Dense(scores) => scores.get(col as usize).copied(),
            RowView::Sparse(row) => row.columns.binary_search(&col).ok().map(|place| row.scores[place]),
        }
    }

    /// All scores in order of columns, if every column has one.
    pub fn as_dense(&self) -> Option<&'a [f32]> {
        match *self {
            RowView::Dense(scores) => Some(scores),
            RowView::Sparse(_) => None,
        }
    }

    /// Number of scores.
    pub fn len(&self) -> usize {
        self.scores().len()
    }

    /// Whether no column has a score.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Columns and scores, by ascending column.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, f32)> + use<'a> {
        let columns = match *self {
            RowView::Dense(_) => None,
            RowView::Sparse(row) => Some(row.columns),
        };
        let column = move |place: usize| columns.map_or(place as u32, |columns| columns[place]);
        self.scores().iter().enumerate().map(move |(place, &score)| (column(place), score))
    }

    /// The best `k` columns.
    pub fn top(&self, k: usize) -> Ranking {
        let mut top = TopK::new(k);
        self.iter().for_each(|(col, score)| top.push(col, score));
        top.into_ranking()
    }

    fn scores(&self) -> &'a [f32] {
        match *self {
            RowView::Dense(scores) => scores,
            RowView::Sparse(row) => row.scores,
        }
    }
}
