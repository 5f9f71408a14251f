//! Anchor rows that are scored here: queries are chosen, or items stand in for them, and scored against all.

use anyhow::Result;
use loxia::core::artefact::digest_bytes;
use loxia::core::{PairScorer, Query, Seed};
use loxia::data::{DataSet, QueryStore};
use loxia::search::Index;

use super::anchor_choice::{DEFAULT_ANCHORS, draw};
use super::anchor_matrix::{ITEMS_DIGEST, anchors_path, is_being_replaced};
use super::build::{AnchorRows, BuildFlags};
use super::forecast::Forecast;
use super::items::{DATA_DIGEST, OrderedItems};
use super::scoring::{AnchorScoring, anchor_scores};
use super::stand_in::{AnchorSource, queries_from};
use super::vectors::VectorSpace;
use crate::context::Context;
use crate::exit::usage;
use crate::report::{Summary, duration};

/// Scores anchors against all items into a matrix beside the output; `None` after a dry run, and where a
/// finished index is there that was made from the same.
pub(super) fn score_anchors<'a>(
    flags: &BuildFlags,
    data: Option<&'a DataSet>,
    queries: Option<&QueryStore>,
    dual: Option<&VectorSpace>,
    context: &Context,
    summary: &mut Summary,
) -> Result<Option<AnchorRows<'a>>> {
    let (Some(data), Some(model)) = (data, &flags.model) else { return usage("--model needs --data") };
    let store = data.items()?;
    if store.is_empty() {
        return usage(format!("{}: no items, so there is nothing to index", data.path().display()));
    }
    let (anchors, chosen, of_rows) = choose_anchors(flags, queries, data, context, summary)?;
    let items = OrderedItems::whole(store);
    let scorer = flags.model_flags.cross_encoder_and(model, flags.dual.as_deref(), context)?;
    summary.fact("model", scorer.info().name);
    let anchors_store = QueryStore::from_records(anchors.clone())?;
    let layout = serde_json::to_vec(&scorer.facts().layout)?;
    let digests = vec![
        ("model", scorer.info().digest),
        ("layout", digest_bytes(&layout)),
        (DATA_DIGEST, store.digest().to_owned()),
        ("queries", anchors_store.digest().to_owned()),
    ];
    let output = &flags.output.output;
    let mut replaces_index = false;
    if flags.resume && !flags.dry_run && output.exists() {
        let expected: Vec<(&str, &str)> =
            digests.iter().map(|(name, digest)| (*name, digest.as_str())).collect();
        let finished = Index::open(output, &expected);
        let of_scores: Vec<(&str, &str)> = expected
            .iter()
            .filter(|(name, _)| *name != "layout")
            .map(|&(name, digest)| (if name == DATA_DIGEST { ITEMS_DIGEST } else { name }, digest))
            .collect();
        // What was begun under --overwrite may be finished under --resume.
        replaces_index = is_being_replaced(output, finished.is_ok(), &of_scores);
        if !replaces_index {
            let finished = finished?;
            flags.check_vectors(&finished, dual)?;
            let finished = finished.summary();
            context.say(format_args!("{} is complete; nothing to do", output.display()));
            summary.fact("anchors", finished.anchors).fact("items", finished.items);
            return Ok(None);
        }
        context.say(format_args!("{} is replaced, as was begun with --overwrite", output.display()));
    }
    let forecast = Forecast::measure(&scorer, &anchors, &items, context)?;
    if flags.dry_run {
        let time = forecast.time(forecast.pairs);
        context.say(format_args!("to score: {}", forecast.sentence(forecast.pairs)));
        summary
            .fact("anchors", forecast.anchors)
            .fact("items", forecast.items)
            .fact("pairs", forecast.pairs)
            .fact_as("expected time", duration(time), time.as_secs_f64());
        return Ok(None);
    }
    let path = anchors_path(output);
    let scores = anchor_scores(
        &AnchorScoring {
            path: &path,
            overwrite: flags.output.overwrite,
            resume: flags.resume,
            tile_pairs: flags.tile_pairs,
            forecast: &forecast,
            precision: flags.model_flags.options().precision,
        },
        &scorer,
        &anchors_store,
        &items,
        store.digest(),
        context,
        summary,
    )?;
    summary.fact("anchor scores", path.display().to_string());
    let item_ids = store.ids().clone();
    Ok(Some(AnchorRows {
        scores,
        anchors: Some(anchors),
        items: Some(items),
        item_ids,
        chosen,
        of_rows,
        digests,
        replaces_index,
    }))
}

/// The anchor queries of a data set: the texts, their positions, and among how many.
fn choose_anchors(
    flags: &BuildFlags,
    queries: Option<&QueryStore>,
    data: &DataSet,
    context: &Context,
    summary: &mut Summary,
) -> Result<(Vec<Query>, Vec<usize>, usize)> {
    let seed = Seed(flags.seed);
    let (len, what) = match queries {
        Some(queries) => (queries.len(), "queries"),
        None => (data.items()?.len(), "items"),
    };
    let chosen = match &flags.anchors {
        Some(choice) => choice.positions(len, what, seed)?,
        None if len == 0 => {
            return usage(format!("{}: no {what} to make anchors of", data.path().display()));
        }
        None => draw(len, DEFAULT_ANCHORS, seed),
    };
    let Some(queries) = queries else {
        let whole = flags.anchors_from == Some(AnchorSource::Items);
        let made = queries_from(data.items()?, &chosen, whole, seed)?;
        if made.is_empty() {
            return usage(format!("{}: no item has a text to ask", data.path().display()));
        }
        context.say(format_args!(
            "no queries: {} {} stand in as anchors. Searches learn what they ask, not what people ask: expect a \
             lower recall for the same budget (in docs/search.md: up to .09 at k = 50, .03 at k = 10), and take the \
             estimated recall, calibrated on them, with care. Give real queries with --queries as soon as there are \
             some",
            made.len(),
            if whole { "items" } else { "sentences of items" }
        ));
        summary.fact("anchors made of", if whole { "items" } else { "sentences of items" });
        return Ok((made, Vec::new(), 0));
    };
    let (mut anchors, mut kept) = (Vec::new(), Vec::new());
    for &position in &chosen {
        let query = queries.get(position as u32)?;
        if query.text.is_blank() {
            summary.skip(format!("query {:?}: its text is empty", query.id));
            continue;
        }
        anchors.push(query);
        kept.push(position);
    }
    if anchors.is_empty() {
        anyhow::bail!("all {} queries that were chosen as anchors are empty", chosen.len());
    }
    Ok((anchors, kept, len))
}
