//! Keys and values in pairs of bfloat16 numbers, as [`super::attention_pairs`] reads them.
//!
//! Keys are panels of up to [`PANEL_VECTORS`] vectors of keys, `[width / 2][panel]` pairs of neighbouring columns each;
//! values are panels of as many columns, `[keys / 2][panel]` pairs of neighbouring keys each. Columns behind a head's
//! width and keys behind a sequence's last are 0.

use super::halves::pair;
use super::{Simd, Task};
use crate::kernels::{NewRows, PIECE, SLOTS};

/// Vectors in a panel of keys or values; the last panel may have one.
pub(super) const PANEL_VECTORS: usize = 2;

/// Puts rows of a sequence among its keys and values.
pub(in crate::kernels) struct KeepPairs<'a> {
    pub(in crate::kernels) rows: NewRows<'a>,
    pub(in crate::kernels) keys: &'a mut [u32],
    pub(in crate::kernels) values: &'a mut [u32],
}

impl Task for KeepPairs<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let KeepPairs { rows, keys, values } = self;
        let (first, end) = (rows.first, rows.end);
        assert!(first <= end && end <= rows.count, "rows behind the end of their sequence");
        assert!(first.is_multiple_of(PIECE) && (end.is_multiple_of(PIECE) || end == rows.count));
        // Whoever has the last row makes those behind it.
        let end = if end == rows.count { end.next_multiple_of(SLOTS) } else { end };
        keep_keys(simd, rows, first..end, keys);
        keep_values(simd, rows, first..end, values);
    }
}

#[inline(always)]
fn keep_keys<S: Simd>(simd: S, rows: NewRows<'_>, places: std::ops::Range<usize>, pairs: &mut [u32]) {
    let panel = PANEL_VECTORS * S::LANES;
    let keys = rows.count.next_multiple_of(SLOTS);
    let width = 2 * pairs.len() / keys;
    assert!(width.is_multiple_of(SLOTS) && width * keys == 2 * pairs.len(), "panels of another shape");
    let (offset, last) = (rows.first, rows.end);
    for first in places.step_by(PIECE) {
        let start = first / panel * panel;
        let in_panel = panel.min(keys - start);
        let to = &mut pairs[start * width / 2..][..in_panel * width / 2];
        for column in (0..width).step_by(SLOTS) {
            let mut block = [[0u32; SLOTS / 2]; PIECE];
            for (place, halves) in (first..last).zip(&mut block) {
                let halves: &mut [u16] = bytemuck::cast_slice_mut(halves);
                let row = rows.keys.row(place - offset, rows.width);
                for (vector, halves) in halves.chunks_exact_mut(S::LANES).enumerate() {
                    let values = row.get(column + vector * S::LANES..).unwrap_or(&[]);
                    // SAFETY: the chunk has room for one vector.
                    unsafe { simd.store_halves(halves.as_mut_ptr(), simd.read(values)) };
                }
            }
            // SAFETY: 8 rows of 8 pairs are read. The panel has width / 2 rows of `in_panel` pairs, column + 16 <= width
            // by the assertion, and first - start + 8 <= in_panel, for both are multiples of 8.
            unsafe {
                let to = to.as_mut_ptr().cast::<f32>().add(column / 2 * in_panel + first - start);
                simd.transpose8(block.as_ptr().cast(), SLOTS / 2, to, in_panel);
            }
        }
    }
}

#[inline(always)]
fn keep_values<S: Simd>(simd: S, rows: NewRows<'_>, places: std::ops::Range<usize>, pairs: &mut [u32]) {
    let keys = rows.count.next_multiple_of(SLOTS);
    let (offset, last) = (rows.first, rows.end);
    for (index, pairs) in pairs.chunks_mut(PANEL_VECTORS * S::LANES * keys / 2).enumerate() {
        let first = index * PANEL_VECTORS * S::LANES;
        let in_panel = 2 * pairs.len() / keys;
        let row = |place: usize| {
            let row = if place < last { rows.values.row(place - offset, rows.width) } else { &[] };
            row.get(first..).unwrap_or(&[])
        };
        for place in places.clone().step_by(2) {
            pair(simd, row(place), row(place + 1), &mut pairs[place / 2 * in_panel..][..in_panel]);
        }
    }
}
