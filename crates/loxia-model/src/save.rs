//! Writing models back: directories that Hugging Face's libraries and this crate both load.
//!
//! A cross-encoder becomes a sequence classifier, a dual encoder a sentence-transformers directory (two of
//! them, in `query` and `item`, where it has two towers). `loxia.json` beside them says what those formats
//! cannot. Directories appear whole: they are written under a temporary name and renamed.

use std::fs;
use std::path::{Path, PathBuf};

use loxia_core::artefact::{ArtefactWriter, Existing};
use loxia_nn::Activation;
use serde_json::{Map, Value, json};

use crate::cross_encoder::CrossEncoderParts;
use crate::digest::TOKENIZER_FILES;
use crate::directory::ModelDirectory;
use crate::dual_plan::{DualPlan, TowerPlan};
use crate::error::{Error, Result};
use crate::families::{HeadLayer, ModelConfig};
use crate::json::read_json_if_present;
use crate::layout::{Layout, LayoutKind};
use crate::loxia_json::{FILE_NAME, LoxiaJson, Towers};
use crate::network::{Network, read_dense};
use crate::options::{ModelOptions, Pooling, Similarity, StoredWeights, Variant};
use crate::sentence::Step;
use crate::spec::ModelSpec;
use crate::tokenizer::Tokenizer;
use crate::weights::STEPS;
use crate::weights::safetensors::{self, Outgoing, Values};

/// How a model is written.
///
/// ```
/// let options = loxia_model::SaveOptions { weights: loxia_model::StoredWeights::Int8, ..Default::default() };
/// assert_eq!(options.existing, loxia_core::artefact::Existing::Refuse);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SaveOptions {
    /// In which numbers.
    pub weights: StoredWeights,
    /// What to do with a directory that is there already.
    pub existing: Existing,
}

/// Writes a cross-encoder, as `options` make of it, to `target`.
pub fn save_cross_encoder(
    model: &ModelSpec,
    options: &ModelOptions,
    target: &Path,
    save: &SaveOptions,
) -> Result<()> {
    let directory = ModelDirectory::read(&model.directory()?)?;
    let parts = CrossEncoderParts::resolve(&directory, options)?;
    let network = Network::read(directory.transformer(), &parts.config, parts.top)?;
    let layout = bound(&parts.layout, directory.transformer(), &parts.config)?;
    let mut config = parts.config.value.clone();
    if let Some(class) = &parts.stored_activation {
        config["sentence_transformers"] = json!({ "activation_fn": class });
    }
    let mut description = LoxiaJson::new(parts.variant, layout);
    description.label = options.label.or(parts.label);
    let encoder = SavedEncoder { network, config, tokenizer: directory.transformer().to_owned() };
    write_cross_encoder(encoder, &description, target, save)
}

/// Writes a dual encoder, as `options` make of it, to `target`.
pub fn save_text_encoder(
    model: &ModelSpec,
    options: &ModelOptions,
    target: &Path,
    save: &SaveOptions,
) -> Result<()> {
    let plan = DualPlan::resolve(model, options)?;
    let query = saved_tower(&plan.query)?;
    let item = if plan.shared() { None } else { Some(saved_tower(&plan.item)?) };
    let both = SavedSides {
        prompts: [plan.query.prompt.clone(), plan.item.prompt.clone()],
        similarity: plan.similarity,
    };
    write_text_encoder(query, item, &both, target, save)
}

/// An encoder ready to be written.
pub(crate) struct SavedEncoder {
    pub(crate) network: Network,
    /// `config.json`, to be brought up to date.
    pub(crate) config: Value,
    /// Directory of the tokenizer's files.
    pub(crate) tokenizer: PathBuf,
}

/// A tower ready to be written.
pub(crate) struct SavedTower {
    pub(crate) encoder: SavedEncoder,
    pub(crate) pooling: Pooling,
    pub(crate) layout: Layout,
    pub(crate) steps: Vec<SavedStep>,
    pub(crate) lower_case: bool,
    pub(crate) include_prompt: bool,
    pub(crate) truncate: Option<usize>,
}

/// What both towers of a dual encoder share.
pub(crate) struct SavedSides {
    /// The prompt of queries and that of items.
    pub(crate) prompts: [String; 2],
    pub(crate) similarity: Similarity,
}

/// A step after pooling, with its weights.
pub(crate) enum SavedStep {
    Dense(HeadLayer),
    Normalize,
}

