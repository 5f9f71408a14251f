//! `loxia retrieve`: the best items of a collection by a first-stage method, as a TREC run.

mod dual;
mod lexical;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use loxia::core::{Query, Ranking, RunEntry, Scored};
use loxia::data::{ItemStore, QueryStore};

use crate::command::bench::tell_speed;
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, Positions, shortest};
use crate::ranked_output::{RankedList, RankedOutput, Sink};
use crate::report::Summary;

/// Retrieve the best items for every query with a first-stage method.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia retrieve --method bm25 --data BEIR_DIR --split test --k 100 --output BM25.trec
  loxia retrieve --method tfidf --data WORLDS_DIR --world verb.motion --split test --output TFIDF.trec
  loxia retrieve --method dual --dual MODEL_DIR --data BEIR_DIR --split test --k 100 --output DUAL.trec
  loxia retrieve --dual QUERY_DIR,ITEM_DIR --vectors ITEM_VECTORS --data BEIR_DIR --output DUAL.trec

bm25 and tfidf find only items that share a word with the query, so a list may be shorter than --k; a mention \
counts three times beside its context. Both index the collection in memory each time.
BM25 is tantivy's, with k1 = 1.2 and b = 0.75 fixed (Anserini's defaults are 0.9 and 0.4: scores and, slightly, \
ranks differ). TF-IDF is scikit-learn's TfidfVectorizer() with cosine.")]
pub(crate) struct RetrieveFlags {
    /// How to retrieve [default: dual where --dual is given, else bm25]
    #[arg(long, value_enum)]
    method: Option<Method>,
    /// Dual encoder: a directory, QUERY_DIR,ITEM_DIR, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR", alias = "model")]
    dual: Option<String>,
    /// Data set with queries and items
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Queries from another data set or file than the items
    #[arg(long, value_name = "PATH")]
    queries: Option<PathBuf>,
    /// Item vectors from `loxia embed --side item` (dual) [default: embedded now]
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
    /// What bm25 reads words as [default: english]
    #[arg(long, value_enum)]
    stemming: Option<Stemming>,
    /// Which queries, by position: A..B (half-open) [default: all]
    #[arg(long, value_name = "A..B")]
    rows: Option<Positions>,
    /// Items for each query
    #[arg(long, short, value_name = "N", default_value_t = 1000)]
    k: usize,
    /// Where to write the run [default: stdout]
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Name of the run, in its last column [default: loxia-METHOD]
    #[arg(long, value_name = "NAME")]
    tag: Option<String>,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// First-stage methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// BM25 over words
    Bm25,
    /// Cosine of TF-IDF weights of words
    Tfidf,
    /// Exact scan over a dual encoder's vectors
    Dual,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Bm25 => "bm25",
            Method::Tfidf => "tfidf",
            Method::Dual => "dual",
        }
    }
}

/// What words are read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stemming {
    /// English stems, without stop words
    English,
    /// Lower-cased words as they are
    None,
}

impl RetrieveFlags {
    /// The method, and whether every flag that was given belongs to it.
    fn method(&self) -> Result<Method> {
        let default = if self.dual.is_some() { Method::Dual } else { Method::Bm25 };
        let method = self.method.unwrap_or(default);
        let dual_only = [("dual", self.dual.is_some()), ("vectors", self.vectors.is_some())];
        let dual_only = dual_only.into_iter().filter_map(|(name, given)| given.then_some(name));
        match dual_only.chain(self.model_flags.given()).next() {
            Some(flag) if method != Method::Dual => {
                return usage(format!("--{flag} is a flag of --method dual, not of {}", method.name()));
            }
            _ => {}
        }
        if self.stemming.is_some() && method != Method::Bm25 {
            return usage(format!("--stemming is a flag of --method bm25, not of {}", method.name()));
        }
        Ok(method)
    }
}

/// What is retrieved, and for whom.
struct Task<'a> {
    queries: Vec<Query>,
    items: &'a ItemStore,
    k: usize,
}

/// Runs the command.
pub(crate) fn run(flags: RetrieveFlags, context: &Context) -> Result<Outcome> {
    let method = flags.method()?;
    if flags.k == 0 {
        return usage("--k must be at least 1");
    }
    let tag = flags.tag.clone().unwrap_or_else(|| format!("loxia-{}", method.name()));
    // The output is checked first: hours of work must not end in a refusal.
    let output = RankedOutput::new(&flags.output, flags.overwrite, &tag, context)?;
    let data = flags.data_flags.of_items(&flags.data, flags.queries.as_deref()).open(&flags.data)?;
    let query_data = flags.queries.as_ref().map(|path| flags.data_flags.open_queries(path)).transpose()?;
    let queries = match &query_data {
        Some(query_data) => query_data.queries()?,
        None => DataFlags::queries_beside_items(&data).context("give them with --queries")?,
    };
    let items = data.items()?;
    let rows = match &flags.rows {
        Some(range) => range.within(queries.len(), "queries")?,
        None => 0..queries.len(),
    };
    if rows.is_empty() || items.is_empty() {
        return usage(format!("nothing to retrieve: {} queries, {} items", rows.len(), items.len()));
    }
    let mut summary = Summary::default();
    let task = Task { queries: read_queries(queries, rows, &mut summary)?, items, k: flags.k };
    summary.fact("method", method.name());
    match method {
        Method::Bm25 => {
            let stemming = flags.stemming.unwrap_or(Stemming::English);
            lexical::bm25(&task, stemming, &output, context, &mut summary)?;
        }
        Method::Tfidf => lexical::tfidf(&task, &output, context, &mut summary)?,
        Method::Dual => {
            let Some(model) = &flags.dual else {
                return usage("--method dual needs the dual encoder: --dual DIR");
            };
            let encoder = flags.model_flags.text_encoder(model, context)?;
            let vectors = flags.vectors.as_deref();
            let took = dual::run(&task, &encoder, vectors, &output, context, &mut summary)?;
            tell_speed(
                &mut summary,
                flags.model_flags.options().precision,
                encoder.most_scratch_bytes(),
                took,
                0,
            );
        }
    }
    summary.fact("output", flags.output.display().to_string()).print(context, output.is_stdout())?;
    Ok(summary.outcome())
}

fn read_queries(
    queries: &QueryStore,
    rows: std::ops::Range<usize>,
    summary: &mut Summary,
) -> Result<Vec<Query>> {
    let mut read = queries.read(rows)?;
    read.retain(|query| {
        let blank = query.text.is_blank();
        if blank {
            summary.skip(format!("query {:?}: its text is empty", query.id));
        }
        !blank
    });
    Ok(read)
}

/// Sends one query's list on its way.
fn send(query: &Query, ranking: &Ranking, items: &ItemStore, out: &mut Sink<'_>) -> Result<()> {
    let entry = |scored: &Scored| RunEntry {
        item: items.ids().get(scored.item).into(),
        score: shortest(scored.score),
    };
    let entries: Vec<RunEntry> = ranking.as_slice().iter().map(entry).collect();
    let item = |place: usize| Ok(items.get(ranking.as_slice()[place].item)?);
    out(&RankedList { query, entries: &entries, item: &item })
}
