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
use crate::{Activation, EncoderShape, Linear, Precision, Sizes, Work};

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
    heads: Vec<Head>,
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

struct Head {
    /// From a query to what is multiplied with states: the key map transposed.
    to_states: Weights,
    values: Weights,
}

impl FewRows {
    /// From the weights of keys, then of values, `[2 · hidden][hidden]`.
    pub(super) fn new(
        isa: Isa,
        precision: Precision,
        shape: &EncoderShape,
        keys_values: &[f32],
        value: &Linear,
    ) -> Self {
        let (hidden, width) = (shape.hidden, shape.head_width());
        let (keys, values) = keys_values.split_at(hidden * hidden);
        let of_head = keys.chunks_exact(width * hidden).zip(values.chunks_exact(width * hidden)).enumerate();
        let heads = of_head.map(|(head, (keys, values))| {
            let mut to_states = Weights::empty(isa, precision, width, hidden);
            let transposed: Vec<f32> =
                (0..hidden).flat_map(|column| keys[column..].iter().step_by(hidden).copied()).collect();
            to_states.put(0, &transposed);
            let mut weights = Weights::empty(isa, precision, hidden, width);
            weights.put(0, values);
            value.bias.iter().for_each(|bias| weights.put_bias(0, &bias[head * width..][..width]));
            Head { to_states, values: weights }
        });
        FewRows { heads: heads.collect() }
    }

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
        let of_heads = self.heads.len() * count * hidden;
        let (taken, sums) = (projected.sized(of_heads), intermediate.sized(of_heads));

        for (head, (maps, taken)) in self.heads.iter().zip(taken.chunks_exact_mut(count * hidden)).enumerate()
        {
            for (row, to) in rows().zip(of_head.chunks_exact_mut(width)) {
                to.copy_from_slice(&queries[row * hidden + head * width..][..width]);
            }
            run.affine(Work::Projections, of_head, &maps.to_states, Activation::Identity, codes, taken);
        }
        let mut first = 0;
        for sequence in sequences {
            let work = StatesAttention {
                queries: &taken[first * hidden..],
                between_heads: count * hidden,
                heads: self.heads.len(),
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
        for (head, (maps, sums)) in self.heads.iter().zip(sums.chunks_exact(count * hidden)).enumerate() {
            run.affine(Work::Projections, sums, &maps.values, Activation::Identity, codes, of_head);
            for (row, values) in rows().zip(of_head.chunks_exact(width)) {
                attended[row * hidden + head * width..][..width].copy_from_slice(values);
            }
        }
    }
}
