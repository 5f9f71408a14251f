//! ELECTRA: BERT whose embeddings may be narrower than its layers and are then projected.
//! Its names are BERT's.

use serde::Deserialize;

use super::config::{self, Common};

/// `config.json` of an ELECTRA model.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    vocab_size: usize,
    embedding_size: usize,
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
            embedding: config.embedding_size,
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
