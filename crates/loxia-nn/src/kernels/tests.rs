//! Every vector kernel against its plain twin.

use proptest::prelude::*;

use super::int8::{self, Codes, PackedInt8, Reach};
use super::mixing::{Mixing, mix, mix_weights};
use super::vector::emulated::{Emulated, EmulatedUnit};
use super::vector::{AddNorm, Attend, AttendStates, Product, ProductInt8, Quantise, Simd, panel_width};
use super::vector::{AttendByMatrix, AttendInPairs, KeepPairs, MATRIX_REACH, MatrixUnit, ProductByMatrix};
use super::{
    Attention, AttentionScratch, DistanceBias, Keeping, NewRows, PIECE, Packed, Rows, SLOTS, Shelf,
    StatesAttention, reference, states_attention,
};
use crate::memory::Buffer;
use crate::{Activation, LayerNorm, Linear, Precision, RelativeBuckets};

fn values(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= tolerance * (1.0 + expected.abs());
        assert!(close, "{what}, element {index}: {found}, the reference has {expected}");
    }
}

fn product<S: Simd>(simd: S, inputs: usize, outputs: usize, rows: usize, activation: Activation) {
    let linear = Linear {
        weight: values(1, inputs * outputs),
        bias: outputs.is_multiple_of(2).then(|| values(2, outputs)),
        inputs,
        outputs,
    };
    let input = values(3, rows * inputs);
    let mut expected = vec![0.0; rows * outputs];
    let weights = Packed::with_width(reference::PANEL, &[&linear]);
    reference::product(&input, &weights, activation, &mut expected);
    // Garbage from before must not matter.
    let mut found = vec![f32::NAN; rows * outputs];
    let weights = Packed::with_width(panel_width(simd), &[&linear]);
    simd.run(Product { input: &input, weights: &weights, activation, out: &mut found });
    let what = format!("product {rows} x {inputs} x {outputs}, {activation:?}");
    assert_close(&found, &expected, 1e-6 * inputs as f32, &what);
}

fn add_norm<S: Simd>(simd: S, width: usize, rows: usize) {
    let norm = LayerNorm { scale: values(1, width), shift: values(2, width), eps: 1e-5 };
    let (states, addend) = (values(3, rows * width), values(4, rows * width));
    for addend in [None, Some(addend.as_slice())] {
        let (mut expected, mut found) = (states.clone(), states.clone());
        reference::add_norm(&mut expected, addend, &norm);
        simd.run(AddNorm { states: &mut found, addend, norm: &norm });
        assert_close(&found, &expected, 1e-4, &format!("norm of {width}"));
    }
}

fn attention<S: Simd>(simd: S, heads: usize, width: usize, keys: usize, queries: usize) {
    check_attention(heads, width, keys, queries, 3e-6, |work, scratch, out| {
        simd.run(Attend { work, scratch, out });
    });
}

/// The same of pairs of rounded numbers.
fn attention_in_pairs<S: Simd>(simd: S, heads: usize, width: usize, keys: usize, queries: usize) {
    check_attention(heads, width, keys, queries, 8e-3, |work, scratch, out| {
        let shelf = Shelf { keeping: Keeping::Pairs, ..work.shelf };
        let keep = |head: usize| {
            // Garbage from before must not matter.
            let mut kept = vec![f32::NAN; shelf.of_head()];
            let [key_places, value_places] = shelf.places(work.first, keys);
            let (before, behind) = kept.split_at_mut(value_places.start);
            let (key_pairs, value_pairs) = (&mut before[key_places], &mut behind[..value_places.len()]);
            let middle = keys / 2 / PIECE * PIECE;
            // In two pieces, the last one first.
            for (first, end) in [(middle, keys), (0, middle)] {
                let rows = NewRows {
                    keys: work.keys(head).from(first, 0),
                    values: work.values(head).from(first, 0),
                    width,
                    first,
                    end,
                    count: keys,
                };
                let (keys, values) =
                    (bytemuck::cast_slice_mut(key_pairs), bytemuck::cast_slice_mut(value_pairs));
                simd.run(KeepPairs { rows, keys, values });
            }
            kept
        };
        let kept: Vec<_> = (0..heads).map(keep).collect();
        let kept: Vec<&[f32]> = kept.iter().map(Vec::as_slice).collect();
        simd.run(AttendInPairs { work: &Attention { kept: &kept, shelf, ..*work }, scratch, out });
    });
}

