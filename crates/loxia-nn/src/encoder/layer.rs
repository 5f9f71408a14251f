//! One layer: attention and feed-forward, each followed by a residual sum and a norm.

use crate::kernels::{Codes, Isa, Operand, Weights};
use crate::memory::{Buffer, Extent, Scratch};
use crate::profile::timed;
use crate::{Activation, EncoderShape, LayerMap, LayerNorm, LayerWeights, Linear, Precision, Profile, Work};

/// Rows that go through both feed-forward maps before the next ones: what lies between the maps is the widest there is,
/// and should not leave the second cache.
const FEED_FORWARD_ROWS: usize = 96;

/// Weights of a layer, packed for a kernel.
pub(super) struct Layer {
    pub(super) queries: Weights,
    pub(super) keys_values: Weights,
    attention_output: Weights,
    attention_norm: LayerNorm,
    intermediate: Weights,
    output: Weights,
    output_norm: LayerNorm,
}

/// Memory for a block of rows.
#[derive(Default)]
pub(super) struct BlockScratch {
    /// What attention makes.
    pub(super) attended: Buffer,
    pub(super) projected: Buffer,
    pub(super) intermediate: Buffer,
    /// One head of queries or values of the rows wanted in the last layer.
    pub(super) of_head: Buffer,
    pub(super) codes: Codes,
}

impl Scratch for BlockScratch {
    fn extent(&self) -> Extent {
        let buffers = [&self.attended, &self.projected, &self.intermediate, &self.of_head];
        buffers.into_iter().map(Buffer::extent).chain([self.codes.extent()]).sum()
    }
}

impl Layer {
    /// Puts a layer together from what was checked and from what `read` makes of its maps; those of one call are read by
    /// the same rows, and are packed side by side.
    pub(super) fn new<E>(
        frame: LayerWeights,
        mut read: impl FnMut(&[(LayerMap, &Linear)]) -> Result<Weights, E>,
    ) -> Result<Self, E> {
        let mut maps = |maps: &[LayerMap]| {
            let linears: Vec<_> = maps.iter().map(|&map| (map, map.of(&frame))).collect();
            read(&linears)
        };
        Ok(Layer {
            queries: maps(&[LayerMap::Query])?,
            keys_values: maps(&[LayerMap::Key, LayerMap::Value])?,
            attention_output: maps(&[LayerMap::AttentionOutput])?,
            intermediate: maps(&[LayerMap::Intermediate])?,
            output: maps(&[LayerMap::Output])?,
            attention_norm: frame.attention_norm,
            output_norm: frame.output_norm,
        })
    }

    /// What comes after attention: takes rows of `states` on, given what attention made of them in `scratch`.
    pub(super) fn finish(&self, run: Run<'_>, states: &mut [f32], scratch: &mut BlockScratch) {
        let BlockScratch { attended, projected, intermediate, codes, .. } = scratch;
        let projected = projected.sized(states.len());
        let plain = Activation::Identity;
        run.affine(Work::AttentionOutput, attended, &self.attention_output, plain, codes, projected);
        run.add_norm(states, projected, &self.attention_norm);

        let activation = run.shape.activation;
        let together = FEED_FORWARD_ROWS * run.shape.hidden;
        let rows = FEED_FORWARD_ROWS.min(states.len() / run.shape.hidden);
        let intermediate = intermediate.sized(rows * run.shape.intermediate);
        for (states, projected) in states.chunks(together).zip(projected.chunks_mut(together)) {
            let inner = &mut intermediate[..states.len() / run.shape.hidden * run.shape.intermediate];
            run.affine(Work::Intermediate, states, &self.intermediate, activation, codes, inner);
            run.affine(Work::Output, inner, &self.output, plain, codes, projected);
        }
        run.add_norm(states, projected, &self.output_norm);
    }
}

/// What every step of a forward pass needs.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) isa: Isa,
    pub(super) shape: &'a EncoderShape,
    pub(super) precision: Precision,
    pub(super) profile: Option<&'a Profile>,
    /// Threads that the work is laid out for: those of the current pool, some of them, or the calling one alone.
    pub(super) threads: usize,
}

impl Run<'_> {
    /// `out = activation(rows · W + b)`.
    pub(super) fn affine(
        self,
        work: Work,
        rows: &[f32],
        weights: &Weights,
        activation: Activation,
        codes: &mut Codes,
        out: &mut [f32],
    ) {
        let operand = self.operand(rows, weights, codes);
        timed(self.profile, work, || self.isa.product(operand, weights, activation, out));
    }

    /// The rows as weights want them.
    pub(super) fn operand<'a>(self, rows: &'a [f32], weights: &Weights, codes: &'a mut Codes) -> Operand<'a> {
        match weights {
            Weights::F32(_) => weights.operand(self.isa, rows, codes),
            Weights::Int8(_) => {
                timed(self.profile, Work::Quantisation, || weights.operand(self.isa, rows, codes))
            }
        }
    }

    /// Queries, or keys and values, of some rows.
    pub(super) fn project(self, operand: Operand<'_>, weights: &Weights, out: &mut [f32]) {
        let plain = Activation::Identity;
        timed(self.profile, Work::Projections, || self.isa.product(operand, weights, plain, out));
    }

    fn add_norm(self, states: &mut [f32], addend: &[f32], norm: &LayerNorm) {
        timed(self.profile, Work::Norms, || self.isa.add_norm(states, Some(addend), norm));
    }
}
