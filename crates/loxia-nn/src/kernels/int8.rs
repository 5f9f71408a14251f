//! Products in 8-bit integers: codes of activations, packed weights, and the plain twin of the kernels.
//!
//! Inputs are mixed first ([`super::mixing`]). A row of activations `x` becomes codes `q` of 8 bits without a sign,
//! `x ≈ scale · (q - zero)`; the range of the row is widened to hold 0, so that `zero` is a code. A column of
//! weights becomes `w ≈ step · v` with `v` in `-127..=127`. Then `Σ x w ≈ scale · step · (Σ q v - zero · Σ v)`,
//! with exact sums.
//!
//! Kernels read codes and weights in *words* of four. Where the instruction set adds the products of a word only
//! in 16 bits, [`Reach`] says how much of the 8 bits is used, so that such sums are exact as well.

use rayon::prelude::*;

use super::mixing::{mix, mix_weights};
use crate::Activation;
#[cfg(test)]
use crate::Linear;
use crate::memory::{Buffer, Extent};

/// Most inputs whose sums are sure to fit 32 bits: 255 · 127 · inputs < 2³¹.
pub(crate) const MOST_INPUTS: usize = (i32::MAX / (255 * 127)) as usize;

/// Values in a word.
pub(crate) const WORD: usize = 4;

/// How far codes and weights go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Largest code of an activation.
    pub(crate) top: i32,
    /// Words whose products are added in 16 bits, the first half of each word apart from the second; 1 where
    /// they are added in 32 bits at once.
    pub(crate) fold: usize,
    /// Words that are read at once: a row of codes has a multiple of that many.
    pub(crate) step: usize,
    /// Rows that are read at once: there is room for a multiple of that many.
    pub(crate) rows: usize,
}

impl Reach {
    /// All of the 8 bits.
    pub(crate) const WIDE: Reach = Reach { top: 255, fold: 1, step: 1, rows: 1 };
    /// Sums of four words in 16 bits, where 32 take three times as many instructions. Eight weights share such a
    /// sum and seldom agree in sign; this top shares what is lost, a bit and a half, between codes and weights.
    pub(crate) const NARROW: Reach = Reach { top: 150, fold: 4, step: 4, rows: 1 };

    /// Words of a row of `inputs` values.
    pub(crate) fn words(self, inputs: usize) -> usize {
        inputs.div_ceil(WORD).next_multiple_of(self.step)
    }

    /// The most that weights which share 16 bits may add up to, those above and those below 0 apart.
    fn most(self) -> i32 {
        i32::from(i16::MAX) / self.top
    }

    /// Largest sum, of weights above or of those below 0, of any that share 16 bits.
    fn largest_sum(self, weights: &[f32]) -> f32 {
        let mut largest = 0.0f32;
        for shared in weights.chunks(WORD * self.fold) {
            for half in 0..2 {
                let of_half =
                    shared.chunks(WORD).flat_map(|word| word.iter().skip(half * WORD / 2).take(WORD / 2));
                let (above, below) =
                    of_half.fold((0.0, 0.0), |(above, below), w| (above + w.max(0.0), below - w.min(0.0)));
                largest = largest.max(above).max(below);
            }
        }
        largest
    }

    /// Moves weights towards 0, the largest first, until every sum that they can be part of fits 16 bits.
    fn shrink(self, weights: &mut [i32]) {
        for shared in weights.chunks_mut(WORD * self.fold) {
            for (half, sign) in [(0, 1), (0, -1), (1, 1), (1, -1)] {
                let places = (0..shared.len()).filter(|place| place % WORD / (WORD / 2) == half);
                let of_sign = |place: usize| (shared[place] * sign).max(0);
                let mut sum: i32 = places.clone().map(of_sign).sum();
                while sum > self.most() {
                    if let Some(largest) = places.clone().max_by_key(|&place| shared[place] * sign) {
                        shared[largest] -= sign;
                    }
                    sum -= 1;
                }
            }
        }
    }
}

/// The word of up to four values.
fn word(values: impl Iterator<Item = i32>) -> u32 {
    let mut bytes = [0; WORD];
    bytes.iter_mut().zip(values).for_each(|(byte, value)| *byte = value as u8);
    u32::from_le_bytes(bytes)
}

/// Codes of some rows.
#[derive(Default)]
pub(crate) struct Codes {
    /// `[rows][words]`; values behind the last input are 0, and rows behind the last one are left over from before.
    pub(crate) words: Buffer<u32>,
    /// Scale of each row.
    pub(crate) scales: Buffer,
    /// Zero point of each row.
    pub(crate) zeros: Buffer<i32>,
    /// One row, mixed.
    pub(crate) mixed: Buffer,
}

