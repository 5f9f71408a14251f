//! `loxia retrieve`: the best items of a collection by a first-stage method, as a TREC run.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use loxia::core::matrix::{EMBEDDINGS_KIND, ScoreMatrix};
use loxia::core::{Progress, RunEntry, Scored, TopK};
use loxia::data::{ItemStore, QueryStore};
use loxia::model::{Similarity, TextEncoder};
use rayon::prelude::*;

use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, Positions, shortest};
use crate::ranked_output::{RankedList, RankedOutput};
use crate::report::Summary;

/// Items whose vectors are held at once.
const ITEMS_AT_ONCE: usize = 1024;

/// Retrieve the best items for every query with a first-stage method.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia retrieve --method dual --dual MODEL_DIR --data BEIR_DIR --split test --k 100 --output DUAL.trec
  loxia retrieve --method dual --dual QUERY_DIR,ITEM_DIR --vectors ITEM_VECTORS --data BEIR_DIR --output DUAL.trec")]
pub(crate) struct RetrieveFlags {
    /// How to retrieve: dual = exact scan over a dual encoder's vectors
    #[arg(long, value_enum, default_value = "dual")]
    method: Method,
    /// Dual encoder: a directory, QUERY_DIR,ITEM_DIR, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR", alias = "model")]
    dual: String,
    /// Data set with queries and items
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Queries from another data set or file than the items
    #[arg(long, value_name = "PATH")]
    queries: Option<PathBuf>,
    /// Item vectors from `loxia embed --side item` [default: embedded now]
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
    /// Which queries, by position: A..B (half-open) [default: all]
    #[arg(long, value_name = "A..B")]
    rows: Option<Positions>,
    /// Items for each query
    #[arg(long, short, value_name = "N", default_value_t = 1000)]
    k: usize,
    /// Where to write the run [default: stdout]
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Name of the run, in its last column
    #[arg(long, value_name = "NAME", default_value = "loxia-dual")]
    tag: String,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// First-stage methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Exact scan over a dual encoder's vectors
    Dual,
}

/// Runs the command.
pub(crate) fn run(flags: RetrieveFlags, context: &Context) -> Result<Outcome> {
    let Method::Dual = flags.method;
    if flags.k == 0 {
        return usage("--k must be at least 1");
    }
    let output = RankedOutput::new(&flags.output, flags.overwrite, &flags.tag, context)?;
    let data = flags.data_flags.open(&flags.data)?;
    let query_data = flags.queries.as_ref().map(|path| flags.data_flags.open_queries(path)).transpose()?;
    let queries = match &query_data {
        Some(query_data) => query_data.queries()?,
        None => DataFlags::queries_beside_items(&data).context("give them with --queries")?,
    };
    let items = data.items()?;
    let rows = match &flags.rows {
        Some(range) => range.within(queries.len(), "queries")?,
        None => 0..queries.len(),
    };
    if rows.is_empty() || items.is_empty() {
        return usage(format!("nothing to retrieve: {} queries, {} items", rows.len(), items.len()));
    }
    let encoder = flags.model_flags.text_encoder(&flags.dual, context)?;
    let stored = match &flags.vectors {
        Some(path) => Some(StoredVectors::open(path, items, &encoder)?),
        None => None,
    };
    let mut summary = Summary::default();
    let queries_read = read_queries(queries, rows, &mut summary)?;
    let bar = context.bar((queries_read.len() + items.len()) as u64, "texts");
    let embedded = encoder.encode_queries(&queries_read, &bar, &context.cancel)?;
    let (mut tokens, mut truncated) = (embedded.tokens, embedded.truncated);
    let mut query_vectors = embedded.vectors;
    let cosine = encoder.similarity() == Similarity::Cosine;
    if cosine {
        normalise(&mut query_vectors, encoder.dim());
    }
    let mut best: Vec<TopK> = queries_read.iter().map(|_| TopK::new(flags.k)).collect();
    for start in (0..items.len()).step_by(ITEMS_AT_ONCE) {
        context.cancel.check()?;
        let range = start..(start + ITEMS_AT_ONCE).min(items.len());
        let mut vectors = match &stored {
            Some(stored) => {
                bar.advance(range.len() as u64);
                stored.rows(range)?
            }
            None => {
                let embedded = encoder.encode_items(&items.read(range)?, &bar, &context.cancel)?;
                tokens += embedded.tokens;
                truncated += embedded.truncated;
                embedded.vectors
            }
        };
        if cosine {
            normalise(&mut vectors, encoder.dim());
        }
        best.par_iter_mut().zip(query_vectors.par_chunks(encoder.dim())).for_each(|(top, query)| {
            for (offset, item) in vectors.chunks(encoder.dim()).enumerate() {
                top.push((start + offset) as u32, dot(query, item));
            }
        });
    }
    let (done, took) = bar.finish();
    output.write(|out| {
        for (query, top) in queries_read.iter().zip(best) {
            let ranking = top.into_ranking();
            let entry = |scored: &Scored| RunEntry {
                item: items.ids().get(scored.item).into(),
                score: shortest(scored.score),
            };
            let entries: Vec<RunEntry> = ranking.as_slice().iter().map(entry).collect();
            let item = |place: usize| Ok(items.get(ranking.as_slice()[place].item)?);
            out(&RankedList { query, entries: &entries, item: &item })?;
        }
        Ok(())
    })?;
    summary
        .fact("model", encoder.info()?.name)
        .fact("similarity", encoder.similarity().name())
        .fact("queries", queries_read.len())
        .fact("items", items.len())
        .fact("tokens", tokens)
        .count("truncated texts", truncated)
        .rate("texts", done, took)
        .fact("output", flags.output.display().to_string())
        .print(context, output.is_stdout())?;
    Ok(summary.outcome())
}

