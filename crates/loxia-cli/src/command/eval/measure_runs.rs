//! `loxia eval run`: flags, and the work in order.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use loxia::core::Seed;
use loxia::eval::{EvalOptions, Evaluation, LEAST_RESAMPLES, Measure, evaluate};

use super::comparison::{Comparison, Extras, Test};
use super::output::{self, Report, SystemReport};
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::typed::Typed;

/// Measures of a table when none are asked for.
const DEFAULT_MEASURES: [&str; 4] = ["nDCG@10", "RR@10", "AP", "R@100"];

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Format {
    /// Aligned columns, a row for each run
    Table,
    /// As trec_eval prints it
    TrecEval,
    /// A table in Markdown
    Markdown,
    /// Comma-separated values with all digits
    Csv,
    /// An array of objects with run, measure and value
    Json,
}

/// Which test is made against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TestName {
    /// Paired t-test, two-sided: do the means differ?
    T,
    /// Two one-sided t-tests: do the means differ by less than --delta?
    Tost,
}

/// Measure runs as trec_eval does, side by side.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia eval run --qrels QRELS --run BM25.trec --run RERANKED.trec --measure nDCG@10 --measure 'RR(rel=2)@10' --test t
  loxia eval run --qrels QRELS --run BM25.trec --format trec_eval -q
  loxia eval run --qrels QRELS --run BM25.trec --measure nDCG@10 --bootstrap 10000 --json")]
pub(crate) struct RunFlags {
    #[command(flatten)]
    typed: Typed,
    /// Judgements: TREC's four columns or BEIR's three with a header, plain or gzip
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// A run: TREC, JSON or JSON lines, plain or gzip; give it once for each run, - is stdin
    #[arg(long, value_name = "FILE", required = true)]
    run: Vec<PathBuf>,
    /// A measure, as ir_measures or trec_eval writes it (nDCG@10, RR(rel=2)@10, ndcg_cut_10, official);
    /// give it once for each [default: nDCG@10, RR@10, AP, R@100; trec_eval's official set with its format]
    #[arg(long, short, value_name = "MEASURE")]
    measure: Vec<String>,
    /// Print every query as well
    #[arg(long, short = 'q')]
    per_query: bool,
    /// Take means over all judged queries; those missing in a run count as empty rankings
    #[arg(long, short)]
    complete: bool,
    /// Lowest level that counts as relevant, for measures that do not say it themselves [default: 1]
    #[arg(long, short = 'l', value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(..=i64::from(i32::MAX)))]
    rel: Option<u32>,
    /// How to print the results [default: table]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The run that the others are tested against: one of --run [default with --test: the first]
    #[arg(long, value_name = "RUN")]
    baseline: Option<PathBuf>,
    /// Which test [default with --baseline: t]
    #[arg(long, value_enum)]
    test: Option<TestName>,
    /// Difference of means below which systems count as equivalent (with --test tost)
    #[arg(long, value_name = "DELTA", default_value_t = 0.02, allow_negative_numbers = true, value_parser = margin)]
    delta: f64,
    /// Add 95 % intervals of the means from N bootstrap resamples (2000 or more)
    #[arg(long, value_name = "N", value_parser = resamples)]
    bootstrap: Option<usize>,
    /// Seed of the bootstrap
    #[arg(long, value_name = "SEED", default_value_t = 42)]
    seed: u64,
}

fn margin(text: &str) -> Result<f64, String> {
    let delta = text.parse().ok().filter(|delta: &f64| delta.is_finite() && *delta > 0.0);
    delta.ok_or_else(|| "it must be a number above 0".to_owned())
}

fn resamples(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count >= LEAST_RESAMPLES);
    count.ok_or_else(|| format!("it must be a whole number, at least {LEAST_RESAMPLES}"))
}

