//! The register tile, from which products and attention are made.

use super::Simd;
use crate::kernels::Rows;

/// Sums of a tile: `ROWS` rows of `VECTORS` vectors.
pub(super) type Sums<S, const ROWS: usize, const VECTORS: usize> = [[<S as Simd>::Vector; VECTORS]; ROWS];

/// Adds the product of `ROWS` rows and a panel, `[depth][VECTORS · LANES]`, to `sums`.
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
) -> Sums<S, ROWS, VECTORS> {
    let width = VECTORS * S::LANES;
    let depth = panel.len() / width;
    assert!(rows.values.len() >= (ROWS - 1) * rows.stride + depth, "a tile's rows end before its panel");
    let (values, panel) = (rows.values.as_ptr(), panel.as_ptr());
    for k in 0..depth {
        let mut weights = [simd.splat(0.0); VECTORS];
        for (vector, weight) in weights.iter_mut().enumerate() {
            // SAFETY: k < depth, so these lanes end within the panel's depth · width values.
            *weight = unsafe { simd.load(panel.add(k * width + vector * S::LANES)) };
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: row < ROWS and k < depth; the assertion above covers the last such index.
            let x = simd.splat(unsafe { *values.add(row * rows.stride + k) });
            for (sum, &weight) in sums.iter_mut().zip(&weights) {
                *sum = simd.mul_add(x, weight, *sum);
            }
        }
    }
    sums
}

/// Asks for the `share`-th of `shares` parts of what will be read when this is done: far memory is waited for
/// while there is other work.
#[inline(always)]
pub(super) fn prefetch_share<S: Simd, T>(simd: S, next: &[T], share: usize, shares: usize) {
    let from = |share: usize| (next.len() * share / shares).min(next.len());
    let part = &next[from(share)..from(share + 1)];
    let line = (64 / size_of::<T>()).max(1);
    part.iter().step_by(line).for_each(|value| simd.prefetch(std::ptr::from_ref(value).cast()));
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
