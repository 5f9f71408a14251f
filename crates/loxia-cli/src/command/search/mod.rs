//! `loxia search`: the cross-encoder's own top k of a whole collection, for a budget of scored pairs.

mod answer;
mod method;
mod queries;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use loxia::core::{Answer, Budget, Cost, PairScorer, Query, RecallTarget, Stop, StoppedBy};
use loxia::data::{DataSet, ItemStore};
use loxia::search::{EstimateReach, Index, Method, MethodName, QueryView, search_with};

use super::index::items::OrderedItems;
use super::index::vectors::VectorSpace;
use super::index::{open_index, or_damage};
use crate::command::bench::tell_speed;
use crate::command::first_stage::FirstStageFlags;
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::{DataFlags, ModelFlags, Positions};
use crate::kept_scores::KeptScoresFlags;
use crate::report::{Summary, grouped, three_digits};
use crate::typed::Typed;
use answer::{AnswerOutput, Found};

/// Pairs paid for each query when no limit is given.
const DEFAULT_BUDGET: u64 = 200;
/// What is left of a deadline for the first batch, however long the query took to encode.
const LEAST_DEADLINE: Duration = Duration::from_millis(1);

/// Search a collection for the items that a cross-encoder scores highest.
///
/// The index names what is worth scoring, in rounds; the answer is the best of what was scored, with an estimate of
/// how much of the true top k it holds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia search --index INDEX --model MODEL_DIR --query \"how do crossbills feed\" --k 10
  loxia search --index INDEX --model MODEL_DIR --dual QUERY_DIR,ITEM_DIR --data WORLDS_DIR --world verb.motion \\
      --split test --query \"he [[ran]] home\" --recall 0.95
  loxia search --index INDEX --model MODEL_DIR --data BEIR_DIR --queries QUERIES.jsonl --budget 500 --output RUN.trec
  loxia search --index INDEX --model MODEL_DIR --data ITEMS.jsonl -i

A search ends at the first limit that is reached: --budget, --recall or --deadline; without any of them after 200
pairs. A query is plain text, a mention as \"left [[mention]] right\", or JSON: {\"text\": ...} or {\"left\": ...,
\"mention\": ..., \"right\": ...}. An output name ending in .jsonl gets one JSON object an answer with its cost and
estimated recall, any other a TREC run.")]
pub(crate) struct SearchFlags {
    #[command(flatten)]
    typed: Typed,
    /// The index
    #[arg(long, value_name = "INDEX")]
    index: PathBuf,
    /// The cross-encoder it was built with
    #[arg(long, value_name = "DIR")]
    model: String,
    /// The dual encoder it was built with, if it was built with one
    #[arg(long, value_name = "DIR")]
    dual: Option<String>,
    /// Data set with the items; given again for items that were added from elsewhere [default: where they were when
    /// the index was built]
    #[arg(long, value_name = "PATH")]
    data: Vec<PathBuf>,
    /// One query
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["queries", "interactive"])]
    query: Option<String>,
    /// A file of queries or a data set [default: the queries of --data]
    #[arg(long, value_name = "PATH", conflicts_with = "interactive")]
    queries: Option<PathBuf>,
    /// Read queries line by line from stdin
    #[arg(long, short)]
    interactive: bool,
    /// Which queries of a file or data set, by position: A..B (half-open) [default: all]
    #[arg(long, value_name = "A..B")]
    rows: Option<Positions>,
    /// Items for each query
    #[arg(long, short, value_name = "N", default_value_t = 10)]
    k: usize,
    /// Pairs that may be scored for each query [default: 200 if no other limit is given]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// Stop when the estimated recall of the top k reaches this, above 0 and at most 1
    #[arg(long, value_name = "R")]
    recall: Option<f64>,
    /// Stop after as many milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    deadline: Option<u64>,
    /// Rounds that a budget is spent in [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// How to choose what is scored; other methods than posterior, exact and rerank need INDEX.anchors
    #[arg(long, value_name = "NAME", default_value = "posterior")]
    method: MethodName,
    #[command(flatten)]
    first_stage: FirstStageFlags,
    /// Where to write the answers [default: stdout]
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Name of the run, in its last column
    #[arg(long, value_name = "NAME", default_value = "loxia-search")]
    tag: String,
    #[command(flatten)]
    kept_scores: KeptScoresFlags,
    #[command(flatten)]
    model_flags: ModelFlags,
    #[command(flatten)]
    data_flags: DataFlags,
}

