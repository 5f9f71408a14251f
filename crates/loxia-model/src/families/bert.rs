//! BERT (`model_type: bert`), and the names RoBERTa and ELECTRA took over from it.

use loxia_nn::{EncoderShape, EncoderWeights};
use serde::Deserialize;

use super::config::{self, Common};
use super::{LayerNames, Visitor, walk_norm};

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

/// Names of a BERT encoder's layers.
pub(super) const NAMES: LayerNames = LayerNames {
    layers: "encoder.layer",
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    attention_output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    intermediate: "intermediate.dense",
    output: "output.dense",
    output_norm: "output.LayerNorm",
};

/// Name of the word table, in every family.
pub(super) const WORDS: &str = "embeddings.word_embeddings.weight";

/// Names of the embedding tables and their norm.
pub(super) fn walk_embeddings(shape: &EncoderShape, weights: &mut EncoderWeights, visit: &mut Visitor<'_>) {
    visit(WORDS, &[shape.vocab, shape.embedding], &mut weights.word);
    if let Some(position) = &mut weights.position {
        visit("embeddings.position_embeddings.weight", &[shape.positions, shape.embedding], position);
    }
    if let Some(types) = &mut weights.types {
        visit("embeddings.token_type_embeddings.weight", &[shape.types, shape.embedding], types);
    }
    walk_norm("embeddings.LayerNorm", shape.embedding, &mut weights.embedding_norm, visit);
}
