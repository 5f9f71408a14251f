//! Kernels on vectors.

use crate::linalg::{Dense, product_nt};

/// `exp(-|x - y|^2 / (2 width^2))` between unit rows.
pub(crate) fn gaussian_of_units(a: &Dense, b: &Dense, width: f64) -> Dense {
    let mut kernel = product_nt(a, b);
    let scale = 1.0 / (width * width);
    for value in kernel.values_mut() {
        // Between unit vectors the squared distance is 2 - 2 x.y.
        *value = ((f64::from(*value) - 1.0) * scale).exp() as f32;
    }
    kernel
}

/// Rows scaled to length 1; a row of zeros stays.
pub(crate) fn unit_rows(mut matrix: Dense) -> Dense {
    for row in 0..matrix.rows() {
        make_unit(matrix.row_mut(row));
    }
    matrix
}

/// Scaled to length 1; zeros stay.
pub(crate) fn make_unit(vector: &mut [f32]) {
    let norm = vector.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    let scale = (1.0 / norm.max(1e-12)) as f32;
    vector.iter_mut().for_each(|value| *value *= scale);
}

/// Adds `scale * deviation * exp((cosine - 1) * inverse_width)` to each value.
pub(crate) fn add_exponentials(
    values: &mut [f32],
    cosines: &[f32],
    deviations: &[f32],
    scale: f32,
    inverse_width: f32,
) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature that the function needs was just found.
            return unsafe { add_exponentials_avx512(values, cosines, deviations, scale, inverse_width) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { add_exponentials_avx2(values, cosines, deviations, scale, inverse_width) };
        }
    }
    add_exponentials_inline(values, cosines, deviations, scale, inverse_width);
}

/// The same code and the same bits in wider vectors: nothing here is fused.
macro_rules! in_wider_vectors {
    ($name:ident, $features:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $name(values: &mut [f32], cosines: &[f32], deviations: &[f32], scale: f32, inverse_width: f32) {
            add_exponentials_inline(values, cosines, deviations, scale, inverse_width);
        }
    };
}
in_wider_vectors!(add_exponentials_avx2, "avx2");
in_wider_vectors!(add_exponentials_avx512, "avx512f");

#[inline(always)]
fn add_exponentials_inline(
    values: &mut [f32],
    cosines: &[f32],
    deviations: &[f32],
    scale: f32,
    inverse_width: f32,
) {
    for ((value, cosine), deviation) in values.iter_mut().zip(cosines).zip(deviations) {
        *value += scale * deviation * fast_exp((cosine - 1.0) * inverse_width);
    }
}

/// The exponential function without branches, so that the compiler makes vectors of it.
///
/// Relative error below 3e-7 between -87 and 87; arguments beyond are clamped.
#[inline(always)]
pub(crate) fn fast_exp(x: f32) -> f32 {
    // Adding this puts the nearest integer into the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 87.0);
    // x = n ln 2 + f with |f| at most half of ln 2, ln 2 in two parts to keep the bits of f.
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let f = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    // `f32::mul_add` would be a library call on machines without the instruction.
    let poly = 1.388_889e-3 * f + 8.333_334e-3;
    let poly = (poly * f + 4.166_666_7e-2) * f + 1.666_666_7e-1;
    let poly = ((poly * f + 0.5) * f + 1.0) * f + 1.0;
    // n goes onto the exponent of poly, which lies between 0.7 and 1.5.
    f32::from_bits(poly.to_bits().wrapping_add(rounded.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_exp_is_close_to_exp() {
        for step in -870_000..=870_000 {
            let x = step as f32 / 10_000.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(fast_exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}): relative error {error:e}");
        }
        assert!(fast_exp(-1e9) < 1e-37);
    }
}
