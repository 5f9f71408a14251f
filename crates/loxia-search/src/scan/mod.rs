//! Dot products of many stored rows with a few vectors, at the speed of memory.
//!
//! A search reads whole planes of numbers a few times; each number is used once, so what counts is that
//! conversion and arithmetic keep up with the memory. `portable` is the plain twin, `avx2` (with FMA and
//! F16C) and `avx512`, found at run time, the fast ones. A result depends on its row and its vector alone, not on
//! what else is computed with it; the kernels differ by rounding.
//!
//! # Panics
//! All functions here panic when the lengths do not fit: that is a mistake of the caller, not of data.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
#[cfg(target_arch = "x86_64")]
mod tiles;

use half::f16;

#[cfg(target_arch = "x86_64")]
trait Stored: avx2::Stored + avx512::Stored + portable::Stored {}
#[cfg(not(target_arch = "x86_64"))]
trait Stored: portable::Stored {}
impl Stored for f16 {}
impl Stored for f32 {}

/// Returns what the fastest kernel there is makes of this, if there is one.
macro_rules! on_vectors {
    ($kernel:ident($($argument:expr),*)) => {
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::available() {
                // SAFETY: the features that the function needs were just found.
                return unsafe { avx512::$kernel($($argument),*) };
            }
            if avx2::available() {
                // SAFETY: as above.
                return unsafe { avx2::$kernel($($argument),*) };
            }
        }
    };
}

/// The dot product of each row of `rows` with `x`, in the order of rows.
pub(crate) fn dots_half(rows: &[f16], x: &[f32], out: &mut [f32]) {
    dots(rows, x, out);
}

/// As [`dots_half`], for rows in single precision.
pub(crate) fn dots_single(rows: &[f32], x: &[f32], out: &mut [f32]) {
    dots(rows, x, out);
}

fn dots<T: Stored>(rows: &[T], x: &[f32], out: &mut [f32]) {
    assert_eq!(Some(rows.len()), x.len().checked_mul(out.len()), "one result for each row");
    on_vectors!(dots(rows, x, out));
    portable::dots(rows, x, out);
}

/// The dot product of each of the named rows with `x`, in the order named.
pub(crate) fn dots_half_of(rows: &[f16], named: &[u32], x: &[f32], out: &mut [f32]) {
    dots_of(rows, named, x, out);
}

/// As [`dots_half_of`], for rows in single precision.
pub(crate) fn dots_single_of(rows: &[f32], named: &[u32], x: &[f32], out: &mut [f32]) {
    dots_of(rows, named, x, out);
}

fn dots_of<T: Stored>(rows: &[T], named: &[u32], x: &[f32], out: &mut [f32]) {
    assert_eq!(named.len(), out.len(), "one result for each name");
    on_vectors!(dots_of(rows, named, x, out));
    portable::dots_of(rows, named, x, out);
}

/// The dot product of each vector (`width` numbers each) with each of the named rows: `out` has a row for
/// each vector. The rows are read where they are, so they should be few enough to stay in a cache.
pub(crate) fn cross_dots_half(vectors: &[f32], rows: &[f16], named: &[u32], width: usize, out: &mut [f32]) {
    cross_dots(vectors, rows, named, width, out);
}

/// As [`cross_dots_half`], for rows in single precision.
pub(crate) fn cross_dots_single(vectors: &[f32], rows: &[f32], named: &[u32], width: usize, out: &mut [f32]) {
    cross_dots(vectors, rows, named, width, out);
}

fn cross_dots<T: Stored>(vectors: &[f32], rows: &[T], named: &[u32], width: usize, out: &mut [f32]) {
    let count = vectors.len() / width.max(1);
    assert_eq!(count * width, vectors.len(), "vectors of one width");
    assert!(width == 0 || out.len() == count * named.len(), "one result for each vector and row");
    on_vectors!(cross_dots(vectors, rows, named, width, out));
    portable::cross_dots(vectors, rows, named, width, out);
}

/// Numbers in single precision, times `scale`.
pub(crate) fn widen(values: &[f16], scale: f32, out: &mut [f32]) {
    assert_eq!(values.len(), out.len(), "one place for each number");
    #[cfg(target_arch = "x86_64")]
    if avx2::available() {
        // SAFETY: the features that the function needs were just found.
        return unsafe { avx2::widen(values, scale, out) };
    }
    portable::widen(values, scale, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use loxia_core::Seed;
    use proptest::prelude::*;

    fn exact(row: &[f32], x: &[f32]) -> (f64, f64) {
        let terms = || row.iter().zip(x).map(|(&a, &b)| f64::from(a) * f64::from(b));
        (terms().sum(), terms().map(f64::abs).sum())
    }

    /// Runs a kernel of every set of instructions there is, the plain one included, and gives what each writes into as
    /// many places as asked for.
    macro_rules! on_each {
        ($places:expr, $kernel:ident($($argument:expr),*)) => {{
            let mut results: Vec<Vec<f32>> = vec![vec![f32::NAN; $places]];
            portable::$kernel($($argument,)* &mut results[0]);
            #[cfg(target_arch = "x86_64")]
            {
                if avx2::available() {
                    let mut out = vec![f32::NAN; $places];
                    // SAFETY: the features that the function needs were just found.
                    unsafe { avx2::$kernel($($argument,)* &mut out) };
                    results.push(out);
                }
                if avx512::available() {
                    let mut out = vec![f32::NAN; $places];
                    // SAFETY: as above.
                    unsafe { avx512::$kernel($($argument,)* &mut out) };
                    results.push(out);
                }
            }
            results
        }};
    }

    proptest! {
        #[test]
        fn kernels_agree_on_odd_shapes(
            count in 0usize..11,
            vectors in 1usize..11,
            width in 0usize..150,
            seed in 0u64..1000,
        ) {
            let mut stream = Seed(seed).stream("scan");
            let half: Vec<f16> = (0..count * width).map(|_| f16::from_f64(stream.normal())).collect();
            let mut single = vec![0.0; half.len()];
            widen(&half, 1.0, &mut single);
            prop_assert!(half.iter().zip(&single).all(|(half, single)| half.to_f32() == *single));
            let x: Vec<f32> = (0..vectors * width).map(|_| stream.normal() as f32).collect();
            let named: Vec<u32> = (0..count as u32).rev().collect();
            let crossed = on_each!(vectors * count, cross_dots(&x, &half, &named, width));
            let crossed_single = on_each!(vectors * count, cross_dots(&x, &single, &named, width));
            for vector in 0..vectors {
                let x = &x[vector * width..][..width];
                let of_half = on_each!(count, dots(&half, x));
                let of_single = on_each!(count, dots(&single, x));
                let of_named = on_each!(count, dots_of(&half, &named, x));
                for row in 0..count {
                    let (value, size) = exact(&single[row * width..][..width], x);
                    let back = count - 1 - row;
                    for kernel in 0..of_half.len() {
                        let results = [
                            of_half[kernel][row],
                            of_named[kernel][back],
                            crossed[kernel][vector * count + back],
                            of_single[kernel][row],
                            crossed_single[kernel][vector * count + back],
                        ];
                        for result in results {
                            prop_assert!((f64::from(result) - value).abs() <= 1e-6 * size + 1e-30);
                            // The same bits wherever a row stands and whatever it stands beside.
                            prop_assert_eq!(result.to_bits(), results[0].to_bits());
                        }
                    }
                }
            }
        }
    }
}
