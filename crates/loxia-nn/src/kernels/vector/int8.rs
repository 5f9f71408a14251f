//! Products in 8-bit integers: see [`crate::kernels::int8`] for what the numbers mean.

use super::elementwise::{GeluShort, Map, Same, activate_short};
use super::tile::{Ahead, STEP, for_rows, unrolled};
use super::{MOST_LANES, Simd, Task};
use crate::Activation;
use crate::kernels::int8::{Codes, Coding, PackedInt8, PanelInt8, Reach};
use crate::kernels::mixing::{GROUP, Mixing, TWO_THIRDS};

/// Codes of the rows of `input`, `[rows][inputs]`.
pub(in crate::kernels) struct Quantise<'a> {
    pub(in crate::kernels) reach: Reach,
    pub(in crate::kernels) input: &'a [f32],
    pub(in crate::kernels) inputs: usize,
    pub(in crate::kernels) codes: &'a mut Codes,
}

impl Task for Quantise<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Quantise { reach, input, inputs, codes } = self;
        let rows = input.len() / inputs;
        let width = reach.words(inputs);
        let words = codes.words.sized(rows.next_multiple_of(reach.rows) * width);
        let (scales, zeros) = (codes.scales.sized(rows), codes.zeros.sized(rows));
        let (mixing, mixed) = (Mixing::of(inputs), codes.mixed.sized(inputs));
        for (row, values) in input.chunks_exact(inputs).enumerate() {
            let (values, bounds) = if mixing.is_none() {
                let mut bounds = Bounds::new(simd);
                bounds.hold_all(simd, values);
                (values, bounds)
            } else {
                let bounds = mix(simd, mixing, values, mixed);
                (&*mixed, bounds)
            };
            let coding = bounds.coding(simd, reach.top);
            (scales[row], zeros[row]) = (coding.scale, coding.zero);
            encode(simd, values, coding, reach.top, &mut words[row * width..][..width]);
        }
    }
}

/// Between what values lie, lane by lane.
#[derive(Clone, Copy)]
struct Bounds<S: Simd> {
    low: S::Vector,
    high: S::Vector,
    /// 0 for every number; NaN, and for ever, after an infinity or a NaN.
    residue: S::Vector,
}

impl<S: Simd> Bounds<S> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        let zero = simd.splat(0.0);
        Bounds { low: zero, high: zero, residue: zero }
    }

    #[inline(always)]
    fn widen(&mut self, simd: S, x: S::Vector) {
        self.low = simd.min(self.low, x);
        self.high = simd.max(self.high, x);
    }

    #[inline(always)]
    fn look_at(&mut self, simd: S, x: S::Vector) {
        self.residue = simd.mul_add(x, simd.splat(0.0), self.residue);
    }

    #[inline(always)]
    fn hold_all(&mut self, simd: S, values: &[f32]) {
        for values in values.chunks(S::LANES) {
            let x = simd.read(values);
            self.widen(simd, x);
            self.look_at(simd, x);
        }
    }

    #[inline(always)]
    fn coding(&self, simd: S, top: i32) -> Coding {
        let smallest = -simd.largest(simd.sub(simd.splat(0.0), self.low));
        let largest = simd.largest(self.high);
        let finite = simd.sum(self.residue) == 0.0 && smallest.is_finite() && largest.is_finite();
        Coding::of_range(top, smallest, largest, finite)
    }
}

/// Mixes a row into another one, in passes over one to four of the powers of two, and finds the bounds of what
/// comes out.
#[inline(always)]
fn mix<S: Simd>(simd: S, mixing: Mixing, row: &[f32], mixed: &mut [f32]) -> Bounds<S> {
    let (mut stride, mut left) = (GROUP, mixing.groups);
    let source = |stride: usize| (stride == GROUP).then_some(row);
    while left > 8 {
        if left == 64 {
            // The last pass has the fewer to keep in registers, of which it needs three times as many.
            butterflies::<S, 16>(simd, stride, source(stride), mixed);
            stride *= 16;
            left /= 16;
        } else {
            butterflies::<S, 8>(simd, stride, source(stride), mixed);
            stride *= 8;
            left /= 8;
        }
    }
    let source = source(stride);
    match (left, mixing.thirds) {
        (1, true) => last::<S, 1, 3>(simd, stride, source, mixed),
        (2, true) => last::<S, 2, 3>(simd, stride, source, mixed),
        (4, true) => last::<S, 4, 3>(simd, stride, source, mixed),
        (_, true) => last::<S, 8, 3>(simd, stride, source, mixed),
        (2, false) => last::<S, 2, 1>(simd, stride, source, mixed),
        (4, false) => last::<S, 4, 1>(simd, stride, source, mixed),
        (_, false) => last::<S, 8, 1>(simd, stride, source, mixed),
    }
}

