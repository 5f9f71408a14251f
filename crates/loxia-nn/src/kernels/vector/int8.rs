//! Products in 8-bit integers: see [`crate::kernels::int8`] for what the numbers mean.

use super::elementwise::{GeluShort, Map, Same, activate_short};
use super::tile::{Ahead, STEP, for_rows, unrolled};
use super::{Simd, Task};
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

    /// What holds all that these hold, which were kept apart so that none waits for the others.
    #[inline(always)]
    fn of_all(simd: S, parts: [Self; 3]) -> Self {
        let [a, b, c] = parts;
        Bounds {
            low: simd.min(simd.min(a.low, b.low), c.low),
            high: simd.max(simd.max(a.high, b.high), c.high),
            residue: simd.add(simd.add(a.residue, b.residue), c.residue),
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

/// Mixes a row into another one, in passes over three, two or one of the powers of two, and finds the bounds of what
/// comes out.
#[inline(always)]
fn mix<S: Simd>(simd: S, mixing: Mixing, row: &[f32], mixed: &mut [f32]) -> Bounds<S> {
    let (mut stride, mut left) = (GROUP, mixing.groups);
    let source = |stride: usize| (stride == GROUP).then_some(row);
    while left > 8 {
        butterflies::<S, 8>(simd, stride, source(stride), mixed);
        stride *= 8;
        left /= 8;
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
    let mut ways = [Bounds::new(simd); 3];
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
                let way = &mut ways[index % 3];
                let mut outs = values.map(|values| values[index]);
                if let [a, b, c] = outs[..] {
                    let shift = simd.mul(simd.add(simd.add(a, b), c), simd.splat(TWO_THIRDS));
                    outs.iter_mut().for_each(|out| *out = simd.sub(*out, shift));
                    // None of them is NaN without it.
                    way.look_at(simd, shift);
                } else {
                    outs.iter().for_each(|&out| way.look_at(simd, out));
                }
                for (place, &out) in outs.iter().enumerate() {
                    ways[(index + place) % 3].widen(simd, out);
                    // SAFETY: as for reading.
                    unsafe { simd.store(to.add(place * part + index * stride + at), out) };
                }
            });
        }
    }
    Bounds::of_all(simd, ways)
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

