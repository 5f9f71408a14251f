//! Sparse rows, and products with dense panels.

use rayon::prelude::*;

use super::panels::{PANEL, Panels};

/// Rows of (column, value), one after the other: 8 bytes a value.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseRows {
    cols: usize,
    ends: Vec<usize>,
    entries: Vec<(u32, f32)>,
}

impl SparseRows {
    /// No rows yet, of this width.
    pub(crate) fn new(cols: usize) -> Self {
        SparseRows { cols, ends: Vec::new(), entries: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &[(u32, f32)]) {
        self.entries.extend_from_slice(row);
        self.ends.push(self.entries.len());
    }

    pub(crate) fn rows(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn row(&self, row: usize) -> &[(u32, f32)] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.entries[start..self.ends[row]]
    }

    /// `self x`; each panel on a thread of its own, so the sums do not depend on how many there are.
    pub(crate) fn times(&self, x: &Panels) -> Panels {
        assert_eq!(x.rows(), self.cols, "one row of the panels for each column");
        let panels = x.panels().par_iter().map(|panel| {
            let mut out = vec![[0.0f32; PANEL]; self.rows()];
            for (row, sums) in out.iter_mut().enumerate() {
                for &(col, value) in self.row(row) {
                    add_scaled(sums, value, &panel[col as usize]);
                }
            }
            out
        });
        Panels::new(self.rows(), x.cols(), panels.collect())
    }

    /// `self^T x`, without a transposed copy.
    pub(crate) fn transposed_times(&self, x: &Panels) -> Panels {
        assert_eq!(x.rows(), self.rows(), "one row of the panels for each row");
        let panels = x.panels().par_iter().map(|panel| {
            let mut out = vec![[0.0f32; PANEL]; self.cols];
            for (row, values) in panel.iter().enumerate() {
                for &(col, value) in self.row(row) {
                    add_scaled(&mut out[col as usize], value, values);
                }
            }
            out
        });
        Panels::new(self.cols, x.cols(), panels.collect())
    }
}

fn add_scaled(sums: &mut [f32; PANEL], scale: f32, values: &[f32; PANEL]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += scale * value);
}
