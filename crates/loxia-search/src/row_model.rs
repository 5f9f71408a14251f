//! The model behind ANNCUR and ADACUR: a query's row of scores as a combination of anchor rows.
//!
//! With anchor rows `R` (anchors x items) and scores `y` on items `P`, weights `u` fit `u R_P = y`, and
//! the whole row is guessed as `u R`. As published `u` is the shortest least-squares fit and rows are
//! raw; the `+` variants take the column means off first and add a ridge.

use std::sync::Arc;

use crate::anchors::{centred, column_means, mean_square};
use crate::linalg::{Dense, min_norm_solve, ridge_solve, row_times};
use crate::{AnchorSet, Error, Result};

/// How weights are fitted to scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Solver {
    /// The shortest of the best fits: the pseudo-inverse with a relative cutoff.
    MinNorm {
        /// Singular values at or below this times the largest count as zero.
        rcond: f64,
    },
    /// A ridge, in units of the mean squared norm of an item's vector.
    Ridge {
        /// The ridge, above 0.
        relative: f64,
    },
}

impl Solver {
    /// The pseudo-inverse as published, in double precision.
    pub fn published() -> Self {
        Solver::MinNorm { rcond: 1e-10 }
    }

    /// Weights `u` with `vectors u` close to `targets`; `scale` is the mean squared norm of a vector.
    pub(crate) fn fit(&self, vectors: &Dense<f64>, targets: &[f64], scale: f64) -> Result<Vec<f32>> {
        let weights = match *self {
            Solver::MinNorm { rcond } => min_norm_solve(vectors, targets, rcond)?,
            // Vectors that are all zero have no scale; any ridge then gives zero weights.
            Solver::Ridge { relative } => {
                ridge_solve(vectors, targets, relative * if scale > 0.0 { scale } else { 1.0 })?
            }
        };
        Ok(weights.into_iter().map(|weight| weight as f32).collect())
    }
}

/// Anchor rows ready to be combined.
#[derive(Debug, Clone)]
pub(crate) struct RowModel {
    rows: Arc<Dense>,
    means: Option<Vec<f32>>,
    scale: f64,
    solver: Solver,
}

impl RowModel {
    pub(crate) fn new(anchors: &AnchorSet, solver: Solver, centre: bool) -> Self {
        let scores = &anchors.rows().scores;
        let means = centre.then(|| column_means(scores));
        let rows = match &means {
            Some(means) => Arc::new(centred(scores, means)),
            None => scores.clone(),
        };
        let scale = mean_square(&rows) * rows.rows() as f64;
        RowModel { rows, means, scale, solver }
    }

    pub(crate) fn with_solver(&self, solver: Solver) -> Self {
        RowModel { solver, ..self.clone() }
    }

    pub(crate) fn items(&self) -> usize {
        self.rows.cols()
    }

    /// Scores less the column means of their items.
    pub(crate) fn targets(&self, items: &[usize], scores: &[f32]) -> Vec<f64> {
        let mean = |item: usize| self.means.as_ref().map_or(0.0, |means| means[item]);
        items.iter().zip(scores).map(|(&item, &score)| f64::from(score - mean(item))).collect()
    }

    /// The guessed row from scores on some items.
    pub(crate) fn predict(&self, items: &[usize], scores: &[f32]) -> Result<Vec<f32>> {
        if items.len() != scores.len() {
            return Err(Error::Shape {
                what: "list of scores",
                found_rows: scores.len(),
                found_cols: 1,
                expected: format!("{} x 1", items.len()),
            });
        }
        let vectors: Dense<f64> = self.rows.select_cols(items).transposed().cast();
        let weights = self.solver.fit(&vectors, &self.targets(items, scores), self.scale)?;
        Ok(self.add_means(row_times(&weights, &self.rows)))
    }

    pub(crate) fn add_means(&self, mut row: Vec<f32>) -> Vec<f32> {
        if let Some(means) = &self.means {
            row.iter_mut().zip(means).for_each(|(value, mean)| *value += mean);
        }
        row
    }

    /// `(R_P)^+` (anchor items x anchor queries): from scores at fixed anchor items to weights of rows.
    pub(crate) fn link(&self, items: &[usize]) -> Result<Dense> {
        let columns: Dense<f64> = self.rows.select_cols(items).cast();
        let link: Dense<f64> = match self.solver {
            Solver::MinNorm { rcond } => crate::linalg::pseudo_inverse(&columns, rcond)?,
            Solver::Ridge { relative } => {
                let mut gram = crate::linalg::product_tn(&columns, &columns);
                gram.add_diagonal(relative * if self.scale > 0.0 { self.scale } else { 1.0 });
                crate::linalg::Cholesky::new(&gram)?.solve(&columns.transposed())
            }
        };
        Ok(link.cast())
    }

    /// `(R_P)^+ R` (anchor items x items): ANNCUR's item embeddings for fixed anchor items.
    pub(crate) fn item_embeddings(&self, items: &[usize]) -> Result<Dense> {
        Ok(crate::linalg::product(&self.link(items)?, &self.rows))
    }

    /// The combination of rows with these weights.
    pub(crate) fn combine(&self, weights: &[f32]) -> Vec<f32> {
        row_times(weights, &self.rows)
    }
}
