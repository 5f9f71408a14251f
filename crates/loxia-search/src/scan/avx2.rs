//! The kernels with AVX2, FMA and F16C: four rows at a time, one register of running sums each.

use std::arch::x86_64::*;

use half::f16;

const LANES: usize = 8;
const ROWS: usize = 4;

/// Whether this machine has what the kernels need.
pub(super) fn available() -> bool {
    // The answers are kept by the standard library: this is a load and a test.
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dots_half(rows: &[f16], x: &[f32], out: &mut [f32]) {
    blocks(rows, x, out);
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dots_single(rows: &[f32], x: &[f32], out: &mut [f32]) {
    blocks(rows, x, out);
}

/// A number that rows are stored in.
trait Stored: Copy + Default {
    /// Eight of them, in single precision.
    ///
    /// # Safety
    /// The machine must have AVX2 and F16C.
    unsafe fn load(values: &[Self; LANES]) -> __m256;
}

impl Stored for f16 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(values: &[Self; LANES]) -> __m256 {
        // SAFETY: eight values of two bytes are the sixteen that are read; any alignment will do.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(values.as_ptr().cast()) })
    }
}

impl Stored for f32 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load(values: &[Self; LANES]) -> __m256 {
        // SAFETY: eight values of four bytes are the 32 that are read; any alignment will do.
        unsafe { _mm256_loadu_ps(values.as_ptr()) }
    }
}

/// The last block repeats its last row to be full: so every row goes the same way.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn blocks<T: Stored>(rows: &[T], x: &[f32], out: &mut [f32]) {
    let width = x.len();
    for (block, sums) in out.chunks_mut(ROWS).enumerate() {
        let last = sums.len() - 1;
        let four = [0, 1, 2, 3].map(|i: usize| &rows[(block * ROWS + i.min(last)) * width..][..width]);
        sums.copy_from_slice(&four_dots(four, x)[..=last]);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn four_dots<T: Stored>(rows: [&[T]; ROWS], x: &[f32]) -> [f32; ROWS] {
    let (x_chunks, x_rest) = x.as_chunks::<LANES>();
    let [a, b, c, d] = rows.map(|row| row.as_chunks::<LANES>());
    let mut sums = [_mm256_setzero_ps(); ROWS];
    for ((((x, a), b), c), d) in x_chunks.iter().zip(a.0).zip(b.0).zip(c.0).zip(d.0) {
        // SAFETY: the machine has what this function needs, which is what `load` needs.
        let x = unsafe { f32::load(x) };
        for (sum, values) in sums.iter_mut().zip([a, b, c, d]) {
            // SAFETY: as above.
            *sum = _mm256_fmadd_ps(unsafe { T::load(values) }, x, *sum);
        }
    }
    if !x_rest.is_empty() {
        // SAFETY: as above.
        let x = unsafe { f32::load(&padded(x_rest)) };
        for (sum, (_, rest)) in sums.iter_mut().zip([a, b, c, d]) {
            // SAFETY: as above.
            *sum = _mm256_fmadd_ps(unsafe { T::load(&padded(rest)) }, x, *sum);
        }
    }
    let halves = sums.map(|sum| _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum)));
    let pairs = (_mm_hadd_ps(halves[0], halves[1]), _mm_hadd_ps(halves[2], halves[3]));
    let mut out = [0.0; ROWS];
    // SAFETY: four values of four bytes are the sixteen that are written; any alignment will do.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), _mm_hadd_ps(pairs.0, pairs.1)) };
    out
}

#[inline]
fn padded<T: Copy + Default>(rest: &[T]) -> [T; LANES] {
    let mut full = [T::default(); LANES];
    full[..rest.len()].copy_from_slice(rest);
    full
}
