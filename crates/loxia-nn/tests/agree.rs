//! Every kernel against the portable one; in 8 bits, against one that uses as much of them.

use loxia_nn::*;

use crate::model;

fn states(shape: &EncoderShape, kernel: Kernel, precision: Precision, batch: &PackedBatch) -> Vec<Vec<f32>> {
    let encoder = CpuEncoder::new(shape.clone(), model::weights(shape, 7), kernel, precision).unwrap();
    encoder.all_states(batch).unwrap()
}

/// Asserts that two runs are as near as `tolerance` says, relative to values of at least 1: norms keep the rest
/// of a row near that size.
fn assert_near(found: &[Vec<f32>], expected: &[Vec<f32>], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (level, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len());
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            let near = (found - expected).abs() <= tolerance * expected.abs().max(1.0);
            assert!(near, "{what}, level {level}, element {index}: {found}, expected {expected}");
        }
    }
}

#[test]
fn kernels_agree() {
    let names: Vec<&str> = Kernel::available().into_iter().map(Kernel::name).collect();
    // Checks on other machines read this line.
    println!("kernels: {}", names.join(" "));
    // Whole panels and heads of 32; and nothing that fits, with a bias of distances.
    let relative = Some(RelativeBuckets { buckets: 32, max_distance: 128 });
    let shapes = [model::shape(96, 3, 192, 2), EncoderShape { relative, ..model::shape(42, 2, 71, 2) }];
    for shape in &shapes {
        let mut batch = PackedBatch::new();
        for (seed, length) in [(1, 33), (2, 1), (3, 8), (4, 20)] {
            model::push(&mut batch, shape, seed, length);
        }
        let plain = states(shape, Kernel::Portable, Precision::F32, &batch);
        for kernel in Kernel::available() {
            let what = format!("{kernel}, hidden {}", shape.hidden);
            assert_near(&states(shape, kernel, Precision::F32, &batch), &plain, 1e-5, &what);

            let what = format!("{kernel} in int8, hidden {}", shape.hidden);
            let found = states(shape, kernel, Precision::Int8, &batch);
            assert_near(&found, &plain, 0.2, &what);
            // A value very near a half could be rounded to one code here and to the next one there, which no value
            // of these models is; should one be some day, this is the place to allow for it.
            let same = states(shape, same_codes(kernel), Precision::Int8, &batch);
            // There attention is of rounded numbers, after which other values become other codes.
            let tolerance = if matches!(kernel, Kernel::Avx512Bf16 | Kernel::Amx) { 0.1 } else { 1e-4 };
            assert_near(&found, &same, tolerance, &what);
        }
    }
}

/// The plainest kernel whose codes of 8 bits go as far as another one's.
fn same_codes(kernel: Kernel) -> Kernel {
    match kernel {
        Kernel::Avx512 => Kernel::Avx2,
        Kernel::Avx512Vnni | Kernel::Avx512Bf16 | Kernel::Amx => Kernel::Portable,
        other => other,
    }
}
