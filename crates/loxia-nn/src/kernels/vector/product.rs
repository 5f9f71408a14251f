//! Matrix products with packed weights.
//!
//! For each pass over a part of the inputs: for each panel, all tiles of rows. The panel's part stays in the
//! first cache and the rows in the second. Between passes the sums wait in the output.

use super::elementwise::activate;
use super::tile::{accumulate, for_rows};
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

#[inline(always)]
fn by_panels<S: Simd, const VECTORS: usize>(simd: S, work: Product<'_>) {
    let (inputs, outputs) = (work.weights.inputs(), work.weights.outputs());
    let width = VECTORS * S::LANES;
    let depth = inputs.div_ceil(inputs.div_ceil(S::DEPTH));
    let mut from = 0;
    while from < inputs {
        let to = inputs.min(from + depth);
        for (index, (panel, bias)) in work.weights.panels().enumerate() {
            let first = index * width;
            let columns = first..outputs.min(first + width);
            let pass = Pass {
                panel: &panel[from * width..to * width],
                bias: (to == inputs).then_some(bias),
                fresh: from == 0,
                columns: columns.clone(),
                outputs,
            };
            let tiles = work.input.chunks(S::TILE_ROWS * inputs);
            for (input, out) in tiles.zip(work.out.chunks_mut(S::TILE_ROWS * outputs)) {
                let rows = Rows { values: &input[from..], stride: inputs };
                for_rows!(input.len() / inputs, run_tile::<S, VECTORS>(simd, rows, &pass, out));
            }
            if to == inputs {
                activate(simd, work.activation, work.out, outputs, columns);
            }
        }
        from = to;
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
    out: &'a mut [f32],
}

#[inline(always)]
fn run_tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    rows: Rows<'_>,
    pass: &Pass<'_>,
    out: &mut [f32],
) {
    simd.run(Tile::<ROWS, VECTORS> { rows, pass, out });
}

impl<const ROWS: usize, const VECTORS: usize> Task for Tile<'_, ROWS, VECTORS> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Tile { rows, pass, out } = self;
        let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
        if !pass.fresh {
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = &out[row * pass.outputs..][pass.columns.clone()];
                for (vector, sum) in sums.iter_mut().enumerate() {
                    *sum = simd.read(left.get(vector * S::LANES..).unwrap_or(&[]));
                }
            }
        }
        let sums = accumulate::<S, ROWS, VECTORS>(simd, rows, pass.panel, sums);
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
