//! `loxia rerank`: put the candidates of a first stage into the cross-encoder's order.
//!
//! One query with documents from a file, or a whole run. Runs are scored many queries at a time: the pairs of
//! several queries fill common batches, and texts are read for those queries only.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use loxia::core::{Cost, Item, PairScorer, Query, QueryId, Run, RunEntry};
use loxia::data::write::best_first;
use loxia::data::{DataSet, ItemStore, QueryStore, ReadOptions, RunFile, read_run};

use crate::context::{Bar, Context};
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, query_text, shortest};
use crate::ranked_output::RankedOutput;
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

A run is a TREC run (texts come from --data) or JSON / JSON lines with qid, query, docno, text and, where known,
rank and score; any of them may be gzipped. An output name ending in .jsonl gets JSON lines with the texts,
any other a TREC run.")]
pub(crate) struct RerankFlags {
    /// Cross-encoder: a directory, or hf:owner/name[@revision] in the Hugging Face cache
    #[arg(long, value_name = "DIR")]
    model: String,
    /// Candidates: a TREC run, JSON or JSON lines, plain or gzip
    #[arg(long, value_name = "FILE", conflicts_with = "query", required_unless_present = "query")]
    run: Option<PathBuf>,
    /// One query, for the documents of --data
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
    let candidates = match (&flags.query, &flags.run) {
        (Some(text), _) => Candidates::of_query(text, data.as_ref())?,
        (None, Some(path)) => Candidates::of_run(path, data.as_ref(), &mut summary)?,
        (None, None) => return usage("give --run FILE, or --query TEXT with --data FILE"),
    };
    let mut work = candidates.lists(flags.depth, &mut summary)?;
    let scorer = flags.model_flags.cross_encoder(&flags.model)?;
    let total = work.iter().map(|list| list.items.len() as u64).sum();
    let bar = context.bar(total, "pairs");
    let mut cost = Cost::default();
    output.write(|out| {
        let mut rest = work.as_mut_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut(queries_at_once(rest));
            cost += rerank_lists(now, &candidates, &scorer, &bar, context, out)?;
            rest = later;
        }
        Ok(())
    })?;
    let (done, took) = bar.finish();
    summary
        .fact("model", scorer.info().name)
        .fact("queries", work.len())
        .fact("pairs", cost.pairs)
        .fact("tokens", cost.tokens)
        .count("truncated pairs", cost.truncated)
        .rate("pairs", done, took)
        .fact("output", flags.output.display().to_string());
    if !(output.is_shown_to_people() && summary.outcome() == Outcome::Done) {
        summary.print(context, output.is_stdout())?;
    }
    Ok(summary.outcome())
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
    lists: &mut [CandidateList],
    candidates: &Candidates<'_>,
    scorer: &dyn PairScorer,
    bar: &Bar,
    context: &Context,
    out: &mut dyn FnMut(&Query, &[(RunEntry, &Item)]) -> Result<()>,
) -> Result<Cost> {
    let mut queries = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut place_of: HashMap<u32, u32> = HashMap::new();
    let mut pairs = Vec::new();
    for (index, list) in lists.iter().enumerate() {
        queries.push(candidates.queries().get(list.query)?);
        for &item in &list.items {
            let place = match place_of.get(&item) {
                Some(&place) => place,
                None => {
                    items.push(candidates.items().get(item)?);
                    place_of.insert(item, items.len() as u32 - 1);
                    items.len() as u32 - 1
                }
            };
            pairs.push((index as u32, place));
        }
    }
    let mut scores = vec![0.0; pairs.len()];
    let cost = scorer.score(&queries, &items, &pairs, &mut scores, bar, &context.cancel)?;
    let mut start = 0;
    for (list, query) in lists.iter().zip(&queries) {
        let end = start + list.items.len();
        let mut ranked: Vec<(f32, &Item)> =
            (start..end).map(|pair| (scores[pair], &items[pairs[pair].1 as usize])).collect();
        // Stable: equal scores keep the first stage's order.
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let entries: Vec<(RunEntry, &Item)> = ranked
            .into_iter()
            .map(|(score, item)| (RunEntry { item: item.id.clone(), score: shortest(score) }, item))
            .collect();
        out(query, &entries)?;
        start = end;
    }
    Ok(cost)
}

