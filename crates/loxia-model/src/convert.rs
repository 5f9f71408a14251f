//! Published checkpoints to directories that say what they are.
//!
//! | input | becomes |
//! |---|---|
//! | directory with `pytorch_model.bin` (sentence-transformers modules too) | the same directory with safetensors |
//! | Lightning `.ckpt` of anncur, `encoder.bert_model.*` | cross-encoder, `cls` with `additional_linear`, else `emb` |
//! | Lightning `.ckpt` of anncur, `input_encoder` and `label_encoder` | dual encoder, two towers |
//! | hard-nce checkpoint, `mention_encoder` and `entity_encoder` | dual encoder, two towers |
//! | hard-nce checkpoint, `encoder` and `score_layer` | cross-encoder `hard-nce` |
//!
//! A checkpoint file has no configuration and no tokenizer, so both come from the directory of the model it
//! was trained from; sizes are taken from the tensors. `loxia.json` names the compat the weights were trained
//! with, so that nobody scores them otherwise by accident.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::families::{ModelConfig, parse_config};
use crate::json::read_json;
use crate::layout::{Compat, Layout, LayoutKind};
use crate::loxia_json::LoxiaJson;
use crate::network::{Network, Top};
use crate::options::{Pooling, Similarity, Variant};
use crate::rewrite::rewrite_directory;
use crate::save::{
    SaveOptions, SavedEncoder, SavedSides, SavedTower, write_cross_encoder, write_text_encoder,
};
use crate::weights::WeightStore;

/// How a checkpoint is converted.
#[derive(Debug, Clone, Default)]
pub struct ConvertOptions {
    /// Directory with `config.json` and tokenizer of the base model; needed for checkpoint files.
    pub base: Option<PathBuf>,
    /// How the result is written.
    pub save: SaveOptions,
}

/// What a conversion did.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Conversion {
    /// What the input was taken for.
    pub source: String,
    /// What was made of it; `None` for a directory that was only rewritten.
    pub variant: Option<Variant>,
    /// Tensors that were written.
    pub tensors: usize,
    /// Tensors that were left out.
    pub unread: Vec<String>,
    /// Classes in the checkpoint that were not resolved.
    pub opaque: Vec<String>,
}

/// Converts a checkpoint file or a directory with PyTorch weights.
pub fn convert(input: &Path, output: &Path, options: &ConvertOptions) -> Result<Conversion> {
    if input.is_dir() {
        rewrite_directory(input, output, &options.save)
    } else {
        convert_checkpoint(input, output, options)
    }
}

/// Which system a checkpoint's names belong to, and where its encoders are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    AnncurCross { has_linear: bool },
    AnncurDual,
    HardNceCross,
    HardNceDual,
}

impl System {
    fn recognise(store: &WeightStore) -> Option<Self> {
        let has = |prefix: &str| store.names().any(|name| trimmed(name).starts_with(prefix));
        if has("input_encoder.bert_model.") && has("label_encoder.bert_model.") {
            Some(System::AnncurDual)
        } else if has("encoder.bert_model.") {
            Some(System::AnncurCross { has_linear: has("encoder.additional_linear.") })
        } else if has("mention_encoder.") && has("entity_encoder.") {
            Some(System::HardNceDual)
        } else if has("encoder.embeddings.") && has("score_layer.") {
            Some(System::HardNceCross)
        } else {
            None
        }
    }

    fn describe(self) -> &'static str {
        match self {
            System::AnncurCross { has_linear: true } => "anncur [CLS] cross-encoder",
            System::AnncurCross { has_linear: false } => "anncur [EMB] cross-encoder",
            System::AnncurDual => "anncur dual encoder",
            System::HardNceCross => "hard-nce reranker",
            System::HardNceDual => "hard-nce dual encoder",
        }
    }

    fn variant(self) -> Variant {
        match self {
            System::AnncurCross { has_linear: true } => Variant::Cls,
            System::AnncurCross { has_linear: false } => Variant::Emb,
            System::HardNceCross => Variant::HardNce,
            System::AnncurDual | System::HardNceDual => Variant::Dual,
        }
    }

    fn layout(self) -> Layout {
        let (kind, compat) = match self {
            System::AnncurCross { .. } | System::AnncurDual => (LayoutKind::Anncur, Compat::Anncur),
            System::HardNceCross | System::HardNceDual => (LayoutKind::HardNce, Compat::HardNce),
        };
        let mut layout = Layout::new(kind);
        layout.compat = Some(compat);
        layout
    }

    /// The encoder's prefix for each tower, queries first.
    fn encoders(self) -> &'static [&'static str] {
        match self {
            System::AnncurCross { .. } => &["encoder.bert_model."],
            System::AnncurDual => &["input_encoder.bert_model.", "label_encoder.bert_model."],
            System::HardNceCross => &["encoder."],
            System::HardNceDual => &["mention_encoder.", "entity_encoder."],
        }
    }

    /// The name of the scoring layer, which becomes `classifier`.
    fn linear(self) -> Option<&'static str> {
        match self {
            System::AnncurCross { has_linear: true } => Some("encoder.additional_linear."),
            System::HardNceCross => Some("score_layer.1."),
            _ => None,
        }
    }
}

/// A name without what trainers put before it: Lightning's `model.`, data-parallel `module.`.
fn trimmed(name: &str) -> &str {
    let name = name.strip_prefix("module.").unwrap_or(name);
    name.strip_prefix("model.").unwrap_or(name)
}

