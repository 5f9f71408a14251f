//! What `loxia eval knn` reads or scores: scores, vectors, and which rows are anchors.

use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use loxia::core::{Cost, PairScorer, Query};
use loxia::data::DataSet;
use loxia::search::linalg::Dense;
use loxia::search::{AnchorSet, FirstStage, ItemScores, QueryRows};

use super::{KnnFlags, Vectors};
use crate::command::first_stage::FirstStageChoice;
use crate::command::index::items::OrderedItems;
use crate::command::index::vectors::VectorSpace;
use crate::command::score::score_tile;
use crate::context::Context;
use crate::exit::usage;
use crate::flags::DataFlags;
use crate::matrix_source::{read_scores, read_vectors};
use crate::report::Summary;

/// Queries scored at once, with the texts of as many items as `loxia score` holds.
const ROWS_AT_ONCE: usize = 16;

/// What is compared with what.
pub(super) struct Rows {
    pub(super) scores: Dense,
    vectors: Option<(Dense, Arc<Dense>)>,
    item_scores: Option<Arc<ItemScores>>,
    first_stage: Option<GivenStage>,
    pub(super) anchors: Range<usize>,
    pub(super) test: Range<usize>,
}

impl Rows {
    /// Reads or scores what the flags name and checks that it fits together.
    pub(super) fn read(flags: &KnnFlags, context: &Context, summary: &mut Summary) -> Result<Rows> {
        let data = flags.data.as_ref().map(|path| flags.data_flags.open(path)).transpose()?;
        if flags.dual.is_some() && data.is_none() {
            return usage("--dual needs the texts: give --data");
        }
        // Before hours of scoring.
        let dual = flags.dual.as_ref().map(|dual| VectorSpace::dual(dual, &flags.model_flags, context));
        let dual = dual.transpose()?;
        let scored = match (&flags.scores, &flags.model) {
            (Some(path), None) => {
                flags.typed.refuse(&["keep-scores", "precision"], "--scores are scored already")?;
                Scored::stored(flags, read_scores(path, context)?)?
            }
            (None, Some(model)) => Scored::live(flags, model, data.as_ref(), context, summary)?,
            (Some(_), Some(_)) => return usage("--scores are scored already; leave out --model"),
            (None, None) => return usage("give --scores MATRIX, or --model DIR with --data PATH"),
        };
        let vectors = read_vectors_of(flags, &scored, data.as_ref(), dual, context)?;
        let item_scores = read_item_scores(flags, scored.scores.cols(), context)?;
        let first_stage = read_first_stage(flags, &scored, data.as_ref(), context, summary)?;
        let Scored { scores, anchors, test, .. } = scored;
        Ok(Rows { scores, vectors, item_scores, first_stage, anchors, test })
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
        if let Some(GivenStage { stage, queries }) = &self.first_stage {
            let named = rows.iter().map(|&row| queries[row].clone()).collect();
            anchors = anchors.with_first_stage(stage.clone(), named)?;
        }
        Ok(anchors)
    }

    /// The same, with all rows to be looked at: for the oracle.
    pub(super) fn anchor_set_of_oracle(&self, count: usize) -> Result<AnchorSet> {
        let every: Vec<usize> = self.anchors.clone().chain(self.test.clone()).collect();
        Ok(self.anchor_set(count)?.with_every_row(Arc::new(self.scores.select_rows(&every)))?)
    }

    /// Whether there is an order of the items to rerank.
    pub(super) fn can_rerank(&self) -> bool {
        self.vectors.is_some() || self.first_stage.is_some()
    }

    /// The rows that are searched.
    pub(super) fn test_rows(&self) -> QueryRows {
        let rows: Vec<usize> = self.test.clone().collect();
        QueryRows {
            scores: Arc::new(self.scores.select_rows(&rows)),
            vectors: self.vectors.as_ref().map(|(queries, _)| Arc::new(queries.select_rows(&rows))),
            queries: self.first_stage.as_ref().map(|first| first.queries[self.test.clone()].into()),
        }
    }
}

/// A first stage of its own, and the query of each row.
struct GivenStage {
    stage: Arc<dyn FirstStage>,
    queries: Vec<Query>,
}

/// Scores, and which of their rows are what.
struct Scored {
    scores: Dense,
    anchors: Range<usize>,
    test: Range<usize>,
    /// Where the query of each row is in the data.
    queries: Vec<u32>,
}

impl Scored {
    /// Of a stored matrix.
    fn stored(flags: &KnnFlags, scores: Dense) -> Result<Self> {
        let (anchors, test) = anchors_and_test(flags, scores.rows(), "rows")?;
        Ok(Scored { queries: (0..scores.rows() as u32).collect(), scores, anchors, test })
    }

