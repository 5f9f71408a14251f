//! Reading `config.json`: which family, which sizes, and what else it tells.

use std::path::Path;

use loxia_nn::{Activation, EncoderShape, RelativeBuckets};
use serde::Deserialize;
use serde_json::Value;

use super::{Architecture, Family, PositionRule, bert, distilbert, electra, mpnet, roberta};
use crate::error::{Error, Result};
use crate::json::read_json;

/// More layers than any encoder of these families has; a guard against a lying file.
const MAX_LAYERS: usize = 1024;

/// What all families say, under one name each.
pub(super) struct Common {
    pub(super) vocab: usize,
    pub(super) embedding: usize,
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) intermediate: usize,
    pub(super) activation: (&'static str, String),
    pub(super) positions: usize,
    pub(super) types: Option<usize>,
    pub(super) eps: f32,
    pub(super) padding_before_positions: Option<u32>,
    pub(super) relative: Option<RelativeBuckets>,
}

/// What `config.json` says beyond the sizes of the encoder.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct ConfigFacts {
    #[serde(default)]
    pub(crate) architectures: Option<Vec<String>>,
    #[serde(default)]
    num_labels: Option<usize>,
    #[serde(default)]
    id2label: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    sentence_transformers: Option<SentenceTransformersFacts>,
    #[serde(default)]
    sbert_ce_default_activation_function: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct SentenceTransformersFacts {
    /// Outer `None`: no such key; inner: the key is null.
    #[serde(default, deserialize_with = "present")]
    activation_fn: Option<Option<String>>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl ConfigFacts {
    /// Number of labels, if the file tells it; the map of labels decides, as in transformers.
    pub(crate) fn labels(&self) -> Option<usize> {
        self.id2label.as_ref().map(serde_json::Map::len).or(self.num_labels)
    }

    /// Whether it names a sequence classifier.
    pub(crate) fn is_classifier(&self) -> bool {
        self.architectures.iter().flatten().any(|name| name.ends_with("ForSequenceClassification"))
    }

    /// The activation sentence-transformers stored for a cross-encoder; the new place, even if null, hides the
    /// old one.
    pub(crate) fn stored_activation(&self) -> Option<&str> {
        match self.sentence_transformers.as_ref().and_then(|facts| facts.activation_fn.as_ref()) {
            Some(new) => new.as_deref(),
            None => self.sbert_ce_default_activation_function.as_deref(),
        }
    }
}

/// A parsed `config.json`.
#[derive(Debug, Clone)]
pub(crate) struct ModelConfig {
    pub(crate) architecture: Architecture,
    pub(crate) facts: ConfigFacts,
    /// The file as it is, for writing it back.
    pub(crate) value: Value,
}

impl ModelConfig {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        parse_config(path, read_json(path)?)
    }

    /// Longest sequence the position table can hold.
    pub(crate) fn usable_positions(&self) -> usize {
        self.architecture.shape.positions.saturating_sub(self.architecture.positions.reserved())
    }
}

/// Understands the value of a `config.json`; `path` is for messages.
pub(crate) fn parse_config(path: &Path, value: Value) -> Result<ModelConfig> {
    let family = find_family(path, &value)?;
    refuse_unknown_computations(path, &value)?;
    let common: Common = match family {
        Family::Bert => typed::<bert::Config>(path, &value)?.into(),
        Family::Roberta | Family::XlmRoberta => typed::<roberta::Config>(path, &value)?.into(),
        Family::Electra => typed::<electra::Config>(path, &value)?.into(),
        Family::DistilBert => typed::<distilbert::Config>(path, &value)?.into(),
        Family::MpNet => typed::<mpnet::Config>(path, &value)?.into(),
    };
    let architecture = common.check(path, family)?;
    let facts = typed(path, &value)?;
    Ok(ModelConfig { architecture, facts, value })
}

fn typed<T: serde::de::DeserializeOwned>(path: &Path, value: &Value) -> Result<T> {
    T::deserialize(value).map_err(|e| Error::malformed(path, e.to_string()))
}

