//! MPNet: no token types, positions as RoBERTa, and one table of relative attention biases for all layers.

use loxia_nn::RelativeBuckets;
use serde::Deserialize;

use super::LayerNames;
use super::config::{self, Common};

/// Rows of the bias table. `config.json` has a key for it, but transformers computes with this number
/// whatever the key says.
pub(super) const BUCKETS: usize = 32;

/// Farthest distance with a bucket of its own; the family does not configure it.
const MAX_DISTANCE: usize = 128;

/// The row of the padding position; the family does not take it from `pad_token_id`.
const PADDING: u32 = 1;

/// `config.json` of an MPNet model.
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
            types: None,
            eps: config.layer_norm_eps,
            padding_before_positions: Some(PADDING),
            relative: Some(RelativeBuckets { buckets: BUCKETS, max_distance: MAX_DISTANCE }),
        }
    }
}

/// Names of an MPNet encoder's layers.
pub(super) const NAMES: LayerNames = LayerNames {
    layers: "encoder.layer",
    query: "attention.attn.q",
    key: "attention.attn.k",
    value: "attention.attn.v",
    attention_output: "attention.attn.o",
    attention_norm: "attention.LayerNorm",
    intermediate: "intermediate.dense",
    output: "output.dense",
    output_norm: "output.LayerNorm",
};
