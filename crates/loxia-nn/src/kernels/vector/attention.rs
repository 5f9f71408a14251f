//! Softmax attention.
//!
//! One head at a time: its keys are packed as the panels of a product over the head's width, its values as the
//! panels of a product over the keys. Then tiles of queries go through scores, softmax and weighted sum while
//! their scores are in the first cache.

use super::elementwise::exp;
use super::tile::{TileRows, accumulate, for_rows};
use super::{Simd, Task};
use crate::kernels::{Attention, AttentionScratch};

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
        let padded_keys = work.keys().next_multiple_of(panel);
        let scores = self.scratch.scores.sized(S::TILE_ROWS * padded_keys);
        let keys = self.scratch.keys.sized(padded_keys * work.width);
        let values = self.scratch.values.sized(work.keys() * work.width.next_multiple_of(panel));
        for head in 0..work.heads {
            pack_keys(work, head, panel, keys);
            pack_values(work, head, panel, values);
            let packed = Head { head, keys, values, padded_keys };
            let tiles = work.queries.chunks(S::TILE_ROWS * hidden);
            let outs = self.out.chunks_mut(S::TILE_ROWS * hidden);
            for ((queries, out), places) in tiles.zip(outs).zip(work.places.chunks(S::TILE_ROWS)) {
                for_rows!(
                    places.len(),
                    tile::<S, VECTORS>(simd, work, &packed, queries, places, scores, out)
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

#[inline(always)]
fn tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    work: &Attention<'_>,
    packed: &Head<'_>,
    queries: &[f32],
    places: &[u32],
    scores: &mut [f32],
    out: &mut [f32],
) {
    let (hidden, width, keys) = (work.hidden(), work.width, work.keys());
    let panel = VECTORS * S::LANES;
    let zero = [[simd.splat(0.0); VECTORS]; ROWS];

    let rows = TileRows { values: &queries[packed.head * width..], stride: hidden };
    for (index, keys) in packed.keys.chunks_exact(panel * width).enumerate() {
        let sums = accumulate::<S, ROWS, VECTORS>(simd, rows, keys, zero);
        for (row, sums) in sums.iter().enumerate() {
            let scores = &mut scores[row * packed.padded_keys + index * panel..][..panel];
            for (vector, &sum) in sums.iter().enumerate() {
                simd.write(&mut scores[vector * S::LANES..], sum);
            }
        }
    }

    let mut inverses = [0.0; ROWS];
    for (row, inverse) in inverses.iter_mut().enumerate() {
        let scores = &mut scores[row * packed.padded_keys..][..packed.padded_keys];
        let bias = work.bias.map(|bias| bias.row(packed.head, places[row] as usize, keys));
        *inverse = 1.0 / exponentials(simd, scores, keys, work.scale(), bias);
    }

    let rows = TileRows { values: scores, stride: packed.padded_keys };
    for (index, values) in packed.values.chunks_exact(panel * keys).enumerate() {
        let sums = accumulate::<S, ROWS, VECTORS>(simd, rows, values, zero);
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

/// Replaces the scores of `keys` keys by `exp(scaled and biased score - largest)` and returns their sum; the
/// padding behind them becomes 0.
#[inline(always)]
fn exponentials<S: Simd>(simd: S, scores: &mut [f32], keys: usize, scale: f32, bias: Option<&[f32]>) -> f32 {
    scores[keys..].fill(f32::NEG_INFINITY);
    let scale = simd.splat(scale);
    let mut largest = simd.splat(f32::NEG_INFINITY);
    for (index, values) in scores.chunks_exact_mut(S::LANES).enumerate() {
        let mut scaled = simd.mul(simd.read(values), scale);
        if let Some(bias) = bias {
            scaled = simd.add(scaled, simd.read(bias.get(index * S::LANES..).unwrap_or(&[])));
        }
        simd.write(values, scaled);
        largest = simd.max(largest, scaled);
    }
    let largest = simd.splat(simd.largest(largest));
    let mut sum = simd.splat(0.0);
    for values in scores.chunks_exact_mut(S::LANES) {
        let share = exp(simd, simd.sub(simd.read(values), largest));
        simd.write(values, share);
        sum = simd.add(sum, share);
    }
    simd.sum(sum)
}

/// Panels of keys, transposed: `[width][panel]` each; places behind the last key are 0.
#[inline(always)]
fn pack_keys(work: &Attention<'_>, head: usize, panel: usize, packed: &mut [f32]) {
    let (hidden, width) = (work.hidden(), work.width);
    let columns = head * width..(head + 1) * width;
    let blocks = work.keys_values.chunks(panel * 2 * hidden);
    for (block, packed) in blocks.zip(packed.chunks_exact_mut(panel * width)) {
        if block.len() < panel * 2 * hidden {
            packed.fill(0.0);
        }
        for (place, row) in block.chunks_exact(2 * hidden).enumerate() {
            let column = packed[place..].iter_mut().step_by(panel);
            for (to, &from) in column.zip(&row[columns.clone()]) {
                *to = from;
            }
        }
    }
}

/// Panels of values: `[keys][panel]` each; columns behind the head's width are 0.
#[inline(always)]
fn pack_values(work: &Attention<'_>, head: usize, panel: usize, packed: &mut [f32]) {
    let (hidden, width) = (work.hidden(), work.width);
    for (index, packed) in packed.chunks_exact_mut(panel * work.keys()).enumerate() {
        let columns = index * panel..width.min((index + 1) * panel);
        for (row, to) in work.keys_values.chunks_exact(2 * hidden).zip(packed.chunks_exact_mut(panel)) {
            let from = &row[hidden + head * width..][columns.clone()];
            to[..from.len()].copy_from_slice(from);
            to[from.len()..].fill(0.0);
        }
    }
}
