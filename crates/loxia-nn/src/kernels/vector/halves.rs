//! Numbers rounded to bfloat16, one after the other or in pairs.

use super::Simd;

/// A row of numbers, rounded.
#[inline(always)]
pub(super) fn round<S: Simd>(simd: S, row: &[f32], halves: &mut [u16]) {
    assert!(halves.len() >= row.len().next_multiple_of(S::LANES));
    for (values, halves) in row.chunks(S::LANES).zip(halves.chunks_exact_mut(S::LANES)) {
        // SAFETY: the chunk has room for one vector.
        unsafe { simd.store_halves(halves.as_mut_ptr(), simd.read(values)) };
    }
}

/// Pairs of the values of two rows, rounded; values behind the end of a row are 0.
#[inline(always)]
pub(super) fn pair<S: Simd>(simd: S, low: &[f32], high: &[f32], pairs: &mut [u32]) {
    for (vector, pairs) in pairs.chunks_exact_mut(S::LANES).enumerate() {
        let low = simd.read(low.get(vector * S::LANES..).unwrap_or(&[]));
        let high = simd.read(high.get(vector * S::LANES..).unwrap_or(&[]));
        // SAFETY: the chunk has room for one vector of pairs.
        unsafe { simd.store_pairs(pairs.as_mut_ptr(), low, high) };
    }
}