impl Codes {
    /// Size of all four.
    pub(crate) fn extent(&self) -> Extent {
        [self.words.extent(), self.scales.extent(), self.zeros.extent(), self.mixed.extent()]
            .into_iter()
            .sum()
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
    /// every output of the row's product.
    #[inline(always)]
    pub(crate) fn of_range(top: i32, smallest: f32, largest: f32, finite: bool) -> Self {
        let (low, high, top) = (smallest.min(0.0), largest.max(0.0), top as f32);
        // Each part by itself: their difference may overflow.
        let scale = high / top - low / top;
        if !finite {
            return Coding { scale: f32::NAN, inverse: 0.0, zero: 0 };
        }
        if scale < 1e-30 {
            // As good as all zeros; the inverse would overflow.
            return Coding { scale: 0.0, inverse: 0.0, zero: 0 };
        }
        let inverse = 1.0 / scale;
        let zero = (-low * inverse).round_ties_even().clamp(0.0, top);
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
    reach: Reach,
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
    #[cfg(test)]
    pub(crate) fn new(reach: Reach, width: usize, maps: &[&Linear]) -> Self {
        let outputs = maps.iter().map(|map| map.outputs).sum();
        let mut packed = Self::empty(reach, width, maps[0].inputs, outputs);
        let mut first = 0;
        for map in maps {
            packed.put(first, &map.weight);
            map.bias.iter().for_each(|bias| packed.put_bias(first, bias));
            first += map.outputs;
        }
        packed
    }

    /// Room for maps of the same input, all zeros.
    pub(crate) fn empty(reach: Reach, width: usize, inputs: usize, outputs: usize) -> Self {
        let padded = outputs.next_multiple_of(width);
        PackedInt8 {
            panels: Buffer::zeros(padded * reach.words(inputs)),
            sums: Buffer::zeros(padded),
            steps: Buffer::zeros(padded),
            bias: Buffer::zeros(padded),
            inputs,
            outputs,
            width,
            reach,
        }
    }

    /// Quantises and packs the weights, `[outputs][inputs]`, of some outputs from `first` on. What an output becomes
    /// depends on its own weights alone, however they are cut into pieces.
    pub(crate) fn put(&mut self, first: usize, rows: &[f32]) {
        let (width, inputs, reach, words) = (self.width, self.inputs, self.reach, self.words());
        let end = first + rows.len() / inputs;
        let touched = first / width..end.div_ceil(width);
        let lanes = touched.start * width..touched.end * width;
        let panels = self.panels[lanes.start * words..lanes.end * words].par_chunks_mut(width * words);
        let sums = self.sums[lanes.clone()].par_chunks_mut(width);
        let steps = self.steps[lanes].par_chunks_mut(width);
        panels.zip(sums.zip(steps)).enumerate().for_each(|(panel, (panel_words, (sums, steps)))| {
            let start = (touched.start + panel) * width;
            let (mut codes, mut mixed) = (Vec::new(), vec![0.0; inputs]);
            for output in start.max(first)..(start + width).min(end) {
                let lane = output - start;
                mixed.copy_from_slice(&rows[(output - first) * inputs..][..inputs]);
                mix_weights(&mut mixed);
                steps[lane] = quantise_weights(reach, &mixed, &mut codes);
                sums[lane] = codes.iter().sum();
                let column = panel_words[lane..].iter_mut().step_by(width);
                for (place, group) in column.zip(codes.chunks(WORD)) {
                    *place = word(group.iter().copied());
                }
            }
        });
    }

    /// Sets the biases of some outputs from `first` on.
    pub(crate) fn put_bias(&mut self, first: usize, bias: &[f32]) {
        self.bias[first..first + bias.len()].copy_from_slice(bias);
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// Words of a row of codes.
    pub(crate) fn words(&self) -> usize {
        self.reach.words(self.inputs)
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
fn quantise_weights(reach: Reach, row: &[f32], codes: &mut Vec<i32>) -> f32 {
    codes.clear();
    // As for activations: a weight that is not finite makes its output NaN in every row.
    if !row.iter().all(|weight| weight.is_finite()) {
        codes.resize(row.len(), 0);
        return f32::NAN;
    }
    let mut step = row.iter().fold(0.0f32, |largest, weight| largest.max(weight.abs())) / 127.0;
    if reach.fold > 1 {
        step = step.max(reach.largest_sum(row) / reach.most() as f32);
    }
    let inverse = if step < 1e-30 { 0.0 } else { 1.0 / step };
    codes.extend(row.iter().map(|weight| (weight * inverse).round_ties_even().clamp(-127.0, 127.0) as i32));
    if reach.fold > 1 {
        // Rounding may have added a little to a sum that was just small enough.
        reach.shrink(codes);
    }
    step
}

/// Codes and steps of weights, `[outputs][inputs]`, for keeping them in a file: what every kernel that uses all of
/// the 8 bits would make of them, mixed as products want them.
///
/// ```
/// let weights = [0.5, -1.0, 0.25, 1.27, 0.0, -0.01];
/// let (codes, steps) = loxia_nn::quantise_rows(&weights, 3);
/// assert_eq!((codes[1], codes[3], codes[5]), (-127, 127, -1));
/// let restored = loxia_nn::restore_rows(&codes, &steps, 3);
/// assert!(restored.iter().zip(weights).all(|(restored, weight)| (restored - weight).abs() < 0.005));
/// ```
pub fn quantise_rows(weights: &[f32], inputs: usize) -> (Vec<i8>, Vec<f32>) {
    let mut codes = vec![0; weights.len()];
    let rows = weights.par_chunks(inputs.max(1)).zip(codes.par_chunks_mut(inputs.max(1)));
    let steps = rows.map(|(row, codes)| {
        let (mut mixed, mut wide) = (row.to_vec(), Vec::new());
        mix_weights(&mut mixed);
        let step = quantise_weights(Reach::WIDE, &mixed, &mut wide);
        codes.iter_mut().zip(wide).for_each(|(code, wide)| *code = wide as i8);
        step
    });
    let steps = steps.collect();
    (codes, steps)
}

/// The weights that [`quantise_rows`] made codes and steps of, but for rounding: making codes of them gives the
/// same codes again.
pub fn restore_rows(codes: &[i8], steps: &[f32], inputs: usize) -> Vec<f32> {
    let mut weights: Vec<f32> = codes.iter().map(|&code| f32::from(code)).collect();
    weights.par_chunks_mut(inputs.max(1)).zip(steps).for_each(|(row, step)| {
        row.iter_mut().for_each(|weight| *weight *= step);
        // Mixing twice multiplies, and mixing weights has divided by as much.
        mix(row);
    });
    weights
}

/// Plain twin of the kernels' quantisation, for a reach.
pub(crate) fn quantise(reach: Reach, input: &[f32], inputs: usize, codes: &mut Codes) {
    let rows = input.len() / inputs;
    let width = reach.words(inputs);
    let words = codes.words.sized(rows.next_multiple_of(reach.rows) * width);
    let (scales, zeros) = (codes.scales.sized(rows), codes.zeros.sized(rows));
    let values = codes.mixed.sized(inputs);
    for (row, unmixed) in input.chunks_exact(inputs).enumerate() {
        values.copy_from_slice(unmixed);
        mix(values);
        let bounds = values.iter().fold((0.0f32, 0.0f32), |(low, high), &x| (low.min(x), high.max(x)));
        let coding =
            Coding::of_range(reach.top, bounds.0, bounds.1, values.iter().all(|value| value.is_finite()));
        (scales[row], zeros[row]) = (coding.scale, coding.zero);
        let code = |value: &f32| (value * coding.inverse + coding.zero as f32).clamp(0.0, reach.top as f32);
        let words = &mut words[row * width..][..width];
        words.fill(0);
        for (place, group) in words.iter_mut().zip(values.chunks(WORD)) {
            *place = word(group.iter().map(|value| code(value).round_ties_even() as i32));
        }
    }
}

/// Plain twin of the kernels' product, and the portable kernel.
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
                add_word(word, weights_of, &mut sums);
            }
            for (lane, out) in out.iter_mut().enumerate() {
                let exact = sums[lane] - zero * panel.sums[lane];
                *out = exact as f32 * (scale * panel.steps[lane]) + panel.bias[lane];
            }
        }
        activation.apply_short(out);
    }
}

/// Adds the products of one word of codes with a word of every output.
#[inline(always)]
fn add_word(word: u32, weights: &[u32], sums: &mut [i32]) {
    let codes = word.to_le_bytes().map(i32::from);
    for (sum, &weight) in sums.iter_mut().zip(weights) {
        let weights = weight.to_le_bytes().map(|byte| i32::from(byte as i8));
        *sum += codes.iter().zip(weights).map(|(code, weight)| code * weight).sum::<i32>();
    }
}
