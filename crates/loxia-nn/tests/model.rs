//! Random models and batches, the same in every run.

use loxia_nn::*;

/// A small linear congruential generator: tests need repeatable numbers, not good ones.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    /// Near normal, with the given deviation.
    pub(crate) fn values(&mut self, count: usize, deviation: f32) -> Vec<f32> {
        let uniform = |random: &mut Self| random.below(1 << 20) as f32 / (1 << 20) as f32 - 0.5;
        (0..count).map(|_| (0..4).map(|_| uniform(self)).sum::<f32>() * deviation * 1.73).collect()
    }
}

pub(crate) fn shape(hidden: usize, heads: usize, intermediate: usize, layers: usize) -> EncoderShape {
    EncoderShape {
        vocab: 50,
        embedding: hidden,
        hidden,
        layers,
        heads,
        intermediate,
        positions: 320,
        types: 2,
        layer_norm_eps: 1e-12,
        activation: Activation::GeluErf,
        relative: None,
    }
}

pub(crate) fn linear(random: &mut Random, inputs: usize, outputs: usize) -> Linear {
    let weight = random.values(inputs * outputs, 1.0 / (inputs as f32).sqrt());
    Linear { weight, bias: Some(random.values(outputs, 0.1)), inputs, outputs }
}

pub(crate) fn norm(random: &mut Random, width: usize) -> LayerNorm {
    let scale = random.values(width, 0.2).into_iter().map(|value| value + 1.0).collect();
    LayerNorm { scale, shift: random.values(width, 0.1), eps: 1e-12 }
}

pub(crate) fn weights(shape: &EncoderShape, seed: u64) -> EncoderWeights {
    let random = &mut Random::new(seed);
    let (hidden, width) = (shape.hidden, shape.embedding);
    EncoderWeights {
        word: random.values(shape.vocab * width, 1.0),
        position: Some(random.values(shape.positions * width, 0.5)),
        types: (shape.types > 0).then(|| random.values(shape.types * width, 0.5)),
        embedding_norm: norm(random, width),
        embedding_projection: (width != hidden).then(|| linear(random, width, hidden)),
        relative_bias: shape.relative.map(|relative| random.values(relative.buckets * shape.heads, 1.0)),
        layers: (0..shape.layers)
            .map(|_| LayerWeights {
                query: linear(random, hidden, hidden),
                key: linear(random, hidden, hidden),
                value: linear(random, hidden, hidden),
                attention_output: linear(random, hidden, hidden),
                attention_norm: norm(random, hidden),
                intermediate: linear(random, hidden, shape.intermediate),
                output: linear(random, shape.intermediate, hidden),
                output_norm: norm(random, hidden),
            })
            .collect(),
    }
}

/// Appends a random sequence and returns its first token.
pub(crate) fn push(batch: &mut PackedBatch, shape: &EncoderShape, seed: u64, length: usize) -> u32 {
    let random = &mut Random::new(seed);
    let ids: Vec<u32> = (0..length).map(|_| random.below(shape.vocab) as u32).collect();
    let types: Vec<u32> = (0..length).map(|_| random.below(shape.types.max(1)) as u32).collect();
    let positions: Vec<u32> = (0..length as u32).collect();
    batch.push(&ids, &types, &positions).unwrap()
}