/// The same by a matrix unit, of rounded numbers.
fn attention_by_matrix<S: Simd, U: MatrixUnit>(
    (simd, unit): (S, impl Fn() -> U),
    heads: usize,
    width: usize,
    keys: usize,
    queries: usize,
) {
    check_attention(heads, width, keys, queries, 8e-3, |work, scratch, out| {
        simd.run(AttendByMatrix { unit: unit(), work, scratch, out });
    });
}

/// Attention of some queries over states in three pieces.
fn attend_states<S: Simd>(simd: S, heads: usize, width: usize, count: usize, queries: usize) {
    let hidden = heads * width;
    let relative = RelativeBuckets { buckets: 32, max_distance: 128 };
    let bias = DistanceBias::new(relative, &values(1, 32 * heads), heads, count);
    let places: Vec<u32> = (0..queries as u32).map(|query| query * 7 % count as u32).collect();
    // Heads are further apart than these queries need.
    let between_heads = (queries + 1) * hidden;
    let (taken, states) = (values(2, heads * between_heads), values(3, count * hidden));
    let (first, rest) = states.split_at(count / 3 * hidden);
    let (second, third) = rest.split_at((count / 3 + count % 3) * hidden);
    for bias in [None, Some(&bias)] {
        let work = StatesAttention {
            queries: &taken,
            between_heads,
            heads,
            hidden,
            places: &places,
            states: &[first, second, third],
            scale: 1.0 / (width as f32).sqrt(),
            bias,
        };
        let mut scores = Buffer::default();
        // What belongs to no query is left alone.
        let (mut expected, mut found) = (vec![7.0; taken.len()], vec![7.0; taken.len()]);
        states_attention::attend_states(&work, &mut scores, &mut expected);
        simd.run(AttendStates { work: &work, scores: &mut scores, out: &mut found });
        let what = format!("{queries} queries of {heads} heads of {width} over {count} states");
        assert_close(&found, &expected, 1e-5, &what);
        // However the states are cut, the bits are the same.
        let whole = StatesAttention { states: &[&states], ..work };
        let mut again = vec![7.0; taken.len()];
        simd.run(AttendStates { work: &whole, scores: &mut scores, out: &mut again });
        assert_eq!(found, again, "{what}");
    }
}

