//! Attention of few queries over states: see [`crate::kernels::states_attention`].
//!
//! Scores are sums over the columns of a state, a few queries and states at a time; what comes out of them is summed over
//! states, a few queries and columns at a time. Each number has its own chain of additions, however many go together.

use super::attention::{add_bias, exponentials};
use super::{Simd, Task};
use crate::kernels::StatesAttention;
use crate::kernels::math::LOG2_E;
use crate::memory::Buffer;

/// Queries that go together.
const QUERIES: usize = 4;
/// States, or vectors of columns, that go together.
const ACROSS: usize = 2;

/// `out` is laid out as the queries are.
pub(in crate::kernels) struct AttendStates<'a> {
    pub(in crate::kernels) work: &'a StatesAttention<'a>,
    pub(in crate::kernels) scores: &'a mut Buffer,
    pub(in crate::kernels) out: &'a mut [f32],
}

impl Task for AttendStates<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AttendStates { work, scores, out } = self;
        let stride = work.count().next_multiple_of(S::LANES);
        let scores = scores.sized(QUERIES * stride);
        let whole = work.rows() - work.rows() % QUERIES;
        for first in (0..whole).step_by(QUERIES) {
            rows::<S, QUERIES>(simd, work, first, stride, scores, out);
        }
        for first in whole..work.rows() {
            rows::<S, 1>(simd, work, first, stride, scores, out);
        }
    }
}

/// `N` rows from `first` on.
#[inline(always)]
fn rows<S: Simd, const N: usize>(
    simd: S,
    work: &StatesAttention<'_>,
    first: usize,
    stride: usize,
    scores: &mut [f32],
    out: &mut [f32],
) {
    let (hidden, count) = (work.hidden, work.count());
    let mut starts = [0; N];
    for (row, start) in starts.iter_mut().enumerate() {
        *start = work.start(first + row);
    }
    let mut key = 0;
    for piece in work.states {
        let together = piece.chunks_exact(ACROSS * hidden);
        let rest = together.remainder();
        for states in together {
            scores_of::<S, N, ACROSS>(simd, work, starts, states, &mut scores[key..], stride);
            key += ACROSS;
        }
        for state in rest.chunks_exact(hidden) {
            scores_of::<S, N, 1>(simd, work, starts, state, &mut scores[key..], stride);
            key += 1;
        }
    }
    let mut inverses = [0.0; N];
    for (row, inverse) in inverses.iter_mut().enumerate() {
        let scores = &mut scores[row * stride..][..stride];
        // Of what is not there nothing is larger, and its share is nothing beside others.
        scores[count..].fill(f32::NEG_INFINITY);
        *inverse = match work.bias_of(first + row, count) {
            Some(bias) => {
                let largest = add_bias(simd, scores, work.scale, bias);
                1.0 / exponentials(simd, scores, largest, LOG2_E)
            }
            None => {
                let mut largest = simd.splat(f32::NEG_INFINITY);
                for values in scores.chunks_exact(S::LANES) {
                    largest = simd.max(largest, simd.read(values));
                }
                1.0 / exponentials(simd, scores, largest, work.scale * LOG2_E)
            }
        };
    }
    let mut column = 0;
    while column + ACROSS * S::LANES <= hidden {
        sums_of::<S, N, ACROSS>(simd, work, column, scores, stride, inverses, starts, out);
        column += ACROSS * S::LANES;
    }
    while column < hidden {
        sums_of::<S, N, 1>(simd, work, column, scores, stride, inverses, starts, out);
        column += S::LANES;
    }
}

/// The scores of `N` queries with `STATES` states, those of a query side by side.
#[inline(always)]
fn scores_of<S: Simd, const N: usize, const STATES: usize>(
    simd: S,
    work: &StatesAttention<'_>,
    starts: [usize; N],
    states: &[f32],
    scores: &mut [f32],
    stride: usize,
) {
    let hidden = work.hidden;
    let whole = hidden - hidden % S::LANES;
    assert!(states.len() == STATES * hidden);
    let mut queries = [&[][..]; N];
    for (query, start) in queries.iter_mut().zip(starts) {
        *query = &work.queries[start..][..hidden];
    }
    let mut sums = [[simd.splat(0.0); STATES]; N];
    for at in (0..whole).step_by(S::LANES) {
        let mut values = [simd.splat(0.0); STATES];
        for (state, value) in values.iter_mut().enumerate() {
            // SAFETY: at + LANES <= hidden, and there are STATES rows of so many by the assertion.
            *value = unsafe { simd.load(states.as_ptr().add(state * hidden + at)) };
        }
        for (sums, query) in sums.iter_mut().zip(queries) {
            // SAFETY: a query has `hidden` values.
            let query = unsafe { simd.load(query.as_ptr().add(at)) };
            for (sum, &value) in sums.iter_mut().zip(&values) {
                *sum = simd.mul_add(query, value, *sum);
            }
        }
    }
    for (row, (sums, query)) in sums.into_iter().zip(queries).enumerate() {
        for (state, mut sum) in sums.into_iter().enumerate() {
            if whole < hidden {
                let values = simd.read(&states[state * hidden..][whole..hidden]);
                sum = simd.mul_add(simd.read(&query[whole..]), values, sum);
            }
            scores[row * stride + state] = simd.sum(sum);
        }
    }
}

/// The weighted sums of `VECTORS` vectors of columns for `N` rows; of the last vector there may be only some.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what they are made of, and where they go")]
fn sums_of<S: Simd, const N: usize, const VECTORS: usize>(
    simd: S,
    work: &StatesAttention<'_>,
    column: usize,
    shares: &[f32],
    stride: usize,
    inverses: [f32; N],
    starts: [usize; N],
    out: &mut [f32],
) {
    let hidden = work.hidden;
    let end = hidden.min(column + VECTORS * S::LANES);
    let mut sums = [[simd.splat(0.0); VECTORS]; N];
    for (key, state) in work.each_state().enumerate() {
        let state = &state[column..end];
        let mut values = [simd.splat(0.0); VECTORS];
        for (vector, value) in values.iter_mut().enumerate() {
            *value = simd.read(&state[vector * S::LANES..]);
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            let share = simd.splat(shares[row * stride + key]);
            for (sum, &value) in sums.iter_mut().zip(&values) {
                *sum = simd.mul_add(share, value, *sum);
            }
        }
    }
    for ((sums, inverse), start) in sums.into_iter().zip(inverses).zip(starts) {
        let out = &mut out[start..][column..end];
        for (out, sum) in out.chunks_mut(S::LANES).zip(sums) {
            simd.write(out, simd.mul(sum, simd.splat(inverse)));
        }
    }
}