/// The last of the passes: with `PARTS` of three it mixes the thirds of a row as well. While values are in registers, their
/// bounds are found.
#[inline(always)]
fn last<S: Simd, const RADIX: usize, const PARTS: usize>(
    simd: S,
    stride: usize,
    source: Option<&[f32]>,
    mixed: &mut [f32],
) -> Bounds<S> {
    let part = RADIX * stride;
    assert!(mixed.len().is_multiple_of(PARTS * part) && stride.is_multiple_of(S::LANES));
    assert!(source.is_none_or(|source| source.len() >= mixed.len()));
    let to = mixed.as_mut_ptr();
    let from = source.map_or(to.cast_const(), <[f32]>::as_ptr);
    let mut bounds = Bounds::new(simd);
    for first in (0..mixed.len()).step_by(PARTS * part) {
        for at in (first..first + stride).step_by(S::LANES) {
            let mut values = [[simd.splat(0.0); RADIX]; PARTS];
            for (index, values) in values.iter_mut().enumerate() {
                // SAFETY: index < PARTS and at + LANES <= first + stride, and PARTS parts end within the row; both have
                // its length.
                *values = unsafe { load_apart(simd, from.add(index * part + at), stride) };
                all_apart(simd, values);
            }
            unrolled!(index < RADIX, {
                let mut outs = values.map(|values| values[index]);
                if let [a, b, c] = outs[..] {
                    let shift = simd.mul(simd.add(simd.add(a, b), c), simd.splat(TWO_THIRDS));
                    outs.iter_mut().for_each(|out| *out = simd.sub(*out, shift));
                    // None of them is NaN without it.
                    bounds.look_at(simd, shift);
                } else {
                    outs.iter().for_each(|&out| bounds.look_at(simd, out));
                }
                for (place, &out) in outs.iter().enumerate() {
                    bounds.widen(simd, out);
                    // SAFETY: as for reading.
                    unsafe { simd.store(to.add(place * part + index * stride + at), out) };
                }
            });
        }
    }
    bounds
}

/// Sums and differences of values one, two, ... up to `RADIX / 2` strides apart, of `source` or else in place.
#[inline(always)]
fn butterflies<S: Simd, const RADIX: usize>(
    simd: S,
    stride: usize,
    source: Option<&[f32]>,
    mixed: &mut [f32],
) {
    let block = RADIX * stride;
    assert!(mixed.len().is_multiple_of(block) && stride.is_multiple_of(S::LANES));
    assert!(source.is_none_or(|source| source.len() >= mixed.len()));
    let to = mixed.as_mut_ptr();
    let from = source.map_or(to.cast_const(), <[f32]>::as_ptr);
    for first in (0..mixed.len()).step_by(block) {
        for at in (first..first + stride).step_by(S::LANES) {
            // SAFETY: at + LANES <= first + stride, which divides into vectors: a block ends within the row, and both
            // have its length.
            let mut values: [S::Vector; RADIX] = unsafe { load_apart(simd, from.add(at), stride) };
            all_apart(simd, &mut values);
            for (index, &value) in values.iter().enumerate() {
                // SAFETY: as for reading.
                unsafe { simd.store(to.add(index * stride + at), value) };
            }
        }
    }
}

/// Vectors a stride apart.
///
/// # Safety
/// `RADIX` of them must be there to be read.
#[inline(always)]
unsafe fn load_apart<S: Simd, const RADIX: usize>(
    simd: S,
    from: *const f32,
    stride: usize,
) -> [S::Vector; RADIX] {
    let mut values = [simd.splat(0.0); RADIX];
    for (index, value) in values.iter_mut().enumerate() {
        // SAFETY: the caller vouches for it.
        *value = unsafe { simd.load(from.add(index * stride)) };
    }
    values
}

/// Sums and differences of the values one, two, four and eight from each other, where there are so many.
#[inline(always)]
fn all_apart<S: Simd, const RADIX: usize>(simd: S, values: &mut [S::Vector; RADIX]) {
    apart::<S, RADIX, 1>(simd, values);
    apart::<S, RADIX, 2>(simd, values);
    apart::<S, RADIX, 4>(simd, values);
    apart::<S, RADIX, 8>(simd, values);
}

/// Sums and differences of the values `APART` from each other.
#[inline(always)]
fn apart<S: Simd, const RADIX: usize, const APART: usize>(simd: S, values: &mut [S::Vector; RADIX]) {
    for index in 0..RADIX {
        if index & APART == 0 && index + APART < RADIX {
            let (a, b) = (values[index], values[index + APART]);
            (values[index], values[index + APART]) = (simd.add(a, b), simd.sub(a, b));
        }
    }
}

