//! A layer's packed weights and the rows they are multiplied with, in either precision.

use super::int8::{self, Codes, PackedInt8};
use super::{Isa, Packed};
use crate::{Linear, Precision};

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
    ///
    /// Maps of so many inputs that 32-bit sums could overflow stay in `f32`.
    pub(crate) fn new(isa: Isa, precision: Precision, maps: &[&Linear]) -> Self {
        match precision {
            Precision::Int8 if maps[0].inputs <= int8::MOST_INPUTS => {
                Weights::Int8(PackedInt8::new(isa.reach(), isa.panel_width(), maps))
            }
            Precision::Int8 | Precision::F32 => Weights::F32(Packed::new(isa, maps)),
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
