//! `loxia eval run`: flags, and the work in order.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use loxia::core::Seed;
use loxia::eval::{EvalOptions, Evaluation, Measure, evaluate};

use super::comparison::{Comparison, Extras, Test};
use super::output::{self, Report, SystemReport};
use crate::context::Context;
use crate::exit::{Outcome, usage};

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
    #[arg(long, value_name = "DELTA", default_value_t = 0.02)]
    delta: f64,
    /// Add 95 % intervals of the means from N bootstrap resamples (2000 or more)
    #[arg(long, value_name = "N")]
    bootstrap: Option<usize>,
    /// Seed of the bootstrap
    #[arg(long, value_name = "SEED", default_value_t = 42)]
    seed: u64,
}

/// Reads, measures, compares, prints.
pub(super) fn run(flags: RunFlags, context: &Context) -> Result<Outcome> {
    let format = match flags.format {
        _ if context.json => Format::Json,
        Some(format) => format,
        None => Format::Table,
    };
    let measures = measures(&flags, format)?;
    let qrels = super::read_qrels(&flags.qrels)?;
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
    if flags.baseline.is_none() && flags.test.is_none() {
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