/// Vectors whose codes are written at once.
const FOUR: usize = 4;

#[inline(always)]
fn encode<S: Simd>(simd: S, values: &[f32], coding: Coding, top: i32, words: &mut [u32]) {
    let (inverse, offset) = (simd.splat(coding.inverse), simd.splat(coding.zero as f32));
    let top = simd.splat(top as f32);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
    let most = values.len().next_multiple_of(FOUR * S::LANES);
    assert!(values.len() <= bytes.len() && bytes.len() <= most, "codes of another number of values");
    for (values, bytes) in values.chunks(FOUR * S::LANES).zip(bytes.chunks_mut(FOUR * S::LANES)) {
        let mut codes = [simd.splat(0.0); FOUR];
        if values.len() == FOUR * S::LANES {
            for (vector, code) in codes.iter_mut().enumerate() {
                // SAFETY: there are as many values as lanes of so many vectors.
                let x = unsafe { simd.load(values.as_ptr().add(vector * S::LANES)) };
                *code = simd.min(top, simd.mul_add(x, inverse, offset));
            }
            // SAFETY: there are as many bytes as values.
            unsafe { simd.store_codes(bytes.as_mut_ptr(), codes) };
            continue;
        }
        for (values, code) in values.chunks(S::LANES).zip(&mut codes) {
            *code = simd.min(top, simd.mul_add(simd.read(values), inverse, offset));
        }
        let mut last = [0u8; FOUR * MOST_LANES];
        // SAFETY: there is room for the codes of so many vectors.
        unsafe { simd.store_codes(last.as_mut_ptr(), codes) };
        // The values behind the row's end must be 0, and the coding's 0 is another code.
        last[values.len()..].fill(0);
        bytes.copy_from_slice(&last[..bytes.len()]);
    }
}

/// `out = activation(input · W + b)`.
pub(in crate::kernels) struct ProductInt8<'a> {
    pub(in crate::kernels) codes: &'a Codes,
    pub(in crate::kernels) weights: &'a PackedInt8,
    pub(in crate::kernels) activation: Activation,
    pub(in crate::kernels) out: &'a mut [f32],
}

impl Task for ProductInt8<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // The common one while sums are in registers, others afterwards.
        match self.activation {
            Activation::GeluErf => {
                multiply(simd, GeluShort, ProductInt8 { activation: Activation::Identity, ..self })
            }
            _ => multiply(simd, Same, self),
        }
    }
}

/// `out = activation(map(input · W + b))`.
#[inline(always)]
fn multiply<S: Simd>(simd: S, map: impl Map, work: ProductInt8<'_>) {
    match S::PANEL_VECTORS {
        2 => by_panels::<S, _, 2>(simd, map, work),
        3 => by_panels::<S, _, 3>(simd, map, work),
        vectors => unreachable!("no product for panels of {vectors} vectors"),
    }
}

#[inline(always)]
fn by_panels<S: Simd, M: Map, const VECTORS: usize>(simd: S, map: M, work: ProductInt8<'_>) {
    let ProductInt8 { codes, weights, activation, out } = work;
    let (outputs, words, width) = (weights.outputs(), weights.words(), VECTORS * S::LANES);
    let codes = RowCodes { words: &codes.words, scales: &codes.scales, zeros: &codes.zeros };
    let rows = codes.scales.len();
    let (whole, count) = (rows / S::INT8_TILE_ROWS, rows.div_ceil(S::INT8_TILE_ROWS));
    let (in_whole, rest) = out.split_at_mut(whole * S::INT8_TILE_ROWS * outputs);
    let mut panels = weights.panels().enumerate().peekable();
    while let Some((index, panel)) = panels.next() {
        let next = panels.peek().map_or(&[][..], |(_, next)| next.words);
        let columns = index * width..outputs.min((index + 1) * width);
        for (first, out) in [(0, &mut *in_whole), (whole, &mut *rest)] {
            if !out.is_empty() {
                let codes = codes.from(first * S::INT8_TILE_ROWS, words);
                for_rows!(
                    S::INT8_TILE_ROWS.min(out.len() / outputs),
                    run_tiles::<S, VECTORS>(
                        simd,
                        map,
                        codes,
                        panel,
                        (next, first, count),
                        columns.clone(),
                        outputs,
                        out
                    )
                );
                activate_short(simd, activation, out, outputs, columns.clone());
            }
        }
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the fields of the task that it makes")]
fn run_tiles<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    map: impl Map,
    codes: RowCodes<'_>,
    panel: PanelInt8<'_>,
    (next, first, count): (&[u32], usize, usize),
    columns: std::ops::Range<usize>,
    outputs: usize,
    out: &mut [f32],
) {
    simd.run(Tiles::<_, ROWS, VECTORS> { map, codes, panel, next, first, count, columns, outputs, out });
}

/// Asks for the `share`-th of `shares` parts of what will be read when this is done: far memory is waited for
/// while there is other work. All at once, unlike in f32 and with VNNI: tiles without it are small, and asking within
/// their loop would take more time than it saves.
#[inline(always)]
pub(super) fn prefetch_share<S: Simd, T>(simd: S, next: &[T], share: usize, shares: usize) {
    let from = |share: usize| (next.len() * share / shares).min(next.len());
    let part = &next[from(share)..from(share + 1)];
    let line = (64 / size_of::<T>()).max(1);
    part.iter().step_by(line).for_each(|value| simd.prefetch(std::ptr::from_ref(value).cast()));
}

/// Codes of some rows.
#[derive(Clone, Copy)]
struct RowCodes<'a> {
    words: &'a [u32],
    scales: &'a [f32],
    zeros: &'a [i32],
}

