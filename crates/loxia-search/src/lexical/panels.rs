//! Tall dense matrices cut into panels of a few columns.
//!
//! A sparse product goes through a panel row by row: what it gathers lies together, and panels are
//! independent of each other, so that threads need neither locks nor a fixed share.

use rayon::prelude::*;

use crate::linalg::{Dense, product_tn};

/// Columns of a panel.
pub(crate) const PANEL: usize = 32;

/// A `rows x cols` matrix; columns beyond `cols` in the last panel are zero.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    rows: usize,
    cols: usize,
    panels: Vec<Vec<[f32; PANEL]>>,
}

impl Panels {
    pub(crate) fn new(rows: usize, cols: usize, panels: Vec<Vec<[f32; PANEL]>>) -> Self {
        assert_eq!(panels.len(), cols.div_ceil(PANEL), "one panel for every {PANEL} columns");
        assert!(panels.iter().all(|panel| panel.len() == rows), "every panel has all rows");
        Panels { rows, cols, panels }
    }

    pub(crate) fn from_dense(matrix: &Dense) -> Self {
        let panels = (0..matrix.cols()).step_by(PANEL).map(|start| {
            let width = PANEL.min(matrix.cols() - start);
            let row = |row: usize| {
                let mut values = [0.0; PANEL];
                values[..width].copy_from_slice(&matrix.row(row)[start..start + width]);
                values
            };
            (0..matrix.rows()).map(row).collect()
        });
        Panels::new(matrix.rows(), matrix.cols(), panels.collect())
    }

    pub(crate) fn to_dense(&self) -> Dense {
        Dense::from_fn(self.rows, self.cols, |row, col| self.panels[col / PANEL][row][col % PANEL])
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn panels(&self) -> &[Vec<[f32; PANEL]>] {
        &self.panels
    }

    /// `self^T self` in double precision.
    pub(crate) fn gram(&self) -> Dense<f64> {
        // A block of rows at a time becomes one dense matrix; the order of the sums is that of the rows.
        const BLOCK: usize = 4096;
        let mut gram = Dense::<f64>::zeros(self.cols, self.cols);
        for start in (0..self.rows).step_by(BLOCK) {
            let rows = BLOCK.min(self.rows - start);
            let block = Dense::from_fn(rows, self.cols, |row, col| {
                f64::from(self.panels[col / PANEL][start + row][col % PANEL])
            });
            let part = product_tn(&block, &block);
            gram.values_mut().iter_mut().zip(part.values()).for_each(|(sum, value)| *sum += value);
        }
        gram
    }

    /// `self m` as a dense matrix.
    pub(crate) fn times(&self, m: &Dense) -> Dense {
        assert_eq!(self.cols, m.rows(), "one row for each column");
        let mut out = Dense::zeros(self.rows, m.cols());
        if m.cols() == 0 {
            return out;
        }
        out.values_mut().par_chunks_mut(m.cols()).enumerate().for_each(|(row, sums)| {
            for (at, panel) in self.panels.iter().enumerate() {
                let width = PANEL.min(self.cols - at * PANEL);
                for (lane, &scale) in panel[row][..width].iter().enumerate() {
                    sums.iter_mut()
                        .zip(m.row(at * PANEL + lane))
                        .for_each(|(sum, value)| *sum += scale * value);
                }
            }
        });
        out
    }
}