fn saved_tower(plan: &TowerPlan) -> Result<SavedTower> {
    let network = Network::read(&plan.files.transformer, &plan.config, plan.top())?;
    let layout = bound(&plan.layout, &plan.files.transformer, &plan.config)?;
    let step = |step: &Step| Ok(read_dense(step)?.map_or(SavedStep::Normalize, SavedStep::Dense));
    Ok(SavedTower {
        encoder: SavedEncoder {
            network,
            config: plan.config.value.clone(),
            tokenizer: plan.files.transformer.clone(),
        },
        pooling: plan.pooling,
        layout,
        steps: plan.files.steps.iter().map(step).collect::<Result<_>>()?,
        lower_case: plan.files.lower_case,
        include_prompt: plan.files.include_prompt,
        truncate: plan.truncate,
    })
}

fn bound(layout: &Layout, transformer: &Path, config: &ModelConfig) -> Result<Layout> {
    let tokenizer = Tokenizer::open(transformer)?;
    Ok(layout.bind(&tokenizer, config.usable_positions())?.resolved())
}

pub(crate) fn write_cross_encoder(
    mut encoder: SavedEncoder,
    description: &LoxiaJson,
    target: &Path,
    save: &SaveOptions,
) -> Result<()> {
    let family = encoder.network.architecture.family;
    let labels = encoder.network.top.last().map(|layer| layer.linear.outputs);
    match labels {
        Some(labels) => {
            encoder.config["architectures"] = json!([family.classifier_class()]);
            // transformers takes the number of labels from these two maps.
            let names: Vec<String> = (0..labels).map(|label| format!("LABEL_{label}")).collect();
            if encoder.config["id2label"].as_object().is_none_or(|map| map.len() != labels) {
                let numbers = names.iter().enumerate();
                encoder.config["id2label"] =
                    numbers.clone().map(|(n, name)| (n.to_string(), json!(name))).collect();
                encoder.config["label2id"] = numbers.map(|(n, name)| (name.clone(), json!(n))).collect();
            }
        }
        None => encoder.config["architectures"] = json!([family.encoder_class()]),
    }
    let mut writer = ArtefactWriter::create_marked(target, save.existing, FILE_NAME)?;
    let prefix = if labels.is_some() { family.prefix() } else { "" };
    let layout = description.layout.as_ref().filter(|layout| layout.kind == LayoutKind::Pair);
    let limit = layout.and_then(|layout| layout.max_length);
    write_encoder(&mut writer, "", encoder, prefix, limit, save)?;
    finish(writer, description)
}

pub(crate) fn write_text_encoder(
    query: SavedTower,
    item: Option<SavedTower>,
    both: &SavedSides,
    target: &Path,
    save: &SaveOptions,
) -> Result<()> {
    let mut writer = ArtefactWriter::create_marked(target, save.existing, FILE_NAME)?;
    let Some(item) = item else {
        write_tower(&mut writer, "", query, both, save)?;
        return Ok(writer.commit()?);
    };
    for (name, tower) in [("query/", query), ("item/", item)] {
        create_directory(&writer, name)?;
        write_tower(&mut writer, name, tower, both, save)?;
    }
    let towers = Towers { query: "query".into(), item: "item".into() };
    finish(writer, &LoxiaJson::of_towers(both.similarity, towers))
}

fn finish(mut writer: ArtefactWriter, description: &LoxiaJson) -> Result<()> {
    add_json(&mut writer, FILE_NAME, description)?;
    Ok(writer.commit()?)
}

fn write_tower(
    writer: &mut ArtefactWriter,
    at: &str,
    mut tower: SavedTower,
    both: &SavedSides,
    save: &SaveOptions,
) -> Result<()> {
    let mode = match tower.pooling {
        Pooling::Cls => Some("pooling_mode_cls_token"),
        Pooling::Mean => Some("pooling_mode_mean_tokens"),
        Pooling::Max => Some("pooling_mode_max_tokens"),
        // sentence-transformers has no such pooling: the directory is Hugging Face's, with loxia.json.
        Pooling::Tanh | Pooling::Lse | Pooling::Marker => None,
    };
    if mode.is_none() {
        tower.refuse_modules(both)?;
    }
    let mut description = LoxiaJson::new(Variant::Dual, tower.layout.clone());
    description.pooling = Some(tower.pooling);
    description.similarity = Some(both.similarity);
    add_json(writer, &format!("{at}{FILE_NAME}"), &description)?;
    let encoder = &mut tower.encoder;
    encoder.config["architectures"] = json!([encoder.network.architecture.family.encoder_class()]);
    match mode {
        None => write_encoder(writer, at, tower.encoder, "", tower.layout.max_length, save),
        Some(mode) => write_modules(writer, at, tower, mode, both, save),
    }
}

