//! One layer: attention and feed-forward, each followed by a residual sum and a norm.

use crate::kernels::{Attention, AttentionScratch, DistanceBias, Isa, Packed};
use crate::memory::{Buffer, Scratch};
use crate::{Activation, AttentionPattern, EncoderShape, LayerNorm, LayerWeights, PackedBatch};

/// Weights of a layer, packed for a kernel.
pub(super) struct Layer {
    query: Packed,
    /// Keys and values in one product: both are needed of every token.
    keys_values: Packed,
    attention_output: Packed,
    attention_norm: LayerNorm,
    intermediate: Packed,
    output: Packed,
    output_norm: LayerNorm,
}

/// What a layer needs beside its weights.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) isa: Isa,
    pub(super) shape: &'a EncoderShape,
    pub(super) bias: Option<&'a DistanceBias>,
    pub(super) batch: &'a PackedBatch,
}

/// Memory for a block of rows.
#[derive(Default)]
pub(super) struct BlockScratch {
    pub(super) queries: Buffer,
    context: Buffer,
    projected: Buffer,
    intermediate: Buffer,
    places: Vec<u32>,
    attention: AttentionScratch,
}

impl Scratch for BlockScratch {
    fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let own = [&self.queries, &self.context, &self.projected, &self.intermediate];
        own.into_iter().chain(self.attention.buffers())
    }
}

impl Layer {
    /// Packs weights whose shapes were checked.
    pub(super) fn new(isa: Isa, weights: LayerWeights) -> Self {
        Layer {
            query: Packed::new(isa, &[&weights.query]),
            keys_values: Packed::new(isa, &[&weights.key, &weights.value]),
            attention_output: Packed::new(isa, &[&weights.attention_output]),
            attention_norm: weights.attention_norm,
            intermediate: Packed::new(isa, &[&weights.intermediate]),
            output: Packed::new(isa, &[&weights.output]),
            output_norm: weights.output_norm,
        }
    }

    /// Keys and values of some tokens, `[tokens][2 · hidden]`.
    pub(super) fn project_keys_values(&self, isa: Isa, states: &[f32], out: &mut [f32]) {
        isa.product(states, &self.keys_values, Activation::Identity, out);
    }

    /// Moves `states`, `[tokens.len()][hidden]`, through the layer, given the keys and values of the whole
    /// batch; `tokens` are the places of these rows in the batch.
    pub(super) fn advance(
        &self,
        context: Context<'_>,
        keys_values: &[f32],
        tokens: &[u32],
        states: &mut [f32],
        scratch: &mut BlockScratch,
    ) {
        let isa = context.isa;
        let rows = tokens.len();
        let hidden = context.shape.hidden;
        isa.product(states, &self.query, Activation::Identity, scratch.queries.sized(rows * hidden));
        attend(context, keys_values, tokens, scratch);

        let projected = scratch.projected.sized(rows * hidden);
        isa.product(&scratch.context, &self.attention_output, Activation::Identity, projected);
        isa.add_norm(states, Some(projected), &self.attention_norm);

        let intermediate = scratch.intermediate.sized(rows * context.shape.intermediate);
        isa.product(states, &self.intermediate, context.shape.activation, intermediate);
        isa.product(intermediate, &self.output, Activation::Identity, projected);
        isa.add_norm(states, Some(projected), &self.output_norm);
    }
}

/// Attention for the rows of a block, one call for each run of rows of the same sequence.
fn attend(context: Context<'_>, keys_values: &[f32], tokens: &[u32], scratch: &mut BlockScratch) {
    let Context { isa, shape, bias, batch } = context;
    let hidden = shape.hidden;
    let mut queries: &[f32] = &scratch.queries;
    let mut out = scratch.context.sized(tokens.len() * hidden);
    let mut tokens = tokens;
    while let Some(&first) = tokens.first() {
        let range = batch.range(batch.sequence_of(first as usize));
        let run = tokens.iter().take_while(|&&token| range.contains(&(token as usize))).count();
        scratch.places.clear();
        scratch.places.extend(tokens[..run].iter().map(|token| token - range.start as u32));
        let keys_values = match batch.pattern() {
            AttentionPattern::Full => &keys_values[range.start * 2 * hidden..range.end * 2 * hidden],
        };
        let work = Attention {
            queries: &queries[..run * hidden],
            places: &scratch.places,
            keys_values,
            heads: shape.heads,
            width: shape.head_width(),
            bias,
        };
        let (done, rest) = out.split_at_mut(run * hidden);
        isa.attention(&work, &mut scratch.attention, done);
        out = rest;
        queries = &queries[run * hidden..];
        tokens = &tokens[run..];
    }
}
