//! Softmax attention.
//!
//! One head at a time: its keys are packed as the panels of a product over the head's width, its values as the
//! panels of a product over the keys. Then tiles of queries go through scores, softmax and weighted sum while
//! their scores are in the first cache.

use super::elementwise::exp2;
use super::tile::{accumulate, for_rows};
use super::{Simd, Task};
use crate::kernels::math::LOG2_E;
use crate::kernels::{Attention, AttentionScratch, Rows};

/// Vectors in a panel of keys or values: the common head widths, 32 and 64, are whole panels.
const VECTORS: usize = 2;

/// Attention of some queries of one sequence.
pub(in crate::kernels) struct Attend<'a> {
    pub(in crate::kernels) work: &'a Attention<'a>,
    pub(in crate::kernels) scratch: &'a mut AttentionScratch,
    pub(in crate::kernels) out: &'a mut [f32],
}

impl Task for Attend<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let work = self.work;
        let hidden = work.hidden();
        let panel = VECTORS * S::LANES;
        let padded_keys = work.count.next_multiple_of(panel);
        let scores = self.scratch.scores.sized(S::TILE_ROWS * padded_keys);
        let keys = self.scratch.keys.sized(padded_keys * work.width());
        let values = self.scratch.values.sized(work.count * work.width().next_multiple_of(panel));
        for head in 0..work.heads() {
            pack_keys(simd, work, head, keys);
            pack_values(simd, work, head, values);
            let packed = Head { head, keys, values, padded_keys };
            let outs = self.out.chunks_mut(S::TILE_ROWS * hidden);
            for (index, (out, places)) in outs.zip(work.places.chunks(S::TILE_ROWS)).enumerate() {
                let queries = work.queries(head).from(index * S::TILE_ROWS, 0);
                for_rows!(
                    places.len(),
                    run_tile::<S, VECTORS>(simd, work, &packed, queries, places, scores, out)
                );
            }
        }
    }
}

/// One head's packed keys and values.
struct Head<'a> {
    head: usize,
    /// `[padded_keys / panel][width][panel]`
    keys: &'a [f32],
    /// `[padded width / panel][keys][panel]`
    values: &'a [f32],
    padded_keys: usize,
}

/// A tile as a task of its own: inlined into the loops around it, it would lose registers to them.
struct Tile<'a, const ROWS: usize, const VECTORS: usize> {
    work: &'a Attention<'a>,
    packed: &'a Head<'a>,
    queries: Rows<'a>,
    places: &'a [u32],
    scores: &'a mut [f32],
    out: &'a mut [f32],
}

#[inline(always)]
fn run_tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    work: &Attention<'_>,
    packed: &Head<'_>,
    queries: Rows<'_>,
    places: &[u32],
    scores: &mut [f32],
    out: &mut [f32],
) {
    simd.run(Tile::<ROWS, VECTORS> { work, packed, queries, places, scores, out });
}

impl<const ROWS: usize, const VECTORS: usize> Task for Tile<'_, ROWS, VECTORS> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Tile { work, packed, queries, places, scores, out } = self;
        let (hidden, width, keys) = (work.hidden(), work.width(), work.count);
        let panel = VECTORS * S::LANES;
        let zero = [[simd.splat(0.0); VECTORS]; ROWS];

        let mut largest = [simd.splat(f32::NEG_INFINITY); ROWS];
        for (index, panel_keys) in packed.keys.chunks_exact(panel * width).enumerate() {
            let sums = accumulate::<S, ROWS, VECTORS>(simd, queries, panel_keys, zero, || ());
            let whole = (index + 1) * panel <= keys;
            for (row, sums) in sums.iter().enumerate() {
                let scores = &mut scores[row * packed.padded_keys + index * panel..][..panel];
                for (vector, &sum) in sums.iter().enumerate() {
                    simd.write(&mut scores[vector * S::LANES..], sum);
                    if whole {
                        largest[row] = simd.max(largest[row], sum);
                    }
                }
                if !whole {
                    // Keys that are not there: nothing is larger, and their share is nothing beside others.
                    scores[keys - index * panel..].fill(f32::NEG_INFINITY);
                    for values in scores.chunks_exact(S::LANES) {
                        largest[row] = simd.max(largest[row], simd.read(values));
                    }
                }
            }
        }

        let mut inverses = [0.0; ROWS];
        for (row, inverse) in inverses.iter_mut().enumerate() {
            let scores = &mut scores[row * packed.padded_keys..][..packed.padded_keys];
            *inverse = match work.bias {
                None => 1.0 / exponentials(simd, scores, largest[row], work.scale() * LOG2_E),
                Some(bias) => {
                    let bias = bias.row(packed.head, places[row] as usize, keys);
                    let largest = add_bias(simd, scores, work.scale(), bias);
                    1.0 / exponentials(simd, scores, largest, LOG2_E)
                }
            };
        }

        let rows = Rows { values: scores, stride: packed.padded_keys };
        for (index, values) in packed.values.chunks_exact(panel * keys).enumerate() {
            let sums = accumulate::<S, ROWS, VECTORS>(simd, rows, values, zero, || ());
            let columns = index * panel..width.min((index + 1) * panel);
            for (row, (sums, &inverse)) in sums.iter().zip(&inverses).enumerate() {
                let out = &mut out[row * hidden + packed.head * width..][columns.clone()];
                for (vector, &sum) in sums.iter().enumerate() {
                    let result = simd.mul(sum, simd.splat(inverse));
                    simd.write(out.get_mut(vector * S::LANES..).unwrap_or(&mut []), result);
                }
            }
        }
    }
}

