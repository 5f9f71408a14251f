//! `loxia bench encoder`: our side alone, for one model and one workload.

use anyhow::Result;
use clap::Args;
use loxia::model::Precision;
use loxia::nn::Kernel;

use super::lengths::Lengths;
use super::peak::{self, Peak};
use super::process::{self, Took, timed};
use super::subject::Subject;
use super::workload::Workload;
use super::{mebibytes, tell_scratch};
use crate::context::Context;
use crate::exit::{Outcome, usage};
use crate::flags::ModelFlags;
use crate::report::{Summary, three_digits};

/// Measure how fast a model computes on this machine.
///
/// Texts of the lengths asked for are generated, computed once to warm up and then again until the time is up;
/// the median counts. Tokenisation is included, opening the model is not. Useful operations are counted by
/// formula, without padding and only for rows that the model's head reads; the machine's peak is measured on
/// the same threads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loxia bench encoder --model MODEL_DIR
  loxia bench encoder --model MODEL_DIR --precision int8 --lengths 32..257x64 --threads 1
  LOXIA_KERNEL=avx2 loxia bench encoder --model MODEL_DIR --json

bench/peers.sh in the source tree measures against PyTorch, ONNX Runtime and OpenVINO.")]
pub(crate) struct EncoderFlags {
    /// A model's directory, cross-encoder or dual encoder
    #[arg(long, value_name = "DIR", required_unless_present = "worker")]
    model: Option<String>,
    /// Lengths of the sequences in tokens: LENGTHxCOUNT, A..BxCOUNT (uniform, half-open), or a file, one a line
    /// [default: 256x8, or eight of the longest that the model takes]
    #[arg(long, value_name = "LENGTHS")]
    lengths: Option<Lengths>,
    /// For how long to measure
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,
    /// Read commands from stdin, answer with JSON lines (bench/README.md)
    #[arg(long, hide = true)]
    worker: bool,
    #[command(flatten)]
    model_flags: ModelFlags,
}

/// Tokens of a sequence, and how many sequences, unless it is said.
const LENGTH: usize = 256;
const COUNT: usize = 8;
/// Fewest and most runs that make a median.
const FEWEST: usize = 3;
const MOST: usize = 10_000;

/// Runs the command.
pub(super) fn run(flags: EncoderFlags, context: &Context) -> Result<Outcome> {
    let Some(model) = &flags.model else { return super::worker::run(context) };
    if flags.worker {
        return usage("--worker is told by its commands which models to open; leave --model out");
    }
    if !(0.0..=3600.0).contains(&flags.seconds) {
        return usage("--seconds must lie between 0 and 3600");
    }
    let spec = flags.model_flags.spec(model, context)?;
    let options = flags.model_flags.options();
    let subject = Subject::open(&spec, &options)?;
    let longest = Workload::longest(&subject)?;
    let usual = Lengths::Equal { length: LENGTH.min(longest), count: COUNT };
    let lengths = flags.lengths.as_ref().unwrap_or(&usual).draw(longest)?;
    let workload = Workload::of_lengths(&subject, &lengths)?;
    let before = process::memory();
    let tokens = subject.run(&workload, context)?.tokens;
    let runs = measure(&subject, &workload, flags.seconds, context)?;
    let peak_memory = process::peak_memory();
    let peak = peak::measure(Kernel::detect()?, options.precision.unwrap_or(Precision::F32));
    let figures = Figures { operations: subject.operations(&lengths), tokens, runs: &runs, peak };
    let mut summary = Summary::default();
    summary
        .fact("model", model.as_str())
        .fact("encoder", shape_text(&subject))
        .fact("engine", subject.engine())
        .fact("threads", rayon::current_num_threads())
        .fact("sequences", workload.len());
    figures.tell(workload.len(), &mut summary);
    if let Some(bytes) = peak_memory {
        summary.fact_as("peak memory", mebibytes(bytes), bytes);
    }
    if let Some(bytes) = before {
        summary.fact_as("memory after opening", mebibytes(bytes), bytes);
    }
    tell_scratch(&mut summary, subject.most_scratch_bytes());
    summary.print_to_stdout(context)?;
    Ok(summary.outcome())
}

/// Runs a workload again and again.
fn measure(subject: &Subject, workload: &Workload, seconds: f64, context: &Context) -> Result<Vec<Took>> {
    let bar = context.hidden_bar();
    let (mut runs, mut spent) = (Vec::new(), 0.0);
    while runs.len() < FEWEST || (spent < seconds && runs.len() < MOST) {
        let (result, took) = timed(|| subject.run(workload, context));
        result?;
        spent += took.wall;
        runs.push(took);
    }
    bar.finish();
    Ok(runs)
}

/// What was measured of one workload.
struct Figures<'a> {
    operations: f64,
    tokens: u64,
    runs: &'a [Took],
    peak: Peak,
}

impl Figures<'_> {
    fn tell(&self, sequences: usize, summary: &mut Summary) {
        let wall = median(self.runs.iter().map(|took| took.wall)).unwrap_or(f64::NAN);
        let rate = |count: f64| count / wall;
        let useful = rate(self.operations);
        summary.fact("tokens", self.tokens).fact("runs", self.runs.len()).fact_as(
            "median time",
            format!("{} ms", three_digits(wall * 1e3)),
            wall,
        );
        if let Some(cpu) = median(self.runs.iter().filter_map(|took| took.cpu)) {
            summary.fact_as("median CPU time", format!("{} ms", three_digits(cpu * 1e3)), cpu);
        }
        for (name, value) in
            [("tokens a second", rate(self.tokens as f64)), ("sequences a second", rate(sequences as f64))]
        {
            summary.fact_as(name, three_digits(value), value);
        }
        summary
            .fact_as("useful GFLOP a second", three_digits(useful / 1e9), useful / 1e9)
            .fact_as(
                "peak GFLOP a second",
                format!("{} (measured: {})", three_digits(self.peak.rate / 1e9), self.peak.instructions),
                self.peak.rate / 1e9,
            )
            .fact_as(
                "share of peak",
                format!("{} %", three_digits(100.0 * useful / self.peak.rate)),
                useful / self.peak.rate,
            );
    }
}

/// The middle of some numbers; `None` of none.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

fn shape_text(subject: &Subject) -> String {
    let shape = subject.shape();
    format!(
        "{} layers x {}, {} heads, feed-forward {}",
        shape.layers, shape.hidden, shape.heads, shape.intermediate
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
    }
}