fn find_family(path: &Path, value: &Value) -> Result<Family> {
    let known = || Family::ALL.map(Family::model_type).join(", ");
    let Some(model_type) = value.get("model_type").and_then(Value::as_str) else {
        return Err(Error::Config {
            path: path.to_owned(),
            key: "model_type".into(),
            found: value.get("model_type").map_or("missing".into(), Value::to_string),
            expected: format!("one of {} is needed", known()),
        });
    };
    Family::ALL.into_iter().find(|family| family.model_type() == model_type).ok_or_else(|| Error::Config {
        path: path.to_owned(),
        key: "model_type".into(),
        found: format!("{model_type:?}"),
        expected: format!("the families read here are {}", known()),
    })
}

/// Settings that change what the network computes and that the engine does not compute.
fn refuse_unknown_computations(path: &Path, value: &Value) -> Result<()> {
    let refuse = |key: &str, found: &Value, expected: &str| {
        Err(Error::Config {
            path: path.to_owned(),
            key: key.into(),
            found: found.to_string(),
            expected: expected.into(),
        })
    };
    for key in ["is_decoder", "add_cross_attention", "is_encoder_decoder"] {
        if let Some(found) = value.get(key).filter(|found| found.as_bool() == Some(true)) {
            return refuse(key, found, "only encoders are read here");
        }
    }
    if let Some(found) = value.get("relative_attention_num_buckets").filter(|found| **found != mpnet::BUCKETS)
    {
        return refuse("relative_attention_num_buckets", found, "only 32 buckets are computed");
    }
    match value.get("position_embedding_type") {
        None | Some(Value::Null) => Ok(()),
        Some(found) if found == "absolute" => Ok(()),
        Some(found) => refuse("position_embedding_type", found, "only absolute positions are computed"),
    }
}

impl Common {
    fn check(self, path: &Path, family: Family) -> Result<Architecture> {
        let complain = |key: &str, found: String, expected: String| Error::Config {
            path: path.to_owned(),
            key: key.into(),
            found,
            expected,
        };
        let (key, name) = &self.activation;
        let Some(activation) = activation_named(name) else {
            let known = "gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, relu, silu, tanh";
            return Err(complain(key, format!("{name:?}"), format!("the activations computed are {known}")));
        };
        let sizes = [
            ("vocabulary size", self.vocab),
            ("embedding size", self.embedding),
            ("hidden size", self.hidden),
            ("number of layers", self.layers),
            ("number of heads", self.heads),
            ("intermediate size", self.intermediate),
            ("number of positions", self.positions),
        ];
        if let Some((key, size)) = sizes.into_iter().find(|&(_, size)| size == 0 || size > u32::MAX as usize)
        {
            return Err(complain(key, size.to_string(), "it must be a positive 32-bit number".into()));
        }
        if self.layers > MAX_LAYERS {
            return Err(complain(
                "number of layers",
                self.layers.to_string(),
                format!("at most {MAX_LAYERS}"),
            ));
        }
        if !self.hidden.is_multiple_of(self.heads) {
            let expected = format!("it must divide the hidden size {}", self.hidden);
            return Err(complain("number of heads", self.heads.to_string(), expected));
        }
        if !(self.eps.is_finite() && self.eps >= 0.0) {
            return Err(complain("layer_norm_eps", self.eps.to_string(), "it must be a small number".into()));
        }
        let positions = match self.padding_before_positions {
            None => PositionRule::FromZero,
            Some(pad) => PositionRule::AfterPadding(pad),
        };
        if self.positions <= positions.reserved() {
            let expected = format!("the first {} are reserved by the padding id", positions.reserved());
            return Err(complain("number of positions", self.positions.to_string(), expected));
        }
        Ok(Architecture {
            family,
            positions,
            has_types: self.types.is_some_and(|types| types > 0),
            shape: EncoderShape {
                vocab: self.vocab,
                embedding: self.embedding,
                hidden: self.hidden,
                layers: self.layers,
                heads: self.heads,
                intermediate: self.intermediate,
                positions: self.positions,
                types: self.types.unwrap_or(0),
                layer_norm_eps: self.eps,
                activation,
                relative: self.relative,
            },
        })
    }
}