fn read_queries(
    queries: &QueryStore,
    rows: std::ops::Range<usize>,
    summary: &mut Summary,
) -> Result<Vec<loxia::core::Query>> {
    let mut read = queries.read(rows)?;
    read.retain(|query| {
        let blank = query.text.is_blank();
        if blank {
            summary.skip(format!("query {:?}: its text is empty", query.id));
        }
        !blank
    });
    Ok(read)
}

/// Vectors made earlier, checked to be those of these items and this model.
struct StoredVectors(ScoreMatrix);

impl StoredVectors {
    fn open(path: &std::path::Path, items: &ItemStore, encoder: &TextEncoder) -> Result<Self> {
        let vectors = ScoreMatrix::open_kind(path, EMBEDDINGS_KIND)?;
        if let Some(manifest) = vectors.manifest() {
            manifest.check_digest(path, "model", &encoder.info()?.digest)?;
            manifest.check_digest(path, "side", "items")?;
            manifest.check_digest(path, "texts", items.digest())?;
        }
        if vectors.rows() != items.len() {
            return usage(format!(
                "{} holds {} vectors, the data set {} items; embed all of them",
                path.display(),
                vectors.rows(),
                items.len()
            ));
        }
        Ok(StoredVectors(vectors))
    }

    fn rows(&self, range: std::ops::Range<usize>) -> Result<Vec<f32>> {
        let mut block = Vec::with_capacity(range.len() * self.0.cols());
        for row in range {
            block.extend(self.0.row(row)?.iter().map(|(_, value)| value));
        }
        Ok(block)
    }
}

/// Eight sums side by side, one order whatever the machine: the same bits everywhere.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (left_blocks, left_rest) = left.as_chunks::<8>();
    let (right_blocks, right_rest) = right.as_chunks::<8>();
    for (a, b) in left_blocks.iter().zip(right_blocks) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

fn normalise(vectors: &mut [f32], dim: usize) {
    for vector in vectors.chunks_mut(dim) {
        let length = dot(vector, vector).sqrt().max(1e-12);
        vector.iter_mut().for_each(|value| *value /= length);
    }
}
