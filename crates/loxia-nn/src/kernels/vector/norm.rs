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
            if let Some(addend) = self.addend {
                add(simd, row, &addend[index * width..][..width]);
            }
            normalise(simd, row, self.norm);
        }
    }
}

#[inline(always)]
fn add<S: Simd>(simd: S, row: &mut [f32], addend: &[f32]) {
    let (mut vectors, addends) = (row.chunks_exact_mut(S::LANES), addend.chunks_exact(S::LANES));
    let rest_of_addend = addends.remainder();
    for (values, addend) in (&mut vectors).zip(addends) {
        let sum = simd.add(simd.read(values), simd.read(addend));
        simd.write(values, sum);
    }
    let rest = vectors.into_remainder();
    if !rest.is_empty() {
        let sum = simd.add(simd.read(rest), simd.read(rest_of_addend));
        simd.write(rest, sum);
    }
}

/// The sum over a row of `term(values, sum)`, which may change the values. Lanes beyond the row's end read as 0.
macro_rules! sum_over {
    ($simd:ident, $row:ident, |$values:ident, $sum:ident| $term:expr) => {{
        let mut $sum = $simd.splat(0.0);
        let mut vectors = $row.chunks_exact_mut(S::LANES);
        for $values in &mut vectors {
            $sum = $term;
        }
        let $values = vectors.into_remainder();
        if !$values.is_empty() {
            $sum = $term;
        }
        $simd.sum($sum)
    }};
}

#[inline(always)]
fn normalise<S: Simd>(simd: S, row: &mut [f32], norm: &LayerNorm) {
    let width = row.len();
    let mean = sum_over!(simd, row, |values, sum| simd.add(sum, simd.read(values))) / width as f32;
    let mean = simd.splat(mean);
    // Centred values go back to the row and are read again: lanes beyond its end must add nothing to the squares.
    let squares = sum_over!(simd, row, |values, sum| {
        let difference = simd.sub(simd.read(values), mean);
        simd.write(values, difference);
        let centred = simd.read(values);
        simd.mul_add(centred, centred, sum)
    });
    let variance = squares / width as f32;
    let inverse = simd.splat(1.0 / (variance + norm.eps).sqrt());
    let (scales, shifts) = (norm.scale.chunks_exact(S::LANES), norm.shift.chunks_exact(S::LANES));
    let rest_of_norm = (scales.remainder(), shifts.remainder());
    let mut vectors = row.chunks_exact_mut(S::LANES);
    for (values, (scale, shift)) in (&mut vectors).zip(scales.zip(shifts)) {
        scale_and_shift(simd, values, inverse, scale, shift);
    }
    let rest = vectors.into_remainder();
    if !rest.is_empty() {
        scale_and_shift(simd, rest, inverse, rest_of_norm.0, rest_of_norm.1);
    }
}

#[inline(always)]
fn scale_and_shift<S: Simd>(simd: S, values: &mut [f32], inverse: S::Vector, scale: &[f32], shift: &[f32]) {
    let unit = simd.mul(simd.read(values), inverse);
    let result = simd.mul_add(unit, simd.read(scale), simd.read(shift));
    simd.write(values, result);
}
