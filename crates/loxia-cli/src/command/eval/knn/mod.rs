//! `loxia eval knn`: recall of search methods against exact search, on stored scores or with a model.

mod comparison;
mod estimates;
mod grid;
mod input;
mod output;
mod page;
mod targets;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use loxia::search::MethodName;

use super::matrix;
use crate::command::first_stage::FirstStageFlags;
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, Positions};
use crate::kept_scores::KeptScoresFlags;
use crate::output::Stdout;
use crate::report::{Summary, grouped};
use crate::text_output::{claim, write_text_to};
use crate::typed::Typed;
use input::Rows;

/// Which vectors the methods may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Vectors {
    /// Those of --query-vectors and --item-vectors
    Files,
    /// Made from the texts of --data by TF-IDF: no encoder is needed
    Tfidf,
    /// None: methods start at random or from the anchor rows
    None,
}

/// What a search is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Accounting {
    /// Each pair once, and every scored item may be in the answer
    Once,
    /// As in ANNCUR's publication: anchor items are paid for beside the retrieved ones and do not join the answer,
    /// those of fixed-item are free, and the best split of the budget is taken on the test rows for each k
    Paper,
}

/// Compare search methods with exact search, on a stored score matrix or with a cross-encoder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia eval knn --scores S.npy --item-vectors E.npy --query-vectors Q.npy --anchors 0..500 --test 500..700 \\
    --methods rerank,anncur,adacur,axn,posterior --k 1,10,50,100 --cost 50,100,200,500 --report knn.html
  loxia eval knn --model MODEL_DIR --dual QUERY_DIR,ITEM_DIR --data BEIR_DIR --anchors 0..200 --test 200..300 \
    --keep-scores KEPT

With --model, anchors and tests are queries of --data by position; each is scored against every item first, for the \
truth is not known otherwise. --keep-scores makes a run that was stopped, and the next one, start from what is there.
Every constant of a method is chosen on anchor rows; test rows are only searched. A pair is paid for once, and \
every scored item may be in the answer. Methods that draw at random are averaged over --seeds.
mean12 is the mean over k = 10, 50, 100 and cost 50, 100, 200, 500.
Methods: exact, rerank, posterior; as published: anncur, adacur, axn; centred and with a ridge: anncur+, adacur+, \
axn+; variants: anncur-columns, anncur-kmeans, anncur-dual, adacur-random, adacur-softmax, adacur-softmax-split, \
adacur-uniform, adacur-variance, adacur-variance-all, adacur-split, axn-dual, axn-factors; with --item-scores: itemcur, fixed-item; a bound that looks at the test rows: anncur-oracle.")]
pub(crate) struct KnnFlags {
    #[command(flatten)]
    typed: Typed,
    /// Scores of queries (rows) against items: a matrix directory or an npy file [default: scored with --model]
    #[arg(long, value_name = "MATRIX")]
    scores: Option<PathBuf>,
    /// Cross-encoder to score with: a directory, or hf:owner/name[@revision] in the Hugging Face cache
    #[arg(long, value_name = "DIR")]
    model: Option<String>,
    /// Vectors of the items, in the order of the columns: npy or a directory that `embed` wrote
    #[arg(long, value_name = "FILE")]
    item_vectors: Option<PathBuf>,
    /// Vectors of the queries, in the order of the rows
    #[arg(long, value_name = "FILE")]
    query_vectors: Option<PathBuf>,
    /// Dual encoder whose vectors to use: a directory, QUERY_DIR,ITEM_DIR, or hf:owner/name[@revision]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["vectors", "query_vectors", "item_vectors"])]
    dual: Option<String>,
    /// Which vectors to use [default: the files, if they are given; with --model tfidf]
    #[arg(long, value_enum)]
    vectors: Option<Vectors>,
    /// Where the texts are, for --model, --dual and --vectors tfidf. With --scores: queries in the order of the
    /// rows, items in that of the columns
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    #[command(flatten)]
    data_flags: DataFlags,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    kept_scores: KeptScoresFlags,
    #[command(flatten)]
    first_stage: FirstStageFlags,
    /// Scores of items in the query slot: all items (rows) against anchor items, or anchor items (rows) against all
    #[arg(long, value_name = "MATRIX")]
    item_scores: Option<PathBuf>,
    /// Which items are the anchor items of --item-scores [default: the first ones]
    #[arg(long, value_name = "A..B")]
    item_anchors: Option<Positions>,
    /// Rows, or queries, that methods learn from
    #[arg(long, value_name = "A..B")]
    anchors: Positions,
    /// Rows, or queries, that are searched
    #[arg(long, value_name = "A..B")]
    test: Positions,
    /// Methods to compare [default: rerank,anncur,adacur,axn,posterior; rerank only where there are vectors or a first
    /// stage]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    methods: Vec<MethodName>,
    /// Sizes of the top that is looked for
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,10,50,100", value_parser = at_least_one)]
    k: Vec<u64>,
    /// Pairs that a search may pay for
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "50,100,200,500", value_parser = at_least_one)]
    cost: Vec<u64>,
    /// Rounds of the adaptive methods; published tables used 5
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Seeds of the methods that draw at random
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,2,3,4")]
    seeds: Vec<u64>,
    /// Compare with only the first N anchor rows as well, for each N of the list [default: all of them]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = at_least_one)]
    anchor_counts: Vec<u64>,
    /// What a search is charged for
    #[arg(long, value_enum, default_value = "once")]
    accounting: Accounting,
    /// Also measure how far the recall estimate of posterior can be trusted
    #[arg(long)]
    estimate: bool,
    /// Also stop at these recall targets, for every k: what posterior then reaches, and what it costs
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = share)]
    target: Vec<f64>,
    /// Write an HTML report with the plots
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Put the study of `loxia eval matrix` into the report as well: spectrum, heat maps of recall and error
    #[arg(long)]
    study_matrix: bool,
    /// Replace an existing report
    #[arg(long)]
    overwrite: bool,
    /// Print the table in Markdown
    #[arg(long)]
    markdown: bool,
}

