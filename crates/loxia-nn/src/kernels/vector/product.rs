//! Matrix products with packed weights.
//!
//! The inputs are cut into parts so that a panel's part stays in a near cache while all tiles of rows use it;
//! between parts the sums wait in the output. The part that comes next is asked for while one is at work. Where the rows fit the second cache the parts of one panel follow
//! one another, so that little output is under way; where they do not, all panels of one part do, so that the
//! rows' part is read from far away once. The sums are the same chains of additions either way.

use super::elementwise::activate;
use super::tile::{Ahead, STEP, accumulate, for_rows};
use super::{Simd, Task};
use crate::Activation;
use crate::kernels::{Packed, Rows};

/// `out = activation(input · W + b)`.
pub(in crate::kernels) struct Product<'a> {
    pub(in crate::kernels) input: &'a [f32],
    pub(in crate::kernels) weights: &'a Packed,
    pub(in crate::kernels) activation: Activation,
    pub(in crate::kernels) out: &'a mut [f32],
}

impl Task for Product<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match S::PANEL_VECTORS {
            2 => by_panels::<S, 2>(simd, self),
            3 => by_panels::<S, 3>(simd, self),
            vectors => unreachable!("no product for panels of {vectors} vectors"),
        }
    }
}

/// Bytes of rows that may be expected to stay in the second cache beside panels and sums.
const ROWS_IN_CACHE: usize = 320 << 10;

#[inline(always)]
fn by_panels<S: Simd, const VECTORS: usize>(simd: S, mut work: Product<'_>) {
    let inputs = work.weights.inputs();
    let depth = inputs.div_ceil(inputs.div_ceil(S::DEPTH));
    let (parts, panels) = (inputs.div_ceil(depth), work.weights.panels().len());
    let panels_first = size_of_val(work.input) <= ROWS_IN_CACHE;
    let pass = |step: usize| {
        let (index, part) =
            if panels_first { (step / parts, step % parts) } else { (step % panels, step / panels) };
        (index, part * depth..inputs.min((part + 1) * depth))
    };
    for step in 0..panels * parts {
        let (index, part) = pass(step);
        let next = if step + 1 < panels * parts { pass(step + 1) } else { (0, 0..0) };
        let next = work.weights.part(next.0, next.1);
        run_pass::<S, VECTORS>(simd, &mut work, index, part, next);
    }
}

/// All tiles of rows with a part of one panel.
#[inline(always)]
fn run_pass<S: Simd, const VECTORS: usize>(
    simd: S,
    work: &mut Product<'_>,
    index: usize,
    part: std::ops::Range<usize>,
    next: &[f32],
) {
    let (inputs, outputs) = (work.weights.inputs(), work.weights.outputs());
    let width = VECTORS * S::LANES;
    let first = index * width;
    let columns = first..outputs.min(first + width);
    let last = part.end == inputs;
    let pass = Pass {
        panel: work.weights.part(index, part.clone()),
        bias: last.then_some(work.weights.bias(index)),
        fresh: part.start == 0,
        columns: columns.clone(),
        outputs,
    };
    let tiles = work.input.chunks(S::TILE_ROWS * inputs);
    let count = tiles.len();
    for (tile, (input, out)) in tiles.zip(work.out.chunks_mut(S::TILE_ROWS * outputs)).enumerate() {
        let ahead = Ahead::new(next, tile, count, part.len() / STEP);
        let rows = Rows { values: &input[part.start..], stride: inputs };
        for_rows!(input.len() / inputs, run_tile::<S, VECTORS>(simd, rows, &pass, ahead, out));
        if last {
            activate(simd, work.activation, out, outputs, columns.clone());
        }
    }
}

/// One panel's part in one pass over the inputs.
struct Pass<'a> {
    panel: &'a [f32],
    /// To be added, in the last pass.
    bias: Option<&'a [f32]>,
    /// Whether sums start at 0, and not at what the pass before left in the output.
    fresh: bool,
    columns: std::ops::Range<usize>,
    outputs: usize,
}

/// A tile as a task of its own: inlined into the loops around it, it would lose registers to them.
struct Tile<'a, const ROWS: usize, const VECTORS: usize> {
    rows: Rows<'a>,
    pass: &'a Pass<'a>,
    ahead: Ahead,
    out: &'a mut [f32],
}

#[inline(always)]
fn run_tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    rows: Rows<'_>,
    pass: &Pass<'_>,
    ahead: Ahead,
    out: &mut [f32],
) {
    simd.run(Tile::<ROWS, VECTORS> { rows, pass, ahead, out });
}

impl<const ROWS: usize, const VECTORS: usize> Task for Tile<'_, ROWS, VECTORS> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Tile { rows, pass, mut ahead, out } = self;
        let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
        if !pass.fresh {
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = &out[row * pass.outputs..][pass.columns.clone()];
                for (vector, sum) in sums.iter_mut().enumerate() {
                    *sum = simd.read(left.get(vector * S::LANES..).unwrap_or(&[]));
                }
            }
        }
        let sums = accumulate::<S, ROWS, VECTORS>(simd, rows, pass.panel, sums, || ahead.step(simd));
        for (row, sums) in sums.iter().enumerate() {
            let right = &mut out[row * pass.outputs..][pass.columns.clone()];
            for (vector, &sum) in sums.iter().enumerate() {
                let result = match pass.bias {
                    Some(bias) => simd.add(sum, simd.read(&bias[vector * S::LANES..])),
                    None => sum,
                };
                simd.write(right.get_mut(vector * S::LANES..).unwrap_or(&mut []), result);
            }
        }
    }
}
