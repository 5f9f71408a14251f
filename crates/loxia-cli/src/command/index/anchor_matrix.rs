//! The anchor scores beside an index: whose they are, whether they are sound, and how they grow.
//!
//! `INDEX.anchors` is written before `INDEX`, so that a crash between the two leaves scores that are ahead of the index,
//! never the other way round. Which of them belong together is told by digests: of the model, of the anchors, and
//! of the texts of the items, `items` for those of a build, `items A..B` for each part once some were added.

use std::path::{Path, PathBuf};

use anyhow::Result;
use loxia::core::artefact::{Existing, Manifest};
use loxia::core::matrix::{MatrixSpec, MatrixWriter, ScoreMatrix};
use loxia::core::{Error, IdTable};
use loxia::search::Index;
use loxia::search::linalg::Dense;

use super::items::DATA_DIGEST;
use super::opening::or_lost;
use crate::context::Context;
use crate::matrix_source::read_scores;
use crate::matrix_target::beside;

/// Under this name scores keep the digest of the items of a build.
pub(super) const ITEMS_DIGEST: &str = "items";

/// Where the anchor scores of an index are kept.
pub(crate) fn anchors_path(index: &Path) -> PathBuf {
    beside(index, ".anchors")
}

/// Where they are while they are written.
pub(super) fn unfinished(anchors: &Path) -> PathBuf {
    beside(anchors, ".partial")
}

/// The anchor scores beside an index, of its items in their order; fewer where items were added without keeping
/// theirs, `None` where there are none.
pub(crate) fn kept_scores(index: &Index, path: &Path, context: &Context) -> Result<Option<Dense>> {
    if open_beside(index, path)?.is_none() {
        return Ok(None);
    }
    let scores = read_scores(&anchors_path(path), context)?;
    // An addition that was killed has written them for the items that it did not come to write.
    let items = index.item_ids().len();
    let surplus = scores.cols() > items;
    Ok(Some(if surplus { scores.select_cols(&(0..items).collect::<Vec<_>>()) } else { scores }))
}

/// Compares the anchor scores beside an index with it and with their checksums; of how many of its items there are
/// any.
pub(super) fn check_kept_scores(index: &Index, path: &Path) -> Result<Option<usize>> {
    let Some(matrix) = open_beside(index, path)? else { return Ok(None) };
    or_lost(matrix.verify(), &anchors_path(path))?;
    Ok(Some(matrix.col_ids().len().min(index.item_ids().len())))
}

/// Opens the anchor scores beside an index, if they are there and its own.
fn open_beside(index: &Index, path: &Path) -> Result<Option<ScoreMatrix>> {
    let path = anchors_path(path);
    if !path.is_dir() {
        return Ok(None);
    }
    let matrix = or_lost(ScoreMatrix::open(&path), &path)?;
    check_origin(index, &path, matrix.manifest())?;
    check_order(&path, matrix.col_ids(), index.item_ids())?;
    Ok(Some(matrix))
}

/// Refuses anchor scores of another model, of other anchors or of other texts than those of the index.
fn check_origin(index: &Index, path: &Path, scores: Option<&Manifest>) -> Result<()> {
    let index_has = |name: &str| index.manifest().and_then(|manifest| manifest.digests.get(name)).cloned();
    for (name, found) in scores.iter().flat_map(|manifest| &manifest.digests) {
        let part = name.strip_prefix(ITEMS_DIGEST);
        let counterpart = match part {
            Some(range) if range.is_empty() || range.starts_with(" 0..") => DATA_DIGEST.to_owned(),
            Some(range) => format!("{DATA_DIGEST}{range}"),
            None if name == "model" || name == "queries" => name.clone(),
            None => continue,
        };
        let expected = index_has(&counterpart);
        // Scores may be ahead of the index by a part that an addition did not come to write.
        let ahead = expected.is_none() && counterpart.contains("..");
        if !ahead && expected.as_ref() != Some(found) {
            return Err(Error::Mismatch {
                path: path.to_owned(),
                field: format!("digest of {name}"),
                found: found.clone(),
                expected: expected.unwrap_or_else(|| "none: the index was built from stored scores".into()),
                advice: "these anchor scores are not those of the index beside them: where they are of a build that \
                         did not come to its end, finish it with `index build --resume`; else remove them, or build \
                         the index again"
                    .into(),
            }
            .into());
        }
    }
    Ok(())
}

fn check_order(path: &Path, scores: &IdTable, index: &IdTable) -> Result<()> {
    match scores.iter().zip(index.iter()).find(|(col, item)| col != item) {
        None => Ok(()),
        Some((found, expected)) => Err(Error::Mismatch {
            path: path.to_owned(),
            field: "item list".into(),
            found: format!("one with {found:?}"),
            expected: format!("that of the index, with {expected:?} there"),
            advice: "remove it, or build the index again".into(),
        }
        .into()),
    }
}

/// Whether scores were made by `index build`, finished or not, and not grown by `index add`.
pub(super) fn are_of_a_build(scores: &Path) -> bool {
    Manifest::read_any(scores).is_ok_and(|manifest| manifest.digests.contains_key(ITEMS_DIGEST))
}

/// Whether a build that was to replace an index got as far as its anchor scores: they are unfinished, or they are of
/// what is asked for (`digests`, by the names of the scores) while the index is not.
pub(super) fn is_being_replaced(index: &Path, is_asked_for: bool, digests: &[(&str, &str)]) -> bool {
    let anchors = anchors_path(index);
    if are_of_a_build(&unfinished(&anchors)) {
        return true;
    }
    let of_asked = |manifest: Manifest| {
        digests.iter().all(|&(name, digest)| manifest.digests.get(name).is_some_and(|found| found == digest))
    };
    !is_asked_for && Manifest::read_any(&anchors).is_ok_and(of_asked)
}

/// The digests of scores of `before` items, by parts, so that others can join them.
pub(super) fn digests_by_part(scores: &Path, before: usize) -> Result<Vec<(String, String)>> {
    let known = Manifest::read_any(scores)?.digests.into_iter();
    let named = known.filter_map(|(name, digest)| {
        let range = name.strip_prefix(ITEMS_DIGEST)?;
        if range.is_empty() {
            return Some((part_name(0..before), digest));
        }
        let end: usize = range.rsplit_once("..")?.1.parse().ok()?;
        (end <= before).then_some((name, digest))
    });
    Ok(named.collect())
}

/// The name of the digest of some items.
pub(super) fn part_name(range: std::ops::Range<usize>) -> String {
    format!("{ITEMS_DIGEST} {}..{}", range.start, range.end)
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
