//! Anchor rows from scores that are there already: a matrix directory, or an npy file.

use std::path::Path;

use anyhow::{Context as _, Result};
use loxia::core::matrix::ScoreMatrix;
use loxia::core::{Error, IdTable, Query};
use loxia::data::{DataSet, QueryStore};

use super::anchor_choice::AnchorChoice;
use super::build::AnchorRows;
use super::items::{DATA_DIGEST, OrderedItems};
use crate::context::Context;
use crate::exit::usage;
use crate::matrix_source::read_scores;
use crate::report::grouped;

/// Reads anchor rows; texts of items and anchors come from `data` and `queries` where they are given.
pub(super) fn read<'a>(
    path: &Path,
    choice: Option<&AnchorChoice>,
    seed: loxia::core::Seed,
    data: Option<&'a DataSet>,
    queries: Option<&QueryStore>,
    context: &Context,
) -> Result<AnchorRows<'a>> {
    let matrix = if path.is_dir() { Some(ScoreMatrix::open(path)?) } else { None };
    let all = read_scores(path, context)?;
    if all.cols() == 0 {
        return usage(format!("{}: no items, so there is nothing to index", path.display()));
    }
    let chosen = match choice {
        Some(choice) => choice.positions(all.rows(), "rows", seed)?,
        None if all.rows() == 0 => {
            return usage(format!("{}: no rows; an index needs anchors", path.display()));
        }
        None => (0..all.rows()).collect(),
    };
    let manifest = matrix.as_ref().and_then(ScoreMatrix::manifest);
    let items = data.map(|data| items_of(path, matrix.as_ref(), all.cols(), data)).transpose()?;
    let item_ids = match (&matrix, &items) {
        (Some(matrix), _) => matrix.col_ids().clone(),
        (None, Some(items)) => items.ids()?,
        (None, None) => {
            context.say(format_args!(
                "{}: items have no ids in an npy file and are called by their columns; --data names them",
                path.display()
            ));
            numbered(all.cols())?
        }
    };
    let anchors = match queries {
        Some(queries) => anchor_texts(path, matrix.as_ref(), all.rows(), &chosen, queries, context)?,
        None => None,
    };
    let mut digests = Vec::new();
    let known = |name: &str| manifest.and_then(|manifest| manifest.digests.get(name)).cloned();
    digests.extend(known("model").map(|digest| ("model", digest)));
    let data_digest = match data {
        Some(data) => Some(data.items()?.digest().to_owned()),
        None => known("items"),
    };
    digests.extend(data_digest.map(|digest| (DATA_DIGEST, digest)));
    digests.extend(known("queries").map(|digest| ("queries", digest)));
    let (scores, of_rows) = (all.select_rows(&chosen), all.rows());
    Ok(AnchorRows { scores, anchors, items, item_ids, chosen, of_rows, digests, replaces_index: false })
}

/// The texts of the columns: by id for a matrix, by position for an npy file.
fn items_of<'a>(
    path: &Path,
    matrix: Option<&ScoreMatrix>,
    cols: usize,
    data: &'a DataSet,
) -> Result<OrderedItems<'a>> {
    let store = data.items()?;
    let Some(matrix) = matrix else {
        if store.len() != cols {
            return usage(format!(
                "{}: {cols} columns, but {} holds {} items; column i must be the i-th of them",
                path.display(),
                data.path().display(),
                store.len()
            ));
        }
        return Ok(OrderedItems::whole(store));
    };
    if let Some(manifest) = matrix.manifest().filter(|manifest| manifest.digests.contains_key("items")) {
        manifest.check_digest(path, "items", store.digest())?;
    }
    let found = OrderedItems::by_ids(vec![store], matrix.col_ids());
    Ok(found.map_err(|id| Error::Mismatch {
        path: path.to_owned(),
        field: "item list".into(),
        found: format!("{cols} items with {id:?} among them"),
        expected: format!("items of {}, which has none of that name", data.path().display()),
        advice: "give the data that was scored".into(),
    })?)
}

/// The texts of the chosen rows.
fn anchor_texts(
    path: &Path,
    matrix: Option<&ScoreMatrix>,
    rows: usize,
    chosen: &[usize],
    queries: &QueryStore,
    context: &Context,
) -> Result<Option<Vec<Query>>> {
    if matrix.is_none() && queries.len() < rows {
        return usage(format!(
            "{}: {rows} rows, but there are {} queries; row i must be the i-th of them",
            path.display(),
            queries.len()
        ));
    }
    if matrix.is_none() && queries.len() > rows {
        let (all, extra) = (grouped(queries.len() as u64), grouped((queries.len() - rows) as u64));
        let rows = grouped(rows as u64);
        context.say(format_args!(
            "{}: {rows} rows are taken for the first of {all} queries; the last {extra} are not used",
            path.display()
        ));
    }
    let text = |&row: &usize| -> Result<Query> {
        let position = match matrix {
            None => row as u32,
            Some(matrix) => {
                let id = matrix.row_ids().get(row as u32);
                queries.position(id).with_context(|| {
                    format!("{}: row {row} is query {id:?}, which the data set does not have", path.display())
                })?
            }
        };
        Ok(queries.get(position)?)
    };
    chosen.iter().map(text).collect::<Result<_>>().map(Some)
}

fn numbered(count: usize) -> Result<IdTable> {
    let mut ids = IdTable::new();
    for position in 0..count {
        ids.push(&position.to_string())?;
    }
    Ok(ids)
}
