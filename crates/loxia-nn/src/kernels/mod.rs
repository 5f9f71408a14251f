//! The operations of an encoder and the kernels that compute them.
//!
//! All work on rows, on one thread; who calls them shares the rows among threads. A result depends on its own
//! row (for attention: its own sequence) and nothing else, whatever rows come along.

mod attention;
mod distance;
pub(crate) mod int8;
pub(crate) mod math;
mod mixing;
mod packed;
mod reference;
#[cfg(test)]
pub(crate) mod speed;
mod states_attention;
#[cfg(test)]
mod tests;
#[cfg(any(test, target_arch = "x86_64"))]
mod vector;
mod weights;

pub(crate) use attention::{Attention, AttentionScratch, Keeping, NewRows, PIECE, Rows, SLOTS, Shelf};
pub(crate) use distance::DistanceBias;
pub(crate) use int8::Codes;
use int8::{PackedInt8, Reach};
pub(crate) use packed::Packed;
pub(crate) use states_attention::StatesAttention;
pub(crate) use weights::{Operand, Weights};

use crate::memory::Buffer;
use crate::{Activation, Kernel, LayerNorm, Precision};
#[cfg(target_arch = "x86_64")]
use vector::{
    AddNorm, Attend, AttendByMatrix, AttendInPairs, AttendStates, KeepPairs, Product, ProductByMatrix,
    ProductInt8, Quantise, Simd,
};

/// A kernel together with the proof that this machine can run it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Isa {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(vector::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(vector::Avx512<{ vector::BASIC }>),
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(vector::Avx512<{ vector::VNNI }>),
    /// Attention of 8-bit models is in bfloat16, everything else as above.
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16(vector::Avx512<{ vector::HALVES }>),
    /// 8-bit products and their attention are those of the matrix unit, everything else as with VNNI.
    #[cfg(target_arch = "x86_64")]
    Amx(vector::Avx512<{ vector::VNNI }>, vector::Amx),
}

/// Evaluates `$plain` for the portable kernel, `$vector` with `$simd` bound to the instructions of the others.
macro_rules! dispatch {
    ($isa:expr, $plain:expr, $simd:ident => $vector:expr) => {
        match $isa {
            Isa::Portable => $plain,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2($simd) => $vector,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512($simd) => $vector,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni($simd) | Isa::Amx($simd, _) => $vector,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Bf16($simd) => $vector,
        }
    };
}

impl Isa {
    /// The instructions of a kernel, if this machine has them.
    pub(crate) fn of(kernel: Kernel) -> Option<Isa> {
        match kernel {
            Kernel::Portable => Some(Isa::Portable),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => vector::Avx2::new().map(Isa::Avx2),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => vector::Avx512::new().map(Isa::Avx512),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Vnni => vector::Avx512::new().map(Isa::Avx512Vnni),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Bf16 => vector::Avx512::new().map(Isa::Avx512Bf16),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => {
                vector::Avx512::new().zip(vector::Amx::new()).map(|(simd, unit)| Isa::Amx(simd, unit))
            }
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 | Kernel::Avx512Vnni | Kernel::Avx512Bf16 | Kernel::Amx => None,
        }
    }

    /// Outputs in a panel of [`Weights`].
    pub(crate) fn panel_width(self) -> usize {
        dispatch!(self, reference::PANEL, simd => vector::panel_width(simd))
    }

    /// How far codes and weights of 8-bit products go.
    pub(crate) fn reach(self) -> Reach {
        #[cfg(target_arch = "x86_64")]
        if let Isa::Amx(..) = self {
            return vector::MATRIX_REACH;
        }
        dispatch!(self, Reach::WIDE, simd => vector::reach(simd))
    }

    /// `out = activation(rows · W + b)`; `out` is `[rows][outputs]`, the operand of these weights' making.
    pub(crate) fn product(
        self,
        rows: Operand<'_>,
        weights: &Weights,
        activation: Activation,
        out: &mut [f32],
    ) {
        match (rows, weights) {
            (Operand::F32(rows), Weights::F32(weights)) => self.product_f32(rows, weights, activation, out),
            (Operand::Int8(rows), Weights::Int8(weights)) => {
                self.product_int8(rows, weights, activation, out)
            }
            _ => unreachable!("rows in one precision, weights in another"),
        }
    }

