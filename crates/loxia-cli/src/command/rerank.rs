//! `loxia rerank`: put the candidates of a first stage into the cross-encoder's order.
//!
//! One query with documents from a file, or a whole run. Runs are scored many queries at a time: the pairs of
//! several queries fill common batches, and texts are read for those queries only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use indexmap::IndexMap;
use indexmap::map::Entry;
use loxia::core::{Cost, Item, PairScorer, Query, QueryId, QueryText, Run, RunEntry};
use loxia::data::write::best_first;
use loxia::data::{DataSet, QueryStore, ReadOptions, Record, RunFile, Store, read_run};

use super::bench::tell_speed;
use crate::context::{Bar, Context};
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, shortest};
use crate::kept_scores::KeptScoresFlags;
use crate::ranked_output::{RankedList, RankedOutput, Sink};
use crate::report::Summary;

/// Pairs that are scored in one go: enough to fill batches across queries, few enough to hold the texts.
const PAIRS_AT_ONCE: usize = 1 << 14;

/// Rerank the candidates of a run, or the documents for one query, with a cross-encoder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia rerank --model MODEL_DIR --run BM25.trec --data BEIR_DIR --depth 100 --output RERANKED.trec
  loxia rerank --model MODEL_DIR --run CANDIDATES.jsonl.gz --output RERANKED.trec
  loxia rerank --model MODEL_DIR --query \"how do crossbills feed\" --data passages.txt
  grep -i bird notes.txt | loxia rerank --model MODEL_DIR --query \"how do crossbills feed\" --data -

A run is a TREC run (texts come from --data) or JSON / JSON lines with qid, query, docno, text and, where known, \
rank and score; any of them may be gzipped. An output name ending in .jsonl gets JSON lines with the texts, one \
ending in .json a JSON array, any other a TREC run.")]
pub(crate) struct RerankFlags {
    /// Cross-encoder: a directory, or hf:owner/name[@revision] in the Hugging Face cache
    #[arg(long, value_name = "DIR")]
    model: String,
    /// Candidates: a TREC run, JSON or JSON lines, plain or gzip
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    run: Option<PathBuf>,
    /// One query, for the documents of --data; "left [[mention]] right" is a mention in its context
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// Texts for a run without them; with --query the documents (one a line, jsonl, tsv or a data set; - is stdin)
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Rerank only the first N candidates of each query; the others are left out and counted
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Where to write the run [default: stdout]
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Name of the run, in its last column
    #[arg(long, value_name = "NAME", default_value = "loxia")]
    tag: String,
    #[command(flatten)]
    kept_scores: KeptScoresFlags,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// Runs the command.
pub(crate) fn run(flags: RerankFlags, context: &Context) -> Result<Outcome> {
    if flags.depth == Some(0) {
        return usage("--depth must be at least 1");
    }
    let mut summary = Summary::default();
    // The output is checked first: hours of scoring must not end in a refusal.
    let output = RankedOutput::new(&flags.output, flags.overwrite, &flags.tag, context)?;
    let data = flags.data.as_ref().map(|path| flags.data_flags.open(path)).transpose()?;
    let typed = flags.query.as_deref().map(typed_query).transpose()?;
    let file = match (&typed, &flags.run) {
        (Some(_), Some(_)) => return usage("--query and --run exclude each other"),
        (None, None) => return usage("give --run FILE, or --query TEXT with --data FILE"),
        (Some(_), None) => None,
        (None, Some(path)) => Some((path, read_run(path, &ReadOptions::default())?)),
    };
    let candidates = match (&typed, &file) {
        (_, Some((path, file))) => {
            summary.count("duplicates dropped", file.duplicates.count);
            Candidates::of_run(path, file, data.as_ref())?
        }
        (Some(queries), None) => Candidates::of_query(queries, data.as_ref())?,
        (None, None) => unreachable!("refused above"),
    };
    let lists = candidates.lists(flags.depth, &mut summary)?;
    for CandidateList { query, items } in &lists {
        let items = items.iter().map(|&item| candidates.items.id(item));
        output.check_ids(candidates.queries.id(*query), items)?;
    }
    let model = Arc::new(flags.model_flags.cross_encoder(&flags.model, context)?);
    let scorer = flags.kept_scores.around(model.clone(), &mut summary)?;
    let total = lists.iter().map(|list| list.items.len() as u64).sum();
    let bar = if output.is_table() { context.hidden_bar() } else { context.bar(total, "pairs") };
    let cost = rerank_all(&lists, &candidates, &*scorer, &output, &bar, context)?;
    let (done, took) = bar.finish();
    summary
        .fact("model", scorer.info().name)
        .fact("queries", lists.len())
        .fact("pairs", cost.pairs)
        .count("pairs scored before", cost.cached)
        .fact("tokens", cost.tokens)
        .count("truncated pairs", cost.truncated)
        .rate("pairs", done, took);
    tell_speed(&mut summary, flags.model_flags.options().precision, model.most_scratch_bytes(), took, 0);
    summary.fact("output", flags.output.display().to_string());
    summary.print(context, output.is_stdout())?;
    Ok(summary.outcome())
}

/// Reranks a run that brings its texts, with a model that is open already: what a measurement repeats.
pub(super) fn rerank_file(
    run: &Path,
    output: &Path,
    scorer: &dyn PairScorer,
    context: &Context,
) -> Result<Cost> {
    let output = RankedOutput::new(output, true, "loxia", context)?;
    let file = read_run(run, &ReadOptions::default())?;
    let candidates = Candidates::of_run(run, &file, None)?;
    let lists = candidates.lists(None, &mut Summary::default())?;
    let bar = context.hidden_bar();
    let cost = rerank_all(&lists, &candidates, scorer, &output, &bar, context);
    bar.finish();
    cost
}

/// Reranks all lists, as many queries at a time as fit together.
fn rerank_all(
    lists: &[CandidateList],
    candidates: &Candidates<'_>,
    scorer: &dyn PairScorer,
    output: &RankedOutput,
    bar: &Bar,
    context: &Context,
) -> Result<Cost> {
    let mut cost = Cost::default();
    output.write(|out| {
        let mut rest = lists;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(queries_at_once(rest));
            rerank_lists(now, candidates, scorer, bar, context, &mut cost, out)?;
            rest = later;
        }
        Ok(())
    })?;
    Ok(cost)
}

