//! Hidden states against the plain `f64` encoder, for odd shapes, on every kernel.

use loxia_nn::*;
use proptest::prelude::*;

use crate::{model, naive};

fn compare(shape: &EncoderShape, lengths: &[usize], seed: u64) {
    let weights = model::weights(shape, seed);
    let mut batch = PackedBatch::new();
    for (index, &length) in lengths.iter().enumerate() {
        model::push(&mut batch, shape, seed + index as u64, length);
    }
    let expected: Vec<_> =
        (0..lengths.len()).map(|sequence| naive::states(shape, &weights, &batch, sequence)).collect();
    for kernel in Kernel::available() {
        let encoder = CpuEncoder::new(shape.clone(), weights.clone(), kernel, Precision::F32).unwrap();
        let states = encoder.all_states(&batch).unwrap();
        assert_eq!(states.len(), shape.layers + 1);
        for (level, found) in states.iter().enumerate() {
            let expected = expected.iter().flat_map(|sequence| sequence[level].iter().flatten());
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                let error = (f64::from(*found) - expected).abs();
                assert!(error < 2e-5, "{kernel}, level {level}, element {index}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn relative_bias_and_projection_and_no_types() {
    let relative = Some(RelativeBuckets { buckets: 32, max_distance: 128 });
    let mpnet = EncoderShape { relative, types: 0, ..model::shape(24, 3, 50, 2) };
    compare(&mpnet, &[200, 1, 17], 3);
    let electra = EncoderShape { embedding: 11, activation: Activation::Relu, ..model::shape(20, 4, 33, 2) };
    compare(&electra, &[9, 30], 4);
}

#[test]
fn long_sequences_and_single_tokens() {
    compare(&model::shape(32, 1, 64, 2), &[300, 1], 5);
    compare(&model::shape(5, 1, 7, 3), &[1], 6);
}

#[test]
fn no_layers_are_the_embeddings() {
    compare(&model::shape(16, 2, 8, 0), &[4, 2], 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn odd_shapes(
        heads in 1usize..5,
        width in 1usize..20,
        intermediate in 1usize..70,
        lengths in prop::collection::vec(1usize..40, 1..5),
        seed in 0u64..1000,
    ) {
        // A norm over one or two values only amplifies rounding: there is nothing to compare.
        prop_assume!(heads * width > 3);
        compare(&model::shape(heads * width, heads, intermediate, 2), &lengths, seed);
    }
}
