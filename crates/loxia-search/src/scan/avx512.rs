//! The kernels with AVX-512, whose registers hold twice as much and are twice as many.

use std::arch::x86_64::*;

use half::f16;

use super::avx2;
use super::tiles::{AHEAD, LINE, ROWS, STEP, TILES_AHEAD, copy_results, tile_kernels};

tile_kernels! {
    features: "avx512f,avx512bw,avx512vl,avx2,fma,f16c",
    lanes: 16,
    vectors: 4,
    register: __m512,
    zero: _mm512_setzero_ps,
    mul_add: _mm512_fmadd_ps,
    totals: totals,
}

/// Whether this machine has what the kernels need.
pub(super) fn available() -> bool {
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    wide && avx2::available()
}

/// A number that rows are stored in.
pub(super) trait Stored: Copy {
    /// Sixteen of them, in single precision.
    ///
    /// # Safety
    /// The machine must have what [`available`] looks for.
    unsafe fn load(values: &[Self; LANES]) -> __m512;

    /// Fewer than sixteen of them, then zeros.
    ///
    /// # Safety
    /// The machine must have what [`available`] looks for.
    unsafe fn load_part(values: &[Self]) -> __m512;
}

/// A bit for each of fewer than sixteen values.
fn mask<T>(values: &[T]) -> u16 {
    (1 << values.len().min(LANES - 1)) - 1
}

impl Stored for f16 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
    unsafe fn load(values: &[Self; LANES]) -> __m512 {
        // SAFETY: sixteen values of two bytes are the 32 that are read; any alignment will do.
        _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(values.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
    unsafe fn load_part(values: &[Self]) -> __m512 {
        // SAFETY: only what the mask names is read, which are the values or fewer.
        _mm512_cvtph_ps(unsafe { _mm256_maskz_loadu_epi16(mask(values), values.as_ptr().cast()) })
    }
}

impl Stored for f32 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
    unsafe fn load(values: &[Self; LANES]) -> __m512 {
        // SAFETY: sixteen values of four bytes are the 64 that are read; any alignment will do.
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
    unsafe fn load_part(values: &[Self]) -> __m512 {
        // SAFETY: only what the mask names is read, which are the values or fewer.
        unsafe { _mm512_maskz_loadu_ps(mask(values), values.as_ptr()) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
fn totals<const V: usize>(sums: [[__m512; ROWS]; V]) -> [[f32; ROWS]; V] {
    let mut out = [[0.0; ROWS]; V];
    for (four, out) in sums.chunks(VECTORS).zip(out.chunks_mut(VECTORS)) {
        // Quarters of registers hold partial sums of four rows: of one vector, and from here on of up to four.
        let mut parts = [_mm512_setzero_ps(); VECTORS];
        for (part, &rows) in parts.iter_mut().zip(four) {
            *part = quarters(rows);
        }
        let [a, b, c, d] = parts;
        let near = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
        let far = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xdd>(c, d));
        let sums =
            _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(near, far), _mm512_shuffle_f32x4::<0xdd>(near, far));
        let mut all = [0.0; VECTORS * ROWS];
        // SAFETY: sixteen values of four bytes are the 64 that are written; any alignment will do.
        unsafe { _mm512_storeu_ps(all.as_mut_ptr(), sums) };
        out.as_flattened_mut().copy_from_slice(&all[..four.len() * ROWS]);
    }
    out
}

/// Sums over the lanes within each quarter of four registers, side by side.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma,f16c")]
fn quarters([a, b, c, d]: [__m512; ROWS]) -> __m512 {
    let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    _mm512_add_ps(_mm512_shuffle_ps::<0x44>(ab, cd), _mm512_shuffle_ps::<0xee>(ab, cd))
}