fn check_attention(
    heads: usize,
    width: usize,
    keys: usize,
    queries: usize,
    tolerance: f32,
    attend: impl Fn(&Attention<'_>, &mut AttentionScratch, &mut [f32]),
) {
    let hidden = heads * width;
    let relative = RelativeBuckets { buckets: 32, max_distance: 128 };
    let bias = DistanceBias::new(relative, &values(1, 32 * heads), heads, keys.max(queries));
    let places: Vec<u32> = (0..queries as u32).map(|query| query * 7 % keys as u32).collect();
    let queries = values(2, queries * hidden);
    // Behind those of another sequence.
    let first = 2 * SLOTS;
    let shelf = Shelf { keeping: Keeping::Rows, slots: first + keys.next_multiple_of(SLOTS), width };
    let projected = values(3, keys * 2 * hidden);
    let rows = Rows { values: &projected, stride: 2 * hidden };
    let keep = |head: usize| {
        let mut kept = vec![f32::NAN; shelf.of_head()];
        let [keys_of, values_of] = [0, hidden].map(|part| rows.from(0, part + head * width));
        let rows = NewRows { keys: keys_of, values: values_of, width, first: 0, end: keys, count: keys };
        super::Isa::Portable.keep(rows, shelf, first, &mut kept);
        kept
    };
    let kept: Vec<_> = (0..heads).map(keep).collect();
    let kept: Vec<&[f32]> = kept.iter().map(Vec::as_slice).collect();
    for bias in [None, Some(&bias)] {
        let work = Attention {
            queries: Rows { values: &queries, stride: hidden },
            places: &places,
            kept: &kept,
            shelf,
            first,
            count: keys,
            bias,
            precision: Precision::F32,
        };
        let mut scratch = AttentionScratch::default();
        let (mut expected, mut found) = (vec![0.0; queries.len()], vec![f32::NAN; queries.len()]);
        reference::attention(&work, &mut scratch, &mut expected);
        // Garbage from a larger call must not matter.
        for rows in [&mut scratch.keys, &mut scratch.values] {
            rows.sized((keys + 32) * (width + 32)).fill(f32::NAN);
        }
        scratch.scores.sized((keys + 32) * 64).fill(f32::NAN);
        scratch.sums.sized((width + 32) * 64).fill(f32::NAN);
        scratch.queries.sized((width + 32) * 64).fill(u16::MAX);
        for pairs in [&mut scratch.key_pairs, &mut scratch.value_pairs] {
            pairs.sized((keys + 32) * (width + 32)).fill(u32::MAX);
        }
        attend(&work, &mut scratch, &mut found);
        let what = format!("attention of {heads} heads of {width} over {keys} keys");
        assert_close(&found, &expected, tolerance, &what);
    }
}

fn product_int8<S: Simd>(simd: S, inputs: usize, outputs: usize, rows: usize, activation: Activation) {
    check_int8(simd, S::REACH, inputs, outputs, rows, activation, |codes, weights, out| {
        simd.run(ProductInt8 { codes, weights, activation, out });
    });
}

/// The same by a matrix unit.
fn product_by_matrix<S: Simd, U: MatrixUnit>(
    (simd, unit): (S, impl Fn() -> U),
    inputs: usize,
    outputs: usize,
    rows: usize,
    activation: Activation,
) {
    check_int8(simd, MATRIX_REACH, inputs, outputs, rows, activation, |codes, weights, out| {
        simd.run(ProductByMatrix { unit: unit(), codes, weights, activation, out });
    });
}

fn check_int8<S: Simd>(
    simd: S,
    reach: Reach,
    inputs: usize,
    outputs: usize,
    rows: usize,
    activation: Activation,
    multiply: impl Fn(&Codes, &PackedInt8, &mut [f32]),
) {
    let linear = Linear {
        weight: values(1, inputs * outputs),
        bias: outputs.is_multiple_of(2).then(|| values(2, outputs)),
        inputs,
        outputs,
    };
    let mut input = values(3, rows * inputs);
    // One row of zeros, one far from zero.
    input[..inputs].fill(0.0);
    input[(rows - 1) * inputs..].iter_mut().for_each(|value| *value += 5.0);

    let (mut plain_codes, mut codes) = (Codes::default(), Codes::default());
    codes.words.sized((rows + 16) * (inputs + 64)).fill(u32::MAX);
    int8::quantise(reach, &input, inputs, &mut plain_codes);
    simd.run(Quantise { reach, input: &input, inputs, codes: &mut codes });
    assert_close(&codes.scales, &plain_codes.scales, 1e-6, "scales");
    assert_eq!(*codes.zeros, *plain_codes.zeros);
    if !Mixing::of(inputs).is_none() {
        // The last row's: kernels add the same numbers in the same order.
        assert_eq!(*codes.mixed, *plain_codes.mixed, "{inputs} inputs, mixed");
    }
    let words = ..rows * reach.words(inputs);
    let bytes: &[u8] = bytemuck::cast_slice(&codes.words[words]);
    let plain_bytes: &[u8] = bytemuck::cast_slice(&plain_codes.words[words]);
    let what = format!("codes of {rows} x {inputs}");
    // Fused and separate rounding may fall to two sides of a half.
    assert!(bytes.iter().zip(plain_bytes).all(|(a, b)| a.abs_diff(*b) <= 1), "{what}");

    let packed = PackedInt8::new(reach, panel_width(simd), &[&linear]);
    let (mut expected, mut found) = (vec![0.0; rows * outputs], vec![f32::NAN; rows * outputs]);
    int8::product(&codes, &packed, activation, &mut expected);
    multiply(&codes, &packed, &mut found);
    let what = format!("8-bit product {rows} x {inputs} x {outputs}, {activation:?}");
    assert_close(&found, &expected, 3e-6, &what);

    let weights = Packed::with_width(reference::PANEL, &[&linear]);
    reference::product(&input, &weights, Activation::Identity, &mut expected);
    int8::product(&codes, &packed, Activation::Identity, &mut found);
    let lost: f64 = expected.iter().zip(&found).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    let rounding = rounding_variance(&input, &linear, &codes, &packed);
    // Three deviations, and as much as f32 itself is off.
    let most = 9.0 * rounding + (1e-6 * inputs as f64).powi(2) * expected.len() as f64;
    assert!(lost <= most, "{what}: {lost} lost, rounding explains {rounding}");
}

/// Sum over all outputs of the variance that rounding gives them: each of an output's terms is off by a rounding of
/// either side, which are spread evenly over a step and know nothing of each other.
fn rounding_variance(input: &[f32], linear: &Linear, codes: &Codes, packed: &PackedInt8) -> f64 {
    let squares = |row: &[f32]| -> f64 { row.iter().map(|x| f64::from(*x).powi(2)).sum() };
    let mixed = |row: &[f32], mix: fn(&mut [f32])| {
        let mut row = row.to_vec();
        mix(&mut row);
        squares(&row)
    };
    let steps: Vec<f64> =
        packed.panels().flat_map(|panel| panel.steps).map(|step| f64::from(*step)).collect();
    let rows: Vec<f64> = input.chunks(linear.inputs).map(|row| mixed(row, mix)).collect();
    let weights: Vec<f64> = linear.weight.chunks(linear.inputs).map(|row| mixed(row, mix_weights)).collect();
    let mut variance = 0.0;
    for (row, scale) in rows.iter().zip(&*codes.scales) {
        for (weights, step) in weights.iter().zip(&steps) {
            variance += (row * step.powi(2) + weights * f64::from(*scale).powi(2)) / 12.0;
        }
    }
    variance
}

/// How many kinds of [`extreme_weight`] there are.
const EXTREMES: usize = 9;

/// Weights, as they are when mixed, that fill the 16 bits which some of them share, in one way or another.
fn extreme_weight(kind: usize, place: usize) -> f32 {
    match (kind, place % 16) {
        (0, _) => 1.0,
        (1, _) => -1.0,
        // The first 16 set the step; of the others seven are rounded up for each that is rounded down.
        (2 | 3, rest) => {
            let size = if place < 16 {
                1.0
            } else if matches!(rest, 12 | 15) {
                0.92
            } else {
                1.01
            };
            if kind == 2 { size } else { -size }
        }
        // Two of one half, next to each other or far apart; one alone, which is as large as weights get.
        (4, 0 | 1) | (5, 2 | 15) => 1.0,
        (6, 7) => -1.0,
        (4..=6, _) => 0.0,
        // One sign after the other, within a half and half by half.
        (7, rest) => {
            if rest < 8 {
                1.0
            } else {
                -1.0
            }
        }
        (_, rest) => {
            if rest % 4 < 2 {
                1.0
            } else {
                -1.0
            }
        }
    }
}

fn extreme_sums<S: Simd>(simd: S, inputs: usize, rows: usize) {
    check_extreme_sums(simd, S::REACH, inputs, rows, |codes, weights, out| {
        simd.run(ProductInt8 { codes, weights, activation: Activation::Identity, out });
    });
}

/// The same by a matrix unit.
fn extreme_sums_by_matrix<S: Simd, U: MatrixUnit>(
    (simd, unit): (S, impl Fn() -> U),
    inputs: usize,
    rows: usize,
) {
    check_extreme_sums(simd, MATRIX_REACH, inputs, rows, |codes, weights, out| {
        simd.run(ProductByMatrix { unit: unit(), codes, weights, activation: Activation::Identity, out });
    });
}

/// Codes at the ends of their range and weights that add up as far as they may: nothing overflows, nothing saturates.
fn check_extreme_sums<S: Simd>(
    simd: S,
    reach: Reach,
    inputs: usize,
    rows: usize,
    multiply: impl Fn(&Codes, &PackedInt8, &mut [f32]),
) {
    let outputs = 7 * EXTREMES;
    // Mixing twice multiplies by the number of groups, and mixing weights divides by it.
    let unmixed = |values: &dyn Fn(usize) -> f32, factor: f32| {
        let mut row: Vec<f32> = (0..inputs).map(values).collect();
        mix(&mut row);
        row.iter_mut().for_each(|value| *value *= factor);
        row
    };
    let weight_row = |output: usize| unmixed(&|place| extreme_weight(output % EXTREMES, place), 1.0);
    let linear = Linear { weight: (0..outputs).flat_map(weight_row).collect(), bias: None, inputs, outputs };
    // All codes at the top; all but one, and the zero point as well; at both ends.
    let input_row = |row: usize| {
        let value = |place: usize| match row % 3 {
            0 => 1.0,
            1 if place + 1 < inputs => 0.0,
            2 if !place.is_multiple_of(3) => 1.0,
            _ => -1.0,
        };
        unmixed(&value, 1.0 / Mixing::of(inputs).groups as f32)
    };
    let input: Vec<f32> = (0..rows).flat_map(input_row).collect();
    let mut codes = Codes::default();
    simd.run(Quantise { reach, input: &input, inputs, codes: &mut codes });
    let bytes: &[u8] = bytemuck::cast_slice(&codes.words);
    assert!(bytes[..inputs].iter().all(|&code| i32::from(code) == reach.top), "codes of ones");

    let width = panel_width(simd);
    let packed = PackedInt8::new(reach, width, &[&linear]);
    if reach.fold > 1 && inputs > 1 {
        let fullest = fullest_half(&packed, reach, width) * reach.top;
        assert!((i32::from(i16::MAX) - reach.top..=i16::MAX.into()).contains(&fullest), "{fullest}");
    }
    let (mut plain, mut found) = (vec![0.0; rows * outputs], vec![f32::NAN; rows * outputs]);
    int8::product(&codes, &packed, Activation::Identity, &mut plain);
    multiply(&codes, &packed, &mut found);
    let panels: Vec<_> = packed.panels().collect();
    for (row, bytes) in bytes.chunks_exact(4 * packed.words()).take(rows).enumerate() {
        let (scale, zero) = (codes.scales[row], i64::from(codes.zeros[row]));
        for output in 0..outputs {
            let (panel, lane) = (&panels[output / width], output % width);
            let weights = panel.words[lane..].iter().step_by(width).flat_map(|word| word.to_le_bytes());
            let products =
                bytes.iter().zip(weights).map(|(&q, v)| (i64::from(q) - zero) * i64::from(v as i8));
            let exact = products.sum::<i64>() as f32 * (scale * panel.steps[lane]);
            let (plain, found) = (plain[row * outputs + output], found[row * outputs + output]);
            let what =
                format!("{inputs} inputs, row {row}, output {output}: {found}, twin {plain}, exact {exact}");
            assert!(found == exact && plain == exact, "{what}");
        }
    }
}

/// The largest sum of codes of weights, of one sign, that share 16 bits.
fn fullest_half(packed: &PackedInt8, reach: Reach, width: usize) -> i32 {
    let mut fullest = 0;
    for shared in packed.panels().flat_map(|panel| panel.words.chunks_exact(reach.fold * width)) {
        for (lane, half, sign) in (0..width)
            .flat_map(|lane| [(0, 1), (0, -1), (2, 1), (2, -1)].map(|(half, sign)| (lane, half, sign)))
        {
            let words = shared[lane..].iter().step_by(width).map(|word| word.to_le_bytes());
            let codes = words.flat_map(|word| [word[half], word[half + 1]]);
            fullest = codes.map(|code| (i32::from(code as i8) * sign).max(0)).sum::<i32>().max(fullest);
        }
    }
    fullest
}

/// Runs a generic check on every set of instructions there is, and on the emulated one.
macro_rules! on_all {
    ($check:ident($($argument:expr),*)) => {
        $check(Emulated::<false> $(, $argument)*);
        $check(Emulated::<true> $(, $argument)*);
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = super::vector::Avx2::new() {
                $check(simd $(, $argument)*);
            }
            if let Some(simd) = super::vector::Avx512::<{ super::vector::BASIC }>::new() {
                $check(simd $(, $argument)*);
            }
            if let Some(simd) = super::vector::Avx512::<{ super::vector::VNNI }>::new() {
                $check(simd $(, $argument)*);
            }
            if let Some(simd) = super::vector::Avx512::<{ super::vector::HALVES }>::new() {
                $check(simd $(, $argument)*);
            }
        }
    };
}