/// Everything that a search needs.
struct Engine<'a> {
    /// Where the index is.
    index: &'a Path,
    method: Box<dyn Method>,
    items: OrderedItems<'a>,
    space: Option<VectorSpace>,
    scorer: Box<dyn PairScorer>,
    k: usize,
    stop: Stop,
    /// What its estimates can say, where it makes any.
    reach: Option<EstimateReach>,
}

/// Runs the command.
pub(crate) fn run(flags: SearchFlags, context: &Context) -> Result<Outcome> {
    let stop = flags.stop()?;
    let batch = flags.query.is_none() && !flags.interactive;
    let output = AnswerOutput::new(&flags.output, flags.overwrite, &flags.tag, batch, context)?;
    let asked = flags.query.as_deref().map(queries::typed).transpose()?;
    let index = open_index(&flags.index)?;
    if flags.recall.is_some()
        && !index.posterior().is_calibrated()
        && stop.budget.is_none()
        && stop.deadline.is_none()
    {
        return usage(format!(
            "{} has no calibrated recall estimate (too few anchors), so --recall would never be reached; give \
             --budget or --deadline",
            flags.index.display()
        ));
    }
    let data = flags.open_data(&index)?;
    let stores: Vec<&ItemStore> = data.iter().map(|data| Ok(data.items()?)).collect::<Result<_>>()?;
    let mut summary = Summary::default();
    let items = OrderedItems::of_index(&index, &flags.index, stores, context)?;
    let model =
        Arc::new(flags.model_flags.cross_encoder_and(&flags.model, flags.dual.as_deref(), context)?);
    super::index::check_model(&index, &flags.index, &model.info().digest, context)?;
    let stage = flags.first_stage.first_stage.as_ref();
    let stage = stage.map(|stage| stage.over(&items, context, &mut summary)).transpose()?.flatten();
    let space = match (flags.method, flags.dual.as_deref()) {
        (MethodName::Exact, _) => None,
        (MethodName::Rerank, _) if stage.is_some() => None,
        (_, dual) => VectorSpace::of_index(&index, &flags.index, dual, &flags.model_flags, context)?,
    };
    if index.posterior().vector_dimensions().is_none() || index.query_encoder().is_some() {
        flags.typed.refuse(&["dual"], "the index was built without a dual encoder")?;
    } else if space.is_none() && flags.typed.has("dual") {
        context.say(format_args!("--dual is not used: --method {} needs no vectors here", flags.method));
    }
    summary.fact("index", flags.index.display().to_string()).fact("method", flags.method.to_string());
    summary.fact("model", model.info().name);
    let method = method::of(&flags, index, stage, context)?;
    let scorer = flags.kept_scores.around(model.clone(), &mut summary)?;
    let reach = method.estimate_reach(flags.k);
    let engine = Engine { index: &flags.index, method, items, space, scorer, k: flags.k, stop, reach };
    engine.remarks(context);
    let totals = match (asked, flags.interactive) {
        (Some(query), _) => engine.answer_all(&[query], &output, context)?,
        (None, true) => engine.converse(&output, context)?,
        (None, false) => {
            let queries = queries::of_data(&flags, &data[0], &mut summary)?;
            engine.answer_all(&queries, &output, context)?
        }
    };
    totals.tell(&engine, &mut summary);
    if batch {
        tell_speed(
            &mut summary,
            flags.model_flags.options().precision,
            model.most_scratch_bytes(),
            totals.took,
            0,
        );
    }
    // A person who reads answers has read their costs with them.
    if batch || context.json && !output.is_stdout() {
        summary.fact("output", flags.output.display().to_string()).print(context, output.is_stdout())?;
    }
    Ok(summary.outcome())
}