/// What is compared unless methods are named.
const USUAL_METHODS: [MethodName; 5] =
    [MethodName::Rerank, MethodName::Anncur, MethodName::Adacur, MethodName::Axn, MethodName::Posterior];

fn at_least_one(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&number: &u64| number >= 1);
    number.ok_or_else(|| "it must be a whole number, at least 1".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let target = text.parse().ok().and_then(|value| loxia::core::RecallTarget::new(value).ok());
    target.map(|target| target.get()).ok_or_else(|| "it must be above 0 and at most 1".to_owned())
}

/// Reads, searches, prints.
pub(super) fn run(flags: KnnFlags, context: &Context) -> Result<Outcome> {
    if context.json {
        flags.typed.refuse(&["markdown"], "--json prints objects")?;
    }
    if flags.report.is_none() {
        flags.typed.refuse(&["overwrite", "study-matrix"], "it is for --report")?;
    }
    let report = match &flags.report {
        Some(path) => Some((path, claim(path, flags.overwrite)?)),
        None => None,
    };
    let mut summary = Summary::default();
    let rows = Rows::read(&flags, context, &mut summary)?;
    let plan = plan(&flags, &rows)?;
    if flags.methods.is_empty() && !plan.methods.contains(&MethodName::Rerank) {
        context.say("rerank is left out: there are neither vectors nor a --first-stage to begin with");
    }
    if let Some(k) = plan.ks.iter().find(|&&k| k > rows.scores.cols()) {
        let (k, items) = (grouped(*k as u64), grouped(rows.scores.cols() as u64));
        context.say(format_args!("--k {k}: there are {items} items, so that no search finds more"));
    }
    let bar = context.bar(plan.searches(rows.test.len()), "searches");
    let results = plan.run(&rows, &bar, &context.cancel, &|text| context.say(text));
    let (searches, took) = bar.finish();
    let results = results?;
    let lacks_estimate = flags.estimate && results.iter().all(|of| of.estimates.is_empty());
    let lacks_targets = !flags.target.is_empty() && results.iter().all(|of| of.targets.is_empty());
    if lacks_estimate || lacks_targets {
        let why = if plan.methods.contains(&MethodName::Posterior) {
            "there are too few anchors or items to calibrate one (about 20 anchors are the least)"
        } else {
            "posterior alone makes one, and is not among --methods"
        };
        context.say(format_args!("nothing is told of the recall estimate or of targets: {why}"));
    }

    if let Some((path, existing)) = report {
        let study = if flags.study_matrix { Some(study(&rows, context)?) } else { None };
        let html = page::render(&plan, &rows, &results, study.as_ref());
        write_text_to(path, existing, |out| Ok(out.write_all(html.as_bytes())?))?;
    }
    let mut out = std::io::BufWriter::new(Stdout::lock());
    if context.json {
        output::write_json(&plan, &results, &mut out)?;
    } else {
        output::write_tables(&plan, &results, flags.markdown, &mut out)?;
    }
    out.flush()?;
    summary.fact("queries", rows.test.len()).fact("items", rows.scores.cols());
    summary.rate("searches", searches, took);
    if let Some(path) = &flags.report {
        summary.fact("report", path.display().to_string());
    }
    summary.print(context, true)?;
    Ok(Outcome::Done)
}

/// The matrix of all rows, with the settings that `loxia eval matrix` has unless told otherwise.
fn study(rows: &Rows, context: &Context) -> Result<(matrix::Plan, matrix::Study)> {
    let plan = matrix::Plan::usual(rows.scores.rows(), rows.scores.cols());
    let bar = context.bar(plan.work(), "approximations");
    let study = plan.run(&rows.scores, &bar, &context.cancel);
    bar.finish();
    Ok((plan, study?))
}

fn plan(flags: &KnnFlags, rows: &Rows) -> Result<grid::Plan> {
    let all = rows.anchors.len();
    let mut anchor_counts = distinct(&flags.anchor_counts);
    if let Some(count) = anchor_counts.iter().find(|&&count| count > all as u64) {
        return usage(format!("--anchor-counts {count}, but --anchors holds {all} rows"));
    }
    if anchor_counts.is_empty() {
        anchor_counts.push(all as u64);
    }
    if flags.seeds.is_empty() {
        return usage("--seeds must name at least one seed");
    }
    let number = |values: Vec<u64>| values.into_iter().map(|value| value as usize).collect();
    let methods = if flags.methods.is_empty() {
        USUAL_METHODS.into_iter().filter(|&name| name != MethodName::Rerank || rows.can_rerank()).collect()
    } else {
        distinct(&flags.methods)
    };
    Ok(grid::Plan {
        methods,
        ks: number(distinct(&flags.k)),
        costs: distinct(&flags.cost),
        rounds: flags.rounds as usize,
        seeds: distinct(&flags.seeds),
        anchor_counts: number(anchor_counts),
        targets: distinct(&flags.target),
        axn_shortlist: flags.first_stage.axn_shortlist(),
        as_in_paper: flags.accounting == Accounting::Paper,
        estimate: flags.estimate || flags.report.is_some(),
    })
}

/// Each value once, in the order given.
fn distinct<T: Clone + PartialEq>(values: &[T]) -> Vec<T> {
    let mut out: Vec<T> = Vec::with_capacity(values.len());
    for value in values {
        if !out.contains(value) {
            out.push(value.clone());
        }
    }
    out
}
