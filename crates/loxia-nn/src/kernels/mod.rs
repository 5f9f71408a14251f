//! The operations of an encoder and the kernels that compute them.
//!
//! All work on rows, on one thread; who calls them shares the rows among threads. A result depends on its own
//! row (for attention: its own sequence) and nothing else, whatever rows come along.

mod attention;
mod distance;
pub(crate) mod math;
mod packed;
mod reference;
#[cfg(test)]
mod tests;
#[cfg(any(test, target_arch = "x86_64"))]
mod vector;

pub(crate) use attention::{Attention, AttentionScratch};
pub(crate) use distance::DistanceBias;
pub(crate) use packed::Packed;

use crate::{Activation, Kernel, LayerNorm};
#[cfg(target_arch = "x86_64")]
use vector::{AddNorm, Attend, Product, Simd};

/// A kernel together with the proof that this machine can run it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Isa {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(vector::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(vector::Avx512),
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
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 => None,
        }
    }

    /// Outputs in a panel of [`Packed`] weights.
    pub(crate) fn panel_width(self) -> usize {
        match self {
            Isa::Portable => reference::PANEL,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => vector::panel_width::<vector::Avx2>(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => vector::panel_width::<vector::Avx512>(),
        }
    }

    /// `out = activation(input · W + b)`; `input` is `[rows][inputs]`, `out` is `[rows][outputs]`.
    pub(crate) fn product(self, input: &[f32], weights: &Packed, activation: Activation, out: &mut [f32]) {
        debug_assert_eq!(input.len() / weights.inputs() * weights.outputs(), out.len());
        match self {
            Isa::Portable => reference::product(input, weights, activation, out),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(simd) => simd.run(Product { input, weights, activation, out }),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(simd) => simd.run(Product { input, weights, activation, out }),
        }
    }

    /// `states = norm(states + addend)` for each row.
    pub(crate) fn add_norm(self, states: &mut [f32], addend: Option<&[f32]>, norm: &LayerNorm) {
        debug_assert!(addend.is_none_or(|addend| addend.len() == states.len()));
        match self {
            Isa::Portable => reference::add_norm(states, addend, norm),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(simd) => simd.run(AddNorm { states, addend, norm }),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(simd) => simd.run(AddNorm { states, addend, norm }),
        }
    }

    /// Softmax attention of some queries of one sequence; `out` is shaped as the queries.
    pub(crate) fn attention(self, work: &Attention<'_>, scratch: &mut AttentionScratch, out: &mut [f32]) {
        debug_assert_eq!(work.queries.len(), out.len());
        debug_assert_eq!(work.places.len() * work.hidden(), out.len());
        match self {
            Isa::Portable => reference::attention(work, scratch, out),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(simd) => simd.run(Attend { work, scratch, out }),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(simd) => simd.run(Attend { work, scratch, out }),
        }
    }
}