    /// Anchors, then tests, scored against every item.
    fn live(
        flags: &KnnFlags,
        model: &str,
        data: Option<&DataSet>,
        context: &Context,
        summary: &mut Summary,
    ) -> Result<Self> {
        let Some(data) = data else { return usage("--model needs the texts: give --data") };
        let (items, queries) = (data.items()?, DataFlags::queries_beside_items(data)?);
        let (anchors, test) = anchors_and_test(flags, queries.len(), "queries")?;
        let scorer = flags.model_flags.cross_encoder_and(model, flags.dual.as_deref(), context)?;
        summary.fact("model", scorer.info().name);
        let scorer = flags.kept_scores.around(scorer, summary)?;
        let chosen: Vec<u32> = anchors.clone().chain(test.clone()).map(|row| row as u32).collect();
        let bar = context.bar((chosen.len() * items.len()) as u64, "pairs");
        let mut cost = Cost::default();
        let mut values = Vec::with_capacity(chosen.len() * items.len());
        for rows in chosen.chunks(ROWS_AT_ONCE) {
            let queries: Vec<Query> =
                rows.iter().map(|&row| queries.get(row)).collect::<loxia::data::Result<_>>()?;
            let read = |cols: Range<usize>| Ok(items.read(cols)?);
            let all = 0..items.len();
            values.extend(score_tile(scorer.as_ref(), &queries, &read, all, &bar, context, &mut cost)?);
        }
        bar.finish();
        summary.fact("pairs", cost.pairs).fact("pairs scored before", cost.cached);
        summary.count("truncated pairs", cost.truncated);
        let scores = Dense::new(chosen.len(), items.len(), values)?;
        scores.check_finite("scores of the model")?;
        let test = anchors.len()..chosen.len();
        Ok(Scored { scores, anchors: 0..anchors.len(), test, queries: chosen })
    }
}

/// The two ranges, which must not share anything.
fn anchors_and_test(flags: &KnnFlags, of: usize, what: &str) -> Result<(Range<usize>, Range<usize>)> {
    let (anchors, test) = (flags.anchors.within(of, what)?, flags.test.within(of, what)?);
    if anchors.is_empty() || test.is_empty() {
        return usage(format!("--anchors and --test must hold {what}, at least one each"));
    }
    if anchors.start < test.end && test.start < anchors.end {
        return usage(format!(
            "--anchors {anchors:?} and --test {test:?} share {what}; what methods learn from must not be searched"
        ));
    }
    Ok((anchors, test))
}

/// Vectors of the rows' queries and of the items, from where the flags say.
fn read_vectors_of(
    flags: &KnnFlags,
    scored: &Scored,
    data: Option<&DataSet>,
    dual: Option<VectorSpace>,
    context: &Context,
) -> Result<Option<(Dense, Arc<Dense>)>> {
    let files = (&flags.query_vectors, &flags.item_vectors);
    if flags.vectors == Some(Vectors::None) {
        flags.typed.refuse(&["query-vectors", "item-vectors"], "--vectors none does without them")?;
        return Ok(None);
    }
    let given = files.0.is_some() || files.1.is_some();
    let tfidf = match flags.vectors {
        Some(vectors) => vectors == Vectors::Tfidf,
        None => flags.model.is_some() && !given,
    };
    if tfidf || flags.dual.is_some() {
        flags.typed.refuse(&["query-vectors", "item-vectors"], "--vectors tfidf makes its own")?;
        let Some(data) = data else {
            return usage("--vectors tfidf needs the texts: give --data");
        };
        return vectors_of_texts(scored, data, dual, context).map(Some);
    }
    match files {
        (Some(queries), Some(items)) => {
            // A file has the vectors of all queries, of which a model may have scored some.
            let rows = scored.queries.iter().max().map_or(0, |&last| last as usize + 1);
            let queries = read_vectors(queries, rows, "queries", context)?;
            let chosen: Vec<usize> = scored.queries.iter().map(|&row| row as usize).collect();
            let items = read_vectors(items, scored.scores.cols(), "items", context)?;
            Ok(Some((queries.select_rows(&chosen), Arc::new(items))))
        }
        (None, None) if flags.vectors.is_none() => Ok(None),
        (None, None) => usage("--vectors files needs --query-vectors and --item-vectors"),
        _ => usage("--query-vectors and --item-vectors belong together; give both or neither"),
    }
}

/// Vectors made from the texts of the queries and items whose scores these are.
fn vectors_of_texts(
    scored: &Scored,
    data: &DataSet,
    dual: Option<VectorSpace>,
    context: &Context,
) -> Result<(Dense, Arc<Dense>)> {
    let (queries, items) = texts_of(scored, data)?;
    let (space, item_vectors) = VectorSpace::of_texts(dual, &items, context)?;
    Ok((space.queries(&queries, context)?, Arc::new(item_vectors)))
}

/// The queries of the rows, and the items of the columns.
fn texts_of<'a>(scored: &Scored, data: &'a DataSet) -> Result<(Vec<Query>, OrderedItems<'a>)> {
    let (items, queries) = (data.items()?, DataFlags::queries_beside_items(data)?);
    let (rows, cols) = (scored.scores.rows(), scored.scores.cols());
    if items.len() != cols || queries.len() < rows {
        return usage(format!(
            "the scores are of {rows} queries and {cols} items, but --data holds {} and {}; give the data set that was \
             scored",
            queries.len(),
            items.len()
        ));
    }
    let read = scored.queries.iter().map(|&row| queries.get(row));
    Ok((read.collect::<loxia::data::Result<_>>()?, OrderedItems::whole(items)))
}

/// The first stage that the flags name, with the query of each row.
fn read_first_stage(
    flags: &KnnFlags,
    scored: &Scored,
    data: Option<&DataSet>,
    context: &Context,
    summary: &mut Summary,
) -> Result<Option<GivenStage>> {
    let choice = match &flags.first_stage.first_stage {
        None | Some(FirstStageChoice::Vectors) => return Ok(None),
        Some(choice) => choice,
    };
    let Some(data) = data else { return usage("--first-stage needs the texts and ids: give --data") };
    let (queries, items) = texts_of(scored, data)?;
    Ok(choice.over(&items, context, summary)?.map(|stage| GivenStage { stage, queries }))
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
