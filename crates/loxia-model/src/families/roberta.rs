//! RoBERTa and XLM-RoBERTa: BERT's names, positions that start after the padding id.

use serde::Deserialize;

use super::config::{self, Common};

/// `config.json` of a RoBERTa or XLM-RoBERTa model.
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
    #[serde(default = "config::one")]
    pad_token_id: u32,
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
            padding_before_positions: Some(config.pad_token_id),
            relative: None,
        }
    }
}
