//! Encoder families: what `config.json` says and what the weights are called.
//!
//! One file a family. Each holds its `Config`, which mirrors `config.json`, and the names of its layers' parts. One walk
//! visits every tensor under its name; reading and writing are the same walk with another visitor. All families are
//! the same network to the engine ([`loxia_nn::EncoderShape`]), with these differences:
//!
//! | family | positions | types | apart from BERT |
//! |---|---|---|---|
//! | BERT | from 0 | yes | |
//! | RoBERTa, XLM-R | after the padding id, padding tokens not counted | yes | head without pooler |
//! | ELECTRA | from 0 | yes | embeddings may be narrower and are projected |
//! | DistilBERT | from 0 | no | own names, `pre_classifier` with ReLU |
//! | MPNet | as RoBERTa | no | relative attention bias shared by all layers |

mod bert;
mod config;
mod distilbert;
mod electra;
mod mpnet;
#[cfg(test)]
mod parity;
mod roberta;

use std::fmt;

use loxia_nn::{Activation, EncoderShape, EncoderWeights, LayerMap, LayerNorm, LayerWeights, Linear, Matrix};

pub(crate) use config::{ModelConfig, parse_config};

use crate::weights::WeightStore;

/// A family of encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// `bert`
    Bert,
    /// `roberta`
    Roberta,
    /// `xlm-roberta`
    XlmRoberta,
    /// `electra`
    Electra,
    /// `distilbert`
    DistilBert,
    /// `mpnet`
    MpNet,
}

impl Family {
    /// All families, in the order they are listed to people.
    pub const ALL: [Family; 6] = [
        Family::Bert,
        Family::Roberta,
        Family::XlmRoberta,
        Family::Electra,
        Family::DistilBert,
        Family::MpNet,
    ];

    /// The `model_type` of its `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Family::Bert => "bert",
            Family::Roberta => "roberta",
            Family::XlmRoberta => "xlm-roberta",
            Family::Electra => "electra",
            Family::DistilBert => "distilbert",
            Family::MpNet => "mpnet",
        }
    }

    /// How the class of a sequence classifier of this family is called in `architectures`.
    pub(crate) fn classifier_class(self) -> &'static str {
        match self {
            Family::Bert => "BertForSequenceClassification",
            Family::Roberta => "RobertaForSequenceClassification",
            Family::XlmRoberta => "XLMRobertaForSequenceClassification",
            Family::Electra => "ElectraForSequenceClassification",
            Family::DistilBert => "DistilBertForSequenceClassification",
            Family::MpNet => "MPNetForSequenceClassification",
        }
    }

    /// How the class of the bare encoder is called in `architectures`.
    pub(crate) fn encoder_class(self) -> &'static str {
        match self {
            Family::Bert => "BertModel",
            Family::Roberta => "RobertaModel",
            Family::XlmRoberta => "XLMRobertaModel",
            Family::Electra => "ElectraModel",
            Family::DistilBert => "DistilBertModel",
            Family::MpNet => "MPNetModel",
        }
    }

    /// What stands before the encoder's tensor names when a head stands beside it.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Family::Bert => "bert.",
            Family::Roberta | Family::XlmRoberta => "roberta.",
            Family::Electra => "electra.",
            Family::DistilBert => "distilbert.",
            Family::MpNet => "mpnet.",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model_type())
    }
}

/// From logical positions (0, 1, 2, ...) to rows of the position table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PositionRule {
    /// The logical position is the row.
    FromZero,
    /// Rows start after the padding id; padding tokens sit on its row and are not counted.
    AfterPadding(u32),
}

impl PositionRule {
    /// Rows of the table that no position may use.
    pub(crate) fn reserved(self) -> usize {
        match self {
            PositionRule::FromZero => 0,
            PositionRule::AfterPadding(pad) => pad as usize + 1,
        }
    }

    /// Turns logical positions into rows, in place.
    pub(crate) fn apply(self, ids: &[u32], positions: &mut [u32]) {
        if let PositionRule::AfterPadding(pad) = self {
            let mut skipped = 0;
            for (&id, position) in ids.iter().zip(positions) {
                if id == pad {
                    *position = pad;
                    skipped += 1;
                } else {
                    *position = *position + pad + 1 - skipped;
                }
            }
        }
    }
}

/// A family with its sizes: all that is needed to name and shape every tensor.
#[derive(Debug, Clone)]
pub(crate) struct Architecture {
    pub(crate) family: Family,
    pub(crate) shape: EncoderShape,
    pub(crate) positions: PositionRule,
    pub(crate) has_types: bool,
}

/// Called with a tensor's name, its shape, and the values to fill or to read.
pub(crate) type Visitor<'v> = dyn FnMut(&str, &[usize], &mut Vec<f32>) + 'v;