/// A query, by position, and what is to be reranked for it, by position.
struct CandidateList {
    query: u32,
    items: Vec<u32>,
}

/// What is to be reranked, and where its texts are.
enum Candidates<'a> {
    Query { queries: QueryStore, items: &'a ItemStore },
    Run { file: RunFile, data: Option<&'a DataSet> },
}

impl<'a> Candidates<'a> {
    fn of_query(text: &str, data: Option<&'a DataSet>) -> Result<Self> {
        let query = Query { id: QueryId::from("query"), text: query_text(text) };
        if query.text.is_blank() {
            return usage("--query is empty; there is nothing to rank by");
        }
        let Some(data) = data else {
            return usage("--query needs the documents: --data FILE (one a line, jsonl or tsv; - is stdin)");
        };
        Ok(Candidates::Query { queries: QueryStore::from_records(vec![query])?, items: data.items()? })
    }

    fn of_run(path: &Path, data: Option<&'a DataSet>, summary: &mut Summary) -> Result<Self> {
        let file = read_run(path, &ReadOptions::default())?;
        if file.run.is_empty() {
            anyhow::bail!("{}: the run is empty", path.display());
        }
        for (what, missing) in
            [("queries", file.texts.queries.is_none()), ("documents", file.texts.items.is_none())]
        {
            if missing && data.is_none() {
                return usage(format!(
                    "{} has no texts of {what}; give the data set they are in with --data",
                    path.display()
                ));
            }
        }
        summary.count("duplicates dropped", file.duplicates.count);
        let candidates = Candidates::Run { file, data };
        // Opens the stores now, so that the accessors below cannot fail.
        if let Candidates::Run { file, data: Some(data) } = &candidates {
            if file.texts.queries.is_none() {
                data.queries().context("the run's queries are looked up in --data")?;
            }
            if file.texts.items.is_none() {
                data.items()?;
            }
        }
        Ok(candidates)
    }

    fn queries(&self) -> &QueryStore {
        match self {
            Candidates::Query { queries, .. } => queries,
            Candidates::Run { file, data } => file.texts.queries.as_ref().unwrap_or_else(|| {
                data.and_then(|data| data.queries().ok()).expect("opened when the run was read")
            }),
        }
    }

    fn items(&self) -> &ItemStore {
        match self {
            Candidates::Query { items, .. } => items,
            Candidates::Run { file, data } => file.texts.items.as_ref().unwrap_or_else(|| {
                data.and_then(|data| data.items().ok()).expect("opened when the run was read")
            }),
        }
    }

    /// The lists to rerank; what cannot be is counted as skipped.
    fn lists(&self, depth: Option<usize>, summary: &mut Summary) -> Result<Vec<CandidateList>> {
        let depth = depth.unwrap_or(usize::MAX);
        match self {
            Candidates::Query { items, .. } => {
                summary.count("beyond depth", items.len().saturating_sub(depth) as u64);
                Ok(vec![CandidateList { query: 0, items: (0..items.len().min(depth) as u32).collect() }])
            }
            Candidates::Run { file, .. } => self.lists_of(&file.run, depth, summary),
        }
    }

    fn lists_of(&self, run: &Run, depth: usize, summary: &mut Summary) -> Result<Vec<CandidateList>> {
        let (queries, items) = (self.queries(), self.items());
        let mut lists = Vec::with_capacity(run.len());
        let mut beyond = 0;
        for (id, entries) in run.iter() {
            let Some(query) = queries.position(id.as_str()) else {
                summary.skip(format!("query {id:?}: not in the data set"));
                continue;
            };
            if queries.get(query)?.text.is_blank() {
                summary.skip(format!("query {id:?}: its text is empty"));
                continue;
            }
            beyond += entries.len().saturating_sub(depth) as u64;
            let mut list = CandidateList { query, items: Vec::new() };
            for entry in best_first(entries).into_iter().take(depth) {
                match items.position(entry.item.as_str()) {
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
            anyhow::bail!("nothing to rerank: none of the run's queries and items are in the data set");
        }
        Ok(lists)
    }
}
