//! A model under measurement: an encoder of texts or a cross-encoder, with its tokenizer at hand.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use loxia::core::{NoProgress, PairScorer};
use loxia::model::layout::BoundLayout;
use loxia::model::tokenizer::Tokenizer;
use loxia::model::{
    CrossEncoder, EncoderSummary, ModelOptions, ModelSpec, Pooling, TextEncoder, Variant, inspect,
};
use loxia::nn::operations;

use super::workload::Workload;
use crate::context::Context;

/// An opened model.
pub(super) struct Subject {
    network: Network,
    layout: BoundLayout,
    shape: EncoderSummary,
}

enum Network {
    Texts(TextEncoder),
    Pairs(CrossEncoder),
}

/// What a run gave.
pub(super) struct Output {
    /// Tokens that went through the encoder.
    pub(super) tokens: u64,
    /// Vectors one after the other, or scores; none for a run file.
    pub(super) values: Vec<f32>,
}

impl Subject {
    /// Opens a model directory.
    pub(super) fn open(model: &ModelSpec, options: &ModelOptions) -> Result<Self> {
        let ModelSpec::Directory(directory) = model else {
            bail!("bench takes the directory of one model");
        };
        let summary = inspect(model, options)?;
        let (network, layout) = if summary.variant == Variant::Dual {
            let encoder = TextEncoder::open(model, options)?;
            let layout =
                encoder.facts().item.layout.bind(&tokenizer(directory)?, summary.encoder.positions)?;
            (Network::Texts(encoder), layout)
        } else {
            let encoder = CrossEncoder::open(model, options)?;
            let layout = encoder.layout().clone();
            (Network::Pairs(encoder), layout)
        };
        Ok(Subject { network, layout, shape: summary.encoder })
    }

    /// Kernel, precision and threads, for people.
    pub(super) fn engine(&self) -> &str {
        match &self.network {
            Network::Texts(encoder) => &encoder.facts().item.engine,
            Network::Pairs(encoder) => &encoder.facts().engine,
        }
    }

    /// Most bytes that it took for intermediate results.
    pub(super) fn most_scratch_bytes(&self) -> usize {
        match &self.network {
            Network::Texts(encoder) => encoder.most_scratch_bytes(),
            Network::Pairs(encoder) => encoder.most_scratch_bytes(),
        }
    }

    /// Whether it reads pairs of texts.
    pub(super) fn scores_pairs(&self) -> bool {
        matches!(self.network, Network::Pairs(_))
    }

    /// Whether its scores are read at the marks of a mention and a title.
    pub(super) fn needs_marks(&self) -> bool {
        match &self.network {
            Network::Texts(_) => self.shape.pooling == Some(Pooling::Marker),
            Network::Pairs(encoder) => encoder.facts().variant == Variant::Emb,
        }
    }

    /// How its texts become tokens.
    pub(super) fn layout(&self) -> &BoundLayout {
        &self.layout
    }

    /// Sizes of the encoder.
    pub(super) fn shape(&self) -> &EncoderSummary {
        &self.shape
    }

    /// Computes a workload.
    pub(super) fn run(&self, workload: &Workload, context: &Context) -> Result<Output> {
        match (&self.network, workload) {
            (Network::Texts(encoder), Workload::Texts(items)) => {
                let out = encoder.encode_items(items, &NoProgress, &context.cancel)?;
                Ok(Output { tokens: out.tokens, values: out.vectors })
            }
            (Network::Pairs(encoder), Workload::Pairs { queries, items, pairs }) => {
                let mut values = vec![0.0; pairs.len()];
                let cost = encoder.score(queries, items, pairs, &mut values, &NoProgress, &context.cancel)?;
                Ok(Output { tokens: cost.tokens, values })
            }
            (Network::Texts(encoder), Workload::Tokens(sequences)) => {
                let out = encoder.encode_item_tokens(sequences, &NoProgress, &context.cancel)?;
                Ok(Output { tokens: out.tokens, values: out.vectors })
            }
            (Network::Pairs(encoder), Workload::Tokens(sequences)) => {
                let mut values = vec![0.0; sequences.len()];
                let cost = encoder.score_tokens(sequences, &mut values, &NoProgress, &context.cancel)?;
                Ok(Output { tokens: cost.tokens, values })
            }
            (Network::Pairs(encoder), Workload::RunFile { run, output }) => {
                let cost = crate::command::rerank::rerank_file(run, output, encoder, context)?;
                Ok(Output { tokens: cost.tokens, values: Vec::new() })
            }
            (Network::Texts(_), _) => bail!("an encoder of texts cannot compute pairs"),
            (Network::Pairs(_), Workload::Texts(_)) => bail!("a cross-encoder cannot compute single texts"),
        }
    }

    /// Operations that sequences of these lengths take.
    pub(super) fn operations(&self, lengths: &[usize]) -> f64 {
        let of = |&length: &usize| operations(self.shape.sizes(), length, self.rows_read(length));
        lengths.iter().map(of).sum()
    }

    /// Rows of the last layer that the head reads of a sequence.
    fn rows_read(&self, length: usize) -> usize {
        let rows = match &self.network {
            Network::Pairs(encoder) if encoder.facts().variant == Variant::Emb => 3,
            Network::Pairs(_) => 1,
            Network::Texts(encoder) => match encoder.facts().item.pooling {
                Pooling::Cls | Pooling::Tanh | Pooling::Marker => 1,
                _ => length,
            },
        };
        rows.min(length)
    }
}

/// The tokenizer of a model directory, which old sentence-transformers models keep one level down.
fn tokenizer(directory: &Path) -> Result<Tokenizer> {
    let below = directory.join("0_Transformer");
    let directory = if below.is_dir() { &below } else { directory };
    Tokenizer::open(directory).with_context(|| format!("{}: no tokenizer", directory.display()))
}
