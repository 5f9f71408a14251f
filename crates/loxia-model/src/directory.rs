//! What a model directory says about itself, before any weight is read.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::families::ModelConfig;
use crate::json::read_json_if_present;
use crate::layout::{Compat, Layout, LayoutKind};
use crate::loxia_json::LoxiaJson;
use crate::options::{ModelOptions, Variant};
use crate::sentence::SentenceModel;

/// A model directory: Hugging Face's, sentence-transformers', or one with `loxia.json`.
#[derive(Debug)]
pub(crate) struct ModelDirectory {
    pub(crate) root: PathBuf,
    pub(crate) loxia: Option<LoxiaJson>,
    pub(crate) sentence: Option<SentenceModel>,
}

/// `tokenizer_config.json`, as far as it concerns token types.
#[derive(Deserialize)]
struct TokenizerInputs {
    #[serde(default)]
    model_input_names: Option<Vec<String>>,
}

/// Whether inputs of this layout have no token types: `pair` follows the tokenizer, which may list its outputs
/// without them; other layouts say themselves what their types are.
pub(crate) fn omits_types(transformer: &Path, layout: &Layout) -> Result<bool> {
    if layout.kind != LayoutKind::Pair {
        return Ok(false);
    }
    let inputs: Option<TokenizerInputs> = read_json_if_present(&transformer.join("tokenizer_config.json"))?;
    let names = inputs.and_then(|inputs| inputs.model_input_names);
    Ok(names.is_some_and(|names| !names.iter().any(|name| name == "token_type_ids")))
}

/// A decision and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) variant: Variant,
    pub(crate) because: String,
}

impl ModelDirectory {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        if !root.is_dir() {
            let what = if root.is_file() {
                "this is a file; a model is a directory with config.json, weights and tokenizer \
                 (checkpoint files are converted with `loxia model convert`)"
            } else {
                "no such directory (models of the Hugging Face cache are written hf:owner/name)"
            };
            return Err(Error::NotAModel { path: root.to_owned(), what: what.into() });
        }
        let directory = ModelDirectory {
            root: root.to_owned(),
            loxia: LoxiaJson::read(root)?,
            sentence: SentenceModel::read(root)?,
        };
        let described = directory.sentence.is_some() || directory.towers().is_some();
        if !described && !root.join("config.json").is_file() {
            return Err(Error::NotAModel {
                path: root.to_owned(),
                what: "no config.json, modules.json or loxia.json with towers: not a model directory".into(),
            });
        }
        Ok(directory)
    }

    /// The towers' directories, where `loxia.json` names two.
    pub(crate) fn towers(&self) -> Option<(PathBuf, PathBuf)> {
        let towers = self.loxia.as_ref()?.towers.as_ref()?;
        Some((self.root.join(&towers.query), self.root.join(&towers.item)))
    }

    /// Where the encoder of a model with only one is.
    pub(crate) fn transformer(&self) -> &Path {
        self.sentence.as_ref().map_or(&self.root, |sentence| &sentence.query.transformer)
    }

    /// `config.json` of that encoder.
    pub(crate) fn config(&self) -> Result<ModelConfig> {
        ModelConfig::read(&self.transformer().join("config.json"))
    }

    /// What to build: flags first, then `loxia.json`, `modules.json`, `architectures`.
    pub(crate) fn decide(&self, config: Option<&ModelConfig>, options: &ModelOptions) -> Result<Decision> {
        let decided = |variant, because: &str| Ok(Decision { variant, because: because.to_owned() });
        if let Some(variant) = options.variant {
            return decided(variant, "asked for");
        }
        if let Some(variant) = self.loxia.as_ref().and_then(|loxia| loxia.variant) {
            return decided(variant, "loxia.json");
        }
        if let Some(sentence) = &self.sentence {
            if sentence.query.pooling.is_some() {
                return decided(Variant::Dual, "modules.json has a Pooling module");
            }
            if sentence.is_cross_encoder {
                return decided(Variant::Cls, "config_sentence_transformers.json says CrossEncoder");
            }
        }
        let architectures =
            config.and_then(|config| config.facts.architectures.clone()).unwrap_or_default().join(", ");
        if config.is_some_and(|config| config.facts.is_classifier()) {
            return decided(Variant::Cls, &format!("architectures of config.json: {architectures}"));
        }
        let what = if architectures.is_empty() { "no architectures".to_owned() } else { architectures };
        Err(Error::Undecided {
            path: self.root.clone(),
            why: format!(
                "config.json names {what} and neither loxia.json nor modules.json says what is built on it"
            ),
            flags: "--variant cls (classification head), --variant emb --layout anncur (states at marks), \
                    --variant hard-nce, or --variant dual --pooling cls|tanh|mean|max|lse|marker"
                .into(),
        })
    }

    /// The layout: `loxia.json`'s unless a flag names another, with flags for each limit.
    pub(crate) fn layout(&self, variant: Variant, options: &ModelOptions) -> Layout {
        let stored = self.loxia.as_ref().and_then(|loxia| loxia.layout.as_ref());
        let mut layout = match (stored, options.layout) {
            (Some(stored), None) => stored.clone(),
            (Some(stored), Some(kind)) if stored.kind == kind => stored.clone(),
            (_, Some(kind)) => Layout::new(kind),
            (None, None) => Layout::new(match variant {
                Variant::Emb => LayoutKind::Anncur,
                Variant::HardNce => LayoutKind::HardNce,
                Variant::Cls | Variant::Dual => LayoutKind::Pair,
            }),
        };
        layout.max_query = options.max_query.or(layout.max_query);
        layout.max_item = options.max_item.or(layout.max_item);
        layout.max_length = options.max_length.or(layout.max_length);
        layout.compat = options.compat.or(layout.compat).filter(|compat| *compat != Compat::None);
        layout
    }

    /// A name for people: the directory's own.
    pub(crate) fn name(&self) -> String {
        let name = self.root.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| self.root.display().to_string())
    }
}
