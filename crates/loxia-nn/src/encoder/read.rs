//! Building an encoder: matrix after matrix is packed as it comes, so that plain weights are in memory for a piece only.

use std::ops::ControlFlow;

use super::embeddings::Embeddings;
use super::few_rows::Reading;
use super::layer::Layer;
use super::words::WordTable;
use super::{CpuEncoder, KEPT_FOR_ATTENTION, KEPT_FOR_BATCHES, KEPT_FOR_BLOCKS};
use crate::kernels::{DistanceBias, Isa, Packed, Weights};
use crate::memory::Pool;
use crate::source::{LayerMap, Matrix, WeightSource};
use crate::weights::check_count;
use crate::{EncoderShape, EncoderWeights, Error, Kernel, Linear, Precision, Result};

impl CpuEncoder {
    /// Checks the weights against the shape and packs them for a kernel, in a precision.
    pub fn new(
        shape: EncoderShape,
        mut weights: EncoderWeights,
        kernel: Kernel,
        precision: Precision,
    ) -> Result<Self> {
        kernel.check()?;
        weights.check(&shape)?;
        let words = WordTable::of(precision, shape.embedding, std::mem::take(&mut weights.word));
        let matrices = weights
            .layers
            .iter_mut()
            .map(|layer| LayerMap::ALL.map(|map| std::mem::take(&mut map.of_mut(layer).weight)));
        let mut given = Given(matrices.collect());
        Self::assemble(shape, words, weights, &mut given, kernel, precision)
    }

    /// Reads weights from a source, checks them against the shape and packs them for a kernel, in a precision.
    ///
    /// The same weights give the same bits as with [`CpuEncoder::new`], but there need not be room for all of them.
    pub fn read<S: WeightSource>(
        shape: EncoderShape,
        source: &mut S,
        kernel: Kernel,
        precision: Precision,
    ) -> Result<Self, S::Error> {
        kernel.check()?;
        shape.check()?;
        let frame = source.frame()?;
        frame.check_frame(&shape)?;
        let words = WordTable::read(precision, &shape, source)?;
        Self::assemble(shape, words, frame, source, kernel, precision)
    }

    /// Packs what was checked but for the matrices of layers, which are asked for one by one.
    fn assemble<S: WeightSource>(
        shape: EncoderShape,
        words: WordTable,
        frame: EncoderWeights,
        source: &mut S,
        kernel: Kernel,
        precision: Precision,
    ) -> Result<Self, S::Error> {
        let isa = kernel.check()?;
        let bias = match (shape.relative, &frame.relative_bias) {
            (Some(relative), Some(bias)) => {
                Some(DistanceBias::new(relative, bias, shape.heads, shape.positions))
            }
            _ => None,
        };
        let embeddings = Embeddings {
            words,
            types: frame.types,
            position: frame.position,
            norm: frame.embedding_norm,
            projection: frame.embedding_projection.as_ref().map(|map| Packed::new(isa, &[map])),
        };
        let mut few_rows = None;
        let mut layers = Vec::with_capacity(frame.layers.len());
        for (index, frame) in frame.layers.into_iter().enumerate() {
            let last = index + 1 == shape.layers;
            layers.push(Layer::new(frame, |maps| {
                if !last || maps[0].0 != LayerMap::Key {
                    return read_maps(isa, precision, index, maps, source, &mut |_| ());
                }
                let mut reading = Reading::new(isa, precision, &shape, maps[1].1);
                let weights = read_maps(isa, precision, index, maps, source, &mut |rows| reading.take(rows))?;
                few_rows = Some(reading.finish());
                Ok::<_, S::Error>(weights)
            })?);
        }
        Ok(CpuEncoder {
            kernel,
            precision,
            isa,
            embeddings,
            bias,
            layers,
            few_rows,
            shape,
            threads: None,
            batches: Pool::new(KEPT_FOR_BATCHES),
            blocks: Pool::new(KEPT_FOR_BLOCKS),
            attention: Pool::new(KEPT_FOR_ATTENTION),
        })
    }
}

/// Maps of the same input, side by side, their weights read one after the other; `also` sees them as they come.
fn read_maps<S: WeightSource>(
    isa: Isa,
    precision: Precision,
    index: usize,
    maps: &[(LayerMap, &Linear)],
    source: &mut S,
    also: &mut dyn FnMut(&[f32]),
) -> Result<Weights, S::Error> {
    let inputs = maps[0].1.inputs;
    let outputs = maps.iter().map(|(_, linear)| linear.outputs).sum();
    let mut weights = Weights::empty(isa, precision, inputs, outputs);
    let mut first = 0;
    for &(map, linear) in maps {
        let mut count = 0;
        source.rows(Matrix::Layer { index, map }, &mut |rows| {
            let end = count + rows.len();
            if end <= linear.outputs * inputs {
                weights.put(first + count / inputs, rows);
                also(rows);
            }
            count = end;
            ControlFlow::Continue(())
        })?;
        let name = || format!("layers[{index}].{}.weight", map.name());
        check_count(name, count, linear.outputs, inputs)?;
        linear.bias.iter().for_each(|bias| weights.put_bias(first, bias));
        first += linear.outputs;
    }
    Ok(weights)
}

/// Weights of layers that are in memory: each goes as soon as it is packed.
struct Given(Vec<[Vec<f32>; LayerMap::ALL.len()]>);

impl WeightSource for Given {
    type Error = Error;

    fn frame(&mut self) -> Result<EncoderWeights> {
        unreachable!("what is in memory comes with its frame")
    }

    fn rows(&mut self, matrix: Matrix, take: &mut dyn FnMut(&[f32]) -> ControlFlow<()>) -> Result<()> {
        let Matrix::Layer { index, map } = matrix else { unreachable!("the word table is there already") };
        let _ = take(&std::mem::take(&mut self.0[index][map as usize]));
        Ok(())
    }
}