/// The same for every matrix unit, with the vector instructions that go with it.
macro_rules! on_all_units {
    ($check:ident($($argument:expr),*)) => {
        $check((Emulated::<false>, EmulatedUnit::new) $(, $argument)*);
        #[cfg(target_arch = "x86_64")]
        if let Some((simd, unit)) = super::vector::Avx512::<{ super::vector::VNNI }>::new().zip(super::vector::Amx::new()) {
            $check((simd, || unit.registers()) $(, $argument)*);
        }
    };
}

#[test]
fn every_activation_in_a_product() {
    for activation in Activation::ALL {
        on_all!(product(17, 21, 9, activation));
        on_all!(product_int8(17, 21, 9, activation));
        on_all_units!(product_by_matrix(17, 21, 9, activation));
    }
}

#[test]
fn common_and_extreme_sizes() {
    on_all!(product(1, 1, 1, Activation::Identity));
    on_all!(product(800, 48, 13, Activation::Identity));
    on_all!(product_int8(1, 1, 1, Activation::Identity));
    on_all!(product_int8(800, 48, 13, Activation::Identity));
    on_all!(product_int8(7, 384, 9, Activation::Identity));
    on_all!(product_int8(5, 512, 9, Activation::Identity));
    on_all_units!(product_by_matrix(1, 1, 1, Activation::Identity));
    on_all_units!(product_by_matrix(800, 48, 13, Activation::Identity));
    on_all_units!(product_by_matrix(64, 96, 64, Activation::Identity));
    on_all_units!(product_by_matrix(65, 97, 65, Activation::Identity));
    on_all_units!(product_by_matrix(384, 50, 81, Activation::Identity));
    on_all!(attention(2, 32, 64, 64));
    on_all!(attention(1, 64, 300, 10));
    on_all!(attention(1, 5, 1, 1));
    on_all!(attention_in_pairs(2, 32, 64, 64));
    on_all!(attention_in_pairs(1, 64, 300, 10));
    on_all!(attention_in_pairs(1, 5, 1, 1));
    // Fewer keys than there are lanes, in the first vector of two.
    on_all!(attention_in_pairs(3, 21, 7, 1));
    on_all!(attend_states(12, 32, 40, 3));
    on_all!(attend_states(1, 5, 1, 1));
    on_all_units!(attention_by_matrix(2, 32, 64, 64));
    on_all_units!(attention_by_matrix(1, 64, 300, 10));
    on_all_units!(attention_by_matrix(1, 5, 1, 1));
    on_all!(add_norm(384, 2));
}

