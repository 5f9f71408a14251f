//! Products in 8-bit integers: codes of activations, packed weights, and the plain twin of the kernels.
//!
//! Inputs are mixed first ([`super::mixing`]). A row of activations `x` becomes codes `q` in `0..=255` with `x ≈ scale · (q - zero)`; the range of the row
//! is widened to hold 0, so that `zero` is a code. A column of weights becomes `w ≈ step · v` with `v` in
//! `-127..=127`. Then `Σ x w ≈ scale · step · (Σ q v - zero · Σ v)`, with exact sums in 32 bits.
//!
//! Kernels read codes and weights in *words* of 32 bits: four 8-bit values each, or two of 16 bits where the
//! instruction set multiplies those exactly and 8-bit ones only with saturation.

use super::mixing::{mix, mix_weights};
use crate::memory::Buffer;
use crate::{Activation, Linear};

/// Most inputs whose sums are sure to fit 32 bits: 255 · 127 · inputs < 2³¹.
pub(crate) const MOST_INPUTS: usize = (i32::MAX / (255 * 127)) as usize;

/// How codes and weights lie in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordLayout {
    /// Two values of 16 bits.
    Pairs,
    /// Four values of 8 bits.
    Quads,
}

impl WordLayout {
    /// Values in a word.
    pub(crate) fn group(self) -> usize {
        match self {
            WordLayout::Pairs => 2,
            WordLayout::Quads => 4,
        }
    }

    /// Words of a row of `inputs` values.
    pub(crate) fn words(self, inputs: usize) -> usize {
        inputs.div_ceil(self.group())
    }

    /// The word of up to `group` values.
    fn word(self, values: impl Iterator<Item = i32>) -> u32 {
        let bits = 32 / self.group() as u32;
        let mask = u32::MAX >> (32 - bits);
        (0u32..).zip(values).fold(0, |word, (place, value)| word | (value as u32 & mask) << (place * bits))
    }
}

/// Codes of some rows.
#[derive(Default)]
pub(crate) struct Codes {
    /// `[rows][words]`; values behind the last input are 0.
    pub(crate) words: Buffer<u32>,
    /// Scale of each row.
    pub(crate) scales: Buffer,
    /// Zero point of each row.
    pub(crate) zeros: Buffer<i32>,
    /// One row, mixed.
    pub(crate) mixed: Buffer,
}

impl Codes {
    /// Bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes() + self.scales.bytes() + self.zeros.bytes() + self.mixed.bytes()
    }
}

/// What turns a row into codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coding {
    /// Code 0 stands for `-zero · scale`.
    pub(crate) scale: f32,
    pub(crate) inverse: f32,
    pub(crate) zero: i32,
}

impl Coding {
    /// The coding of values between two bounds. A value that is not finite makes the scale NaN, and with it
    /// every output of the row: nothing is hidden.
    #[inline(always)]
    pub(crate) fn of_range(smallest: f32, largest: f32, finite: bool) -> Self {
        let (low, high) = (smallest.min(0.0), largest.max(0.0));
        // Each part by itself: their difference may overflow.
        let scale = high / 255.0 - low / 255.0;
        if !finite {
            return Coding { scale: f32::NAN, inverse: 0.0, zero: 0 };
        }
        if scale < 1e-30 {
            // As good as all zeros; the inverse would overflow.
            return Coding { scale: 0.0, inverse: 0.0, zero: 0 };
        }
        let inverse = 1.0 / scale;
        let zero = (-low * inverse).round_ties_even().clamp(0.0, 255.0);
        Coding { scale, inverse, zero: zero as i32 }
    }
}

/// Affine maps of the same input, side by side, in 8-bit weights.
///
/// A panel holds the weights of a few neighbouring outputs, `[words][panel width]`.
pub(crate) struct PackedInt8 {
    panels: Buffer<u32>,
    /// Sum of each output's weights.
    sums: Buffer<i32>,
    /// Step of each output's weights.
    steps: Buffer,
    bias: Buffer,
    inputs: usize,
    outputs: usize,
    width: usize,
    layout: WordLayout,
}

/// One panel of [`PackedInt8`].
#[derive(Clone, Copy)]
pub(crate) struct PanelInt8<'a> {
    pub(crate) words: &'a [u32],
    pub(crate) sums: &'a [i32],
    pub(crate) steps: &'a [f32],
    pub(crate) bias: &'a [f32],
}