/// The query of `--query`.
fn typed_query(text: &str) -> Result<QueryStore> {
    let query = Query { id: QueryId::from("query"), text: QueryText::typed(text) };
    if query.text.is_blank() {
        return usage("--query is empty; there is nothing to rank by");
    }
    Ok(QueryStore::from_records(vec![query])?)
}

/// How many of the next lists are scored together: at least one.
fn queries_at_once(lists: &[CandidateList]) -> usize {
    let mut pairs = 0;
    let fitting = lists.iter().take_while(|list| {
        pairs += list.items.len();
        pairs <= PAIRS_AT_ONCE
    });
    fitting.count().max(1)
}

/// Scores some queries' candidates and writes them in their new order.
fn rerank_lists(
    lists: &[CandidateList],
    candidates: &Candidates<'_>,
    scorer: &dyn PairScorer,
    bar: &Bar,
    context: &Context,
    cost: &mut Cost,
    out: &mut Sink<'_>,
) -> Result<()> {
    let queries: Vec<Query> =
        lists.iter().map(|list| candidates.queries.get(list.query)).collect::<Result<_>>()?;
    let pairs: Vec<(u32, Place)> = (0..)
        .zip(lists)
        .flat_map(|(query, list)| list.items.iter().map(move |&item| (query, item)))
        .collect();
    let mut scores = vec![0.0; pairs.len()];
    // Several queries fit into one piece; a list longer than that is scored piece by piece.
    for (pairs, scores) in pairs.chunks(PAIRS_AT_ONCE).zip(scores.chunks_mut(PAIRS_AT_ONCE)) {
        let mut texts: IndexMap<Place, Item> = IndexMap::new();
        let mut numbered = Vec::with_capacity(pairs.len());
        for &(query, place) in pairs {
            let entry = texts.entry(place);
            numbered.push((query, entry.index() as u32));
            if let Entry::Vacant(entry) = entry {
                entry.insert(candidates.items.get(place)?);
            }
        }
        let texts: Vec<Item> = texts.into_values().collect();
        *cost += scorer.score(&queries, &texts, &numbered, scores, bar, &context.cancel)?;
    }
    let mut rest = scores.as_slice();
    for (list, query) in lists.iter().zip(&queries) {
        let (scores, later) = rest.split_at(list.items.len());
        rest = later;
        let mut order: Vec<usize> = (0..scores.len()).collect();
        // Stable: equal scores keep the first stage's order.
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let entries: Vec<RunEntry> = order
            .iter()
            .map(|&n| RunEntry {
                item: candidates.items.id(list.items[n]).into(),
                score: shortest(scores[n]),
            })
            .collect();
        let item = |place: usize| candidates.items.get(list.items[order[place]]);
        out(&RankedList { query, entries: &entries, item: &item })?;
    }
    Ok(())
}

/// A query and what is to be reranked for it.
struct CandidateList {
    query: Place,
    items: Vec<Place>,
}