#[test]
fn int8_products_of_the_widths_of_models() {
    for inputs in [312, 384, 768, 1024, 1536, 2048, 3072, 4096] {
        on_all!(product_int8(inputs, 50, 9, Activation::Identity));
        on_all_units!(product_by_matrix(inputs, 50, 9, Activation::Identity));
    }
}

#[test]
fn the_largest_sums_are_exact() {
    for inputs in [1, 7, 64, 100, 384, 512] {
        on_all!(extreme_sums(inputs, 11));
        on_all_units!(extreme_sums_by_matrix(inputs, 35));
    }
    on_all!(extreme_sums(int8::MOST_INPUTS, 3));
    on_all_units!(extreme_sums_by_matrix(int8::MOST_INPUTS, 3));
}

#[test]
fn attention_of_every_head_width() {
    for width in 1..=140 {
        let (keys, queries) = (1 + width * 13 % 70, 1 + width % 11);
        on_all!(attention(2, width, keys, queries));
        on_all!(attention_in_pairs(2, width, keys, queries));
        on_all_units!(attention_by_matrix(2, width, keys, queries));
    }
}

fn broken_rows<S: Simd>(simd: S) {
    let linear = Linear { weight: values(1, 20 * 3), bias: None, inputs: 20, outputs: 3 };
    let weights = PackedInt8::new(S::REACH, panel_width(simd), &[&linear]);
    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut input = values(2, 3 * 20);
        input[20 + 7] = broken;
        let mut codes = Codes::default();
        simd.run(Quantise { reach: S::REACH, input: &input, inputs: 20, codes: &mut codes });
        let mut out = vec![0.0; 3 * 3];
        let activation = Activation::Identity;
        simd.run(ProductInt8 { codes: &codes, weights: &weights, activation, out: &mut out });
        let broken: Vec<bool> = out.iter().map(|value| value.is_nan()).collect();
        assert_eq!(broken, [false, false, false, true, true, true, false, false, false]);
    }
}

