//! The kernels in plain Rust: eight running sums, so that the compiler makes vectors of them.

use half::f16;
use half::slice::HalfFloatSliceExt;

const LANES: usize = 8;

/// A number that rows are stored in.
pub(super) trait Stored: Copy {
    /// Some of them in single precision.
    fn widen(values: &[Self], out: &mut [f32]);
}

impl Stored for f16 {
    fn widen(values: &[Self], out: &mut [f32]) {
        values.convert_to_f32_slice(out);
    }
}

impl Stored for f32 {
    fn widen(values: &[Self], out: &mut [f32]) {
        out.copy_from_slice(values);
    }
}

pub(super) fn dots<T: Stored>(rows: &[T], x: &[f32], out: &mut [f32]) {
    let mut widened = vec![0.0; x.len()];
    for (row, sum) in out.iter_mut().enumerate() {
        T::widen(&rows[row * x.len()..][..x.len()], &mut widened);
        *sum = dot(&widened, x);
    }
}

pub(super) fn dots_of<T: Stored>(rows: &[T], named: &[u32], x: &[f32], out: &mut [f32]) {
    for (&row, sum) in named.iter().zip(out) {
        dots(&rows[row as usize * x.len()..][..x.len()], x, std::slice::from_mut(sum));
    }
}

pub(super) fn cross_dots<T: Stored>(
    vectors: &[f32],
    rows: &[T],
    named: &[u32],
    width: usize,
    out: &mut [f32],
) {
    for (vector, out) in out.chunks_exact_mut(named.len().max(1)).enumerate() {
        dots_of(rows, named, &vectors[vector * width..][..width], out);
    }
}

pub(super) fn widen(values: &[f16], scale: f32, out: &mut [f32]) {
    values.convert_to_f32_slice(out);
    out.iter_mut().for_each(|value| *value *= scale);
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let (others, others_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (x, y) in chunks.iter().zip(others) {
        sums.iter_mut().zip(x.iter().zip(y)).for_each(|(sum, (x, y))| *sum += x * y);
    }
    for (sum, (x, y)) in sums.iter_mut().zip(rest.iter().zip(others_rest)) {
        *sum += x * y;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}