/// Sums and differences of the values one, two and four from each other, where there are so many.
#[inline(always)]
fn all_apart<S: Simd, const RADIX: usize>(simd: S, values: &mut [S::Vector; RADIX]) {
    apart::<S, RADIX, 1>(simd, values);
    apart::<S, RADIX, 2>(simd, values);
    apart::<S, RADIX, 4>(simd, values);
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

#[inline(always)]
fn encode<S: Simd>(simd: S, values: &[f32], coding: Coding, top: i32, words: &mut [u32]) {
    let (inverse, offset) = (simd.splat(coding.inverse), simd.splat(coding.zero as f32));
    let top = simd.splat(top as f32);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
    let whole = values.len() / S::LANES;
    for (values, bytes) in values.chunks_exact(S::LANES).zip(bytes.chunks_exact_mut(S::LANES)) {
        // SAFETY: the chunk has room for the codes of one vector.
        unsafe { simd.store_codes(bytes.as_mut_ptr(), code(simd, simd.read(values), inverse, offset, top)) };
    }
    let rest = &values[whole * S::LANES..];
    let bytes = &mut bytes[whole * S::LANES..];
    if !bytes.is_empty() {
        let mut last = [0u8; 64];
        // SAFETY: 64 bytes are enough for the codes of any vector.
        unsafe { simd.store_codes(last.as_mut_ptr(), code(simd, simd.read(rest), inverse, offset, top)) };
        // The values behind the row's end must be 0, and the coding's 0 is another code.
        last[rest.len()..].fill(0);
        bytes.copy_from_slice(&last[..bytes.len()]);
    }
}

#[inline(always)]
fn code<S: Simd>(simd: S, x: S::Vector, inverse: S::Vector, offset: S::Vector, top: S::Vector) -> S::Vector {
    simd.min(top, simd.max(simd.splat(0.0), simd.mul_add(x, inverse, offset)))
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
    let outputs = work.weights.outputs();
    let words = work.weights.words();
    let width = VECTORS * S::LANES;
    let mut panels = work.weights.panels().peekable();
    let mut index = 0;
    while let Some(panel) = panels.next() {
        let next = panels.peek().map_or(&[][..], |next| next.words);
        let first = index * width;
        let columns = first..outputs.min(first + width);
        let mut row = 0;
        let tiles = work.out.chunks_mut(S::INT8_TILE_ROWS * outputs);
        let count = tiles.len();
        for (tile, out) in tiles.enumerate() {
            if S::REACH.fold > 1 {
                prefetch_share(simd, next, tile, count);
            }
            let ahead = Ahead::new(next, tile, count, words / STEP);
            let rows = out.len() / outputs;
            let codes = TileCodes {
                words: &work.codes.words[row * words..][..rows * words],
                scales: &work.codes.scales[row..row + rows],
                zeros: &work.codes.zeros[row..row + rows],
            };
            for_rows!(
                rows,
                run_tile::<S, VECTORS>(simd, map, codes, panel, ahead, columns.clone(), outputs, out)
            );
            activate_short(simd, work.activation, out, outputs, columns.clone());
            row += rows;
        }
        index += 1;
    }
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

/// Codes of a tile's rows.
#[derive(Clone, Copy)]
struct TileCodes<'a> {
    words: &'a [u32],
    scales: &'a [f32],
    zeros: &'a [i32],
}

/// A tile as a task of its own: inlined into the loops around it, it would lose registers to them.
struct Tile<'a, M, const ROWS: usize, const VECTORS: usize> {
    map: M,
    codes: TileCodes<'a>,
    panel: PanelInt8<'a>,
    /// Of the panel that comes next, if the fold is 1.
    ahead: Ahead,
    columns: std::ops::Range<usize>,
    outputs: usize,
    out: &'a mut [f32],
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the fields of the task that it makes")]
fn run_tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    map: impl Map,
    codes: TileCodes<'_>,
    panel: PanelInt8<'_>,
    ahead: Ahead,
    columns: std::ops::Range<usize>,
    outputs: usize,
    out: &mut [f32],
) {
    simd.run(Tile::<_, ROWS, VECTORS> { map, codes, panel, ahead, columns, outputs, out });
}

impl<M: Map, const ROWS: usize, const VECTORS: usize> Task for Tile<'_, M, ROWS, VECTORS> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Tile { map, codes, panel, mut ahead, columns, outputs, out } = self;
        let sums = accumulate::<S, ROWS, VECTORS>(simd, codes.words, panel.words, || ahead.step(simd));
        if columns.len() == VECTORS * S::LANES {
            return write_whole(simd, map, &sums, codes, panel, outputs, &mut out[columns.start..]);
        }
        for (row, sums) in sums.iter().enumerate() {
            let right = &mut out[row * outputs..][columns.clone()];
            let coding = (simd.splat(codes.scales[row]), simd.splat_ints(codes.zeros[row]));
            for (vector, &sum) in sums.iter().enumerate() {
                let result = map.of(simd, meaning(simd, sum, coding, panel, vector));
                simd.write(right.get_mut(vector * S::LANES..).unwrap_or(&mut []), result);
            }
        }
    }
}