impl SavedTower {
    /// Refuses what only modules of sentence-transformers could carry.
    fn refuse_modules(&self, both: &SavedSides) -> Result<()> {
        let lost: Vec<&str> = [
            (!self.steps.is_empty(), "the steps after pooling"),
            (both.prompts.iter().any(|prompt| !prompt.is_empty()), "the prompts"),
            (self.lower_case, "do_lower_case"),
            (self.truncate.is_some(), "truncate_dim"),
        ]
        .into_iter()
        .filter_map(|(present, name)| present.then_some(name))
        .collect();
        if lost.is_empty() {
            return Ok(());
        }
        Err(Error::Options(format!(
            "a model with pooling {} cannot be saved with {}, which only sentence-transformers' modules hold; \
             save it with --pooling cls, mean or max, or start from the bare encoder",
            self.pooling,
            lost.join(", ")
        )))
    }
}

/// A tower as a directory of sentence-transformers.
fn write_modules(
    writer: &mut ArtefactWriter,
    at: &str,
    tower: SavedTower,
    mode: &str,
    both: &SavedSides,
    save: &SaveOptions,
) -> Result<()> {
    let SavedTower { encoder, layout, steps, lower_case, include_prompt, truncate, .. } = tower;
    let hidden = encoder.network.architecture.shape.hidden;
    write_encoder(writer, at, encoder, "", layout.max_length, save)?;
    let mut modules = vec![module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling")];
    let mut settings = json!({ "word_embedding_dimension": hidden, "include_prompt": include_prompt });
    for key in ["pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_max_tokens"] {
        settings[key] = json!(key == mode);
    }
    create_directory(writer, &format!("{at}1_Pooling"))?;
    add_json(writer, &format!("{at}1_Pooling/config.json"), &settings)?;
    for step in steps {
        let index = modules.len();
        match step {
            SavedStep::Normalize => {
                // Old releases make no files for it, but expect its directory.
                let name = format!("{index}_Normalize");
                create_directory(writer, &format!("{at}{name}"))?;
                add_json(writer, &format!("{at}{name}/config.json"), &json!({}))?;
                modules.push(module(index, &name, "Normalize"));
            }
            SavedStep::Dense(layer) => {
                let name = format!("{index}_Dense");
                create_directory(writer, &format!("{at}{name}"))?;
                write_dense(writer, &format!("{at}{name}"), &layer, save)?;
                modules.push(module(index, &name, "Dense"));
            }
        }
    }
    add_json(writer, &format!("{at}modules.json"), &modules)?;
    let sentence = json!({ "max_seq_length": layout.max_length, "do_lower_case": lower_case });
    add_json(writer, &format!("{at}sentence_bert_config.json"), &sentence)?;
    let [query_prompt, item_prompt] = &both.prompts;
    let mut general = json!({
        "prompts": { "query": query_prompt, "document": item_prompt },
        "default_prompt_name": null,
        "similarity_fn_name": both.similarity.name(),
    });
    if let Some(width) = truncate {
        general["truncate_dim"] = json!(width);
    }
    add_json(writer, &format!("{at}config_sentence_transformers.json"), &general)
}

fn module(index: usize, path: &str, class: &str) -> Value {
    // Names of the releases up to 5; later ones still know them.
    json!({ "idx": index, "name": index.to_string(), "path": path, "type": format!("sentence_transformers.models.{class}") })
}

fn write_dense(writer: &mut ArtefactWriter, at: &str, layer: &HeadLayer, save: &SaveOptions) -> Result<()> {
    let linear = &layer.linear;
    let class = match layer.activation {
        Activation::Identity => "linear.Identity",
        Activation::Tanh => "activation.Tanh",
        Activation::Relu => "activation.ReLU",
        Activation::GeluErf => "activation.GELU",
        Activation::Silu => "activation.SiLU",
        Activation::Sigmoid => "activation.Sigmoid",
        other => {
            return Err(Error::Options(format!("a Dense module cannot be followed by {}", other.name())));
        }
    };
    let settings = json!({
        "in_features": linear.inputs, "out_features": linear.outputs, "bias": linear.bias.is_some(),
        "activation_function": format!("torch.nn.modules.{class}"),
    });
    add_json(writer, &format!("{at}/config.json"), &settings)?;
    let sides = [linear.outputs, linear.inputs];
    let weight = ("linear.weight", &sides[..], linear.weight.as_slice());
    let bias = linear.bias.as_ref().map(|bias| ("linear.bias", &sides[..1], bias.as_slice()));
    add_weights(writer, &format!("{at}/model.safetensors"), [weight].into_iter().chain(bias), save)
}

/// `config.json`, weights and tokenizer of one encoder.
fn write_encoder(
    writer: &mut ArtefactWriter,
    at: &str,
    mut encoder: SavedEncoder,
    prefix: &str,
    max_length: Option<usize>,
    save: &SaveOptions,
) -> Result<()> {
    if let Some(config) = encoder.config.as_object_mut() {
        set_dtype(config, save);
    }
    add_json(writer, &format!("{at}config.json"), &encoder.config)?;
    let mut owned: Vec<(String, Vec<usize>, Vec<f32>)> = Vec::new();
    encoder.network.walk(prefix, &mut |name, shape, values| {
        owned.push((name.to_owned(), shape.to_vec(), std::mem::take(values)));
    });
    let tensors =
        owned.iter().map(|(name, shape, values)| (name.as_str(), shape.as_slice(), values.as_slice()));
    add_weights(writer, &format!("{at}model.safetensors"), tensors, save)?;
    copy_tokenizer(writer, at, &encoder.tokenizer, max_length)
}

/// Makes `config.json` name the number format the weights are written in.
pub(crate) fn set_dtype(config: &mut Map<String, Value>, save: &SaveOptions) {
    let dtype = json!(if save.weights == StoredWeights::F16 { "float16" } else { "float32" });
    // New releases read the first name, older ones the second.
    config.insert("dtype".into(), dtype.clone());
    config.insert("torch_dtype".into(), dtype);
}

/// Copies the tokenizer's files; its length limit becomes the model's, so that others cut where we cut.
fn copy_tokenizer(
    writer: &mut ArtefactWriter,
    at: &str,
    source: &Path,
    max_length: Option<usize>,
) -> Result<()> {
    let config_path = source.join("tokenizer_config.json");
    let mut config: Map<String, Value> = read_json_if_present(&config_path)?.unwrap_or_default();
    if let Some(length) = max_length {
        config.insert("model_max_length".into(), json!(length));
    }
    add_json(writer, &format!("{at}tokenizer_config.json"), &config)?;
    for name in TOKENIZER_FILES.iter().filter(|name| **name != "tokenizer_config.json") {
        let path = source.join(name);
        if path.is_file() {
            let bytes = fs::read(&path).map_err(|e| Error::io(&path, "read", e))?;
            writer.add_file(&format!("{at}{name}"), |file| file.write_bytes(&bytes))?;
        }
    }
    Ok(())
}

/// Adds a file of weights: names, shapes and values, in their order.
pub(crate) fn add_weights<'a>(
    writer: &mut ArtefactWriter,
    file_name: &str,
    tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a [f32])>,
    save: &SaveOptions,
) -> Result<()> {
    let mut outgoing = Vec::new();
    for (name, shape, values) in tensors {
        let mut add = |name: String, shape: &[usize], values| {
            outgoing.push(Outgoing { name, shape: shape.to_vec(), values });
        };
        match save.weights {
            StoredWeights::F16 => {
                let fits = |value: &f32| half::f16::from_f32(*value).is_finite() || !value.is_finite();
                if !values.iter().all(fits) {
                    return Err(Error::Options(format!("tensor {name} has values beyond f16; save as f32")));
                }
                add(name.to_owned(), shape, Values::F16(values));
            }
            StoredWeights::Int8 if is_layer_map(name, shape) => {
                let (codes, steps) = loxia_nn::quantise_rows(values, shape[1]);
                add(name.to_owned(), shape, Values::I8(codes));
                add(format!("{name}{STEPS}"), &shape[..1], Values::F32(steps.into()));
            }
            StoredWeights::F32 | StoredWeights::Int8 => {
                add(name.to_owned(), shape, Values::F32(values.into()));
            }
        }
    }
    Ok(writer.add_file(file_name, |file| safetensors::write(file, &outgoing).map_err(|e| file.error(e)))?)
}

/// Whether a tensor is one of those that 8-bit products are made with: embeddings, norms and heads are not.
fn is_layer_map(name: &str, shape: &[usize]) -> bool {
    shape.len() == 2 && name.ends_with(".weight") && name.contains("layer.")
}

pub(crate) fn add_json(writer: &mut ArtefactWriter, name: &str, value: &impl serde::Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).expect("plain data serialises");
    text.push('\n');
    Ok(writer.add_file(name, |file| file.write_bytes(text.as_bytes()))?)
}

pub(crate) fn create_directory(writer: &ArtefactWriter, name: &str) -> Result<()> {
    let path = writer.directory().join(name);
    fs::create_dir(&path).map_err(|e| Error::io(path, "create", e))
}