impl RowCodes<'_> {
    /// The rows from `first` on, of so many words each.
    #[inline(always)]
    fn from(self, first: usize, words: usize) -> Self {
        RowCodes {
            words: &self.words[first * words..],
            scales: &self.scales[first..],
            zeros: &self.zeros[first..],
        }
    }
}

/// The outputs of one panel for rows in tiles of `ROWS`, as a task of its own: inlined into the loop around it, it would
/// lose registers to it. All tiles in one task: a call for each took a hundredth of the time.
struct Tiles<'a, M, const ROWS: usize, const VECTORS: usize> {
    map: M,
    codes: RowCodes<'a>,
    panel: PanelInt8<'a>,
    /// The panel that comes next: these are the tiles from `first` on of the `count` that ask for it.
    next: &'a [u32],
    first: usize,
    count: usize,
    columns: std::ops::Range<usize>,
    outputs: usize,
    out: &'a mut [f32],
}

impl<M: Map, const ROWS: usize, const VECTORS: usize> Task for Tiles<'_, M, ROWS, VECTORS> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Tiles { map, codes, panel, next, first, count, columns, outputs, out } = self;
        let width = VECTORS * S::LANES;
        let words = panel.words.len() / width;
        for (tile, out) in out.chunks_exact_mut(ROWS * outputs).enumerate() {
            let codes = codes.from(tile * ROWS, words);
            if S::REACH.fold > 1 {
                prefetch_share(simd, next, first + tile, count);
            }
            let mut ahead = Ahead::new(next, first + tile, count, words / STEP);
            let sums = accumulate::<S, ROWS, VECTORS>(simd, codes, panel, || ahead.step(simd));
            if columns.len() == width {
                write(simd, map, &sums, codes, panel, outputs, &mut out[columns.start..]);
                continue;
            }
            let mut whole = [0.0; MOST_SUMS];
            write(simd, map, &sums, codes, panel, width, &mut whole);
            for (out, values) in out.chunks_exact_mut(outputs).zip(whole.chunks_exact(width)) {
                out[columns.clone()].copy_from_slice(&values[..columns.len()]);
            }
        }
    }
}

/// Sums of the largest tile of any implementation.
const MOST_SUMS: usize = 8 * 3 * MOST_LANES;

/// Writes what `map` makes of what sums mean to rows of whole vectors, so far apart. Short and without a branch, so that the
/// sums stay in registers: written down and read again they took a thirtieth of a product of 384 inputs.
#[inline(always)]
fn write<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    map: impl Map,
    sums: &[[S::Ints; VECTORS]; ROWS],
    codes: RowCodes<'_>,
    panel: PanelInt8<'_>,
    outputs: usize,
    out: &mut [f32],
) {
    let scales = &codes.scales[..ROWS];
    let width = VECTORS * S::LANES;
    let panel = PanelInt8 { steps: &panel.steps[..width], bias: &panel.bias[..width], ..panel };
    assert!(out.len() >= (ROWS - 1) * outputs + VECTORS * S::LANES, "a tile ends within a vector");
    let out = out.as_mut_ptr();
    unrolled!(row < ROWS, {
        let scale = simd.splat(scales[row]);
        let mut results = [simd.splat(0.0); VECTORS];
        for (vector, result) in results.iter_mut().enumerate() {
            *result = meaning(simd, sums[row][vector], scale, panel, vector);
        }
        for (vector, result) in map.of_all(simd, results).into_iter().enumerate() {
            // SAFETY: row < ROWS and vector < VECTORS: by the assertion there is room for the last such vector.
            unsafe { simd.store(out.add(row * outputs + vector * S::LANES), result) };
        }
    });
}

