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

/// The exponential function without branches, so that the compiler makes vectors of it.
///
/// Relative error below 3e-7 between -87 and 87; arguments beyond are clamped.
#[inline]
pub(crate) fn fast_exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 87.0);
    // x = n ln 2 + f with |f| at most half of ln 2, ln 2 in two parts to keep the bits of f.
    let n = (x * std::f32::consts::LOG2_E + 12_582_912.0) - 12_582_912.0;
    let f = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let tail = 1.388_889e-3f32.mul_add_plain(f, 8.333_334e-3);
    let poly = tail.mul_add_plain(f, 4.166_666_7e-2).mul_add_plain(f, 1.666_666_7e-1);
    let poly = poly.mul_add_plain(f, 0.5).mul_add_plain(f, 1.0).mul_add_plain(f, 1.0);
    poly * f32::from_bits(((n as i32 + 127) as u32) << 23)
}

trait PlainMulAdd {
    fn mul_add_plain(self, factor: f32, term: f32) -> f32;
}

impl PlainMulAdd for f32 {
    // `f32::mul_add` is a library call on machines without the instruction.
    #[inline]
    fn mul_add_plain(self, factor: f32, term: f32) -> f32 {
        self * factor + term
    }
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
