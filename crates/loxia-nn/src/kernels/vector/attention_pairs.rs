//! Softmax attention by dot products of pairs of bfloat16 numbers; sums, softmax and everything else in f32.
//!
//! For 8-bit models only, whose queries, keys and values carry larger errors already. As in [`super::attention`] one
//! head at a time, and tiles of queries while their scores are in the first cache; keys were kept in pairs of
//! neighbouring columns, values in pairs of neighbouring keys ([`super::keep_pairs`]), of which an instruction
//! multiplies two at once.

use super::attention::add_bias;
use super::elementwise::short_exp2;
use super::halves::round;
use super::int8::prefetch_share;
use super::keep_pairs::PANEL_VECTORS as VECTORS;
use super::tile::{Sums, for_rows};
use super::{MOST_LANES, Simd, Task};
use crate::kernels::math::LOG2_E;
use crate::kernels::{Attention, AttentionScratch, SLOTS};

/// Numbers in a cache line.
const LINE: usize = 16;

/// Attention of some queries of one sequence.
pub(in crate::kernels) struct AttendInPairs<'a> {
    pub(in crate::kernels) work: &'a Attention<'a>,
    pub(in crate::kernels) scratch: &'a mut AttentionScratch,
    pub(in crate::kernels) out: &'a mut [f32],
}

impl Task for AttendInPairs<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AttendInPairs { work, scratch, out } = self;
        let (keys, width) = (work.count.next_multiple_of(SLOTS), work.width().next_multiple_of(SLOTS));
        // Not a power of two apart, as rows of so many keys often would be.
        let stride = keys + 16;
        let scores = scratch.scores.sized(S::TILE_ROWS * stride);
        // Behind the width of a head they stay 0.
        let rows = scratch.queries.sized(S::TILE_ROWS * width);
        rows.fill(0);
        for head in 0..work.heads() {
            let [key_pairs, value_pairs] = work.pairs(head);
            let packed = Head { head, keys, width, stride, key_pairs, value_pairs };
            let outs = out.chunks_mut(S::TILE_ROWS * work.hidden());
            let tiles = outs.len();
            for (index, (out, places)) in outs.zip(work.places.chunks(S::TILE_ROWS)).enumerate() {
                let queries = work.queries(head).from(index * S::TILE_ROWS, 0);
                for (row, halves) in rows.chunks_exact_mut(width).take(places.len()).enumerate() {
                    round(simd, queries.row(row, work.width()), halves);
                }
                ask_for_queries(simd, work, head, (index + 1) * S::TILE_ROWS);
                if head + 1 < work.heads() {
                    // Other threads have made many of them: they are far away.
                    for pairs in work.pairs(head + 1) {
                        prefetch_share(simd, pairs, index, tiles);
                    }
                }
                let queries = bytemuck::cast_slice(rows);
                for_rows!(
                    places.len(),
                    run_tile::<S, VECTORS>(simd, work, &packed, queries, places, scores, out)
                );
            }
        }
    }
}

/// Asks for the queries of the tile from row `first` on, or behind the last one of the next head's first tile: they lie
/// far apart, and each would be waited for.
#[inline(always)]
fn ask_for_queries<S: Simd>(simd: S, work: &Attention<'_>, head: usize, first: usize) {
    let count = work.places.len();
    let (head, first) = if first < count { (head, first) } else { (head + 1, 0) };
    if head < work.heads() {
        let queries = work.queries(head);
        for row in first..count.min(first + S::TILE_ROWS) {
            let line = queries.row(row, work.width()).chunks(LINE);
            line.for_each(|values| simd.prefetch(values.as_ptr().cast()));
        }
    }
}

/// One head's keys and values.
struct Head<'a> {
    head: usize,
    /// Numbers of keys and columns with those that are not there.
    keys: usize,
    width: usize,
    /// Distance of rows of scores.
    stride: usize,
    /// Panels, `[width / 2][panel]` pairs each.
    key_pairs: &'a [u32],
    /// Panels, `[keys / 2][panel]` pairs each.
    value_pairs: &'a [u32],
}

/// A tile as a task of its own: inlined into the loops around it, it would lose registers to them.
struct Tile<'a, const ROWS: usize, const VECTORS: usize> {
    work: &'a Attention<'a>,
    packed: &'a Head<'a>,
    queries: &'a [u32],
    places: &'a [u32],
    scores: &'a mut [f32],
    out: &'a mut [f32],
}

