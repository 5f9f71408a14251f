//! DistilBERT: BERT without token types, under names of its own.

use serde::Deserialize;

use super::LayerNames;
use super::config::{self, Common};

/// `config.json` of a DistilBERT model.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    vocab_size: usize,
    dim: usize,
    n_layers: usize,
    n_heads: usize,
    hidden_dim: usize,
    #[serde(default = "config::gelu")]
    activation: String,
    max_position_embeddings: usize,
}

impl From<Config> for Common {
    fn from(config: Config) -> Common {
        Common {
            vocab: config.vocab_size,
            embedding: config.dim,
            hidden: config.dim,
            layers: config.n_layers,
            heads: config.n_heads,
            intermediate: config.hidden_dim,
            activation: ("activation", config.activation),
            positions: config.max_position_embeddings,
            types: None,
            // Not in the configuration: the family's norms are built with this constant.
            eps: config::small_eps(),
            padding_before_positions: None,
            relative: None,
        }
    }
}

/// Names of a DistilBERT encoder's layers.
pub(super) const NAMES: LayerNames = LayerNames {
    layers: "transformer.layer",
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    attention_output: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    intermediate: "ffn.lin1",
    output: "ffn.lin2",
    output_norm: "output_layer_norm",
};
