//! What a query's own weights may do.
//!
//! The weights of the prior's terms are those that fit all anchors together. Each anchor by itself would have
//! had others: a dual encoder that is right about one query is wrong about the next. The spread of these
//! differences over the anchors is the prior of the difference for a new query,
//!
//! delta ~ N(0, share · Σ_a delta_a delta_a^T / anchors),
//!
//! which adds t_i . S t_j to the covariance of two items with terms t; paying for items then also tells how far
//! the prior can be trusted for this query. What the anchors' own differences explain is taken out of their
//! residuals.

use crate::Result;
use crate::linalg::{Cholesky, Dense, symmetric_eigen};

/// Ridge of an anchor's own weights, relative to the mean of its terms' squares.
const RIDGE: f64 = 1e-3;

pub(crate) struct Effects {
    /// A root of S: terms x terms.
    pub(crate) root: Dense,
    /// How each anchor's weights differ: anchors x terms.
    pub(crate) of_anchors: Dense,
}

impl Effects {
    /// From the normal equations of each anchor by itself, the targets being the last row and column. A share
    /// of 0 leaves every query and anchor with the common weights.
    pub(crate) fn fit(equations: &[Dense<f64>], weights: &[f32], share: f64) -> Result<Self> {
        let size = weights.len();
        let mut of_anchors = Dense::zeros(equations.len(), size);
        let mut spread = Dense::<f64>::zeros(size, size);
        let counted = if share > 0.0 { equations } else { &[] };
        for (anchor, gram) in counted.iter().enumerate() {
            let mut left = Dense::from_fn(size, size, |row, col| gram[(row, col)]);
            let right = (0..size).map(|row| {
                let explained = (0..size).map(|col| gram[(row, col)] * f64::from(weights[col]));
                gram[(row, size)] - explained.sum::<f64>()
            });
            let right = Dense::new(size, 1, right.collect())?;
            let trace: f64 = (0..size).map(|i| left[(i, i)]).sum();
            left.add_diagonal(RIDGE * trace / size as f64 + f64::MIN_POSITIVE);
            let own = Cholesky::new(&left)?.solve(&right);
            for (row, &a) in own.values().iter().enumerate() {
                of_anchors[(anchor, row)] = a as f32;
                for (col, &b) in own.values().iter().enumerate() {
                    spread[(row, col)] += share * a * b / equations.len() as f64;
                }
            }
        }
        let eigen = symmetric_eigen(&spread)?;
        let root = Dense::from_fn(size, size, |row, col| {
            (eigen.vectors[(row, col)] * eigen.values[col].max(0.0).sqrt()) as f32
        });
        Ok(Effects { root, of_anchors })
    }
}