/// What a code would add to the sums of a vector of a panel's outputs if all inputs had it.
#[inline(always)]
pub(super) fn of_code<S: Simd>(simd: S, code: i32, panel: PanelInt8<'_>, vector: usize) -> S::Ints {
    simd.mul_ints(simd.splat_ints(code), simd.read_ints(&panel.sums[vector * S::LANES..]))
}

/// What sums of a row mean in a vector of a panel's outputs, given the row's scale.
#[inline(always)]
pub(super) fn meaning<S: Simd>(
    simd: S,
    sums: S::Ints,
    scale: S::Vector,
    panel: PanelInt8<'_>,
    vector: usize,
) -> S::Vector {
    let lanes = vector * S::LANES..(vector + 1) * S::LANES;
    let step = simd.mul(scale, simd.read(&panel.steps[lanes.clone()]));
    simd.mul_add(simd.to_floats(sums), step, simd.read(&panel.bias[lanes]))
}

/// Sums of the products of `ROWS` rows of codes with a panel; calls `between` every few words, if the fold is 1.
#[inline(always)]
fn accumulate<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    rows: RowCodes<'_>,
    panel: PanelInt8<'_>,
    mut between: impl FnMut(),
) -> [[S::Ints; VECTORS]; ROWS] {
    let width = VECTORS * S::LANES;
    let depth = panel.words.len() / width;
    assert!(rows.words.len() >= ROWS * depth, "a tile's codes end before its panel");
    let fold = S::REACH.fold;
    assert!(depth.is_multiple_of(fold), "a panel ends within a sum of 16 bits");
    let mut sums = [[simd.splat_ints(0); VECTORS]; ROWS];
    for (&zero, sums) in rows.zeros[..ROWS].iter().zip(&mut sums) {
        for (vector, sum) in sums.iter_mut().enumerate() {
            // Here, where it waits for nothing and nothing for it, and not when the sums are there.
            *sum = of_code(simd, -zero, panel, vector);
        }
    }
    let panel = panel.words.as_ptr();
    let codes: [_; ROWS] = std::array::from_fn(|row| rows.words[row * depth..].as_ptr());
    let whole = if fold == 1 { depth - depth % STEP } else { depth };
    for first in (0..whole).step_by(if fold == 1 { STEP } else { fold }) {
        if fold == 1 {
            between();
            for word in first..first + STEP {
                // SAFETY: word < depth; the panel has depth · width words, and each row has as many as asserted.
                unsafe { add_word(simd, word, codes, panel, &mut sums, S::dot_add) };
            }
            continue;
        }
        let mut halves = [[simd.splat_ints(0); VECTORS]; ROWS];
        for word in first..first + fold {
            // SAFETY: as above.
            unsafe { add_word(simd, word, codes, panel, &mut halves, S::dot_add_halves) };
        }
        for (sum, &half) in sums.as_flattened_mut().iter_mut().zip(halves.as_flattened()) {
            *sum = simd.add_halves(*sum, half);
        }
    }
    for word in whole..depth {
        // SAFETY: as above.
        unsafe { add_word(simd, word, codes, panel, &mut sums, S::dot_add) };
    }
    sums
}

/// Adds the products of one word of each row.
///
/// # Safety
///
/// `codes` must point to more than `word` words each, `panel` to more than `word` times its width.
#[inline(always)]
unsafe fn add_word<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    word: usize,
    codes: [*const u32; ROWS],
    panel: *const u32,
    sums: &mut [[S::Ints; VECTORS]; ROWS],
    add: impl Fn(S, S::Ints, S::Ints, S::Ints) -> S::Ints,
) {
    let mut weights = [simd.splat_ints(0); VECTORS];
    for (vector, weight) in weights.iter_mut().enumerate() {
        // SAFETY: the caller vouches for a panel of more than `word` rows of VECTORS vectors.
        *weight = unsafe { simd.load_ints(panel.add((word * VECTORS + vector) * S::LANES).cast()) };
    }
    for (sums, codes) in sums.iter_mut().zip(codes) {
        // SAFETY: the caller vouches for more than `word` words.
        let code = simd.splat_ints(unsafe { *codes.add(word) } as i32);
        for (sum, &weight) in sums.iter_mut().zip(&weights) {
            *sum = add(simd, *sum, code, weight);
        }
    }
}
