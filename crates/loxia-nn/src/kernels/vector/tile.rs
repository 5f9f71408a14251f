//! The register tile, from which products and attention are made.

use super::Simd;
use crate::kernels::Rows;

/// Sums of a tile: `ROWS` rows of `VECTORS` vectors.
pub(super) type Sums<S, const ROWS: usize, const VECTORS: usize> = [[<S as Simd>::Vector; VECTORS]; ROWS];

/// Inputs that a tile takes in one step of its loop: enough that counting costs nothing beside the sums.
pub(super) const STEP: usize = 4;

/// Adds the product of `ROWS` rows and a panel, `[depth][VECTORS · LANES]`, to `sums`; calls `between` every
/// few inputs.
///
/// Each lane is one chain of fused multiply-adds over the depth, in order. The chain does not depend on
/// `ROWS`, nor on how often it is interrupted by storing and loading the sums: this is what keeps the bits of
/// a row the same in every batch.
#[inline(always)]
pub(super) fn accumulate<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    rows: Rows<'_>,
    panel: &[f32],
    mut sums: Sums<S, ROWS, VECTORS>,
    mut between: impl FnMut(),
) -> Sums<S, ROWS, VECTORS> {
    let width = VECTORS * S::LANES;
    let depth = panel.len() / width;
    assert!(rows.values.len() >= (ROWS - 1) * rows.stride + depth, "a tile's rows end before its panel");
    let panel = panel.as_ptr();
    let values: [_; ROWS] = std::array::from_fn(|row| rows.values[row * rows.stride..].as_ptr());
    let whole = depth - depth % STEP;
    for first in (0..whole).step_by(STEP) {
        between();
        for k in first..first + STEP {
            // SAFETY: k < depth; the panel has depth · width values, and the last row as many as asserted.
            unsafe { add_input(simd, k, values, panel, &mut sums) };
        }
    }
    for k in whole..depth {
        // SAFETY: as above.
        unsafe { add_input(simd, k, values, panel, &mut sums) };
    }
    sums
}

/// Adds the products of one input.
///
/// # Safety
///
/// `values` must point to more than `k` values each, `panel` to more than `k` times its width.
#[inline(always)]
unsafe fn add_input<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    k: usize,
    values: [*const f32; ROWS],
    panel: *const f32,
    sums: &mut Sums<S, ROWS, VECTORS>,
) {
    let mut weights = [simd.splat(0.0); VECTORS];
    for (vector, weight) in weights.iter_mut().enumerate() {
        // SAFETY: the caller vouches for a panel of more than k rows of VECTORS vectors.
        *weight = unsafe { simd.load(panel.add((k * VECTORS + vector) * S::LANES)) };
    }
    for (sums, values) in sums.iter_mut().zip(values) {
        // SAFETY: the caller vouches for more than k values.
        let x = simd.splat(unsafe { *values.add(k) });
        for (sum, &weight) in sums.iter_mut().zip(&weights) {
            *sum = simd.mul_add(x, weight, *sum);
        }
    }
}

/// What will be read when the work at hand is done, asked for little by little: far memory is waited for while
/// there is other work, and never more of it than the processor keeps track of.
pub(super) struct Ahead {
    next: *const u8,
    stride: usize,
}

impl Ahead {
    /// The `share`-th of `shares` parts of `next`, in so many steps.
    #[inline(always)]
    pub(super) fn new<T>(next: &[T], share: usize, shares: usize, steps: usize) -> Self {
        let bytes = size_of_val(next);
        let from = bytes * share / shares;
        let stride = (bytes / shares).div_ceil(steps.max(1));
        Ahead { next: next.as_ptr().cast::<u8>().wrapping_add(from), stride }
    }

    #[inline(always)]
    pub(super) fn step<S: Simd>(&mut self, simd: S) {
        simd.prefetch(self.next);
        self.next = self.next.wrapping_add(self.stride);
    }
}

/// Calls `$function::<S, ROWS, VECTORS>($arguments)` with `ROWS` equal to a number of rows known at run time,
/// at most the `TILE_ROWS` of the instruction set.
macro_rules! for_rows {
    ($rows:expr, $function:ident::<$simd:ty, $vectors:tt>($($argument:expr),* $(,)?)) => {
        match $rows {
            1 => $function::<$simd, 1, $vectors>($($argument),*),
            2 => $function::<$simd, 2, $vectors>($($argument),*),
            3 => $function::<$simd, 3, $vectors>($($argument),*),
            4 => $function::<$simd, 4, $vectors>($($argument),*),
            5 => $function::<$simd, 5, $vectors>($($argument),*),
            6 => $function::<$simd, 6, $vectors>($($argument),*),
            7 if <$simd>::TILE_ROWS >= 7 => $function::<$simd, 7, $vectors>($($argument),*),
            8 if <$simd>::TILE_ROWS >= 8 => $function::<$simd, 8, $vectors>($($argument),*),
            rows => unreachable!("no tile of {rows} rows"),
        }
    };
}
pub(super) use for_rows;

/// Repeats for 0, 1 and so on below a constant that is at most 8, where a loop would not be unrolled and so its arrays not
/// be kept in registers.
macro_rules! unrolled {
    ($index:ident < $count:ident, $body:block) => {
        unrolled!(@ $index, $count, $body, 0 1 2 3 4 5 6 7)
    };
    (@ $index:ident, $count:ident, $body:block, $($value:literal)*) => {
        const { assert!($count <= 8) };
        $(
            if $value < $count {
                let $index: usize = $value;
                $body
            }
        )*
    };
}
pub(super) use unrolled;
