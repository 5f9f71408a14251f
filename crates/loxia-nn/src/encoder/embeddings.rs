//! From token ids to the first hidden states.

use crate::kernels::{Isa, Packed};
use crate::memory::Buffer;
use crate::{Activation, EncoderShape, Error, LayerNorm, PackedBatch, Result};

/// The tables, the norm over their sum, and the map to the hidden width where that differs.
pub(super) struct Embeddings {
    pub(super) word: Vec<f32>,
    pub(super) types: Option<Vec<f32>>,
    pub(super) position: Option<Vec<f32>>,
    pub(super) norm: LayerNorm,
    pub(super) projection: Option<Packed>,
}

impl Embeddings {
    /// Checks that every token of a batch has its rows in the tables.
    pub(super) fn check(&self, batch: &PackedBatch, shape: &EncoderShape) -> Result<()> {
        in_table(batch, "token id", batch.ids(), shape.vocab)?;
        if self.types.is_some() {
            in_table(batch, "type", batch.types(), shape.types)?;
        }
        if self.position.is_some() {
            in_table(batch, "position", batch.positions(), shape.positions)?;
        }
        Ok(())
    }

    /// Writes the embeddings of the tokens from `first` on that `states`, `[tokens][hidden]`, has room for.
    pub(super) fn embed(
        &self,
        isa: Isa,
        batch: &PackedBatch,
        first: usize,
        scratch: &mut Buffer,
        states: &mut [f32],
    ) {
        match &self.projection {
            None => self.normed_sums(isa, batch, first, states),
            Some(projection) => {
                let tokens = states.len() / projection.outputs();
                let sums = scratch.sized(tokens * projection.inputs());
                self.normed_sums(isa, batch, first, sums);
                isa.product_f32(sums, projection, Activation::Identity, states);
            }
        }
    }

    fn normed_sums(&self, isa: Isa, batch: &PackedBatch, first: usize, sums: &mut [f32]) {
        let width = self.norm.scale.len();
        let row = |index: u32| index as usize * width..(index as usize + 1) * width;
        for (token, sum) in (first..).zip(sums.chunks_exact_mut(width)) {
            sum.copy_from_slice(&self.word[row(batch.ids()[token])]);
            // Types before positions: the order in which transformers adds them.
            let others = [(&self.types, batch.types()), (&self.position, batch.positions())];
            for (table, indices) in others {
                if let Some(table) = table {
                    let addend = &table[row(indices[token])];
                    sum.iter_mut().zip(addend).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        isa.add_norm(sums, None, &self.norm);
    }
}

fn in_table(batch: &PackedBatch, kind: &'static str, values: &[u32], limit: usize) -> Result<()> {
    match values.iter().position(|&value| value as usize >= limit) {
        None => Ok(()),
        Some(place) => {
            let sequence = batch.sequence_of(place);
            let token = place - batch.range(sequence).start;
            Err(Error::OutOfTable { sequence, token, kind, value: values[place], limit })
        }
    }
}
