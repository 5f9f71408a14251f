//! `loxia eval fuse`: several runs joined into one.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use loxia::core::Run;
use loxia::data::RunFormat;
use loxia::data::convert::{TextSources, write_run};
use loxia::eval::{Fusion, Normalisation, fuse};

use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::OutputFlags;
use crate::report::Summary;
use crate::text_output::{run_format, write_text};
use crate::typed::Typed;

/// How runs are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Sum of 1 / (k + rank)
    Rrf,
    /// Sum of scores
    Combsum,
    /// Sum of scores times the number of runs that have the item
    Combmnz,
}

/// What becomes of scores before they are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NormaliseName {
    /// To 0..1 within each query
    Minmax,
    /// Nothing
    None,
}

/// Join runs into one by reciprocal ranks or by scores.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loxia eval fuse --run BM25.trec --run DUAL.trec --method rrf --depth 1000 --output FUSED.trec

An output whose name ends in .jsonl or .json is written as JSON lines, any other as a TREC run.")]
pub(crate) struct FuseFlags {
    #[command(flatten)]
    typed: Typed,
    /// A run: TREC, JSON or JSON lines, plain or gzip; give it once for each run, - is stdin
    #[arg(long, value_name = "FILE", required = true)]
    run: Vec<PathBuf>,
    /// How to join them
    #[arg(long, value_enum, default_value = "rrf")]
    method: Method,
    /// Constant of rrf: the higher, the less the first ranks stand out
    #[arg(long, value_name = "K", default_value_t = 60.0, allow_negative_numbers = true, value_parser = rank_constant)]
    rrf_k: f64,
    /// What becomes of scores before combsum and combmnz add them
    #[arg(long, value_enum, default_value = "minmax")]
    normalise: NormaliseName,
    /// Keep the best N items of each query [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    depth: Option<u64>,
    /// Name of the joined run, its last column [default: the method]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    tag: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
}

fn rank_constant(text: &str) -> Result<f64, String> {
    let k = text.parse().ok().filter(|k: &f64| k.is_finite() && *k >= 0.0);
    k.ok_or_else(|| "it must be a number from 0 up".to_owned())
}

/// Reads the runs, joins them, writes the result.
pub(super) fn run(flags: FuseFlags, context: &Context) -> Result<Outcome> {
    if flags.run.len() < 2 {
        return usage("joining needs at least two runs: give --run twice");
    }
    match flags.method {
        Method::Rrf => flags.typed.refuse(&["normalise"], "rrf adds ranks, not scores")?,
        Method::Combsum | Method::Combmnz => {
            flags.typed.refuse(&["rrf-k"], "it is the constant of --method rrf")?;
        }
    }
    let format = run_format(&flags.output, context);
    if format != RunFormat::Trec {
        flags.typed.refuse(&["tag"], "JSON lines have no column for it")?;
    }
    let normalisation = match flags.normalise {
        NormaliseName::Minmax => Normalisation::MinMax,
        NormaliseName::None => Normalisation::None,
    };
    let fusion = match flags.method {
        Method::Rrf => Fusion::ReciprocalRank { k: flags.rrf_k },
        Method::Combsum => Fusion::CombSum(normalisation),
        Method::Combmnz => Fusion::CombMnz(normalisation),
    };
    let depth = flags.depth.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
    let runs: Vec<Run> = super::read_runs(&flags.run)?
        .into_iter()
        // Messages name a run by its file; the tag of the file would not tell two apart.
        .map(|mut named| {
            named.run.tag = named.name;
            named.run
        })
        .collect();
    let mut fused = fuse(&runs, fusion, depth)?;
    if let Some(tag) = flags.tag {
        fused.tag = tag;
    }
    let output = &flags.output;
    write_text(output, |out| {
        write_run(out, &fused, format, TextSources::default())?;
        Ok(())
    })?;
    let mut summary = Summary::default();
    summary
        .fact("runs", runs.len())
        .fact("queries", fused.len())
        .fact("items", fused.iter().map(|(_, list)| list.len()).sum::<usize>())
        .fact("output", output.output.display().to_string());
    summary.print(context, output.is_stdout())?;
    Ok(summary.outcome())
}
