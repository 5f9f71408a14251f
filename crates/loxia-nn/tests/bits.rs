//! The same bits alone and in company, on one thread and on two, for all rows of a sequence and for few, on every kernel.

use loxia_nn::*;

use crate::model;

fn threads(count: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Last hidden states of some rows.
fn states(encoder: &CpuEncoder, batch: &PackedBatch, rows: &[u32]) -> Vec<f32> {
    let mut out = vec![0.0; rows.len() * encoder.shape().hidden];
    encoder.forward(batch, rows, &mut out).unwrap();
    out
}

/// Bits of the last hidden states of `length` rows from `first` on.
fn rows(encoder: &CpuEncoder, batch: &PackedBatch, first: u32, length: usize) -> Vec<u32> {
    bits(&states(encoder, batch, &(first..first + length as u32).collect::<Vec<_>>()))
}

fn check(shape: &EncoderShape, kernel: Kernel, precision: Precision, length: usize) {
    let encoder = CpuEncoder::new(shape.clone(), model::weights(shape, 1), kernel, precision).unwrap();
    let hidden = shape.hidden;
    let mut batch = PackedBatch::new();
    let probe = |batch: &mut PackedBatch| model::push(batch, shape, 99, length);
    probe(&mut batch);
    let all: Vec<u32> = (0..length as u32).collect();
    // In any order, one of them twice.
    let few = [length as u32 - 1, 0, 0];
    for wanted in [&all[..], &few] {
        batch.clear();
        probe(&mut batch);
        let alone = bits(&threads(1).install(|| states(&encoder, &batch, wanted)));
        for count in [1, 2, 5] {
            let pool = threads(count);
            for size in [1usize, 7, 64] {
                for place in [0, size / 2, size - 1] {
                    batch.clear();
                    let mut first = 0;
                    for index in 0..size {
                        if index == place {
                            first = probe(&mut batch);
                        } else {
                            model::push(&mut batch, shape, index as u64, 1 + index * 7 % 23);
                        }
                    }
                    let mut rows: Vec<u32> = wanted.iter().map(|row| first + row).collect();
                    // Rows of others, few of some and all of others, are wanted as well.
                    rows.extend((0..first).filter(|row| size == 7 || row % 31 == 3));
                    let found = pool.install(|| states(&encoder, &batch, &rows));
                    let found = bits(&found[..wanted.len() * hidden]);
                    assert_eq!(
                        alone, found,
                        "{kernel}, {precision}, {count} threads, place {place} of {size}"
                    );
                }
            }
        }
    }

    batch.clear();
    probe(&mut batch);
    let of_all = states(&encoder, &batch, &all);
    let states_of_all = encoder.all_states(&batch).unwrap();
    assert_eq!(
        bits(&of_all),
        bits(&states_of_all[shape.layers]),
        "{kernel}: all_states differs from forward"
    );

    // Few rows may be computed in another way, with the same result but for rounding.
    let tolerance = if precision == Precision::F32 { 1e-5 } else { 0.2 };
    for (row, found) in few.iter().zip(states(&encoder, &batch, &few).chunks(hidden)) {
        for (found, expected) in found.iter().zip(&of_all[*row as usize * hidden..]) {
            let apart = (found - expected).abs() / expected.abs().max(1.0);
            assert!(apart <= tolerance, "{kernel}, {precision}, row {row} of {length}: {found}, {expected}");
        }
    }
}

#[test]
fn a_sequence_keeps_its_bits() {
    let relative = Some(RelativeBuckets { buckets: 32, max_distance: 128 });
    for kernel in Kernel::available() {
        for precision in [Precision::F32, Precision::Int8] {
            check(&model::shape(64, 2, 96, 2), kernel, precision, 37);
            check(&model::shape(30, 3, 50, 2), kernel, precision, 1);
            check(&model::shape(5, 1, 19, 2), kernel, precision, 130);
            check(&model::shape(32, 2, 19, 2), kernel, precision, 300);
            check(&EncoderShape { embedding: 9, ..model::shape(21, 3, 17, 2) }, kernel, precision, 8);
            check(&EncoderShape { relative, ..model::shape(16, 2, 32, 2) }, kernel, precision, 50);
        }
    }
}

#[test]
fn nothing_comes_of_nothing() {
    let shape = model::shape(16, 2, 32, 2);
    for kernel in Kernel::available() {
        for precision in [Precision::F32, Precision::Int8] {
            let encoder =
                CpuEncoder::new(shape.clone(), model::weights(&shape, 1), kernel, precision).unwrap();
            encoder.forward(&PackedBatch::new(), &[], &mut []).unwrap();
            let states = encoder.all_states(&PackedBatch::new()).unwrap();
            assert!(states.iter().all(Vec::is_empty), "{kernel}");
        }
    }
}

#[test]
fn rows_may_be_wanted_more_often_than_there_are_tokens() {
    let shape = model::shape(16, 2, 32, 2);
    for kernel in Kernel::available() {
        for precision in [Precision::F32, Precision::Int8] {
            let encoder =
                CpuEncoder::new(shape.clone(), model::weights(&shape, 1), kernel, precision).unwrap();
            for (length, wanted) in
                [(1, &[0, 0][..]), (2, &[1, 0, 1, 1, 0]), (40, &[[39, 0, 20, 39]; 20].concat())]
            {
                let mut batch = PackedBatch::new();
                model::push(&mut batch, &shape, 3, length);
                let all = rows(&encoder, &batch, 0, length);
                let mut out = vec![0.0; wanted.len() * shape.hidden];
                threads(2).install(|| encoder.forward(&batch, wanted, &mut out)).unwrap();
                for (&row, found) in wanted.iter().zip(bits(&out).chunks(shape.hidden)) {
                    assert_eq!(
                        found,
                        &all[row as usize * shape.hidden..][..shape.hidden],
                        "{kernel}, row {row}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_dense_layer_keeps_its_bits() {
    // 1000 inputs take several passes in the vector kernels.
    for (inputs, outputs) in [(37, 19), (1000, 33)] {
        let random = &mut model::Random::new(5);
        let linear = model::linear(random, inputs, outputs);
        let input = random.values(200 * inputs, 1.0);
        for kernel in Kernel::available() {
            let dense = Dense::new(&linear, Activation::Tanh, kernel).unwrap();
            let mut together = vec![0.0; 200 * outputs];
            dense.apply(&input, &mut together).unwrap();
            for (row, expected) in input.chunks(inputs).zip(together.chunks(outputs)) {
                let mut alone = vec![0.0; outputs];
                dense.apply(row, &mut alone).unwrap();
                assert_eq!(bits(&alone), bits(expected), "{kernel}");
            }
        }
    }
}

#[test]
fn scratch_is_kept_and_released() {
    let shape = model::shape(16, 2, 32, 2);
    let encoder =
        CpuEncoder::new(shape.clone(), model::weights(&shape, 1), Kernel::Portable, Precision::F32).unwrap();
    let mut batch = PackedBatch::new();
    model::push(&mut batch, &shape, 1, 40);
    let before = rows(&encoder, &batch, 0, 40);
    let kept = encoder.scratch_bytes();
    assert!(kept > 0 && encoder.most_scratch_bytes() >= kept);
    encoder.release_scratch();
    assert_eq!(encoder.scratch_bytes(), 0);
    assert!(encoder.most_scratch_bytes() >= kept);
    assert_eq!(rows(&encoder, &batch, 0, 40), before);
}

#[test]
fn a_burst_of_long_texts_does_not_keep_its_memory() {
    let shape = model::shape(16, 2, 32, 2);
    let mut long = PackedBatch::new();
    for seed in 0..40 {
        model::push(&mut long, &shape, seed, 300);
    }
    let mut short = PackedBatch::new();
    model::push(&mut short, &shape, 1, 10);
    for precision in [Precision::F32, Precision::Int8] {
        let kept = |batches: &[&PackedBatch]| {
            let kernel = Kernel::detect().unwrap();
            let encoder =
                CpuEncoder::new(shape.clone(), model::weights(&shape, 1), kernel, precision).unwrap();
            threads(1).install(|| {
                for &batch in batches {
                    rows(&encoder, batch, 0, batch.tokens());
                }
            });
            encoder.scratch_bytes()
        };
        let (usual, burst) = (kept(&[&short]), kept(&[&long]));
        assert!(burst > 20 * usual, "{burst} bytes after a burst, {usual} without");
        let then_short = [vec![&long], vec![&short; 200]].concat();
        assert_eq!(kept(&then_short), usual, "{precision}");
    }
}
