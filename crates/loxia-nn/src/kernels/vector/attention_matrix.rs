//! Softmax attention by a matrix unit, of numbers rounded to bfloat16; sums, softmax and everything else in f32.
//!
//! For 8-bit models only, whose queries, keys and values carry larger errors already. As in [`super::attention`] one
//! head at a time; its keys and values are packed as panels of *pairs*, two numbers that the unit multiplies at once.

use super::attention::{add_bias, pack_keys};
use super::elementwise::short_exp2;
use super::halves::{pair, round};
use super::matrix::{MatrixUnit, PAIRED, SIDE};
use super::{Simd, Task};
use crate::kernels::math::LOG2_E;
use crate::kernels::{Attention, AttentionScratch};

/// Keys, or columns of values, in a panel.
const PANEL: usize = PAIRED;

/// Attention of some queries of one sequence.
pub(in crate::kernels) struct AttendByMatrix<'a, U> {
    pub(in crate::kernels) unit: U,
    pub(in crate::kernels) work: &'a Attention<'a>,
    pub(in crate::kernels) scratch: &'a mut AttentionScratch,
    pub(in crate::kernels) out: &'a mut [f32],
}

impl<U: MatrixUnit> Task for AttendByMatrix<'_, U> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        assert_eq!(2 * S::LANES, PANEL, "no matrix unit goes with vectors of {} values", S::LANES);
        let AttendByMatrix { mut unit, work, scratch, out } = self;
        let (keys, width) = (work.count.next_multiple_of(PANEL), work.width().next_multiple_of(PANEL));
        // Not a power of two apart, as rows of so many keys often would be.
        let stride = keys + SIDE;
        let [mut current, mut next] = split(scratch.scores.sized(2 * SIDE * stride));
        let sums = scratch.sums.sized(SIDE * width);
        let transposed = scratch.keys.sized(keys * work.width());
        let key_pairs = scratch.key_pairs.sized(keys * width / 2);
        let value_pairs = scratch.value_pairs.sized(keys * width / 2);
        let tiles = work.places.len().div_ceil(SIDE);
        let queries = scratch.queries.sized(tiles * SIDE * width);
        // Behind the width of a head they stay 0.
        queries.fill(0);
        let (panels, missing) = (keys / PANEL, Missing::of(work.count));
        for head in 0..work.heads() {
            pack_keys(simd, work, head, transposed);
            pair_keys(simd, work.width(), width, transposed, key_pairs);
            pair_values(simd, work, head, keys, value_pairs);
            for (row, queries) in queries.chunks_exact_mut(width).take(work.places.len()).enumerate() {
                round(simd, work.queries(head).row(row, work.width()), queries);
            }
            let mut inverses = [0.0; SIDE];
            // Each turn the unit sums up the values of one tile of queries and the scores of another, while the
            // scores of the one between become exponentials.
            for turn in 0..=tiles + 1 {
                let summed = turn.checked_sub(2);
                if summed.is_some() {
                    for (panel, pairs) in value_pairs.chunks_exact(keys / 2 * PANEL).enumerate() {
                        let shares = bytemuck::cast_slice(next);
                        unit.multiply_halves(shares, 2 * stride, pairs, &mut sums[panel * PANEL..], width);
                    }
                }
                let summed = summed.map(|tile| (tile, inverses));
                let mut scoring = Scoring {
                    queries: queries.get(turn * SIDE * width..).unwrap_or(&[]),
                    width,
                    pairs: key_pairs.chunks_exact(width / 2 * PANEL),
                    scores: &mut *next,
                    stride,
                    made: 0,
                };
                if let Some(tile) = turn.checked_sub(1).filter(|&tile| tile < tiles) {
                    let places = &work.places[tile * SIDE..work.places.len().min((tile + 1) * SIDE)];
                    for (row, &place) in places.iter().enumerate() {
                        scoring.go_on(&mut unit, (row + 1) * panels / places.len());
                        let scores = &mut current[row * stride..][..keys];
                        inverses[row] = 1.0 / softmax(simd, work, head, place as usize, &missing, scores);
                    }
                }
                scoring.go_on(&mut unit, panels);
                if let Some((tile, inverses)) = summed {
                    let rows = SIDE.min(work.places.len() - tile * SIDE);
                    for (row, &inverse) in inverses[..rows].iter().enumerate() {
                        let out = &mut out[(tile * SIDE + row) * work.hidden() + head * work.width()..]
                            [..work.width()];
                        let sums = &sums[row * width..][..width];
                        for (out, sums) in out.chunks_mut(S::LANES).zip(sums.chunks_exact(S::LANES)) {
                            simd.write(out, simd.mul(simd.read(sums), simd.splat(inverse)));
                        }
                    }
                }
                std::mem::swap(&mut current, &mut next);
            }
        }
    }
}

/// Scores of a tile of queries in the making, panel by panel of keys.
struct Scoring<'a> {
    /// From the tile's first on; empty if there is no such tile.
    queries: &'a [u16],
    width: usize,
    /// Those that were not used yet.
    pairs: std::slice::ChunksExact<'a, u32>,
    scores: &'a mut [f32],
    stride: usize,
    made: usize,
}

