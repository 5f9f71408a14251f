//! A layer's packed weights and the rows they are multiplied with, in either precision.

use super::int8::{self, Codes, PackedInt8};
use super::{Isa, Packed};
#[cfg(test)]
use crate::Linear;
use crate::Precision;

/// Affine maps packed for a kernel.
pub(crate) enum Weights {
    /// In single precision.
    F32(Packed),
    /// In 8-bit integers.
    Int8(PackedInt8),
}

/// Rows ready to be multiplied with [`Weights`].
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a> {
    /// `[rows][inputs]`
    F32(&'a [f32]),
    /// Codes of the rows.
    Int8(&'a Codes),
}

impl Weights {
    /// Packs maps whose shapes were checked and whose inputs agree; their outputs are concatenated.
    #[cfg(test)]
    pub(crate) fn new(isa: Isa, precision: Precision, maps: &[&Linear]) -> Self {
        let outputs = maps.iter().map(|map| map.outputs).sum();
        let mut weights = Self::empty(isa, precision, maps[0].inputs, outputs);
        let mut first = 0;
        for map in maps {
            weights.put(first, &map.weight);
            map.bias.iter().for_each(|bias| weights.put_bias(first, bias));
            first += map.outputs;
        }
        weights
    }

    /// Room for maps of the same input, all zeros.
    ///
    /// Maps of so many inputs that 32-bit sums could overflow stay in `f32`.
    pub(crate) fn empty(isa: Isa, precision: Precision, inputs: usize, outputs: usize) -> Self {
        let width = isa.panel_width();
        match precision {
            Precision::Int8 if inputs <= int8::MOST_INPUTS => {
                Weights::Int8(PackedInt8::empty(isa.reach(), width, inputs, outputs))
            }
            Precision::Int8 | Precision::F32 => Weights::F32(Packed::empty(width, inputs, outputs)),
        }
    }

    /// Packs the weights, `[outputs][inputs]`, of some outputs from `first` on.
    pub(crate) fn put(&mut self, first: usize, rows: &[f32]) {
        match self {
            Weights::F32(weights) => weights.put(first, rows),
            Weights::Int8(weights) => weights.put(first, rows),
        }
    }

    /// Sets the biases of some outputs from `first` on.
    pub(crate) fn put_bias(&mut self, first: usize, bias: &[f32]) {
        match self {
            Weights::F32(weights) => weights.put_bias(first, bias),
            Weights::Int8(weights) => weights.put_bias(first, bias),
        }
    }

    /// The rows as these weights want them; `codes` is where they are kept if that is not as they are.
    pub(crate) fn operand<'a>(&self, isa: Isa, rows: &'a [f32], codes: &'a mut Codes) -> Operand<'a> {
        match self {
            Weights::F32(_) => Operand::F32(rows),
            Weights::Int8(weights) => {
                isa.quantise(rows, weights, codes);
                Operand::Int8(codes)
            }
        }
    }
}