/// Writes what `map` makes of what sums mean to rows of whole vectors, `outputs` apart. Short and without a branch, so that the sums stay in
/// registers: written down and read again they took a thirtieth of a product of 384 inputs.
#[inline(always)]
fn write_whole<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    map: impl Map,
    sums: &[[S::Ints; VECTORS]; ROWS],
    codes: TileCodes<'_>,
    panel: PanelInt8<'_>,
    outputs: usize,
    out: &mut [f32],
) {
    let (scales, zeros) = (&codes.scales[..ROWS], &codes.zeros[..ROWS]);
    let width = VECTORS * S::LANES;
    let panel = PanelInt8 {
        sums: &panel.sums[..width],
        steps: &panel.steps[..width],
        bias: &panel.bias[..width],
        ..panel
    };
    assert!(out.len() >= (ROWS - 1) * outputs + VECTORS * S::LANES, "a tile ends within a vector");
    let out = out.as_mut_ptr();
    unrolled!(row < ROWS, {
        let coding = (simd.splat(scales[row]), simd.splat_ints(zeros[row]));
        let mut results = [simd.splat(0.0); VECTORS];
        for (vector, result) in results.iter_mut().enumerate() {
            *result = meaning(simd, sums[row][vector], coding, panel, vector);
        }
        for (vector, result) in map.of_all(simd, results).into_iter().enumerate() {
            // SAFETY: row < ROWS and vector < VECTORS: by the assertion there is room for the last such vector.
            unsafe { simd.store(out.add(row * outputs + vector * S::LANES), result) };
        }
    });
}

/// What sums of a row mean in a vector of a panel's outputs, given the row's scale and zero point.
#[inline(always)]
pub(super) fn meaning<S: Simd>(
    simd: S,
    sums: S::Ints,
    (scale, zero): (S::Vector, S::Ints),
    panel: PanelInt8<'_>,
    vector: usize,
) -> S::Vector {
    let lanes = vector * S::LANES..(vector + 1) * S::LANES;
    let exact = simd.sub_ints(sums, simd.mul_ints(zero, simd.read_ints(&panel.sums[lanes.clone()])));
    let step = simd.mul(scale, simd.read(&panel.steps[lanes.clone()]));
    simd.mul_add(simd.to_floats(exact), step, simd.read(&panel.bias[lanes]))
}

/// Sums of the products of `ROWS` rows of codes with a panel; calls `between` every few words, if the fold is 1.
#[inline(always)]
fn accumulate<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    codes: &[u32],
    panel: &[u32],
    mut between: impl FnMut(),
) -> [[S::Ints; VECTORS]; ROWS] {
    let width = VECTORS * S::LANES;
    let depth = panel.len() / width;
    assert!(codes.len() >= ROWS * depth, "a tile's codes end before its panel");
    let fold = S::REACH.fold;
    assert!(depth.is_multiple_of(fold), "a panel ends within a sum of 16 bits");
    let mut sums = [[simd.splat_ints(0); VECTORS]; ROWS];
    let (codes, panel) = (codes.as_ptr(), panel.as_ptr());
    for first in (0..depth).step_by(fold) {
        if fold == 1 && first.is_multiple_of(STEP) {
            between();
        }
        let mut halves = [[simd.splat_ints(0); VECTORS]; ROWS];
        for word in first..first + fold {
            let mut weights = [simd.splat_ints(0); VECTORS];
            for (vector, weight) in weights.iter_mut().enumerate() {
                // SAFETY: word < depth, so these lanes end within the panel's depth · width words.
                *weight = unsafe { simd.load_ints(panel.add(word * width + vector * S::LANES).cast()) };
            }
            for row in 0..ROWS {
                // SAFETY: row < ROWS and word < depth; the assertion above covers the last such index.
                let code = simd.splat_ints(unsafe { *codes.add(row * depth + word) } as i32);
                for (vector, &weight) in weights.iter().enumerate() {
                    if fold == 1 {
                        sums[row][vector] = simd.dot_add(sums[row][vector], code, weight);
                    } else {
                        halves[row][vector] = simd.dot_add_halves(halves[row][vector], code, weight);
                    }
                }
            }
        }
        if fold > 1 {
            for (sum, &half) in sums.as_flattened_mut().iter_mut().zip(halves.as_flattened()) {
                *sum = simd.add_halves(*sum, half);
            }
        }
    }
    sums
}
