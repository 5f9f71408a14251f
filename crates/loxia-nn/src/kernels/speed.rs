//! Speed of each kernel by itself, on one thread:
//! `cargo test --release -p loxia-nn --lib -- --ignored --nocapture --test-threads=1 speed`. `LOXIA_KERNEL` picks one kernel.
//!
//! Each line is the best of many short calls: what the kernel can do when nothing disturbs it. The filter `speed` also
//! finds the measurement of embeddings (`encoder/embeddings.rs`), and in loxia-model that of pooling.

use std::time::Instant;

use super::{Attention, AttentionScratch, Codes, Isa, NewRows, Rows, SLOTS, Shelf, Weights};
use crate::memory::Buffer;
use crate::{Activation, Kernel, LayerNorm, Linear, Precision};

/// More than caches hold.
const FAR_BYTES: usize = 96 << 20;

/// The kernels to measure.
pub(crate) fn kernels() -> Vec<Kernel> {
    match std::env::var_os(Kernel::VARIABLE) {
        Some(_) => vec![Kernel::detect().unwrap()],
        None => Kernel::available(),
    }
}

pub(crate) fn best(mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut calls = 0;
    while start.elapsed().as_secs_f64() < 0.3 || calls < 5 {
        let call = Instant::now();
        work();
        best = best.min(call.elapsed().as_secs_f64());
        calls += 1;
    }
    best
}

pub(crate) fn report(what: &str, operations: usize, elements: usize, seconds: f64) {
    let per_element = seconds * 1e9 / elements as f64;
    let speed = operations as f64 / seconds / 1e9;
    println!("  {what:<40} {speed:>8.1} GOP/s {per_element:>8.3} ns an output");
}

pub(crate) fn wave(count: usize) -> Vec<f32> {
    (0..count).map(|index| (index as f32 * 0.37).sin() + (index as f32 * 1.71).sin()).collect()
}

fn product(
    isa: Isa,
    precision: Precision,
    rows: usize,
    inputs: usize,
    outputs: usize,
    activation: Activation,
) {
    let linear = Linear { weight: wave(inputs * outputs), bias: Some(wave(outputs)), inputs, outputs };
    let weights = Weights::new(isa, precision, &[&linear]);
    let (input, mut out) = (wave(rows * inputs), Buffer::zeros(rows * outputs));
    let mut codes = Codes::default();
    let operand = weights.operand(isa, &input, &mut codes);
    let seconds = best(|| isa.product(operand, &weights, activation, &mut out));
    let what = format!("{precision} {rows} x {inputs} x {outputs}, {}", activation.name());
    report(&what, 2 * rows * inputs * outputs, rows * outputs, seconds);
}

/// A product with other weights in each call, more of them than any cache holds: as in a network.
fn far_product(isa: Isa, precision: Precision, rows: usize, inputs: usize, outputs: usize) {
    let linear = Linear { weight: wave(inputs * outputs), bias: Some(wave(outputs)), inputs, outputs };
    let bytes = inputs * outputs * if precision == Precision::Int8 { 1 } else { 4 };
    let count = (FAR_BYTES / bytes).max(1);
    let weights: Vec<_> = (0..count).map(|_| Weights::new(isa, precision, &[&linear])).collect();
    let (input, mut out) = (wave(rows * inputs), Buffer::zeros(rows * outputs));
    let mut codes = Codes::default();
    let operand = weights[0].operand(isa, &input, &mut codes);
    let seconds = best(|| {
        for weights in &weights {
            isa.product(operand, weights, Activation::Identity, &mut out);
        }
    }) / count as f64;
    let what = format!("{precision} {rows} x {inputs} x {outputs}, weights from far");
    report(&what, 2 * rows * inputs * outputs, rows * outputs, seconds);
}

fn attention(isa: Isa, precision: Precision, tokens: usize, width: usize) {
    let (heads, hidden) = (4, 4 * width);
    let shelf = Shelf { keeping: isa.keeping(precision), slots: tokens.next_multiple_of(SLOTS), width };
    let projected = wave(tokens * 3 * hidden);
    let rows = Rows { values: &projected, stride: 3 * hidden };
    let mut kept = Buffer::zeros(heads * shelf.of_head());
    let mut keep = || {
        for (head, kept) in kept.chunks_exact_mut(shelf.of_head()).enumerate() {
            let [keys, values] = [1, 2].map(|part| rows.from(0, part * hidden + head * width));
            isa.keep(NewRows { keys, values, width, first: 0, end: tokens, count: tokens }, shelf, 0, kept);
        }
    };
    let seconds = best(&mut keep);
    report(&format!("{precision} keys and values of {tokens} tokens"), 0, tokens * 2 * hidden, seconds);
    let places: Vec<u32> = (0..tokens as u32).collect();
    let kept: Vec<&[f32]> = kept.chunks_exact(shelf.of_head()).collect();
    let work = Attention {
        queries: Rows { values: &projected, stride: 3 * hidden },
        places: &places,
        kept: &kept,
        shelf,
        first: 0,
        count: tokens,
        bias: None,
        precision,
    };
    let mut scratch = AttentionScratch::default();
    let mut out = vec![0.0; tokens * hidden];
    let seconds = best(|| isa.attention(&work, &mut scratch, &mut out));
    let what = format!("{precision} attention over {tokens} tokens, width {width}");
    report(&what, 4 * tokens * tokens * hidden, tokens * tokens * 4, seconds);
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    for kernel in kernels() {
        println!("{kernel}");
        let isa = kernel.check().unwrap();
        for precision in [Precision::F32, Precision::Int8] {
            for (inputs, outputs) in [(384, 384), (384, 1536), (1536, 384), (768, 3072), (3072, 768)] {
                product(isa, precision, 96, inputs, outputs, Activation::Identity);
            }
            for (rows, inputs, outputs) in [
                (24, 384, 1536),
                (64, 384, 1536),
                (64, 1536, 384),
                (192, 384, 1536),
                (192, 768, 3072),
                (192, 3072, 768),
            ] {
                far_product(isa, precision, rows, inputs, outputs);
            }
            product(isa, precision, 96, 384, 1536, Activation::GeluErf);
            product(isa, precision, 96, 384, 1536, Activation::GeluTanh);
            product(isa, precision, 12, 384, 384, Activation::Identity);
            product(isa, precision, 1, 384, 384, Activation::Identity);
            for (tokens, width) in [(40, 32), (64, 32), (80, 32), (128, 32), (256, 32), (256, 64), (512, 64)]
            {
                attention(isa, precision, tokens, width);
            }
        }
        let linear = Linear { weight: wave(384), bias: None, inputs: 384, outputs: 1 };
        let weights = Weights::new(isa, Precision::Int8, &[&linear]);
        let (rows, mut codes) = (wave(96 * 384), Codes::default());
        let seconds = best(|| {
            weights.operand(isa, &rows, &mut codes);
        });
        report("quantisation of 96 x 384", 96 * 384, 96 * 384, seconds);
        let norm = LayerNorm { scale: wave(384), shift: wave(384), eps: 1e-12 };
        let (mut states, addend) = (wave(96 * 384), wave(96 * 384));
        let seconds = best(|| isa.add_norm(&mut states, Some(&addend), &norm));
        report("residual and norm of 96 x 384", 96 * 384, 96 * 384, seconds);
    }
}
