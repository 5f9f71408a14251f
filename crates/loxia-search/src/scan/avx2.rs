//! The kernels with AVX2, FMA and F16C.

use std::arch::x86_64::*;

use half::f16;

use super::tiles::{AHEAD, LINE, ROWS, STEP, TILES_AHEAD, copy_results, tile_kernels};

tile_kernels! {
    features: "avx2,fma,f16c",
    lanes: 8,
    // With three the running sums, vectors and rows would not all fit the sixteen registers.
    vectors: 2,
    register: __m256,
    zero: _mm256_setzero_ps,
    mul_add: _mm256_fmadd_ps,
    totals: totals,
}

/// Whether this machine has what the kernels need.
pub(super) fn available() -> bool {
    // The answers are kept by the standard library: this is a load and a test.
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// A number that rows are stored in.
pub(super) trait Stored: Copy + Default {
    /// Eight of them, in single precision.
    ///
    /// # Safety
    /// The machine must have what [`available`] looks for.
    unsafe fn load(values: &[Self; LANES]) -> __m256;

    /// Fewer than eight of them, then zeros.
    ///
    /// # Safety
    /// The machine must have what [`available`] looks for.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn load_part(values: &[Self]) -> __m256 {
        let mut full = [Self::default(); LANES];
        full[..values.len()].copy_from_slice(values);
        // SAFETY: the caller vouches for the machine.
        unsafe { Self::load(&full) }
    }
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

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn totals<const V: usize>(sums: [[__m256; ROWS]; V]) -> [[f32; ROWS]; V] {
    let mut out = [[0.0; ROWS]; V];
    for ([a, b, c, d], out) in sums.into_iter().zip(&mut out) {
        let pairs = (_mm_hadd_ps(halves(a), halves(b)), _mm_hadd_ps(halves(c), halves(d)));
        // SAFETY: four values of four bytes are the sixteen that are written; any alignment will do.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), _mm_hadd_ps(pairs.0, pairs.1)) };
    }
    out
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn halves(sum: __m256) -> __m128 {
    _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum))
}

/// Numbers in single precision, times `scale`.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn widen(values: &[f16], scale: f32, out: &mut [f32]) {
    let factor = _mm256_set1_ps(scale);
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (targets, target_rest) = out.as_chunks_mut::<LANES>();
    for (chunk, target) in chunks.iter().zip(targets) {
        // SAFETY: the machine has what this function needs, which is what `load` needs; eight values of
        // four bytes are the 32 that are written.
        unsafe { _mm256_storeu_ps(target.as_mut_ptr(), _mm256_mul_ps(f16::load(chunk), factor)) };
    }
    for (value, target) in rest.iter().zip(target_rest) {
        *target = value.to_f32() * scale;
    }
}
