//! Retrieval by words: the index is made in memory, then the queries are answered a few hundred at a time.

use anyhow::Result;
use loxia::core::{Progress, QueryText, Ranking};
use loxia::search::TfidfScan;
use rayon::prelude::*;

use super::{Stemming, Task, send};
use crate::command::index::items::{OrderedItems, ToldTexts};
use crate::context::{Bar, Context};
use crate::ranked_output::RankedOutput;
use crate::report::Summary;

/// Queries answered before their lists are written.
const QUERIES_AT_ONCE: usize = 512;

/// BM25 over a collection.
#[cfg(feature = "bm25")]
pub(super) fn bm25(
    task: &Task<'_>,
    stemming: Stemming,
    output: &RankedOutput,
    context: &Context,
    summary: &mut Summary,
) -> Result<()> {
    use loxia::search::Bm25;
    let (stemming, name) = match stemming {
        Stemming::English => (loxia::search::Stemming::English, "english"),
        Stemming::None => (loxia::search::Stemming::None, "none"),
    };
    summary.fact("k1", Bm25::K1).fact("b", Bm25::B).fact("stemming", name);
    let bar = bar(task, 1, context);
    let items = OrderedItems::whole(task.items);
    let index = Bm25::new(&ToldTexts { items: &items, progress: &bar }, stemming, &context.cancel)?;
    answer(task, |query| Ok(index.search(query, task.k)?), &bar, output, context, summary)
}

/// This build has no BM25.
#[cfg(not(feature = "bm25"))]
pub(super) fn bm25(
    _task: &Task<'_>,
    _stemming: Stemming,
    _output: &RankedOutput,
    _context: &Context,
    _summary: &mut Summary,
) -> Result<()> {
    crate::exit::usage("this build has no BM25 (feature bm25); choose --method tfidf or dual")
}

/// TF-IDF over a collection.
pub(super) fn tfidf(
    task: &Task<'_>,
    output: &RankedOutput,
    context: &Context,
    summary: &mut Summary,
) -> Result<()> {
    // Words are counted in a first pass and weighted in a second.
    let bar = bar(task, 2, context);
    let items = OrderedItems::whole(task.items);
    let index = TfidfScan::new(&ToldTexts { items: &items, progress: &bar }, &context.cancel)?;
    answer(task, |query| Ok(index.search(query, task.k)), &bar, output, context, summary)
}

fn bar(task: &Task<'_>, passes: u64, context: &Context) -> Bar {
    context.bar(passes * task.items.len() as u64 + task.queries.len() as u64, "texts")
}

fn answer(
    task: &Task<'_>,
    search: impl Fn(&QueryText) -> Result<Ranking> + Sync,
    bar: &Bar,
    output: &RankedOutput,
    context: &Context,
    summary: &mut Summary,
) -> Result<()> {
    let mut without_match = 0;
    output.write(|out| {
        for queries in task.queries.chunks(QUERIES_AT_ONCE) {
            let answered = queries.par_iter().map(|query| -> Result<Ranking> {
                context.cancel.check()?;
                let ranking = search(&query.text)?;
                bar.advance(1);
                Ok(ranking)
            });
            let rankings: Vec<Ranking> = answered.collect::<Result<_>>()?;
            for (query, ranking) in queries.iter().zip(&rankings) {
                without_match += u64::from(ranking.is_empty());
                send(query, ranking, task.items, out)?;
            }
        }
        Ok(())
    })?;
    let (done, took) = bar.finish();
    summary
        .fact("queries", task.queries.len())
        .fact("items", task.items.len())
        .count("queries without a match", without_match)
        .rate("texts", done, took);
    Ok(())
}
