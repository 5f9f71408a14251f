//! Anchors x items into a matrix that survives a crash.

use std::path::Path;

use anyhow::{Context as _, Result};
use loxia::core::matrix::{MatrixSpec, TileShape};
use loxia::core::{Error, PairScorer};
use loxia::data::QueryStore;
use loxia::model::{CrossEncoder, Precision};
use loxia::nn::operations_done;
use loxia::search::linalg::Dense;

use super::anchor_matrix::ITEMS_DIGEST;
use super::forecast::Forecast;
use super::items::OrderedItems;
use crate::command::bench::tell_speed;
use crate::command::score::fill;
use crate::context::Context;
use crate::flags::OutputFlags;
use crate::matrix_source::read_scores;
use crate::matrix_target::{MatrixTarget, command_line};
use crate::report::{Summary, duration, three_digits};

/// How anchor scores are filled in.
pub(super) struct AnchorScoring<'a> {
    pub(super) path: &'a Path,
    pub(super) overwrite: bool,
    pub(super) resume: bool,
    pub(super) tile_pairs: Option<u32>,
    pub(super) forecast: &'a Forecast,
    pub(super) precision: Option<Precision>,
}

/// Scores anchors x items into a matrix that survives a crash, and reads it.
pub(super) fn anchor_scores(
    work: &AnchorScoring<'_>,
    scorer: &CrossEncoder,
    anchors: &QueryStore,
    items: &OrderedItems<'_>,
    items_digest: &str,
    context: &Context,
    summary: &mut Summary,
) -> Result<Dense> {
    if work.path.exists() && !work.resume && !work.overwrite {
        return Err(Error::Exists { path: work.path.to_owned(), resumable: true }.into());
    }
    let output = OutputFlags { output: work.path.to_owned(), overwrite: work.overwrite };
    let target = MatrixTarget::new(&output, work.resume, false)?;
    let item_ids = items.ids()?;
    let mut spec = MatrixSpec::dense(anchors.ids(), &item_ids)
        .digest("model", scorer.info().digest)
        .digest("queries", anchors.digest())
        .digest(ITEMS_DIGEST, items_digest)
        .command(command_line());
    if let Some(pairs) = work.tile_pairs {
        let shape = TileShape::of_cells(anchors.len(), items.len(), pairs as usize);
        spec = spec.tile(shape);
    }
    if let Some(writer) = target.writer(&spec)? {
        let grid = *writer.grid();
        let missing = writer.missing_tiles().map(|tile| grid.cells_of(tile) as u64).sum();
        context.say(format_args!("to score: {}", work.forecast.sentence(missing)));
        let before = operations_done();
        let read = |cols| Ok(items.read(cols)?);
        let read_rows = |rows| Ok(anchors.read(rows)?);
        let (done, took) = fill(writer, scorer, &read_rows, &read, context, summary)
            .with_context(|| format!("{} is unfinished; --resume goes on with it", target.shown()))?;
        let rate = three_digits(done as f64 / took.as_secs_f64().max(1e-9));
        summary.fact_as("score", format!("{} ({rate} pairs/s)", duration(took)), took.as_secs_f64());
        tell_speed(summary, work.precision, scorer.most_scratch_bytes(), took, before);
    } else {
        summary.fact_as("score", "scored before", 0.0);
    }
    read_scores(work.path, context)
}