/// A dense layer of a head with the activation that follows it.
#[derive(Debug, Clone)]
pub struct HeadLayer {
    /// The layer.
    pub linear: Linear,
    /// What follows it.
    pub activation: Activation,
}

impl Architecture {
    /// The prefix of the encoder's tensors in a store: the family's, or none.
    pub(crate) fn find_prefix(&self, store: &WeightStore) -> &'static str {
        let prefix = self.family.prefix();
        if store.names().any(|name| name.starts_with(prefix)) { prefix } else { "" }
    }

    /// Weights of the right structure without values, for a walk to fill.
    pub(crate) fn skeleton(&self) -> EncoderWeights {
        let shape = &self.shape;
        let (hidden, wide) = (shape.hidden, shape.intermediate);
        let norm = || empty_norm(shape.layer_norm_eps);
        EncoderWeights {
            word: Vec::new(),
            position: Some(Vec::new()),
            types: self.has_types.then(Vec::new),
            embedding_norm: norm(),
            embedding_projection: (shape.embedding != hidden).then(|| empty_linear(shape.embedding, hidden)),
            relative_bias: shape.relative.as_ref().map(|_| Vec::new()),
            layers: (0..shape.layers)
                .map(|_| LayerWeights {
                    query: empty_linear(hidden, hidden),
                    key: empty_linear(hidden, hidden),
                    value: empty_linear(hidden, hidden),
                    attention_output: empty_linear(hidden, hidden),
                    attention_norm: norm(),
                    intermediate: empty_linear(hidden, wide),
                    output: empty_linear(wide, hidden),
                    output_norm: norm(),
                })
                .collect(),
        }
    }

    /// Visits every tensor of the encoder under its name (without prefix).
    pub(crate) fn walk_encoder(&self, weights: &mut EncoderWeights, visit: &mut Visitor<'_>) {
        bert::walk_embeddings(&self.shape, weights, visit);
        if let Some(projection) = &mut weights.embedding_projection {
            walk_linear("embeddings_project", projection, visit);
        }
        let names = self.layer_names();
        for (index, layer) in weights.layers.iter_mut().enumerate() {
            names.walk(index, &self.shape, layer, visit);
        }
        if let (Some(bias), Some(relative)) = (&mut weights.relative_bias, &self.shape.relative) {
            visit("encoder.relative_attention_bias.weight", &[relative.buckets, self.shape.heads], bias);
        }
    }

    /// The name under which [`Architecture::walk_encoder`] visits a matrix.
    pub(crate) fn matrix_name(&self, matrix: Matrix) -> String {
        match matrix {
            Matrix::Words => bert::WORDS.to_owned(),
            Matrix::Layer { index, map } => format!("{}.weight", self.layer_names().map(index, map)),
        }
    }

    fn layer_names(&self) -> &'static LayerNames {
        match self.family {
            Family::Bert | Family::Roberta | Family::XlmRoberta | Family::Electra => &bert::NAMES,
            Family::DistilBert => &distilbert::NAMES,
            Family::MpNet => &mpnet::NAMES,
        }
    }

    /// The layers of a sequence classification head, without values; they read the first token's state.
    pub(crate) fn head_skeleton(&self, labels: usize) -> Vec<HeadLayer> {
        let hidden = self.shape.hidden;
        let inner = match self.family {
            Family::Bert | Family::Roberta | Family::XlmRoberta | Family::MpNet => Activation::Tanh,
            Family::Electra => Activation::GeluErf,
            Family::DistilBert => Activation::Relu,
        };
        vec![
            HeadLayer { linear: empty_linear(hidden, hidden), activation: inner },
            HeadLayer { linear: empty_linear(hidden, labels), activation: Activation::Identity },
        ]
    }

    /// Visits the tensors of a head made by [`Architecture::head_skeleton`]. BERT's first layer is the
    /// encoder's pooler and so carries the encoder's prefix.
    pub(crate) fn walk_head(&self, prefix: &str, head: &mut [HeadLayer], visit: &mut Visitor<'_>) {
        let names = match self.family {
            Family::Bert => [format!("{prefix}pooler.dense"), "classifier".to_owned()],
            Family::DistilBert => ["pre_classifier".to_owned(), "classifier".to_owned()],
            Family::Roberta | Family::XlmRoberta | Family::Electra | Family::MpNet => {
                ["classifier.dense".to_owned(), "classifier.out_proj".to_owned()]
            }
        };
        for (layer, name) in head.iter_mut().zip(names) {
            walk_linear(&name, &mut layer.linear, visit);
        }
    }

    /// The name of the head's last weight, whose first side is the number of labels.
    pub(crate) fn label_tensor(&self) -> &'static str {
        match self.family {
            Family::Bert | Family::DistilBert => "classifier.weight",
            _ => "classifier.out_proj.weight",
        }
    }

    /// Whether the family has a tanh pooler beside its encoder.
    pub(crate) fn has_pooler(&self) -> bool {
        !matches!(self.family, Family::Electra | Family::DistilBert)
    }

    /// The tanh pooler, without values.
    pub(crate) fn pooler_skeleton(&self) -> HeadLayer {
        let hidden = self.shape.hidden;
        HeadLayer { linear: empty_linear(hidden, hidden), activation: Activation::Tanh }
    }

    /// Visits the tanh pooler.
    pub(crate) fn walk_pooler(&self, prefix: &str, pooler: &mut HeadLayer, visit: &mut Visitor<'_>) {
        walk_linear(&format!("{prefix}pooler.dense"), &mut pooler.linear, visit);
    }
}

