//! Dot products of many stored rows with one vector, at the speed of memory.
//!
//! A search reads whole planes of numbers a few times; each number is used once, so what counts is that
//! conversion and arithmetic keep up with the memory. `portable` is the plain twin, `avx2` (with FMA and
//! F16C, found at run time) the fast one. A row's result depends on the row and the vector alone, not on
//! its place among the rows; the two kernels differ by rounding.
//!
//! # Panics
//! All functions here panic when the lengths do not fit: that is a mistake of the caller, not of data.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;

use half::f16;

/// The dot product of each row of `rows` with `x`, in the order of rows.
pub(crate) fn dots_half(rows: &[f16], x: &[f32], out: &mut [f32]) {
    assert_eq!(Some(rows.len()), x.len().checked_mul(out.len()), "one result for each row");
    #[cfg(target_arch = "x86_64")]
    if avx2::available() {
        // SAFETY: the features that the function needs were just found.
        return unsafe { avx2::dots_half(rows, x, out) };
    }
    portable::dots_half(rows, x, out);
}

/// As [`dots_half`], for rows in single precision.
pub(crate) fn dots_single(rows: &[f32], x: &[f32], out: &mut [f32]) {
    assert_eq!(Some(rows.len()), x.len().checked_mul(out.len()), "one result for each row");
    #[cfg(target_arch = "x86_64")]
    if avx2::available() {
        // SAFETY: the features that the function needs were just found.
        return unsafe { avx2::dots_single(rows, x, out) };
    }
    portable::dots_single(rows, x, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use loxia_core::Seed;
    use proptest::prelude::*;

    fn exact(rows: &[f32], x: &[f32], row: usize) -> (f64, f64) {
        let terms =
            || rows[row * x.len()..][..x.len()].iter().zip(x).map(|(&a, &b)| f64::from(a) * f64::from(b));
        (terms().sum(), terms().map(f64::abs).sum())
    }

    proptest! {
        #[test]
        fn kernels_agree_on_odd_shapes(count in 0usize..11, width in 0usize..70, seed in 0u64..1000) {
            let mut stream = Seed(seed).stream("scan");
            let half: Vec<f16> = (0..count * width).map(|_| f16::from_f64(stream.normal())).collect();
            let single: Vec<f32> = half.iter().map(|value| value.to_f32()).collect();
            let x: Vec<f32> = (0..width).map(|_| stream.normal() as f32).collect();
            let mut results = vec![vec![f32::NAN; count]; 4];
            dots_half(&half, &x, &mut results[0]);
            dots_single(&single, &x, &mut results[1]);
            portable::dots_half(&half, &x, &mut results[2]);
            portable::dots_single(&single, &x, &mut results[3]);
            for row in 0..count {
                let (value, size) = exact(&single, &x, row);
                for result in &results {
                    prop_assert!((f64::from(result[row]) - value).abs() <= 1e-6 * size + 1e-30);
                }
            }
        }
    }

    #[test]
    fn a_row_has_one_result_wherever_it_stands() {
        let mut stream = Seed(5).stream("scan");
        let width = 37;
        let rows: Vec<f16> = (0..9 * width).map(|_| f16::from_f64(stream.normal())).collect();
        let x: Vec<f32> = (0..width).map(|_| stream.normal() as f32).collect();
        let mut together = vec![0.0; 9];
        dots_half(&rows, &x, &mut together);
        for row in 0..9 {
            let mut alone = [0.0];
            dots_half(&rows[row * width..][..width], &x, &mut alone);
            assert_eq!(alone[0].to_bits(), together[row].to_bits());
        }
    }
}