#[test]
fn a_broken_row_shows_and_spoils_no_other() {
    on_all!(broken_rows());
}

#[test]
fn layer_norm_is_that_of_torch() {
    let fixture: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/fixtures/kernels.json")).unwrap();
    let read = |name: &str| -> Vec<f32> {
        let values = fixture["layer_norm"][name].as_array().unwrap();
        values.iter().map(|value| value.as_f64().unwrap() as f32).collect()
    };
    let norm = LayerNorm { scale: read("scale"), shift: read("shift"), eps: 1e-5 };
    let mut found = read("x");
    reference::add_norm(&mut found, None, &norm);
    assert_close(&found, &read("y"), 2e-5, "layer norm");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn products_of_odd_shapes(inputs in 1usize..90, outputs in 1usize..110, rows in 1usize..20) {
        on_all!(product(inputs, outputs, rows, Activation::Identity));
    }

    #[test]
    fn activations_of_odd_shapes(
        activation in 0..Activation::ALL.len(),
        inputs in 1usize..40,
        outputs in 1usize..70,
        rows in 1usize..14,
    ) {
        on_all!(product(inputs, outputs, rows, Activation::ALL[activation]));
        on_all!(product_int8(inputs, outputs, rows, Activation::ALL[activation]));
    }

    #[test]
    fn int8_products_of_odd_shapes(inputs in 1usize..90, outputs in 1usize..110, rows in 1usize..20) {
        on_all!(product_int8(inputs, outputs, rows, Activation::Identity));
    }

    #[test]
    fn int8_products_of_many_inputs(inputs in 90usize..3100, outputs in 1usize..6, rows in 1usize..5) {
        // Half of them are mixed.
        let inputs = if outputs.is_multiple_of(2) { inputs.next_multiple_of(16) } else { inputs };
        on_all!(product_int8(inputs, outputs, rows, Activation::Identity));
        on_all_units!(product_by_matrix(inputs, outputs, rows, Activation::Identity));
    }

    #[test]
    fn products_by_a_matrix_unit(inputs in 1usize..200, outputs in 1usize..110, rows in 1usize..100) {
        on_all_units!(product_by_matrix(inputs, outputs, rows, Activation::Identity));
    }

    #[test]
    fn norms_of_odd_widths(width in 2usize..70, rows in 1usize..4) {
        on_all!(add_norm(width, rows));
    }

    #[test]
    fn attention_of_odd_shapes(
        heads in 1usize..4,
        width in 1usize..=140,
        keys in 1usize..70,
        queries in 1usize..20,
    ) {
        on_all!(attention(heads, width, keys, queries));
        on_all!(attention_in_pairs(heads, width, keys, queries));
        on_all!(attend_states(heads, width, keys, queries));
        on_all_units!(attention_by_matrix(heads, width, keys, queries));
    }

    #[test]
    fn kept_codes_stay_what_they_are(groups in 1usize..50, rest in 0usize..16, outputs in 1usize..5) {
        let inputs = 16 * groups + if groups % 2 == 0 { rest } else { 0 };
        let weights = values(11, inputs * outputs);
        let (codes, steps) = crate::quantise_rows(&weights, inputs);
        let restored = crate::restore_rows(&codes, &steps, inputs);
        let (again, _) = crate::quantise_rows(&restored, inputs);
        prop_assert_eq!(codes, again);
    }
}