/// transformers' names of activations.
fn activation_named(name: &str) -> Option<Activation> {
    Some(match name {
        "gelu" | "gelu_python" => Activation::GeluErf,
        "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" | "gelu_python_tanh" => Activation::GeluTanh,
        "relu" => Activation::Relu,
        "quick_gelu" => Activation::GeluQuick,
        "silu" | "swish" => Activation::Silu,
        "tanh" => Activation::Tanh,
        _ => return None,
    })
}

pub(super) fn gelu() -> String {
    "gelu".into()
}

pub(super) fn two() -> usize {
    2
}

pub(super) fn one() -> u32 {
    1
}

pub(super) fn small_eps() -> f32 {
    1e-12
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(change: impl FnOnce(&mut Value)) -> Result<ModelConfig> {
        let mut value = json!({
            "model_type": "bert", "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": 9, "hidden_act": "gelu", "max_position_embeddings": 16
        });
        change(&mut value);
        parse_config(Path::new("config.json"), value)
    }

    fn message(key: &str, value: Value) -> String {
        parse(|config| config[key] = value).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_computed_is_refused_by_name() {
        assert!(parse(|_| ()).is_ok());
        assert!(message("model_type", json!("deberta")).contains("model_type is \"deberta\"; the families"));
        assert!(message("hidden_act", json!("mish")).contains("hidden_act is \"mish\""));
        assert!(message("is_decoder", json!(true)).contains("only encoders"));
        assert!(message("position_embedding_type", json!("relative_key")).contains("absolute"));
        assert!(message("num_attention_heads", json!(3)).contains("must divide the hidden size 8"));
        assert!(message("hidden_size", json!(0)).contains("positive"));
        assert!(message("num_hidden_layers", json!(1_000_000)).contains("at most 1024"));
        assert!(message("vocab_size", json!(-4)).contains("config.json"));
        let missing = parse(|config| drop(config.as_object_mut().unwrap().remove("hidden_size")));
        assert!(missing.unwrap_err().to_string().contains("hidden_size"));
    }

    #[test]
    fn labels_and_activation_are_found_in_both_generations() {
        let old = parse(|c| {
            c["id2label"] = json!({"0": "LABEL_0"});
            c["sbert_ce_default_activation_function"] = json!("torch.nn.modules.linear.Identity");
        });
        let old = old.unwrap().facts;
        assert_eq!(
            (old.labels(), old.stored_activation()),
            (Some(1), Some("torch.nn.modules.linear.Identity"))
        );
        let new = parse(|c| {
            c["sentence_transformers"] = json!({"activation_fn": "torch.nn.modules.activation.Sigmoid"})
        });
        assert_eq!(new.unwrap().facts.stored_activation(), Some("torch.nn.modules.activation.Sigmoid"));
        let hidden = parse(|c| {
            c["sentence_transformers"] = json!({"activation_fn": null});
            c["sbert_ce_default_activation_function"] = json!("torch.nn.modules.linear.Identity");
        });
        assert_eq!(hidden.unwrap().facts.stored_activation(), None);
        let older = parse(|c| {
            c["sentence_transformers"] = json!({"version": "4.0"});
            c["sbert_ce_default_activation_function"] = json!("torch.nn.modules.linear.Identity");
        });
        assert_eq!(older.unwrap().facts.stored_activation(), Some("torch.nn.modules.linear.Identity"));
    }

    #[test]
    fn the_map_of_labels_decides_as_in_transformers() {
        let both = parse(|c| {
            c["num_labels"] = json!(3);
            c["id2label"] = json!({"0": "no", "1": "yes"});
        });
        assert_eq!(both.unwrap().facts.labels(), Some(2));
        assert_eq!(parse(|c| c["num_labels"] = json!(3)).unwrap().facts.labels(), Some(3));
        let quick = parse(|c| c["hidden_act"] = json!("quick_gelu")).unwrap();
        assert_eq!(quick.architecture.shape.activation, Activation::GeluQuick);
    }
}
