//! The kernels in plain Rust: eight running sums, so that the compiler makes vectors of them.

use half::f16;
use half::slice::HalfFloatSliceExt;

const LANES: usize = 8;

pub(super) fn dots_half(rows: &[f16], x: &[f32], out: &mut [f32]) {
    let mut converted = vec![0.0; x.len()];
    for (row, sum) in out.iter_mut().enumerate() {
        rows[row * x.len()..][..x.len()].convert_to_f32_slice(&mut converted);
        *sum = dot(&converted, x);
    }
}

pub(super) fn dots_single(rows: &[f32], x: &[f32], out: &mut [f32]) {
    for (row, sum) in out.iter_mut().enumerate() {
        *sum = dot(&rows[row * x.len()..][..x.len()], x);
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let (others, others_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (x, y) in chunks.iter().zip(others) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    for (sum, (x, y)) in sums.iter_mut().zip(rest.iter().zip(others_rest)) {
        *sum += x * y;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}
