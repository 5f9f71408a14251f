//! What the demo works on: texts, vectors, and the scores of every query against every item.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use loxia::core::{Cost, IdTable, Item, PairScorer, Query, QueryText, Ranking};
use loxia::data::{DataOptions, DataSet};
use loxia::model::{CrossEncoder, ModelOptions, Similarity, TextEncoder};
use loxia::search::linalg::Dense;
use loxia::search::{
    AnchorSet, QueryEncoder, QueryRows, QueryView, TfidfSettings, TfidfVectors, normalise_rows,
};

use crate::command::index::vectors::VectorSpace;
use crate::context::Context;
use crate::embedded::Embedded;
use crate::exit::usage;
use crate::flags::{DataFlags, ModelFlags};
use crate::report::{duration, grouped};

const ANCHORS: usize = 120;
const SEARCHES: usize = 60;
/// Pairs that one call scores: enough to share the tokens of the items, little memory.
const PAIRS_AT_ONCE: usize = 1 << 16;
/// A collection that is scored whole for less than the smallest budget needs no search.
const FEWEST_ITEMS: usize = 100;

/// Where models and data come from.
pub(super) enum Source<'a> {
    Embedded {
        options: ModelOptions,
    },
    Own {
        data: &'a Path,
        model: &'a str,
        dual: Option<&'a str>,
        model_flags: &'a ModelFlags,
        flags: &'a DataFlags,
    },
}

/// Everything that the parts of the demo look at. The first `anchors` queries are the anchors, the others are
/// searched.
pub(super) struct Material {
    pub(super) items: Vec<Item>,
    pub(super) queries: Vec<Query>,
    /// The item that each query means, where the data set says so.
    pub(super) golds: Vec<Option<u32>>,
    pub(super) anchors: usize,
    pub(super) is_embedded: bool,
    pub(super) scorer: CrossEncoder,
    scores: Dense,
    query_vectors: Dense,
    item_vectors: Arc<Dense>,
    /// What stands in the first stage, for people.
    pub(super) first_stage: &'static str,
}

impl Material {
    /// Opens, embeds and scores.
    pub(super) fn gather(
        source: &Source<'_>,
        anchors: Option<u32>,
        searches: Option<u32>,
        context: &Context,
    ) -> Result<Self> {
        let unpacked;
        let (data, scorer, dual) = match source {
            Source::Embedded { options: model_options } => {
                unpacked = Embedded::unpack()?;
                let options = DataOptions {
                    world: Some(Embedded::WORLD.to_owned()),
                    split: Some("test".to_owned()),
                    ..DataOptions::default()
                };
                let data = DataSet::open(unpacked.world(), &options)?;
                let dual = TextEncoder::open(&unpacked.dual_encoder().parse()?, model_options)?;
                (data, CrossEncoder::open(&unpacked.cross_encoder().parse()?, model_options)?, Some(dual))
            }
            Source::Own { data, model, dual, model_flags, flags } => {
                let scorer = model_flags.cross_encoder_and(model, *dual, context)?;
                let dual = dual.map(|dual| VectorSpace::dual(dual, model_flags, context)).transpose()?;
                (flags.open(data)?, scorer, dual.and_then(VectorSpace::into_encoder))
            }
        };
        let store = data.items()?;
        if store.len() < FEWEST_ITEMS {
            return usage(format!("{} items are too few to search in; score them all", store.len()));
        }
        let items = store.read(0..store.len())?;
        let query_store = DataFlags::queries_beside_items(&data)?;
        let (anchors, searches) = split(query_store.len(), anchors, searches)?;
        let queries = query_store.read(0..anchors + searches)?;
        if let Some(blank) = queries.iter().find(|query| query.text.is_blank()) {
            anyhow::bail!("query {:?} is empty; remove it from the data set", blank.id);
        }
        let golds = meant_items(&data, &queries, context)?;
        let (query_vectors, item_vectors) = match &dual {
            Some(dual) => dual_vectors(dual, &queries, &items, context)?,
            None => tfidf_vectors(&queries, &items, context)?,
        };
        let scores = score_all(&scorer, &queries, &items, context)?;
        Ok(Material {
            is_embedded: matches!(source, Source::Embedded { .. }),
            first_stage: if dual.is_some() { "the dual encoder's" } else { "the TF-IDF vectors'" },
            item_vectors: Arc::new(item_vectors),
            items,
            queries,
            golds,
            anchors,
            scorer,
            scores,
            query_vectors,
        })
    }