/// Scales scores, adds the bias, and returns the largest ones.
#[inline(always)]
pub(super) fn add_bias<S: Simd>(simd: S, scores: &mut [f32], scale: f32, bias: &[f32]) -> S::Vector {
    let scale = simd.splat(scale);
    let mut largest = simd.splat(f32::NEG_INFINITY);
    for (index, values) in scores.chunks_exact_mut(S::LANES).enumerate() {
        let bias = simd.read(bias.get(index * S::LANES..).unwrap_or(&[]));
        let biased = simd.mul_add(simd.read(values), scale, bias);
        simd.write(values, biased);
        largest = simd.max(largest, biased);
    }
    largest
}

/// Replaces each score by `2^(factor · (score - largest))` and returns the sum.
#[inline(always)]
pub(super) fn exponentials<S: Simd>(simd: S, scores: &mut [f32], largest: S::Vector, factor: f32) -> f32 {
    let offset = simd.splat(-factor * simd.largest(largest));
    let factor = simd.splat(factor);
    let mut sum = simd.splat(0.0);
    for values in scores.chunks_exact_mut(S::LANES) {
        let share = exp2(simd, simd.mul_add(simd.read(values), factor, offset));
        simd.write(values, share);
        sum = simd.add(sum, share);
    }
    simd.sum(sum)
}

/// Panels of keys, transposed: `[width][panel]` each; places behind the last key are 0.
#[inline(always)]
pub(super) fn pack_keys<S: Simd>(simd: S, work: &Attention<'_>, head: usize, packed: &mut [f32]) {
    let (width, keys) = (work.width(), work.keys(head));
    let panel = VECTORS * S::LANES;
    packed[work.count / panel * panel * width..].fill(0.0);
    let blocks = if width.is_multiple_of(8) { work.count / 8 } else { 0 };
    for block in 0..blocks {
        let key = block * 8;
        let from = keys.from(key, 0);
        let to = &mut packed[key / panel * panel * width..][..panel * width];
        assert!(from.values.len() >= 7 * from.stride + width);
        for column in (0..width).step_by(8) {
            // SAFETY: column + 8 <= width: by the assertion 8 rows can be read there; a panel is a multiple of
            // 8 keys wide, so 8 columns from key % panel on lie within the panel's rows.
            unsafe {
                let (from, to) = (from.values.as_ptr().add(column), to.as_mut_ptr());
                simd.transpose8(from, keys.stride, to.add(column * panel + key % panel), panel);
            }
        }
    }
    for key in blocks * 8..work.count {
        let column = packed[key / panel * panel * width + key % panel..].iter_mut().step_by(panel);
        column.zip(keys.row(key, width)).for_each(|(to, &from)| *to = from);
    }
}

/// Panels of values: `[keys][panel]` each; columns behind the head's width are 0.
#[inline(always)]
fn pack_values<S: Simd>(simd: S, work: &Attention<'_>, head: usize, packed: &mut [f32]) {
    let width = work.width();
    let panel = VECTORS * S::LANES;
    for (index, packed) in packed.chunks_exact_mut(panel * work.count).enumerate() {
        let first = index * panel;
        let columns = work.values(head).from(0, first);
        for (key, to) in packed.chunks_exact_mut(panel).enumerate() {
            let from = columns.row(key, panel.min(width - first));
            for (vector, to) in to.chunks_exact_mut(S::LANES).enumerate() {
                simd.write(to, simd.read(from.get(vector * S::LANES..).unwrap_or(&[])));
            }
        }
    }
}