impl PackedInt8 {
    /// Quantises and packs maps whose shapes were checked and whose inputs agree.
    pub(crate) fn new(layout: WordLayout, width: usize, maps: &[&Linear]) -> Self {
        let inputs = maps[0].inputs;
        let outputs: usize = maps.iter().map(|map| map.outputs).sum();
        let padded = outputs.next_multiple_of(width);
        let words = layout.words(inputs);
        let mut packed = PackedInt8 {
            panels: Buffer::zeros(padded * words),
            sums: Buffer::zeros(padded),
            steps: Buffer::zeros(padded),
            bias: Buffer::zeros(padded),
            inputs,
            outputs,
            width,
            layout,
        };
        let (mut codes, mut mixed) = (Vec::with_capacity(inputs), vec![0.0; inputs]);
        let rows = maps.iter().flat_map(|map| map.weight.chunks_exact(inputs));
        for (output, row) in rows.enumerate() {
            mixed.copy_from_slice(row);
            mix_weights(&mut mixed);
            packed.steps[output] = quantise_weights(&mixed, &mut codes);
            packed.sums[output] = codes.iter().sum();
            let panel = &mut packed.panels[output / width * width * words..][..width * words];
            let column = panel[output % width..].iter_mut().step_by(width);
            for (place, group) in column.zip(codes.chunks(layout.group())) {
                *place = layout.word(group.iter().copied());
            }
        }
        let mut first = 0;
        for map in maps {
            if let Some(values) = &map.bias {
                packed.bias[first..first + map.outputs].copy_from_slice(values);
            }
            first += map.outputs;
        }
        packed
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    pub(crate) fn layout(&self) -> WordLayout {
        self.layout
    }

    /// Words of a row of codes.
    pub(crate) fn words(&self) -> usize {
        self.layout.words(self.inputs)
    }

    /// The panels in order.
    pub(crate) fn panels(&self) -> impl Iterator<Item = PanelInt8<'_>> {
        let parts = self.sums.chunks_exact(self.width).zip(self.steps.chunks_exact(self.width));
        let words = self.panels.chunks_exact(self.width * self.words());
        words
            .zip(parts.zip(self.bias.chunks_exact(self.width)))
            .map(|(words, ((sums, steps), bias))| PanelInt8 { words, sums, steps, bias })
    }
}

/// Codes of one output's weights, and their step.
fn quantise_weights(row: &[f32], codes: &mut Vec<i32>) -> f32 {
    let largest = row.iter().fold(0.0f32, |largest, weight| largest.max(weight.abs()));
    let step = largest / 127.0;
    codes.clear();
    // As for activations: a weight that is not a number shows in the outputs.
    if !row.iter().all(|weight| weight.is_finite()) {
        codes.resize(row.len(), 0);
        return f32::NAN;
    }
    let inverse = if step < 1e-30 { 0.0 } else { 1.0 / step };
    codes.extend(row.iter().map(|weight| (weight * inverse).round_ties_even().clamp(-127.0, 127.0) as i32));
    step
}

/// Plain twin of the kernels' quantisation, for a layout.
pub(crate) fn quantise(layout: WordLayout, input: &[f32], inputs: usize, codes: &mut Codes) {
    let rows = input.len() / inputs;
    let width = layout.words(inputs);
    let words = codes.words.sized(rows * width);
    let (scales, zeros) = (codes.scales.sized(rows), codes.zeros.sized(rows));
    let values = codes.mixed.sized(inputs);
    for (row, unmixed) in input.chunks_exact(inputs).enumerate() {
        values.copy_from_slice(unmixed);
        mix(values);
        let bounds = values.iter().fold((0.0f32, 0.0f32), |(low, high), &x| (low.min(x), high.max(x)));
        let coding = Coding::of_range(bounds.0, bounds.1, values.iter().all(|value| value.is_finite()));
        (scales[row], zeros[row]) = (coding.scale, coding.zero);
        let code = |value: &f32| (value * coding.inverse + coding.zero as f32).clamp(0.0, 255.0);
        for (word, group) in words[row * width..][..width].iter_mut().zip(values.chunks(layout.group())) {
            *word = layout.word(group.iter().map(|value| code(value).round_ties_even() as i32));
        }
    }
}

/// Plain twin of the kernels' product. The portable kernel runs it on pairs.
pub(crate) fn product(codes: &Codes, weights: &PackedInt8, activation: Activation, out: &mut [f32]) {
    let outputs = weights.outputs();
    let width = weights.words();
    let mut sums = vec![0i32; weights.width];
    for (row, out) in out.chunks_exact_mut(outputs).enumerate() {
        let words = &codes.words[row * width..][..width];
        let (scale, zero) = (codes.scales[row], codes.zeros[row]);
        for (panel, out) in weights.panels().zip(out.chunks_mut(weights.width)) {
            sums.fill(0);
            for (&word, weights_of) in words.iter().zip(panel.words.chunks_exact(weights.width)) {
                add_word(weights.layout, word, weights_of, &mut sums);
            }
            for (lane, out) in out.iter_mut().enumerate() {
                let exact = sums[lane] - zero * panel.sums[lane];
                *out = exact as f32 * (scale * panel.steps[lane]) + panel.bias[lane];
            }
        }
        activation.apply_slice(out);
    }
}

/// Adds the products of one word of codes with a word of every output.
#[inline(always)]
fn add_word(layout: WordLayout, word: u32, weights: &[u32], sums: &mut [i32]) {
    match layout {
        WordLayout::Pairs => {
            let (low, high) = (i32::from(word as i16), i32::from((word >> 16) as i16));
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                *sum += low * i32::from(weight as i16) + high * i32::from((weight >> 16) as i16);
            }
        }
        WordLayout::Quads => {
            let codes = word.to_le_bytes().map(i32::from);
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                let weights = weight.to_le_bytes().map(|byte| i32::from(byte as i8));
                *sum += codes.iter().zip(weights).map(|(code, weight)| code * weight).sum::<i32>();
            }
        }
    }
}
