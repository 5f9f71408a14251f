//! Retrieval with a dual encoder: every item vector, exactly.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use loxia::core::Progress;
use loxia::core::matrix::{EMBEDDINGS_KIND, ScoreMatrix};
use loxia::data::ItemStore;
use loxia::model::{Similarity, TextEncoder};
use loxia::search::linalg::Dense;
use loxia::search::{BlockScan, normalise_rows};

use super::{Task, send};
use crate::context::Context;
use crate::exit::usage;
use crate::ranked_output::RankedOutput;
use crate::report::Summary;

/// Items whose vectors are held at once.
const ITEMS_AT_ONCE: usize = 1024;

/// Embeds queries and items (or reads the items' vectors) and writes the best of each query; says how long that took.
pub(super) fn run(
    task: &Task<'_>,
    encoder: &TextEncoder,
    vectors: Option<&Path>,
    output: &RankedOutput,
    context: &Context,
    summary: &mut Summary,
) -> Result<Duration> {
    let stored = vectors.map(|path| StoredVectors::open(path, task.items, encoder)).transpose()?;
    let bar = context.bar((task.queries.len() + task.items.len()) as u64, "texts");
    let embedded = encoder.encode_queries(&task.queries, &bar, &context.cancel)?;
    let (mut tokens, mut truncated) = (embedded.tokens, embedded.truncated);
    let block = |vectors: Vec<f32>| -> Result<Dense> {
        let mut block = Dense::new(vectors.len() / encoder.dim(), encoder.dim(), vectors)?;
        if encoder.similarity() == Similarity::Cosine {
            normalise_rows(&mut block);
        }
        Ok(block)
    };
    let mut scan = BlockScan::new(block(embedded.vectors)?, task.k);
    for start in (0..task.items.len()).step_by(ITEMS_AT_ONCE) {
        context.cancel.check()?;
        let range = start..(start + ITEMS_AT_ONCE).min(task.items.len());
        let vectors = match &stored {
            Some(stored) => {
                bar.advance(range.len() as u64);
                stored.rows(range)?
            }
            None => {
                let embedded = encoder.encode_items(&task.items.read(range)?, &bar, &context.cancel)?;
                tokens += embedded.tokens;
                truncated += embedded.truncated;
                embedded.vectors
            }
        };
        scan.add(&block(vectors)?)?;
    }
    let (done, took) = bar.finish();
    output.write(|out| {
        let rankings = scan.finish();
        task.queries
            .iter()
            .zip(&rankings)
            .try_for_each(|(query, ranking)| send(query, ranking, task.items, out))
    })?;
    summary
        .fact("model", encoder.info()?.name)
        .fact("similarity", encoder.similarity().name())
        .fact("queries", task.queries.len())
        .fact("items", task.items.len())
        .fact("tokens", tokens)
        .count("truncated texts", truncated)
        .rate("texts", done, took);
    Ok(took)
}

/// Vectors made earlier, checked to be those of these items and this model.
struct StoredVectors(ScoreMatrix);

impl StoredVectors {
    fn open(path: &Path, items: &ItemStore, encoder: &TextEncoder) -> Result<Self> {
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
