//! Directories of sentence-transformers, both generations.
//!
//! `modules.json` lists modules by directory and class. Old releases wrote `0_Transformer` and flags such as
//! `pooling_mode_mean_tokens`; new ones keep the transformer at the root and write `pooling_mode`. From
//! release 5 on, cross-encoders have a `modules.json` too, and a `Router` may hold one tower for queries and
//! one for documents. Only what those modules compute for text is read here; any other module is refused.

use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use loxia_nn::Activation;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::json::{read_json, read_json_if_present};
use crate::options::{Pooling, Similarity};

/// `config_sentence_transformers.json`, as far as it matters.
#[derive(Debug, Clone, Default, Deserialize)]
struct SentenceConfig {
    #[serde(default)]
    prompts: Option<IndexMap<String, Option<String>>>,
    #[serde(default)]
    similarity_fn_name: Option<String>,
    #[serde(default)]
    model_type: Option<String>,
    #[serde(default)]
    activation_fn: Option<String>,
    #[serde(default)]
    truncate_dim: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
struct ModuleEntry {
    path: String,
    #[serde(rename = "type")]
    class: String,
}

/// `router_config.json`.
#[derive(Debug, Deserialize)]
struct RouterConfig {
    types: IndexMap<String, String>,
    structure: IndexMap<String, Vec<String>>,
}

/// What a module does to a vector after pooling.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A dense layer, its weights in this directory.
    Dense { directory: PathBuf, inputs: usize, outputs: usize, bias: bool, activation: Activation },
    /// Length one.
    Normalize,
}

/// One encoder of a directory with what follows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TowerFiles {
    /// Where `config.json`, weights and tokenizer are.
    pub(crate) transformer: PathBuf,
    pub(crate) pooling: Option<Pooling>,
    /// Whether prompt tokens count in pooling.
    pub(crate) include_prompt: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) max_length: Option<usize>,
    pub(crate) lower_case: bool,
}

impl TowerFiles {
    /// A directory that holds an encoder and nothing else.
    pub(crate) fn bare(directory: &Path) -> Self {
        TowerFiles {
            transformer: directory.to_owned(),
            pooling: None,
            include_prompt: true,
            steps: Vec::new(),
            max_length: None,
            lower_case: false,
        }
    }
}

/// A directory of sentence-transformers.
#[derive(Debug, Clone)]
pub(crate) struct SentenceModel {
    pub(crate) query: TowerFiles,
    pub(crate) item: TowerFiles,
    pub(crate) is_cross_encoder: bool,
    pub(crate) activation: Option<String>,
    pub(crate) truncate: Option<usize>,
    prompts: IndexMap<String, String>,
    /// `similarity_fn_name` as it stands, and the file it stands in.
    similarity: Option<(String, PathBuf)>,
}

impl SentenceModel {
    /// Reads a directory's modules; `None` if it has no `modules.json`.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>> {
        let modules_path = directory.join("modules.json");
        let Some(modules) = read_json_if_present::<Vec<ModuleEntry>>(&modules_path)? else { return Ok(None) };
        let config_path = directory.join("config_sentence_transformers.json");
        let config: SentenceConfig = read_json_if_present(&config_path)?.unwrap_or_default();
        let (query, item) = read_towers(directory, &modules_path, &modules)?;
        Ok(Some(SentenceModel {
            is_cross_encoder: config.model_type.as_deref() == Some("CrossEncoder"),
            activation: config.activation_fn,
            similarity: config.similarity_fn_name.map(|name| (name, config_path)),
            truncate: config.truncate_dim,
            prompts: config
                .prompts
                .unwrap_or_default()
                .into_iter()
                .filter_map(|(name, text)| Some((name, text?)))
                .collect(),
            query,
            item,
        }))
    }

    /// The prompt before queries, as `encode_query` has it: the one of that name and never the default.
    pub(crate) fn query_prompt(&self) -> &str {
        self.prompt("query")
    }

    /// The prompt before items, as `encode_document` has it. That function would go on to `passage` and
    /// `corpus`, but a prompt named `document`, empty if need be, is always there.
    pub(crate) fn item_prompt(&self) -> &str {
        self.prompt("document")
    }

    fn prompt(&self, name: &str) -> &str {
        self.prompts.get(name).map_or("", String::as_str)
    }

    /// How vectors are compared, if the directory says so.
    pub(crate) fn similarity(&self) -> Result<Option<Similarity>> {
        let Some((name, path)) = &self.similarity else { return Ok(None) };
        match name.as_str() {
            "dot" | "dot_score" => Ok(Some(Similarity::Dot)),
            "cosine" | "cos_sim" => Ok(Some(Similarity::Cosine)),
            other => Err(Error::Config {
                path: path.clone(),
                key: "similarity_fn_name".into(),
                found: format!("{other:?}"),
                expected: "dot and cosine are computed; choose one with --similarity".into(),
            }),
        }
    }
}

