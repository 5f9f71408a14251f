//! From the states of a text's tokens to one vector.
//!
//! Batches are packed, so every state belongs to a real token: there is no mask to forget.

use crate::layout::TokenSequence;
use crate::options::Pooling;

/// Which side a text is on; marks differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Query,
    Item,
}

/// Pushes the rows a pooling reads; `skip` leading tokens (template and prompt) are left out. False if there is
/// no token, or the marks it needs are not there.
///
/// A text of which nothing is left keeps its last token, or for `cls` its first, as sentence-transformers does.
pub(crate) fn push_rows(
    pooling: Pooling,
    side: Side,
    sequence: &TokenSequence,
    skip: usize,
    rows: &mut Vec<u32>,
) -> bool {
    let before = rows.len();
    let Some(last) = sequence.len().checked_sub(1) else { return false };
    match (pooling, side) {
        (Pooling::Cls, _) => rows.push(if skip > last { 0 } else { skip as u32 }),
        // The pooler was trained on the first token, whatever follows it.
        (Pooling::Tanh, _) => rows.push(0),
        (Pooling::Mean | Pooling::Max | Pooling::Lse, _) => {
            rows.extend(skip.min(last) as u32..sequence.len() as u32);
        }
        (Pooling::Marker, Side::Query) => {
            rows.extend([sequence.marks.start, sequence.marks.end].into_iter().flatten());
            return rows.len() - before == 2;
        }
        (Pooling::Marker, Side::Item) => rows.extend(sequence.marks.tag),
    }
    rows.len() > before
}

/// Pools rows of states (`states.len() / out.len()` of them) into `out`.
pub(crate) fn pool(pooling: Pooling, states: &[f32], out: &mut [f32]) {
    let width = out.len();
    let rows = states.chunks_exact(width);
    match pooling {
        Pooling::Cls | Pooling::Tanh => out.copy_from_slice(&states[..width]),
        Pooling::Mean | Pooling::Marker => {
            let count = rows.len() as f32;
            out.fill(0.0);
            for row in rows {
                out.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            out.iter_mut().for_each(|sum| *sum /= count);
        }
        Pooling::Max => {
            out.fill(f32::NEG_INFINITY);
            for row in rows {
                // Not f32::max, which would hide a NaN.
                for (max, &value) in out.iter_mut().zip(row) {
                    if value > *max || value.is_nan() {
                        *max = value;
                    }
                }
            }
        }
        Pooling::Lse => {
            let mut max = vec![0.0; width];
            pool(Pooling::Max, states, &mut max);
            out.fill(0.0);
            for row in rows {
                for ((sum, value), max) in out.iter_mut().zip(row).zip(&max) {
                    *sum += (value - max).exp();
                }
            }
            out.iter_mut().zip(max).for_each(|(sum, max)| *sum = max + sum.ln());
        }
    }
}

/// Scales a vector to length one; a zero vector stays (lengths below 1e-12 count as 1e-12, as in PyTorch).
pub(crate) fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>().sqrt().max(1e-12);
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn poolings_of_two_rows() {
        let states = [1.0, -2.0, 3.0, 0.0];
        let pooled = |pooling| {
            let mut out = [0.0; 2];
            pool(pooling, &states, &mut out);
            out
        };
        assert_eq!(pooled(Pooling::Cls), [1.0, -2.0]);
        assert_eq!(pooled(Pooling::Mean), [2.0, -1.0]);
        assert_eq!(pooled(Pooling::Max), [3.0, 0.0]);
        let lse = pooled(Pooling::Lse);
        assert!((lse[0] - (1.0_f32.exp() + 3.0_f32.exp()).ln()).abs() < 1e-6);
        assert!((lse[1] - ((-2.0_f32).exp() + 1.0).ln()).abs() < 1e-6);
    }

    /// One number of a pooling by definition, in `f64`.
    fn plain(pooling: Pooling, column: &[f64]) -> f64 {
        match pooling {
            Pooling::Cls | Pooling::Tanh => column[0],
            Pooling::Mean | Pooling::Marker => column.iter().sum::<f64>() / column.len() as f64,
            Pooling::Max => column.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Pooling::Lse => column.iter().map(|x| x.exp()).sum::<f64>().ln(),
        }
    }

    proptest! {
        #[test]
        fn poolings_of_odd_shapes(
            width in 1usize..40,
            values in proptest::collection::vec(-8.0f32..8.0, 1..800),
        ) {
            let rows = values.len().div_ceil(width);
            let states: Vec<f32> = values.iter().copied().cycle().take(rows * width).collect();
            for &pooling in Pooling::ALL {
                let mut out = vec![f32::NAN; width];
                pool(pooling, &states, &mut out);
                for (place, &found) in out.iter().enumerate() {
                    let column: Vec<f64> =
                        states.iter().skip(place).step_by(width).map(|x| f64::from(*x)).collect();
                    let expected = plain(pooling, &column);
                    let near = (f64::from(found) - expected).abs() <= 1e-5 * (1.0 + expected.abs());
                    prop_assert!(near, "{pooling:?} of {rows} x {width}: {found}, expected {expected}");
                }
            }
        }
    }

    #[test]
    #[ignore = "a measurement"]
    fn speed_of_poolings() {
        let (rows, width) = (256, 384);
        let states: Vec<f32> = (0..rows * width).map(|index| (index as f32 * 0.37).sin()).collect();
        let mut out = vec![0.0; width];
        for &pooling in Pooling::ALL {
            let mut best = f64::INFINITY;
            for _ in 0..2000 {
                let started = std::time::Instant::now();
                pool(pooling, std::hint::black_box(&states), &mut out);
                best = best.min(started.elapsed().as_secs_f64());
            }
            let of_each = best * 1e9 / (rows * width) as f64;
            println!("  {:<8} of {rows} x {width} {of_each:>8.3} ns an input", pooling.name());
        }
    }

    #[test]
    fn rows_after_a_prompt() {
        let rows = |pooling, tokens: usize, skip| {
            let sequence = TokenSequence { ids: vec![7; tokens], ..TokenSequence::default() };
            let mut rows = Vec::new();
            push_rows(pooling, Side::Query, &sequence, skip, &mut rows).then_some(rows)
        };
        assert_eq!(rows(Pooling::Mean, 4, 2), Some(vec![2, 3]));
        assert_eq!(rows(Pooling::Mean, 4, 9), Some(vec![3]));
        assert_eq!(rows(Pooling::Cls, 4, 2), Some(vec![2]));
        assert_eq!(rows(Pooling::Cls, 4, 4), Some(vec![0]));
        assert_eq!(rows(Pooling::Tanh, 4, 2), Some(vec![0]));
        for &pooling in Pooling::ALL {
            assert_eq!(rows(pooling, 0, 0), None);
        }
    }

    #[test]
    fn a_nan_is_not_hidden() {
        let mut out = [0.0];
        pool(Pooling::Max, &[1.0, f32::NAN], &mut out);
        assert!(out[0].is_nan());
    }

    #[test]
    fn lengths() {
        let mut vector = [3.0, 4.0];
        normalize(&mut vector);
        assert_eq!(vector, [0.6, 0.8]);
        let mut zero = [0.0; 3];
        normalize(&mut zero);
        assert_eq!(zero, [0.0; 3]);
    }
}
