//! Products in 8-bit integers by a matrix unit: see [`crate::kernels::int8`] for what the numbers mean.
//!
//! The unit computes beside the vector instructions: while it makes the sums of one block, those of the block before
//! become outputs, a few rows for each step of the unit.

use std::ops::Range;

use super::elementwise::{Map, WithMap, with_short_map};
use super::int8::{meaning, of_code, prefetch_share};
use super::{Simd, Task};
use crate::Activation;
use crate::kernels::int8::{Codes, PackedInt8, PanelInt8, Reach};

/// Rows, words and outputs of one of the unit's registers.
pub(super) const SIDE: usize = 16;
/// Rows of a block.
pub(super) const BLOCK_ROWS: usize = 2 * SIDE;
/// Outputs of a panel.
pub(super) const PANEL: usize = 3 * SIDE;

/// How far codes and weights go, and in what pieces the unit reads them.
pub(in crate::kernels) const REACH: Reach = Reach { step: SIDE, rows: SIDE, ..Reach::WIDE };

/// Sums of a block with a panel.
#[repr(C, align(64))]
pub(in crate::kernels) struct Sums(pub(super) [[i32; PANEL]; BLOCK_ROWS]);

/// Columns of a panel of pairs.
pub(super) const PAIRED: usize = 2 * SIDE;

/// A matrix unit, set up for a thread. Sums of one block at a time are in its registers.
pub(in crate::kernels) trait MatrixUnit {
    /// Starts a block of sums.
    fn start(&mut self);

    /// Adds the products of [`SIDE`] words, from the first of `codes` on, of 16 or 32 rows of `depth` words with as
    /// many words of a panel.
    ///
    /// # Safety
    /// `codes` must be valid for reading that many words of `rows` rows.
    unsafe fn add(&mut self, rows: usize, codes: *const u32, depth: usize, panel: &[u32; SIDE * PANEL]);

    /// Writes the sums of 16 or 32 rows.
    fn write(&mut self, rows: usize, sums: &mut Sums);

    /// The product of 16 rows of bfloat16 numbers, `stride` apart, and a panel of pairs of them, `[depth / 2][PAIRED]`,
    /// into 16 rows of `out`, `out_stride` apart. The depth is a multiple of 32; of a block of sums nothing is left.
    fn multiply_halves(
        &mut self,
        rows: &[u16],
        stride: usize,
        panel: &[u32],
        out: &mut [f32],
        out_stride: usize,
    );
}

/// `out = activation(input · W + b)`.
pub(in crate::kernels) struct ProductByMatrix<'a, U> {
    pub(in crate::kernels) unit: U,
    pub(in crate::kernels) codes: &'a Codes,
    pub(in crate::kernels) weights: &'a PackedInt8,
    pub(in crate::kernels) activation: Activation,
    pub(in crate::kernels) out: &'a mut [f32],
}

impl<U: MatrixUnit> Task for ProductByMatrix<'_, U> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match PANEL / S::LANES {
            3 => with_short_map(self.activation, With::<S, U, 3> { simd, work: self }),
            vectors => unreachable!("no panels of {vectors} vectors with a matrix unit"),
        }
    }
}

struct With<'a, S, U, const VECTORS: usize> {
    simd: S,
    work: ProductByMatrix<'a, U>,
}

impl<S: Simd, U: MatrixUnit, const VECTORS: usize> WithMap for With<'_, S, U, VECTORS> {
    #[inline(always)]
    fn run(self, map: impl Map) {
        let With { simd, work: ProductByMatrix { mut unit, codes, weights, out, .. } } = self;
        let (depth, outputs) = (weights.words(), weights.outputs());
        let rows = out.len() / outputs;
        assert!(depth.is_multiple_of(SIDE), "weights packed for another kernel");
        assert!(codes.words.len() >= rows.next_multiple_of(SIDE) * depth, "codes end before the last block");
        let (blocks, steps) = (rows.div_ceil(BLOCK_ROWS), depth / SIDE);
        let mut both = [const { Sums([[0; PANEL]; BLOCK_ROWS]) }; 2];
        let [mut fresh, mut before] = both.each_mut();
        let mut waiting: Option<Place<'_>> = None;
        let mut panels = weights.panels().peekable();
        let mut column = 0;
        while let Some(panel) = panels.next() {
            let next = panels.peek().map_or(&[][..], |next| next.words);
            for block in 0..blocks {
                let row = block * BLOCK_ROWS;
                let place = Place { panel, column, outputs, row, rows: BLOCK_ROWS.min(rows - row) };
                let read = place.rows.next_multiple_of(SIDE);
                let done = waiting.replace(place);
                unit.start();
                let (parts, _) = panel.words.as_chunks::<{ SIDE * PANEL }>();
                for (step, part) in parts.iter().enumerate() {
                    // SAFETY: step < depth / SIDE, and by the assertion there are `read` rows from this one on.
                    unsafe {
                        unit.add(read, codes.words.as_ptr().add(row * depth + step * SIDE), depth, part)
                    };
                    prefetch_share(simd, next, block * steps + step, blocks * steps);
                    if let Some(place) = done {
                        let share = place.rows.div_ceil(steps);
                        let part = (step * share).min(place.rows)..((step + 1) * share).min(place.rows);
                        finish::<S, VECTORS>(simd, map, codes, before, place, part, out);
                    }
                }
                unit.write(read, fresh);
                std::mem::swap(&mut fresh, &mut before);
            }
            column += PANEL;
        }
        if let Some(place) = waiting {
            finish::<S, VECTORS>(simd, map, codes, before, place, 0..place.rows, out);
        }
    }
}

/// Where a block of sums belongs.
#[derive(Clone, Copy)]
struct Place<'a> {
    panel: PanelInt8<'a>,
    /// First output of the panel, and how many all panels have.
    column: usize,
    outputs: usize,
    row: usize,
    rows: usize,
}

/// Makes outputs of some rows of a block's sums.
#[inline(always)]
fn finish<S: Simd, const VECTORS: usize>(
    simd: S,
    map: impl Map,
    codes: &Codes,
    sums: &Sums,
    place: Place<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    let Place { column, outputs, .. } = place;
    let columns = column..outputs.min(column + PANEL);
    for index in rows {
        let (row, sums) = (place.row + index, &sums.0[index]);
        let scale = simd.splat(codes.scales[row]);
        let mut values = [simd.splat(0.0); VECTORS];
        for (vector, value) in values.iter_mut().enumerate() {
            let sums = simd.read_ints(&sums[vector * S::LANES..]);
            let sums = simd.sub_ints(sums, of_code(simd, codes.zeros[row], place.panel, vector));
            *value = meaning(simd, sums, scale, place.panel, vector);
        }
        let out = &mut out[row * outputs..][columns.clone()];
        for (vector, value) in map.of_all(simd, values).into_iter().enumerate() {
            simd.write(out.get_mut(vector * S::LANES..).unwrap_or(&mut []), value);
        }
    }
}
