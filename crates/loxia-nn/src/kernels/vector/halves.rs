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

/// The differences of two rows of numbers, rounded.
#[inline(always)]
pub(super) fn round_less<S: Simd>(simd: S, row: &[f32], less: &[f32], halves: &mut [u16]) {
    assert!(row.len() == less.len() && halves.len() >= row.len().next_multiple_of(S::LANES));
    let values = row.chunks(S::LANES).zip(less.chunks(S::LANES));
    for ((values, less), halves) in values.zip(halves.chunks_exact_mut(S::LANES)) {
        // SAFETY: the chunk has room for one vector.
        unsafe { simd.store_halves(halves.as_mut_ptr(), simd.sub(simd.read(values), simd.read(less))) };
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
