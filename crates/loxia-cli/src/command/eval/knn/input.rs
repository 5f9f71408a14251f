//! What `loxia eval knn` reads: scores, vectors, and which rows are anchors.

use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use loxia::data::DataSet;
use loxia::search::linalg::Dense;
use loxia::search::{AnchorSet, ItemScores, QueryEncoder, QueryRows, TfidfSettings, TfidfVectors};
use rayon::prelude::*;

use super::{KnnFlags, Vectors};
use crate::context::Context;
use crate::exit::usage;
use crate::flags::DataFlags;
use crate::matrix_source::{read_scores, read_vectors};

/// What is compared with what.
pub(super) struct Rows {
    pub(super) scores: Dense,
    vectors: Option<(Dense, Arc<Dense>)>,
    item_scores: Option<Arc<ItemScores>>,
    pub(super) anchors: Range<usize>,
    pub(super) test: Range<usize>,
}

impl Rows {
    /// Reads what the flags name and checks that it fits together.
    pub(super) fn read(flags: &KnnFlags, context: &Context) -> Result<Rows> {
        let scores = read_scores(&flags.scores, context)?;
        let anchors = flags.anchors.within(scores.rows(), "rows")?;
        let test = flags.test.within(scores.rows(), "rows")?;
        if anchors.is_empty() || test.is_empty() {
            return usage("--anchors and --test must hold at least one row each");
        }
        if anchors.start < test.end && test.start < anchors.end {
            return usage(format!(
                "--anchors {anchors:?} and --test {test:?} share rows; what methods learn from must not be searched"
            ));
        }
        let vectors = match (&flags.query_vectors, &flags.item_vectors, flags.vectors) {
            (_, _, Some(Vectors::None)) => {
                flags.typed.refuse(&["query-vectors", "item-vectors"], "--vectors none does without them")?;
                None
            }
            (_, _, Some(Vectors::Tfidf)) => {
                flags.typed.refuse(&["query-vectors", "item-vectors"], "--vectors tfidf makes its own")?;
                let Some(path) = &flags.data else {
                    return usage("--vectors tfidf needs the texts: give --data");
                };
                Some(vectors_of_texts(&flags.data_flags.open(path)?, &scores, context)?)
            }
            (Some(queries), Some(items), _) => {
                let queries = read_vectors(queries, scores.rows(), "queries", context)?;
                let items = read_vectors(items, scores.cols(), "items", context)?;
                Some((queries, Arc::new(items)))
            }
            (None, None, None) => None,
            (None, None, Some(Vectors::Files)) => {
                return usage("--vectors files needs --query-vectors and --item-vectors");
            }
            _ => return usage("--query-vectors and --item-vectors belong together; give both or neither"),
        };
        let item_scores = read_item_scores(flags, scores.cols(), context)?;
        Ok(Rows { scores, vectors, item_scores, anchors, test })
    }

    /// The first `count` anchor rows.
    pub(super) fn anchor_set(&self, count: usize) -> Result<AnchorSet> {
        let rows: Vec<usize> = self.anchors.clone().take(count).collect();
        let vectors = self
            .vectors
            .as_ref()
            .map(|(queries, items)| (Arc::new(queries.select_rows(&rows)), items.clone()));
        let mut anchors = AnchorSet::new(Arc::new(self.scores.select_rows(&rows)), vectors)?;
        if let Some(item_scores) = &self.item_scores {
            anchors = anchors.with_item_scores(item_scores.clone())?;
        }
        Ok(anchors)
    }

    /// The same, with all rows to be looked at: for the oracle.
    pub(super) fn anchor_set_of_oracle(&self, count: usize) -> Result<AnchorSet> {
        let every: Vec<usize> = self.anchors.clone().chain(self.test.clone()).collect();
        Ok(self.anchor_set(count)?.with_every_row(Arc::new(self.scores.select_rows(&every)))?)
    }

    /// The rows that are searched.
    pub(super) fn test_rows(&self) -> QueryRows {
        let rows: Vec<usize> = self.test.clone().collect();
        QueryRows {
            scores: Arc::new(self.scores.select_rows(&rows)),
            vectors: self.vectors.as_ref().map(|(queries, _)| Arc::new(queries.select_rows(&rows))),
        }
    }
}

/// Vectors made from the texts of the queries and items whose scores these are.
fn vectors_of_texts(data: &DataSet, scores: &Dense, context: &Context) -> Result<(Dense, Arc<Dense>)> {
    let (items, queries) = (data.items()?, DataFlags::queries_beside_items(data)?);
    if items.len() != scores.cols() || queries.len() < scores.rows() {
        return usage(format!(
            "the scores are of {} queries and {} items, but --data holds {} and {}; give the data set that was scored",
            scores.rows(),
            scores.cols(),
            queries.len(),
            items.len()
        ));
    }
    let items = items.read(0..items.len())?;
    let (tfidf, vectors) = TfidfVectors::fit(&items, &TfidfSettings::default(), &context.cancel)?;
    let queries = queries.read(0..scores.rows())?;
    let encoded: Vec<Vec<f32>> =
        queries.par_iter().map(|query| tfidf.encode(query)).collect::<loxia::search::Result<_>>()?;
    Ok((Dense::new(queries.len(), tfidf.dims(), encoded.concat())?, Arc::new(vectors)))
}

fn read_item_scores(flags: &KnnFlags, items: usize, context: &Context) -> Result<Option<Arc<ItemScores>>> {
    let Some(path) = &flags.item_scores else {
        flags.typed.refuse(&["item-anchors"], "it is for --item-scores")?;
        return Ok(None);
    };
    let matrix = read_scores(path, context)?;
    let (rows, cols) = (matrix.rows(), matrix.cols());
    if rows != items && cols != items {
        return usage(format!(
            "{}: {rows} x {cols}, but there are {items} items; one side must be all of them",
            path.display()
        ));
    }
    let anchors = match &flags.item_anchors {
        Some(range) => range.within(items, "items")?,
        None => 0..if rows == items { cols } else { rows },
    };
    let anchors: Arc<[u32]> = anchors.map(|item| item as u32).collect();
    Ok(Some(Arc::new(if rows == items {
        ItemScores::items_against_anchors(&matrix, anchors)?
    } else {
        ItemScores::anchors_against_items(Arc::new(matrix), anchors)?
    })))
}
