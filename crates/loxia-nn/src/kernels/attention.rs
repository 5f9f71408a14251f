//! The work of one attention call, whatever kernel does it.

use super::DistanceBias;
use crate::Precision;
use crate::memory::{Buffer, Extent, Scratch};

/// Rows of a matrix, or of some columns of it.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// From the first value of the first row on.
    pub(crate) values: &'a [f32],
    /// Distance of rows.
    pub(crate) stride: usize,
}

impl<'a> Rows<'a> {
    /// The rows from some row on, and of these some columns on.
    pub(crate) fn from(self, row: usize, column: usize) -> Self {
        Rows { values: &self.values[row * self.stride + column..], stride: self.stride }
    }

    /// `width` values of a row.
    pub(crate) fn row(self, index: usize, width: usize) -> &'a [f32] {
        &self.values[index * self.stride..][..width]
    }
}

/// Rows for each head.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a> {
    /// Rows of the first head.
    pub(crate) first: Rows<'a>,
    /// Distance of heads.
    pub(crate) apart: usize,
}

impl<'a> Heads<'a> {
    /// Side by side, `width` wide: heads of rows of a matrix.
    pub(crate) fn of_columns(rows: Rows<'a>, width: usize) -> Self {
        Heads { first: rows, apart: width }
    }

    /// One after the other, `[heads][rows][width]`.
    pub(crate) fn in_turn(values: &'a [f32], rows: usize, width: usize) -> Self {
        Heads { first: Rows { values, stride: width }, apart: rows * width }
    }

    /// The rows from some row on.
    pub(crate) fn from(self, row: usize) -> Self {
        Heads { first: self.first.from(row, 0), ..self }
    }

    /// The rows of a head.
    pub(crate) fn head(self, head: usize) -> Rows<'a> {
        self.first.from(0, head * self.apart)
    }
}

/// Some queries of one sequence over all keys of that sequence.
pub(crate) struct Attention<'a> {
    /// Projected queries, `width` wide, as all rows here.
    pub(crate) queries: Heads<'a>,
    /// Place of each query in the sequence.
    pub(crate) places: &'a [u32],
    /// Projected keys.
    pub(crate) keys: Heads<'a>,
    /// Projected values.
    pub(crate) values: Heads<'a>,
    /// Number of keys.
    pub(crate) count: usize,
    /// Number of heads.
    pub(crate) heads: usize,
    /// Width of a head.
    pub(crate) width: usize,
    /// Addend by distance, where the model has one.
    pub(crate) bias: Option<&'a DistanceBias>,
    /// Precision of the model: in 8 bits products may be of rounded numbers.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is no such kernel"))]
    pub(crate) precision: Precision,
}

impl Attention<'_> {
    pub(crate) fn hidden(&self) -> usize {
        self.heads * self.width
    }

    pub(crate) fn scale(&self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }
}

/// Memory of an attention call.
#[derive(Default)]
pub(crate) struct AttentionScratch {
    /// Scores of the queries at work, then their exponentials.
    pub(crate) scores: Buffer,
    /// One head's keys, packed.
    pub(crate) keys: Buffer,
    /// One head's values, packed.
    pub(crate) values: Buffer,
    /// For a matrix unit: sums of the queries at work, and in bfloat16 these queries and pairs of keys and of values.
    pub(crate) sums: Buffer,
    pub(crate) queries: Buffer<u16>,
    pub(crate) key_pairs: Buffer<u32>,
    pub(crate) value_pairs: Buffer<u32>,
}

impl Scratch for AttentionScratch {
    fn extent(&self) -> Extent {
        let floats = [&self.scores, &self.keys, &self.values, &self.sums].map(Buffer::extent);
        let pairs = [&self.key_pairs, &self.value_pairs].map(Buffer::extent);
        floats.into_iter().chain(pairs).chain([self.queries.extent()]).sum()
    }
}
