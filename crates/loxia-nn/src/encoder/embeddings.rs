//! From token ids to the first hidden states.

use super::words::WordTable;
use crate::kernels::{Isa, Packed};
use crate::memory::Buffer;
use crate::{Activation, EncoderShape, Error, LayerNorm, PackedBatch, Result};

/// The tables, the norm over their sum, and the map to the hidden width where that differs.
pub(super) struct Embeddings {
    pub(super) words: WordTable,
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
            self.words.copy_row(batch.ids()[token] as usize, sum);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::speed::{best, kernels, report, wave};
    use crate::{Kernel, Linear, Precision};

    const VOCABULARY: usize = 11;

    /// Tables of one width, with the parts that are asked for.
    struct Made {
        embeddings: Embeddings,
        projection: Option<Linear>,
    }

    fn made(
        isa: Isa,
        precision: Precision,
        width: usize,
        hidden: Option<usize>,
        types: bool,
        position: bool,
    ) -> Made {
        let table = |rows: usize, shift: usize| wave(shift + rows * width).split_off(shift);
        // Widths of two or three may have next to no variance: an eps that keeps rounding small.
        let norm = LayerNorm { scale: wave(width), shift: wave(width), eps: 1e-2 };
        let projection = hidden.map(|outputs| Linear {
            weight: wave(width * outputs),
            bias: Some(wave(outputs)),
            inputs: width,
            outputs,
        });
        let embeddings = Embeddings {
            words: WordTable::of(precision, width, table(VOCABULARY, 3)),
            types: types.then(|| table(2, 5)),
            position: position.then(|| table(600, 7)),
            norm,
            projection: projection.as_ref().map(|map| Packed::new(isa, &[map])),
        };
        Made { embeddings, projection }
    }

    fn batch(lengths: &[usize]) -> PackedBatch {
        let mut batch = PackedBatch::new();
        for &length in lengths {
            let positions: Vec<u32> = (0..length as u32).collect();
            let ids: Vec<u32> = positions.iter().map(|at| at * 7 % VOCABULARY as u32).collect();
            let types: Vec<u32> = positions.iter().map(|at| at / 3 % 2).collect();
            batch.push(&ids, &types, &positions).unwrap();
        }
        batch
    }

    /// One token's embedding by definition, in `f64`.
    fn plain(made: &Made, batch: &PackedBatch, token: usize) -> Vec<f64> {
        let embeddings = &made.embeddings;
        let LayerNorm { scale, shift, eps } = &embeddings.norm;
        let width = scale.len();
        let mut row = vec![0.0; width];
        embeddings.words.copy_row(batch.ids()[token] as usize, &mut row);
        let mut sum: Vec<f64> = row.into_iter().map(f64::from).collect();
        for (table, index) in [
            (embeddings.types.as_ref(), batch.types()[token]),
            (embeddings.position.as_ref(), batch.positions()[token]),
        ] {
            let row = table.map_or(&[][..], |table| &table[index as usize * width..][..width]);
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let mean = sum.iter().sum::<f64>() / width as f64;
        let variance = sum.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
        let deviation = (variance + f64::from(*eps)).sqrt();
        let parts = sum.iter().zip(scale).zip(shift);
        let normed: Vec<f64> = parts
            .map(|((x, scale), shift)| (x - mean) / deviation * f64::from(*scale) + f64::from(*shift))
            .collect();
        let Some(Linear { weight, bias: Some(bias), .. }) = &made.projection else { return normed };
        let outputs = weight.chunks(width).zip(bias);
        let dot = |row: &[f32]| normed.iter().zip(row).map(|(x, w)| x * f64::from(*w)).sum::<f64>();
        outputs.map(|(row, bias)| dot(row) + f64::from(*bias)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn embeddings_of_odd_shapes(
            width in 2usize..50,
            hidden in proptest::option::of(1usize..40),
            types in any::<bool>(),
            position in any::<bool>(),
            lengths in proptest::collection::vec(1usize..30, 1..4),
            skip in 0.0..1.0f64,
        ) {
            let batch = batch(&lengths);
            let first = (skip * batch.tokens() as f64) as usize;
            let precisions = [Precision::F32, Precision::Int8];
            for (kernel, precision) in Kernel::available().into_iter().flat_map(|k| precisions.map(|p| (k, p))) {
                let isa = kernel.check().unwrap();
                let made = made(isa, precision, width, hidden, types, position);
                let out_width = hidden.unwrap_or(width);
                let mut states = vec![f32::NAN; (batch.tokens() - first) * out_width];
                made.embeddings.embed(isa, &batch, first, &mut Buffer::default(), &mut states);
                for (token, found) in (first..).zip(states.chunks(out_width)) {
                    for (found, expected) in found.iter().zip(plain(&made, &batch, token)) {
                        let near = (f64::from(*found) - expected).abs() < 1e-4 * (1.0 + expected.abs());
                        prop_assert!(near, "{kernel}, token {token}: {found}, expected {expected}");
                    }
                }
            }
        }
    }

    #[test]
    #[ignore = "a measurement"]
    fn speed_of_embeddings() {
        let batch = batch(&[256; 8]);
        for kernel in kernels() {
            println!("{kernel}");
            let isa = kernel.check().unwrap();
            let shapes = [(384, None), (768, None), (128, Some(256))];
            let precisions = [Precision::F32, Precision::Int8];
            for ((width, hidden), precision) in shapes.into_iter().flat_map(|s| precisions.map(|p| (s, p))) {
                let made = made(isa, precision, width, hidden, true, true);
                let elements = batch.tokens() * hidden.unwrap_or(width);
                let (mut states, mut scratch) = (vec![0.0; elements], Buffer::default());
                let seconds = best(|| made.embeddings.embed(isa, &batch, 0, &mut scratch, &mut states));
                let operations = elements * (3 + 2 * hidden.map_or(0, |_| width));
                let what = format!("{precision} embeddings of {} x {width}", batch.tokens());
                report(&what, operations, elements, seconds);
            }
        }
    }
}