impl Scoring<'_> {
    /// Scores up to so many panels in all.
    #[inline(always)]
    fn go_on(&mut self, unit: &mut impl MatrixUnit, panels: usize) {
        while self.made < panels && !self.queries.is_empty() {
            let Some(pairs) = self.pairs.next() else { break };
            let scores = &mut self.scores[self.made * PANEL..];
            unit.multiply_halves(self.queries, self.width, pairs, scores, self.stride);
            self.made += 1;
        }
    }
}

/// Both halves.
fn split(values: &mut [f32]) -> [&mut [f32]; 2] {
    let (one, other) = values.split_at_mut(values.len() / 2);
    [one, other]
}

/// Replaces a query's scores by exponentials, in bfloat16 and therefore half as long, and returns their sum.
#[inline(always)]
fn softmax<S: Simd>(
    simd: S,
    work: &Attention<'_>,
    head: usize,
    place: usize,
    missing: &Missing,
    scores: &mut [f32],
) -> f32 {
    let factor = match work.bias {
        None => work.scale() * LOG2_E,
        Some(bias) => {
            add_bias(simd, scores, work.scale(), bias.row(head, place, work.count));
            LOG2_E
        }
    };
    let largest = largest(simd, missing, scores);
    exponentials(simd, missing, scores, largest, factor)
}

/// What is added to the scores of the last panel: nothing, or minus infinity where there is no key, for then nothing is
/// larger, and its share is nothing beside others. Written into the scores instead it would have to be waited for.
struct Missing([f32; PANEL]);

impl Missing {
    fn of(count: usize) -> Self {
        let there = (count + PANEL - 1) % PANEL + 1;
        Missing(std::array::from_fn(|key| if key < there { 0.0 } else { f32::NEG_INFINITY }))
    }
}

/// Panels of keys, `[width / 2][PANEL]` pairs each, from transposed ones, `[work_width][PANEL]`.
#[inline(always)]
fn pair_keys<S: Simd>(simd: S, work_width: usize, width: usize, transposed: &[f32], pairs: &mut [u32]) {
    let panels = pairs.chunks_exact_mut(width / 2 * PANEL);
    for (pairs, transposed) in panels.zip(transposed.chunks_exact(work_width * PANEL)) {
        let (filled, rest) = pairs.split_at_mut(work_width.div_ceil(2) * PANEL);
        for (pairs, rows) in filled.chunks_exact_mut(PANEL).zip(transposed.chunks(2 * PANEL)) {
            let (low, high) = rows.split_at(PANEL);
            pair(simd, low, high, pairs);
        }
        rest.fill(0);
    }
}

/// Panels of values, `[keys / 2][PANEL]` pairs each; keys and columns that are not there are 0.
#[inline(always)]
fn pair_values<S: Simd>(simd: S, work: &Attention<'_>, head: usize, keys: usize, pairs: &mut [u32]) {
    for (panel, pairs) in pairs.chunks_exact_mut(keys / 2 * PANEL).enumerate() {
        let columns = work.values(head).from(0, panel * PANEL);
        let width = PANEL.min(work.width() - panel * PANEL);
        let row = |key: usize| if key < work.count { columns.row(key, width) } else { &[][..] };
        for (index, pairs) in pairs.chunks_exact_mut(PANEL).enumerate() {
            pair(simd, row(2 * index), row(2 * index + 1), pairs);
        }
    }
}

#[inline(always)]
fn largest<S: Simd>(simd: S, missing: &Missing, scores: &[f32]) -> S::Vector {
    let mut largest = [simd.splat(f32::NEG_INFINITY); 2];
    let (whole, last) = scores.split_at(scores.len() - PANEL);
    for scores in whole.chunks_exact(PANEL) {
        for (vector, largest) in largest.iter_mut().enumerate() {
            *largest = simd.max(*largest, simd.read(&scores[vector * S::LANES..]));
        }
    }
    for (vector, largest) in largest.iter_mut().enumerate() {
        let score = simd.read(&last[vector * S::LANES..]);
        *largest = simd.max(*largest, simd.add(score, simd.read(&missing.0[vector * S::LANES..])));
    }
    simd.max(largest[0], largest[1])
}

/// Replaces each score by `2^(factor · (score - largest))`, rounded, and returns the sum of these.
#[inline(always)]
fn exponentials<S: Simd>(
    simd: S,
    missing: &Missing,
    scores: &mut [f32],
    largest: S::Vector,
    factor: f32,
) -> f32 {
    let offset = simd.splat(-factor * simd.largest(largest));
    let factor = simd.splat(factor);
    let mut sums = [simd.splat(0.0); 2];
    let last = scores.len() - PANEL;
    assert!(last.is_multiple_of(PANEL) && PANEL == 2 * S::LANES);
    let scores = scores.as_mut_ptr();
    for first in (0..=last).step_by(PANEL) {
        for (vector, sum) in sums.iter_mut().enumerate() {
            let at = first + vector * S::LANES;
            // SAFETY: a panel is two vectors, and a whole one is left. What is written, in half the space from the
            // beginning on, is never beyond what was read.
            unsafe {
                let mut score = simd.load(scores.add(at));
                if first == last {
                    score = simd.add(score, simd.read(&missing.0[vector * S::LANES..]));
                }
                let share = short_exp2(simd, simd.mul_add(score, factor, offset));
                simd.store_halves(scores.cast::<u16>().add(at), share);
                *sum = simd.add(*sum, share);
            }
        }
    }
    simd.sum(simd.add(sums[0], sums[1]))
}
