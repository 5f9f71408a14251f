//! What a model is, without computing anything.

use std::path::Path;

use serde::Serialize;

use crate::cross_encoder::CrossEncoderParts;
use crate::directory::ModelDirectory;
use crate::dual_plan::{DualPlan, TowerPlan};
use crate::error::Result;
use crate::families::{Family, ModelConfig};
use crate::layout::Layout;
use crate::network::Network;
use crate::options::{ModelOptions, Pooling, Similarity, Variant};
use crate::spec::ModelSpec;
use crate::tokenizer::Tokenizer;
use crate::weights::Dtype;

/// What [`inspect`] tells about a model.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ModelSummary {
    /// What is built on the encoder.
    pub variant: Variant,
    /// Why that and nothing else.
    pub because: String,
    /// The encoder, or the queries' of two.
    pub encoder: EncoderSummary,
    /// The items' encoder, where it is another.
    pub item_encoder: Option<EncoderSummary>,
    /// Number of labels of a classification head.
    pub labels: Option<usize>,
    /// What sentence-transformers would apply to a cross-encoder's score.
    pub default_activation: Option<&'static str>,
    /// How vectors are compared.
    pub similarity: Option<Similarity>,
    /// Text put before every item, by a dual encoder; `encoder.prompt` is that of queries.
    pub item_prompt: Option<String>,
}

/// One encoder of a model.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct EncoderSummary {
    /// Its family.
    pub family: Family,
    /// Number of layers.
    pub layers: usize,
    /// Width of a state.
    pub hidden: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Rows of the word table.
    pub vocabulary: usize,
    /// Longest sequence the position table can hold.
    pub positions: usize,
    /// Number of weights, head included.
    pub parameters: usize,
    /// Number formats of the tensors that are read.
    pub dtypes: Vec<Dtype>,
    /// The layout with every limit written out.
    pub layout: Layout,
    /// Tokens the tokenizer knows.
    pub tokens: usize,
    /// How states become a vector.
    pub pooling: Option<Pooling>,
    /// Steps after pooling.
    pub steps: Vec<String>,
    /// Text put before every input.
    pub prompt: String,
    /// Tensors in the files that nothing reads.
    pub unread: Vec<String>,
    /// Classes in a checkpoint that were not resolved.
    pub opaque: Vec<String>,
}

impl EncoderSummary {
    /// What decides how much it computes.
    pub fn sizes(&self) -> loxia_nn::Sizes {
        let &EncoderSummary { layers, heads, hidden, intermediate, .. } = self;
        loxia_nn::Sizes { layers, heads, hidden, intermediate }
    }

    /// Whether its files keep layers in 8 bits.
    pub fn is_quantised(&self) -> bool {
        holds_codes(&self.dtypes)
    }
}

/// Whether tensors of these types are weights in 8 bits, which f32 is restored from.
pub(crate) fn holds_codes(dtypes: &[Dtype]) -> bool {
    dtypes.contains(&Dtype::I8) || dtypes.contains(&Dtype::U8)
}

/// Reads a model's description; names and shapes of all tensors are checked, their numbers are not read.
pub fn inspect(spec: &ModelSpec, options: &ModelOptions) -> Result<ModelSummary> {
    if let Some(directory) = single_directory(spec)? {
        let config = directory.config()?;
        if directory.decide(Some(&config), options)?.variant != Variant::Dual {
            return inspect_cross_encoder(&directory, options);
        }
    }
    let plan = DualPlan::resolve(spec, options)?;
    Ok(ModelSummary {
        variant: Variant::Dual,
        because: plan.because.clone(),
        encoder: inspect_tower(&plan.query)?,
        item_encoder: if plan.shared() { None } else { Some(inspect_tower(&plan.item)?) },
        labels: None,
        default_activation: None,
        similarity: Some(plan.similarity),
        item_prompt: Some(plan.item.prompt.clone()),
    })
}

/// The directory of a model that may be a cross-encoder.
pub(crate) fn single_directory(spec: &ModelSpec) -> Result<Option<ModelDirectory>> {
    if matches!(spec, ModelSpec::Towers(..)) {
        return Ok(None);
    }
    let directory = ModelDirectory::read(&spec.directory()?)?;
    Ok(if directory.towers().is_some() { None } else { Some(directory) })
}

fn inspect_cross_encoder(directory: &ModelDirectory, options: &ModelOptions) -> Result<ModelSummary> {
    let parts = CrossEncoderParts::resolve(directory, options)?;
    let network = Network::check(directory.transformer(), &parts.config, parts.top)?;
    let labels = network.top.last().map(|layer| layer.linear.outputs);
    Ok(ModelSummary {
        variant: parts.variant,
        because: parts.because.clone(),
        labels,
        default_activation: parts.default_activation(labels.unwrap_or(0)).map(|activation| activation.name()),
        similarity: None,
        item_prompt: None,
        encoder: summarise(network, &parts.config, &parts.layout, directory.transformer())?,
        item_encoder: None,
    })
}

fn inspect_tower(plan: &TowerPlan) -> Result<EncoderSummary> {
    let network = Network::check(&plan.files.transformer, &plan.config, plan.top())?;
    let summary = summarise(network, &plan.config, &plan.layout, &plan.files.transformer)?;
    Ok(EncoderSummary {
        pooling: Some(plan.pooling),
        steps: plan.step_names(),
        prompt: plan.prompt.clone(),
        ..summary
    })
}

fn summarise(
    mut network: Network,
    config: &ModelConfig,
    layout: &Layout,
    directory: &Path,
) -> Result<EncoderSummary> {
    let tokenizer = Tokenizer::open(directory)?;
    let shape = network.architecture.shape.clone();
    Ok(EncoderSummary {
        family: network.architecture.family,
        layers: shape.layers,
        hidden: shape.hidden,
        heads: shape.heads,
        intermediate: shape.intermediate,
        vocabulary: shape.vocab,
        positions: config.usable_positions(),
        parameters: network.parameters(),
        dtypes: network.dtypes,
        layout: layout.bind(&tokenizer, config.usable_positions())?.resolved(),
        tokens: tokenizer.vocabulary_size(),
        pooling: None,
        steps: Vec::new(),
        prompt: String::new(),
        unread: network.unread,
        opaque: network.opaque,
    })
}