type Modules = Vec<(String, PathBuf)>;

fn read_towers(directory: &Path, path: &Path, modules: &[ModuleEntry]) -> Result<(TowerFiles, TowerFiles)> {
    let mut query: Modules = Vec::new();
    let mut item: Modules = Vec::new();
    for module in modules {
        let place = inside(directory, path, &module.path)?;
        match class_name(&module.class) {
            "Router" | "Asym" => {
                let (to_query, to_item) = read_router(&place)?;
                query.extend(to_query);
                item.extend(to_item);
            }
            class => {
                query.push((class.to_owned(), place.clone()));
                item.push((class.to_owned(), place));
            }
        }
    }
    Ok((read_tower(path, &query)?, read_tower(path, &item)?))
}

fn read_router(directory: &Path) -> Result<(Modules, Modules)> {
    let new = directory.join("router_config.json");
    // The module's former name was Asym, and its file was called config.json.
    let path = if new.is_file() { new } else { directory.join("config.json") };
    let router: RouterConfig = read_json(&path)?;
    let route = |names: &[&str]| -> Result<Modules> {
        let modules =
            names.iter().find_map(|&name| router.structure.get(name)).ok_or_else(|| Error::Config {
                path: path.clone(),
                key: "structure".into(),
                found: format!("{:?}", router.structure.keys().collect::<Vec<_>>()),
                expected: format!("a route named {} is needed", names.join(" or ")),
            })?;
        let class = |name: &String| router.types.get(name).map_or("", |class| class_name(class)).to_owned();
        modules.iter().map(|name| Ok((class(name), inside(directory, &path, name)?))).collect()
    };
    Ok((route(&["query"])?, route(&["document", "doc", "passage", "corpus"])?))
}

fn read_tower(path: &Path, modules: &Modules) -> Result<TowerFiles> {
    let Some(((class, transformer), rest)) = modules.split_first() else {
        return Err(Error::malformed(path, "it lists no module"));
    };
    if class != "Transformer" {
        return Err(unsupported(path, class, "the first module must be a Transformer"));
    }
    let sentence: TransformerConfig = read_transformer_config(transformer)?;
    let mut tower = TowerFiles {
        max_length: sentence.max_seq_length,
        lower_case: sentence.do_lower_case,
        ..TowerFiles::bare(transformer)
    };
    for (class, place) in rest {
        match class.as_str() {
            "Pooling" if tower.pooling.is_none() => {
                let config_path = place.join("config.json");
                let config: PoolingConfig = read_json(&config_path)?;
                tower.pooling = Some(config.mode(&config_path)?);
                tower.include_prompt = config.include_prompt.unwrap_or(true);
            }
            "Dense" if tower.pooling.is_some() => tower.steps.push(read_dense(place)?),
            "Normalize" if tower.pooling.is_some() => tower.steps.push(Step::Normalize),
            "Dropout" => {}
            other => {
                return Err(unsupported(path, other, "Pooling, Dense, Normalize and Router are computed"));
            }
        }
    }
    Ok(tower)
}