/// Reads, measures, compares, prints.
pub(super) fn run(mut flags: RunFlags, context: &Context) -> Result<Outcome> {
    let format = format(&flags, context)?;
    refuse_without_effect(&flags, format)?;
    if format == Format::TrecEval && (flags.tests() || flags.bootstrap.is_some()) {
        context.say("tests and intervals are left out: trec_eval's layout has no place for them");
        (flags.test, flags.baseline, flags.bootstrap) = (None, None, None);
    }
    let measures = measures(&flags, format)?;
    let qrels = super::read_qrels(&flags.qrels, context)?;
    let runs = super::read_runs(&flags.run)?;
    let baseline = baseline(&flags, &runs)?;

    let options = EvalOptions { complete: flags.complete };
    let mut evaluations: Vec<Evaluation> = Vec::with_capacity(runs.len());
    for named in &runs {
        let evaluation = evaluate(&named.run, &qrels, &measures, options)
            .with_context(|| named.path.display().to_string())?;
        evaluations.push(evaluation);
    }
    let comparison =
        baseline.map(|baseline| Comparison { baseline, test: test(&flags), systems: runs.len() });
    let extras = Extras::compute(&evaluations, comparison, flags.bootstrap.map(|n| (n, Seed(flags.seed))))?;

    let systems = runs
        .into_iter()
        .zip(evaluations)
        .map(|(named, evaluation)| SystemReport { name: named.name, evaluation });
    let report = Report {
        systems: systems.collect(),
        extras,
        per_query: flags.per_query,
        complete: flags.complete,
        official: flags.measure.is_empty(),
    };
    let stdout = std::io::stdout();
    let footer_is_seen = matches!(format, Format::Table | Format::Markdown) && stdout.is_terminal();
    if !footer_is_seen {
        report.differences().iter().for_each(|line| context.say(line));
    }
    let mut out = BufWriter::new(stdout.lock());
    output::write(&report, format, &mut out)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// The format: a typed flag wins over one from elsewhere; two that contradict each other are refused.
fn format(flags: &RunFlags, context: &Context) -> Result<Format> {
    let format = flags.format.unwrap_or(Format::Table);
    let format_is_typed = flags.typed.has("format");
    if !context.json {
        return Ok(format);
    }
    if format_is_typed && flags.typed.has("json") && format != Format::Json {
        return usage("--json and another --format: give one of them");
    }
    Ok(if format_is_typed { format } else { Format::Json })
}

fn refuse_without_effect(flags: &RunFlags, format: Format) -> Result<()> {
    let typed = &flags.typed;
    if format == Format::TrecEval {
        let reason = "trec_eval's layout has no place for tests and intervals; \
                      take --format table, markdown, csv or json";
        typed.refuse(&["test", "baseline", "delta", "bootstrap", "seed"], reason)?;
    }
    if flags.test != Some(TestName::Tost) {
        typed.refuse(&["delta"], "it belongs to --test tost")?;
    }
    if flags.bootstrap.is_none() {
        typed.refuse(&["seed"], "it belongs to --bootstrap")?;
    }
    Ok(())
}

impl RunFlags {
    /// Whether runs are tested against a baseline.
    fn tests(&self) -> bool {
        self.test.is_some() || self.baseline.is_some()
    }
}

/// The measures asked for, each once.
fn measures(flags: &RunFlags, format: Format) -> Result<Vec<Measure>> {
    let names: Vec<&str> = match flags.measure.as_slice() {
        [] if format == Format::TrecEval => vec!["official"],
        [] => DEFAULT_MEASURES.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    let mut measures: Vec<Measure> = Vec::new();
    for name in names {
        for measure in Measure::parse_all(name).or_else(|error| usage(error.to_string()))? {
            let measure = flags.rel.map_or(measure, |level| measure.with_level(level));
            if !measures.contains(&measure) {
                measures.push(measure);
            }
        }
    }
    Ok(measures)
}

/// Position of the baseline among the runs, if a test is wanted.
fn baseline(flags: &RunFlags, runs: &[super::NamedRun]) -> Result<Option<usize>> {
    if !flags.tests() {
        return Ok(None);
    }
    if runs.len() < 2 {
        return usage("a test compares runs: give --run at least twice");
    }
    let Some(wanted) = &flags.baseline else { return Ok(Some(0)) };
    let position = runs.iter().position(|run| run.path == *wanted || wanted.as_os_str() == run.name.as_str());
    match position {
        Some(position) => Ok(Some(position)),
        None => {
            let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
            usage(format!("--baseline {} is none of the runs: {}", wanted.display(), names.join(", ")))
        }
    }
}

fn test(flags: &RunFlags) -> Test {
    match flags.test {
        Some(TestName::Tost) => Test::Equivalence { delta: flags.delta },
        Some(TestName::T) | None => Test::Difference,
    }
}
