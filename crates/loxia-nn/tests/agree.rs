//! Every kernel against the portable one; in 8 bits, against one that uses as much of them.

use loxia_nn::*;

use crate::model;

/// What is computed of one model.
struct Model<'a> {
    shape: &'a EncoderShape,
    seed: u64,
    batch: &'a PackedBatch,
}

impl Model<'_> {
    fn states(&self, kernel: Kernel, precision: Precision) -> Vec<Vec<f32>> {
        let weights = model::weights(self.shape, self.seed);
        CpuEncoder::new(self.shape.clone(), weights, kernel, precision)
            .unwrap()
            .all_states(self.batch)
            .unwrap()
    }
}

/// Models of each shape, and how many of them must be alike to the last code. A value very near a half is rounded to
/// one code here and to the next one there: one model in six has such a value.
const MODELS: u64 = 7;
const ALIKE: usize = 3;

/// How far two runs are apart at most, relative to values of at least 1: norms keep the rest of a row near that size.
fn apart(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let mut worst = 0.0f32;
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let apart = (found - expected).abs() / expected.abs().max(1.0);
            worst = if apart <= worst { worst } else { apart };
        }
    }
    worst
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
        let models = (7..7 + MODELS).map(|seed| Model { shape, seed, batch: &batch });
        let models: Vec<Model<'_>> = models.collect();
        let plain: Vec<_> = models.iter().map(|m| m.states(Kernel::Portable, Precision::F32)).collect();
        for kernel in Kernel::available() {
            let what = format!("{kernel}, hidden {}", shape.hidden);
            let mut alike = 0;
            for (model, plain) in models.iter().zip(&plain) {
                let single = apart(&model.states(kernel, Precision::F32), plain);
                assert!(single <= 1e-5, "{what}, seed {}: {single} apart", model.seed);
                let found = model.states(kernel, Precision::Int8);
                let lost = apart(&found, plain);
                assert!(lost <= 0.2, "{what} in int8, seed {}: {lost} apart from f32", model.seed);
                let same = apart(&found, &model.states(same_codes(kernel), Precision::Int8));
                assert!(same <= 0.1, "{what} in int8, seed {}: {same} apart", model.seed);
                alike += usize::from(same <= 1e-4);
            }
            // There attention is of rounded numbers, after which other values become other codes.
            let rounds = matches!(kernel, Kernel::Avx512Bf16 | Kernel::Amx);
            assert!(
                rounds || alike >= ALIKE,
                "{what} in int8: {alike} of {MODELS} models have the same codes"
            );
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