    /// What the index is made from.
    pub(super) fn anchor_set(&self) -> Result<AnchorSet> {
        let rows: Vec<usize> = (0..self.anchors).collect();
        let vectors = (Arc::new(self.query_vectors.select_rows(&rows)), self.item_vectors.clone());
        Ok(AnchorSet::new(Arc::new(self.scores.select_rows(&rows)), Some(vectors))?)
    }

    /// The rows that are searched, and compared with.
    pub(super) fn searched_rows(&self) -> QueryRows {
        let rows: Vec<usize> = self.searched().collect();
        QueryRows {
            scores: Arc::new(self.scores.select_rows(&rows)),
            vectors: Some(Arc::new(self.query_vectors.select_rows(&rows))),
            queries: None,
        }
    }

    /// Positions of the queries that are searched.
    pub(super) fn searched(&self) -> std::ops::Range<usize> {
        self.anchors..self.queries.len()
    }

    pub(super) fn item_ids(&self) -> Result<IdTable> {
        let mut ids = IdTable::new();
        for item in &self.items {
            ids.push(item.id.as_str())?;
        }
        Ok(ids)
    }

    /// A query as methods see it.
    pub(super) fn view(&self, query: usize) -> QueryView<'_> {
        let Query { id, text } = &self.queries[query];
        QueryView { id: id.as_str(), vector: Some(self.query_vectors.row(query)), text: Some(text) }
    }

    /// All scores of a query.
    pub(super) fn row(&self, query: usize) -> &[f32] {
        self.scores.row(query)
    }

    /// The cross-encoder's own top k of a query.
    pub(super) fn exact(&self, query: usize, k: usize) -> Vec<(u32, f32)> {
        let ranking = Ranking::from_scores(self.row(query));
        ranking.as_slice().iter().take(k).map(|scored| (scored.item, scored.score)).collect()
    }

    /// A query on one line, a mention in brackets.
    pub(super) fn asked(&self, query: usize) -> String {
        let text = match &self.queries[query].text {
            QueryText::Mention { left, mention, right } => format!("{left} [[{mention}]] {right}"),
            QueryText::Plain(text) => text.clone(),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Pairs that were scored to make the index and to know the truth.
    pub(super) fn pairs(&self) -> u64 {
        (self.queries.len() * self.items.len()) as u64
    }

    pub(super) fn introduction(&self) -> String {
        let (items, anchors, searches) = (self.items.len(), self.anchors, self.searched().len());
        let what = if self.is_embedded {
            format!(
                "{} senses of verbs of motion (WordNet), a tiny cross-encoder and a tiny dual encoder.\n\
                 A mention of a verb in a sentence is a query; what is looked for is the cross-encoder's own top k.",
                grouped(items as u64)
            )
        } else {
            format!("{} items, {} queries.", grouped(items as u64), self.queries.len())
        };
        format!(
            "{what}\n\n\
             {anchors} anchor queries were scored against every item, once: {} pairs make the index.\n\
             {searches} other queries are searched. They were scored against every item too ({} pairs), but only to\n\
             know what there was to find; no constant was chosen on them.",
            grouped((anchors * items) as u64),
            grouped((searches * items) as u64)
        )
    }
}

/// The item each query means. Only mentions have one: judgements of documents say nothing about the cross-encoder's
/// own order, which is all that counts here.
fn meant_items(data: &DataSet, queries: &[Query], context: &Context) -> Result<Vec<Option<u32>>> {
    if !queries.iter().any(|query| matches!(query.text, QueryText::Mention { .. })) {
        return Ok(vec![None; queries.len()]);
    }
    let golds = data.golds().unwrap_or_else(|error| {
        context.say(format_args!("which items are meant is not shown: {error}"));
        Vec::new()
    });
    let store = data.items()?;
    let golds: HashMap<&str, &str> =
        golds.iter().map(|gold| (gold.query.as_str(), gold.item.as_str())).collect();
    let meant = |query: &Query| golds.get(query.id.as_str()).and_then(|item| store.position(item));
    Ok(queries.iter().map(meant).collect())
}

/// How many of the queries are anchors, and how many are searched.
fn split(queries: usize, anchors: Option<u32>, searches: Option<u32>) -> Result<(usize, usize)> {
    if queries < 3 {
        return usage(format!("{queries} queries are too few: some are anchors, others are searched"));
    }
    let all = (anchors.map(|count| count as usize), searches.map(|count| count as usize));
    let (anchors, searches) = match all {
        (Some(anchors), Some(searches)) => (anchors, searches),
        (Some(anchors), None) => (anchors, SEARCHES.min(queries.saturating_sub(anchors)).max(1)),
        (None, Some(searches)) => (ANCHORS.min(queries.saturating_sub(searches)).max(2), searches),
        (None, None) if queries >= ANCHORS + SEARCHES => (ANCHORS, SEARCHES),
        (None, None) => (queries * 2 / 3, queries - queries * 2 / 3),
    };
    if anchors + searches > queries {
        return usage(format!(
            "{anchors} anchors and {searches} searches need {} queries; there are {queries}",
            anchors + searches
        ));
    }
    Ok((anchors, searches))
}

fn dual_vectors(
    encoder: &TextEncoder,
    queries: &[Query],
    items: &[Item],
    context: &Context,
) -> Result<(Dense, Dense)> {
    let bar = context.bar((queries.len() + items.len()) as u64, "texts");
    let encoded = encoder
        .encode_queries(queries, &bar, &context.cancel)
        .and_then(|queries| Ok((queries, encoder.encode_items(items, &bar, &context.cancel)?)));
    let (texts, took) = bar.finish();
    let (query_vectors, item_vectors) = encoded?;
    let matrix = |vectors: Vec<f32>| -> Result<Dense> {
        let mut matrix = Dense::new(vectors.len() / encoder.dim(), encoder.dim(), vectors)?;
        if encoder.similarity() == Similarity::Cosine {
            normalise_rows(&mut matrix);
        }
        Ok(matrix)
    };
    context.say(format_args!("{} texts embedded in {}", grouped(texts), duration(took)));
    Ok((matrix(query_vectors.vectors)?, matrix(item_vectors.vectors)?))
}

fn tfidf_vectors(queries: &[Query], items: &[Item], context: &Context) -> Result<(Dense, Dense)> {
    context.say("no --dual: making TF-IDF vectors of the texts");
    let (tfidf, item_vectors) =
        TfidfVectors::fit(&items.to_vec(), &TfidfSettings::default(), &context.cancel)?;
    let mut vectors = Vec::with_capacity(queries.len() * tfidf.dims());
    for query in queries {
        vectors.extend(tfidf.encode(query)?);
    }
    Ok((Dense::new(queries.len(), tfidf.dims(), vectors)?, item_vectors))
}

/// Every query against every item.
fn score_all(scorer: &CrossEncoder, queries: &[Query], items: &[Item], context: &Context) -> Result<Dense> {
    let total = (queries.len() * items.len()) as u64;
    context.say(format_args!(
        "scoring {} queries x {} items = {} pairs",
        queries.len(),
        grouped(items.len() as u64),
        grouped(total)
    ));
    let bar = context.bar(total, "pairs");
    let mut scores = vec![0.0; queries.len() * items.len()];
    let together = (PAIRS_AT_ONCE / items.len()).max(1);
    let mut cost = Cost::default();
    for (queries, scores) in queries.chunks(together).zip(scores.chunks_mut(together * items.len())) {
        let pairs: Vec<(u32, u32)> = (0..queries.len() as u32)
            .flat_map(|query| (0..items.len() as u32).map(move |item| (query, item)))
            .collect();
        cost += scorer
            .score(queries, items, &pairs, scores, &bar, &context.cancel)
            .context("scoring was not finished")?;
    }
    let (_, took) = bar.finish();
    let rate = crate::report::three_digits(cost.pairs as f64 / took.as_secs_f64().max(1e-3));
    context.say(format_args!("scored in {} ({rate} pairs/s)", duration(took)));
    if cost.truncated > 0 {
        context.say(format_args!("{} pairs were cut to fit the model", grouped(cost.truncated)));
    }
    Ok(Dense::new(queries.len(), items.len(), scores)?)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn queries_are_shared_out_and_never_used_twice() {
        assert_eq!(split(200, None, None).unwrap(), (120, 60));
        assert_eq!(split(30, None, None).unwrap(), (20, 10));
        assert_eq!(split(30, Some(29), None).unwrap(), (29, 1));
        assert_eq!(split(30, None, Some(10)).unwrap(), (20, 10));
        assert_eq!(split(3, None, None).unwrap(), (2, 1));
        for (queries, anchors, searches) in [(30, Some(25), Some(6)), (30, Some(30), None), (2, None, None)] {
            assert!(split(queries, anchors, searches).is_err());
        }
    }
}
