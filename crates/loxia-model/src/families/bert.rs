//! BERT (`model_type: bert`), and the names RoBERTa and ELECTRA took over from it.

use loxia_nn::{EncoderShape, EncoderWeights, LayerWeights};
use serde::Deserialize;

use super::config::{self, Common};
use super::{Visitor, walk_linear, walk_norm};

/// `config.json` of a BERT model.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "config::gelu")]
    hidden_act: String,
    max_position_embeddings: usize,
    #[serde(default = "config::two")]
    type_vocab_size: usize,
    #[serde(default = "config::small_eps")]
    layer_norm_eps: f32,
}

impl From<Config> for Common {
    fn from(config: Config) -> Common {
        Common {
            vocab: config.vocab_size,
            embedding: config.hidden_size,
            hidden: config.hidden_size,
            layers: config.num_hidden_layers,
            heads: config.num_attention_heads,
            intermediate: config.intermediate_size,
            activation: ("hidden_act", config.hidden_act),
            positions: config.max_position_embeddings,
            types: Some(config.type_vocab_size),
            eps: config.layer_norm_eps,
            padding_before_positions: None,
            relative: None,
        }
    }
}

/// Names of a BERT encoder.
pub(super) fn walk(shape: &EncoderShape, weights: &mut EncoderWeights, visit: &mut Visitor<'_>) {
    walk_embeddings(shape, weights, visit);
    for (index, layer) in weights.layers.iter_mut().enumerate() {
        walk_layer(&format!("encoder.layer.{index}"), shape, layer, visit);
    }
}

/// Names of the embedding tables and their norm.
pub(super) fn walk_embeddings(shape: &EncoderShape, weights: &mut EncoderWeights, visit: &mut Visitor<'_>) {
    visit("embeddings.word_embeddings.weight", &[shape.vocab, shape.embedding], &mut weights.word);
    if let Some(position) = &mut weights.position {
        visit("embeddings.position_embeddings.weight", &[shape.positions, shape.embedding], position);
    }
    if let Some(types) = &mut weights.types {
        visit("embeddings.token_type_embeddings.weight", &[shape.types, shape.embedding], types);
    }
    walk_norm("embeddings.LayerNorm", shape.embedding, &mut weights.embedding_norm, visit);
}

/// Names of one layer.
pub(super) fn walk_layer(
    name: &str,
    shape: &EncoderShape,
    layer: &mut LayerWeights,
    visit: &mut Visitor<'_>,
) {
    walk_linear(&format!("{name}.attention.self.query"), &mut layer.query, visit);
    walk_linear(&format!("{name}.attention.self.key"), &mut layer.key, visit);
    walk_linear(&format!("{name}.attention.self.value"), &mut layer.value, visit);
    walk_linear(&format!("{name}.attention.output.dense"), &mut layer.attention_output, visit);
    walk_norm(&format!("{name}.attention.output.LayerNorm"), shape.hidden, &mut layer.attention_norm, visit);
    walk_linear(&format!("{name}.intermediate.dense"), &mut layer.intermediate, visit);
    walk_linear(&format!("{name}.output.dense"), &mut layer.output, visit);
    walk_norm(&format!("{name}.output.LayerNorm"), shape.hidden, &mut layer.output_norm, visit);
}
