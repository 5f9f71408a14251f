//! The last layer's attention where few rows of a sequence are wanted, without keys and values.
//!
//! A score is `q · (K x + b) = (Kᵀ q) · x + q · b`, and softmax makes nothing of an addend that all scores share. So a
//! query is taken through its head's key map backwards, once, instead of every state forwards; and since shares add up to
//! one, `Σ pᵢ (V xᵢ + c) = V (Σ pᵢ xᵢ) + c`: the states are summed first, and one row goes through the value map. For
//! one row of a long sequence both maps of all its states are saved, a sixth of the layer's products.

use std::ops::Range;

use super::layer::{BlockScratch, Run};
use crate::kernels::{DistanceBias, Isa, StatesAttention, Weights};
use crate::memory::Buffer;
use crate::profile::timed;
use crate::{Activation, EncoderShape, Linear, Precision, Sizes, Work, quantise_rows, restore_rows};

/// How many times as long an operation may take here: small products, and attention in `f32`.
const HANDICAP: usize = 3;

/// Whether this is less work for `rows` rows of a sequence. It depends on nothing else, so that nothing else changes their
/// bits.
pub(crate) fn is_less_work(sizes: Sizes, length: usize, rows: usize) -> bool {
    // Multiply-adds divided by twice the hidden width.
    let Sizes { hidden, heads, .. } = sizes;
    HANDICAP * rows * (hidden + heads * length) <= length * (hidden + rows)
}

/// Maps of the last layer, head by head.
pub(super) struct FewRows {
    /// From a query to what is multiplied with states: the key map transposed.
    to_states: Vec<Weights>,
    values: Vec<Weights>,
}

/// Wanted rows of one sequence.
pub(super) struct Wanted<'a> {
    /// Where they are among those of their block.
    pub(super) rows: Range<usize>,
    /// Their places in the sequence.
    pub(super) places: &'a [u32],
    /// The sequence's states in order, in pieces of whole rows.
    pub(super) states: Vec<&'a [f32]>,
}

/// The maps while their weights come in.
pub(super) struct Reading<'a> {
    isa: Isa,
    precision: Precision,
    hidden: usize,
    width: usize,
    value: &'a Linear,
    /// Rows of a head that is not complete.
    pending: Vec<f32>,
    maps: FewRows,
}

impl<'a> Reading<'a> {
    /// For a shape, given the frame of the value map.
    pub(super) fn new(isa: Isa, precision: Precision, shape: &EncoderShape, value: &'a Linear) -> Self {
        let (hidden, width) = (shape.hidden, shape.head_width());
        Reading {
            isa,
            precision,
            hidden,
            width,
            value,
            pending: Vec::new(),
            maps: FewRows { to_states: Vec::new(), values: Vec::new() },
        }
    }

    /// Takes rows of the key map, and then of the value map, as they come.
    pub(super) fn take(&mut self, rows: &[f32]) {
        for row in rows.chunks_exact(self.hidden) {
            self.pending.extend_from_slice(row);
            if self.pending.len() == self.width * self.hidden {
                self.take_head();
                self.pending.clear();
            }
        }
    }

    fn take_head(&mut self) {
        if self.maps.to_states.len() < self.hidden / self.width {
            return self.take_keys();
        }
        let first = self.maps.values.len() * self.width;
        let mut values = Weights::empty(self.isa, self.precision, self.hidden, self.width);
        values.put(0, &self.pending);
        self.value.bias.iter().for_each(|bias| values.put_bias(0, &bias[first..][..self.width]));
        self.maps.values.push(values);
    }

    fn take_keys(&mut self) {
        if self.precision == Precision::Int8 {
            // Kept in a file, 8-bit weights have steps by rows. Transposed they get others, but must be what they would be
            // there.
            let (codes, steps) = quantise_rows(&self.pending, self.hidden);
            self.pending = restore_rows(&codes, &steps, self.hidden);
        }
        let columns = (0..self.hidden).map(|column| self.pending[column..].iter().step_by(self.hidden));
        let transposed: Vec<f32> = columns.flatten().copied().collect();
        let mut to_states = Weights::empty(self.isa, self.precision, self.width, self.hidden);
        to_states.put(0, &transposed);
        self.maps.to_states.push(to_states);
    }

    /// The maps, all of whose rows have come.
    pub(super) fn finish(self) -> FewRows {
        self.maps
    }
}

impl FewRows {
    /// Attends for some rows of a block, each with its query in `queries` and its result in `scratch.attended`, both
    /// `[rows][hidden]`.
    pub(super) fn attend(
        &self,
        run: Run<'_>,
        bias: Option<&DistanceBias>,
        sequences: &[Wanted<'_>],
        queries: &[f32],
        scratch: &mut BlockScratch,
        scores: &mut Buffer,
    ) {
        let (hidden, width) = (run.shape.hidden, run.shape.head_width());
        let rows = || sequences.iter().flat_map(|sequence| sequence.rows.clone());
        let count = rows().count();
        let BlockScratch { attended, projected, intermediate, of_head, codes } = scratch;
        let of_head = of_head.sized(count * width);
        // `[heads][rows][hidden]`: queries as states are multiplied with them, then sums of states.
        let heads = self.values.len();
        let of_heads = heads * count * hidden;
        let (taken, sums) = (projected.sized(of_heads), intermediate.sized(of_heads));

        for (head, (map, taken)) in
            self.to_states.iter().zip(taken.chunks_exact_mut(count * hidden)).enumerate()
        {
            for (row, to) in rows().zip(of_head.chunks_exact_mut(width)) {
                to.copy_from_slice(&queries[row * hidden + head * width..][..width]);
            }
            run.affine(Work::Projections, of_head, map, Activation::Identity, codes, taken);
        }
        let mut first = 0;
        for sequence in sequences {
            let work = StatesAttention {
                queries: &taken[first * hidden..],
                between_heads: count * hidden,
                heads,
                hidden,
                places: sequence.places,
                states: &sequence.states,
                scale: 1.0 / (width as f32).sqrt(),
                bias,
            };
            let sums = &mut sums[first * hidden..];
            timed(run.profile, Work::Attention, || run.isa.attend_states(&work, scores, sums));
            first += sequence.rows.len();
        }
        for (head, (map, sums)) in self.values.iter().zip(sums.chunks_exact(count * hidden)).enumerate() {
            run.affine(Work::Projections, sums, map, Activation::Identity, codes, of_head);
            for (row, values) in rows().zip(of_head.chunks_exact(width)) {
                attended[row * hidden + head * width..][..width].copy_from_slice(values);
            }
        }
    }
}