impl SearchFlags {
    fn stop(&self) -> Result<Stop> {
        if self.k == 0 {
            return usage("--k must be at least 1");
        }
        let recall = match self.recall.map(RecallTarget::new).transpose() {
            Ok(recall) => recall,
            Err(error) => return usage(format!("--recall: {error}")),
        };
        if self.recall.is_some() && !matches!(self.method, MethodName::Posterior | MethodName::Exact) {
            return usage(format!("--recall needs an estimate, which {} does not make", self.method));
        }
        if recall.is_some() {
            self.typed.refuse(&["rounds"], "a recall target looks at its estimate in rounds of its own")?;
        }
        let name = self.method;
        if !name.is_adaptive() {
            self.typed.refuse(&["rounds"], &format!("{name} does not work in rounds"))?;
        } else if self.budget.is_none() && self.deadline.is_some() {
            self.typed.refuse(&["rounds"], "they divide a --budget, and there is none")?;
        }
        if !name.has_first_stage() {
            self.typed.refuse(&["first-stage"], &format!("{name} has none"))?;
        }
        if !name.is_axn() {
            self.typed.refuse(&["axn-shortlist"], "it is for --method axn and its variants")?;
        }
        if self.query.is_some() || self.interactive {
            self.typed.refuse(&["rows"], "it chooses among the queries of a file")?;
        }
        let unlimited = recall.is_none() && self.deadline.is_none() && self.method != MethodName::Exact;
        let budget = self.budget.or(unlimited.then_some(DEFAULT_BUDGET)).map(Budget);
        Ok(Stop { budget, recall, deadline: self.deadline.map(Duration::from_millis) })
    }

    /// The data sets of the flags, or those that the index was built from.
    fn open_data(&self, index: &Index) -> Result<Vec<DataSet>> {
        if !self.data.is_empty() {
            let open = |path: &PathBuf| self.data_flags.of_items(path, self.queries.as_deref()).open(path);
            return self.data.iter().map(open).collect();
        }
        if !self.queries.as_ref().is_some_and(|path| path.is_dir()) {
            let reason = "they say what of a data set, and neither --data nor --queries is one";
            self.typed.refuse(&["world", "split", "data-format"], reason)?;
        }
        if index.sources().is_empty() {
            return usage(format!(
                "{} does not say where its items are: give the data set with --data",
                self.index.display()
            ));
        }
        let open = |source| {
            DataFlags::open_source(source)
                .context("the index was built from there; if it has moved, say where it is with --data")
        };
        index.sources().iter().map(open).collect()
    }
}

impl Engine<'_> {
    /// What a person may not expect of the flags.
    fn remarks(&self, context: &Context) {
        let items = self.items.len();
        if self.k > items {
            let (k, items) = (grouped(self.k as u64), grouped(items as u64));
            context
                .say(format_args!("--k {k} is above the number of items: answers hold all {items} at most"));
        }
        if let Some(Budget(budget)) = self.stop.budget.filter(|budget| budget.0 < self.k.min(items) as u64) {
            context.say(format_args!(
                "--budget {budget} is below --k {}: answers hold as many items as were scored",
                self.k
            ));
        }
        let Some(reach) = self.reach else { return };
        let k = self.k.min(items);
        if let Some(target) = self.stop.recall.filter(|&target| !reach.certifies(target)) {
            let limits = [
                self.stop
                    .budget
                    .filter(|budget| budget.0 < items as u64)
                    .map(|budget| format!("to the budget of {} pairs", grouped(budget.0))),
                self.stop.deadline.map(|deadline| format!("to the deadline of {} ms", deadline.as_millis())),
            ];
            let limits: Vec<String> = limits.into_iter().flatten().collect();
            let end = match limits.is_empty() {
                true => format!("until all items are scored ({} pairs)", grouped(items as u64)),
                false => limits.join(" or "),
            };
            context.say(format_args!(
                "--recall {} cannot be certified: for k = {k} the largest target that the estimate of this index can \
                 certify is {}. Every search goes on {end}",
                target.get(),
                reach.largest_target
            ));
        }
        if !reach.calibrated {
            context.say(format_args!(
                "the recall estimate is calibrated for k up to {}: for k = {k} it goes by that of k = {0}",
                reach.nearest
            ));
        }
    }

    /// Searches for one query.
    fn search(&self, query: &Query, context: &Context) -> Result<Answer> {
        let started = Instant::now();
        let vector = self.space.as_ref().map(|space| space.query(query, context)).transpose()?;
        let view = QueryView { id: query.id.as_str(), vector: vector.as_deref(), text: Some(&query.text) };
        let one = std::slice::from_ref(query);
        // Encoding the query is part of the time that a person waits.
        let left = |deadline: Duration| deadline.saturating_sub(started.elapsed()).max(LEAST_DEADLINE);
        let stop = Stop { deadline: self.stop.deadline.map(left), ..self.stop };
        let answer =
            search_with(&*self.method, &view, self.k, &stop, &context.cancel, |items, scores, cancel| {
                let texts = items.iter().map(|&item| self.items.get(item)).collect::<Result<Vec<_>, _>>();
                let texts = texts.map_err(|error| loxia::core::Error::Scorer(Box::new(error)))?;
                let pairs: Vec<(u32, u32)> = (0..texts.len() as u32).map(|item| (0, item)).collect();
                Ok(self.scorer.score(one, &texts, &pairs, scores, &loxia::core::NoProgress, cancel)?)
            });
        answer.map_err(|error| or_damage(error, self.index, context))
    }

    /// Answers one query after the other.
    fn answer_all(&self, queries: &[Query], output: &AnswerOutput, context: &Context) -> Result<Totals> {
        let mut totals = Totals::default();
        let shown = output.is_for_people() && output.is_stdout();
        let bar = if shown { context.hidden_bar() } else { context.bar(queries.len() as u64, "queries") };
        let answered = output.write(|out| {
            for query in queries {
                let answer = self.search(query, context)?;
                totals.add(&answer);
                out(&Found {
                    query,
                    answer: &answer,
                    items: &self.items,
                    target: self.stop.recall,
                    reach: self.reach,
                    k: self.k,
                })?;
                loxia::core::Progress::advance(&bar, 1);
            }
            Ok(())
        });
        let (_, took) = bar.finish();
        totals.took = took;
        answered.map(|()| totals)
    }

    /// Answers queries as they are typed; one that cannot be answered does not end the conversation.
    fn converse(&self, output: &AnswerOutput, context: &Context) -> Result<Totals> {
        let mut totals = Totals::default();
        output.write(|out| {
            for line in queries::lines(context) {
                let query = match queries::typed(&line?) {
                    Ok(query) => query,
                    Err(error) => {
                        crate::output::tell(format_args!("error: {error}"));
                        continue;
                    }
                };
                // Ctrl-C ends the program between two queries, and cancels within one.
                let bar = context.hidden_bar();
                let answer = self.search(&query, context);
                totals.took += bar.finish().1;
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) if context.cancel.is_cancelled() => return Err(error),
                    Err(error) => {
                        crate::output::tell(format_args!("error: {error:#}"));
                        continue;
                    }
                };
                totals.add(&answer);
                out(&Found {
                    query: &query,
                    answer: &answer,
                    items: &self.items,
                    target: self.stop.recall,
                    reach: self.reach,
                    k: self.k,
                })?;
            }
            Ok(())
        })?;
        Ok(totals)
    }
}

