//! Residual sum and layer norm.

use super::{Simd, Task};
use crate::LayerNorm;

/// `states = norm(states + addend)` for each row.
pub(in crate::kernels) struct AddNorm<'a> {
    pub(in crate::kernels) states: &'a mut [f32],
    pub(in crate::kernels) addend: Option<&'a [f32]>,
    pub(in crate::kernels) norm: &'a LayerNorm,
}

impl Task for AddNorm<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let width = self.norm.scale.len();
        for (index, row) in self.states.chunks_exact_mut(width).enumerate() {
            let mut sum = simd.splat(0.0);
            match self.addend {
                Some(addend) => {
                    let addend = addend[index * width..][..width].chunks(S::LANES);
                    for (values, addend) in row.chunks_mut(S::LANES).zip(addend) {
                        let added = simd.add(simd.read(values), simd.read(addend));
                        simd.write(values, added);
                        sum = simd.add(sum, added);
                    }
                }
                None => {
                    for values in row.chunks(S::LANES) {
                        sum = simd.add(sum, simd.read(values));
                    }
                }
            }
            normalise(simd, row, simd.sum(sum) / width as f32, self.norm);
        }
    }
}

#[inline(always)]
fn normalise<S: Simd>(simd: S, row: &mut [f32], mean: f32, norm: &LayerNorm) {
    let width = row.len();
    let mean = simd.splat(mean);
    // Centred values go back to the row first: lanes beyond its end read as 0 and add nothing to the squares.
    for values in row.chunks_mut(S::LANES) {
        let centred = simd.sub(simd.read(values), mean);
        simd.write(values, centred);
    }
    let mut squares = simd.splat(0.0);
    for values in row.chunks(S::LANES) {
        let centred = simd.read(values);
        squares = simd.mul_add(centred, centred, squares);
    }
    let variance = simd.sum(squares) / width as f32;
    let inverse = simd.splat(1.0 / (variance + norm.eps).sqrt());
    let affine = norm.scale.chunks(S::LANES).zip(norm.shift.chunks(S::LANES));
    for (values, (scale, shift)) in row.chunks_mut(S::LANES).zip(affine) {
        let unit = simd.mul(simd.read(values), inverse);
        let result = simd.mul_add(unit, simd.read(scale), simd.read(shift));
        simd.write(values, result);
    }
}