    /// `out = activation(input · W + b)`; `input` is `[rows][inputs]`, `out` is `[rows][outputs]`.
    pub(crate) fn product_f32(
        self,
        input: &[f32],
        weights: &Packed,
        activation: Activation,
        out: &mut [f32],
    ) {
        debug_assert_eq!(input.len() / weights.inputs() * weights.outputs(), out.len());
        dispatch!(
            self,
            reference::product(input, weights, activation, out),
            simd => simd.run(Product { input, weights, activation, out })
        );
    }

    fn product_int8(self, codes: &Codes, weights: &PackedInt8, activation: Activation, out: &mut [f32]) {
        debug_assert_eq!(weights.reach(), self.reach());
        debug_assert_eq!(codes.scales.len() * weights.outputs(), out.len());
        #[cfg(target_arch = "x86_64")]
        if let Isa::Amx(simd, unit) = self {
            let unit = unit.registers();
            return simd.run(ProductByMatrix { unit, codes, weights, activation, out });
        }
        dispatch!(
            self,
            int8::product(codes, weights, activation, out),
            simd => simd.run(ProductInt8 { codes, weights, activation, out })
        );
    }

    /// Codes of `input`, `[rows][inputs]`, for some weights.
    fn quantise(self, input: &[f32], weights: &PackedInt8, codes: &mut Codes) {
        let (reach, inputs) = (weights.reach(), weights.inputs());
        dispatch!(
            self,
            int8::quantise(reach, input, inputs, codes),
            simd => simd.run(Quantise { reach, input, inputs, codes })
        );
    }

    /// `states = norm(states + addend)` for each row.
    pub(crate) fn add_norm(self, states: &mut [f32], addend: Option<&[f32]>, norm: &LayerNorm) {
        debug_assert!(addend.is_none_or(|addend| addend.len() == states.len()));
        dispatch!(
            self,
            reference::add_norm(states, addend, norm),
            simd => simd.run(AddNorm { states, addend, norm })
        );
    }

    /// How attention of a model wants its keys and values.
    pub(crate) fn keeping(self, precision: Precision) -> Keeping {
        match (self, precision) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512Bf16(_), Precision::Int8) => Keeping::Pairs,
            _ => Keeping::Rows,
        }
    }

    /// Puts rows of a sequence on a head's shelf, given the sequence's first slot.
    pub(crate) fn keep(self, rows: NewRows<'_>, shelf: Shelf, first: usize, kept: &mut [f32]) {
        debug_assert_eq!(rows.width, shelf.width);
        let [keys, values] = shelf.places(first, rows.count);
        let (before, behind) = kept.split_at_mut(values.start);
        let (keys, values) = (&mut before[keys], &mut behind[..values.len()]);
        match (self, shelf.keeping) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512Bf16(simd), Keeping::Pairs) => {
                let [keys, values] = [keys, values].map(bytemuck::cast_slice_mut);
                simd.run(KeepPairs { rows, keys, values });
            }
            _ => rows.copy(keys, values),
        }
    }

    /// Softmax attention of some queries of one sequence; `out` is `[queries][heads · width]`.
    pub(crate) fn attention(self, work: &Attention<'_>, scratch: &mut AttentionScratch, out: &mut [f32]) {
        debug_assert_eq!(work.places.len() * work.hidden(), out.len());
        #[cfg(target_arch = "x86_64")]
        match (self, work.precision, work.shelf.keeping) {
            (Isa::Amx(simd, unit), Precision::Int8, Keeping::Rows) => {
                let unit = unit.registers();
                return simd.run(AttendByMatrix { unit, work, scratch, out });
            }
            (Isa::Avx512Bf16(simd), _, Keeping::Pairs) => {
                return simd.run(AttendInPairs { work, scratch, out });
            }
            _ => {}
        }
        dispatch!(
            self,
            reference::attention(work, scratch, out),
            simd => simd.run(Attend { work, scratch, out })
        );
    }

    /// Softmax attention of few queries over the states of one sequence; `out` is laid out as they are.
    pub(crate) fn attend_states(self, work: &StatesAttention<'_>, scores: &mut Buffer, out: &mut [f32]) {
        dispatch!(
            self,
            states_attention::attend_states(work, scores, out),
            simd => simd.run(AttendStates { work, scores, out })
        );
    }
}
