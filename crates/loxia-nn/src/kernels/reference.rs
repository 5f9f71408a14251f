//! The portable kernel: what each operation means, in plain loops, and what machines without a kernel of
//! their own run.
//!
//! Every sum has one order, fixed by the width of a row alone. Sums over a row go through eight lanes, which
//! the compiler turns into vectors; products add the terms of an output one after the other, eight outputs at
//! a time.

use super::{Attention, AttentionScratch, Packed, math};
use crate::{Activation, LayerNorm};

/// Outputs computed together.
pub(crate) const PANEL: usize = 8;

const LANES: usize = 8;
/// Rows computed together: 4 x 8 sums fit the 16 registers of SSE2 and the 32 of NEON.
const TILE_ROWS: usize = 4;

/// `out = activation(input · W + b)`, row by row.
pub(crate) fn product(input: &[f32], weights: &Packed, activation: Activation, out: &mut [f32]) {
    let (inputs, outputs) = (weights.inputs(), weights.outputs());
    let tiles = input.chunks(TILE_ROWS * inputs).zip(out.chunks_mut(TILE_ROWS * outputs));
    for (input, out) in tiles {
        for (index, (panel, bias)) in weights.panels().enumerate() {
            let first = index * PANEL;
            let width = PANEL.min(outputs - first);
            let mut sums = [[0.0; PANEL]; TILE_ROWS];
            match input.len() / inputs {
                TILE_ROWS => multiply::<TILE_ROWS>(input, panel, &mut sums),
                rows => {
                    let rows = input.chunks_exact(inputs).zip(&mut sums[..rows]);
                    rows.for_each(|(row, sums)| multiply::<1>(row, panel, std::slice::from_mut(sums)));
                }
            }
            for (row, sums) in out.chunks_exact_mut(outputs).zip(&sums) {
                let results = row[first..first + width].iter_mut();
                results.zip(sums.iter().zip(bias)).for_each(|(result, (sum, bias))| *result = sum + bias);
            }
        }
        activation.apply_slice(out);
    }
}

/// Adds `ROWS` rows times one panel to `sums`; each sum runs over the inputs in order, however many rows
/// there are.
#[inline(always)]
fn multiply<const ROWS: usize>(input: &[f32], panel: &[f32], sums: &mut [[f32; PANEL]]) {
    let inputs = input.len() / ROWS;
    let rows: [&[f32]; ROWS] = std::array::from_fn(|row| &input[row * inputs..][..inputs]);
    let mut local = [[0.0; PANEL]; ROWS];
    for (k, weights) in panel.chunks_exact(PANEL).enumerate() {
        for (row, sums) in rows.iter().zip(&mut local) {
            let x = row[k];
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
        }
    }
    sums.copy_from_slice(&local);
}

/// `states = norm(states + addend)`, row by row; mean first, then the variance around it.
pub(crate) fn add_norm(states: &mut [f32], addend: Option<&[f32]>, norm: &LayerNorm) {
    if let Some(addend) = addend {
        states.iter_mut().zip(addend).for_each(|(state, add)| *state += add);
    }
    let width = norm.scale.len();
    for row in states.chunks_exact_mut(width) {
        let mean = sum(row) / width as f32;
        row.iter_mut().for_each(|value| *value -= mean);
        let variance = dot(row, row) / width as f32;
        let inverse = 1.0 / (variance + norm.eps).sqrt();
        for ((value, scale), shift) in row.iter_mut().zip(&norm.scale).zip(&norm.shift) {
            *value = *value * inverse * scale + shift;
        }
    }
}

/// Softmax attention of some queries of one sequence over all its keys, head by head.
pub(crate) fn attention(work: &Attention<'_>, scratch: &mut AttentionScratch, out: &mut [f32]) {
    let (hidden, width, keys) = (work.hidden(), work.width(), work.count);
    let scores = scratch.scores.sized(keys);
    let transposed = scratch.keys.sized(width * keys);
    for head in 0..work.heads() {
        let (head_keys, queries) = (work.keys(head), work.queries(head));
        for key in 0..keys {
            let column = transposed[key..].iter_mut().step_by(keys);
            column.zip(head_keys.row(key, width)).for_each(|(to, from)| *to = *from);
        }
        for (index, (out, &place)) in out.chunks_exact_mut(hidden).zip(work.places).enumerate() {
            scores.fill(0.0);
            for (x, row) in queries.row(index, width).iter().zip(transposed.chunks_exact(keys)) {
                scores.iter_mut().zip(row).for_each(|(score, key)| *score += x * key);
            }
            let scale = work.scale();
            scores.iter_mut().for_each(|score| *score *= scale);
            if let Some(bias) = work.bias {
                let bias = bias.row(head, place as usize, keys);
                scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
            }
            let total = exponentials(scores);
            weighted_values(work, head, scores, 1.0 / total, &mut out[head * width..][..width]);
        }
    }
}

/// `out = factor · Σ weight · value` over one head's values, a few columns at a time.
fn weighted_values(work: &Attention<'_>, head: usize, weights: &[f32], factor: f32, out: &mut [f32]) {
    for (index, out) in out.chunks_mut(LANES).enumerate() {
        let columns = work.values(head).from(0, index * LANES);
        let mut sums = [0.0; LANES];
        for (key, weight) in weights.iter().enumerate() {
            let values = columns.row(key, out.len());
            // The whole chunk as an array: only then are the sums kept in registers.
            match values.first_chunk::<LANES>() {
                Some(values) => {
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
                }
                None => sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value),
            }
        }
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum * factor);
    }
}

/// Replaces scores by `exp(score - largest)` and returns their sum: softmax without its division.
pub(super) fn exponentials(scores: &mut [f32]) -> f32 {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = math::exp(*score - largest));
    sum(scores)
}

fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    fold(lanes) + rest.iter().sum::<f32>()
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b);
    }
    fold(lanes) + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f32>()
}

fn fold(l: [f32; LANES]) -> f32 {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}
