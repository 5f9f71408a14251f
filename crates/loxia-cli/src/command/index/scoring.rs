//! Anchors x items into a matrix that survives a crash.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use loxia::core::artefact::{Existing, Manifest};
use loxia::core::matrix::{MatrixSpec, MatrixWriter, ScoreMatrix, TileShape};
use loxia::core::{Error, PairScorer};
use loxia::data::QueryStore;
use loxia::model::{CrossEncoder, Precision};
use loxia::nn::operations_done;
use loxia::search::Index;
use loxia::search::linalg::Dense;

use super::forecast::Forecast;
use super::items::OrderedItems;
use crate::command::bench::tell_speed;
use crate::command::score::fill;
use crate::context::Context;
use crate::flags::OutputFlags;
use crate::matrix_source::read_scores;
use crate::matrix_target::{MatrixTarget, beside, command_line};
use crate::report::{Summary, duration, three_digits};

/// Under this name scores keep the digest of the items of a build.
const ITEMS_DIGEST: &str = "items";

/// Where the anchor scores of an index are kept.
pub(crate) fn anchors_path(index: &Path) -> PathBuf {
    beside(index, ".anchors")
}

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

/// The anchor scores beside an index, of its items in their order; fewer where items were added without keeping
/// theirs, `None` where there are none.
pub(crate) fn kept_scores(index: &Index, path: &Path, context: &Context) -> Result<Option<Dense>> {
    let path = anchors_path(path);
    if !path.is_dir() {
        return Ok(None);
    }
    let matrix = ScoreMatrix::open(&path)?;
    check_origin(index, &path, &matrix)?;
    let ids = index.item_ids();
    if let Some((found, expected)) = matrix.col_ids().iter().zip(ids.iter()).find(|(col, item)| col != item) {
        return Err(Error::Mismatch {
            path,
            field: "item list".into(),
            found: format!("one with {found:?}"),
            expected: format!("that of the index, with {expected:?} there"),
            advice: "remove it, or build the index again".into(),
        }
        .into());
    }
    let scores = read_scores(&path, context)?;
    // An addition that was killed has written them for the items that it did not come to write.
    let surplus = scores.cols() > ids.len();
    Ok(Some(if surplus { scores.select_cols(&(0..ids.len()).collect::<Vec<_>>()) } else { scores }))
}

/// Refuses anchor scores of another model or of other anchors than those of the index.
fn check_origin(index: &Index, path: &Path, matrix: &ScoreMatrix) -> Result<()> {
    let said = |manifest: Option<&Manifest>, name: &str| manifest.and_then(|m| m.digests.get(name)).cloned();
    for name in ["model", "queries"] {
        let (found, expected) = (said(matrix.manifest(), name), said(index.manifest(), name));
        if found.is_some() && found != expected {
            return Err(Error::Mismatch {
                path: path.to_owned(),
                field: format!("digest of {name}"),
                found: found.unwrap_or_default(),
                expected: expected.unwrap_or_else(|| "none: the index was built from stored scores".into()),
                advice: "these anchor scores are not those of the index beside them: remove them, or build the index \
                         again"
                    .into(),
            }
            .into());
        }
    }
    Ok(())
}

/// Whether scores were made by `index build`, finished or not, and not grown by `index add`.
pub(super) fn are_of_a_build(scores: &Path) -> bool {
    Manifest::read_any(scores).is_ok_and(|manifest| manifest.digests.contains_key(ITEMS_DIGEST))
}

/// Writes the anchor scores of an index that grows: `old` and, to the right of them, `new`.
pub(super) fn keep_grown(
    path: &Path,
    spec: &MatrixSpec<'_>,
    old: &Dense,
    new: &Dense,
    context: &Context,
) -> Result<()> {
    let before = old.cols();
    let mut writer = MatrixWriter::create(path, spec, Existing::Overwrite)?;
    let grid = *writer.grid();
    let mut cells = Vec::new();
    for tile in 0..grid.tiles() {
        context.cancel.check()?;
        cells.clear();
        let cols = grid.cols_of(tile);
        for row in grid.rows_of(tile) {
            cells.extend_from_slice(&old.row(row)[cols.start.min(before)..cols.end.min(before)]);
            cells.extend_from_slice(
                &new.row(row)[cols.start.max(before) - before..cols.end.max(before) - before],
            );
        }
        writer.write_tile(tile, &cells)?;
    }
    writer.finish()?;
    Ok(())
}