/// What is to be reranked, and where its texts are.
struct Candidates<'a> {
    queries: Sources<'a, Query>,
    items: Sources<'a, Item>,
    /// `None`: one query with all items.
    run: Option<&'a Run>,
}

impl<'a> Candidates<'a> {
    /// Every item of a data set for one query.
    fn of_query(queries: &'a QueryStore, data: Option<&'a DataSet>) -> Result<Self> {
        let Some(data) = data else {
            return usage("--query needs the documents: --data FILE (one a line, jsonl or tsv; - is stdin)");
        };
        let items = data.items()?;
        if items.is_empty() {
            anyhow::bail!("{}: no documents to rank", data.path().display());
        }
        Ok(Candidates { queries: Sources(vec![queries]), items: Sources(vec![items]), run: None })
    }

    /// The lists of a run. Texts come from the run itself and, where it has none, from the data set.
    fn of_run(path: &Path, file: &'a RunFile, data: Option<&'a DataSet>) -> Result<Self> {
        if file.run.is_empty() {
            anyhow::bail!("{}: the run is empty", path.display());
        }
        let mut queries = Sources(file.texts.queries.iter().collect());
        let mut items = Sources(file.texts.items.iter().collect());
        let lacks_queries = file.run.iter().any(|(id, _)| queries.find(id.as_str()).is_none());
        let lacks_items = file
            .run
            .iter()
            .any(|(_, entries)| entries.iter().any(|entry| items.find(entry.item.as_str()).is_none()));
        for (what, lacking) in [("queries", lacks_queries), ("documents", lacks_items)] {
            if lacking && data.is_none() {
                let path = path.display();
                return usage(format!(
                    "{path} lacks texts of {what}; give the data set they are in with --data"
                ));
            }
        }
        if let Some(data) = data {
            if lacks_queries {
                let found = DataFlags::queries_beside_items(data);
                queries.0.push(found.context("the run's queries are looked up in --data")?);
            }
            if lacks_items {
                items.0.push(data.items()?);
            }
        }
        Ok(Candidates { queries, items, run: Some(&file.run) })
    }

    /// The lists to rerank; what cannot be is counted as skipped.
    fn lists(&self, depth: Option<usize>, summary: &mut Summary) -> Result<Vec<CandidateList>> {
        let depth = depth.unwrap_or(usize::MAX);
        let Some(run) = self.run else {
            let items: Vec<Place> = self.items.all().take(depth).collect();
            summary.count("beyond depth", (self.items.all().count() - items.len()) as u64);
            return Ok(vec![CandidateList { query: Place { source: 0, position: 0 }, items }]);
        };
        let mut lists = Vec::with_capacity(run.len());
        let mut beyond = 0;
        for (id, entries) in run.iter() {
            let Some(query) = self.queries.find(id.as_str()) else {
                summary.skip(format!("query {id:?}: not in the data set"));
                continue;
            };
            if self.queries.get(query)?.text.is_blank() {
                summary.skip(format!("query {id:?}: its text is empty"));
                continue;
            }
            beyond += entries.len().saturating_sub(depth) as u64;
            let mut list = CandidateList { query, items: Vec::new() };
            for entry in best_first(entries).into_iter().take(depth) {
                match self.items.find(entry.item.as_str()) {
                    Some(item) => list.items.push(item),
                    None => {
                        summary.skip(format!("item {:?} of query {id:?}: not in the data set", entry.item))
                    }
                }
            }
            if !list.items.is_empty() {
                lists.push(list);
            }
        }
        summary.count("beyond depth", beyond);
        if lists.is_empty() {
            let reasons = summary.skipped().join("; ");
            anyhow::bail!(
                "nothing to rerank: no query of the run has a text and an item with one ({reasons})"
            );
        }
        Ok(lists)
    }
}

/// Stores that are asked one after the other.
struct Sources<'a, T>(Vec<&'a Store<T>>);

/// Where a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    source: u32,
    position: u32,
}

impl<T: Record> Sources<'_, T> {
    fn find(&self, id: &str) -> Option<Place> {
        (0..)
            .zip(&self.0)
            .find_map(|(source, store)| store.position(id).map(|position| Place { source, position }))
    }

    fn get(&self, place: Place) -> Result<T> {
        Ok(self.0[place.source as usize].get(place.position)?)
    }

    fn id(&self, place: Place) -> &str {
        self.0[place.source as usize].ids().get(place.position)
    }

    /// Every text of the first store.
    fn all(&self) -> impl Iterator<Item = Place> {
        (0..self.0[0].len() as u32).map(|position| Place { source: 0, position })
    }
}
