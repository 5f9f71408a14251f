//! Transposing blocks with AVX.

use std::arch::x86_64::*;

/// Transposes a block of 8 rows of 8 values.
///
/// # Safety
/// The machine must have AVX; 8 rows of 8 values must be readable from `from`, `stride` apart, and writable at
/// `to`, `to_stride` apart.
#[inline(always)]
pub(super) unsafe fn transpose8(from: *const f32, stride: usize, to: *mut f32, to_stride: usize) {
    // SAFETY: the caller vouches for the pointers and the instructions.
    unsafe {
        let row = |index: usize| _mm256_loadu_ps(from.add(index * stride));
        let (r0, r1, r2, r3, r4, r5, r6, r7) =
            (row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7));
        // Pairs of values of two rows, then quads of four, then the halves of the registers.
        let (a0, a1) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
        let (a2, a3) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
        let (a4, a5) = (_mm256_unpacklo_ps(r4, r5), _mm256_unpackhi_ps(r4, r5));
        let (a6, a7) = (_mm256_unpacklo_ps(r6, r7), _mm256_unpackhi_ps(r6, r7));
        let (b0, b1) = (_mm256_shuffle_ps::<0x44>(a0, a2), _mm256_shuffle_ps::<0xee>(a0, a2));
        let (b2, b3) = (_mm256_shuffle_ps::<0x44>(a1, a3), _mm256_shuffle_ps::<0xee>(a1, a3));
        let (b4, b5) = (_mm256_shuffle_ps::<0x44>(a4, a6), _mm256_shuffle_ps::<0xee>(a4, a6));
        let (b6, b7) = (_mm256_shuffle_ps::<0x44>(a5, a7), _mm256_shuffle_ps::<0xee>(a5, a7));
        _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(b0, b4));
        _mm256_storeu_ps(to.add(to_stride), _mm256_permute2f128_ps::<0x20>(b1, b5));
        _mm256_storeu_ps(to.add(2 * to_stride), _mm256_permute2f128_ps::<0x20>(b2, b6));
        _mm256_storeu_ps(to.add(3 * to_stride), _mm256_permute2f128_ps::<0x20>(b3, b7));
        _mm256_storeu_ps(to.add(4 * to_stride), _mm256_permute2f128_ps::<0x31>(b0, b4));
        _mm256_storeu_ps(to.add(5 * to_stride), _mm256_permute2f128_ps::<0x31>(b1, b5));
        _mm256_storeu_ps(to.add(6 * to_stride), _mm256_permute2f128_ps::<0x31>(b2, b6));
        _mm256_storeu_ps(to.add(7 * to_stride), _mm256_permute2f128_ps::<0x31>(b3, b7));
    }
}