/// What all answers cost together.
#[derive(Default)]
struct Totals {
    queries: u64,
    cost: Cost,
    estimates: Vec<f64>,
    reached: u64,
    out_of_time: u64,
    took: Duration,
}

impl Totals {
    fn add(&mut self, answer: &Answer) {
        self.queries += 1;
        self.cost += answer.cost;
        self.estimates.extend(answer.recall_estimate.map(|estimate| estimate.mean));
        self.reached += u64::from(answer::target_reached(answer));
        self.out_of_time += u64::from(answer.stopped_by == StoppedBy::Deadline);
    }

    fn tell(&self, engine: &Engine<'_>, summary: &mut Summary) {
        let queries = self.queries.max(1) as f64;
        summary
            .fact("items", engine.items.len())
            .fact("queries", self.queries)
            .fact("pairs paid", self.cost.pairs)
            .count("pairs scored before", self.cost.cached)
            .fact_as(
                "paid a query",
                three_digits(self.cost.pairs as f64 / queries),
                self.cost.pairs as f64 / queries,
            )
            .fact("tokens", self.cost.tokens)
            .count("truncated pairs", self.cost.truncated);
        if !self.estimates.is_empty() {
            let mean = self.estimates.iter().sum::<f64>() / self.estimates.len() as f64;
            summary.fact_as("estimated recall", format!("{mean:.3} on average"), mean);
        }
        if let Some(target) = engine.stop.recall {
            let text = format!("{} reached by {} of {} queries", target.get(), self.reached, self.queries);
            summary.fact_as("recall target", text, target.get());
            summary.fact_as("targets reached", "", self.reached);
        }
        if engine.stop.deadline.is_some() {
            let text = format!("{} of {} queries", grouped(self.out_of_time), grouped(self.queries));
            summary.fact_as("stopped by the deadline", text, self.out_of_time);
        }
        let rate = self.cost.pairs as f64 / self.took.as_secs_f64().max(1e-9);
        summary.rate("queries", self.queries, self.took);
        summary.fact_as("pairs a second", three_digits(rate), rate);
    }
}