/// Whether an unread tensor is known to be of no use to an encoder: buffers, poolers and heads of other
/// tasks. Anything else that is not read is an error.
pub(crate) fn may_stay_unread(name: &str) -> bool {
    const HEADS: [&str; 12] = [
        "cls.",
        "lm_head.",
        "classifier.",
        "pre_classifier.",
        "qa_outputs.",
        "vocab_transform.",
        "vocab_layer_norm.",
        "vocab_projector.",
        "discriminator_predictions.",
        "generator_predictions.",
        "generator_lm_head.",
        "score.",
    ];
    name.ends_with("embeddings.position_ids")
        || name.ends_with("embeddings.token_type_ids")
        || name.contains("pooler.dense.")
        || HEADS.iter().any(|head| name.starts_with(head))
}

/// What a family calls the parts of its layers.
struct LayerNames {
    /// Before the layer's number.
    layers: &'static str,
    query: &'static str,
    key: &'static str,
    value: &'static str,
    attention_output: &'static str,
    attention_norm: &'static str,
    intermediate: &'static str,
    output: &'static str,
    output_norm: &'static str,
}

impl LayerNames {
    fn part(&self, index: usize, part: &str) -> String {
        format!("{}.{index}.{part}", self.layers)
    }

    fn map(&self, index: usize, map: LayerMap) -> String {
        let part = match map {
            LayerMap::Query => self.query,
            LayerMap::Key => self.key,
            LayerMap::Value => self.value,
            LayerMap::AttentionOutput => self.attention_output,
            LayerMap::Intermediate => self.intermediate,
            LayerMap::Output => self.output,
        };
        self.part(index, part)
    }

    /// Visits the tensors of a layer, each norm after the map that it follows.
    fn walk(&self, index: usize, shape: &EncoderShape, layer: &mut LayerWeights, visit: &mut Visitor<'_>) {
        for map in LayerMap::ALL {
            walk_linear(&self.map(index, map), map.of_mut(layer), visit);
            match map {
                LayerMap::AttentionOutput => {
                    let name = self.part(index, self.attention_norm);
                    walk_norm(&name, shape.hidden, &mut layer.attention_norm, visit);
                }
                LayerMap::Output => {
                    let name = self.part(index, self.output_norm);
                    walk_norm(&name, shape.hidden, &mut layer.output_norm, visit);
                }
                _ => {}
            }
        }
    }
}

fn empty_linear(inputs: usize, outputs: usize) -> Linear {
    Linear { weight: Vec::new(), bias: Some(Vec::new()), inputs, outputs }
}

fn empty_norm(eps: f32) -> LayerNorm {
    LayerNorm { scale: Vec::new(), shift: Vec::new(), eps }
}

fn walk_linear(name: &str, linear: &mut Linear, visit: &mut Visitor<'_>) {
    visit(&format!("{name}.weight"), &[linear.outputs, linear.inputs], &mut linear.weight);
    if let Some(bias) = &mut linear.bias {
        visit(&format!("{name}.bias"), &[linear.outputs], bias);
    }
}

fn walk_norm(name: &str, width: usize, norm: &mut LayerNorm, visit: &mut Visitor<'_>) {
    visit(&format!("{name}.weight"), &[width], &mut norm.scale);
    visit(&format!("{name}.bias"), &[width], &mut norm.shift);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_tokens_keep_the_padding_row() {
        let mut positions = [0, 1, 2, 3, 4];
        PositionRule::AfterPadding(1).apply(&[0, 7, 1, 8, 2], &mut positions);
        assert_eq!(positions, [2, 3, 1, 4, 5]);
        PositionRule::FromZero.apply(&[0, 7, 1, 8, 2], &mut positions);
        assert_eq!(positions, [2, 3, 1, 4, 5]);
    }

    #[test]
    fn encoder_parts_are_never_ignored() {
        assert!(may_stay_unread("bert.pooler.dense.weight") && may_stay_unread("cls.predictions.bias"));
        assert!(!may_stay_unread("bert.encoder.layer.12.output.dense.weight"));
        assert!(!may_stay_unread("additional_linear.weight"));
    }
}
