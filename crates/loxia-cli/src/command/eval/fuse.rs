//! `loxia eval fuse`: several runs joined into one TREC run.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use loxia::core::Run;
use loxia::core::artefact::write_file_atomically;
use loxia::data::write::TrecRunWriter;
use loxia::eval::{Fusion, Normalisation, fuse};

use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::OutputFlags;
use crate::report::Summary;

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
  loxia eval fuse --run BM25.trec --run DUAL.trec --method rrf --depth 1000 --output FUSED.trec")]
pub(crate) struct FuseFlags {
    /// A run: TREC, JSON or JSON lines, plain or gzip; give it once for each run, - is stdin
    #[arg(long, value_name = "FILE", required = true)]
    run: Vec<PathBuf>,
    /// How to join them
    #[arg(long, value_enum, default_value = "rrf")]
    method: Method,
    /// Constant of rrf: the higher, the less the first ranks stand out
    #[arg(long, value_name = "K", default_value_t = 60.0)]
    rrf_k: f64,
    /// What becomes of scores before combsum and combmnz add them
    #[arg(long, value_enum, default_value = "minmax")]
    normalise: NormaliseName,
    /// Keep the best N items of each query [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    depth: Option<u64>,
    /// Name of the joined run, its last column [default: the method]
    #[arg(long, value_name = "NAME")]
    tag: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
}

/// Reads the runs, joins them, writes the result.
pub(super) fn run(flags: FuseFlags, context: &Context) -> Result<Outcome> {
    if flags.run.len() < 2 {
        return usage("joining needs at least two runs: give --run twice");
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
    if output.is_stdout() {
        let mut out = BufWriter::new(std::io::stdout().lock());
        write_run(&fused, &mut out)?;
        out.flush()?;
    } else {
        write_file_atomically(&output.output, output.existing(), |file| write_run(&fused, file))?;
    }
    let mut summary = Summary::default();
    summary
        .fact("runs", runs.len())
        .fact("queries", fused.len())
        .fact("items", fused.iter().map(|(_, list)| list.len()).sum::<usize>())
        .fact("output", output.output.display().to_string());
    summary.print(context, output.is_stdout())?;
    Ok(summary.outcome())
}

fn write_run(run: &Run, out: &mut impl Write) -> Result<()> {
    let mut writer = TrecRunWriter::new(out, &run.tag, ' ')?;
    for (query, entries) in run.iter() {
        writer.write(query, entries)?;
    }
    Ok(())
}