#[inline(always)]
fn run_tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    work: &Attention<'_>,
    packed: &Head<'_>,
    queries: &[u32],
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
        let &Head { head, keys, width, stride, key_pairs, value_pairs } = packed;
        let panel = VECTORS * S::LANES;

        let mut largest = [simd.splat(f32::NEG_INFINITY); ROWS];
        let whole = keys / panel * panel;
        for (index, pairs) in key_pairs.chunks(panel * width / 2).enumerate() {
            let to = Scores { first: index * panel, count: work.count, stride, values: &mut *scores };
            if index * panel < whole {
                let sums = accumulate::<S, ROWS, VECTORS>(simd, queries, width / 2, pairs);
                to.write(simd, sums, &mut largest);
            } else {
                let sums = accumulate::<S, ROWS, 1>(simd, queries, width / 2, pairs);
                to.write(simd, sums, &mut largest);
            }
        }

        let factor = match work.bias {
            None => work.scale() * LOG2_E,
            Some(bias) => {
                for (row, largest) in largest.iter_mut().enumerate() {
                    let bias = bias.row(head, places[row] as usize, work.count);
                    *largest = add_bias(simd, &mut scores[row * stride..][..keys], work.scale(), bias);
                }
                LOG2_E
            }
        };
        let mut inverses = [0.0; ROWS];
        let mut groups = inverses.chunks_exact_mut(TOGETHER);
        let mut row = 0;
        for inverses in &mut groups {
            let of_rows = (&mut scores[row * stride..], &largest[row..]);
            exponentials::<S, TOGETHER>(simd, of_rows, stride, keys, factor, inverses);
            row += TOGETHER;
        }
        for inverse in groups.into_remainder().chunks_mut(1) {
            let of_rows = (&mut scores[row * stride..], &largest[row..]);
            exponentials::<S, 1>(simd, of_rows, stride, keys, factor, inverse);
            row += 1;
        }

        let shares: &[u32] = bytemuck::cast_slice(scores);
        let whole = width / panel * panel;
        for (index, pairs) in value_pairs.chunks(panel * keys / 2).enumerate() {
            let to = Outputs { first: index * panel, work, head, inverses: &inverses, values: &mut *out };
            if index * panel < whole {
                to.write(simd, &accumulate::<S, ROWS, VECTORS>(simd, shares, stride, pairs));
            } else {
                to.write(simd, &accumulate::<S, ROWS, 1>(simd, shares, stride, pairs));
            }
        }
    }
}

/// The product of `ROWS` rows of pairs, `stride` apart, and a panel of pairs, `[depth][VECTORS · LANES]`.
#[inline(always)]
fn accumulate<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    rows: &[u32],
    stride: usize,
    panel: &[u32],
) -> Sums<S, ROWS, VECTORS> {
    let depth = panel.len() / (VECTORS * S::LANES);
    assert!(rows.len() >= (ROWS - 1) * stride + depth, "a tile's rows end before its panel");
    let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
    let panel = panel.as_ptr();
    let rows: [_; ROWS] = std::array::from_fn(|row| rows[row * stride..].as_ptr());
    for k in 0..depth {
        let mut pairs = [simd.splat_ints(0); VECTORS];
        for (vector, pairs) in pairs.iter_mut().enumerate() {
            // SAFETY: k < depth, so these lanes end within the panel's depth · VECTORS · LANES pairs.
            *pairs = unsafe { simd.load_ints(panel.add((k * VECTORS + vector) * S::LANES).cast()) };
        }
        for (sums, row) in sums.iter_mut().zip(rows) {
            // SAFETY: k < depth, and by the assertion above the last row has as many pairs.
            let pair = simd.splat_ints(unsafe { *row.add(k) } as i32);
            for (sum, &pairs) in sums.iter_mut().zip(&pairs) {
                *sum = simd.dot_pairs(*sum, pair, pairs);
            }
        }
    }
    sums
}

/// Where the scores of a panel of keys go.
struct Scores<'a> {
    /// First key of the panel.
    first: usize,
    /// How many keys there are.
    count: usize,
    stride: usize,
    values: &'a mut [f32],
}