/// `sentence_bert_config.json` and its sisters of other architectures.
#[derive(Debug, Default, Deserialize)]
struct TransformerConfig {
    #[serde(default)]
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

fn read_transformer_config(directory: &Path) -> Result<TransformerConfig> {
    for stem in ["bert", "roberta", "distilbert", "xlm-roberta", "electra", "mpnet"] {
        if let Some(config) = read_json_if_present(&directory.join(format!("sentence_{stem}_config.json")))? {
            return Ok(config);
        }
    }
    Ok(TransformerConfig::default())
}

/// `config.json` of a Pooling module: one key in new releases, a flag for each mode in old ones.
#[derive(Debug, Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode: Option<OneOrMany>,
    #[serde(default)]
    include_prompt: Option<bool>,
    #[serde(flatten)]
    flags: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl PoolingConfig {
    fn mode(&self, path: &Path) -> Result<Pooling> {
        let modes: Vec<String> = match &self.pooling_mode {
            Some(OneOrMany::One(mode)) => vec![mode.clone()],
            Some(OneOrMany::Many(modes)) => modes.clone(),
            None => self
                .flags
                .iter()
                .filter(|(_, on)| on.as_bool() == Some(true))
                .filter_map(|(key, _)| key.strip_prefix("pooling_mode_").map(str::to_owned))
                .collect(),
        };
        match modes.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["cls" | "cls_token"] => Ok(Pooling::Cls),
            ["mean" | "mean_tokens"] => Ok(Pooling::Mean),
            ["max" | "max_tokens"] => Ok(Pooling::Max),
            other => Err(Error::Config {
                path: path.to_owned(),
                key: "pooling mode".into(),
                found: format!("{other:?}"),
                expected: "one of cls, mean and max is computed".into(),
            }),
        }
    }
}

#[derive(Debug, Deserialize)]
struct DenseConfig {
    in_features: usize,
    out_features: usize,
    #[serde(default = "yes")]
    bias: bool,
    activation_function: String,
    #[serde(default)]
    module_input_name: Option<String>,
    #[serde(default)]
    module_output_name: Option<String>,
}

fn yes() -> bool {
    true
}

fn read_dense(directory: &Path) -> Result<Step> {
    let path = directory.join("config.json");
    let config: DenseConfig = read_json(&path)?;
    for name in [&config.module_input_name, &config.module_output_name].into_iter().flatten() {
        if name != "sentence_embedding" {
            return Err(unsupported(&path, name, "a Dense module here must work on sentence_embedding"));
        }
    }
    let activation = torch_activation(&config.activation_function).ok_or_else(|| Error::Config {
        path: path.clone(),
        key: "activation_function".into(),
        found: config.activation_function.clone(),
        expected: "Identity, Tanh, ReLU, GELU, SiLU and Sigmoid of torch.nn are computed".into(),
    })?;
    Ok(Step::Dense {
        directory: directory.to_owned(),
        inputs: config.in_features,
        outputs: config.out_features,
        bias: config.bias,
        activation,
    })
}

/// An activation by its dotted Python name.
pub(crate) fn torch_activation(class: &str) -> Option<Activation> {
    if !class.starts_with("torch.nn.") {
        return None;
    }
    Some(match class_name(class) {
        "Identity" => Activation::Identity,
        "Tanh" => Activation::Tanh,
        "ReLU" => Activation::Relu,
        "GELU" => Activation::GeluErf,
        "SiLU" => Activation::Silu,
        "Sigmoid" => Activation::Sigmoid,
        _ => return None,
    })
}

fn class_name(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// A module's directory, which must not lead out of the model's.
fn inside(directory: &Path, file: &Path, relative: &str) -> Result<PathBuf> {
    let plain =
        Path::new(relative).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain {
        Ok(if relative.is_empty() { directory.to_owned() } else { directory.join(relative) })
    } else {
        Err(Error::malformed(file, format!("module path {relative:?} leads out of the model directory")))
    }
}

fn unsupported(path: &Path, found: &str, expected: &str) -> Error {
    Error::Config {
        path: path.to_owned(),
        key: "module".into(),
        found: format!("{found:?}"),
        expected: expected.into(),
    }
}
