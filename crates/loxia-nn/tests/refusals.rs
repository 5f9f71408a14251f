//! What does not fit is refused, with its name.

use loxia_nn::*;

use crate::model;

fn refused(change: impl FnOnce(&mut EncoderShape, &mut EncoderWeights)) -> String {
    let mut shape = model::shape(8, 2, 12, 2);
    let mut weights = model::weights(&shape, 1);
    change(&mut shape, &mut weights);
    CpuEncoder::new(shape, weights, Kernel::Portable, Precision::F32).unwrap_err().to_string()
}

#[test]
fn wrong_tensors_are_named() {
    let message = refused(|_, weights| weights.layers[1].query.weight.truncate(10));
    assert!(message.contains("layers[1].query.weight: found 10 elements, expected [8, 8]"), "{message}");
    let message = refused(|_, weights| weights.layers[0].output_norm.shift.push(0.0));
    assert!(message.contains("layers[0].output_norm.shift: found 9 elements, expected [8]"), "{message}");
    let message = refused(|_, weights| weights.layers[0].intermediate.outputs = 13);
    assert!(message.contains("layers[0].intermediate.weight: found [13, 8], expected [12, 8]"), "{message}");
    let message = refused(|_, weights| weights.types = None);
    assert!(message.contains("types: found nothing, expected [2, 8]"), "{message}");
    let message = refused(|shape, _| shape.vocab = usize::MAX);
    assert!(message.contains("tensor word: found 400 elements"), "{message}");
    let message = refused(|_, weights| drop(weights.layers.pop()));
    assert!(message.contains("found 1 layers, expected 2 layers"), "{message}");
    let message = refused(|shape, _| shape.embedding = 4);
    assert!(message.contains("tensor word"), "{message}");
    let message = refused(|_, weights| weights.relative_bias = Some(vec![0.0; 64]));
    assert!(message.contains("the shape has no relative buckets"), "{message}");
}

#[test]
fn wrong_batches_are_refused() {
    let relative = Some(RelativeBuckets { buckets: 32, max_distance: 128 });
    let shape = EncoderShape { relative, ..model::shape(8, 2, 12, 1) };
    let encoder =
        CpuEncoder::new(shape.clone(), model::weights(&shape, 1), Kernel::Portable, Precision::F32).unwrap();
    let forward = |ids: &[u32], types: &[u32], positions: &[u32], row: u32, width: usize| {
        let mut batch = PackedBatch::new();
        batch.push(&[1], &[0], &[0]).unwrap();
        batch.push(ids, types, positions).unwrap();
        encoder.forward(&batch, &[row], &mut vec![0.0; width]).map_err(|error| error.to_string())
    };
    assert_eq!(forward(&[1, 2], &[0, 1], &[0, 1], 1, 8), Ok(()));
    let message = forward(&[1, 50], &[0, 1], &[0, 1], 1, 8).unwrap_err();
    assert_eq!(message, "token 1 of sequence 1: token id 50 is out of range, the table has 50 rows");
    assert!(forward(&[1, 2], &[0, 2], &[0, 1], 1, 8).unwrap_err().contains("type 2 is out of range"));
    assert!(forward(&[1, 2], &[0, 1], &[0, 320], 1, 8).unwrap_err().contains("position 320"));
    assert_eq!(
        forward(&[1, 2], &[0, 1], &[0, 1], 3, 8).unwrap_err(),
        "row 3 is wanted, but the batch has 3 tokens"
    );
    assert!(forward(&[1, 2], &[0, 1], &[0, 1], 1, 7).unwrap_err().contains("length 7, expected 8"));
    let long = [0; 321];
    assert!(forward(&long, &long, &long, 0, 8).unwrap_err().contains("321 tokens, the model reaches 320"));
}

#[test]
fn wrong_dense_layers_and_buffers_are_refused() {
    let linear = Linear { weight: vec![0.0; 6], bias: Some(vec![0.0; 3]), inputs: 2, outputs: 3 };
    let dense = Dense::new(&linear, Activation::Identity, Kernel::Portable).unwrap();
    assert!(dense.apply(&[0.0; 3], &mut [0.0; 3]).is_err());
    assert!(dense.apply(&[0.0; 4], &mut [0.0; 3]).is_err());
    let short = Linear { bias: Some(vec![0.0; 2]), ..linear.clone() };
    assert!(Dense::new(&short, Activation::Identity, Kernel::Portable).is_err());
    let empty = Linear { weight: vec![], bias: None, inputs: 0, outputs: 3 };
    assert!(Dense::new(&empty, Activation::Identity, Kernel::Portable).is_err());
}