fn convert_checkpoint(input: &Path, output: &Path, options: &ConvertOptions) -> Result<Conversion> {
    let store = WeightStore::open_torch(input)?;
    let Some(system) = System::recognise(&store) else {
        let some: Vec<&str> = store.names().take(4).collect();
        return Err(Error::NotAModel {
            path: input.to_owned(),
            what: format!(
                "the tensors ({}, ...) are named as in no system known here (anncur, hard-nce); a checkpoint of \
                 transformers is converted as a directory with config.json and pytorch_model.bin",
                some.join(", ")
            ),
        });
    };
    refuse_codes(input, &store)?;
    let Some(base) = &options.base else {
        return Err(Error::Options(format!(
            "{}: a checkpoint file has neither configuration nor tokenizer; give the directory of the model it was \
             trained from with --base DIR",
            input.display()
        )));
    };
    let mut report = Conversion {
        source: system.describe().into(),
        variant: Some(system.variant()),
        tensors: 0,
        unread: Vec::new(),
        opaque: store.opaque(),
    };
    let mut encoders = Vec::new();
    for prefix in system.encoders() {
        encoders.push(read_encoder(input, system, prefix, base, &mut report)?);
    }
    let item = if encoders.len() == 2 { encoders.pop() } else { None };
    let first = encoders.pop().expect("every system has an encoder");
    match item {
        None => {
            let description = LoxiaJson::new(system.variant(), system.layout());
            write_cross_encoder(first, &description, output, &options.save)?;
        }
        Some(item) => {
            let mut layout = system.layout();
            layout.max_length = Some(128);
            let tower = |encoder| SavedTower {
                encoder,
                pooling: Pooling::Cls,
                layout: layout.clone(),
                steps: Vec::new(),
                lower_case: false,
                include_prompt: true,
                truncate: None,
            };
            let both = SavedSides { prompts: Default::default(), similarity: Similarity::Dot };
            write_text_encoder(tower(first), Some(tower(item)), &both, output, &options.save)?;
        }
    }
    Ok(report)
}

/// Learned codes make several vectors of a text, which nothing here scores.
fn refuse_codes(input: &Path, store: &WeightStore) -> Result<()> {
    match store.names().find(|name| matches!(trimmed(name), "mention_codes" | "entity_codes")) {
        None => Ok(()),
        Some(name) => Err(Error::NotAModel {
            path: input.to_owned(),
            what: format!(
                "it has {name}: models with learned codes make several vectors of a text and are not read"
            ),
        }),
    }
}

fn read_encoder(
    input: &Path,
    system: System,
    prefix: &str,
    base: &Path,
    report: &mut Conversion,
) -> Result<SavedEncoder> {
    let mut store = WeightStore::open_torch(input)?;
    let linear = system.linear();
    let classifier = linear.is_some();
    let mut elsewhere = Vec::new();
    store.rename(|name| {
        let short = trimmed(name);
        if let Some(rest) = linear.and_then(|linear| short.strip_prefix(linear)) {
            return Some(format!("classifier.{rest}"));
        }
        match short.strip_prefix(prefix) {
            Some(rest) if classifier => Some(format!("bert.{rest}")),
            Some(rest) => Some(rest.to_owned()),
            None => {
                if !system.encoders().iter().any(|encoder| short.starts_with(encoder)) {
                    elsewhere.push(name.to_owned());
                }
                None
            }
        }
    });
    let config = fitted_config(base, &store, if classifier { "bert." } else { "" })?;
    let top = if classifier { Top::Classifier(Some(1)) } else { Top::Bare };
    let mut network = Network::load(input, &config, top, &store)?.finite(input, &HashSet::new())?;
    let mut count = 0;
    network.walk("", &mut |_, _, _| count += 1);
    report.tensors += count;
    report.unread.append(&mut network.unread);
    if report.unread.iter().all(|name| !elsewhere.contains(name)) {
        report.unread.append(&mut elsewhere);
    }
    Ok(SavedEncoder { network, config: config.value, tokenizer: base.to_owned() })
}

/// The base model's configuration with sizes as the tensors have them.
fn fitted_config(base: &Path, store: &WeightStore, prefix: &str) -> Result<ModelConfig> {
    let path = base.join("config.json");
    let mut value: Map<String, Value> = read_json(&path)?;
    let side = |name: &str, index: usize| {
        let shape = store.shape(&format!("{prefix}{name}"))?;
        shape.get(index).copied()
    };
    let layer = |index: usize| side(&format!("encoder.layer.{index}.intermediate.dense.weight"), 0);
    let sizes = [
        ("vocab_size", side("embeddings.word_embeddings.weight", 0)),
        ("hidden_size", side("embeddings.word_embeddings.weight", 1)),
        ("max_position_embeddings", side("embeddings.position_embeddings.weight", 0)),
        ("type_vocab_size", side("embeddings.token_type_embeddings.weight", 0)),
        ("intermediate_size", layer(0)),
        ("num_hidden_layers", Some((0..).take_while(|&index| layer(index).is_some()).count())),
    ];
    let heads_known = value.get("hidden_size").and_then(Value::as_u64) == sizes[1].1.map(|size| size as u64);
    if !heads_known {
        return Err(Error::Config {
            path,
            key: "hidden_size".into(),
            found: value.get("hidden_size").map_or("missing".into(), Value::to_string),
            expected: format!(
                "the checkpoint's encoder has {}; give the model it was trained from",
                sizes[1].1.map_or("none".into(), |size| size.to_string())
            ),
        });
    }
    for (key, size) in sizes {
        if let Some(size) = size {
            value.insert(key.into(), json!(size));
        }
    }
    parse_config(&path, Value::Object(value))
}