impl Scores<'_> {
    /// Writes them and sees which are largest.
    #[inline(always)]
    fn write<S: Simd, const ROWS: usize, const VECTORS: usize>(
        self,
        simd: S,
        mut sums: Sums<S, ROWS, VECTORS>,
        largest: &mut [S::Vector; ROWS],
    ) {
        let last = self.first + (VECTORS - 1) * S::LANES;
        if self.count < last + S::LANES {
            for vector in 0..VECTORS {
                let missing = missing(simd, self.count.saturating_sub(self.first + vector * S::LANES));
                sums.iter_mut().for_each(|sums| sums[vector] = simd.add(sums[vector], missing));
            }
        }
        assert!(self.values.len() >= (ROWS - 1) * self.stride + last + S::LANES);
        for (row, sums) in sums.iter().enumerate() {
            for (vector, &score) in sums.iter().enumerate() {
                largest[row] = simd.max(largest[row], score);
                let at = row * self.stride + self.first + vector * S::LANES;
                // SAFETY: by the assertion there is room for the last vector of the last row.
                unsafe { simd.store(self.values.as_mut_ptr().add(at), score) };
            }
        }
    }
}

/// What is added to a vector of scores of which only some keys are there: of the others nothing is larger, and their
/// share is nothing beside others.
#[inline(always)]
fn missing<S: Simd>(simd: S, there: usize) -> S::Vector {
    let addend: [f32; MOST_LANES] =
        std::array::from_fn(|lane| if lane < there { 0.0 } else { f32::NEG_INFINITY });
    simd.read(&addend)
}

/// Where the weighted sums of a panel of columns go.
struct Outputs<'a> {
    /// First column of the panel.
    first: usize,
    work: &'a Attention<'a>,
    head: usize,
    inverses: &'a [f32],
    values: &'a mut [f32],
}

impl Outputs<'_> {
    #[inline(always)]
    fn write<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S, sums: &Sums<S, ROWS, VECTORS>) {
        let (hidden, width) = (self.work.hidden(), self.work.width());
        for (row, sums) in sums.iter().enumerate() {
            let out = &mut self.values[row * hidden + self.head * width..][self.first..width];
            for (vector, &sum) in sums.iter().enumerate() {
                let result = simd.mul(sum, simd.splat(self.inverses[row]));
                let columns =
                    vector * S::LANES..width.saturating_sub(self.first).min((vector + 1) * S::LANES);
                simd.write(out.get_mut(columns).unwrap_or(&mut []), result);
            }
        }
    }
}

/// Rows whose exponentials are made together: of one row they are not enough to keep the processor busy, for the sum is a
/// chain, and so is what its beginning and its end wait for.
const TOGETHER: usize = 4;

/// Replaces the first `count` scores of each of `ROWS` rows, `stride` apart, by `2^(factor · (score - largest))`, rounded
/// and therefore in half the space, and tells one by the sum of these.
#[inline(always)]
fn exponentials<S: Simd, const ROWS: usize>(
    simd: S,
    (scores, largest): (&mut [f32], &[S::Vector]),
    stride: usize,
    count: usize,
    factor: f32,
    inverses: &mut [f32],
) {
    let mut offsets = [simd.splat(0.0); ROWS];
    for (offset, &largest) in offsets.iter_mut().zip(largest) {
        *offset = simd.splat(-factor * simd.largest(largest));
    }
    let factor = simd.splat(factor);
    let mut sums = [simd.splat(0.0); ROWS];
    assert!(count.is_multiple_of(S::LANES) && scores.len() >= (ROWS - 1) * stride + count);
    let scores = scores.as_mut_ptr();
    for first in (0..count).step_by(S::LANES) {
        for (row, (sum, &offset)) in sums.iter_mut().zip(&offsets).enumerate() {
            // SAFETY: by the assertion a whole vector is left in each row. What is written, in half the space from the
            // row's beginning on, is never beyond what was read.
            unsafe {
                let scores = scores.add(row * stride);
                let share = short_exp2(simd, simd.mul_add(simd.load(scores.add(first)), factor, offset));
                simd.store_halves(scores.cast::<u16>().add(first), share);
                *sum = simd.add(*sum, share);
            }
        }
    }
    for (inverse, &sum) in inverses.iter_mut().zip(&sums) {
        *inverse = 1.0 / simd.sum(sum);
    }
}
