//! Blocks that panic end a pass, and nobody waits for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use super::*;
use crate::kernels::speed::wave;
use crate::{
    Activation, EncoderShape, EncoderWeights, Kernel, LayerNorm, LayerWeights, Linear, Precision,
    RelativeBuckets,
};

const THREADS: usize = 4;
const LENGTH: usize = 20;
const SEQUENCES: usize = 24;
/// Far more than all that is done here takes, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of three layers, for sequences of no more than `LENGTH` tokens, with threads of its own.
fn encoder() -> CpuEncoder {
    let relative = Some(RelativeBuckets { buckets: 8, max_distance: 16 });
    let shape = EncoderShape {
        vocab: 10,
        embedding: 16,
        hidden: 16,
        layers: 3,
        heads: 2,
        intermediate: 32,
        positions: LENGTH,
        types: 0,
        layer_norm_eps: 1e-5,
        activation: Activation::Relu,
        relative,
    };
    let linear = |inputs: usize, outputs: usize| {
        let weight = wave(inputs * outputs).iter().map(|weight| weight / 8.0).collect();
        Linear { weight, bias: None, inputs, outputs }
    };
    let norm = || LayerNorm { scale: vec![1.0; 16], shift: vec![0.0; 16], eps: 1e-5 };
    let layer = |_| LayerWeights {
        query: linear(16, 16),
        key: linear(16, 16),
        value: linear(16, 16),
        attention_output: linear(16, 16),
        attention_norm: norm(),
        intermediate: linear(16, 32),
        output: linear(32, 16),
        output_norm: norm(),
    };
    let weights = EncoderWeights {
        word: wave(10 * 16),
        position: None,
        types: None,
        embedding_norm: norm(),
        embedding_projection: None,
        relative_bias: Some(wave(8 * 2)),
        layers: (0..3).map(layer).collect(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().unwrap();
    CpuEncoder::new(shape, weights, Kernel::Portable, Precision::F32).unwrap().with_threads(Arc::new(pool))
}

fn batch(tokens: impl Fn(usize) -> Vec<u32>) -> PackedBatch {
    let mut batch = PackedBatch::new();
    for ids in (0..SEQUENCES).map(tokens) {
        batch.push(&ids, &vec![0; ids.len()], &vec![0; ids.len()]).unwrap();
    }
    batch
}

fn ids(sequence: usize, length: usize) -> Vec<u32> {
    (0..length).map(|place| ((sequence + 3 * place) % 10) as u32).collect()
}

/// Last states, all or the first of each sequence; unlike the encoder itself this takes batches that it would refuse.
fn pass(encoder: &CpuEncoder, batch: &PackedBatch, all: bool) -> Vec<f32> {
    let rows: Vec<u32> = match all {
        true => (0..batch.tokens() as u32).collect(),
        false => (0..batch.sequences()).map(|sequence| batch.range(sequence).start as u32).collect(),
    };
    let mut scratch = BatchScratch::default();
    let run = encoder.run(None, THREADS);
    let passage = Passage::new(encoder, run, batch, rows.iter().copied(), &mut scratch);
    let way = if all { Way::Keys } else { Way::States };
    assert!(passage.ways.contains(&way));
    assert!(passage.blocks.len() >= THREADS, "every thread needs a block");
    passage.finish();
    let mut out = vec![0.0; rows.len() * 16];
    passage.write(&mut out);
    out
}

#[test]
fn a_block_that_panics_ends_the_pass_and_nobody_waits_for_it() {
    let encoder = Arc::new(encoder());
    let sound = batch(|sequence| ids(sequence, LENGTH));
    let expected = [true, false].map(|all| pass(&encoder, &sound, all));
    let places = [0, SEQUENCES / 2, SEQUENCES - 1];
    for (broken, all) in places.into_iter().flat_map(|place| [(place, true), (place, false)]) {
        // A token beyond the table ends the embeddings of its block. For a sequence that is too long there is no
        // bias: its blocks have keys and values for others, and then end each time they attend.
        let beyond = |sequence| vec![if sequence == broken { 10 } else { 1 }; LENGTH];
        let too_long = |sequence| ids(sequence, if sequence == broken { 3 * LENGTH } else { LENGTH });
        for batch in [batch(beyond), batch(too_long)] {
            let (tell, told) = mpsc::channel();
            let encoder = encoder.clone();
            // Should it wait for ever, the test does not.
            std::thread::spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(|| pass(&encoder, &batch, all)));
                tell.send(result.is_err())
            });
            let panicked = told.recv_timeout(PATIENCE).expect("threads still wait for a block that panicked");
            assert!(panicked, "a block panicked and nobody heard of it");
        }
    }
    // The threads and their memory are as good as new.
    assert_eq!([true, false].map(|all| pass(&encoder, &sound, all)), expected);
}
