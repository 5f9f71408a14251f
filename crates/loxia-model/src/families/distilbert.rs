//! DistilBERT: BERT without token types, under names of its own.

use loxia_nn::{EncoderShape, EncoderWeights};
use serde::Deserialize;

use super::config::{self, Common};
use super::{Visitor, bert, walk_linear, walk_norm};

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

/// Names of a DistilBERT encoder.
pub(super) fn walk(shape: &EncoderShape, weights: &mut EncoderWeights, visit: &mut Visitor<'_>) {
    bert::walk_embeddings(shape, weights, visit);
    for (index, layer) in weights.layers.iter_mut().enumerate() {
        let name = format!("transformer.layer.{index}");
        walk_linear(&format!("{name}.attention.q_lin"), &mut layer.query, visit);
        walk_linear(&format!("{name}.attention.k_lin"), &mut layer.key, visit);
        walk_linear(&format!("{name}.attention.v_lin"), &mut layer.value, visit);
        walk_linear(&format!("{name}.attention.out_lin"), &mut layer.attention_output, visit);
        walk_norm(&format!("{name}.sa_layer_norm"), shape.hidden, &mut layer.attention_norm, visit);
        walk_linear(&format!("{name}.ffn.lin1"), &mut layer.intermediate, visit);
        walk_linear(&format!("{name}.ffn.lin2"), &mut layer.output, visit);
        walk_norm(&format!("{name}.output_layer_norm"), shape.hidden, &mut layer.output_norm, visit);
    }
}
